"""When the graph is compared with what was written to it, when it is compacted, and how often it had to be rebuilt.

Kept in ``graph/upkeep.json``, under a code of the store's. It is advisory: where it is missing, or its code
is wrong, a comparison is due.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import clear_folder, read_own, write_private
from memgraph.disk.seal import Seal
from memgraph.errors import StorageError
from memgraph.logs import logger_of
from memgraph.model.timestamps import to_iso

logger = logger_of(__name__)

_SHARE = 0.02
"""At most so much of the time that writing takes goes into comparing."""
_MOST_EVENTS_UNCHECKED = 50_000
"""After so many the graph is compared whatever it takes."""
_FEWEST_EVENTS = 500
"""So many are committed one by one, at least, before the graph is compared between batches."""
_S_AN_EVENT = 0.004
"""What committing one by itself takes."""
_MOST_S_OF_FIRST = 0.5
"""The first batch of an open store is followed by a comparison if that takes no longer: some 60,000 memories."""
_LEAST_S = 0.03
"""What comparing takes however few rows there are."""
_ENOUGH_ROWS = 20_000
"""In so many rows that part does not count."""
_BLOATED = 3.0
"""Times its fresh size: then it is compacted."""
_EMPTY_BYTES = 24 << 20
_BYTES_A_ROW = 300
"""What a fresh graph takes, by measurement on Kùzu: 22 MB with 4,900 rows, 53 MB with 124,000. Ladybug takes half of it."""
_MOST_KEPT = 20


@dataclass(slots=True)
class Upkeep:
    """What is known of a graph's upkeep.

    Attributes
    ----------
    checked_seq : int
        The event up to which the graph was last compared.
    unchecked_s : float
        What batches have taken since, in seconds.
    check_s_a_row : float
        What comparing took, by measurement in a graph of many rows.
    fresh_bytes, fresh_rows : int
        Size of the graph when it was last rebuilt, and rows of the fold then; 0: never.
    damages : int
        How often the graph was not what was written to it.
    rebuilds : list of dict
        The last of them: when, and why.
    """

    checked_seq: int = 0
    unchecked_s: float = 1e9
    check_s_a_row: float = 1e-6
    fresh_bytes: int = 0
    fresh_rows: int = 0
    damages: int = 0
    rebuilds: list[dict[str, str]] = field(default_factory=list)

    def is_check_due(self, *, seq: int, rows: int, is_first: bool) -> bool:
        """Tell whether the graph is to be compared at the end of a batch, the first of an open store or a later one."""
        if seq == self.checked_seq:
            return False
        most_s = max(_SHARE * self.unchecked_s, _MOST_S_OF_FIRST if is_first else 0.0)
        return self._expected_s(rows) <= most_s or seq - self.checked_seq > _MOST_EVENTS_UNCHECKED

    def is_check_due_between(self, *, seq: int, rows: int) -> bool:
        """Tell whether the graph is to be compared after a commit that is part of no batch."""
        events = seq - self.checked_seq
        is_cheap = self._expected_s(rows) <= _SHARE * _S_AN_EVENT * events
        return events >= _FEWEST_EVENTS and (is_cheap or events > _MOST_EVENTS_UNCHECKED)

    def checked(self, *, seq: int, rows: int, seconds: float) -> None:
        """Note a comparison."""
        self.checked_seq, self.unchecked_s = seq, 0.0
        if rows >= _ENOUGH_ROWS:
            self.check_s_a_row = seconds / rows

    def _expected_s(self, rows: int) -> float:
        return max(_LEAST_S, rows * self.check_s_a_row)

    def rebuilt(self, *, size: int, rows: int) -> None:
        """Note that the graph is fresh."""
        self.fresh_bytes, self.fresh_rows = size, rows

    def damaged(self, why: str, at: str) -> None:
        """Note that the graph was not what was written to it."""
        self.damages += 1
        self.rebuilds = [*self.rebuilds, {"at": at, "why": why}][-_MOST_KEPT:]

    def fresh_size(self, rows: int) -> float:
        """Return about how many bytes a fresh graph of so many rows would take."""
        measured = self.fresh_bytes + (rows - self.fresh_rows) * _BYTES_A_ROW if self.fresh_rows else 0
        return max(measured, _EMPTY_BYTES + rows * _BYTES_A_ROW)

    def is_bloated(self, *, size: int, rows: int) -> bool:
        """Tell whether the graph is more than three times as large as it would be if it were made anew."""
        return size > _BLOATED * self.fresh_size(rows)


class UpkeepFile:
    """Where it is kept."""

    def __init__(self, path: Path, seal: Seal) -> None:
        self._path = path
        self._seal = seal

    def note_damage(self, why: str) -> None:
        """Note that the graph was not what was written to it, and is rebuilt now."""
        upkeep = self.read()
        upkeep.damaged(why, to_iso(datetime.now(UTC)))
        self.write(upkeep)

    def note_fresh(self, *, size: int, rows: int) -> None:
        """Note that the graph was made anew."""
        upkeep = self.read()
        upkeep.rebuilt(size=size, rows=rows)
        self.write(upkeep)

    def read(self) -> Upkeep:
        """Return what was kept, or what holds of a graph of which nothing is known."""
        try:
            sealed: Mapping[str, Any] = orjson.loads(read_own(self._path))
            if self._seal.fits(sealed["code"], orjson.dumps(sealed["upkeep"])):
                return Upkeep(**sealed["upkeep"])
        except (OSError, ValueError, TypeError, KeyError):
            pass
        return Upkeep()

    def write(self, upkeep: Upkeep) -> None:
        """Keep it. It only saves time, so a failure is logged."""
        if not self._path.parent.exists():
            return  # a graph that takes no room on the disk
        told = asdict(upkeep)
        try:
            clear_folder(self._path)
            write_private(self._path, orjson.dumps({"upkeep": told, "code": self._seal.code(orjson.dumps(told))}))
        except (OSError, StorageError) as error:
            logger.warning("%s", getattr(error, "loggable", error))
