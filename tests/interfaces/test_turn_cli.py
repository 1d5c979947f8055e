"""``memgraph turn``, ``session autoswitch`` and ``session mode``: from the shell, with --json and with what is refused."""

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
    def invoke(*args: str, code: int = 0, stdin: str | None = None) -> str:
        settings = Settings(embedder=FakeEmbedder())
        result = CliRunner().invoke(cli, ["--home", str(tmp_path / "s"), *args], obj=settings, input=stdin)
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    invoke("task", "new", "Fix the login", "--id", "login", "--switch")
    invoke("task", "new", "Write the docs", "--id", "docs")
    return invoke


def test_a_turn_advises_asks_confirms_and_switches_only_when_allowed(run: Any) -> None:
    assert run("session", "autoswitch", "status") == "autoswitch of shell: off\n"
    assert run("turn", "hello") == "Task: login\n"
    assert run("turn", "Write the docs, please").splitlines() == [
        "Task: login",
        "The message seems to belong to docs (95 %). Autoswitch is off, so the task stays.",
    ]
    assert run("session", "mode", "supportive") == "mode of shell: supportive\n"
    assert run("turn", "Write the docs, please").splitlines()[2:] == [
        "? The message seems to belong to docs (“Write the docs”), and the session works on login. Which one is it about?",
        "  1  Switch to docs (“Write the docs”)  `memgraph task switch docs --session shell`",
        "  2  Interrupt login for it  `memgraph task switch docs --push --session shell`",
        "  3  Stay with login",
    ]
    refused = run("turn", "yes").splitlines()
    assert refused[0] == "Task: login"
    assert refused[1].startswith("? That chooses none of the options: name one by its number, or run its command.")
    assert "Confirmed" not in "".join(refused)
    assert run("turn", "Yes!", "--asked", "Use tokens?").splitlines()[1] == "Confirmed in login: Yes! (Use tokens?)"
    assert run("session", "autoswitch", "on") == "autoswitch of shell: on\n"
    assert "Autoswitch: on; mode: supportive" in run("session")
    assert run("turn", "-", stdin="Write the docs, please\n").splitlines() == [
        "Task: docs",
        "The message seems to belong to docs (95 %). The session switched to it.",
    ]
    assert run("session", "autoswitch", "off") == "autoswitch of shell: off\n"


def test_json_is_the_record_and_sessions_are_apart(run: Any) -> None:
    found = json.loads(run("turn", "Write the docs", "--session", "other", "--json"))
    assert (found["version"], found["session_id"], found["active_task"], found["decision"]) == (
        1,
        "other",
        None,
        "autoswitch_off",
    )
    run("session", "autoswitch", "on", "--session", "other")
    assert json.loads(run("turn", "Write the docs", "--session", "other", "--json"))["resolved_task"] == "docs"
    assert json.loads(run("turn", "Write the docs", "--json"))["resolved_task"] == "login"


def test_a_project_hides_tasks_of_others(run: Any) -> None:
    run("task", "new", "Pay the salaries", "--project", "hr")
    assert "salaries" not in run("turn", "Pay the salaries", "--project", "shop")
    assert "salaries" in run("turn", "Pay the salaries")


def test_what_is_refused(run: Any) -> None:
    assert "must not be empty" in run("turn", " ", code=1)
    assert "more than 1,000,000 characters" in run("turn", "-", stdin="x" * 1_000_001, code=1)
    assert run("turn", "-", stdin="x" * 1_000_000) == "Task: login\n"
    assert "on" in run("session", "autoswitch", "maybe", code=2)
    assert "supportive" in run("session", "mode", "loud", code=2)
