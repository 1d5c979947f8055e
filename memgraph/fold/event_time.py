"""When each event of a journal happened, as opposed to when it was recorded.

An event's head states when it was recorded and, for a new memory, when the remembered thing happened. Ingesting years of history
in one afternoon also causes merges, links and generalisations, which their heads date to that afternoon. This module gives every
event the time that it would have had if the history had been ingested as it happened:

- a new memory: when the remembered thing happened; if it was distilled from others, no earlier than the latest of these;
- a merge, a move to a renamed file and a restoration by consolidation: the end of the build that caused it;
- an end (invalid, archived), whoever stated it: the stated time. A replacement by the lifecycle or by a build, or by a text that states
  from when it is valid: the latest time of the two memories, and no earlier than that; if the store distilled both, the newer
  restates the same evidence, so the time is when both existed;
- a memory distilled by the store: the time it states, and no earlier than the end of the last build that it names as evidence,
  because it does not include what later builds added to its sources. Its link to a source: when both existed;
- a link, revision, measurement or unlinking by the lifecycle: the latest time of what it depends on, which is the memories at both
  ends, or the memory and its sources;
- another imported link: the time it states;
- everything else (uses, statements by the user, the collection's floors and summaries): when it was recorded.

No event happens after it was recorded, nor before what it depends on: a revision states values that are derived from the previous
ones, so it is no earlier than the last change of the memory's content. The state at any time therefore never includes later facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from memgraph.journal.envelope import Event
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryReembedded,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    VectorsLost,
)
from memgraph.model.events.records import BuildConsolidated, ProcedureMeasured
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.memory import REASONS_OF, Role, fields_with

ALWAYS = ""
"""Earlier than any time. Events about the vectors' model and file get it, because they are not part of the history."""
_OF_THE_VECTOR = fields_with(Role.VECTOR)
_OF_AN_END = frozenset({*REASONS_OF, *chain.from_iterable(REASONS_OF.values()), "updated_at"})
_NOT_CONTENT = fields_with(Role.ASIDE)
_UPKEEP = _NOT_CONTENT - {"archived_at"}
_OF_THE_EVIDENCE = frozenset({"occurred_at", "evidence_build_ids"})
"""Fields by which a distilled memory states up to when it includes its evidence."""


@dataclass(slots=True)
class _MemoryTimes:
    """The times of one memory."""

    came_at: str = ALWAYS
    content_at: str = ALWAYS
    text_at: str = ALWAYS
    changed_at: str = ALWAYS
    valid_at: str = ALWAYS
    has_builds: bool = False
    project: str = ""


class Moments:
    """Computes when events happened. Takes whole commits in order from the journal's first; keeps a few strings per memory."""

    def __init__(self, *, recorded: bool = False) -> None:
        self._recorded = recorded
        self._known: dict[str, _MemoryTimes] = defaultdict(_MemoryTimes)
        self._sources: dict[str, set[str]] = defaultdict(set)
        self._distilled: set[str] = set()
        """Memories that the store distilled from others."""
        self._build_ends: dict[tuple[str, str], str] = {}

    def of(self, events: Sequence[Event]) -> list[str]:
        """Return when each event of a commit happened: ISO 8601, or `ALWAYS`."""
        commit = _Commit(events)
        moments = []
        for place, event in enumerate(events):
            if isinstance(event.payload, MemoryDerived):
                self._sources[event.payload.id].update(event.payload.source_ids)
            moment = min(self._moment(event, commit, place), event.timestamp)
            self._note(event, commit, place, moment)
            moments.append(moment)
        return moments

    def content_at(self, memory_id: str) -> str:
        """Return when a memory's content last changed; `ALWAYS` for an unknown memory."""
        known = self._known.get(memory_id)
        return known.content_at if known else ALWAYS

    def _moment(self, event: Event, commit: _Commit, place: int) -> str:
        payload = event.payload
        if isinstance(payload, EmbeddingSwitched | MemoryReembedded | VectorsLost):
            return ALWAYS
        if isinstance(payload, MemoryRevised) and _changed_fields(event) <= _OF_THE_VECTOR:
            return self.content_at(payload.id)
        if self._recorded:
            return event.timestamp
        if isinstance(payload, MemoryAdded):
            memory, sources = payload.memory, commit.sources[place]
            if event.actor == "system" and sources:
                ended_at = self._ended_at(memory.project_id or "", memory.evidence_build_ids)
                return max(event.occurred_at, ended_at, self.content_at(memory.id), self._text_at(sources))
            return max(event.occurred_at, self._latest([memory.id, *sources]))
        if isinstance(payload, MemoryDerived):
            if event.actor == "system":
                return max(self._known[payload.id].came_at, self._text_at(payload.source_ids))
            return self._latest([payload.id, *payload.source_ids])
        if isinstance(payload, MemoryRevised) and (ended_at := self._stated_end(event)):
            return ended_at
        if isinstance(payload, MemoryMerged | MemoryRevised) and (ended_at := commit.build_ends[place]):
            return max(ended_at, self.content_at(payload.id), self._removed_at(event))
        if event.actor == "system":
            return self._of_lifecycle(event, commit.sources[place])
        if isinstance(payload, MemoryLinked):
            linked = payload.source_id, payload.target_id
            is_dated = commit.has_builds or self._known[payload.source_id].valid_at
            if payload.relation == "SUPERSEDES" and is_dated:
                return self._replaced_at(*linked)
            return max(commit.build_ends[place] or payload.created_at, self._latest(linked))
        return event.occurred_at

    def _of_lifecycle(self, event: Event, new_sources: Collection[str]) -> str:
        """Return the time of an event by the store itself: the latest time of what it depends on."""
        payload = event.payload
        if isinstance(payload, MemoryLinked):
            linked = payload.source_id, payload.target_id
            return self._replaced_at(*linked) if payload.relation == "SUPERSEDES" else self._latest(linked)
        if isinstance(payload, MemoryUnlinked):
            return max(self._known[end].changed_at for end in (payload.source_id, payload.target_id))
        if isinstance(payload, MemoryMerged):
            return self._latest([payload.id, *filter(None, [payload.candidate_id])])
        if isinstance(payload, MemoryRevised) and _changed_fields(event) <= _UPKEEP:
            return event.timestamp
        if isinstance(payload, MemoryRevised | ProcedureMeasured):
            sources = {*self._sources.get(payload.id, ()), *new_sources}
            rests_on = self._latest(sources)
            changed = event.content.get("changed", {})
            if payload.id in self._distilled and not _OF_THE_EVIDENCE.isdisjoint(
                changed
            ):  # it states up to when it includes them
                ended_at = self._ended_at(self._known[payload.id].project, changed.get("evidence_build_ids", ()))
                rests_on = max(changed.get("occurred_at", ALWAYS), ended_at, self._text_at(sources))
            return max(self.content_at(payload.id), rests_on, self._removed_at(event))
        return event.occurred_at

    def _stated_end(self, event: Event) -> str:
        """Return when a memory ended by what a revision states; empty if it states no end, or a user changes the text as well."""
        memory_id, changed = event.content["id"], event.content.get("changed", {})
        ends: list[str] = [changed[name] for name in REASONS_OF if name in changed]
        is_only_that = event.actor == "system" or _changed_fields(event) <= _OF_AN_END
        return max(*ends, self.content_at(memory_id)) if ends and is_only_that else ALWAYS

    def _removed_at(self, event: Event) -> str:
        """Return when the memory that a revision restores was removed; empty if it restores none."""
        is_back = not REASONS_OF.keys().isdisjoint(event.content.get("cleared", ()))
        return self._known[event.content["id"]].changed_at if is_back else ALWAYS

    def _replaced_at(self, newer: str, older: str) -> str:
        is_retold = self._distilled.issuperset((newer, older))
        both = max(self._known[one].came_at for one in (newer, older)) if is_retold else self._latest((newer, older))
        return max(self._known[newer].valid_at, both)

    def _latest(self, memory_ids: Iterable[str]) -> str:
        return max(map(self.content_at, memory_ids), default=ALWAYS)

    def _text_at(self, memory_ids: Iterable[str]) -> str:
        known = (self._known.get(one) for one in memory_ids)
        return max((one.text_at for one in known if one), default=ALWAYS)

    def _ended_at(self, project: str, builds: Iterable[str]) -> str:
        """Return the latest known end of some builds."""
        return max((self._build_ends.get((project, build), ALWAYS) for build in builds), default=ALWAYS)

    def _note(self, event: Event, commit: _Commit, place: int, moment: str) -> None:
        """Record what later events may depend on."""
        payload = event.payload
        if isinstance(payload, BuildConsolidated):
            self._build_ends[payload.project_id, payload.build_id] = payload.completed_at
        elif isinstance(payload, MemoryAdded | MemoryUndeleted):
            memory = payload.memory
            self._changed(memory.id, moment, is_content=True)
            known = self._known[memory.id]
            known.valid_at = memory.valid_at or ALWAYS
            known.has_builds = bool(memory.evidence_build_ids)
            if isinstance(payload, MemoryAdded):
                known.came_at = moment
                if event.actor == "system" and commit.sources[place]:
                    self._distilled.add(memory.id)
                    known.project = memory.project_id or ""
        elif removed := payload.removed_ids():
            for memory_id in removed:
                self._changed(memory_id, moment, is_content=True)
        elif isinstance(payload, MemoryRevised | MemoryMerged):
            fields = _changed_fields(event)
            known = self._known[payload.id]
            known.has_builds |= "evidence_build_ids" in fields
            is_repeated = isinstance(payload, MemoryMerged) and event.actor == "system" and known.has_builds
            is_text = not (is_repeated or commit.build_ends[place])  # a build repeats, moves, ends or restores it
            self._changed(payload.id, moment, is_content=not fields <= _NOT_CONTENT, is_text=is_text)
            if "valid_at" in fields:
                self._known[payload.id].valid_at = event.content["changed"].get("valid_at", ALWAYS)

    def _changed(self, memory_id: str, moment: str, *, is_content: bool, is_text: bool = True) -> None:
        known = self._known[memory_id]
        known.changed_at = max(known.changed_at, moment)
        if is_content:
            known.content_at = max(known.content_at, moment)
        if is_content and is_text:
            known.text_at = max(known.text_at, moment)


class _Commit:
    """Relations between the events of one commit."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.sources: list[tuple[str, ...]] = [()] * len(events)
        self.build_ends = [ALWAYS] * len(events)
        derived: dict[str, tuple[str, ...]] = {}
        ended_at = ALWAYS
        for place in range(len(events) - 1, -1, -1):
            payload = events[place].payload
            if isinstance(payload, MemoryDerived):
                derived[payload.id] = (*payload.source_ids, *derived.get(payload.id, ()))
            elif isinstance(payload, MemoryAdded):
                self.sources[place] = derived.pop(payload.memory.id, ())
            elif isinstance(payload, MemoryRevised):
                self.sources[place] = derived.pop(payload.id, ())
            elif isinstance(payload, ProcedureMeasured):
                self.sources[place] = derived.get(payload.id, ())
            elif isinstance(payload, BuildConsolidated):
                ended_at = payload.completed_at
            self.build_ends[place] = ended_at
        self.has_builds = ended_at != ALWAYS


def _changed_fields(event: Event) -> frozenset[str]:
    """Return the fields that a revision sets or clears."""
    return frozenset([*event.content.get("changed", ()), *event.content.get("cleared", ())])
