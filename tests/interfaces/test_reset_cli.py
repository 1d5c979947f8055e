"""``memgraph reset``: listed first, done only with --yes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.operations.catalogue import OPERATIONS


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., Result]:
    def call(*args: str, code: int = 0) -> Result:
        result = CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), *args], obj=settings())
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def filled(run: Callable[..., Result]) -> None:
    run("remember", "The vault holds the deploy key")
    run("episode", "The build hung", "--reasoning", "a lock", "--action", "Restarted it", "--outcome", "success")
    run("session", "set", "--doing", "Debug the webhook")


def contents(run: Callable[..., Result]) -> list[str]:
    return [one["content"] for one in json.loads(run("list", "--json").stdout)]


@pytest.mark.usefixtures("filled")
def test_without_yes_it_is_listed_and_nothing_is_removed(run: Callable[..., Result]) -> None:
    listed = run("reset", "--memory", code=1)
    assert "Would remove: episodic memories: 1, working memories: 1.\nKeeps: semantic memories: 1.\n" in listed.stdout
    assert "nothing was removed: repeat it with --yes, as `memgraph reset --memory --yes`" in listed.stderr
    document = json.loads(run("reset", "--all", "--json", code=1).stdout)
    assert document["removed"] == {"episodic": 1, "semantic": 1, "working_memories": 1}
    assert document["done"] is False
    assert len(contents(run)) == 2


@pytest.mark.usefixtures("filled")
def test_on_a_terminal_the_list_is_an_answer(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgraph.interfaces.cli.maintenance.reset.is_interactive", lambda: True)
    assert "`memgraph reset --all --yes` does it" in run("reset", "--all").stdout
    assert len(contents(run)) == 2


@pytest.mark.usefixtures("filled")
def test_with_yes_it_is_done_once(run: Callable[..., Result]) -> None:
    done = run("reset", "--memory", "--yes").stdout
    assert "Removed: episodic memories: 1, working memories: 1.\nKept: semantic memories: 1.\n" in done
    assert "`memgraph undelete ID` restores one memory" in done
    assert contents(run) == ["The vault holds the deploy key"]
    again = json.loads(run("reset", "--memory", "--yes", "--json").stdout)
    assert again == {"scope": "memory", "removed": {}, "kept": {"semantic": 1}, "event": None, "done": False}
    assert run("reset", "--memory").stdout.startswith("There is nothing to remove.\n")
    run("reset", "--all", "--yes")
    assert contents(run) == []
    run("verify", "--deep")


@pytest.mark.parametrize("args", [(), ("--memory", "--all"), ("--memory", "--agent", "MARS")])
def test_wrong_usage(run: Callable[..., Result], tmp_path: Path, args: tuple[str, ...]) -> None:
    run("reset", "--yes", *args, code=2)
    assert not (tmp_path / "store").exists()


def test_a_list_of_nothing_makes_no_store(run: Callable[..., Result], tmp_path: Path) -> None:
    assert json.loads(run("reset", "--all", "--json").stdout)["removed"] == {}
    assert not (tmp_path / "store").exists()


def test_no_door_of_agents_has_it() -> None:
    assert not [name for name in OPERATIONS if "reset" in name]
