"""What a recall may not see reaches no scorer, and no other memory's order: whatever stands in the store, whatever is asked."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.config import AgentMemoryConfig
from memgraph.model.timestamps import from_iso
from memgraph.privacy import OWNER
from memgraph.retrieval import MemoryRetrieval
from memgraph.retrieval.pipeline import ranked
from memgraph.store.access.scope import Scope
from memgraph.testing import FakeClock, FakeEmbedder

NOW = "2026-02-01T09:00:00.000Z"
WORDS = ("the queue", "Bloody Moon", "session.py", "deploy failed", "Ann", "why?")


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


memory_fields = st.fixed_dictionaries(
    {
        "kind": one_of(memgraph.EpisodicMemory, memgraph.SemanticMemory, memgraph.ProceduralMemory),
        "content": st.lists(one_of(*WORDS), min_size=1, max_size=3).map(" ".join),
        "project_id": one_of(None, "A", "B"),
        "task_id": one_of(None, None, "t1", "t2"),
        "session_id": one_of(None, "s1", "s2"),
        "source": one_of(None, "turn", "observation"),
        "privacy_tier": one_of("public", "private"),
        "trust_class": one_of("user", "web"),
        "domain": one_of(None, "general", "food", "work"),
        "is_suppressed": one_of(False, False, False, True),
        "archived_at": one_of(None, None, None, NOW),
        "invalid_at": one_of(None, None, None, "2025-01-01", "2099-01-01"),
        "agents_involved": one_of([], ["MARS"], ["VENUS"]),
        "title": one_of(None, "Bloody Moon", "Bloody Moon Rising", "Ann", "queue"),
        "speaker": one_of(None, "Ann"),
        "tags": st.lists(one_of("queue", "deploy"), max_size=2, unique=True),
        "floor": one_of(0.0, 0.1),
    }
)
links = st.tuples(
    st.integers(0, 11), one_of("SUPPORTS", "DERIVED_FROM", "CONTRADICTS", "SUPERSEDES"), st.integers(0, 11)
)
scopes = st.fixed_dictionaries(
    {
        "project_id": one_of(None, "A", "nowhere"),
        "task_id": one_of(None, "t1"),
        "all_tasks": st.booleans(),
        "session": one_of(None, "s1"),
        "agents": one_of(None, ["MARS"]),
        "privacy_tiers": one_of(None, ["public"]),
        "trust_classes": one_of(None, ["user"]),
        "domain": one_of(None, "food"),
        "include_archived": st.booleans(),
    }
)


def may_be_seen(memory: Any, scope: dict[str, Any]) -> bool:
    """The rules of the filter, said once more, one memory at a time."""
    return (
        not memory.is_suppressed
        and (memory.invalid_at is None or from_iso(memory.invalid_at) > from_iso(NOW) + timedelta(seconds=1))
        and (scope["include_archived"] or memory.archived_at is None)
        and (scope["project_id"] is None or memory.project_id in {scope["project_id"], None})
        and (scope["all_tasks"] or memory.task_id in {scope["task_id"], None})
        and (scope["session"] is None or memory.session_id in {scope["session"], None})
        and (memory.source != "turn" or memory.session_id in {scope["session"], None})
        and (scope["agents"] is None or bool({*scope["agents"]} & {*memory.agents_involved}))
        and (scope["privacy_tiers"] is None or memory.privacy_tier in scope["privacy_tiers"])
        and (scope["trust_classes"] is None or memory.trust_class in scope["trust_classes"])
        and (scope["domain"] is None or memory.domain in {scope["domain"], "general", None})
    )


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(
    drawn=st.lists(memory_fields, min_size=1, max_size=12),
    linked=st.lists(links, max_size=6),
    asked=st.lists(scopes, min_size=4, max_size=4),
    query=st.lists(one_of(*WORDS), min_size=1, max_size=3).map(" ".join),
)
def test_invisible_memories_are_never_scored(
    tmp_path_factory: Any, drawn: Any, linked: Any, asked: Any, query: str
) -> None:
    folder = tmp_path_factory.mktemp("scope")
    settings_ = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    embedder = FakeEmbedder(dimension=16)
    with ExitStack() as stack:
        store = stack.enter_context(memgraph.AgentMemoryStore(settings_, embedder=embedder, clock=FakeClock(start=NOW)))
        kept = []
        for fields in drawn:
            kind = fields["kind"]
            kept.append(store.insert_memory(kind(**{name: value for name, value in fields.items() if name != "kind"})))
        for source, relation, target in linked:
            if source < len(kept) and target < len(kept) and source != target:
                store.link(kept[source].id, relation, kept[target].id)
        for scope in asked:
            admitted = {memory.id for memory in kept if may_be_seen(memory, scope)}
            looked_at = scored_ids(store, query, embedder, Scope(OWNER, **scope))
            assert looked_at <= admitted
            found = MemoryRetrieval(store, access=OWNER).search_memories(query, limit=50, **scope)
            assert {scored.memory.id for scored in found} <= admitted
            if admitted:
                assert found, "of memories that supersede each other one is left"


def scored_ids(store: Any, query: str, embedder: Any, scope: Scope) -> set[str]:
    """Return the ids of all memories that any stage compared, matched, looked at or gave something to."""
    compared: list[int] = []
    with store.reader.frozen():
        everything = np.arange(len(store.reader.index))
        real = store.reader.cosines

        def counted(vector: Any, slots: Any, **how: Any) -> Any:
            compared.extend(everything[slots].tolist())
            return real(vector, slots, **how)

        store.reader.cosines = counted
        try:
            ranking = ranked(store, query, embedder.embed_query(query), scope, memgraph.RetrievalConfig())
        finally:
            del store.reader.cosines
        search = ranking.search
        touched = {*compared, *search.slots.tolist()}
        touched.update(slot for term in search.terms for slot in term.slots.tolist())
        touched.update(slot for added in search.added for slot in added.slots.tolist())
        return {ranking.id_of(slot) for slot in touched}


@pytest.mark.parametrize(
    "hidden", [{"project_id": "B"}, {"task_id": "t9"}, {"is_suppressed": True}, {"archived_at": NOW}]
)
def test_invisible_memories_do_not_change_the_order(open_store: Any, hidden: dict[str, Any]) -> None:
    texts = ["the queue is full", "the queue is empty again", "a deploy failed", "nothing of that"]

    def scores(name: str, *, with_hidden: bool) -> list[tuple[str, float]]:
        store = open_store(name)
        store.insert_memories(
            [
                memgraph.EpisodicMemory(content=text, project_id="A", session_id="s", title=text.split()[1])
                for text in texts
            ]
        )
        if with_hidden:
            named = {"title": "queue deploy", "speaker": "Queue", "session_id": "s", "tags": ["queue"]}
            more = [
                {"content": f"queue queue deploy {place}?", "project_id": "A", **named, **hidden} for place in range(9)
            ]
            store.insert_memories([memgraph.EpisodicMemory(**fields) for fields in more])
        found = MemoryRetrieval(store).search_memories("queue deploy", project_id="A")
        return [(scored.memory.content, scored.score) for scored in found]

    assert scores("with", with_hidden=True) == scores("without", with_hidden=False)


@pytest.mark.parametrize(
    "hidden", [{"project_id": "B"}, {"task_id": "t9"}, {"is_suppressed": True}, {"archived_at": NOW}]
)
def test_no_link_leads_to_invisible_memories(open_store: Any, hidden: dict[str, Any]) -> None:
    store = open_store()
    best = store.insert_memory(memgraph.EpisodicMemory(content="the queue is full", project_id="A", tags=["queue"]))
    other = {"project_id": "A", "tags": ["queue"], "outcome": "negative", "floor": 0.1, **hidden}
    for relation in ("SUPPORTS", "DERIVED_FROM", "CONTRADICTS", "SUPERSEDES"):
        kept = store.insert_memory(memgraph.SemanticMemory(content=f"unlike it, {relation}", **other))
        store.link(kept.id, relation, best.id)
        store.link(best.id, relation, kept.id)

    found = MemoryRetrieval(store).search_memories("queue full", project_id="A")

    assert [scored.memory.id for scored in found] == [best.id]
