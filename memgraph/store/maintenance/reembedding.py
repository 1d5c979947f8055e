"""Changing a store's embedding model: the new vectors are made beside the old ones, and then all change in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from memgraph.disk.lock import ProcessLock
from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError, InvalidInputError
from memgraph.journal.journal import Journal
from memgraph.journal.vectors.pending_vectors import MadeRow, MadeVectors
from memgraph.model.base import MAX_ITEMS, Callback, checked
from memgraph.model.events.payload import Payload
from memgraph.model.events.reembedding import MemoryReembedded, PlacedVector
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.results.maintenance import ReembedResult
from memgraph.ports import Embedder, Progress, Row
from memgraph.store.commit.vectors import VectorModel, check_is_embedder
from memgraph.store.maintenance.awaiting_vectors import AwaitingVectors, checked_batch
from memgraph.store.projection.batches import Batches


class ReembedsVectors(AwaitingVectors):
    """The part of a store that changes its embedding model.

    Until the commit that changes it every recall is by the old vectors, and what is written gets old ones. The commit names
    the new model and every new vector, so it is there wholly or not at all. A memory that has no new vector then, because it
    came in the last moment or because the model fails on its text, awaits one.
    """

    _batches: Batches
    _journal: Journal
    hmac_of: Callable[[str], str]

    def reembed(self, embedder: Embedder, *, batch: int = 64, progress: Progress | None = None) -> ReembedResult:
        """Give every memory a vector of another model, and go on with that model.

        Stopped at any moment before the end, the store is as it was; what was embedded lies ready, and the next call with this
        model goes on behind it. Other writers wait for the one commit, not for the model. The old vectors stay in their file.

        This object goes on with the new embedder. Another one that is open on the store with the old one, in whatever process,
        writes no vectors and compares none any more: that is a `ModelMismatchError`, and a recall falls back to text and says
        so. What a thread of this process is just writing is refused in the same way.

        Parameters
        ----------
        embedder : Embedder
            Of the model to change to. If the store has it already, only what awaits a vector is embedded.
        batch : int
            Texts given to the model at a time.
        progress : Progress, optional
            Told (memories that have new vectors, all memories) after each batch.

        Raises
        ------
        InvalidInputError
            The embedder makes no vectors, or vectors of another length than a model of its name did; `batch` is below 1.
        EmbeddingError
            The model does not work, or fails on more than half of the memories; the store goes on with the one it has.
        BusyError
            Somebody else changes the store's model just now.
        """
        self._check_open()
        check_is_embedder(embedder)
        checked(Callback, progress, "progress")
        batch = checked_batch(batch)
        model = VectorModel(embedder.name, embedder.dimension)
        with self._alone(), self._batches.batch():
            self._projector.catch_up()
            self._check_target(model)
            before = self.embedder
            if self._takes(embedder):
                embedded, reused = self._embed_with(embedder, before, batch, progress), 0
            else:
                file = self._journal.vectors(*model)
                made = MadeVectors(file, self._journal.named.rows.get(model.name, 0))
                embedded, reused = self._make(embedder, made, batch, progress)
                self._change(embedder, made)
                made.forget()
                embedded += self._embed_rest(batch)
        return ReembedResult(
            model=model.name,
            dimension=model.dimension,
            embedded=embedded,
            reused=reused,
            awaiting=self.awaiting_vectors(),
        )

    def _takes(self, embedder: Embedder) -> bool:
        """Go on with an embedder at once if the vectors are its model's, or there are none yet."""
        with self._writer.exclusive():  # under this lock, what is just written checks its embedder
            if self._journal.named.model not in (None, embedder.name):
                return False
            self._go_on_with(embedder)
            return True

    def _embed_with(self, embedder: Embedder, before: Embedder, batch: int, progress: Progress | None) -> int:
        """Embed what awaits a vector; a model that made none where there are none is not gone on with."""
        try:
            done = self.embed_awaiting(batch=batch, progress=progress)
            if self._journal.named.model is None and (waiting := self.awaiting_vectors()):
                raise _unfit(embedder, waiting, waiting)
        except EmbeddingError:
            if self._journal.named.model is None:
                self._go_on_with(before)
            raise
        return done

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep every other change of model out for a block; other writers go on."""
        lock = ProcessLock(self._journal.folder / "reembed.lock", "the change of the store's embedding model")
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
        """Make what vectors are lacking; return how many were made, and how many had been before.

        What came or changed meanwhile is made in another round, until it is no more than a batch.
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
        with self._projector.holding():
            rows = self._projector.rows.memories(memory_ids)
        try:
            vectors = embed_each(embedder, [row["content"] for row in rows])
        except EmbeddingError as error:
            raise EmbeddingError(
                f"{error}; the store is as it was, and what was embedded ({done} now) lies ready: run it again to continue"
            ) from error
        texts = [(row["id"], self.hmac_of(row["content"])) for row in rows]
        good = [(text, one) for text, one in zip(texts, vectors, strict=True) if not isinstance(one, EmbeddingError)]
        failed.update(text for text, one in zip(texts, vectors, strict=True) if isinstance(one, EmbeddingError))
        if good:
            made.add([text for text, _ in good], np.stack([vector for _, vector in good]))
        return len(good)

    def _lacking(self, made: MadeVectors, failed: set[tuple[str, str]]) -> tuple[list[str], int]:
        """Return the memories of whose text no vector was made, the oldest first, and the number of all memories."""
        lacking, total = [], 0
        for row, found in self._with_made(made):
            total += 1
            if found is None and (row["id"], self.hmac_of(row["content"])) not in failed:
                lacking.append(row["id"])
        return lacking, total

    def _with_made(self, made: MadeVectors) -> list[tuple[Row, MadeRow | None]]:
        """Return every memory that is not deleted with the vector that was made of its text, the oldest first."""
        with self._projector.holding():
            found = self._projector.ask(lambda engine: [row for _, row in engine.scan("Memory")])
            rows = sorted(found, key=lambda row: row["seq"])
        return [(row, made.row(row["id"], self.hmac_of(row["content"]))) for row in rows]

    def _change(self, embedder: Embedder, made: MadeVectors) -> None:
        """Commit the new model and its vectors: those that are of what the memories say now."""
        with self._writer.exclusive():
            placed = [
                PlacedVector(id=found.memory_id, row=found.row, sha256=found.sha256)
                for _, found in self._with_made(made)
                if found is not None
            ]
            events: list[Payload] = [EmbeddingSwitched(model=embedder.name, dimension=embedder.dimension)]
            events += [
                MemoryReembedded(model=embedder.name, embedded_at=self.now(), vectors=placed[start : start + MAX_ITEMS])
                for start in range(0, len(placed), MAX_ITEMS)
            ]
            _ = self._projector.index  # answers at once whether so many memories are there
            self._writer.commit("system", events, actor="system")
            self._go_on_with(embedder)

    def _go_on_with(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._writer.use(embedder)

    def _embed_rest(self, batch: int) -> int:
        """Embed what awaits its vector still; the model is changed, so a failure is only told."""
        try:
            return self.embed_awaiting(batch=batch)
        except EmbeddingError as error:
            self._writer.notice(f"memories are left without vectors: {error}; run `memgraph embed`")
            return 0


def _unfit(embedder: Embedder, failed: int, total: int) -> EmbeddingError:
    return EmbeddingError(
        f"{embedder.name} cannot embed {failed:,} of {total:,} memories, so the store still uses its former model; is this an embedding "
        "model? run `memgraph reembed` with another"
    )
