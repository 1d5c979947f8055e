"""``memgraph sleep``: what it prints, what it leaves, and how it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memgraph
from memgraph.embedding import NoEmbedder
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.cli.learning.sleep import _PHASES, _line
from memgraph.lifecycle.sleep import PHASES
from memgraph.model.results.learning import PhaseReport
from memgraph.testing import FakeClock, FakeEmbedder

Run = Callable[..., Any]
TEXT = "Deploys of the shop run on Tuesdays after the tests have passed"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run a command on a store with two facts that say the same, and one whose time is over."""
    home = tmp_path / "store"
    today = datetime.now(UTC)
    clock = FakeClock(today - timedelta(days=9))
    with memgraph.MemGraph.open(home, embedder=FakeEmbedder(dimension=64), clock=clock) as memory:
        for text in (TEXT, f"**{TEXT}**!", f"The freeze holds until {today - timedelta(days=3):%Y-%m-%d}"):
            memory.store.insert_memory({"type": "semantic", "content": text, "project_id": "shop"})

    def call(*args: object) -> Any:
        return CliRunner().invoke(
            cli,
            ["--home", str(home), *map(str, args)],
            prog_name="memgraph",
            obj=settings(),
        )

    return call


def test_it_says_what_each_phase_did(run: Run) -> None:
    result = run("sleep")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(_PHASES)
    assert "1 expired" in lines[0]
    assert "1 merged" in lines[1]
    assert lines[-1].startswith("3 memories and records were changed, made or linked, in ")
    again = run("sleep").stdout.splitlines()
    assert again[-1].startswith("Nothing had to change; that took ")


def test_classes_of_failures_are_listed_if_there_are_several() -> None:
    def told(**counts: int) -> str:
        return _line(PhaseReport(name="errors", counts=counts))

    assert told(failures=198, internal=198, external=0).endswith(" s  198 failures")
    assert told(failures=3, internal=2, external=1).endswith(" s  3 failures, 2 internal, 1 external")


def test_one_phase_and_as_json(run: Run) -> None:
    report = json.loads(run("sleep", "--phase", "near-duplicates", "--json").stdout)
    assert [phase["name"] for phase in report["phases"]] == ["near-duplicates"]
    assert report["phases"][0]["counts"] == {"looked_at": 3, "merged": 1, "by_words": 0}
    assert len(report["phases"][0]["memory_ids"]) == 2
    assert (report["complete"], report["left"]) == (True, [])


def test_both_wordings_of_what_was_merged_are_shown(tmp_path: Path, settings: Callable[[], Any]) -> None:
    texts = [
        "The gateway pods are restarted by the operator at night",
        "Gateway pods are restarted by an operator at night",
    ]
    clock = FakeClock()
    with memgraph.MemGraph.open(tmp_path / "store", embedder=NoEmbedder(), clock=clock) as memory:
        first = memory.store.insert_memory({"type": "semantic", "content": texts[0]})
        clock.advance(days=1)
        other = memory.store.insert_memory({"type": "semantic", "content": texts[1]})
        assert memory.commands.wordings(other.id) == []
        clock.advance(days=1)
        memory.maintenance.sleep(phases=["near-duplicates"])
        kept = memory.store.get_memory(other.id)
        assert (kept.content, memory.commands.wordings(other.id)) == (texts[1], texts[:1])
        assert memory.commands.wordings(first.id) == []
        memory.store.suppress(first.id)
        assert memory.commands.wordings(other.id) == []
        memory.store.unsuppress(first.id)
        memory.store.rebuild()
    arguments = ["--home", str(tmp_path / "store"), "show", other.id]
    shown = CliRunner().invoke(cli, arguments, obj=settings()).stdout
    assert f"other_wording           {texts[0]}" in shown
    assert (
        json.loads(CliRunner().invoke(cli, [*arguments, "--json"], obj=settings()).stdout)["other_wordings"]
        == texts[:1]
    )
    past = CliRunner().invoke(cli, [*arguments, "--json", "--as-of", "2100-01-01"], obj=settings())
    assert json.loads(past.stdout)["other_wordings"] == texts[:1]


def test_without_time_all_is_left(run: Run) -> None:
    said = run("sleep", "--max-seconds", 0).stdout.splitlines()
    assert said[-1] == f"Left for the next sleep: {', '.join(_PHASES)}."


def test_what_is_no_phase_is_refused(run: Run) -> None:
    result = run("sleep", "--phase", "dream")
    assert (result.exit_code, "dream" in result.output) == (2, True)
    for wrong in (-1, "nan", "inf", "soon"):
        assert run("sleep", "--max-seconds", wrong).exit_code == 2


def test_one_is_counted_in_the_singular() -> None:
    counts = {"looked_at": 2, "failures": 1, "communities": 1, "floors_set": 1, "last_traces": 2, "episodes": 1_000}
    line = _line(PhaseReport(name="compress", counts=counts))
    assert line.endswith("2 looked at, 1 failure, 1 community, 1 floor set, 2 last traces, 1,000 episodes")


def test_the_phases_are_those_of_the_lifecycle() -> None:
    assert [phase.name for phase in PHASES] == _PHASES
