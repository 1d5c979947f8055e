"""Runs of tests after a purge: those of the failures that are left, and no name that only removed memories had."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memgraph import AgentMemoryStore, MemGraph
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.store.compaction import compact
from memgraph.testing import FakeClock

pytestmark = pytest.mark.embedded
LONG = "tests/api/test_orders.py::test_an_order_of_margaret_that_was_cancelled_twice_is_not_refunded_again"
SHORT, OTHER = "till::margaret", "till::rounding"
TEXTS = {LONG: "Order 7 was refunded twice", SHORT: "Margaret got 3 euros", OTHER: "Half a cent was lost in a sum"}
Traces = Callable[..., list[str]]


def consolidate(store: AgentMemoryStore, build: str, passed: list[str], failed: list[str], day: int = 5) -> None:
    ran = [(one, "success") for one in passed] + [(one, "failure") for one in failed]
    tasks = [
        # a test that failed and passed in one run was run again, as reports mark it
        {
            "task_id": f"{name}/{outcome}{' (first run)' * (outcome == 'failure' and name in passed)}",
            "agent_name": "ci",
            "description": name,
            "test": name,
            "outcome": outcome,
        }
        | ({"output": f"AssertionError: {TEXTS[name]} in {build}"} if outcome == "failure" else {})
        for name, outcome in ran
    ]
    times = dict.fromkeys(("started_at", "completed_at"), f"2026-01-{day:02}T10:00:00Z")
    log = {"build_id": build, "project_id": "shop", "build_outcome": "failure" if failed else "success", **times}
    ConsolidationPipeline(store).consolidate({**log, "source": "test report", "trust_class": "tool", "tasks": tasks})


def told(store: AgentMemoryStore, name: str) -> list[str]:
    return [one.id for one in store.every_memory() if any(name in event for event in one.source_event_ids)]


def runs(store: AgentMemoryStore) -> dict[str, tuple[list[str], list[str]]]:
    """Return the names of the tests that passed and that failed, by run."""
    return {
        run["name"]: (run.get("passed", []), [one["name"] for one in run.get("failed", ())])
        for run in store.reader.every_record("Run")
    }


def edges(store: AgentMemoryStore) -> set[tuple[str, str, str]]:
    found = store.cypher("MATCH (r:Run)-[e:PASSED|FAILED]->(t:Test) RETURN r.name AS r, label(e) AS e, t.name AS t")
    return {(row["r"], row["e"], row["t"]) for row in found}


@pytest.mark.parametrize("name", [LONG, SHORT])
def test_a_test_that_only_purged_failures_had_is_nowhere_and_the_runs_stay(
    store: AgentMemoryStore, traces: Traces, name: str
) -> None:
    consolidate(store, "b1", [name, OTHER], [])
    consolidate(store, "b2", [], [name, OTHER])
    consolidate(store, "b3", [OTHER, name], [name])
    assert runs(store)["b3"] == ([OTHER, name], [name])
    receipt = store.purge(told(store, name))
    assert receipt.code
    assert traces(store.config.home, name) == []
    assert runs(store) == {"b1": ([OTHER], []), "b2": ([], [OTHER]), "b3": ([OTHER], [])}
    assert edges(store) == {("b1", "PASSED", OTHER), ("b2", "FAILED", OTHER), ("b3", "PASSED", OTHER)}
    assert store.cypher("MATCH (t:Test) RETURN t.name AS name") == [{"name": OTHER}]
    assert {row["name"] for row in store.reader.builds("shop")} == {"b1", "b2", "b3"}
    store.verify(deep=True)
    store.rebuild()
    assert runs(store)["b3"] == ([OTHER], [])


def test_a_name_that_another_failure_has_stays(store: AgentMemoryStore) -> None:
    consolidate(store, "b1", [], [SHORT])
    (first,) = told(store, SHORT)
    consolidate(store, "b2", [SHORT], [])
    log = {"type": "episodic", "content": "Something else", "source_event_ids": [f"b3/{SHORT}/failure"]}
    consolidate(store, "b3", [], [SHORT])
    store.delete_memory(first)
    store.insert_memory(log)
    store.purge([first])
    found = runs(store)
    assert (found["b2"], found["b3"]) == (([SHORT], []), ([], [SHORT]))
    assert "b1" not in found


@pytest.mark.parametrize("match", [LONG, "Cancelled_Twice"])
def test_a_purged_text_takes_names_of_tests_and_no_run(store: AgentMemoryStore, traces: Traces, match: str) -> None:
    consolidate(store, "b1", [LONG, OTHER], [])
    consolidate(store, "b2", [OTHER], [LONG])
    store.insert_memory({"type": "semantic", "content": "Of another thing"})
    assert store.preview_purge(match=match).others == {"build.consolidated": 2}
    store.purge(match=match)
    assert traces(store.config.home, "cancelled_twice") == []
    assert runs(store) == {"b1": ([OTHER], []), "b2": ([OTHER], [])}


def test_a_build_that_was_read_again_is_as_it_was_read_last(store: AgentMemoryStore, traces: Traces) -> None:
    consolidate(store, "b1", [], [SHORT, OTHER])
    consolidate(store, "b1", [OTHER], [OTHER])
    store.purge(told(store, SHORT))
    assert traces(store.config.home, SHORT) == []
    assert runs(store) == {"b1": ([OTHER], [OTHER])}


def test_a_build_that_was_cleared_does_not_come_back(store: AgentMemoryStore, traces: Traces) -> None:
    consolidate(store, "b1", [], [SHORT, OTHER])
    gone = told(store, SHORT)
    MemGraph(store).maintenance.reset("memory")
    consolidate(store, "b2", [OTHER], [])
    store.insert_memory({"type": "semantic", "content": "Of another thing"})
    store.purge(gone)
    assert traces(store.config.home, SHORT) == []
    assert [row["name"] for row in store.reader.builds("shop")] == ["b2"]


@pytest.mark.parametrize("fails_again", [False, True])
def test_retention_drops_the_names_that_only_deleted_failures_had(
    open_store: Callable[..., AgentMemoryStore], clock: FakeClock, traces: Traces, *, fails_again: bool
) -> None:
    with open_store(clock=clock) as store:
        consolidate(store, "b1", [], [LONG, OTHER])
        consolidate(store, "b2", [LONG, SHORT], [])
        for one in told(store, LONG):
            store.delete_memory(one)
        if fails_again:
            consolidate(store, "b3", [], [LONG])
        home, settings = store.config.home, store.config.model_copy(update={"archive_retention_days": 3})
        clock.advance(days=30)
        store.insert_memory({"type": "semantic", "content": "Of a later day"})
    compact(settings, before="2026-03-01", clock=clock)
    assert bool(traces(home, LONG)) == fails_again
    with open_store(clock=clock) as store:
        expected = {"b1": ([], [OTHER]), "b2": ([SHORT], [])}
        assert runs(store) == (expected | {"b2": ([LONG, SHORT], []), "b3": ([], [LONG])} if fails_again else expected)
        store.verify(deep=True)


def test_a_purge_leaves_no_test_in_a_baseline(
    open_store: Callable[..., AgentMemoryStore], clock: FakeClock, traces: Traces
) -> None:
    with open_store(clock=clock) as store:
        consolidate(store, "b1", [SHORT], [OTHER])
        consolidate(store, "b2", [], [SHORT])
        clock.advance(days=30)
        store.insert_memory({"type": "semantic", "content": "Of a later day"})
        config = store.config
    compact(config, before="2026-02-20", clock=clock)
    with open_store(clock=clock) as store:
        assert store._journal.baseline is not None
        store.purge(told(store, SHORT))
        assert traces(config.home, SHORT) == []
        assert runs(store) == {"b1": ([], [OTHER])}
        store.verify(deep=True)
