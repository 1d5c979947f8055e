"""Upkeep of the graph: when it is compared with what was written, when it is compacted, and how often it was rebuilt.

Stored in ``graph/upkeep.json`` with a code from the store's key. It is advisory: if it is missing, or its code is
wrong, a comparison is due.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from memgraph.disk.files import clear_folder, read_own, write_private
from memgraph.disk.seal import Seal
from memgraph.errors import StorageError
from memgraph.logs import logger_of
from memgraph.model.timestamps import to_iso

logger = logger_of(__name__)

_SHARE = 0.02
"""Maximum share of writing time spent on comparisons."""
_MOST_EVENTS_UNCHECKED = 50_000
"""After this many events the graph is compared in any case."""
_FEWEST_EVENTS = 500
"""Minimum number of individual commits before the graph is compared outside of batches."""
_S_AN_EVENT = 0.004
"""Seconds per individual commit."""
_MOST_S_OF_FIRST = 0.5
"""The first batch of an open store is followed by a comparison if that takes at most this long: about 60,000 memories."""
_LEAST_S = 0.03
"""Fixed seconds of a comparison, whatever the number of rows."""
_ENOUGH_ROWS = 20_000
"""From this many rows on, the fixed part is negligible."""
_BLOATED = 3.0
"""Multiple of its fresh size at which a graph is compacted."""
_EMPTY_BYTES = 24 << 20
_BYTES_A_ROW = 300
"""Size of a fresh graph, measured with Kùzu: 22 MB with 4,900 rows, 53 MB with 124,000. Ladybug takes half of it."""
_MOST_KEPT = 20


@dataclass(slots=True)
class Upkeep:
    """Upkeep data of a graph.

    Attributes
    ----------
    checked_seq : int
        The event up to which the graph was last compared.
    unchecked_s : float
        Seconds that batches have taken since.
    check_s_a_row : float
        Measured seconds of a comparison per row, in a graph of many rows.
    fresh_bytes, fresh_rows : int
        Size and number of folded rows of the graph when it was last rebuilt; 0: never.
    damages : int
        How often the graph deviated from what was written to it.
    rebuilds : list of dict
        The last ones: time and reason.
    """

    checked_seq: int = 0
    unchecked_s: float = 1e9
    check_s_a_row: float = 1e-6
    fresh_bytes: int = 0
    fresh_rows: int = 0
    damages: int = 0
    rebuilds: list[dict[str, str]] = field(default_factory=list)

    def is_check_due(self, *, seq: int, rows: int, is_first: bool) -> bool:
        """Return whether to compare the graph at the end of a batch, the first of an open store or a later one."""
        if seq == self.checked_seq:
            return False
        most_s = max(_SHARE * self.unchecked_s, _MOST_S_OF_FIRST if is_first else 0.0)
        return self._expected_s(rows) <= most_s or seq - self.checked_seq > _MOST_EVENTS_UNCHECKED

    def is_check_due_between(self, *, seq: int, rows: int) -> bool:
        """Return whether to compare the graph after a commit outside of batches."""
        events = seq - self.checked_seq
        is_cheap = self._expected_s(rows) <= _SHARE * _S_AN_EVENT * events
        return events >= _FEWEST_EVENTS and (is_cheap or events > _MOST_EVENTS_UNCHECKED)

    def checked(self, *, seq: int, rows: int, seconds: float) -> None:
        """Record a comparison."""
        self.checked_seq, self.unchecked_s = seq, 0.0
        if rows >= _ENOUGH_ROWS:
            self.check_s_a_row = seconds / rows

    def _expected_s(self, rows: int) -> float:
        return max(_LEAST_S, rows * self.check_s_a_row)

    def rebuilt(self, *, size: int, rows: int) -> None:
        """Record a rebuild."""
        self.fresh_bytes, self.fresh_rows = size, rows

    def damaged(self, why: str, at: str) -> None:
        """Record a deviation of the graph."""
        self.damages += 1
        self.rebuilds = [*self.rebuilds, {"at": at, "why": why}][-_MOST_KEPT:]

    def fresh_size(self, rows: int) -> float:
        """Return the approximate size in bytes of a fresh graph with this many rows."""
        measured = self.fresh_bytes + (rows - self.fresh_rows) * _BYTES_A_ROW if self.fresh_rows else 0
        return max(measured, _EMPTY_BYTES + rows * _BYTES_A_ROW)

    def is_bloated(self, *, size: int, rows: int) -> bool:
        """Return whether the graph is more than three times as large as a fresh one."""
        return size > _BLOATED * self.fresh_size(rows)


class UpkeepFile:
    """The file that holds the upkeep data."""

    def __init__(self, path: Path, seal: Seal) -> None:
        self._path = path
        self._seal = seal

    def note_damage(self, why: str) -> None:
        """Record that the graph deviated from what was written to it, and is being rebuilt."""
        upkeep = self.read()
        upkeep.damaged(why, to_iso(datetime.now(UTC)))
        self.write(upkeep)

    def note_fresh(self, *, size: int, rows: int) -> None:
        """Record that the graph was rebuilt."""
        upkeep = self.read()
        upkeep.rebuilt(size=size, rows=rows)
        self.write(upkeep)

    def read(self) -> Upkeep:
        """Return the stored data, or the defaults for a graph without any."""
        try:
            return Upkeep(**self._seal.unsealed(read_own(self._path)))
        except (OSError, ValueError, TypeError):
            return Upkeep()

    def write(self, upkeep: Upkeep) -> None:
        """Write the data. It only saves time, so a failure is logged."""
        if not self._path.parent.exists():
            return  # an in-memory graph
        try:
            clear_folder(self._path)
            write_private(self._path, self._seal.sealed(asdict(upkeep)))
        except (OSError, StorageError) as error:
            logger.warning("%s", getattr(error, "loggable", error))
