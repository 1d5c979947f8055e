"""The page's temporal data: when memories were added, in force and linked, and how relevant they were.

Times are whole seconds since the first memory or build; nothing is later than the end of the page.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from memgraph.fold.history import LINKS, Change, History, Relevance, transitions_of
from memgraph.model.memory import StoredMemory
from memgraph.model.relevance import ForgettingCurveConfig, decayed
from memgraph.model.timestamps import days_between, from_iso

DAY_S = 86_400
_PATIENCE_S = 30 * DAY_S
"""Changes later than this after the last memory, build or recall are not on the slider, which would be mostly empty time."""
_MOST_POINTS = 120
"""Maximum number of points of a memory's curve; the latest are kept."""
_PINNED = -1
_AT_FIRST = (100, 0, 0)
_WORDS = frozenset(f"{prefix}{word}" for word in ("suppressed", "archived", "deleted") for prefix in ("", "un")) | {
    "invalidated",
    "revalidated",
}
"""Changes that hide or restore a memory."""
_MUTUAL = frozenset({"contradicted", "uncontradicted"})
"""Changes that apply to both memories."""


@dataclass(frozen=True)
class Timeline:
    """One memory over time. Times are UTC, ISO 8601, milliseconds, of when it happened (see `memgraph.fold.history`).

    It was added when what it describes happened; a derived memory, when its latest source happened. Each change has a time, a kind
    (superseded, contradicted, suppressed, archived, invalidated, deleted, compressed: the other one was derived from it, or absorbed it;
    and what undoes each), and the other memory's id if there is one.
    """

    id: str
    added: str
    relevances: tuple[Relevance, ...] = ()
    changes: tuple[tuple[str, str, str | None], ...] = ()


def timelines(history: History, ids: Collection[str]) -> dict[str, Timeline]:
    """Return the timelines by id of these memories, whose details the history has; unknown ids are left out."""
    wanted = frozenset(ids) & history.lives.keys()
    changes: dict[str, list[tuple[str, str, str | None]]] = {one: [] for one in wanted}
    for change in sorted(history.changes, key=attrgetter("at", "seq")):
        for one, other in _ends(change):
            if one in wanted:
                changes[one].append((change.at, change.kind, other))
    return {
        one: Timeline(one, life.at, history.relevances.get(one, ()), tuple(changes[one]))
        for one, life in history.lives.items()
        if one in wanted
    }


def _ends(change: Change) -> list[tuple[str, str | None]]:
    """Return the memories that a change applies to, each with the other one."""
    ends = [(change.id, change.other)]
    if change.kind in _MUTUAL and change.other is not None:
        ends.append((change.other, change.id))
    return ends


@dataclass(frozen=True)
class Times:
    """The times of a page's memories, whose positions in `ids` are their numbers.

    The `turns` are the times at which each came into force, went out of force, and so on. The slider spans `first` to `last` (ISO 8601;
    empty if there is no memory).
    """

    ids: Sequence[str]
    lines: Mapping[str, Timeline]
    turns: Mapping[str, Sequence[str]]
    history: History
    first: str
    last: str

    @property
    def start(self) -> int:
        """The start of the page in seconds since 1970."""
        return _seconds(self.first) if self.first else 0

    def at(self, time: str) -> int:
        """Return a time in the page's unit."""
        return _seconds(time) - self.start

    def lives(self) -> list[list[int]]:
        """Return [number, came into force, went out of force, ...] for each memory that did not simply come and stay."""
        within = ([at for at in self.turns[one] if at <= self.last] for one in self.ids)
        return [
            [place, *map(self.at, times)]
            for place, times in enumerate(within)
            if times != [self.lines[self.ids[place]].added]
        ]

    def worded(self) -> list[list[int]]:
        """Return [number, time] for each memory whose text was changed: the time of its last change."""
        since = [self.history.lives[one].worded_at for one in self.ids]
        return [
            [place, self.at(at)]
            for place, at in enumerate(since)
            if self.lines[self.ids[place]].added < at <= self.last
        ]

    def changes(self) -> list[list[Any]]:
        """Return [number, time, kind] for each change that hid or restored a memory, in order per memory."""
        return [
            [place, self.at(at), kind]
            for place, one in enumerate(self.ids)
            for at, kind, _ in self.lines[one].changes
            if kind in _WORDS and at <= self.last
        ]

    def links(self, number: Mapping[str, int]) -> dict[str, list[int]]:
        """Return each relation's links as a flat list: source, target, time added, time removed or −1."""
        found: dict[str, list[int]] = {}
        for (relation, source, target), turns in sorted(self.history.links.items()):
            if source in number and target in number:
                within = [self.at(at) for at in turns if at <= self.last]
                for made, unmade in zip(within[::2], [*within[1::2], -1], strict=False):
                    found.setdefault(relation, []).extend([number[source], number[target], made, unmade])
        return {relation: found[relation] for relation in LINKS if relation in found}

    def curves(self, memories: Sequence[StoredMemory], curve: ForgettingCurveConfig) -> list[list[int]]:
        """Return of each memory that did not just fade: its number, how many points are left out, and its points.

        A point is a time, the relevance from then on in hundredths, its lower bound (the floor in hundredths, −1 if pinned), and
        whether it was an access.
        """
        found = []
        for place, memory in enumerate(memories):
            known = [one for one in self.lines[self.ids[place]].relevances if one.at <= self.last]
            points = [[self.at(one.at), *_point(one, curve.rate(memory.type))] for one in known]
            if len(points) > 1 or any(tuple(point[1:]) != _AT_FIRST for point in points):
                latest = points[-_MOST_POINTS:]
                found.append([place, len(points) - len(latest), *(value for point in latest for value in point)])
        return found


def _point(one: Relevance, rate: float) -> tuple[int, int, int]:
    value = decayed(one.anchor, days_between(one.since, one.at), rate=rate)
    return round(100 * value), _PINNED if one.is_pinned else round(100 * one.floor), int(one.is_use)


def times_of(
    ids: Sequence[str], lines: Mapping[str, Timeline], history: History, until: str, done: Sequence[str] = ()
) -> Times:
    """Return the times of these memories up to a time, by which all of them had come; `done` are when builds and recalls were."""
    turns = transitions_of(history, ids, until)
    again = (at for one in ids for at in history.lives[one].again if at <= until)
    return Times(ids, lines, turns, history, *_span([lines[one] for one in ids], turns, until, [*done, *again]))


def _span(
    lines: Sequence[Timeline], turns: Mapping[str, Sequence[str]], until: str, done: Sequence[str]
) -> tuple[str, str]:
    """Return the slider's first and last time: of memories, builds, recalls and repeats, and of changes soon after."""
    if not lines:
        return "", ""
    added = [line.added for line in lines]
    first, last = min(*added, *done, added[0]), max(*added, *done, added[0])
    changes = [one.at for line in lines for one in line.relevances] + [
        at for line in lines for at, _, _ in line.changes
    ]
    changes += [at for one in turns.values() for at in one]
    end = max([last, *(at for at in changes if at <= until)])
    latest = _seconds(last) + max(_PATIENCE_S, (_seconds(last) - _seconds(first)) // 4)
    return first, end if _seconds(end) <= latest else last


def _seconds(at: str) -> int:
    return int(from_iso(at).timestamp() // 1)
