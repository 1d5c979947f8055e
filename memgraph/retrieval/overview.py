"""What an agent should know without a search: of a project before it has a task, of the last days, and of its session."""

from __future__ import annotations

import numpy as np

from memgraph.index.columns import CHAT_SOURCE
from memgraph.model.base import Name, checked
from memgraph.model.ids import new_id
from memgraph.model.memory import (
    MEMORY_TYPES,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
)
from memgraph.model.results.context import AgentContext
from memgraph.retrieval.context.budget import count_tokens, shortest_within_tokens, within_tokens
from memgraph.retrieval.context.context import oldest_first
from memgraph.retrieval.context.task_labels import is_outside
from memgraph.retrieval.stages.floor import constraints_among
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.store.access.visible import visible
from memgraph.store.query import Mask, Reader

MAX_PINNED = 8
MAX_OTHERS = {"procedural": 3, "semantic": 6, "episodic": 4}
"""Memories of each type besides the pinned ones, in this order. Of episodes only what a user said, and failures."""
MAX_TOKENS = 500
_READ_AHEAD = 5
"""Episodes are read in order of relevance, so many times as many; what a user said comes first among them."""


def project_overview(
    store: AgentMemoryStore,
    project: str | None,
    *,
    agent: str,
    justification: str | None = None,
    task_id: str | None = None,
) -> AgentContext:
    """Return the memories of a project, and of none, that an agent may read: constraints, other pinned ones, the most relevant of each type.

    It needs no model, is no recall and counts no use. If they exceed `MAX_TOKENS`, the last ones are left out; constraints have a budget of
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
        slots = constraints_among(index, mask, scope.project_id)
        constraints = sorted(reader.read([index.ids.names[slot] for slot in slots]), key=oldest_first)
        mask[slots] = False
        pinned = index.column("is_pinned")
        found = reader.read(reader.ranked_ids(mask & pinned, limit=MAX_PINNED))
        for kind, most in MAX_OTHERS.items():
            of_type = mask & ~pinned & (index.column("type") == MEMORY_TYPES.index(kind))
            ahead = _READ_AHEAD * most if kind == "episodic" else most
            memories = reader.read(reader.ranked_ids(of_type, limit=ahead))
            found += sorted(filter(_is_told, memories), key=_is_of_the_user, reverse=True)[:most]
    found.sort(key=lambda one: is_outside(one.trust_class))  # last of its type, and left out first
    found = found[: within_tokens([count_tokens(one.content) for one in found], MAX_TOKENS)]
    sizes = [count_tokens(one.content) for one in constraints]
    held = [constraints[place] for place in shortest_within_tokens(sizes, store.config.prompt_budget.constraints)]
    found = [*held, *found]
    store.auditing.record_disclosure(access, "read", found)
    return AgentContext(
        query_id=new_id(),
        retrieved_at=store.now(),
        semantic_memories=[one for one in found if isinstance(one, StoredSemanticMemory)],
        similar_episodes=[one for one in found if isinstance(one, StoredEpisodicMemory)],
        procedural_rules=[one for one in found if isinstance(one, StoredProceduralMemory)],
        total_tokens_used=sum(count_tokens(one.content) for one in found),
        certainty="high" if found else "none",  # matched to no task: there is nothing to doubt
        constraints_left_out=len(constraints) - len(held),
    )


def constraints_of(store: AgentMemoryStore, scope: Scope) -> list[StoredMemory]:
    """Return the pinned constraints that hold in a scope, the oldest first."""
    reader = store.reader
    with reader.frozen():
        index = reader.index
        slots = constraints_among(index, _in_force(reader, scope), scope.project_id)
        return sorted(reader.read([index.ids.names[slot] for slot in slots]), key=oldest_first)


def recent_memories(store: AgentMemoryStore, scope: Scope, *, days: int, most: int) -> list[StoredMemory]:
    """Return what happened or was learned in the last days, within a scope, the newest first; without constraints and without memories of a single session."""
    reader = store.reader
    with reader.frozen():
        index, now = reader.index, reader.now_days()
        when = index.column("occurred_days")
        mask = _in_force(reader, scope) & (when >= now - days) & (when <= now) & ~index.column("is_session_bound")
        mask[constraints_among(index, mask, scope.project_id)] = False
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
