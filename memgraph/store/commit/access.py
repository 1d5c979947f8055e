"""Access records: visible in the process at once, durable shortly afterwards.

They are pending until the next commit, for at most a second, or until the store is closed; a kill loses that second at
most. Pending records are *uses*, not their effects: the effects are absolute values, computed from the row under the
writer lock, so uses from several threads and processes add up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memgraph.errors import ClosedError, DiskFullError, MemGraphError, ReadOnlyError, StorageError
from memgraph.index.index import Index
from memgraph.logs import logger_of
from memgraph.model.base import MAX_COUNT
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessRecorded
from memgraph.model.relevance import ForgettingCurveConfig, decayed
from memgraph.model.timestamps import days_between
from memgraph.ports import Row

logger = logger_of(__name__)

FLUSH_AFTER_S = 1.0
_BOOST_EVERY_DAYS = 1.0

Rows = Callable[[Iterable[str]], list[Row]]


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a memory. Each is counted; a use by retrieval reinforces at most once a day."""

    memory_id: str
    at: str
    by_retrieval: bool = False


class Mark(NamedTuple):
    """A position in the pending uses: the event that the rows include, how often uses were forgotten, and the number of uses added since."""

    seq: int
    forgotten: int
    used: int


class Taken(NamedTuple):
    """The events to commit for pending uses, the rows that they were computed from, and how many uses and other events they are made of."""

    payloads: list[Payload]
    rows: list[Row]
    used: int
    others: int


class PendingAccess:
    """Uncommitted uses, and the retrievals that caused them. Not thread-safe: the owner locks."""

    def __init__(self, flush: Callable[[], None], curve: ForgettingCurveConfig, seq: Callable[[], int]) -> None:
        self._flush = flush
        self._curve = curve
        self._seq = seq
        self._uses: dict[str, list[Use]] = {}
        self._others: list[Payload] = []
        self._in_order: list[Use] = []
        self._taken: Taken | None = None
        self._forgotten = 0
        self._timer: threading.Timer | None = None
        self._is_told = False

    def __bool__(self) -> bool:
        return bool(self._uses or self._others)

    def add(self, uses: Iterable[Use] = (), payload: Payload | None = None) -> None:
        """Add uses, and the event that describes them."""
        for use in uses:
            self._uses.setdefault(use.memory_id, []).append(use)
            self._in_order.append(use)
        if payload is not None:
            self._others.append(payload)
        self._start_timer()

    def touch(self, index: Index, rows: Rows, since: Mark | None) -> Mark:
        """Put the uses into an index that has the rows, and all uses up to a mark if one is given; return the mark that it has reached."""
        mark = Mark(self._seq(), self._forgotten, len(self._in_order))
        used: Iterable[str] = self._uses
        if since is not None and since[:2] == mark[:2]:
            used = {use.memory_id for use in self._in_order[since.used :]}
        for row in rows(used):
            index.touch(self.over(row))
        return mark

    def over(self, row: Row) -> Row:
        """Return a row with its pending uses applied."""
        uses = self._uses.get(row["id"])
        return {**row, **_effect(row, uses, self._curve)} if uses else row

    def taken(self, rows: Rows) -> Taken:
        """Return the events to commit, computed from the rows under the writer lock. The uses stay until `forget`; those of deleted memories have no effect."""
        read = rows(self._uses)
        effects = [_effect(row, self._uses[row["id"]], self._curve) for row in read]
        payloads = [*self._others, *([AccessRecorded.parse({"accesses": effects})] if effects else [])]
        self._taken = Taken(payloads, read, len(self._in_order), len(self._others))
        return self._taken

    def forget(self, taken: Taken) -> None:
        """Forget the uses whose events the rows include from now on. Idempotent."""
        if self._taken is not taken:
            return
        self._taken, self._forgotten = None, self._forgotten + 1
        later, self._uses, self._in_order = self._in_order[taken.used :], {}, []
        del self._others[: taken.others]
        self.stop()
        if later or self._others:
            self.add(later)

    def settle(self) -> None:
        """Commit the pending uses; if the system refuses, they stay pending, which is logged once."""
        try:
            self._flush()
        except (StorageError, DiskFullError, ReadOnlyError) as error:
            self.skip(error.loggable)
        else:
            self._is_told = False

    def skip(self, why: str) -> None:
        """Log that uses are not recorded: once until recording works again."""
        if not self._is_told:
            logger.warning("accesses to memories are not recorded: %s", why)
        self._is_told = True

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(FLUSH_AFTER_S, self._on_time)
            self._timer.daemon = True
            self._timer.start()

    def _on_time(self) -> None:
        self._timer = None
        try:
            self.settle()
        except ClosedError:  # whoever closed it has committed them
            return
        except MemGraphError as error:
            logger.warning("access records could not be written and are kept for later: %s", error.loggable)
        if self:
            self._start_timer()


def _effect(row: Row, uses: Sequence[Use], curve: ForgettingCurveConfig) -> Row:
    count, last = row.get("access_count", 0), row.get("last_accessed_at")
    anchor, anchored_at = row["relevance_anchor"], row["relevance_at"]
    for use in uses:
        if not (use.by_retrieval and last is not None and days_between(anchored_at, use.at) < _BOOST_EVERY_DAYS):
            now = decayed(
                anchor,
                days_between(anchored_at, use.at),
                rate=curve.rate(row["type"]),
                is_pinned=row.get("is_pinned", False),
                floor=row.get("floor", 0.0),
            )
            anchor, anchored_at = min(now + curve.reinforcement_boost, curve.max_relevance), use.at
        count, last = count + 1, use.at
    return {
        "id": row["id"],
        "access_count": min(count, MAX_COUNT),
        "last_accessed_at": last or anchored_at,
        "relevance_anchor": anchor,
        "relevance_at": anchored_at,
    }
