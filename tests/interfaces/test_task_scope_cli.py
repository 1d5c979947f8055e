"""Scoped recall from the shell: ``--task``, ``--session``, ``--all-tasks``, ``--task-only`` and the session of the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder

QUERY = "rotate the signing keys"


@pytest.fixture
def needs_database() -> bool:
    return False


@pytest.fixture
def run(tmp_path: Path, make_engine: Any) -> Any:
    def invoke(*args: str, env: dict[str, str] | None = None, code: int = 0) -> Any:
        settings = Settings(embedder=FakeEmbedder(), engine=make_engine)
        result = CliRunner().invoke(cli, ["--home", str(tmp_path / "s"), *args], obj=settings, env=env)
        assert result.exit_code == code, result.output
        if code:
            return result.stderr
        return json.loads(result.stdout) if "--json" in args else result.stdout

    episode = ("--reasoning", "the keys were old", "--action", "rotate the keys", "--outcome", "success")
    for name in ("keys", "docs", "other"):
        invoke("task", "new", name.title(), "--id", name)
        invoke("episode", f"{QUERY} of {name}", *episode, "--task", name)
    invoke("episode", f"{QUERY} of everybody", *episode)
    invoke("task", "switch", "keys", "--session", "work")
    invoke("task", "add", "decision", f"{QUERY} at night", "--task", "keys")
    return invoke


def tasks_in(found: Any) -> list[str | None]:
    memories = [one["memory"] for one in found] if isinstance(found, list) else found["memories"]
    return sorted({one["task_id"] for one in memories}, key=str)


def test_an_episode_of_a_task_is_found_in_its_task_and_nowhere_else(run: Any) -> None:
    for command in ("recall", "search"):
        assert tasks_in(run(command, QUERY, "--json")) == [None]
        assert tasks_in(run(command, QUERY, "--task", "keys", "--json")) == [None, "keys"]
        assert tasks_in(run(command, QUERY, "--task", "keys", "--task-only", "--json")) == ["keys"]
        assert tasks_in(run(command, QUERY, "--all-tasks", "--json")) == [None, "docs", "keys", "other"]
        assert tasks_in(run(command, QUERY, "--session", "work", "--json")) == [None, "keys"]
        assert tasks_in(run(command, QUERY, "--session", "shell", "--json")) == [None]
        environment = {"MEMGRAPH_SESSION": "work"}
        assert tasks_in(run(command, QUERY, "--json", env=environment)) == [None, "keys"]
        assert tasks_in(run(command, QUERY, "--task", "docs", "--json", env=environment)) == [None, "docs"]
        assert tasks_in(run(command, QUERY, "--all-tasks", "--json", env=environment)) == [
            None,
            "docs",
            "keys",
            "other",
        ]


def test_lists_are_filtered_by_task_exactly(run: Any) -> None:
    listed = run("list", "--task", "keys", "--json")
    assert [one["content"].split(" Action")[0] for one in listed] == [listed[0]["content"].split(" Action")[0]]
    assert "of keys" in listed[0]["content"]
    assert run("list", "--task", "nowhere", "--json") == []


@pytest.mark.parametrize("command", ["recall", "search", "ask", "prompt"])
def test_an_unknown_task_is_refused(run: Any, command: str) -> None:
    refused = run(command, QUERY, "--task", "kyes", code=1)
    assert refused == "memgraph: no task with id 'kyes'; `memgraph task list` shows the ids\n"


def test_a_task_that_only_memories_name_is_known(run: Any) -> None:
    run(
        "episode",
        "Fix the printer",
        "--reasoning",
        "It is broken",
        "--action",
        "Mended it",
        "--outcome",
        "success",
        "--task",
        "loose",
    )
    for command in ("recall", "search", "ask", "prompt"):
        assert "Mended it" in run(command, "Fix the printer", "--task", "loose")


def test_a_question_is_answered_from_the_task(run: Any) -> None:
    assert "of docs" in run("ask", f"{QUERY} of docs", "--task", "docs")
    assert "of docs" not in run("ask", f"{QUERY} of docs")
    assert "of everybody" not in run("ask", QUERY, "--session", "work", "--task-only")
    assert "[task: docs] " in run("ask", QUERY, "--all-tasks")


def test_each_line_of_another_task_says_so(run: Any) -> None:
    run("task", "link", "keys", "docs")
    recalled = [line for line in run("recall", QUERY, "--task", "keys").splitlines() if "docs" in line]
    assert recalled
    assert all("[related task: docs] " in line for line in recalled)
    found = run("search", QUERY, "--task", "keys").splitlines()
    assert [line for line in found if "of docs" in line and "\t[related task: docs] " in line]
    assert not [line for line in found if "other" in line]
    everything = run("search", QUERY, "--all-tasks", "--limit", "50").splitlines()
    for name in ("keys", "docs", "other"):
        assert all(f"\t[task: {name}] " in line for line in everything if f"of {name}" in line)
    document = run("recall", QUERY, "--task", "keys", "--json")
    assert set(document["labels"].values()) == {"[related task: docs]"}
    assert document["related_ids"] == list(document["labels"])
    assert document["task_id"] == "keys"
    assert "decision" in document["task_items"].values()


def test_explain_prints_classes_and_what_was_overridden(run: Any, tmp_path: Path, make_engine: Any) -> None:
    run("remember", f"{QUERY} at night")
    settings = Settings(embedder=FakeEmbedder(), engine=make_engine)
    arguments = ["--home", str(tmp_path / "s"), "recall", QUERY, "--task", "keys", "--explain"]
    told = CliRunner().invoke(cli, arguments, obj=settings).stderr.splitlines()
    assert any("  authority: transcripts 0" in line for line in told)
    assert any(line.endswith("  decision") or "  decision  " in line for line in told), told
    assert any(" by dominance, +" in line or " by authority, " in line for line in told), told
