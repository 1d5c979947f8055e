"""Health: each check passes on a store that is well, and fails when its reason is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.errors import GraphError, ReadOnlyError
from memgraph.fold.fold import digest_after
from memgraph.health import examination as of_memories
from memgraph.interfaces.cli.group import cli
from memgraph.model.results.learning import MergeResult
from memgraph.model.results.maintenance import Health, HealthCheck, HealthLimits
from memgraph.ports import Change
from tests.tables import change_payload

NAMES = {
    *("store", "permissions", "quota", "disk", "model", "vectors", "graph", "graph lag", "journal"),
    *("working memory", "long-term memory", "sleep", "near-duplicates", "contradictions", "backups"),
}
"""What an open store checks; `doctor` also checks what opening has checked: settings, key and head."""


@pytest.fixture
def memory(store: Any) -> MemGraph:
    return MemGraph(store)


def limited(memory: MemGraph, **limits: Any) -> None:
    memory.store.config.__dict__["health"] = HealthLimits(**limits)


def check(memory: MemGraph, name: str) -> HealthCheck:
    """Return the one entry of a check."""
    (found,) = [one for one in memory.health().checks if one.name == name]
    return found


def warned(memory: MemGraph, name: str) -> HealthCheck:
    found = check(memory, name)
    assert found.status == "warning", found
    assert found.message in memory.health().warnings
    assert found.advice
    return found


def test_a_store_that_is_well(memory: MemGraph) -> None:
    memory.commands.remember("The vault holds the deploy key")
    memory.recall("deploy")
    found = memory.health()
    assert found == Health.parse(found.model_dump())
    assert (found.healthy, found.warnings, found.errors) == (True, [], [])
    assert {one.name for one in found.checks} == NAMES
    assert {one.status for one in found.checks} == {"ok"}


def test_it_writes_nothing(memory: MemGraph, bytes_of: Callable[[], bytes]) -> None:
    memory.commands.remember("The vault holds the deploy key")
    before = bytes_of()
    memory.health()
    assert bytes_of() == before


def test_stale_working_memories(memory: MemGraph, clock: Any) -> None:
    for number in range(10):
        memory.tasks.working.replace(f"s{number}", task="Debug")
    clock.advance(days=8)
    assert check(memory, "working memory").value == 10
    assert check(memory, "working memory").status == "ok", "ten are within the limit"
    memory.tasks.working.replace("s10", task="Debug")
    clock.advance(days=8)
    found = warned(memory, "working memory")
    assert (found.value, found.limit) == (11, 10)
    memory.tasks.working.replace("now", task="Stays")
    assert memory.tasks.working.prune() == 11, "the advice helps"
    assert check(memory, "working memory").value == 0
    assert memory.tasks.working.exists("now")


def test_the_size_of_long_term_memory(memory: MemGraph) -> None:
    limited(memory, long_term_mb=0.001)
    memory.store.insert_memory({"type": "episodic", "content": "e" * 800})
    memory.store.insert_memory({"type": "semantic", "content": "ä" * 500})
    assert check(memory, "long-term memory").value == 1_000, "bytes of what is no episode"
    assert check(memory, "long-term memory").status == "ok"
    last = memory.store.insert_memory({"type": "procedural", "content": "x"})
    assert warned(memory, "long-term memory").value == 1_001
    memory.store.archive(last.id)
    assert check(memory, "long-term memory").status == "ok"
    limited(memory, long_term_mb=0)
    assert check(memory, "long-term memory").limit == float("inf")


def test_a_sleep_that_failed(memory: MemGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_context: Any) -> Any:
        raise GraphError("its file is damaged")

    module = import_module("memgraph.lifecycle.sleep")
    phases = tuple(one._replace(run=fail) if one.name == "compress" else one for one in module.PHASES)
    with monkeypatch.context() as patched:
        patched.setattr(module, "PHASES", phases)
        with pytest.raises(GraphError, match="its file is damaged"):
            memory.maintenance.sleep()
    found = warned(memory, "sleep")
    assert "failed in its phase compress (2026-02-01T09:00)" in found.message
    assert "its file is damaged" in found.message
    memory.store.verify(deep=True)
    memory.maintenance.sleep()
    assert check(memory, "sleep").status == "ok"


def test_a_sleep_that_was_left_undone(memory: MemGraph, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.commands.remember("The vault holds the deploy key")
    module = import_module("memgraph.lifecycle.sleep")
    late = MergeResult(complete=False)
    phases = tuple(one._replace(run=lambda _: late) if one.name == "copies" else one for one in module.PHASES)
    with monkeypatch.context() as patched:
        patched.setattr(module, "PHASES", phases)
        report = memory.maintenance.sleep()
    assert report.left
    assert not report.complete
    assert check(memory, "sleep").status == "ok", "the next sleep continues it"
    clock.advance(days=2)
    assert f"was not completed; left: {report.left[0]}" in warned(memory, "sleep").message
    memory.maintenance.sleep()
    assert check(memory, "sleep").status == "ok"


def test_a_sleep_that_is_overdue(memory: MemGraph, clock: Any) -> None:
    def episodes(count: int) -> None:
        for number in range(count):
            memory.save_episode(f"Case {number}", "a lock", "restarted", "success")

    episodes(4)
    clock.advance(days=8)
    assert check(memory, "sleep").status == "ok", "few episodes can wait"
    episodes(1)
    found = warned(memory, "sleep")
    assert (found.value, found.limit) == (8, 7)
    limited(memory, sleep_overdue_days=0)
    assert check(memory, "sleep").status == "ok"
    limited(memory)
    memory.maintenance.sleep()
    assert check(memory, "sleep").status == "ok"


def test_near_duplicates(memory: MemGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(memory, near_duplicates=1)
    texts = ["The nightly backup of the shop runs at three", "Never deploy the shop on Fridays"]
    memory.store.insert_memories([{"type": "semantic", "content": text} for text in [*texts, *texts, "Another fact"]])
    assert warned(memory, "near-duplicates").value == 2
    monkeypatch.setattr(of_memories, "_MOST_FOUND", 1)
    limited(memory, near_duplicates=0)
    assert "at least 1 memories" in warned(memory, "near-duplicates").message
    memory.maintenance.sleep()
    assert check(memory, "near-duplicates").value == 0


def test_open_contradictions(memory: MemGraph) -> None:
    limited(memory, open_contradictions=0)
    ids = [memory.store.insert_memory({"type": "semantic", "content": f"Fact {n}"}).id for n in range(2)]
    memory.store.link(ids[0], "CONTRADICTS", ids[1])
    assert warned(memory, "contradictions").value == 1
    memory.contradictions.resolve(*ids, keep=ids[0])
    assert check(memory, "contradictions").value == 0


def test_a_quota(memory: MemGraph) -> None:
    memory.commands.remember("The vault holds the deploy key")
    memory.store.config.__dict__["max_memory_mb"] = 1
    with (memory.store.config.home / "padding").open("wb") as file:
        file.truncate(2_000_000)
    found = check(memory, "quota")
    assert (found.status, found.limit) == ("error", 1_000_000)
    assert not memory.health().healthy


def test_rows_behind_the_journal(open_store: Callable[..., Any]) -> None:
    with open_store() as store:
        memory = MemGraph(store)
        memory.save_episode("Case", "a lock", "restarted", "success")
        limited(memory, graph_lag_events=0)
        store._projector.rows.apply([], replace(store._projector.projection, seq=store._projector.projection.seq - 1))
        assert warned(memory, "graph lag").value == 1
        store.digest()
        assert check(memory, "graph lag").value == 0


@pytest.mark.embedded
def test_the_graph_is_compared_with_the_fold_and_not_with_itself(store: Any) -> None:
    memory = MemGraph(store)
    kept = store.insert_memory({"type": "semantic", "content": "Fact", "access_count": 1})
    projector = store._projector
    row = projector.rows.get("Memory", kept.id)
    change = Change("Memory", kept.id, row, {**row, "access_count": 7})
    projector.rows.apply(
        [change], projector.projection.with_digest(digest_after(projector.projection.digest, [change]))
    )
    found = [one for one in memory.health().checks if one.name == "graph"]
    assert [one.status for one in found] == ["error"], "its own digest and sums are right"
    assert not memory.health().healthy


def test_a_journal_that_was_changed(memory: MemGraph) -> None:
    memory.commands.remember("The vault holds the deploy key")
    assert memory.health().healthy
    change_payload(memory.store.config.home, "vault", "fault")
    assert [one.status for one in memory.health().checks if one.name == "journal"] == ["error"]


def test_a_view_has_no_health(memory: MemGraph) -> None:
    memory.commands.remember("The vault holds the deploy key")
    with memory.as_agent("MARS") as view, pytest.raises(ReadOnlyError, match="a view"):
        view.health()


@pytest.fixture
def doctor(memory: MemGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")

    def ask(*args: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["--home", str(memory.store.config.home), "doctor", *args])
        return result.exit_code, result.stdout

    return ask


@pytest.mark.embedded
def test_doctor_says_the_same_and_its_exit_code_counts_errors_alone(
    memory: MemGraph, doctor: Any, tmp_path: Path
) -> None:
    for number in range(11):
        memory.tasks.working.replace(f"s{number}", task="Debug")  # at the fake clock's time, which is long ago
    memory.close()
    code, printed = doctor("--json")
    document = json.loads(printed)
    assert (code, document["healthy"], document["errors"]) == (0, True, [])
    assert len(document["warnings"]) == 1
    assert {one["name"] for one in document["checks"]} == NAMES | {"settings", "key", "head"}
    code, printed = doctor()
    assert code == 0
    assert (
        "\nwarning: 11 working memories are older than 7 days, so they are void\n  to do: `memgraph session prune`"
        in printed
    )
    (tmp_path / "store" / "memgraph.db").chmod(0o644)
    code, printed = doctor("--json")
    document = json.loads(printed)
    assert (code, document["healthy"]) == (1, False)
    assert len(document["warnings"]) == 1
    assert document["errors"][0].startswith("other users may access")
