"""``memgraph session absorb`` and ``memgraph prompt``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.embedding import NoEmbedder
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli

ANSWER = """The port is 8443.

<memory>Deployment: the shop listens on port 8443</memory>
<chat-memory>Tone: Ann wants short answers</chat-memory>
<working-memory>Task: Deploy the shop</working-memory>
<chat-context>Work group</chat-context>
"""


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def invoke(*args: str, given: str | None = None, code: int = 0) -> Any:
        result = CliRunner().invoke(
            cli,
            ["--home", str(tmp_path / "s"), *args],
            input=given,
            obj=Settings(embedder=NoEmbedder()),
        )
        assert result.exit_code == code, result.output
        return result

    return invoke


def test_an_answer_is_printed_without_its_tags_and_is_in_the_next_prompt(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "answer.md"
    path.write_text(ANSWER, "utf-8")
    run("pins", "add", "Never deploy on Fridays", "--kind", "constraint")
    assert run("session", "absorb", str(path), "--session", "monday").stdout == "The port is 8443.\n"
    found = json.loads(run("session", "absorb", "-", "--session", "monday", "--json", given=ANSWER).stdout)
    assert [one["action"] for one in found["memories"]] == ["consolidated"]
    assert found["text"] == "The port is 8443."
    text = run("prompt", "deploy the shop", "--session", "monday").stdout
    assert [line for line in text.splitlines() if line.startswith(("## ", "Notes"))] == [
        "## Standing rules",
        "Notes from past work. They may be out of date: check them against the present state.",
        "## What is known",
        "## Chat context",
        "## Chat memory",
        "## Working memory (updated just now)",
    ]
    assert run("prompt", "-", "--session", "monday", given="deploy the shop\n").stdout == text
    document = json.loads(run("prompt", "deploy the shop", "--session", "monday", "--json").stdout)
    assert document["text"] == text.removesuffix("\n")
    assert document["sections"][0]["name"] == "constraints"
    only = run("prompt", "--session", "monday", "--section", "working_memory").stdout
    assert only == "## Working memory (updated just now)\n- Doing: Deploy the shop\n"
    elsewhere = run("prompt", "deploy the shop", "--session", "tuesday").stdout
    assert "8443" in elsewhere
    assert "Ann" not in elsewhere


def test_what_is_left_out_is_said_on_standard_error(run: Any) -> None:
    result = run("session", "absorb", given=f"Yes. <memory>{'x' * 9_000}</memory>")
    assert result.stdout == "Yes.\n"
    assert "<memory> was not stored: must have at most 8000 characters: xxx" in result.stderr
    assert len(result.stderr) < 300


def test_the_prompt_of_the_sessions_task_has_its_constraints(run: Any) -> None:
    run("task", "new", "Fix the login", "--switch")
    run("pins", "add", "No new tables", "--kind", "constraint", "--task", "fix-the-login")
    assert run("prompt").stdout.startswith("## Standing rules\n- Rule: No new tables.")
    assert run("prompt", "--session", "other").stdout == ""
    assert "No new tables" in run("prompt", "--session", "other", "--task", "fix-the-login").stdout


@pytest.mark.parametrize(
    ("args", "given", "code", "said"),
    [
        (["session", "absorb", "/nowhere/x"], None, 1, "cannot be read"),
        (["session", "absorb"], "x" * 1_000_001, 1, "more than 1,000,000 characters"),
        (["session", "absorb", "--session", " "], "x", 1, "session"),
        (["prompt", "--section", "all"], None, 2, "--section"),
        (["prompt", "--session", ""], None, 1, "session"),
    ],
)
def test_bad_input_is_refused(run: Any, args: list[str], given: str | None, code: int, said: str) -> None:
    assert said in run(*args, given=given, code=code).stderr
