"""Reads a journal's history in one pass, for series and timelines.

Times are when something happened, not when it was recorded (see `memgraph.fold.event_time`), so a history ingested today keeps
its own times; `MemGraph.at` shows the store as of the same times. A build happened when it was completed, a recall when it was
made. A memory ceases to be valid once that is known and the time has come.

Texts are not kept, only a few strings for each memory, link, change of state, recall and build, so the memory used grows with
their number; one commit at a time is held as a whole.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any

from memgraph.fold.event_time import Moments
from memgraph.fold.history.lives import Build, Change, History, Life, Recall
from memgraph.fold.history.relevance import Relevances
from memgraph.journal.envelope import Event
from memgraph.model.ids import canonical_name
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.model.results.learning import MADE_BY_SLEEP

LINKS = ("SUPERSEDES", "CONTRADICTS", "RELATED_TO", "ELABORATES", "EXAMPLE_OF")
"""Relations for which the creation times of links are collected."""
_OF_A_LIFE = frozenset(
    {"privacy_tier", "is_suppressed", "archived_at", "invalid_at", "failure_fingerprint", "outcome", "tags"}
)
"""Fields that a memory added again does not keep from the deleted memory with the same id."""
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
        if memory_id not in self._history.lives:
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
        build = Build(content["completed_at"], sys.intern(content["outcome"]), event.seq)
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
