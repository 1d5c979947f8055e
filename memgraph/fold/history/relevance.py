"""How relevant memories were at any time: what a curve of each is drawn from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any, NamedTuple


class Relevance(NamedTuple):
    """What a memory's relevance is from a time on, until the next one.

    Attributes
    ----------
    at : str
        From when on.
    anchor : float
        What it fades from.
    since : str
        When it was that; not later than `at`.
    floor : float
        Below which it does not fall.
    is_pinned : bool
        It does not fade at all.
    is_use : bool
        It was used or told again: that is why it changed.
    """

    at: str
    anchor: float
    since: str
    floor: float = 0.0
    is_pinned: bool = False
    is_use: bool = False


class Relevances:
    """Collects the relevance of some memories from what events say of them.

    Parameters
    ----------
    wanted : frozenset of str
        The memories' ids.
    """

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._found: dict[str, list[Relevance]] = {}
        self._stated: dict[str, tuple[float, str]] = {}
        """The anchor and its time as the journal has them; the time is of the recording."""

    def note(
        self, memory_id: str, at: str, told: Mapping[str, Any], *, cleared: Collection[str] = (), is_use: bool = False
    ) -> None:
        """Take note of what fields of a memory say from a time on, if they change how relevant it is.

        An anchor may be older than the event that states it: a use that moves nothing states the one before again, a merger the
        higher one of the two. So it counts from the time that it names, or, of what is read in later, from when that happened.
        """
        if memory_id not in self._wanted:
            return
        known = self._found.setdefault(memory_id, [])
        before = known[-1] if known else Relevance(at, 1.0, at)
        anchor, stated_at = self._stated.get(memory_id, (1.0, at))
        stated = (told.get("relevance_anchor", anchor), told.get("relevance_at", stated_at))
        has_moved = not known or stated != (anchor, stated_at)
        now = Relevance(
            at,
            stated[0] if has_moved else before.anchor,
            min(at, stated[1]) if has_moved else before.since,
            told.get("floor", 0.0 if "floor" in cleared else before.floor),
            told.get("is_pinned", "is_pinned" not in cleared and before.is_pinned),
            is_use and has_moved,
        )
        self._stated[memory_id] = stated
        if not known or now[1:-1] != before[1:-1]:
            known.append(now)

    def by_id(self) -> dict[str, tuple[Relevance, ...]]:
        """Return them, each memory's in the order of time."""
        return {memory_id: tuple(sorted(known, key=attrgetter("at"))) for memory_id, known in self._found.items()}
