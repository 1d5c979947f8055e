"""What an agent should know without a search: of a project before it has a task, of the last days, and of its session."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np

from memgraph.index.columns import CHAT_SOURCE, TRUST
from memgraph.model.base import Name, checked
from memgraph.model.ids import new_id
from memgraph.model.memory import (
    MEMORY_TYPES,
    StandingRule,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
)
from memgraph.model.results.retrieval import AgentContext, RetrievalResult, Rules
from memgraph.ports import TokenCounter
from memgraph.retrieval.context.budget import count_tokens, within_tokens
from memgraph.retrieval.context.context import APPROVED, is_constraint, is_standing_rule
from memgraph.retrieval.context.notes import rules_within
from memgraph.retrieval.context.task_labels import is_outside
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope, of_or_none
from memgraph.store.access.visibility import visible
from memgraph.store.query import Mask, Reader

MAX_PINNED = 8
MAX_OTHERS = {"procedural": 3, "semantic": 6, "episodic": 4}
"""Memories of each type besides the pinned ones, in this order. Of episodes only what a user said, and failures."""
MAX_TOKENS = 500
_READ_AHEAD = 5
"""Episodes are read in order of relevance, so many times as many; what a user said comes first among them."""


_Found = TypeVar("_Found", RetrievalResult, AgentContext)


def project_overview(
    store: AgentMemoryStore,
    project: str | None,
    *,
    agent: str,
    justification: str | None = None,
    task_id: str | None = None,
) -> AgentContext:
    """Return the memories of a project, and of none, that an agent may read: standing rules, other pinned ones, the most relevant of each type.

    It needs no model, is no recall and counts no use. If they exceed `MAX_TOKENS`, the last ones are left out; standing rules have a budget of
    their own (``prompt_budget.constraints``).

    Parameters
    ----------
    task_id : str, optional
        A task whose own memories are among them.
    """
    access = store.access_of(agent, justification)
    scope = Scope(
        access,
        project_id=checked(Name | None, project, "project"),
        task_id=checked(Name | None, task_id, "task_id"),
    )
    reader = store.reader
    with reader.frozen():
        index = reader.index
        mask = _in_force(reader, scope)
        rules = _rules_among(reader, mask, scope)
        mask[[index.slot(one.id) for one in rules]] = False
        pinned = index.column("is_pinned")
        found = reader.read(reader.ranked_ids(mask & pinned, limit=MAX_PINNED))
        for kind, most in MAX_OTHERS.items():
            of_type = mask & ~pinned & (index.column("type") == MEMORY_TYPES.index(kind))
            ahead = _READ_AHEAD * most if kind == "episodic" else most
            memories = reader.read(reader.ranked_ids(of_type, limit=ahead))
            found += sorted(filter(_is_told, memories), key=_is_of_the_user, reverse=True)[:most]
    found.sort(key=lambda one: is_outside(one.trust_class))  # last of its type, and left out first
    found = found[: within_tokens([count_tokens(one.content) for one in found], MAX_TOKENS)]
    now = store.now()
    held = rules_within(rules, store.config.prompt_budget.constraints, now=now)
    store.auditing.record_disclosure(access, "read", [*held, *found])
    return AgentContext(
        query_id=new_id(),
        retrieved_at=now,
        semantic_memories=[one for one in found if isinstance(one, StoredSemanticMemory)],
        similar_episodes=[one for one in found if isinstance(one, StoredEpisodicMemory)],
        procedural_rules=[one for one in found if isinstance(one, StoredProceduralMemory)],
        total_tokens_used=sum(count_tokens(one.content) for one in [*held, *found]),
        certainty="high" if held or found else "none",  # matched to no task: there is nothing to doubt
        rules=held,
        rules_left_out=len(rules) - len(held),
    )


def rules_in(store: AgentMemoryStore, scope: Scope) -> list[StandingRule]:
    """Return the standing rules that hold in a scope: pinned constraints, other pinned ones, the project's, the most used, the newest."""
    reader = store.reader
    with reader.frozen():
        return _rules_among(reader, _in_force(reader, scope), scope)


def with_rules(
    store: AgentMemoryStore,
    found: _Found,
    scope: Scope,
    which: Rules,
    *,
    known: Collection[str] = (),
    counter: TokenCounter = count_tokens,
) -> _Found:
    """Return a recall with the standing rules that are given with it, within their budget. Those that the task does not match count no use.

    Parameters
    ----------
    which : {"all", "matching", "none"}
        ``matching``: what the recall found, and pinned constraints, which hold for every task. ``none``: the recall as it is.
    known : collection of str
        Ids of memories that are not given.
    """
    if which == "none":
        return found
    matching = {one.id for one in found.memories}
    rules = [one for one in rules_in(store, scope) if one.id not in known]
    if which == "matching":
        rules = [one for one in rules if one.id in matching or is_constraint(one)]
    most, now = store.config.prompt_budget.constraints, found.retrieved_at
    held = rules_within(rules, most, now=now, counter=counter)
    store.auditing.record_disclosure(scope.access, "read", [one for one in held if one.id not in matching])
    kept = {one.id for one in held}
    missing = [one for one in rules if one.id not in kept and (is_constraint(one) or one.id not in matching)]
    return found.model_copy(update={"rules": held, "rules_left_out": len(missing), "constraints_left_out": 0})


def standing_rule_ids(store: AgentMemoryStore) -> list[str]:
    """Return the ids of the standing rules of every project and task."""
    reader = store.reader
    with reader.frozen():
        return [one.id for one in _read_rules(reader, reader.listed())]


def without_given_rules(store: AgentMemoryStore, query_id: str, ids: Sequence[str]) -> list[str]:
    """Return ids without those of standing rules that came with a recall but were not among its results: they count no use."""
    if not ids:
        return []
    store.flush()  # what was recalled
    rules = {one.id for one in store.read_memories(ids) if is_standing_rule(one)}
    return [one for one in ids if one not in rules or store.reader.record("RECALLED", (query_id, one))]


def recent_memories(store: AgentMemoryStore, scope: Scope, *, days: int, most: int) -> list[StoredMemory]:
    """Return what happened or was learned in the last days, within a scope, the newest first; without standing rules and without memories of a single session."""
    reader = store.reader
    with reader.frozen():
        index, now = reader.index, reader.now_days()
        when = index.column("occurred_days")
        mask = _in_force(reader, scope) & (when >= now - days) & (when <= now) & ~index.column("is_session_bound")
        mask[[index.slot(one.id) for one in _rules_among(reader, mask, scope)]] = False
        return _newest(reader, mask, most)


def session_memories(store: AgentMemoryStore, scope: Scope, *, most: int) -> list[StoredMemory]:
    """Return what a model marked as concerning the chat of the scope's session, the newest first. Verbatim turns are not among it."""
    reader = store.reader
    with reader.frozen():
        told = _in_force(reader, scope) & reader.index.column("is_session_bound")
        found = _newest(reader, told, _READ_AHEAD * most)
    return [one for one in found if one.source == CHAT_SOURCE][:most]


def _in_force(reader: Reader, scope: Scope) -> Mask:
    return reader.listed() & ~reader.superseded() & visible(reader, scope.access, "read", "search", scope=scope)


def _rules_among(reader: Reader, mask: Mask, scope: Scope) -> list[StandingRule]:
    """Return the standing rules of a mask in order. Those of a project hold for it alone, and those of a task in it alone."""
    index = reader.index
    here = mask & of_or_none(index, "task", scope.task_id)
    if scope.project_id is None:
        here &= of_or_none(index, "project", None)

    def order(one: StandingRule) -> tuple[bool, bool, bool, int]:
        return not is_constraint(one), not one.is_pinned, one.project_id is None, -one.access_count

    newest = sorted(_read_rules(reader, here), key=lambda one: (one.created_at, one.id), reverse=True)
    return sorted(newest, key=order)


def _read_rules(reader: Reader, mask: Mask) -> list[StandingRule]:
    """Return the standing rules of a mask; only what may be one by the index is read."""
    index = reader.index
    may_be = index.column("is_pinned") | (index.column("type") == MEMORY_TYPES.index("procedural"))
    slots = np.flatnonzero(mask & may_be & (index.column("trust") <= TRUST.index("agent")))
    rows = reader.rows([index.ids.names[slot] for slot in slots])
    ids = [row["id"] for row in rows if row.get("is_pinned") or row.get("source") == APPROVED]
    return [one for one in reader.read(ids) if is_standing_rule(one)]


def _newest(reader: Reader, mask: Mask, most: int) -> list[StoredMemory]:
    """Return the newest of some memories, those of equal times in the reverse order of their recording."""
    slots = np.flatnonzero(mask)
    index = reader.index
    order = np.lexsort((-index.column("seq")[slots], -index.column("occurred_days")[slots]))[:most]
    return reader.read([index.ids.names[slot] for slot in slots[order]])


def _is_told(memory: StoredMemory) -> bool:
    """Return whether a memory concerns more than one piece of work: an episode only if a user commented on it, or it failed."""
    return not isinstance(memory, StoredEpisodicMemory) or memory.outcome == "negative" or _is_of_the_user(memory)


def _is_of_the_user(memory: StoredMemory) -> bool:
    return isinstance(memory, StoredEpisodicMemory) and memory.user_feedback is not None
