"""When each event of a journal happened: history as it was lived, not as it was written down.

An event's head says when it was recorded, and of a new memory when the thing remembered happened. Years of history that are
ingested in an afternoon lead to merges, links and generalisations, too, which their heads date to that afternoon. Here every
event gets the moment that it would have had if the history had been ingested as it happened:

- a new memory's is when the thing happened; one that was distilled from others came with the latest of these;
- what consolidation merges came with the end of the build that said it again;
- what the lifecycle links, revises, measures or takes apart came with the latest of what that rests on: the memories at both
  ends, or the memory and its sources. A replacement waits for the time from which its text is valid, an end that the
  lifecycle states (invalid, archived) is where it says;
- a link that is imported was made when it says;
- all else, a use, a word of the user's, the collection's floors and summaries, happened when it was recorded.

Nothing happens after it was recorded, nor before what it rests on: a revision states values that follow from the ones before,
so it is no earlier than the last change of what the memory says. So what is known at a moment never tells of a later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memgraph.journal.envelope import Event
from memgraph.model.events import (
    BuildConsolidated,
    EmbeddingSwitched,
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
)
from memgraph.model.procedures import ProcedureMeasured
from memgraph.model.reembedding import MemoryReembedded, VectorsLost

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


@dataclass(slots=True)
class _Known:
    """Of one memory: when what it says last changed, when anything of it did, and from when on it is valid."""

    told_at: str = ALWAYS
    changed_at: str = ALWAYS
    valid_at: str = ALWAYS


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

    def of(self, events: Sequence[Event]) -> list[str]:
        """Return when each event of a commit happened: ISO 8601, or `ALWAYS`."""
        commit = _Commit(events)
        moments = []
        for place, event in enumerate(events):
            if isinstance(event.payload, MemoryDerived):
                self._sources[event.payload.id].update(event.payload.source_ids)
            moment = min(self._moment(event, commit, place), event.timestamp)
            self._note(event, moment)
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
            sources = commit.sources.get(payload.memory.id, ())
            return max(event.occurred_at, self._latest([payload.memory.id, *sources]))
        if isinstance(payload, MemoryDerived):
            return self._latest([payload.id, *payload.source_ids])
        if isinstance(payload, MemoryMerged) and (ended_at := commit.build_ends[place]):
            return max(ended_at, self.told_at(payload.id))
        if event.actor == "system":
            return self._of_lifecycle(event, commit)
        if isinstance(payload, MemoryLinked):
            return max(payload.created_at, self._latest([payload.source_id, payload.target_id]))
        return event.occurred_at

    def _of_lifecycle(self, event: Event, commit: _Commit) -> str:
        """Return when something happened that the store did by itself: with the latest of what it rests on."""
        payload = event.payload
        if isinstance(payload, MemoryLinked):
            begins = self._known[payload.source_id].valid_at if payload.relation == "SUPERSEDES" else ALWAYS
            return max(begins, self._latest([payload.source_id, payload.target_id]))
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
            sources = {*self._sources.get(payload.id, ()), *commit.sources.get(payload.id, ())}
            is_back = not set(_ENDS).isdisjoint(event.content.get("cleared", ()))  # from where it was put before
            return max(self._latest([payload.id, *sources]), self._known[payload.id].changed_at if is_back else ALWAYS)
        return event.occurred_at

    def _latest(self, memory_ids: Iterable[str]) -> str:
        return max(map(self.told_at, memory_ids), default=ALWAYS)

    def _note(self, event: Event, moment: str) -> None:
        """Remember what later events may rest on."""
        payload = event.payload
        if isinstance(payload, MemoryAdded | MemoryUndeleted):
            self._changed(payload.memory.id, moment, is_told=True)
            self._known[payload.memory.id].valid_at = payload.memory.valid_at or ALWAYS
        elif isinstance(payload, MemoryDeleted):
            self._changed(payload.id, moment, is_told=True)
        elif isinstance(payload, MemoryRevised | MemoryMerged):
            told = _told(event)
            self._changed(payload.id, moment, is_told=not told <= _NOT_TOLD)
            if "valid_at" in told:
                self._known[payload.id].valid_at = event.content["changed"].get("valid_at", ALWAYS)

    def _changed(self, memory_id: str, moment: str, *, is_told: bool) -> None:
        known = self._known[memory_id]
        known.changed_at = max(known.changed_at, moment)
        if is_told:
            known.told_at = max(known.told_at, moment)


class _Commit:
    """What events of one commit say of each other.

    Attributes
    ----------
    sources : dict
        From what memories of it were distilled, by their ids.
    build_ends : list of str
        For each event when the build ended that its commit records next; empty after the last one.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.sources: dict[str, list[str]] = defaultdict(list)
        self.build_ends = [ALWAYS] * len(events)
        ended_at = ALWAYS
        for place in range(len(events) - 1, -1, -1):
            payload = events[place].payload
            if isinstance(payload, MemoryDerived):
                self.sources[payload.id].extend(payload.source_ids)
            elif isinstance(payload, BuildConsolidated):
                ended_at = payload.completed_at
            self.build_ends[place] = ended_at


def _told(event: Event) -> frozenset[str]:
    """Return the fields that a revision sets or clears."""
    return frozenset([*event.content.get("changed", ()), *event.content.get("cleared", ())])
