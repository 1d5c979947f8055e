"""Repair of vector files: damaged vectors are made again from the texts, and damage to unused rows is recorded as lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError
from memgraph.journal.vectors import DamagedRow, NamedRows, row_sha256
from memgraph.logs import logger_of
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.memories import VectorsLost
from memgraph.model.memory import Vector
from memgraph.model.results.maintenance import VectorRepair
from memgraph.ports import Embedder, Progress, Row
from memgraph.store.commit.vectors import check_model, checked_vector, has_vector, rows_in_use
from memgraph.store.commit.writer import Writer
from memgraph.store.maintenance.awaiting_vectors import AwaitingVectors, checked_batch
from memgraph.store.projection.projector import Projector
from memgraph.store.query import Reader

logger = logger_of(__name__)


@dataclass(slots=True)
class _Healed:
    """Number of memories with a sound vector again, and of those that the model could not embed."""

    restored: int = 0
    replaced: int = 0
    failed: int = 0


class DamageNotice:
    """Notice of damaged vectors, logged once.

    Parameters
    ----------
    is_silent : bool
        Suppresses the notice.
    """

    def __init__(self, *, is_silent: bool = False) -> None:
        self._is_silent = is_silent
        self._is_logged = False

    def of(self, count: int) -> list[str]:
        """Return the notice for a number of damaged vectors."""
        if self._is_silent or not count:
            return []
        if count == 1:
            return ["a vector is damaged or missing, its memory is found by text alone: run `memgraph embed --repair`"]
        many = f"{count:,} vectors are damaged or missing, their memories are found by text alone"
        return [f"{many}: run `memgraph embed --repair`"]

    def log(self, count: int) -> None:
        """Log the notice for a number of damaged vectors, unless it was logged before."""
        for text in self.of(count) if not self._is_logged else ():
            self._is_logged = True
            logger.warning("%s", text)


class DamagedVectors:
    """Finds damaged vectors and restores them.

    If the model still produces the bytes named by an event, the row is restored in place and the journal is unchanged.
    Otherwise (the vector was given, or a new release of the model differs in the last bits) an event gives the memory a
    new row. Damaged rows that no memory uses, from earlier texts, deleted memories and former models, are recorded as
    lost (``vectors.lost``): verification skips them from then on, and a deleted memory that is restored awaits a new
    vector.
    """

    def __init__(
        self,
        awaiting: AwaitingVectors,
        projector: Projector,
        writer: Writer,
        reader: Reader,
        now: Callable[[], str],
        notice: DamageNotice,
    ) -> None:
        self._awaiting = awaiting
        self._projector = projector
        self._journal = projector.journal
        self._writer = writer
        self._reader = reader
        self._now = now
        self._notice = notice

    @property
    def notices(self) -> list[str]:
        """Notices for the user."""
        return self._notice.of(self.damaged_vectors())

    def damaged_vectors(self) -> int:
        """Count the memories whose vector is missing, all zeros or not finite in its file; log a message about them once.

        `verify` detects further kinds of damage.
        """
        count = self._reader.damaged_vectors()
        self._notice.log(count)
        return count

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
        InvalidInputError
            `batch` is below 1.
        EmbeddingError
            Memories have damaged vectors, and there is no model to embed them.
        StorageError
            A vector file exists but cannot be read, or cannot be written.
        KeyMissingError, ReadOnlyError
            The store is read-only.
        """
        batch = checked_batch(batch)
        with self._writer.exclusive():  # raises if the store is read-only
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

    def _affected(self, damaged: Sequence[DamagedRow]) -> list[str]:
        """Return the memories whose vectors these are, in row order."""
        with self._projector.reading():
            used = rows_in_use(self._projector.index)
            model = self._projector.named.model
        return [used[one.row] for one in damaged if one.model == model and one.row in used]

    def _repair_batch(self, memory_ids: Sequence[str], healed: _Healed, total: int) -> None:
        made_by = self._writer.embedder
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
        """Restore vectors in place, or commit new ones, for memories whose text and vector are unchanged meanwhile."""
        back: dict[int, Vector] = {}
        anew: list[tuple[Row, Vector]] = []
        with self._writer.exclusive():
            check_model(self._journal.named, made_by)
            model = self._writer.model
            file = self._journal.vectors(*model)
            for row, vector in zip(rows, vectors, strict=True):
                current = self._projector.rows.get("Memory", row["id"])
                if current is None or not has_vector(current, model.name) or current["content"] != row["content"]:
                    continue
                if file.holds(current["vector_row"], current["vector_sha256"]):
                    continue
                if isinstance(vector, EmbeddingError):
                    healed.failed += 1
                    self._awaiting.name_unembeddable(row, vector)
                elif row_sha256(checked := checked_vector(vector, model)) == current["vector_sha256"]:
                    back[current["vector_row"]] = checked
                else:
                    anew.append((row, checked))
            if back or anew:
                with self._journal.committing():
                    file.restore(back)
                    self._awaiting.commit(anew, made_by)
                file.forget()  # after the commit: nobody makes it of the former rows again
                self._reader.refresh_vectors()  # the file's time stamp may be too coarse to show the change
        healed.restored += len(back)
        healed.replaced += len(anew)

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
