"""``memgraph proposals``: what was learned, approved, rejected and taken back on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder

STEPS = ["Run the checks", "Write the changelog", "Tag the release"]


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., tuple[int, str]]:
    """Run a command on a store with one proposal, and return its exit code and what it printed."""
    home = tmp_path / "store"
    with MemGraph.open(home, embedder=FakeEmbedder(dimension=64)) as memory:
        done = " ".join(f"{number}. {step}." for number, step in enumerate(STEPS, start=1))
        for n in range(3):
            memory.save_episode(f"Release version 1.{n}", "All was green.", done, "success", build_id=f"b{n}")
        assert memory.procedures.learn().proposed == 1

    def call(*args: str) -> tuple[int, str]:
        result = CliRunner().invoke(
            cli,
            ["--home", str(home), "proposals", *args],
            prog_name="memgraph",
            obj=settings(),
        )
        return result.exit_code, result.output

    return call


def test_a_proposal_is_shown_approved_taken_back_and_rejected(run: Callable[..., tuple[int, str]]) -> None:
    code, said = run()
    assert code == 0
    assert (
        "When release version: seen in 3 builds, it worked in 100%\n   1. Run the checks\n   2. Write the changelog\n"
        in said
    )
    assert json.loads(run("--json")[1]) == json.loads(run("list", "--json")[1])
    (found,) = json.loads(run("list", "--json")[1])
    assert (found["state"], found["steps"]) == ("proposed", STEPS)

    code, said = run("approve", found["id"][:8])
    assert (code, said) == (
        0,
        f"Approved: when release version. `memgraph proposals reopen {found['id']}` undoes this.\n",
    )
    assert run("list") == (0, "No procedure awaits approval.\n")
    assert "(in force)" in run("list", "--all")[1]

    assert json.loads(run("reopen", found["id"], "--json")[1])["state"] == "proposed"
    assert run("reject", found["id"])[1].startswith("Rejected: ")
    assert [one["state"] for one in json.loads(run("list", "--all", "--json")[1])] == ["rejected"]


def test_what_is_no_proposal_is_refused(run: Callable[..., tuple[int, str]]) -> None:
    code, said = run("approve", "00000000-0000-4000-8000-000000000000")
    assert (code, said.count("\n")) == (1, 1)
