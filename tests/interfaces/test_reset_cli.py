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


LOG = """commit 1f3a8e5c1f3a8e5c1f3a8e5c1f3a8e5c1f3a8e5c
Author: Ann <ann@example.org>
Date:   2026-02-03 10:00:00 +0000

    Rename price to money because a price was ambiguous

    Two shops used the word for what a customer pays and for what the shop pays, and each of the lists that they sent us in the
    evening had to be read by a clerk.

M\tmoney.py

commit 2f3a8e5c1f3a8e5c1f3a8e5c1f3a8e5c1f3a8e5c
Author: Ann <ann@example.org>
Date:   2026-02-04 10:00:00 +0000

    Fix: the total was None because reduce had no initial value

    An empty cart has nothing to add up, so whoever opened the till before the first customer came saw an error where the sum of
    the day should have been.

M\tcart.py
"""


@pytest.mark.parametrize("away", [["forget"], ["delete", "--yes"]])
def test_a_memory_that_was_forgotten_or_deleted_does_not_come_back_with_its_source(
    run: Callable[..., Result], tmp_path: Path, away: list[str]
) -> None:
    log = tmp_path / "git.log"
    log.write_text(LOG)
    run("ingest", "git", str(log), "--project", "shop")
    learned = json.loads(run("list", "--json").stdout)
    assert len(learned) == 2
    renamed = next(one["id"] for one in learned if "Rename" in one["content"])
    run(away[0], renamed, *away[1:])
    run("reset", "--memory", "--yes")
    again = run("ingest", "git", str(log), "--project", "shop").stdout
    assert "1 memory added" in again
    (left,) = contents(run)
    assert "reduce had no initial value" in left


def test_a_memory_that_was_restored_before_a_reset_comes_back_with_its_source(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    log = tmp_path / "git.log"
    log.write_text(LOG)
    run("ingest", "git", str(log), "--project", "shop")
    learned = json.loads(run("list", "--json").stdout)
    run("delete", learned[0]["id"], "--yes")
    run("undelete", learned[0]["id"])
    run("reset", "--memory", "--yes")
    run("ingest", "git", str(log), "--project", "shop")
    assert len(contents(run)) == len(learned) == 2


@pytest.mark.parametrize("args", [(), ("--memory", "--all"), ("--memory", "--agent", "MARS")])
def test_wrong_usage(run: Callable[..., Result], tmp_path: Path, args: tuple[str, ...]) -> None:
    run("reset", "--yes", *args, code=2)
    assert not (tmp_path / "store").exists()


def test_a_list_of_nothing_makes_no_store(run: Callable[..., Result], tmp_path: Path) -> None:
    assert json.loads(run("reset", "--all", "--json").stdout)["removed"] == {}
    assert not (tmp_path / "store").exists()


def test_no_door_of_agents_has_it() -> None:
    assert not [name for name in OPERATIONS if "reset" in name]
