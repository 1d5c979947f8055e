"""What an agent says from a shell: ``observe``, ``episode``, ``feedback``, ``outcome``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli

Run = Callable[..., Any]
EPISODE = ["episode", "Book a table", "--reasoning", "a budget", "--action", "the cheapest", "--outcome", "success"]


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run one command in this process, against one store."""

    def call(*args: object) -> Any:
        return CliRunner().invoke(
            cli,
            ["--home", str(tmp_path / "store"), *map(str, args)],
            prog_name="memgraph",
            obj=settings(),
        )

    return call


@pytest.fixture
def said(run: Run) -> Run:
    """Run a command that must succeed, and return its JSON."""

    def call(*args: object) -> Any:
        result = run(*args, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return call


def test_the_loop_from_a_shell(run: Run, said: Run) -> None:
    episode_id = said(*EPISODE, "--project", "trips", "--agent", "dining", "--tag", "food", "--tier", "sensitive")[
        "episode_id"
    ]
    judged = said("feedback", episode_id[:8], "meh", "--comment", "too loud")
    assert judged["user_feedback"].endswith(" meh: too loud")
    assert judged | {"user_feedback": ""} == {"episode_id": episode_id, "outcome": "negative", "user_feedback": ""}

    observe = [
        "observe",
        "Avoid the cheapest table",
        "--episode",
        episode_id[:8],
        "--outcome",
        "failure",
        "--confidence",
        "0.9",
    ]
    first, second = said(*observe), said(*observe)
    # who has no name may not have what is sensitive, and so is not told that it is known; sleep merges the copies
    assert (first["action"], second["action"]) == ("created", "created")
    kept = said("show", first["memory_id"])["memory"]
    assert (kept["confidence"], kept["privacy_tier"], kept["project_id"]) == (0.9, "sensitive", "trips")

    assert said("recall", "book a table", "--project", "trips")["memories"] == []
    why = ("--agent", "dining", "--justification", "to book the table that the user asked for")
    recalled = said("recall", "book a table", "--project", "trips", *why)
    recorded = said(
        "outcome", recalled["query_id"], "success", "--used", first["memory_id"][:8], "--overridden", episode_id
    )
    assert recorded["used"] == [first["memory_id"]]
    assert recorded["overridden"] == [episode_id]


def test_an_episode_of_a_task_says_how_it_is_recalled(run: Run, said: Run) -> None:
    told = run(*EPISODE, "--task", "T 17")
    assert "recalled only with --task 'T 17' or --all-tasks" in told.stderr
    assert said("recall", "book a table")["memories"] == []
    assert len(said("recall", "book a table", "--task", "T 17")["memories"]) == 1
    assert run(*EPISODE).stderr == ""


def test_each_command_reports_what_it_did(run: Run) -> None:
    told = [run(*EPISODE), run("observe", "Tables are rare"), run("observe", "Tables are rare")]
    assert [result.exit_code for result in told] == [0, 0, 0]
    episode_id = told[0].stdout.split(";")[0].removeprefix("Recorded: ")
    assert f"memgraph feedback {episode_id} love|like|meh" in told[0].stdout
    assert told[1].stdout.startswith("Observed: ")
    assert told[2].stdout.startswith("Already known, confirmed: ")
    liked = run("feedback", episode_id, "love")
    assert liked.stdout.startswith("Outcome is now positive: Book a table.")
    run("forget", "Tables are rare")
    left_out = run("observe", "Tables are rare")
    assert (left_out.exit_code, left_out.stdout) == (0, "")
    assert "left out" in left_out.stderr


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["observe", " "], 1),
        (["observe", "a", "--confidence", "2"], 2),
        (["observe", "a", "--valid-at", "soon"], 1),
        (["observe", "a", "--episode", "12345678"], 1),
        (["observe", "a", "--outcome", "great"], 2),
        (["episode", "a"], 2),
        (["feedback", "12345678", "like"], 1),
        (["feedback", "12345678", "great"], 2),
        (["outcome", "00000000-0000-4000-8000-000000000000", "success"], 1),
        (["outcome", "no id", "success"], 1),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else str(one),
)
def test_what_cannot_be_is_refused(run: Run, args: list[str], code: int) -> None:
    result = run(*args)

    assert (result.exit_code, result.stdout) == (code, "")
    if code == 1:
        assert result.stderr.startswith("memgraph: ")
        assert result.stderr.count("\n") == 1
