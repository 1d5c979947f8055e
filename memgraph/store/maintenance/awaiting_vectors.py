"""Memories awaiting their vectors: they were written while no model was available."""

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
from memgraph.store.commit.records import Write, scope_of
from memgraph.store.commit.vectors import check_model, has_vector
from memgraph.store.commit.writer import Writer
from memgraph.store.projection.projector import Projector


class AwaitingVectors:
    """Embeds memories that have no vector yet.

    There is no separate queue: every memory without a vector awaits one, archived and suppressed ones included. So none
    is ever lost, and an interrupted run can be continued.
    """

    def __init__(self, projector: Projector, writer: Writer, now: Callable[[], str]) -> None:
        self._projector = projector
        self._writer = writer
        self._now = now

    @property
    def notices(self) -> list[str]:
        """Notices for the user."""
        if not self._writer.embedder.dimension or not (waiting := self.awaiting_vectors()):
            return []
        many = "a memory awaits its vector" if waiting == 1 else f"{waiting} memories await their vectors"
        return [f"{many}, found by text alone until then: run `memgraph embed`"]

    def check_embedder(self, embedder: Embedder) -> None:
        """Reject an embedder that does not match the store's current vectors; one that makes none fits any store.

        Raises
        ------
        ModelMismatchError
            Names both models and how to change the store's.
        """
        with self._projector.reading():
            check_model(self._projector.named, embedder, in_use=self._writer.embedder)

    def awaiting_vectors(self) -> int:
        """Count the memories without a vector in any state, except deleted ones."""
        return len(self._awaiting())

    def embed_awaiting(self, *, batch: int = 64, at_most: int | None = None, progress: Progress | None = None) -> int:
        """Embed the memories that have no vector, oldest first, and return how many were embedded.

        Each batch is committed: after an interruption at any moment, committed batches remain and the next call
        continues. Other writers wait for a commit, not for the model. A text that the model fails on keeps waiting; a
        notice names its memory.

        Parameters
        ----------
        batch : int
            Texts per model call; one commit per write scope among them.
        at_most : int, optional
            Maximum number of memories to process.
        progress : Progress, optional
            Called with (processed, awaiting at the start) after each batch.

        Raises
        ------
        InvalidInputError
            `batch` is below 1, or `at_most` below 0.
        EmbeddingError
            Memories await a vector, and there is no model to embed them.
        """
        checked(Callback, progress, "progress")
        batch = checked_batch(batch)
        at_most = checked(Limit | None, at_most, "at_most")
        done, waiting = 0, len(self._awaiting())
        left = waiting if at_most is None else at_most
        tried: set[str] = set()
        while rows := self._next(tried, min(batch, left)):
            tried.update(row["id"] for row in rows)
            left -= len(rows)
            made_by = self._writer.embedder
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
        """Return the slots of live memories without a vector, in the order of recording."""
        with self._projector.reading():
            index = self._projector.index
            slots: list[int] = np.flatnonzero(index.column("is_live") & (index.column("vector_row") < 0)).tolist()
            return slots

    def _next(self, tried: set[str], count: int) -> list[Row]:
        """Return the rows of the first waiting memories that were not tried yet."""
        with self._projector.reading():
            names = self._projector.index.ids.names
            untried = (names[slot] for slot in self._awaiting() if names[slot] not in tried)
            return self._projector.rows.memories(list(islice(untried, count)))

    def _keep(self, rows: Sequence[Row], vectors: Sequence[Vector | EmbeddingError], made_by: Embedder) -> int:
        """Commit the vectors of texts that are unchanged since embedding; return their number. Report the others."""
        fitting: list[tuple[Row, Vector]] = []
        with self._writer.exclusive():
            for row, vector in zip(rows, vectors, strict=True):
                if isinstance(vector, EmbeddingError):
                    self.name_unembeddable(row, vector)
                    continue
                current = self._projector.rows.get("Memory", row["id"])
                if current is None or has_vector(current, self._writer.model.name):
                    continue
                if current["content"] == row["content"]:
                    fitting.append((row, vector))
            self.commit(fitting, made_by)
        return len(fitting)

    def name_unembeddable(self, row: Row, error: EmbeddingError) -> None:
        """Report which memory the model fails on."""
        self._writer.notice(f"memory {row['id']} cannot be embedded and is found by text alone: {error}")

    def commit(self, made: Sequence[tuple[Row, Vector]], made_by: Embedder) -> None:
        """Commit vectors of memories, one commit per write scope; requires the writer lock."""
        changed = RecordPatch(embedded_at=self._now())
        writes: dict[str | None, list[Write]] = {}
        for row, vector in made:
            event = MemoryRevised(id=row["id"], changed=changed)
            writes.setdefault(row.get("task_id"), []).append((event, vector))
        for task_id, of_task in writes.items():
            scope = scope_of({"task_id": task_id})
            self._writer.commit(scope, of_task, task_id=task_id, actor="system", made_by=made_by)


def checked_batch(batch: object) -> int:
    """Return the number of texts per model call after validation: an integer ≥ 1."""
    count: int = checked(Limit, batch, "batch")
    if count < 1:
        raise InvalidInputError("must be an integer of at least 1", field="batch", value=batch)
    return count
