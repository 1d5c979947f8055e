"""The relevance of memories over time, from which their curves are drawn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any, NamedTuple


class Relevance(NamedTuple):
    """A memory's relevance from a time until the next `Relevance`.

    Attributes
    ----------
    at : str
        Start of the interval.
    anchor : float
        Relevance from which it fades.
    since : str
        Time of the anchor; not later than `at`.
    floor : float
        Lower bound.
    is_pinned : bool
        The memory does not fade.
    is_use : bool
        The change is due to a use or a repetition.
    """

    at: str
    anchor: float
    since: str
    floor: float = 0.0
    is_pinned: bool = False
    is_use: bool = False


class Relevances:
    """Collects the relevance of some memories from events.

    Parameters
    ----------
    wanted : frozenset of str
        The memories' ids.
    """

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._found: dict[str, list[Relevance]] = {}
        self._stated: dict[str, tuple[float, str]] = {}
        """The anchor and its time as in the journal; the time is that of the recording."""

    def note(
        self, memory_id: str, at: str, fields: Mapping[str, Any], *, cleared: Collection[str] = (), is_use: bool = False
    ) -> None:
        """Record changed fields of a memory from a time on, if they affect its relevance.

        An anchor may be older than the event that states it: a use that changes nothing repeats the previous one, a merge states
        the higher of two. So it counts from the time it names or, for history ingested later, from when that happened.
        """
        if memory_id not in self._wanted:
            return
        known = self._found.setdefault(memory_id, [])
        before = known[-1] if known else Relevance(at, 1.0, at)
        anchor, stated_at = self._stated.get(memory_id, (1.0, at))
        stated = (fields.get("relevance_anchor", anchor), fields.get("relevance_at", stated_at))
        has_moved = not known or stated != (anchor, stated_at)
        now = Relevance(
            at,
            stated[0] if has_moved else before.anchor,
            min(at, stated[1]) if has_moved else before.since,
            fields.get("floor", 0.0 if "floor" in cleared else before.floor),
            fields.get("is_pinned", "is_pinned" not in cleared and before.is_pinned),
            is_use and has_moved,
        )
        self._stated[memory_id] = stated
        if not known or now[1:-1] != before[1:-1]:
            known.append(now)

    def by_id(self) -> dict[str, tuple[Relevance, ...]]:
        """Return the collected values, each memory's in chronological order."""
        return {memory_id: tuple(sorted(known, key=attrgetter("at"))) for memory_id, known in self._found.items()}
