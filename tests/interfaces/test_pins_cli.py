"""``memgraph pins`` and ``forget --pins``."""

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
    def invoke(*args: str, given: str | None = None, code: int = 0) -> str:
        result = CliRunner().invoke(
            cli,
            ["--home", str(tmp_path / "s"), *args],
            input=given,
            obj=Settings(embedder=FakeEmbedder()),
        )
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    return invoke


def test_a_pin_from_the_shell(run: Any, tmp_path: Path) -> None:
    made = json.loads(run("pins", "add", "Never deploy on Fridays", "--kind", "constraint", "--json"))
    pin_id = made["pin"]["id"]
    assert "Pinned already, and left as it is" in run("pins", "add", "never deploy on fridays")
    assert run("pins") == f"{pin_id[:8]}  constraint  Never deploy on Fridays\n"
    assert run("pins", "list", "--kind", "fact") == "There are no pins.\n"
    assert "is a pin" in run("forget", pin_id, code=1)
    assert "Edited" in run("pins", "edit", pin_id[:8], "--text", "Never deploy on Mondays")
    assert "is a pin" in run("edit", pin_id, "--tier", "private", code=1)
    run("pins", "edit", pin_id, "--tier", "private", "--domain", "work")
    assert json.loads(run("show", pin_id, "--json"))["memory"]["privacy_tier"] == "private"
    run("pins", "edit", pin_id, "--tier", "public", "--domain", "")
    confirm = run("pins", "remove", pin_id).splitlines()[1].split("memgraph ")[1].split()
    cancel = ["pins", "cancel", *confirm[2:]]
    assert "the pin stays" in run(*cancel)
    assert "was cancelled" in run(*confirm, code=1)
    confirm = run("pins", "remove", pin_id).splitlines()[1].split("memgraph ")[1].split()
    assert "Removed" in run(*confirm)
    assert "Removed" in run(*confirm), "it is idempotent"
    assert json.loads(run("pins", "--json")) == []
    run("task", "new", "Docs", "--id", "docs")
    other = json.loads(run("pins", "add", "Plain English", "--task", "docs", "--json"))["pin"]["id"]
    assert run("pins", "--json") == "[]\n"
    assert json.loads(run("pins", "list", "--task", "docs", "--json"))[0]["id"] == other
    view = tmp_path / "pins.md"
    run("pins", "write", str(view), "--task", "docs")
    view.write_text(view.read_text("utf-8").replace("Plain", "Simple") + "- [preference] Short sentences\n", "utf-8")
    assert run("pins", "read", str(view), "--task", "docs") == "1 pin added, 1 pin edited, 0 left as they were\n"
    assert "Simple English" in run("pins", "write", "--task", "docs")
    assert "0 pins added, 0 pins edited, 2 left" in run(
        "pins",
        "read",
        "-",
        "--task",
        "docs",
        given=view.read_text("utf-8").replace("Plain", "Simple").split("- [pref")[0]
        + "- [preference] Short sentences\n",
    )
    assert "Forgot" in run("forget", "--pins", other)
    assert "Short sentences" in run("pins", "list", "--all-tasks")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["add", ""], 1, "must not be empty"),
        (["add", "x" * 10_000], 1, "at most 800 characters"),
        (["add", "x", "--kind", "temporary"], 1, "when does the temporary pin end"),
        (["add", "x", "--kind", "temporary", "--until", "2020-01-01"], 1, "memgraph: --until: is in the past"),
        (["add", "x", "--task", "nowhere"], 1, "no task with id 'nowhere'"),
        (["edit", "12345678", "--text", "x"], 1, "no pin with id"),
        (["edit", "12345678"], 2, "nothing to change"),
        (["confirm", "12345678", "x"], 1, "no pin with id"),
        (["add", "x", "--kind", "rule"], 2, "Invalid value"),
    ],
)
def test_what_is_refused(run: Any, args: list[str], code: int, says: str) -> None:
    assert says in run("pins", *args, code=code)
