"""Replays which memories were in force at any time: additions, removals, restorations and replacements in chronological order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from memgraph.fold.history.lives import Change, History

AFTER_ALL = "\x7f"
"""Appended to a time: sorts after it and before every later one."""
_OUT = {"suppressed": 1, "archived": 2, "invalidated": 4, "deleted": 8}
_BACK = {"unsuppressed": 1, "unarchived": 2, "revalidated": 4, "undeleted": 8}
_DELETED = 8


@dataclass(frozen=True)
class State:
    """The memories in force at the end of a bucket.

    Attributes
    ----------
    live : dict of str to int
        Memories in force, by kind.
    covered : int
        Episodes in force from which a memory in force was made.
    derived, sources : int
        Memories in force that were made from others; and the number of their sources, summed over them.
    """

    live: dict[str, int]
    covered: int
    derived: int
    sources: int


class Replay:
    """Replays a history.

    A memory is in force from its addition, as long as it is neither suppressed, archived, invalidated nor deleted, and no memory
    that replaces it, directly or through others, is free of these states.

    Parameters
    ----------
    counts : callable
        Returns, given its id, whether a memory is counted in the states. The others are replayed too, because they may replace it.
    """

    def __init__(self, history: History, counts: Callable[[str], bool]) -> None:
        self._lives = history.lives
        self._counts = counts
        self._births = sorted(history.lives, key=lambda one: (history.lives[one].at, history.lives[one].seq))
        self._changes = sorted(history.changes, key=attrgetter("at", "seq"))
        self._out: dict[str, int] = {}
        """For each added memory, the states that put it out of force."""
        self._newer: dict[str, set[str]] = {}
        self._older: dict[str, set[str]] = {}
        self._leads: dict[str, bool] = {}
        """Whether a memory, or one that replaces it, is visible; then it puts the memories it replaces out of force."""
        self.live: set[str] = set()
        """Memories in force."""
        self.transitions: dict[str, list[str]] = {}
        """For each counted memory: when it came into force, went out of force, came back, …"""
        self._now = ""
        self._made_of: dict[str, set[str]] = {}
        self._made_into: dict[str, set[str]] = {}
        self._covers: Counter[str] = Counter()
        """For each memory, the number of memories in force that were made from it."""
        self._by_kind: Counter[str] = Counter()
        self._covered = self._derived = self._sources = 0

    def states(self, ends: Sequence[str]) -> Iterator[State]:
        """Yield the state immediately before each of these ascending times."""
        births, changes = iter(self._births), iter(self._changes)
        birth, change = next(births, None), next(changes, None)
        for end in ends:
            while birth is not None or change is not None:
                born = self._lives[birth].at if birth is not None else None
                if born is not None and birth is not None and (change is None or born <= change.at):
                    if born >= end:
                        break
                    self._now, self._out[birth] = born, 0
                    self._refresh(birth)
                    birth = next(births, None)
                elif change is not None:
                    if change.at >= end:
                        break
                    self._now = change.at
                    self._apply(change)
                    change = next(changes, None)
            yield State(dict(self._by_kind), self._covered, self._derived, self._sources)

    def _apply(self, change: Change) -> None:
        memory_id, kind, other = change.id, change.kind, change.other or ""
        if kind in _OUT:
            self._set(memory_id, self._out[memory_id] | _OUT[kind])
        elif kind in _BACK:
            self._set(memory_id, self._out[memory_id] & ~_BACK[kind])
        elif kind == "superseded" and other in self._out:
            self._newer.setdefault(memory_id, set()).add(other)
            self._older.setdefault(other, set()).add(memory_id)
            self._refresh(memory_id)
        elif kind == "unsuperseded":
            self._newer.get(memory_id, set()).discard(other)
            self._older.get(other, set()).discard(memory_id)
            self._refresh(memory_id)
        elif kind == "compressed" and other in self._out:
            self._join(other, memory_id)
        elif kind == "uncompressed":
            self._leave(other, memory_id)

    def _set(self, memory_id: str, out: int) -> None:
        was_there, self._out[memory_id] = not self._out[memory_id] & _DELETED, out
        is_there = not out & _DELETED
        if was_there != is_there:  # a link to a deleted memory is removed with it
            for made in self._made_into.get(memory_id, ()):
                if made in self.live and self._counts(made):
                    self._sources += is_there - was_there
        self._refresh(memory_id)

    def _refresh(self, memory_id: str) -> None:
        """Recompute whether a memory, and those that it replaces, are in force."""
        waiting = [memory_id]
        while waiting:
            one = waiting.pop()
            is_seen = self._out[one] == 0
            is_led = any(self._leads.get(newer, False) for newer in self._newer.get(one, ()))
            self._put(one, is_seen and not is_led)
            leads = is_seen or is_led
            if leads != self._leads.get(one):
                self._leads[one] = leads
                waiting += self._older.get(one, ())

    def _put(self, memory_id: str, is_live: bool) -> None:
        """Put a memory into or out of force."""
        if is_live == (memory_id in self.live):
            return
        life, step = self._lives[memory_id], 1 if is_live else -1
        (self.live.add if is_live else self.live.discard)(memory_id)
        sources = self._made_of.get(memory_id, ())
        if self._counts(memory_id):
            self._record_transition(memory_id)
            self._by_kind[life.kind] += step
            self._covered += step * (life.type == "episodic" and self._covers[memory_id] > 0)
            self._derived += step * bool(sources)
            self._sources += step * sum(not self._out[source] & _DELETED for source in sources)
        for source in sources:
            self._cover(source, step)

    def _record_transition(self, memory_id: str) -> None:
        """Record that a memory came into or went out of force; two changes at the same time cancel each other."""
        transitions = self.transitions.setdefault(memory_id, [])
        if transitions and transitions[-1] == self._now:
            transitions.pop()
        else:
            transitions.append(self._now)

    def _join(self, memory_id: str, source: str) -> None:
        """Record that a memory was made from another one."""
        sources = self._made_of.setdefault(memory_id, set())
        sources.add(source)
        self._made_into.setdefault(source, set()).add(memory_id)
        if memory_id in self.live:
            self._count_link(memory_id, source, 1, is_first=len(sources) == 1)

    def _leave(self, memory_id: str, source: str) -> None:
        sources = self._made_of.get(memory_id, set())
        if source in sources:
            sources.discard(source)
            self._made_into[source].discard(memory_id)
            if memory_id in self.live:
                self._count_link(memory_id, source, -1, is_first=not sources)

    def _count_link(self, memory_id: str, source: str, step: int, *, is_first: bool) -> None:
        if self._counts(memory_id):
            self._derived += step * is_first
            self._sources += step * (not self._out[source] & _DELETED)
        self._cover(source, step)

    def _cover(self, source: str, step: int) -> None:
        was_covered = self._covers[source] > 0
        self._covers[source] += step
        life = self._lives[source]
        if source in self.live and life.type == "episodic" and self._counts(source):
            self._covered += (self._covers[source] > 0) - was_covered


def transitions_of(history: History, ids: Collection[str], until: str) -> dict[str, list[str]]:
    """Return when each of these memories came into force, went out of force, and so on, up to and including a time."""
    replay = Replay(history, frozenset(ids).__contains__)
    for _ in replay.states([until + AFTER_ALL]):
        pass
    return {one: replay.transitions.get(one, []) for one in ids}
