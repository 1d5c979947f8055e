"""When each event of a journal happened: history as it was lived, not as it was written down.

An event's head says when it was recorded, and of a new memory when the thing remembered happened. Years of history that are
ingested in an afternoon lead to merges, links and generalisations, too, which their heads date to that afternoon. Here every
event gets the moment that it would have had if the history had been ingested as it happened:

- a new memory's is when the thing happened; one that was distilled from others came with the latest of these;
- what consolidation merges came with the end of the build that said it again;
- what the store itself distilled came when it says, and with the end of the last build that it names as evidence: what later
  builds added to its sources it does not tell yet. It is linked with each source from when both were there;
- what the lifecycle links, revises, measures or takes apart came with the latest of what that rests on: the memories at both
  ends, or the memory and its sources. A replacement waits for the time from which its text is valid; where both were distilled
  by the store it tells the same evidence anew, so it counts from when both had come. An end that the lifecycle states (invalid,
  archived) is where it says;
- a link that is imported was made when it says;
- all else, a use, a word of the user's, the collection's floors and summaries, happened when it was recorded.

Nothing happens after it was recorded, nor before what it rests on: a revision states values that follow from the ones before,
so it is no earlier than the last change of what the memory says. So what is known at a moment never tells of a later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memgraph.journal.envelope import Event
from memgraph.model.events.intake import BuildConsolidated
from memgraph.model.events.lifecycle import ProcedureMeasured
from memgraph.model.events.links import MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryMerged, MemoryRevised, MemoryUndeleted
from memgraph.model.events.reembedding import MemoryReembedded, VectorsLost
from memgraph.model.events.store import EmbeddingSwitched

ALWAYS = ""
"""Before every moment: which model makes the vectors, and what became of their file, is not of the history."""
_OF_THE_VECTOR = frozenset({"embedded_at", "embedding_model"})
_ENDS = ("invalid_at", "archived_at")
_NOT_TOLD = _OF_THE_VECTOR | {
    "relevance_anchor", "relevance_at", "floor", "is_pinned", "is_suppressed", "archived_at", "archive_reason",
    "archive_summary", "updated_at",
}  # fmt: skip
"""Fields that change nothing of what a memory says: what follows from its text does not rest on them."""
_UPKEEP = _NOT_TOLD - {"archived_at"}
_OF_THE_EVIDENCE = frozenset({"occurred_at", "evidence_build_ids"})
"""Fields by which what the store distilled says up to when it tells of its evidence."""


@dataclass(slots=True)
class _Known:
    """What is known of one memory.

    Attributes
    ----------
    came_at : str
        When it was added.
    told_at : str
        When what it says last changed.
    worded_at : str
        The same, without what builds said that told it again: these are named as its evidence.
    changed_at : str
        When anything of it last changed.
    valid_at : str
        From when on it is valid.
    has_builds : bool
        Whether builds told it.
    project : str
        That of a memory which the store distilled.
    """

    came_at: str = ALWAYS
    told_at: str = ALWAYS
    worded_at: str = ALWAYS
    changed_at: str = ALWAYS
    valid_at: str = ALWAYS
    has_builds: bool = False
    project: str = ""


class Moments:
    """Tells when events happened. To be given whole commits, from a journal's first one on; keeps a few words a memory.

    Parameters
    ----------
    recorded : bool
        Of each event rather when it was recorded.
    """

    def __init__(self, *, recorded: bool = False) -> None:
        self._recorded = recorded
        self._known: dict[str, _Known] = defaultdict(_Known)
        self._sources: dict[str, set[str]] = defaultdict(set)
        self._distilled: set[str] = set()
        """What the store itself made of other memories."""
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

    def told_at(self, memory_id: str) -> str:
        """Return when what a memory says last changed; `ALWAYS` for one that nobody knows."""
        known = self._known.get(memory_id)
        return known.told_at if known else ALWAYS

    def _moment(self, event: Event, commit: _Commit, place: int) -> str:
        payload = event.payload
        if isinstance(payload, EmbeddingSwitched | MemoryReembedded | VectorsLost):
            return ALWAYS
        if isinstance(payload, MemoryRevised) and _told(event) <= _OF_THE_VECTOR:
            return self.told_at(payload.id)
        if self._recorded:
            return event.timestamp
        if isinstance(payload, MemoryAdded):
            memory, sources = payload.memory, commit.sources[place]
            if event.actor == "system" and sources:
                ended_at = self._ended_at(memory.project_id or "", memory.evidence_build_ids)
                return max(event.occurred_at, ended_at, self.told_at(memory.id), self._worded_at(sources))
            return max(event.occurred_at, self._latest([memory.id, *sources]))
        if isinstance(payload, MemoryDerived):
            if event.actor == "system":
                return max(self._known[payload.id].came_at, self._worded_at(payload.source_ids))
            return self._latest([payload.id, *payload.source_ids])
        if isinstance(payload, MemoryMerged) and (ended_at := commit.build_ends[place]):
            return max(ended_at, self.told_at(payload.id))
        if event.actor == "system":
            return self._of_lifecycle(event, commit.sources[place])
        if isinstance(payload, MemoryLinked):
            return max(payload.created_at, self._latest([payload.source_id, payload.target_id]))
        return event.occurred_at

    def _of_lifecycle(self, event: Event, new_sources: Collection[str]) -> str:
        """Return when something happened that the store did by itself: with the latest of what it rests on."""
        payload = event.payload
        if isinstance(payload, MemoryLinked):
            linked = payload.source_id, payload.target_id
            if payload.relation != "SUPERSEDES":
                return self._latest(linked)
            is_retold = self._distilled.issuperset(linked)
            both = max(self._known[one].came_at for one in linked) if is_retold else self._latest(linked)
            return max(self._known[payload.source_id].valid_at, both)
        if isinstance(payload, MemoryUnlinked):
            return max(self._known[end].changed_at for end in (payload.source_id, payload.target_id))
        if isinstance(payload, MemoryMerged):
            return self._latest([payload.id, *filter(None, [payload.candidate_id])])
        if isinstance(payload, MemoryRevised):
            changed = event.content.get("changed", {})
            ends: list[str] = [changed[name] for name in _ENDS if name in changed]
            if ends:
                return max(*ends, self.told_at(payload.id))
            if _told(event) <= _UPKEEP:
                return event.timestamp
        if isinstance(payload, MemoryRevised | ProcedureMeasured):
            sources = {*self._sources.get(payload.id, ()), *new_sources}
            is_back = not set(_ENDS).isdisjoint(event.content.get("cleared", ()))  # from where it was put before
            rests_on = self._latest(sources)
            if payload.id in self._distilled and not _OF_THE_EVIDENCE.isdisjoint(event.content.get("changed", ())):
                rests_on = max(self._up_to(payload.id, event.content["changed"]), self._worded_at(sources))
            back_at = self._known[payload.id].changed_at if is_back else ALWAYS
            return max(self.told_at(payload.id), rests_on, back_at)
        return event.occurred_at

    def _latest(self, memory_ids: Iterable[str]) -> str:
        return max(map(self.told_at, memory_ids), default=ALWAYS)

    def _worded_at(self, memory_ids: Iterable[str]) -> str:
        known = (self._known.get(one) for one in memory_ids)
        return max((one.worded_at for one in known if one), default=ALWAYS)

    def _ended_at(self, project: str, builds: Iterable[str]) -> str:
        """Return when the last of some builds ended, of those that are known to have."""
        return max((self._build_ends.get((project, build), ALWAYS) for build in builds), default=ALWAYS)

    def _up_to(self, memory_id: str, changed: Mapping[str, Any]) -> str:
        """Return up to when what the store distilled tells of its evidence, as a revision says."""
        ended_at = self._ended_at(self._known[memory_id].project, changed.get("evidence_build_ids", ()))
        occurred_at: str = changed.get("occurred_at", ALWAYS)
        return max(occurred_at, ended_at)

    def _note(self, event: Event, commit: _Commit, place: int, moment: str) -> None:
        """Remember what later events may rest on."""
        payload = event.payload
        if isinstance(payload, BuildConsolidated):
            self._build_ends[payload.project_id, payload.build_id] = payload.completed_at
        elif isinstance(payload, MemoryAdded | MemoryUndeleted):
            memory = payload.memory
            self._changed(memory.id, moment, is_told=True)
            known = self._known[memory.id]
            known.valid_at = memory.valid_at or ALWAYS
            known.has_builds = bool(memory.evidence_build_ids)
            if isinstance(payload, MemoryAdded):
                known.came_at = moment
                if event.actor == "system" and commit.sources[place]:
                    self._distilled.add(memory.id)
                    known.project = memory.project_id or ""
        elif isinstance(payload, MemoryDeleted):
            self._changed(payload.id, moment, is_told=True)
        elif isinstance(payload, MemoryRevised | MemoryMerged):
            told = _told(event)
            known = self._known[payload.id]
            known.has_builds |= "evidence_build_ids" in told
            is_by_build = bool(commit.build_ends[place]) or (event.actor == "system" and known.has_builds)
            is_worded = not isinstance(payload, MemoryMerged) or not is_by_build
            self._changed(payload.id, moment, is_told=not told <= _NOT_TOLD, is_worded=is_worded)
            if "valid_at" in told:
                self._known[payload.id].valid_at = event.content["changed"].get("valid_at", ALWAYS)

    def _changed(self, memory_id: str, moment: str, *, is_told: bool, is_worded: bool = True) -> None:
        known = self._known[memory_id]
        known.changed_at = max(known.changed_at, moment)
        if is_told:
            known.told_at = max(known.told_at, moment)
        if is_told and is_worded:
            known.worded_at = max(known.worded_at, moment)


class _Commit:
    """What events of one commit say of each other.

    Attributes
    ----------
    sources : list of tuple of str
        For each event that tells a memory, from what others it is distilled: those of the derivations behind it, up to the next
        event that tells it.
    build_ends : list of str
        For each event when the build ended that its commit records next; empty after the last one.
    """

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


def _told(event: Event) -> frozenset[str]:
    """Return the fields that a revision sets or clears."""
    return frozenset([*event.content.get("changed", ()), *event.content.get("cleared", ())])
