"""``memgraph collect``: what it says it would do, what it did, and how to take it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner

import memgraph
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeClock, FakeEmbedder

Run = Callable[..., Any]
FADED = str(UUID(int=1))


@pytest.fixture
def done(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run a command that must succeed on a store of three old memories, and return what it printed on stdout."""
    home = tmp_path / "store"
    with memgraph.MemGraph.open(home, embedder=FakeEmbedder(dimension=64), clock=FakeClock("2020-01-01")) as memory:
        base = {"type": "episodic", "project_id": "shop"}
        memory.store.insert_memory(
            {**base, "id": FADED, "content": "The proxy strips \x1b[31mheaders", "tags": ["proxy"]}
        )
        memory.store.insert_memory({**base, "content": "Charged twice", "outcome": "failure", "tags": ["payment"]})
        memory.store.insert_memory({**base, "content": "Deploy on Tuesdays", "is_pinned": True, "tags": ["deploy"]})

    def call(*args: object) -> str:
        result = CliRunner().invoke(
            cli,
            ["--home", str(home), *map(str, args)],
            prog_name="memgraph",
            obj=settings(),
        )
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return call


def test_a_preview_names_what_would_go(done: Run) -> None:
    said = done("collect", "--preview")
    assert said.splitlines()[0] == "Would be: 1 memory archived, 0 episodes summarised."
    assert FADED in said
    assert "\x1b" not in said
    assert "1 landmark (100% of 1 negative memory): 1 added, 0 removed." in said
    assert json.loads(done("list", "--state", "archived", "--json")) == []


def test_it_puts_away_and_says_how_to_take_it_back(done: Run) -> None:
    said = done("collect")
    assert said.splitlines()[0] == "1 memory archived, 0 episodes summarised."
    assert "memgraph unarchive ID" in said
    assert [entry["id"] for entry in json.loads(done("list", "--state", "archived", "--json"))] == [FADED]
    assert "The proxy strips" in done("unarchive", FADED[:8])
    assert "unarchive" not in done("collect", "--preview")


def test_both_answer_in_json(done: Run) -> None:
    previewed = json.loads(done("collect", "--preview", "--json"))
    assert (previewed["memory_ids"], previewed["landmark_share"]) == ([FADED], 1.0)
    result = json.loads(done("collect", "--json"))
    assert result == {name: previewed[name] for name in result}
