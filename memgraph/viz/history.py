"""What the journal says happened, when, in one pass: what series and timelines are made of.

Time here is when something happened, not when it was recorded (see `memgraph.fold.moments`), so a history that was read in today
is seen as the history it was; `MemGraph.at` shows the store as of the same moments. A build happened when it was completed, a
recall when it recalled. A memory ceases to be valid when that was known and the time has come.

Of each memory only a few words are kept, so the pass is bounded by the number of memories and links, not by their text, and by
the largest commit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from memgraph.fold.moments import Moments
from memgraph.journal.envelope import Event
from memgraph.model.ids import canonical_name
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.store import AgentMemoryStore
from memgraph.store.bulk import no_collections

_LESSON_TAG = "lesson"
_PAIRED = {"SUPERSEDES": ("superseded", "unsuperseded"), "CONTRADICTS": ("contradicted", "uncontradicted")}


class Change(NamedTuple):
    """Something that was done with a memory: `kind` as in `memgraph.viz.timeline.Timeline.changes`."""

    at: str
    seq: int
    id: str
    kind: str
    other: str | None = None


class Build(NamedTuple):
    """What became of a build."""

    at: str
    outcome: str


@dataclass(slots=True)
class Life:
    """What is kept of a memory.

    Attributes
    ----------
    at : str
        When it came.
    anchor : float
        Of its relevance, when it was added.
    fingerprint : str or None
        Of the failure that it tells of.
    builds : tuple of str
        That told it.
    again : tuple of str
        When it was told again without a build.
    tier, is_suppressed, is_archived, is_deleted : str, bool, bool, bool
        How private it is, and what has become of it at the end.
    sources : set of str
        What it was made of, by any link that was ever made.
    """

    type: str
    at: str
    seq: int
    anchor: float
    project_id: str | None
    outcome: str
    tags: tuple[str, ...]
    builds: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    tier: str = "public"
    fingerprint: str | None = None
    sources: set[str] | None = None
    is_suppressed: bool = False
    is_archived: bool = False
    is_deleted: bool = False
    invalid_at: str | None = None
    invalid_change: int = -1

    @property
    def is_lesson(self) -> bool:
        """Whether it says what is to be learned of a failure."""
        return self.type != "episodic" or _LESSON_TAG in self.tags


@dataclass(slots=True)
class Recall:
    """A retrieval, and what became of it.

    Attributes
    ----------
    returned : int
        Memories.
    is_served : bool
        Whether one of them had been made of others.
    outcome : str or None
        positive, negative, neutral or unknown; None as long as nobody has said.
    """

    at: str
    project_id: str | None
    returned: int
    is_served: bool
    outcome: str | None = None


@dataclass(slots=True)
class History:
    """All that happened.

    Attributes
    ----------
    lives : dict of str to Life
        By id, the deleted ones too.
    uses : dict of str to list of (str, float)
        Of the memories asked for: when each was reinforced, and its relevance anchor after that.
    builds : dict of (str, str) to Build
        By project and name.
    """

    lives: dict[str, Life] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    recalls: dict[str, Recall] = field(default_factory=dict)
    builds: dict[tuple[str, str], Build] = field(default_factory=dict)
    uses: dict[str, list[tuple[str, float]]] = field(default_factory=dict)


def read_history(store: AgentMemoryStore, *, uses_of: Collection[str] = ()) -> History:
    """Return what the journal says happened; costs one pass over it.

    Parameters
    ----------
    uses_of : collection of str
        Ids of the memories of which each use is wanted.
    """
    store.flush()
    reading, moments = _Reading(uses_of), Moments()
    with no_collections():
        for _, events in groupby(store.reader.events_after(0), key=attrgetter("commit_id")):
            commit = list(events)
            for event, at in zip(commit, moments.of(commit), strict=True):
                reading.read(event, at)
    return reading.done()


class _Reading:
    """One pass over the journal. Each method takes note of an event of its kind that happened `at` a time."""

    def __init__(self, uses_of: Collection[str]) -> None:
        self._history = History()
        self._uses_of = frozenset(uses_of)
        self._pairs: set[tuple[str, str, str]] = set()
        """Links that there are, of the relations that replace and contradict."""
        self._cancelled: set[int] = set()
        """Places of changes that were announced for a later time and then taken back."""
        self._readers: dict[str, Callable[[Event, str], None]] = {
            "memory.added": self._added,
            "memory.undeleted": self._undeleted,
            "memory.revised": self._revised,
            "memory.merged": self._revised,
            "memory.deleted": self._deleted,
            "memory.derived": self._derived,
            "memory.linked": self._linked,
            "memory.unlinked": self._unlinked,
            "access.recorded": self._accessed,
            "retrieval.recorded": self._recalled,
            "outcome.recorded": self._judged,
            "build.consolidated": self._consolidated,
        }

    def read(self, event: Event, at: str) -> None:
        """Take note of an event."""
        reader = self._readers.get(event.type)
        if reader is not None:
            reader(event, at)

    def done(self) -> History:
        """Return all."""
        found = self._history
        found.changes = [change for place, change in enumerate(found.changes) if place not in self._cancelled]
        for uses in found.uses.values():
            uses.sort(key=lambda use: use[0])
        return found

    def _added(self, event: Event, at: str) -> None:
        row = event.content["memory"]
        memory_id, lives = row["id"], self._history.lives
        if memory_id in lives:  # it had been deleted
            self._gone(event, at, memory_id, is_deleted=False)
        else:
            lives[memory_id] = Life(
                type=sys.intern(row["type"]),
                at=at,
                seq=event.seq,
                anchor=row.get("relevance_anchor", 1.0),
                project_id=row.get("project_id"),
                outcome=row.get("outcome", "unknown"),
                tags=tuple(dict.fromkeys(sys.intern(canonical_name(tag)) for tag in row.get("tags", ()))),
            )
        self._update(event, at, memory_id, row, ())

    def _undeleted(self, event: Event, at: str) -> None:
        self._gone(event, at, event.content["memory"]["id"], is_deleted=False)

    def _deleted(self, event: Event, at: str) -> None:
        self._gone(event, at, event.content["id"], is_deleted=True)

    def _gone(self, event: Event, at: str, memory_id: str, *, is_deleted: bool) -> None:
        life = self._history.lives.get(memory_id)
        if life is not None and life.is_deleted != is_deleted:
            life.is_deleted = is_deleted
            self._note(event, at, memory_id, "deleted" if is_deleted else "undeleted")

    def _revised(self, event: Event, at: str) -> None:
        memory_id, changed = event.content["id"], event.content.get("changed", {})
        life = self._history.lives.get(memory_id)
        if life is None:
            return
        before = life.builds
        self._update(event, at, memory_id, changed, event.content.get("cleared", ()))
        if event.type == "memory.merged" and life.builds == before and event.actor != "system":
            life.again += (at,)
        if "relevance_anchor" in changed:
            self._used(memory_id, at, changed["relevance_anchor"])

    def _update(
        self, event: Event, at: str, memory_id: str, changed: Mapping[str, Any], cleared: Collection[str]
    ) -> None:
        """Take over what a memory says of itself after an event."""
        life = self._history.lives[memory_id]
        if "build_id" in changed or "evidence_build_ids" in changed:
            named = [changed.get("build_id"), *life.builds[:1], *changed.get("evidence_build_ids", life.builds)]
            life.builds = tuple(dict.fromkeys(sys.intern(build) for build in named if build))
        life.fingerprint = changed.get("failure_fingerprint", life.fingerprint)
        life.outcome = sys.intern(changed.get("outcome", life.outcome))
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
        """Note from when on a memory does not hold, which may be a time to come; what was said of that before is taken back."""
        life = self._history.lives[memory_id]
        if life.invalid_at is not None and life.invalid_at <= at:
            self._note(event, at, memory_id, "revalidated")
        elif life.invalid_at is not None:
            self._cancelled.add(life.invalid_change)
        if invalid_at is not None:
            life.invalid_change = len(self._history.changes)
            self._note(event, max(at, invalid_at), memory_id, "invalidated")
        life.invalid_at = invalid_at

    def _derived(self, event: Event, at: str) -> None:
        self._made_of(event, at, event.content["id"], event.content["source_ids"])

    def _made_of(self, event: Event, at: str, memory_id: str, source_ids: Collection[str]) -> None:
        lives = self._history.lives
        life = lives.get(memory_id)
        if life is None:
            return
        life.sources = set() if life.sources is None else life.sources
        for source_id in source_ids:
            if source_id in lives and source_id not in life.sources:
                life.sources.add(source_id)
                self._note(event, at, source_id, "compressed", memory_id)

    def _linked(self, event: Event, at: str) -> None:
        relation, source, target = _ends(event)
        if relation == "DERIVED_FROM":
            self._made_of(event, at, source, [target])
        elif relation in _PAIRED and (relation, source, target) not in self._pairs:
            self._pairs.add((relation, source, target))
            self._pair(event, at, _PAIRED[relation][0])

    def _unlinked(self, event: Event, at: str) -> None:
        relation, source, target = _ends(event)
        if relation == "DERIVED_FROM":
            life = self._history.lives.get(source)
            if life is not None and life.sources and target in life.sources:
                life.sources.discard(target)
                self._note(event, at, target, "uncompressed", source)
        elif (relation, source, target) in self._pairs:
            self._pairs.discard((relation, source, target))
            self._pair(event, at, _PAIRED[relation][1])

    def _pair(self, event: Event, at: str, kind: str) -> None:
        """Note what a link says: of the older memory, that it is replaced; of the source, that it contradicts the target."""
        relation, source, target = _ends(event)
        one, other = (target, source) if relation == "SUPERSEDES" else (source, target)
        if one in self._history.lives and other in self._history.lives:
            self._note(event, at, one, kind, other)

    def _accessed(self, event: Event, at: str) -> None:  # noqa: ARG002 - each says for itself when it was
        for effect in event.content["accesses"]:
            self._used(effect["id"], effect["last_accessed_at"], effect["relevance_anchor"])

    def _used(self, memory_id: str, at: str, anchor: float) -> None:
        if memory_id in self._uses_of:
            self._history.uses.setdefault(memory_id, []).append((at, anchor))

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
        build = Build(content["completed_at"], sys.intern(content["outcome"]))
        self._history.builds[content["project_id"], sys.intern(content["build_id"])] = build

    def _note(self, event: Event, at: str, memory_id: str, kind: str, other: str | None = None) -> None:
        """Take note of a change; nothing is done with a memory before it came."""
        lives = self._history.lives
        came = (lives[one].at for one in (memory_id, other) if one in lives)
        self._history.changes.append(Change(max(at, *came), event.seq, memory_id, kind, other))


def _ends(event: Event) -> tuple[str, str, str]:
    """Return a link's relation, source and target."""
    return event.content["relation"], event.content["source_id"], event.content["target_id"]
