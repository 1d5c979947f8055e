"""A journal's history in one pass, for charts, timelines and the page: lives of memories, changes, recalls, builds.

Times are when something happened, not when it was recorded (see `memgraph.fold.event_time`), so a history ingested today keeps
its own times; `MemGraph.at` shows the store as of the same times. A build happened when it was completed, a recall when it was
made. A memory ceases to be valid once that is known and the time has come.

Texts are not kept, only a few strings for each memory, link, change of state, recall and build, so the memory used grows with
their number; one commit at a time is held as a whole.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from memgraph.fold.event_time import Moments
from memgraph.journal.envelope import Event
from memgraph.model.ids import canonical_name
from memgraph.model.memory import OUTCOME_OF_WORD, RECORD_SOURCES, MemoryType
from memgraph.model.results.learning import MADE_BY_SLEEP

KINDS = ("episodic", "generalisation", "procedural", "fact")
"""A generalisation was made from other memories; a fact was stated, such as a rule to remember."""


def type_of(kind: str) -> MemoryType:
    """Return the type of the memories of a kind."""
    return "episodic" if kind == "episodic" else "procedural" if kind == "procedural" else "semantic"


_TRIAL = re.compile(r"(.+)-trial-\d+@[0-9a-f]{8}")
_SITTING = re.compile(r"git-[0-9a-f]{12}")


def task_of_build(build_id: str) -> str | None:
    """Return the name of the task that a build was a trial of, the same for every trial; None if it was no trial."""
    found = _TRIAL.fullmatch(build_id)
    return found[1] if found else None


def is_attempt(build_id: str) -> bool:
    """Return whether a build has an outcome of its own; a sitting of commits has none."""
    return _SITTING.fullmatch(build_id) is None


_FIRST_DAY = date(2000, 1, 1).toordinal()
_MOST_TRIALS = 1_000
_DATE_CHARS = 10
_MIDNIGHT = "T00:00:00.000Z"


def is_undated(at: str) -> bool:
    """Return whether a time or a day represents a trial number: the first moment of one of the first thousand days."""
    return at[_DATE_CHARS:] in ("", _MIDNIGHT) and 0 <= trial_of(at) < _MOST_TRIALS


def trial_of(at: str) -> int:
    """Return the trial number that a time or a day represents."""
    return date.fromisoformat(at[:_DATE_CHARS]).toordinal() - _FIRST_DAY


class Relevance(NamedTuple):
    """A memory's relevance from a time until the next `Relevance`."""

    at: str
    anchor: float
    since: str
    floor: float = 0.0
    is_pinned: bool = False
    is_use: bool = False


class Relevances:
    """Collects the relevance of some memories from events."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._found: dict[str, list[Relevance]] = {}
        self._stated: dict[str, tuple[float, str]] = {}
        """The anchor and its time as in the journal; the time is that of the recording."""

    def note(
        self, memory_id: str, at: str, fields: Mapping[str, Any], *, cleared: Collection[str] = (), is_use: bool = False
    ) -> None:
        """Record changed fields of a memory from a time on, or, if they state an older anchor, from the time that this names."""
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


_LESSON_TAG = "lesson"


class Change(NamedTuple):
    """A change of a memory; `kind` as in `memgraph.viz.page.times.Timeline.changes`."""

    at: str
    seq: int
    id: str
    kind: str
    other: str | None = None


class Build(NamedTuple):
    """A build's outcome, the event that states it, and how many tasks it had: of a sitting, commits."""

    at: str
    outcome: str
    seq: int
    tasks: int = 0


@dataclass(slots=True)
class Life:
    """The history of a memory."""

    type: str
    at: str
    seq: int
    project_id: str | None
    outcome: str
    tags: tuple[str, ...]
    worded_at: str = ""
    builds: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    tier: str = "public"
    fingerprint: str | None = None
    sources: set[str] | None = None
    is_made: bool = False
    is_suppressed: bool = False
    is_archived: bool = False
    is_deleted: bool = False
    invalid_at: str | None = None
    invalid_change: int = -1

    @property
    def kind(self) -> str:
        """The memory's kind: one of `memgraph.fold.history.KINDS`."""
        if self.type != "semantic":
            return self.type
        return "generalisation" if self.is_made else "fact"

    @property
    def is_lesson(self) -> bool:
        """Whether it is a lesson from a failure."""
        return self.type != "episodic" or _LESSON_TAG in self.tags


@dataclass(slots=True)
class Recall:
    """A retrieval and its outcome."""

    at: str
    project_id: str | None
    returned: int
    is_served: bool
    outcome: str | None = None


@dataclass(slots=True)
class History:
    """The history of a store."""

    lives: dict[str, Life] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    recalls: dict[str, Recall] = field(default_factory=dict)
    builds: dict[tuple[str, str], Build] = field(default_factory=dict)
    relevances: dict[str, tuple[Relevance, ...]] = field(default_factory=dict)
    links: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)


AFTER_ALL = "\x7f"
"""Appended to a time: sorts after it and before every later one."""
_OUT = {"suppressed": 1, "archived": 2, "invalidated": 4, "deleted": 8}
_BACK = {"unsuppressed": 1, "unarchived": 2, "revalidated": 4, "undeleted": 8}
_DELETED = 8


@dataclass(frozen=True)
class State:
    """The memories in force at the end of a bucket."""

    live: dict[str, int]
    covered: int
    derived: int
    sources: int


class Replay:
    """Replays a history: a memory is in force while neither it nor any that replaces it, directly or through others, is put out of force."""

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


LINKS = ("SUPERSEDES", "CONTRADICTS", "RELATED_TO", "ELABORATES", "EXAMPLE_OF")
"""Relations for which the creation times of links are collected."""
_OF_A_LIFE = frozenset(
    {"privacy_tier", "is_suppressed", "archived_at", "invalid_at", "failure_fingerprint", "outcome", "tags"}
)
"""Fields that a memory added again does not keep from the deleted memory with the same id."""
_OF_A_RECORD = _OF_A_LIFE | {
    "id",
    "type",
    "project_id",
    "build_id",
    "evidence_build_ids",
    "relevance_anchor",
    "relevance_at",
}
_PAIRED = {"SUPERSEDES": ("superseded", "unsuperseded"), "CONTRADICTS": ("contradicted", "uncontradicted")}


def history_of(events: Iterable[Event], *, details_of: Collection[str] = ()) -> History:
    """Return the history in all events of a journal, given in order, with relevance and links of the memories in `details_of`."""
    reading, moments = _Reading(details_of), Moments()
    for _, same_commit in groupby(events, key=attrgetter("commit_id")):
        commit = list(same_commit)
        for event, at in zip(commit, moments.of(commit), strict=True):
            reading.read(event, at)
    return reading.done()


class _Reading:
    """One pass over the journal. Each method records an event of its kind that happened `at` a time."""

    def __init__(self, details_of: Collection[str]) -> None:
        self._history = History()
        self._details_of = frozenset(details_of)
        self._records: dict[str, dict[str, Any]] = {}
        """What is known of the records that have not become memories."""
        self._relevances = Relevances(self._details_of)
        self._pairs: set[tuple[str, str, str]] = set()
        """Existing links of the relations that replace and contradict."""
        self._links_at: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
        """Links that were created, by either end."""
        self._repeated: tuple[str, list[Life]] = ("", [])
        """A commit, and the memories that it repeats without a new build."""
        self._cancelled: set[int] = set()
        """Positions of changes that were announced for a later time and then revoked."""
        self._readers: dict[str, Callable[[Event, str], None]] = {
            "memory.added": self._added,
            "memory.undeleted": self._undeleted,
            "memory.revised": self._revised,
            "memory.merged": self._revised,
            "memory.deleted": self._deleted,
            "store.reset": self._deleted,
            "memory.derived": lambda event, at: self._made_of(
                event, at, event.content["id"], event.content["source_ids"]
            ),
            "memory.linked": self._linked,
            "memory.unlinked": lambda event, at: self._untie(event, at, *_ends(event)),
            "access.recorded": self._accessed,
            "retrieval.recorded": self._recalled,
            "outcome.recorded": self._judged,
            "build.consolidated": self._consolidated,
        }

    def read(self, event: Event, at: str) -> None:
        """Record an event."""
        reader = self._readers.get(event.type)
        if reader is not None:
            reader(event, at)

    def done(self) -> History:
        """Return the history."""
        found = self._history
        found.changes = [change for place, change in enumerate(found.changes) if place not in self._cancelled]
        found.relevances = self._relevances.by_id()
        return found

    def _added(self, event: Event, at: str) -> None:
        row = event.content["memory"]
        if row.get("source") in RECORD_SOURCES:  # its life as a memory begins when it becomes one
            self._records[row["id"]] = {name: row[name] for name in _OF_A_RECORD & row.keys()}
        else:
            self._begin(event, at, row)

    def _begin(self, event: Event, at: str, row: Mapping[str, Any]) -> None:
        memory_id, lives = row["id"], self._history.lives
        if memory_id in lives:  # a deleted memory's id, perhaps with new content: it has no links yet
            for link in sorted(self._links_at.pop(memory_id, ())):
                self._untie(event, at, *link)
            self._gone(event, at, memory_id, is_deleted=False)
            life = lives[memory_id]
            life.type, life.project_id, life.builds = sys.intern(row["type"]), row.get("project_id"), ()
            life.tags = _tags_of(row)
        else:
            lives[memory_id] = Life(
                type=sys.intern(row["type"]),
                at=at,
                seq=event.seq,
                project_id=row.get("project_id"),
                outcome=row.get("outcome", "unknown"),
                tags=_tags_of(row),
            )
        lives[memory_id].is_made, lives[memory_id].worded_at = row.get("source") in MADE_BY_SLEEP, at
        self._update(event, at, memory_id, row, _OF_A_LIFE - row.keys())
        self._relevances.note(memory_id, at, row)

    def _undeleted(self, event: Event, at: str) -> None:
        memory_id = event.content["memory"]["id"]
        if memory_id not in self._history.lives and memory_id not in self._records:
            self._added(event, at)  # a purge has removed its history
        self._gone(event, at, memory_id, is_deleted=False)

    def _deleted(self, event: Event, at: str) -> None:
        for memory_id in event.payload.removed_ids():
            self._gone(event, at, memory_id, is_deleted=True)

    def _gone(self, event: Event, at: str, memory_id: str, *, is_deleted: bool) -> None:
        life = self._history.lives.get(memory_id)
        if life is not None and life.is_deleted != is_deleted:
            life.is_deleted = is_deleted
            self._note(event, at, memory_id, "deleted" if is_deleted else "undeleted")

    def _revised(self, event: Event, at: str) -> None:
        memory_id, changed = event.content["id"], event.content.get("changed", {})
        if record := self._records.get(memory_id):
            cleared = frozenset(event.content.get("cleared", ()))
            record = {name: value for name, value in (record | changed).items() if name in _OF_A_RECORD - cleared}
            self._records[memory_id] = record
            if "source" not in changed:
                return
            self._begin(event, at, self._records.pop(memory_id))
        life = self._history.lives.get(memory_id)
        if life is None:
            return
        before = life.builds
        if "content" in changed:
            life.worded_at = max(life.worded_at, at)
        self._update(event, at, memory_id, changed, event.content.get("cleared", ()))
        if event.type == "memory.merged" and life.builds == before and event.actor != "system":
            life.again += (at,)
            if self._repeated[0] != event.commit_id:
                self._repeated = (event.commit_id, [])
            self._repeated[1].append(life)
        is_told_again = event.type == "memory.merged"
        self._relevances.note(
            memory_id, max(at, life.at), changed, cleared=event.content.get("cleared", ()), is_use=is_told_again
        )

    def _update(
        self, event: Event, at: str, memory_id: str, changed: Mapping[str, Any], cleared: Collection[str]
    ) -> None:
        """Update a memory's record after an event."""
        life = self._history.lives[memory_id]
        if "build_id" in changed or "evidence_build_ids" in changed:
            named = [changed.get("build_id"), *life.builds[:1], *changed.get("evidence_build_ids", life.builds)]
            life.builds = tuple(dict.fromkeys(sys.intern(build) for build in named if build))
        if "tags" in changed or "tags" in cleared:
            still = frozenset(_tags_of(changed))
            life.tags = tuple(tag for tag in life.tags if tag in still)
        fingerprint = None if "failure_fingerprint" in cleared else life.fingerprint
        life.fingerprint = changed.get("failure_fingerprint", fingerprint)
        life.outcome = sys.intern(changed.get("outcome", "unknown" if "outcome" in cleared else life.outcome))
        life.tier = sys.intern(changed.get("privacy_tier", "public" if "privacy_tier" in cleared else life.tier))
        is_suppressed = changed.get("is_suppressed", "is_suppressed" not in cleared and life.is_suppressed)
        if is_suppressed != life.is_suppressed:
            self._note(event, at, memory_id, "suppressed" if is_suppressed else "unsuppressed")
        is_archived = "archived_at" in changed or ("archived_at" not in cleared and life.is_archived)
        if is_archived != life.is_archived:
            self._note(event, at, memory_id, "archived" if is_archived else "unarchived")
        life.is_suppressed, life.is_archived = is_suppressed, is_archived
        invalid_at = changed.get("invalid_at", None if "invalid_at" in cleared else life.invalid_at)
        if invalid_at != life.invalid_at:
            self._invalidated(event, at, memory_id, invalid_at)

    def _invalidated(self, event: Event, at: str, memory_id: str, invalid_at: str | None) -> None:
        """Record from when a memory is invalid, which may be a future time; revoke an earlier statement of that."""
        life = self._history.lives[memory_id]
        if life.invalid_at is not None and life.invalid_at <= at:
            self._note(event, at, memory_id, "revalidated")
        elif life.invalid_at is not None:
            self._cancelled.add(life.invalid_change)
        if invalid_at is not None:
            life.invalid_change = len(self._history.changes)
            self._note(event, max(at, invalid_at), memory_id, "invalidated")
        life.invalid_at = invalid_at

    def _made_of(self, event: Event, at: str, memory_id: str, source_ids: Collection[str]) -> None:
        lives = self._history.lives
        life = lives.get(memory_id)
        if life is None:
            return
        life.sources = set() if life.sources is None else life.sources
        life.is_made = True
        for source_id in source_ids:
            if source_id in lives and source_id not in life.sources:
                life.sources.add(source_id)
                self._note(event, at, source_id, "compressed", memory_id)

    def _linked(self, event: Event, at: str) -> None:
        relation, source, target = link = _ends(event)
        self._record_link_time(link, at, is_made=True)
        if relation == "DERIVED_FROM":
            self._made_of(event, at, source, [target])
        elif relation in _PAIRED and link not in self._pairs:
            self._pairs.add(link)
            self._pair(event, at, link, _PAIRED[relation][0])

    def _untie(self, event: Event, at: str, relation: str, source: str, target: str) -> None:
        """Record the removal of a link."""
        link = relation, source, target
        self._record_link_time(link, at, is_made=False)
        if relation == "DERIVED_FROM":
            life = self._history.lives.get(source)
            if life is not None and life.sources and target in life.sources:
                life.sources.discard(target)
                self._note(event, at, target, "uncompressed", source)
        elif link in self._pairs:
            self._pairs.discard(link)
            self._pair(event, at, link, _PAIRED[relation][1])

    def _record_link_time(self, link: tuple[str, str, str], at: str, *, is_made: bool) -> None:
        """Record when a link was created or removed."""
        relation, *ends = link
        lives = self._history.lives
        if relation in LINKS and is_made:
            for one in ends:
                self._links_at[one].add(link)
        if relation in LINKS and all(one in self._details_of and one in lives for one in ends):
            turns = self._history.links.setdefault(link, [])
            if is_made == (len(turns) % 2 == 0):
                turns.append(max(at, *(lives[one].at for one in ends), *turns[-1:]))

    def _pair(self, event: Event, at: str, link: tuple[str, str, str], kind: str) -> None:
        """Record a link's meaning: the older memory is replaced, or the source contradicts the target."""
        relation, source, target = link
        one, other = (target, source) if relation == "SUPERSEDES" else (source, target)
        if one in self._history.lives and other in self._history.lives:
            self._note(event, at, one, kind, other)

    def _accessed(self, event: Event, at: str) -> None:  # noqa: ARG002 - each says for itself when it was
        for effect in event.content["accesses"]:
            self._relevances.note(effect["id"], effect["relevance_at"], effect, is_use=True)

    def _recalled(self, event: Event, at: str) -> None:  # noqa: ARG002
        content, lives = event.content, self._history.lives
        returned = [lives.get(item["id"]) for item in content.get("results", ())]
        self._history.recalls[content["query_id"]] = Recall(
            content["retrieved_at"],
            content.get("project_id"),
            len(returned),
            any(life is not None and life.sources for life in returned),
        )

    def _judged(self, event: Event, at: str) -> None:  # noqa: ARG002
        recall = self._history.recalls.get(event.content["query_id"])
        if recall is not None:
            recall.outcome = OUTCOME_OF_WORD.get(event.content["outcome"], "unknown")

    def _consolidated(self, event: Event, at: str) -> None:  # noqa: ARG002
        content = event.content
        commit_id, repeated = self._repeated
        while repeated and commit_id == event.commit_id:  # a build that told it twice
            life = repeated.pop()
            life.again = life.again[:-1]
        build = Build(content["completed_at"], sys.intern(content["outcome"]), event.seq, content["task_count"])
        self._history.builds[content["project_id"], sys.intern(content["build_id"])] = build

    def _note(self, event: Event, at: str, memory_id: str, kind: str, other: str | None = None) -> None:
        """Record a change; changes before a memory was added are ignored."""
        lives = self._history.lives
        came = (lives[one].at for one in (memory_id, other) if one in lives)
        self._history.changes.append(Change(max(at, *came), event.seq, memory_id, kind, other))


def _tags_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sys.intern(canonical_name(tag)) for tag in row.get("tags", ())))


def _ends(event: Event) -> tuple[str, str, str]:
    """Return a link's relation, source and target."""
    return event.content["relation"], event.content["source_id"], event.content["target_id"]
