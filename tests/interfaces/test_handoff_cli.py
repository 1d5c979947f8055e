"""``memgraph handoff``, ``ledger`` and ``continuity``: from the shell, with --json and with what is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.test_task_cli import run  # noqa: F401 - a fixture


@pytest.fixture
def session(run: Any) -> Any:  # noqa: F811 - the fixture
    """Two tasks, a pin, a decision and a failure; the session works on the first task."""
    run("task", "new", "Fix the login", "--id", "login", "--switch")
    run("task", "add", "decision", "Use tokens")
    run("task", "new", "Write the docs", "--id", "docs")
    run("task", "add", "decision", "Write Markdown", "--task", "docs")
    run("pins", "add", "No downtime", "--kind", "constraint", "--task", "login")
    run("episode", "Expire the sessions of the login", "--reasoning", "It was quick", "--action", "Dropped the table",
        "--outcome", "failure", "--task", "login")  # fmt: skip
    return run


def test_a_task_is_handed_over(session: Any, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", "-b", "tokens", str(folder)], check=True)
    (folder / "login.py").write_text("x")
    made = json.loads(
        session("handoff", "create", "Login accepts tokens", "--from", "eng", "--to", "qa", "--artifact", "login.py", "--test", "expired tokens",
                "--issue", "slow", "--work-tree", str(folder), "--json")
    )  # fmt: skip
    assert (made["task_id"], made["state"], made["git_state"]["files_modified"]) == ("login", "open", ["login.py"])
    assert len(made["memory_ids"]) == 1
    shown = session("handoff", "show", made["id"][:8]).splitlines()
    assert shown[0].endswith("login  eng to qa  open  Login accepts tokens")
    assert "Needs testing: expired tokens" in shown
    session("task", "switch", "docs")
    page = session("handoff", "accept", made["id"][:8], "--agent", "qa").splitlines()
    assert page[0] == "# Continuity: Fix the login"
    assert (
        page.index("- No downtime") < page.index("- Done: Login accepts tokens") < page.index("- Decision: Use tokens")
    )
    assert "## Mistakes to avoid" in page
    assert "Markdown" not in "".join(page)
    assert page[-1] == "Accepted. Work on it: memgraph task switch login"
    assert "docs" in session("session", "show").splitlines()[0], "accepting switches nothing"
    switched = session("handoff", "accept", made["id"], "--agent", "qa", "--switch")
    assert switched.splitlines()[-1] == "Accepted. shell works on it now."
    assert session("session", "show").startswith("shell works on login")
    again = json.loads(session("handoff", "accept", made["id"], "--agent", "qa", "--json"))
    assert (again["handoff"]["accepted_by"], again["switched"]) == ("qa", None)
    assert json.loads(session("continuity", "--handoff", made["id"], "--agent", "qa", "--json"))["agent"] == "qa"
    assert session("continuity").startswith("# Continuity: Fix the login\n")
    assert session("handoff", "list", "--agent", "other") == "There are no handoffs.\n"
    assert "accepted by qa" in session("handoff", "list", "--task", "login")


def test_a_checkpoint_is_shown(session: Any) -> None:
    assert session("ledger") == "There are no ledgers.\n"
    session(
        "ledger", "checkpoint", "eng", "--task", "login", "--goal", "Tokens", "--stack", "python", "--completed", "docs"
    )
    assert session("ledger", "show", "eng").splitlines()[1:] == ["Goal: Tokens", "Stack: python"]
    assert session("ledger").endswith("UTC, works on login, 1 task completed\n")
    found = json.loads(session("ledger", "show", "eng", "--json"))
    assert found["context"] == {"tech_stack": ["python"], "patterns_learned": [], "current_goal": "Tokens"}
    assert "Tokens" in session("continuity", "--task", "login", "--agent", "eng")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["handoff", "create", "x"], 2, "Missing option '--from'"),
        (["handoff", "create", "x", "--from", "a", "--to", "a"], 1, "is the agent that hands over"),
        (["handoff", "create", " ", "--from", "a"], 1, "must not be empty"),
        (["handoff", "create", "x", "--from", "a", "--task", "nowhere"], 1, "`memgraph task list` shows the ids"),
        (["handoff", "create", "x", "--from", "a", "--session", "idle"], 1, "name one with --task"),
        (["handoff", "create", "x", "--from", "a", "--memory", "12345678"], 1, "no memory"),
        (["handoff", "show", "12345678"], 1, "no handoff with id '12345678'; `memgraph handoff list` shows the ids"),
        (["handoff", "accept", "12345678", "--agent", "b"], 1, "no handoff"),
        (["handoff", "accept", "12345678"], 2, "Missing option '--agent'"),
        (["continuity", "--session", "idle"], 1, "works on no task"),
        (["continuity", "--task", "a", "--handoff", "b"], 2, "exclude each other"),
        (["continuity", "--max-tokens", "5"], 2, "--max-tokens"),
        (["ledger", "checkpoint", "eng"], 1, "states nothing"),
        (["ledger", "show", "nobody"], 1, "`memgraph ledger list` shows the ids"),
    ],
)
def test_what_is_refused(session: Any, args: list[str], code: int, says: str) -> None:
    assert says in session(*args, code=code)
