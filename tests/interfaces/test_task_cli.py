"""``memgraph task``: from the shell, with --json and with what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def invoke(*args: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, ["--home", str(tmp_path / "s"), *args], obj=Settings(embedder=FakeEmbedder()))
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    return invoke


def test_a_new_task_says_how_to_work_on_it(run: Any) -> None:
    assert run("task", "new", "Fix the login") == (
        "Task fix-the-login: Fix the login\n`memgraph task switch fix-the-login` works on it.\n"
    )
    assert run("task", "new", "Write the docs", "--switch") == "Task write-the-docs: Write the docs (current)\n"


def test_two_tasks_in_a_session(run: Any) -> None:
    assert json.loads(run("task", "new", "Fix the login", "--switch", "--json"))["id"] == "fix-the-login"
    run("task", "new", "Write the docs", "--project", "shop")
    run("task", "add", "goal", "Users can sign in")
    run("task", "add", "decision", "Use tokens", "--note", "the API needs them")
    run("task", "set", "branch=tokens", "phase=review")
    assert (
        run("task", "switch", "write-the-docs", "--push")
        == "shell works on write-the-docs; interrupted: fix-the-login\n"
    )
    run("task", "add", "question", "Which format?")
    question = json.loads(run("task", "show", "--json"))["open_questions"][0]
    run("task", "done", question["id"][:8], "--note", "Markdown")
    assert json.loads(run("task", "show", "--json"))["open_questions"] == []
    assert json.loads(run("task", "show", "--at", str(question["seq"]), "--json"))["open_questions"] == [question]
    assert run("task", "resume") == "shell works on fix-the-login\n"
    shown = run("task", "show").splitlines()
    assert shown[:2] == ["fix-the-login (active): Fix the login", "Goal: Users can sign in"]
    assert shown[3].endswith("Use tokens (because the API needs them)")
    assert shown[-2:] == ["  branch = tokens", "  phase = review"]
    assert "* fix-the-login" in run("task")
    assert run("task", "link", "fix-the-login", "write-the-docs") == "fix-the-login may read write-the-docs\n"
    related = run("task", "show", "--related").splitlines()[len(shown) + 1 :]
    assert related == ["[related task: write-the-docs] write-the-docs (active): Write the docs"]
    assert [one["task_id"] for one in json.loads(run("task", "show", "--related", "--json"))["related"]] == [
        "write-the-docs"
    ]
    assert "may read no other task" in run("task", "unlink", "fix-the-login", "write-the-docs")
    assert "closed" in run("task", "close", "fix-the-login", "--reason", "done")
    assert [one["id"] for one in json.loads(run("task", "list", "--json"))] == ["write-the-docs"]
    assert len(json.loads(run("task", "list", "--all", "--json"))) == 2
    run("task", "archive", "write-the-docs")
    assert "works on write-the-docs" in run("task", "resume", "write-the-docs")
    assert run("task", "status", "write-the-docs").split()[1] == "active"
    run("task", "status", "write-the-docs", "suspended")
    assert json.loads(run("task", "status", "write-the-docs", "--json"))["status"] == "suspended"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["switch", "nowhere"], 1, "no task with id 'nowhere'; `memgraph task list` shows the ids"),
        (["switch", "closed"], 1, "is closed"),
        (["resume", "closed"], 1, "`memgraph task status closed active` opens it again"),
        (["resume"], 1, "memgraph: --session: has interrupted no task that is still open; name the task to work on"),
        (["add", "goal", "x", "--task", "closed"], 1, "memgraph: --task: names a task that is closed"),
        (["switch", "closed"], 1, "memgraph: task: names a task that is closed"),
        (["link", "open", "open"], 1, "is the task itself"),
        (["link", "open", "closed"], 1, "names a task that is closed"),
        (["add", "decision", "x", "--task", "closed"], 1, "is closed"),
        (["add", "decision", "x", "--task", "nowhere"], 1, "no task with id 'nowhere'"),
        (["add", "decision", "x"], 1, "works on no task"),
        (["add", "decision", " ", "--task", "open"], 1, "must not be empty"),
        (["add", "constraint", "x" * 10_000, "--task", "open"], 1, "at most 800 characters"),
        (["add", "action", "x", "--note", "y", "--task", "open"], 2, "--note has no meaning"),
        (["done", "12345678", "--task", "open"], 1, "no item that holds in the task"),
        (["set", "branch", "--task", "open"], 2, "is not NAME=VALUE"),
        (["status", "open", "finished"], 2, "Invalid value"),
        (["show", "open", "--at", "0"], 1, "memgraph: --at: is before the task was created"),
        (["new", ""], 1, "must not be empty"),
    ],
)
def test_what_is_refused(run: Any, args: list[str], code: int, says: str) -> None:
    run("task", "new", "Open", "--id", "open")
    run("task", "new", "Closed", "--id", "closed")
    run("task", "close", "closed")
    assert says in run("task", *args, code=code)
    run("task", "add", "decision", "It still works", "--task", "open")


def test_what_a_session_is_doing(run: Any) -> None:
    assert run("session") == "No task.\nNo working memory.\n"
    run("task", "new", "Fix the login", "--switch")
    run("session", "set", "--doing", "Debug", "--context", "a", "--context", "b", "--pending", "c", "--notes", "d")
    run("session", "about", "Webhooks")
    shown = run("session", "show").splitlines()
    assert shown[:-1] == [
        "shell works on fix-the-login", "About: Webhooks", "Doing: Debug", "Context:", "  a", "  b", "Pending:", "  c", "Notes: d",
    ]  # fmt: skip
    document = json.loads(run("session", "--json"))
    assert (document["working_memory"]["pending"], document["context"]["context"]) == (["c"], "Webhooks")
    assert json.loads(run("session", "show", "--session", "other", "--json"))["working_memory"] is None
    assert run("session", "clear") == "Cleared.\n"
    assert run("session", "clear") == "There was no working memory.\n"
    run("session", "keep", "phone", "Ann is on the phone", "--for", "30m")
    run("session", "keep", "mine", "Of the task", "--task", "fix-the-login")
    assert "Ann is on the phone" in run("session", "kept")
    assert "Of the task" in run("session", "kept", "--task", "fix-the-login")
    assert "Ann is on the phone" in run("session", "promote", "phone")
    assert run("session", "kept") == "Nothing is kept.\n"
    assert run("session", "prune") == "0 texts removed\n"
    assert "is no time" in run("session", "keep", "x", "y", "--for", "soon", code=2)
    assert "is empty" in run("session", "set", code=1)
    assert "has not expired" in run("session", "promote", "phone", code=1)
