"""Change of a store's embedding model: new vectors are made beside the old ones, and one commit switches to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from memgraph.disk.lock import ProcessLock
from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError, InvalidInputError
from memgraph.journal.vectors import MadeRow, MadeVectors
from memgraph.model.base import MAX_ITEMS, Callback, checked
from memgraph.model.events.memories import MemoryReembedded, PlacedVector
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.results.maintenance import ReembedResult
from memgraph.ports import Embedder, Progress, Row
from memgraph.store.commit.vectors import VectorModel, check_is_embedder
from memgraph.store.commit.writer import Writer
from memgraph.store.maintenance.awaiting_vectors import AwaitingVectors, checked_batch
from memgraph.store.projection.projector import Projector


class Reembedding:
    """Changes a store's embedding model.

    Until the switching commit, recalls and writes use the old vectors. The commit names the new model and every new
    vector, so the change is atomic. A memory without a new vector by then, because it was just added or because the
    model fails on its text, awaits one.
    """

    def __init__(self, awaiting: AwaitingVectors, projector: Projector, writer: Writer, now: Callable[[], str]) -> None:
        self._awaiting = awaiting
        self._projector = projector
        self._journal = projector.journal
        self._writer = writer
        self._now = now

    def reembed(self, embedder: Embedder, *, batch: int = 64, progress: Progress | None = None) -> ReembedResult:
        """Give every memory a vector of another model, and switch to that model.

        If interrupted before the end, the store is unchanged; finished vectors are kept, and the next call with this
        model continues with the rest. Other writers wait for the one commit, not for the model. The old vectors stay in
        their file.

        This object switches to the new embedder. Another object that has the store open with the old one, in any
        process, no longer writes or compares vectors: writing raises `ModelMismatchError`, and a recall falls back to
        text and reports it. A concurrent write in another thread of this process is rejected in the same way.

        Parameters
        ----------
        embedder : Embedder
            The embedder of the new model. If the store has that model already, only missing vectors are made.
        batch : int
            Texts per model call.
        progress : Progress, optional
            Called with (memories with new vectors, all memories) after each batch.

        Raises
        ------
        InvalidInputError
            The embedder makes no vectors, or of another length than a model of its name did before; `batch` is below 1.
        EmbeddingError
            The model does not work, or fails on more than half of the memories; the store keeps its current model.
        BusyError
            Another process or thread is changing the store's model.
        """
        check_is_embedder(embedder)
        checked(Callback, progress, "progress")
        batch = checked_batch(batch)
        model = VectorModel(embedder.name, embedder.dimension)
        with self._alone():
            self._projector.catch_up()
            self._check_target(model)
            before = self._writer.embedder
            if self._takes(embedder):
                embedded, reused = self._embed_with(embedder, before, batch, progress), 0
            else:
                file = self._journal.vectors(*model)
                made = MadeVectors(self._journal.database, file, self._journal.named.rows.get(model.name, 0))
                embedded, reused = self._make(embedder, made, batch, progress)
                self._change(embedder, made)
                made.forget()
                embedded += self._embed_rest(batch)
        return ReembedResult(
            model=model.name,
            dimension=model.dimension,
            embedded=embedded,
            reused=reused,
            awaiting=self._awaiting.awaiting_vectors(),
        )

    def _takes(self, embedder: Embedder) -> bool:
        """Switch to an embedder at once if the vectors are its model's, or if there are none yet."""
        with self._writer.exclusive():  # under this lock, concurrent writes check their embedder
            if self._journal.named.model not in (None, embedder.name):
                return False
            self._writer.embedder = embedder
            return True

    def _embed_with(self, embedder: Embedder, before: Embedder, batch: int, progress: Progress | None) -> int:
        """Embed what awaits a vector; in a store without vectors, a model that makes none is not adopted."""
        try:
            done = self._awaiting.embed_awaiting(batch=batch, progress=progress)
            if self._journal.named.model is None and (waiting := self._awaiting.awaiting_vectors()):
                raise _unfit(embedder, waiting, waiting)
        except EmbeddingError:
            if self._journal.named.model is None:
                self._writer.embedder = before
            raise
        return done

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other changes of the model for a block; other writers continue."""
        lock = ProcessLock(self._journal.home / "reembed.lock", "the change of the store's embedding model")
        lock.acquire(self._journal.lock_timeout_s)
        try:
            yield
        finally:
            lock.release()

    def _check_target(self, model: VectorModel) -> None:
        if not model.dimension:
            raise InvalidInputError("computes no vectors; choose another model", field="embedder", value=model.name)
        known = self._journal.named.dimension_of(model.name)
        if known not in (None, model.dimension):
            problem = f"computes vectors of {model.dimension} dimensions, but this store has vectors of {known} under that name"
            raise InvalidInputError(f"{problem}; give the model another name", field="embedder", value=model.name)

    def _make(self, embedder: Embedder, made: MadeVectors, batch: int, progress: Progress | None) -> tuple[int, int]:
        """Make the missing vectors; return how many were made, and how many existed before.

        Memories added or changed meanwhile are embedded in further rounds, until at most one batch of them is left.
        """
        failed: set[tuple[str, str]] = set()
        lacking, total = self._lacking(made, failed)
        reused, done = total - len(lacking), 0
        most_left = 0
        while len(lacking) > most_left:
            for start in range(0, len(lacking), batch):
                done += self._make_batch(embedder, made, lacking[start : start + batch], failed, done)
                if progress:
                    progress(min(total, reused + done), total)
            lacking, total = self._lacking(made, failed)
            most_left = batch
        if len(failed) * 2 > total:
            raise _unfit(embedder, len(failed), total)
        return done, reused

    def _make_batch(
        self, embedder: Embedder, made: MadeVectors, memory_ids: Sequence[str], failed: set[tuple[str, str]], done: int
    ) -> int:
        with self._projector.reading():
            rows = self._projector.rows.memories(memory_ids)
        try:
            vectors = embed_each(embedder, [row["content"] for row in rows])
        except EmbeddingError as error:
            raise EmbeddingError(
                f"{error}; the store is as it was, and what was embedded ({done} now) lies ready: run it again to continue"
            ) from error
        texts = [(row["id"], self._journal.hmac_of(row["content"])) for row in rows]
        good = [(text, one) for text, one in zip(texts, vectors, strict=True) if not isinstance(one, EmbeddingError)]
        failed.update(text for text, one in zip(texts, vectors, strict=True) if isinstance(one, EmbeddingError))
        if good:
            made.add([text for text, _ in good], np.stack([vector for _, vector in good]))
        return len(good)

    def _lacking(self, made: MadeVectors, failed: set[tuple[str, str]]) -> tuple[list[str], int]:
        """Return the memories without a new vector for their text, oldest first, and the number of all memories."""
        lacking, total = [], 0
        for row, found in self._with_made(made):
            total += 1
            if found is None and (row["id"], self._journal.hmac_of(row["content"])) not in failed:
                lacking.append(row["id"])
        return lacking, total

    def _with_made(self, made: MadeVectors) -> list[tuple[Row, MadeRow | None]]:
        """Return every memory that is not deleted, with the new vector of its text, oldest first."""
        with self._projector.reading():
            found = self._projector.rows.every("Memory")
            rows = sorted(found, key=lambda row: row["seq"])
        return [(row, made.row(row["id"], self._journal.hmac_of(row["content"]))) for row in rows]

    def _change(self, embedder: Embedder, made: MadeVectors) -> None:
        """Commit the new model and those of its vectors that match the memories' current texts."""
        with self._writer.exclusive():
            placed = [
                PlacedVector(id=found.memory_id, row=found.row, sha256=found.sha256)
                for _, found in self._with_made(made)
                if found is not None
            ]
            events: list[Payload] = [EmbeddingSwitched(model=embedder.name, dimension=embedder.dimension)]
            events += [
                MemoryReembedded(
                    model=embedder.name, embedded_at=self._now(), vectors=placed[start : start + MAX_ITEMS]
                )
                for start in range(0, len(placed), MAX_ITEMS)
            ]
            _ = self._projector.index  # the index checks quickly whether so many memories exist
            self._writer.commit("system", events, actor="system")
            self._writer.embedder = embedder

    def _embed_rest(self, batch: int) -> int:
        """Embed what still awaits a vector; the model has been changed, so a failure is only reported."""
        try:
            return self._awaiting.embed_awaiting(batch=batch)
        except EmbeddingError as error:
            self._writer.notice(f"memories are left without vectors: {error}; run `memgraph embed`")
            return 0


def _unfit(embedder: Embedder, failed: int, total: int) -> EmbeddingError:
    return EmbeddingError(
        f"{embedder.name} cannot embed {failed:,} of {total:,} memories, so the store still uses its former model; is this an embedding "
        "model? run `memgraph reembed` with another"
    )
