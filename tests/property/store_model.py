"""What a store should hold, kept in dictionaries: the model that the state machine compares a store with."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from math import exp, log
from typing import Any

from memgraph.model.memory import AgentMemory, parse_memory

RATES = {"episodic": 0.05, "semantic": -log(0.95) / 7, "procedural": -log(0.95) / 7}
BOOST = 0.2
REASONS = {"archived_at": ("archive_reason", "archive_summary"), "invalid_at": ("invalidation_reason",)}
_COMPUTED = {"relevance_score", "supporting_memory_ids", "embedding"}

Fields = dict[str, Any]
LinkKey = tuple[str, str, str]


def days_between(earlier: str, later: str) -> float:
    passed = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    return max(0.0, passed.total_seconds() / 86_400)


def relevance(fields: Fields, now: str) -> float:
    if fields["is_pinned"]:
        return 1.0
    days = days_between(fields["relevance_at"], now)
    return max(fields["floor"], fields["relevance_anchor"] * exp(-RATES[fields["type"]] * days))


def chain_of(fields: Fields) -> tuple[str, str | None, str | None] | None:
    """Name the run of episodes that a memory belongs to."""
    if fields["type"] != "episodic":
        return None
    if fields["session_id"]:
        return "session", fields["session_id"], fields["project_id"]
    return ("project", None, fields["project_id"]) if fields["project_id"] else None


@dataclass
class Pending:
    """Uses and retrievals that one store object has noted and not yet committed."""

    uses: list[tuple[str, str, bool]] = field(default_factory=list)
    recalls: list[tuple[str, list[str]]] = field(default_factory=list)

    def over(self, fields: Fields) -> Fields:
        """Return a memory's fields with what is pending for it."""
        seen = dict(fields)
        for memory_id, at, by_retrieval in self.uses:
            if memory_id != fields["id"]:
                continue
            last = seen["last_accessed_at"]
            if not (by_retrieval and last is not None and days_between(last, at) < 1):
                seen |= {"relevance_anchor": min(1.0, relevance(seen, at) + BOOST), "relevance_at": at}
            seen |= {"access_count": seen["access_count"] + 1, "last_accessed_at": at}
        return seen


class StoreModel:
    """Memories, links, predecessors and retrievals of a store.

    Attributes
    ----------
    memories : dict of str to dict
        Every field but the computed ones, of those that are there.
    gone : dict of str to dict
        The same of those that were deleted.
    last_at : str
        When the last event was recorded: no later one is dated before it.
    """

    def __init__(self) -> None:
        self.memories: dict[str, Fields] = {}
        self.gone: dict[str, Fields] = {}
        self.place_of: dict[str, int] = {}
        self.named_before: dict[str, str | None] = {}
        """What each memory followed when it was added, that of deleted ones too: so one that is back finds its place."""
        self.ever_linked: dict[str, dict[LinkKey, tuple[float | None, str | None]]] = {}
        self.ever_recalled: dict[str, set[str]] = {}
        self.links: dict[LinkKey, tuple[float | None, str | None]] = {}
        self.follows: set[tuple[str, str]] = set()
        self.last_of: dict[Any, str | None] = {}
        self.recalled: dict[str, set[str]] = {}
        self.trials: dict[str, tuple[int, int]] = {}
        """How often each procedure was tried, and how often it succeeded, once an outcome was recorded for it."""
        self.last_at = ""
        self._places = 0

    def committed(self, now: str, pending: Pending) -> None:
        """Take in what was pending in the store object that commits: it is recorded before the commit's own events."""
        if not pending.uses and not pending.recalls:
            return
        for query_id, ids in pending.recalls:
            self.recalled[query_id] = {memory_id for memory_id in ids if memory_id in self.memories}
            for memory_id in ids:
                self.ever_recalled[memory_id].add(query_id)
        used = {memory_id for memory_id, _, _ in pending.uses} & self.memories.keys()
        for memory_id in used:
            self.memories[memory_id] = pending.over(self.memories[memory_id])
        if used or pending.recalls:
            self.last_at = now
        pending.uses, pending.recalls = [], []

    def succeeded(self, memory_id: str, now: str) -> None:
        """Record that a recall in which a memory was used succeeded: a procedure's success rate is measured."""
        fields = self.memories[memory_id]
        if fields["type"] != "procedural":
            return
        rate = fields["success_rate"]
        if rate is None and fields["outcome"] == "positive":
            rate = 1.0
        builds = 0 if rate is None else max(1, len(fields["evidence_build_ids"]))
        tried, went_well = self.trials.get(memory_id, (builds, round(builds * (rate or 0.0))))
        self.trials[memory_id] = tried, went_well = tried + 1, went_well + 1
        self.memories[memory_id] = {**fields, "success_rate": round(went_well / tried, 6), "last_validated_at": now}

    def add(self, memory: AgentMemory, now: str, vector: Any, *, chained: bool = True) -> str:
        """Add a memory; its id must be set."""
        fields = {name: deepcopy(value) for name, value in memory if name not in _COMPUTED}
        anchor = memory.relevance_score if memory.relevance_anchor is None else memory.relevance_anchor
        created = memory.created_at or now
        fields |= {
            "created_at": created,
            "updated_at": memory.updated_at or created,
            "occurred_at": memory.occurred_at or fields.get("event_date") or created,
            "relevance_anchor": anchor,
            "relevance_at": memory.relevance_at or now,
            "evidence_build_ids": memory.evidence_build_ids or ([memory.build_id] if memory.build_id else []),
            "embedding_model": "fake",
            "embedded_at": memory.embedded_at or now,
            "vector": vector,
        }
        chain = chain_of(fields)
        if chain and chained and fields["previous_id"] is None:
            fields["previous_id"] = self.last_of.get(chain)
        memory_id = str(memory.id)
        self.memories[memory_id] = fields
        self.gone.pop(memory_id, None)
        self.place_of[memory_id] = self._places = self._places + 1
        self.named_before[memory_id] = fields["previous_id"]
        self.ever_linked[memory_id], self.ever_recalled[memory_id] = {}, set()
        if fields["previous_id"] in self.memories:
            self.follows.add((fields["previous_id"], memory_id))
        if chain:
            self.last_of[chain] = memory_id
        for source in getattr(memory, "supporting_memory_ids", ()) if chained else ():
            self.link((memory_id, "DERIVED_FROM", source), None, None, now)
            self.link((source, "SUPPORTS", memory_id), None, None, now)
        self.last_at = now
        return memory_id

    def update(self, memory_id: str, updates: Fields, now: str, vector: Any) -> None:
        """Change fields; `vector` replaces the old one unless it is None."""
        old = self.memories[memory_id]
        for state, reasons in REASONS.items():  # what was said of a state goes with it
            if state in updates and updates[state] is None:
                updates = {**dict.fromkeys(reasons), **updates}
        given = {name: value for name, value in old.items() if value is not None and name != "vector"}
        if "outcome" in updates:
            given.pop("outcome_word", None)
        new = dict(parse_memory({**given, **updates}))
        if new["content"] != old["content"]:
            new |= {
                name: none for name, none in (("entities", []), ("failure_fingerprint", None)) if name not in updates
            }
        if "relevance_score" in updates:
            new |= {"relevance_anchor": new["relevance_score"], "relevance_at": now}
        for state, reasons in (
            ("archived_at", ("archive_reason", "archive_summary")),
            ("invalid_at", ("invalidation_reason",)),
        ):
            if state in updates and updates[state] is None:
                new |= {name: None for name in reasons if name not in updates}
        new |= {"updated_at": now, "vector": old["vector"]}
        if vector is not None:
            new |= {"vector": vector, "embedded_at": now}
        self.memories[memory_id] = {name: value for name, value in new.items() if name not in _COMPUTED}
        self.last_at = now

    def delete(self, memory_id: str, now: str) -> None:
        """Remove a memory; what came after it follows what came before."""
        gone = self.memories[memory_id]
        previous = gone["previous_id"]
        for before, after in list(self.follows):
            if before == memory_id:
                self.memories[after]["previous_id"] = previous
                if previous in self.memories:
                    self.follows.add((previous, after))
        self.follows = {edge for edge in self.follows if memory_id not in edge}
        self.links = {key: link for key, link in self.links.items() if memory_id not in (key[0], key[2])}
        for ids in self.recalled.values():
            ids.discard(memory_id)
        chain = chain_of(gone)
        if chain and self.last_of.get(chain) == memory_id:
            self.last_of[chain] = previous
        self.gone[memory_id] = self.memories.pop(memory_id)
        self.last_at = now

    def undelete(self, memory_id: str, now: str) -> None:
        """Bring a memory back to its place, with its links to those that are there."""
        before, passed = self.named_before[memory_id], {memory_id}
        while before in self.named_before and before not in passed and before not in self.memories:
            passed.add(before)
            before = self.named_before[before]
        fields = {**self.gone.pop(memory_id), "previous_id": None if before in passed else before}
        followers = self._followers(memory_id)
        self.memories[memory_id] = fields
        if fields["previous_id"] in self.memories:
            self.follows.add((fields["previous_id"], memory_id))
        for follower in followers:
            self.follows.discard((self.memories[follower]["previous_id"], follower))
            self.follows.add((memory_id, follower))
            self.memories[follower]["previous_id"] = memory_id
        for query_id in self.ever_recalled[memory_id]:
            self.recalled[query_id].add(memory_id)
        chain = chain_of(fields)
        if chain and self.last_of.get(chain) == fields["previous_id"]:
            self.last_of[chain] = memory_id
        for key, (score, reason) in list(self.ever_linked[memory_id].items()):
            if {key[0], key[2]} <= self.memories.keys():
                self.link(key, score, reason, now)
        self.last_at = now

    def _followers(self, memory_id: str) -> set[str]:
        """Return those that followed a memory when they were added, or followed one that is gone and did."""
        found: set[str] = set()
        passed, waiting = {memory_id}, [memory_id]
        while waiting:
            earlier = waiting.pop()
            for later, named in self.named_before.items():
                if named == earlier and later in self.memories:
                    found.add(later)
                elif named == earlier and later not in passed:
                    passed.add(later)
                    waiting.append(later)
        return found

    def link(self, key: LinkKey, score: float | None, reason: str | None, now: str) -> None:
        """Make a link, or set its properties; one to what is not there waits until that is back."""
        for end in {key[0], key[2]}:
            self.ever_linked[end][key] = (score, reason)
        if {key[0], key[2]} <= self.memories.keys():
            self.links[key] = (score, reason)
        self.last_at = now

    def unlink(self, key: LinkKey, now: str) -> None:
        """Take a link back."""
        del self.links[key]
        for end in {key[0], key[2]}:
            self.ever_linked[end].pop(key, None)
        self.last_at = now

    def superseding(self, memory_id: str) -> set[str]:
        """Return the memories that replace this one directly."""
        return {newer for newer, relation, older in self.links if (relation, older) == ("SUPERSEDES", memory_id)}

    def newer_than(self, memory_id: str) -> set[str]:
        """Return every memory that replaces this one, directly or through others."""
        found: set[str] = set()
        waiting = {memory_id}
        while waiting:
            new = self.superseding(waiting.pop()) - found
            found |= new
            waiting |= new
        return found

    def ordered(self) -> list[Fields]:
        """Return the memories in the order of recording."""
        return sorted(self.memories.values(), key=lambda fields: self.place_of[fields["id"]])

    def current(self) -> list[Fields]:
        """Return what statistics count: all that is not archived."""
        return [fields for fields in self.memories.values() if not fields["archived_at"]]

    def listed(self, now: str, *, include_suppressed: bool = False) -> set[str]:
        """Return the ids that a listing shows."""
        return {
            fields["id"]
            for fields in self.current()
            if (fields["invalid_at"] is None or fields["invalid_at"] > now)
            and (include_suppressed or not fields["is_suppressed"])
        }

    def snapshot(self, pending: Pending) -> tuple[list[Fields], dict[LinkKey, Any]]:
        """Return what an export holds: memories as this store object sees them, and the links."""
        return deepcopy([pending.over(fields) for fields in self.ordered()]), dict(self.links)
