"""``--as-of`` and ``--recorded`` on the commands that read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memgraph
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeClock, FakeEmbedder

EARLY, LATE = "The disk of the runner was full", "The cache of the runner was cold"
RECORDED = "2026-02-01"
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hold two memories, of 2021 and 2023, that contradict each other; recorded in 2026."""
    folder = tmp_path_factory.mktemp("past")
    with memgraph.MemGraph.open(
        folder / "store", keys_home=folder / "keys", embedder=FakeEmbedder(64), clock=FakeClock(f"{RECORDED}T09:00:00Z")
    ) as memory:
        early, late = (
            memory.store.insert_memory({"type": "episodic", "content": text, "occurred_at": f"{year}-05-01"}).id
            for text, year in ((EARLY, 2021), (LATE, 2023))
        )
        memory.store.link(late, "CONTRADICTS", early)
    return folder / "store"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, home: Path) -> Run:
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(home.parent / "keys"))

    def call(*args: object, at: Path = home) -> Any:
        return CliRunner().invoke(
            cli, ["--home", str(at), *map(str, args)], prog_name="memgraph", obj=Settings(embedder=FakeEmbedder(64))
        )

    return call


@pytest.fixture
def then(run: Run) -> Run:
    """Run a command on 2022 that must succeed, and return its document."""

    def call(*args: object) -> Any:
        result = run(*args, "--as-of", "2022-01-01", "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return call


def test_what_reads_reads_the_past(then: Run) -> None:
    assert [entry["content"] for entry in then("list")] == [EARLY]
    assert then("stats")["total"] == 1
    assert [found["memory"]["content"] for found in then("search", "runner")] == [EARLY]
    recalled = then("recall", "the runner is slow")
    assert [memory["content"] for memory in recalled["memories"]] == [EARLY]
    assert recalled["retrieved_at"] == "2022-01-01T23:59:59.999Z"
    shown = then("show", recalled["memories"][0]["id"][:8])
    assert (shown["memory"]["content"], shown["links"]) == (EARLY, [])
    assert [memory["content"] for memory in then("export")["memories"]] == [EARLY]
    assert len(then("ask", "runner")["data"]["ids"]) == 1


@pytest.mark.parametrize(
    "command", [["contradictions"], ["contradictions", "list"], ["proposals"], ["proposals", "list"]]
)
def test_lists_of_groups_read_the_past(run: Run, then: Run, command: list[str]) -> None:
    assert then(*command) == []
    now = json.loads(run(*command, "--json").stdout)
    assert len(now) == (command[0] == "contradictions")


def test_a_change_of_the_past_is_refused(run: Run, then: Run) -> None:
    (entry,) = then("list")
    result = run("contradictions", "--as-of", "2026-02-01", "dismiss", entry["id"], entry["id"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "which is read-only" in result.stderr
    assert run("remember", "--as-of", "2022-01-01", "text").exit_code == 2


def test_recorded_is_another_question(run: Run) -> None:
    result = run("list", "--as-of", "2022-01-01", "--recorded")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is before the first recorded event, at 2026-02-01T09:00:00.000Z" in result.stderr
    assert json.loads(run("stats", "--as-of", RECORDED, "--recorded", "--json").stdout)["total"] == 2
    alone = run("list", "--recorded")
    assert (alone.exit_code, "--as-of" in alone.stderr) == (2, True)


@pytest.mark.parametrize(
    ("when", "problem"), [("soon", "is not a date"), ("", "is not a date"), ("1999-12-31", "event, at 2021")]
)
def test_a_moment_outside_of_history_is_refused_in_one_line(run: Run, when: str, problem: str) -> None:
    result = run("list", "--as-of", when)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith("memgraph: --as-of: ")
    assert problem in result.stderr


def test_the_future_is_now_and_that_is_said(run: Run) -> None:
    result = run("stats", "--as-of", "2999-01-01", "--json")
    assert (result.exit_code, json.loads(result.stdout)["total"]) == (0, 2)
    assert "is in the future" in result.stderr


def test_where_no_store_is_none_is_made(run: Run, tmp_path: Path) -> None:
    result = run("list", "--as-of", "2022-01-01", at=tmp_path / "none")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no store at" in result.stderr
    assert not (tmp_path / "none").exists()


CACHED = """commit 1111111111111111111111111111111111111111
Author: Ada <ada@example.org>
Date:   Mon Mar 3 10:00:00 2025 +0000

    Cache the tide tables for an hour because each request took two seconds

    The harbour's server answers slowly, so every page waited for it, and people who wanted to know when the boats could leave
    went to read the board at the quay instead of ours.

M\tsrc/tides.py
"""
REVERTED = """commit 2222222222222222222222222222222222222222
Author: Bob <bob@example.org>
Date:   Tue Apr 8 10:00:00 2025 +0000

    Revert "Cache the tide tables for an hour because each request took two seconds"

    This reverts commit 1111111111111111111111111111111111111111.

    The cache served tables of yesterday because its key lacks the day, so two boats that had trusted our page in the morning
    lay on the sand until the water came back in the afternoon.

M\tsrc/tides.py

"""


def test_an_end_lies_on_the_day_on_which_it_happened_whoever_recorded_it(run: Run, tmp_path: Path) -> None:
    home, log = tmp_path / "store", tmp_path / "tides.log"

    def done(*args: object) -> Any:
        result = run(*args, "--json", at=home)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    def known(when: str) -> list[str]:
        return sorted(entry["content"][:5] for entry in done("list", "--as-of", when))

    for text in (CACHED, REVERTED + CACHED):  # the revert is read later, as new commits are
        log.write_text(text)
        done("ingest", "git", log)
    assert (known("2025-04-07"), known("2025-04-09")) == (["Cache"], ["Rever"])
    (revert,) = done("list")
    done("invalidate", revert["id"], "--at", "2025-06-01")
    assert (known("2025-05-31"), known("2025-06-02")) == (["Rever"], [])
    churn = next(one["points"] for one in done("viz", "series", "--bucket", "day") if one["name"] == "churn")
    ends = [(point["at"], point["group"]) for point in churn if point["value"]]
    assert ends == [("2025-04-08", "superseded"), ("2025-04-08", "invalidated"), ("2025-06-01", "invalidated")]
