"""Memories that await their vectors: those that were written while no model could be had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError, InvalidInputError
from memgraph.model.base import Callback, Limit, checked
from memgraph.model.events.memories import MemoryRevised, RecordPatch
from memgraph.model.memory import Vector
from memgraph.ports import Embedder, Progress, Row
from memgraph.store.commit.append import Write
from memgraph.store.commit.records import scope_of
from memgraph.store.commit.vectors import VectorModel, check_model, has_vector
from memgraph.store.commit.writer import Writer
from memgraph.store.projection.projector import Projector


class AwaitingVectors:
    """The part of a store that gives memories the vectors they await.

    The queue is no list of its own: whatever memory has no vector awaits one, be it archived or suppressed. So nothing is ever
    dropped from it, and a run that was stopped goes on where it was.
    """

    embedder: Embedder
    now: Callable[[], str]
    _check_open: Callable[[], None]
    _is_closed: bool
    _projector: Projector
    _writer: Writer

    @property
    def vector_model(self) -> VectorModel:
        """Name and dimension of the store's vectors, until it has one those of the embedder; dimension 0: it keeps none."""
        return self._writer.model

    @property
    def notices(self) -> list[str]:
        """What the user should know."""
        told = [*self._projector.journal.notices, *self._writer.notices]
        if not self._is_closed and self.embedder.dimension and (waiting := self.awaiting_vectors()):
            many = "a memory awaits its vector" if waiting == 1 else f"{waiting} memories await their vectors"
            told.append(f"{many}, found by text alone until then: run `memgraph embed`")
        return told

    def check_embedder(self, embedder: Embedder) -> None:
        """Refuse an embedder that does not make what the store keeps, as it is now; one that makes none fits any store.

        Raises
        ------
        ModelMismatchError
            Names both models and the way to change.
        """
        self._check_open()
        with self._projector.reading():
            check_model(self._projector.named, embedder, in_use=self.embedder)

    def awaiting_vectors(self) -> int:
        """Count the memories without a vector, whatever their state; deleted ones await nothing."""
        self._check_open()
        return len(self._awaiting())

    def embed_awaiting(self, *, batch: int = 64, at_most: int | None = None, progress: Progress | None = None) -> int:
        """Embed the memories that have no vector, the oldest first, and return how many have one now.

        Committed batch by batch: interrupted at any moment, what was committed stays and the next call goes on. Other writers
        wait for a commit, not for the model. A text that the model fails on goes on waiting; a notice names its memory.

        Parameters
        ----------
        batch : int
            Texts given to the model at a time; one commit for each write scope among them.
        at_most : int, optional
            Look at no more than so many.
        progress : Progress, optional
            Told (looked at, awaiting at the beginning) after each batch.

        Raises
        ------
        InvalidInputError
            `batch` is below 1, or `at_most` below 0.
        EmbeddingError
            There are some, and no model to embed them with.
        """
        self._check_open()
        checked(Callback, progress, "progress")
        batch = checked_batch(batch)
        at_most = checked(Limit | None, at_most, "at_most")
        done, waiting = 0, len(self._awaiting())
        left = waiting if at_most is None else at_most
        tried: set[str] = set()
        while rows := self._next(tried, min(batch, left)):
            tried.update(row["id"] for row in rows)
            left -= len(rows)
            made_by = self.embedder
            try:
                vectors = embed_each(made_by, [row["content"] for row in rows])
            except EmbeddingError as error:
                if not done:
                    raise
                raise EmbeddingError(f"{error}; {done} of {waiting} memories were embedded before that") from error
            done += self._keep(rows, vectors, made_by)
            if progress:
                progress(len(tried), waiting)
        return done

    def _awaiting(self) -> list[int]:
        """Return the slots of live memories without a vector, in the order the memories were recorded."""
        with self._projector.reading():
            index = self._projector.index
            slots: list[int] = np.flatnonzero(index.column("is_live") & (index.column("vector_row") < 0)).tolist()
            return slots

    def _next(self, tried: set[str], count: int) -> list[Row]:
        """Return the rows of the first memories that wait and were not tried."""
        with self._projector.holding():
            names = self._projector.index.ids.names
            untried = (names[slot] for slot in self._awaiting() if names[slot] not in tried)
            return self._projector.rows.memories(list(islice(untried, count)))

    def _keep(self, rows: Sequence[Row], vectors: Sequence[Vector | EmbeddingError], made_by: Embedder) -> int:
        """Commit the vectors of those texts that are still what was embedded; return how many. Name the others."""
        fitting: list[tuple[Row, Vector]] = []
        with self._writer.exclusive():
            for row, vector in zip(rows, vectors, strict=True):
                if isinstance(vector, EmbeddingError):
                    self._name_unembeddable(row, vector)
                    continue
                current = self._projector.rows.get("Memory", row["id"])
                if current is None or has_vector(current, self.vector_model.name):
                    continue
                if current["content"] == row["content"]:
                    fitting.append((row, vector))
            self._commit_vectors(fitting, made_by)
        return len(fitting)

    def _name_unembeddable(self, row: Row, error: EmbeddingError) -> None:
        self._writer.notice(f"memory {row['id']} cannot be embedded and is found by text alone: {error}")

    def _commit_vectors(self, made: Sequence[tuple[Row, Vector]], made_by: Embedder) -> None:
        """Commit vectors of memories, those of each write scope by themselves; the writer lock is held."""
        changed = RecordPatch(embedded_at=self.now())
        writes: dict[str | None, list[Write]] = {}
        for row, vector in made:
            event = MemoryRevised(id=row["id"], changed=changed)
            writes.setdefault(row.get("task_id"), []).append((event, vector))
        for task_id, of_task in writes.items():
            scope = scope_of({"task_id": task_id})
            self._writer.commit(scope, of_task, task_id=task_id, actor="system", made_by=made_by)


def checked_batch(batch: object) -> int:
    """Return how many texts the model is given at a time, a whole number, 1 or more."""
    count: int = checked(Limit, batch, "batch")
    if count < 1:
        raise InvalidInputError("must be an integer of at least 1", field="batch", value=batch)
    return count
