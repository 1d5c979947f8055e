"""Refusals: they do not depend on what the store holds, and the audit lists them."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.errors import PermissionDeniedError

WHY = "planning the payments of March"


@pytest.fixture
def memory(open_store: Any) -> Any:
    return memgraph.MemGraph(
        open_store(agents={"coach": {"domain": "health", "search": ["health"], "write": ["health"]}})
    )


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"privacy_tiers": ["private"]}, "no domain of its own"),
        ({"privacy_tiers": ["sensitive"]}, "without its name and a justification"),
        ({"agent": "planner", "justification": "please"}, "more than 20 characters"),
        ({"justification": WHY}, "needs the name of the agent"),
        ({"agent": "coach", "domain": "travel"}, "may not search memories of the domain 'travel'"),
        ({"agent": "planner", "domain": "journal"}, "may not search memories of the domain 'journal'"),
    ],
)
@pytest.mark.parametrize("is_filled", [False, True])
def test_a_refusal_says_what_is_not_allowed_and_nothing_else(
    memory: Any, asked: dict[str, Any], problem: str, is_filled: bool
) -> None:
    if is_filled:
        for domain in ("journal", "travel", "financial"):
            memory.save_observation(f"A fact about {domain}", context=domain)
    with pytest.raises(PermissionDeniedError, match=problem) as refused:
        memory.search_memories("a fact", **asked)
    (record,) = memory.audit()
    assert (record.agent, record.is_refused, record.reason) == (asked.get("agent", "agent"), True, str(refused.value))
    assert record.domain == asked.get("domain")
    assert record.justification == asked.get("justification")


def test_what_was_got_with_a_justification_is_on_record(memory: Any) -> None:
    saved = memory.save_observation("The mortgage is paid on the first", context="financial")
    memory.save_observation("The window seat is preferred", context="travel")
    assert saved.memory_id not in [one.id for one in memory.recall("mortgage", agent="planner").memories]
    found = memory.recall("mortgage", agent="planner", justification=WHY)
    assert saved.memory_id in [one.id for one in found.memories]
    (record,) = memory.audit(agent="planner")
    assert (record.is_refused, record.justification, record.disclosed_ids) == (False, WHY, [saved.memory_id])
    assert memory.audit(agent="coach") == []


def test_an_agent_stores_only_in_its_domains(memory: Any) -> None:
    with pytest.raises(PermissionDeniedError, match="may not write"):
        memory.save_observation("Buy socks", context="shopping", agent="coach")
    with pytest.raises(PermissionDeniedError, match="may not write"):
        memory.save_episode("Buy socks", "asked", "bought", "success", agent_name="coach")
    assert memory.store.get_stats().total == 0
    assert [one.operation for one in memory.audit()] == ["write", "write"]
    memory.save_observation("Ran ten kilometres", context="health", agent="coach")
    assert len(memory.recall("run", agent="coach").memories) == 1
    assert memory.recall("run").memories == []
    assert len(memory.audit(limit=1)) == 1


def test_where_nothing_can_be_written_a_refusal_stands(memory: Any) -> None:
    memory.save_observation("A fact")
    with memory.at(memory.store.now()) as past, pytest.raises(PermissionDeniedError):
        past.search_memories("a fact", privacy_tiers=["private"])
    assert memory.audit() == []


READERS: dict[str, Any] = {
    "show": lambda view, one: view.commands.show(one),
    "export": lambda view, _id: view.commands.export_memories(),
    "query": lambda view, _id: view.store.cypher("MATCH (m:Memory) RETURN m.content"),
}


def test_what_a_view_gave_with_a_justification_is_on_record(memory: Any) -> None:
    saved = memory.save_observation("The mortgage is paid on the first", context="financial")
    memory.save_observation("The window seat is preferred", context="travel")
    for number, read in enumerate(READERS.values(), start=1):
        with memory.as_agent("planner", justification=WHY) as view:
            assert len(memory.audit()) == number - 1
            read(view, saved.memory_id)
            read(view, saved.memory_id)
        assert len(memory.audit()) == number  # once for each view
        record = memory.audit()[-1]
        assert (record.agent, record.operation, record.disclosed_ids) == ("planner", "read", [saved.memory_id])


def test_a_list_refuses_what_a_recall_refuses(memory: Any) -> None:
    memory.save_observation("The mortgage is paid on the first", context="financial")
    with memory.as_agent("planner") as view:
        for asked in ({"privacy_tiers": ["private"]}, {"privacy_tiers": ["sensitive"]}, {"domain": "health"}):
            with pytest.raises(PermissionDeniedError):
                view.commands.list(**asked)
        assert view.commands.list(privacy_tiers=["public"]) == []
    assert [(one.operation, one.tier, one.domain) for one in memory.audit()] == [
        ("read", "private", None), ("read", "sensitive", None), ("read", None, "health"),
    ]  # fmt: skip
