"""Repairing the vector files: what is damaged is made again from the texts, and what nobody needs is recorded as lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError
from memgraph.journal.journal import Journal
from memgraph.journal.vectors.damage import DamagedRow, NamedRows, holds
from memgraph.journal.vectors.vector_file import row_sha256
from memgraph.logs import logger_of
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.reembedding import VectorsLost
from memgraph.model.memory import Vector
from memgraph.model.results.maintenance import VectorRepair
from memgraph.ports import Embedder, Progress, Row
from memgraph.store.commit.vectors import check_model, checked_vector, has_vector, rows_in_use
from memgraph.store.maintenance.awaiting_vectors import AwaitingVectors, checked_batch
from memgraph.store.query import Reader

logger = logger_of(__name__)


@dataclass(slots=True)
class _Healed:
    """How many memories have a sound vector again, and how many have none that the model could make."""

    restored: int = 0
    replaced: int = 0
    failed: int = 0


class RepairsVectors(AwaitingVectors):
    """The part of a store that finds damaged vectors, tells of them, and makes them again.

    Where the model still makes the bytes that an event named, the row is written back in place: the journal stays as it is. Else
    (the vector was given, or a new release of the model differs in the last bits) the memory gets a new row, by an event. Rows
    that no memory uses, of earlier texts, deleted memories and former models, are recorded as lost (``vectors.lost``): from then
    on verification passes them over, and a deleted memory comes back awaiting a vector.
    """

    _journal: Journal
    _reader: Reader
    _tells_of_damage = True
    _has_told_damage = False

    @property
    def notices(self) -> list[str]:
        """What the user should know."""
        told = super().notices
        if self._tells_of_damage and not self._is_closed and (damaged := self.damaged_vectors()):
            told.append(_notice(damaged))
        return told

    def damaged_vectors(self) -> int:
        """Count the memories whose vector is missing, all zeros or not finite in its file; a log message tells of them once.

        `verify` finds other damage, too.
        """
        self._check_open()
        count = self._reader.damaged_vectors()
        self._tell_damage(count)
        return count

    def repair_vectors(self, *, batch: int = 64, progress: Progress | None = None) -> VectorRepair:
        """Compare every vector with its SHA-256, and make those again that differ or are missing.

        Done batch by batch: interrupted at any moment, what was healed stays and the next call goes on. Other writers wait while
        the journal is read, at the beginning and the end, and for each batch to be written, not for the model. A text that the model fails on stays without a usable vector; a notice names its
        memory. If only rows that no memory uses are damaged, no model is needed.

        Parameters
        ----------
        batch : int
            Texts given to the model at a time.
        progress : Progress, optional
            Told (memories done, memories whose vectors are damaged) after each batch.

        Raises
        ------
        InvalidInputError
            `batch` is below 1.
        EmbeddingError
            There are memories with damaged vectors, and no model to embed them with.
        StorageError
            A vector file is there and cannot be read, or cannot be written.
        KeyMissingError, ReadOnlyError
            The store can only be read.
        """
        self._check_open()
        batch = checked_batch(batch)
        with self._writer.exclusive():  # refused where nothing can be written
            named = NamedRows.of_lines(self._journal.lines())
        damaged = list(named.damaged(self._journal.vectors))
        affected = self._affected(damaged)
        healed = _Healed()
        for start in range(0, len(affected), batch):
            self._repair_batch(affected[start : start + batch], healed, len(affected))
            if progress:
                progress(min(start + batch, len(affected)), len(affected))
        lost = self._record_lost() if damaged else 0
        return VectorRepair(
            checked=len(named),
            damaged=len(damaged),
            restored=healed.restored,
            replaced=healed.replaced,
            lost=lost,
            failed=healed.failed,
        )

    def _tell_damage(self, count: int) -> None:
        """Log once that vectors are damaged."""
        if count and self._tells_of_damage and not self._has_told_damage:
            self._has_told_damage = True
            logger.warning("%s", _notice(count))

    def _affected(self, damaged: Sequence[DamagedRow]) -> list[str]:
        """Return the memories whose vectors these are, in the order of the rows."""
        with self._projector.reading():
            used = rows_in_use(self._projector.index)
            model = self._projector.named.model
        return [used[one.row] for one in damaged if one.model == model and one.row in used]

    def _repair_batch(self, memory_ids: Sequence[str], healed: _Healed, total: int) -> None:
        made_by = self.embedder
        with self._projector.reading():
            check_model(self._projector.named, made_by)
            rows = self._projector.rows.memories(memory_ids)
        try:
            vectors = embed_each(made_by, [row["content"] for row in rows])
        except EmbeddingError as error:
            if not (done := healed.restored + healed.replaced):
                raise
            raise EmbeddingError(
                f"{error}; {done} of {total} were repaired before that; run it again to continue"
            ) from error
        self._heal(rows, vectors, made_by, healed)

    def _heal(
        self, rows: Sequence[Row], vectors: Sequence[Vector | EmbeddingError], made_by: Embedder, healed: _Healed
    ) -> None:
        """Write vectors back, or commit new ones, for those memories whose text and vector are still what they were."""
        back: dict[int, Vector] = {}
        anew: list[tuple[Row, Vector]] = []
        with self._writer.exclusive():
            check_model(self._journal.named, made_by)
            model = self.vector_model
            file = self._journal.vectors(*model)
            for row, vector in zip(rows, vectors, strict=True):
                current = self._projector.rows.get("Memory", row["id"])
                if current is None or not has_vector(current, model.name) or current["content"] != row["content"]:
                    continue
                if holds(file, current["vector_row"], current["vector_sha256"]):
                    continue
                if isinstance(vector, EmbeddingError):
                    healed.failed += 1
                    self._name_unembeddable(row, vector)
                elif row_sha256(checked := checked_vector(vector, model)) == current["vector_sha256"]:
                    back[current["vector_row"]] = checked
                else:
                    anew.append((row, checked))
            if back or anew:
                file.restore(back, row_count=self._journal.named.rows[model.name])
                self._commit_vectors(anew, made_by)
                self._reader.look_at_vectors_again()  # the file's time may be too coarse to show it
        healed.restored += len(back)
        healed.replaced += len(anew)

    def _record_lost(self) -> int:
        """Commit which rows are damaged still and no memory uses; return how many."""
        lost: dict[str, list[int]] = defaultdict(list)
        with self._writer.exclusive():
            model, used = self._journal.named.model, rows_in_use(self._projector.index)
            for one in NamedRows.of_lines(self._journal.lines()).damaged(self._journal.vectors):
                if one.model != model or one.row not in used:
                    lost[one.model].append(one.row)
            if model in lost:  # else the next write would find the file too short
                self._journal.vectors(*self.vector_model).restore({}, row_count=self._journal.named.rows[model])
            events = [
                VectorsLost(model=name, rows=rows[start : start + MAX_ITEMS], recorded_at=self.now())
                for name, rows in lost.items()
                for start in range(0, len(rows), MAX_ITEMS)
            ]
            self._writer.commit("system", events, actor="system")
        return sum(map(len, lost.values()))


def _notice(count: int) -> str:
    if count == 1:
        return "a vector is damaged or missing, its memory is found by text alone: run `memgraph embed --repair`"
    return f"{count:,} vectors are damaged or missing, their memories are found by text alone: run `memgraph embed --repair`"
