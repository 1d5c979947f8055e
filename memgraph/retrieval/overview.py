"""What an agent should know of a project before it has a task: pinned memories, rules, facts and failures, without a search."""

from __future__ import annotations

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
from memgraph.retrieval.context.budget import count_tokens, within_tokens
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.store.access.visible import visible
from memgraph.store.query import Mask

MAX_PINNED = 8
MAX_OTHERS = {"procedural": 3, "semantic": 6, "episodic": 4}
"""Memories of each type besides the pinned ones, in this order. Of episodes only what a user said, and failures."""
MAX_TOKENS = 500
_READ_AHEAD = 5
"""Episodes are read in order of relevance, so many times as many; what a user said comes first among them."""


def project_overview(store: AgentMemoryStore, project: str | None, *, agent: str) -> AgentContext:
    """Return the memories of a project, and of none, that an agent may read: pinned ones, then the most relevant of each type.

    It needs no model, is no recall and counts no use. If they exceed `MAX_TOKENS`, the last ones are left out.
    """
    access = store.access_of(agent)
    scope = Scope(access, project_id=checked(Name | None, project, "project"))
    reader = store.reader
    with reader.frozen():
        index = reader.index
        mask: Mask = reader.listed() & ~reader.superseded() & visible(reader, access, "read", "search", scope=scope)
        pinned = index.column("is_pinned")
        found = reader.read(reader.ranked_ids(mask & pinned, limit=MAX_PINNED))
        for kind, most in MAX_OTHERS.items():
            of_type = mask & ~pinned & (index.column("type") == MEMORY_TYPES.index(kind))
            ahead = _READ_AHEAD * most if kind == "episodic" else most
            memories = reader.read(reader.ranked_ids(of_type, limit=ahead))
            found += sorted(filter(_is_told, memories), key=_is_of_the_user, reverse=True)[:most]
    found = found[: within_tokens([count_tokens(one.content) for one in found], MAX_TOKENS)]
    store.auditing.record_disclosure(access, "read", found)
    return AgentContext(
        query_id=new_id(),
        retrieved_at=store.now(),
        semantic_memories=[one for one in found if isinstance(one, StoredSemanticMemory)],
        similar_episodes=[one for one in found if isinstance(one, StoredEpisodicMemory)],
        procedural_rules=[one for one in found if isinstance(one, StoredProceduralMemory)],
        total_tokens_used=sum(count_tokens(one.content) for one in found),
        certainty="high" if found else "none",  # matched to no task: there is nothing to doubt
    )


def _is_told(memory: StoredMemory) -> bool:
    """Return whether a memory concerns more than one piece of work: an episode only if a user commented on it, or it failed."""
    return not isinstance(memory, StoredEpisodicMemory) or memory.outcome == "negative" or _is_of_the_user(memory)


def _is_of_the_user(memory: StoredMemory) -> bool:
    return isinstance(memory, StoredEpisodicMemory) and memory.user_feedback is not None
