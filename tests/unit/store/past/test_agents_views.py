"""Views of agents: few on the disk, each open once, shared by threads, gone when the store moves on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.interfaces.operations import Caller, perform
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.store import past as as_of
from memgraph.testing import FakeClock, FakeEmbedder, FakeKeys

COUNT = {"cypher": "MATCH (m:Memory) RETURN count(m) AS n"}
PLAN = {"type": "semantic", "content": "The plan for the week"}
THREADS = 24


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemGraph]:
    with MemGraph.open(
        tmp_path / "store",
        keys_home=tmp_path / "keys",
        embedder=FakeEmbedder(),
        clock=FakeClock(),
        keys=FakeKeys(),
        lock_timeout_s=2,
    ) as opened:
        opened.store.insert_memory(PLAN)
        opened.store.insert_memory({"type": "semantic", "content": "A secret", "privacy_tier": "private"})
        yield opened


def views(memory: MemGraph) -> list[str]:
    folder = memory.store.config.home / "past" / "agents"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def count(memory: MemGraph, agent: str = "planner") -> Any:
    return perform(memory, Caller(agent=agent), "query", COUNT).data["rows"][0]["n"]


@pytest.mark.embedded
def test_many_threads_at_once_are_all_answered_from_one_view(memory: MemGraph) -> None:
    together = threading.Barrier(THREADS)

    def ask(number: int) -> Any:
        together.wait()
        if number % 2:
            return count(memory)
        found = perform(memory, Caller(agent="planner"), "list_memories", {}).data["memories"]
        return len([one for one in found if one["privacy_tier"] == "public"])

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(ask, range(THREADS))) == [1] * THREADS
    assert len(views(memory)) == 1
    memory.close()
    held = [path for path in Path("/proc/self/fd").iterdir() if path.exists() and "past/agents" in str(path.resolve())]
    assert held == []


def test_lists_and_counts_make_no_view(memory: MemGraph) -> None:
    for name in ("list_memories", "stats"):
        perform(memory, Caller(agent="planner"), name, {})
    assert not (memory.store.config.home / "past").exists()


@pytest.mark.embedded
def test_a_view_is_made_once_and_replaced_when_something_is_written(memory: MemGraph) -> None:
    assert count(memory) == 1
    (first,) = views(memory)
    assert count(memory) == 1
    assert views(memory) == [first]
    memory.store.insert_memory({**PLAN, "content": "Another"})
    assert count(memory) == 2
    (second,) = views(memory)
    assert second != first
    for number in range(as_of.MOST_OF_AGENTS):
        assert count(memory, f"agent {number}") == 2
    assert len(views(memory)) == as_of.MOST_OF_AGENTS


@pytest.mark.embedded
def test_a_view_in_use_stays_as_it_is_until_it_is_closed(memory: MemGraph) -> None:
    with memory.as_agent("planner") as one, memory.as_agent("planner") as other:
        memory.store.insert_memory({**PLAN, "content": "Another"})
        assert count(memory) == 2
        assert len(views(memory)) == 2  # the outdated one is in use
        one.close()
        one.close()
        memory.close()
        assert len(other.store.cypher("MATCH (m:Memory) RETURN m.content")) == 1
        assert [one.content for one in other.store.list_memories()] == [PLAN["content"]]


@pytest.mark.embedded
def test_a_view_that_cannot_be_made_is_tried_again(memory: MemGraph) -> None:
    def stop(_done: int, _total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.as_agent("planner", progress=stop)
    assert views(memory) == []
    assert count(memory) == 1


@pytest.mark.embedded
@pytest.mark.parametrize("how", ["private", "deleted", "moved", "merged", "of others"])
def test_a_failure_whose_memory_is_hidden_is_no_failure_of_a_run(memory: MemGraph, how: str) -> None:
    times = dict.fromkeys(("started_at", "completed_at"), "2026-01-05T10:00:00Z")
    store = memory.store
    for build, outcomes in (("b1", "sss"), ("b2", "sff"), ("b3", "sss")):
        tasks = [
            {
                "task_id": f"{name} ({build})",
                "agent_name": "ci",
                "description": name,
                "test": name,
                "outcome": "success" if outcome == "s" else "failure",
                "output": f"Error: the sum of {name} was {len(name)} cents short",
            }
            for name, outcome in zip(("till", "cart", "payslip of ada"), outcomes, strict=True)
        ]
        log = {"build_id": build, "project_id": "shop", "build_outcome": "failure", "tasks": tasks, **times}
        ConsolidationPipeline(store).consolidate({**log, "source": "test report", "trust_class": "tool"})
    of = {one.source_event_ids[0]: one.id for one in store.every_memory() if one.source_event_ids}
    secret = {"privacy_tier": "private", "domain": "health"}
    for event in ("b1/payslip of ada (b1)", "b3/payslip of ada (b3)"):
        if event in of:
            store.update_memory(of[event], **secret) if how == "private" else store.delete_memory(of[event])
    hidden = of["b2/payslip of ada (b2)"]
    if how == "deleted":
        store.delete_memory(hidden)
    elif how == "merged":
        other = store.insert_memory({"type": "episodic", "content": "Ada earns a lot", **secret}).id
        memory.curation.merge([hidden, other])
    elif how != "of others":
        moved = {"project_id": "pay"} if how == "moved" else {}
        memory.curation.edit(hidden, {**secret, **moved}, as_new=how == "moved")
    with memory.as_agent("planner") as view:
        runs = {one["name"]: one for one in view.store.reader.every_record("Run")}
        shown = repr(
            [
                *runs.values(),
                *view.store.reader.every_record("Build"),
                view.store.cypher("MATCH (t:Test) RETURN t.name"),
            ]
        )
        failed = {name: [one["name"] for one in run.get("failed", ())] for name, run in runs.items()}
    assert ("payslip" in shown) == (how == "of others")
    assert runs["b1"]["passed"] == ["till", "cart", *(["payslip of ada"] if how == "of others" else [])]
    if how in ("deleted", "of others"):  # of a build with a hidden memory nothing is there
        assert failed["b2"] == (["cart", "payslip of ada"] if how == "of others" else ["cart"])
