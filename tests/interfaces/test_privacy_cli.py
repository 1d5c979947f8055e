"""Privacy from the command line: tiers and domains that are given, and what the owner finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., Any]:
    """Run one command in this process, against one store."""

    def call(*args: str) -> Any:
        line = ["--home", str(tmp_path / "store"), *args]
        return CliRunner().invoke(cli, line, prog_name="memgraph", obj=settings())

    return call


def test_remember_takes_a_tier_and_a_domain(run: Any) -> None:
    assert run("remember", "The key is under the mat", "--tier", "private", "--context", "journal").exit_code == 0
    assert run("remember", "The plan is to call Ann", "--context", "financial").exit_code == 0
    (first, second) = json.loads(run("list", "--json", "--sort-by", "created").stdout)[::-1]
    assert (first["privacy_tier"], second["privacy_tier"]) == ("private", "sensitive")


@pytest.mark.parametrize("command", [["remember", "The key"], ["observe", "The key is under the mat"]])
def test_a_private_memory_of_no_domain_is_told_to_be_nobodys(run: Any, command: list[str]) -> None:
    result = run(*command, "--tier", "private")
    assert result.exit_code == 0
    assert "no agent may have it" in result.stderr
    assert "no agent may have it" not in run(*command, "--tier", "private", "--context", "journal").stderr


def test_the_owner_finds_private_memories_by_their_text(run: Any) -> None:
    run("remember", "The key is under the mat", "--tier", "private", "--context", "journal")
    run("remember", "The plan is to call Ann")
    assert "under the mat" not in run("search", "key", "--json").stdout
    (found,) = json.loads(run("list", "--match", "key mat", "--json").stdout)
    assert found["content"] == "The key is under the mat"
    assert json.loads(run("list", "--match", "key mat", "--tier", "public", "--json").stdout) == []
    assert json.loads(run("list", "--match", "key mat", "--json", "--agent", "planner").stdout) == []
    assert run("pin", "--match", "key mat", "--yes").exit_code == 0


def test_feedback_does_not_repeat_what_is_not_public(run: Any) -> None:
    words = [
        "episode",
        "Book a doctor",
        "--reasoning",
        "asked",
        "--action",
        "called the clinic",
        "--outcome",
        "success",
    ]
    saved = json.loads(run(*words, "--context", "health", "--json").stdout)["episode_id"]
    refused = run("feedback", saved, "meh", "--agent", "planner")
    assert refused.exit_code == 1
    assert "no episode with id" in refused.stderr
    given = run("feedback", saved, "meh")
    assert given.exit_code == 0
    assert "clinic" not in given.output
