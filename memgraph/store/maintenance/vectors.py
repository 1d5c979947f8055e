"""Vectors of memories: missing ones are made, damaged ones restored, and those of another model replace all of them.

There is no queue: every memory without a vector awaits one, archived and suppressed ones included. So none is ever lost, and an
interrupted run can be continued.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice

import numpy as np

from memgraph.disk.lock import ProcessLock
from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError, InvalidInputError
from memgraph.journal.vectors import DamagedRow, MadeRow, MadeVectors, NamedRows, row_sha256
from memgraph.logs import logger_of
from memgraph.model.base import MAX_ITEMS, Callback, Limit, checked
from memgraph.model.events.memories import MemoryReembedded, MemoryRevised, PlacedVector, RecordPatch, VectorsLost
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.memory import Vector
from memgraph.model.results.maintenance import ReembedResult, VectorRepair
from memgraph.ports import Embedder, Progress, Row
from memgraph.store.commit.records import (
    VectorModel,
    Write,
    check_is_embedder,
    check_model,
    checked_vector,
    has_vector,
    rows_in_use,
    scope_of,
)
from memgraph.store.query import StorePart, damage_notice

logger = logger_of(__name__)
Texts = set[tuple[str, str]]
"""Memories and the codes of their texts."""


class Vectors(StorePart):
    """Makes and restores the vectors of a store's memories, and changes its model."""

    @property
    def notices(self) -> list[str]:
        """Notices for the user."""
        waiting = self.awaiting_vectors() if self._writer.embedder.dimension else 0
        many = "a memory awaits its vector" if waiting == 1 else f"{waiting} memories await their vectors"
        notices = [f"{many}, found by text alone until then: run `memgraph embed`"] if waiting else []
        return [*notices, *damage_notice(self.damaged_vectors())] if self._reader.tells_damage else notices

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
        EmbeddingError
            Memories await a vector, and there is no model to embed them.
        """
        checked(Callback, progress, "progress")
        batch = _checked_batch(batch)
        at_most = checked(Limit | None, at_most, "at_most")
        done, waiting = 0, len(self._awaiting())
        left = waiting if at_most is None else at_most
        tried: set[str] = set()
        while rows := self._next(tried, min(batch, left)):
            tried.update(row["id"] for row in rows)
            left -= len(rows)
            made_by = self._writer.embedder
            so_far = f"{done} of {waiting} memories were embedded before that" if done else None
            done += self._keep(rows, _embedded(made_by, rows, so_far), made_by)["replaced"]
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

    def _keep(self, rows: Sequence[Row], vectors: Sequence[Vector | EmbeddingError], made_by: Embedder) -> Counter[str]:
        """Commit the vectors of texts that are unchanged since embedding, or restore a damaged one if it is the same; report texts without a vector."""
        back: dict[int, Vector] = {}
        anew: list[tuple[Row, Vector]] = []
        failed = 0
        with self._writer.exclusive():
            model = self._writer.model
            file = self._journal.vectors(*model)
            for row, vector in zip(rows, vectors, strict=True):
                current = self._projector.rows.get("Memory", row["id"])
                if current is None or current["content"] != row["content"]:
                    continue
                is_named = has_vector(current, model.name)
                if is_named and file.holds(current["vector_row"], current["vector_sha256"]):
                    continue
                if isinstance(vector, EmbeddingError):
                    failed += 1
                    self._writer.notice(f"memory {row['id']} cannot be embedded and is found by text alone: {vector}")
                elif is_named and row_sha256(same := checked_vector(vector, model)) == current["vector_sha256"]:
                    back[current["vector_row"]] = same
                else:
                    anew.append((row, vector))
            with self._journal.committing() if back else nullcontext():
                if back:
                    file.restore(back)
                self._commit(anew, made_by)
            if back:
                file.forget()  # after the commit: nobody makes it of the former rows again
                self._reader.refresh_vectors()
        return Counter(restored=len(back), replaced=len(anew), failed=failed)

    def _commit(self, made: Sequence[tuple[Row, Vector]], made_by: Embedder) -> None:
        """Commit vectors of memories, one commit per write scope; requires the writer lock."""
        changed = RecordPatch(embedded_at=self._now())
        writes: dict[str | None, list[Write]] = {}
        for row, vector in made:
            event = MemoryRevised(id=row["id"], changed=changed)
            writes.setdefault(row.get("task_id"), []).append((event, vector))
        for task_id, of_task in writes.items():
            scope = scope_of({"task_id": task_id})
            self._writer.commit(scope, of_task, task_id=task_id, actor="system", made_by=made_by)

    def damaged_vectors(self) -> int:
        """Count the memories whose vector is missing, all zeros or not finite in its file; log a message about them once.

        `verify` detects further kinds of damage.
        """
        return self._reader.damaged_vectors()

    def repair_vectors(self, *, batch: int = 64, progress: Progress | None = None) -> VectorRepair:
        """Compare every vector with its SHA-256, and restore those that differ or are missing.

        Each batch is committed: after an interruption at any moment, finished batches remain and the next call
        continues. Other writers wait while the journal is read at the beginning and the end, and while a batch is
        written, but not for the model. A text that the model fails on stays without a usable vector; a notice names its
        memory. If only unused rows are damaged, no model is needed.

        Parameters
        ----------
        batch : int
            Texts per model call.
        progress : Progress, optional
            Called with (processed, damaged) memories after each batch.

        Raises
        ------
        EmbeddingError
            Memories have damaged vectors, and there is no model to embed them.
        """
        batch = _checked_batch(batch)
        with self._writer.exclusive():  # raises if the store is read-only
            named = NamedRows.of_lines(self._journal.lines())
        damaged = list(named.damaged(self._journal.vectors))
        affected = self._affected(damaged)
        healed = Counter[str]()
        for start in range(0, len(affected), batch):
            self._repair_batch(affected[start : start + batch], healed, len(affected))
            if progress:
                progress(min(start + batch, len(affected)), len(affected))
        lost = self._record_lost() if damaged else 0
        return VectorRepair(
            checked=len(named),
            damaged=len(damaged),
            restored=healed["restored"],
            replaced=healed["replaced"],
            lost=lost,
            failed=healed["failed"],
        )

    def _affected(self, damaged: Sequence[DamagedRow]) -> list[str]:
        with self._projector.reading():
            used = rows_in_use(self._projector.index)
            model = self._projector.named.model
        return [used[one.row] for one in damaged if one.model == model and one.row in used]

    def _repair_batch(self, memory_ids: Sequence[str], healed: Counter[str], total: int) -> None:
        made_by = self._writer.embedder
        with self._projector.reading():
            check_model(self._projector.named, made_by)
            rows = self._projector.rows.memories(memory_ids)
        done = healed["restored"] + healed["replaced"]
        so_far = f"{done} of {total} were repaired before that; run it again to continue" if done else None
        healed.update(self._keep(rows, _embedded(made_by, rows, so_far), made_by))

    def _record_lost(self) -> int:
        """Commit which unused rows are still damaged; return their number."""
        lost: dict[str, list[int]] = defaultdict(list)
        with self._writer.exclusive():
            model, used = self._journal.named.model, rows_in_use(self._projector.index)
            for one in NamedRows.of_lines(self._journal.lines()).damaged(self._journal.vectors):
                if one.model != model or one.row not in used:
                    lost[one.model].append(one.row)
            events = [
                VectorsLost(model=name, rows=rows[start : start + MAX_ITEMS], recorded_at=self._now())
                for name, rows in lost.items()
                for start in range(0, len(rows), MAX_ITEMS)
            ]
            self._writer.commit("system", events, actor="system")
        return sum(map(len, lost.values()))

    def reembed(self, embedder: Embedder, *, batch: int = 64, progress: Progress | None = None) -> ReembedResult:
        """Give every memory a vector of another model, and switch to that model.

        If interrupted before the end, the store is unchanged; finished vectors are kept, and the next call with this
        model continues with the rest. Other writers wait for the one commit, not for the model. The old vectors stay.

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
            The embedder makes no vectors, or of another length than a model of its name did before.
        EmbeddingError
            The model does not work, or fails on more than half of the memories; the store keeps its current model.
        """
        check_is_embedder(embedder)
        checked(Callback, progress, "progress")
        batch = _checked_batch(batch)
        model = VectorModel(embedder.name, embedder.dimension)
        lock = ProcessLock(self._journal.home / "reembed.lock", "the change of the store's embedding model")
        with lock.held(self._journal.lock_timeout_s):
            self._projector.catch_up()
            self._check_target(model)
            before = self._writer.embedder
            if self._takes(embedder):
                embedded, reused = self._embed_with(embedder, before, batch, progress), 0
            else:
                file = self._journal.vectors(*model)
                made = MadeVectors(self._journal.database, file, self._journal.named.rows.get(model.name, 0))
                embedded, reused = self._make_missing(embedder, made, batch, progress)
                self._change_model(embedder, made)
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
        """Switch to an embedder at once if the vectors are its model's, or if there are none yet."""
        with self._writer.exclusive():  # under this lock, concurrent writes check their embedder
            if self._journal.named.model not in (None, embedder.name):
                return False
            self._writer.embedder = embedder
            return True

    def _embed_with(self, embedder: Embedder, before: Embedder, batch: int, progress: Progress | None) -> int:
        """Embed what awaits a vector; in a store without vectors, a model that makes none is not adopted."""
        try:
            done = self.embed_awaiting(batch=batch, progress=progress)
            if self._journal.named.model is None and (waiting := self.awaiting_vectors()):
                raise _unfit(embedder, waiting, waiting)
        except EmbeddingError:
            if self._journal.named.model is None:
                self._writer.embedder = before
            raise
        return done

    def _check_target(self, model: VectorModel) -> None:
        if not model.dimension:
            raise InvalidInputError("computes no vectors; choose another model", field="embedder", value=model.name)
        known = self._journal.named.dimension_of(model.name)
        if known not in (None, model.dimension):
            problem = f"computes vectors of {model.dimension} dimensions, but this store has vectors of {known} under that name"
            raise InvalidInputError(f"{problem}; give the model another name", field="embedder", value=model.name)

    def _make_missing(
        self, embedder: Embedder, made: MadeVectors, batch: int, progress: Progress | None
    ) -> tuple[int, int]:
        """Make the missing vectors, in rounds until at most one batch is left; return how many were made, and how many existed before."""
        failed: Texts = set()
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
        self, embedder: Embedder, made: MadeVectors, memory_ids: Sequence[str], failed: Texts, done: int
    ) -> int:
        with self._projector.reading():
            rows = self._projector.rows.memories(memory_ids)
        so_far = f"the store is as it was, and what was embedded ({done} now) lies ready: run it again to continue"
        vectors = _embedded(embedder, rows, so_far)
        texts = [(row["id"], self._journal.hmac_of(row["content"])) for row in rows]
        good = [(text, one) for text, one in zip(texts, vectors, strict=True) if not isinstance(one, EmbeddingError)]
        failed.update(text for text, one in zip(texts, vectors, strict=True) if isinstance(one, EmbeddingError))
        if good:
            made.add([text for text, _ in good], np.stack([vector for _, vector in good]))
        return len(good)

    def _lacking(self, made: MadeVectors, failed: Texts) -> tuple[list[str], int]:
        """Return the memories without a new vector for their text, oldest first, and the number of all memories."""
        found = self._with_made(made)
        return [text[0] for text, one in found if one is None and text not in failed], len(found)

    def _with_made(self, made: MadeVectors) -> list[tuple[tuple[str, str], MadeRow | None]]:
        """Return every memory that is not deleted and the code of its text, with their new vector, oldest first."""
        with self._projector.reading():
            rows = sorted(self._projector.rows.every("Memory"), key=lambda row: row["seq"])
        texts = [(row["id"], self._journal.hmac_of(row["content"])) for row in rows]
        return [(text, made.row(*text)) for text in texts]

    def _change_model(self, embedder: Embedder, made: MadeVectors) -> None:
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
            return self.embed_awaiting(batch=batch)
        except EmbeddingError as error:
            self._writer.notice(f"memories are left without vectors: {error}; run `memgraph embed`")
            return 0


def _checked_batch(batch: object) -> int:
    count: int = checked(Limit, batch, "batch")
    if count < 1:
        raise InvalidInputError("must be an integer of at least 1", field="batch", value=batch)
    return count


def _embedded(embedder: Embedder, rows: Sequence[Row], so_far: str | None) -> list[Vector | EmbeddingError]:
    """Return the vectors of the rows' texts; if the model does not work, the error says what was done before."""
    try:
        return embed_each(embedder, [row["content"] for row in rows])
    except EmbeddingError as error:
        if so_far is None:
            raise
        raise EmbeddingError(f"{error}; {so_far}") from error


def _unfit(embedder: Embedder, failed: int, total: int) -> EmbeddingError:
    return EmbeddingError(
        f"{embedder.name} cannot embed {failed:,} of {total:,} memories, so the store still uses its former model; is this an embedding "
        "model? run `memgraph reembed` with another"
    )
