"""Metrics for Prometheus: the text is valid by Prometheus' own parser, says what is in the store, and nothing of what memories say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from memgraph import MemGraph
from memgraph.diagnostics import delivery
from memgraph.errors import ReadOnlyError
from memgraph.health.metrics import Metric, exposition, metrics_of
from memgraph.interfaces.cli.group import cli
from memgraph.store.compaction import compact
from memgraph.testing import FakeClock
from tests.tables import table

SECRET = "zq9999zq"


def parsed(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the samples by name and labels; counters by their names with ``_total``."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    assert all(family.documentation and family.type in {"counter", "gauge"} for family in families)
    return {
        sample.name: {tuple(one.labels.values()): one.value for one in family.samples}
        for family in families
        for sample in family.samples
    }


class TestExposition:
    def test_what_the_parser_reads_is_what_was_written(self) -> None:
        hard = 'a "quote", a \\ backslash,\na new line, {braces} and ü'
        metrics = [
            Metric("a_bytes", "gauge", "Says a \\ and\na line.", {(): 2.5}),
            Metric("b_total", "counter", "Of two kinds.", {(hard, "x"): 1e21, ("", "y"): 3}, ("one", "other")),
            Metric("c_seconds", "gauge", "Unknown.", {}),
        ]
        text = exposition(metrics)
        assert text.endswith("\n")
        assert "c_seconds" not in text
        assert parsed(text) == {"a_bytes": {(): 2.5}, "b_total": {(hard, "x"): 1e21, ("", "y"): 3.0}}
        assert [family.documentation for family in text_string_to_metric_families(text)] == ["Says a \\ and\na line.", "Of two kinds."]  # fmt: skip


@pytest.fixture
def filled(open_store: Callable[..., Any], tmp_path: Path) -> MemGraph:
    memory = MemGraph(
        open_store(
            diagnostics_file=str(tmp_path / "d.jsonl"), alert_dead_letters=str(tmp_path / "dead.jsonl"), max_memory_mb=7
        )
    )
    memory.commands.remember(f"Deploy {SECRET} on Tuesdays only", tags=[SECRET])
    memory.save_episode("Situation", "because", "acted", "success", project=SECRET, agent_name=SECRET)
    faded = memory.save_episode("Another situation", "why not", "rested", "failure", project=SECRET)
    memory.store.archive(faded.episode_id)
    memory.record_outcome(memory.recall(f"deploy {SECRET}").query_id, "love")
    memory.recall("deploy")
    memory.maintenance.sleep()
    memory.backup(tmp_path / f"{SECRET}.tar.gz")
    (tmp_path / "dead.jsonl").write_text('{"target":"webhook"}\n')
    (tmp_path / "dead.jsonl.1").write_text('{"target":"webhook"}\n' * 2)
    return memory


@pytest.mark.embedded
def test_metrics_of_a_store(filled: MemGraph, tmp_path: Path) -> None:
    assert delivery.flush(10.0)
    with (tmp_path / "d.jsonl").open("a") as stream:
        stream.write('{"kind":"security","severity":"critical"}\n{"kind":"memory"}\nno JSON\n[1]\n')
    text = exposition(metrics_of(filled.store))
    found = parsed(text)
    assert SECRET not in text
    store = filled.store
    assert found["memgraph_store_info"].popitem()[0][0] == store.store_id
    assert found["memgraph_journal_events_total"] == {(): store.reader.index.offset.seq}
    states = found["memgraph_memories"]
    assert (states["semantic", "in_force"], states["episodic", "in_force"], states["episodic", "archived"]) == (1, 1, 1)
    assert sum(states.values()) == 3
    assert found["memgraph_recalls_total"] == {(): 2}
    assert found["memgraph_recall_outcomes_total"] == {("positive",): 1}
    records = found["memgraph_diagnostic_records"]
    assert (records["security", "critical"], records["lifecycle", "info"], records["other", "other"]) == (1, 1, 3)
    assert found["memgraph_dead_letters"] == {(): 3}
    assert found["memgraph_store_limit_bytes"] == {(): 7e6}
    held = table(store.config.home, "event")
    assert found["memgraph_journal_bytes"] == {
        (): sum(len(one) for row in held for one in row if isinstance(one, bytes))
    }
    assert found["memgraph_archive_bytes"] == {(): 0}
    assert found["memgraph_graph_lag_events"] == {(): 1}  # when it was opened, the graph had not even the first event
    assert found["memgraph_backup_lag_events"] == {(): 1}  # the record of the backup itself
    assert found["memgraph_sleep_phases_left"] == found["memgraph_sleep_failed"] == {(): 0}
    for name in ("sleep_completed", "compress_completed", "backup"):
        assert found[f"memgraph_{name}_timestamp_seconds"][()] > 1.7e9


@pytest.mark.embedded
def test_what_has_not_happened_has_no_time(store: Any) -> None:
    found = parsed(exposition(metrics_of(store)))
    assert "memgraph_backup_timestamp_seconds" not in found
    assert "memgraph_sleep_completed_timestamp_seconds" not in found
    assert found["memgraph_recalls_total"] == found["memgraph_memories_pinned"] == {(): 0}


def test_the_graphs_lag_is_what_it_was_before_it_was_caught_up(open_store: Callable[..., Any]) -> None:
    with open_store() as store:
        for number in range(3):
            store.insert_memory({"type": "semantic", "content": f"Fact {number}"})
        events = store.reader.index.offset.seq
    assert open_store().graph_lag() in {0, events}  # the graph in memory begins anew; the embedded one is where it was


def test_a_view_has_none(store: Any) -> None:
    store.insert_memory({"type": "semantic", "content": "A fact"})
    with store.at(store.now()) as view, pytest.raises(ReadOnlyError, match="no metrics"):
        metrics_of(view)


@pytest.mark.embedded
def test_the_command(filled: MemGraph) -> None:
    config = filled.store.config
    filled.close()
    environment = {"MEMGRAPH_KEYS_HOME": str(config.keys_home), "MEMGRAPH_EMBEDDING_MODEL": "none"}
    done = CliRunner().invoke(cli, ["--home", str(config.home), "stats", "--prometheus"], env=environment)
    assert done.exit_code == 0, done.output
    found = parsed(done.stdout)
    assert found["memgraph_recalls_total"] == {(): 2}
    assert found["memgraph_graph_lag_events"] == {(): 0}


@pytest.mark.parametrize("other", [["--json"], ["--as-of", "2026-01-01"], ["--agent", "planner"]])
def test_the_command_has_one_form(tmp_path: Path, other: list[str]) -> None:
    assert CliRunner().invoke(cli, ["--home", str(tmp_path / "none"), "stats", "--prometheus", *other]).exit_code == 2


def test_without_a_store_there_are_no_metrics(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["--home", str(tmp_path / "none"), "stats", "--prometheus"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert "there is no store" in done.stderr
    assert not (tmp_path / "none").exists()


def test_the_archive_is_counted_by_itself(open_store: Any, clock: FakeClock) -> None:
    with open_store(clock=clock) as store:
        for number in range(6):
            store.insert_memory({"type": "episodic", "content": f"Day {number}"})
            clock.advance(days=1)
        config = store.config
    compact(config, before="2027-01-01", clock=clock)
    with open_store(clock=clock) as store:
        found = {one.name: one.samples for one in metrics_of(store)}
        assert found["memgraph_archive_bytes"] == {(): sum(len(row[-1]) for row in table(config.home, "archive"))}
        assert found["memgraph_archive_bytes"][()] > 0
