"""What the engine loses by itself is noticed after a batch, mended from the journal, told once and counted; what grew is compacted."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import EpisodicMemory, MemGraph
from memgraph.interfaces.cli.group import cli
from memgraph.store.projection.upkeep import Upkeep

pytestmark = pytest.mark.embedded

Open = Callable[..., Any]

FLIPS = {
    "a text": "MATCH (m:Memory {id: $id}) SET m.content = 'flipped'",
    "a text that was whole": "MATCH (m:Memory {id: $id}) SET m.title = 'flipped'",
    "a text set to nothing": "MATCH (m:Memory {id: $id}) SET m.outcome = ''",
    "a time": "MATCH (m:Memory {id: $id}) SET m.created_at = timestamp('2020-01-01')",
    "a time set to nothing": "MATCH (m:Memory {id: $id}) SET m.valid_at = NULL",
    "a number": "MATCH (m:Memory {id: $id}) SET m.seq = m.seq + 1",
    "a fraction": "MATCH (m:Memory {id: $id}) SET m.confidence = 0.123",
    "a truth": "MATCH (m:Memory {id: $id}) SET m.is_pinned = NOT m.is_pinned",
    "a list": "MATCH (m:Memory {id: $id}) SET m.tags = ['flipped']",
    "a list of truths": "MATCH (m:Memory {id: $id}) SET m.entities_about = [false]",
    "a record's code": "MATCH (r:MemoryRow {id: $id}) SET r.code = r.code + 1",
    "an edge's column": "MATCH (:Memory {id: $id})-[e:MENTIONS]->() SET e.about = NOT e.about",
    "a tag": "MATCH (t:Tag {name: 'auth'}) SET t.name = 'flip'",
    "a recall": "MATCH (r:Recall) SET r.total_tokens = 7",
    "a recall's edge": "MATCH (:Recall)-[e:RECALLED]->() SET e.score = 9.0",
    "an edge": "MATCH (:Memory {id: $id})-[e:TAGGED]->() DELETE e",
}
OFTEN = {"a text that was whole", "a record's code", "an edge's column"}
"""One for each kind of row. The others are much like them, and tried with --long only."""


def an_import(store: Any, number: int) -> None:
    store.import_memories([EpisodicMemory(content=f"imported {number}")], [])


def a_batch(store: Any, number: int) -> None:
    with store.batch():
        store.insert_memory({"type": "episodic", "content": f"one of a batch {number}"})


def a_sleep(store: Any, number: int) -> None:
    store.insert_memory({"type": "episodic", "content": f"before sleep {number}"})
    MemGraph(store).maintenance.sleep()


OTHER_BATCHES = {0: an_import, 1: a_sleep}


def flip(store: Any, statement: str, memory_id: str) -> None:
    """Change a cell as the engine itself would: all codes over the file and over what it says of itself are right."""
    projector = store._projector
    with projector.holding(), projector.engine._session.use() as connection:
        connection.run(statement, {"id": memory_id} if "$id" in statement else {})


def rebuilds(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if "rebuilding the graph" in record.getMessage()]
    caplog.clear()
    return found


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, Any]]:
    """Return what ``memgraph doctor`` says of the graph."""
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))

    def ask() -> dict[str, Any]:
        result = CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), "doctor", "--json"])
        told: dict[str, Any] = json.loads(result.stdout)["graph"]
        return told

    return ask


@pytest.fixture
def furnished(open_store: Open) -> str:
    """Fill a store, and return the id of a memory that has a value in each column that is flipped."""
    store = open_store()
    store.insert_memories([{"type": "episodic", "content": f"The build {n} failed", "tags": ["db"]} for n in range(8)])
    memory = store.insert_memory(
        {
            "type": "episodic",
            "content": "The login failed in `auth.py`",
            "title": "A failed login",
            "outcome": "failure",
            "confidence": 0.5,
            "valid_at": "2026-01-01T00:00:00.000Z",
            "tags": ["auth"],
            "project_id": "P",
        }
    )
    assert MemGraph(store).recall("the login failed").memories
    a_batch(store, -1)
    store.close()
    return str(memory.id)


def test_a_flipped_cell_in_any_column_is_caught_after_the_next_batch(
    open_store: Open,
    furnished: str,
    doctor: Callable[[], Any],
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    caplog.set_level(logging.WARNING, "memgraph")
    is_long = request.config.getoption("--long")
    flips = {name: statement for name, statement in FLIPS.items() if is_long or name in OFTEN}
    for number, (name, statement) in enumerate(flips.items()):
        store = open_store()
        flip(store, statement, furnished)
        OTHER_BATCHES.get(number, a_batch)(store, number)
        (told,) = rebuilds(caplog)
        assert "it lost writes: " in told, name
        assert "flip" not in told, name
        store.close()
        assert rebuilds(caplog) == [], name
    store = open_store()
    a_batch(store, len(flips))
    assert store.verification(deep=True).differing == 0
    assert rebuilds(caplog) == []
    found = doctor()
    assert found["damages"] == len(flips)
    assert "it lost writes" in found["last_damage"]["why"]


def test_single_commits_are_followed_by_a_comparison_too(
    open_store: Open, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "memgraph")
    store = open_store()
    many = [{"type": "episodic", "content": f"memory {number}"} for number in range(600)]
    first = store.insert_memories(many[:300])[0]
    assert store.digest()
    flip(store, FLIPS["a text"], first.id)
    store.insert_memories(many[300:450])
    assert rebuilds(caplog) == []
    store.insert_memories(many[450:])
    assert len(rebuilds(caplog)) == 1
    store.insert_memory({"type": "episodic", "content": "and on"})
    store.verify(deep=True)
    assert rebuilds(caplog) == []


@pytest.mark.parametrize("made_by", ["release 0.1.0", pytest.param("an older schema", marks=pytest.mark.long)])
def test_a_graph_of_an_earlier_release_is_rebuilt_with_one_notice(
    open_store: Open,
    tmp_path: Path,
    doctor: Callable[[], Any],
    caplog: pytest.LogCaptureFixture,
    made_by: str,
) -> None:
    """It is no damage, and not counted as such."""
    caplog.set_level(logging.WARNING, "memgraph")
    store = open_store()
    memory = store.insert_memory({"type": "episodic", "content": "kept through releases"})
    digest = store.digest()
    if made_by == "an older schema":
        with store._projector.holding():
            store._projector.engine.apply([], {**store._projector.projection.as_row(), "schema_version": "1"})
    store.close()
    if made_by == "release 0.1.0":  # no code over its note
        graph = tmp_path / "store" / "graph" / "memgraph.kuzu"
        status = graph.stat()
        note = {"is_open": False, "pid": 1, "unclean": 0, "file": [status.st_size, status.st_mtime_ns], "log": None}
        (graph.parent / "opened.json").write_text(json.dumps(note).ljust(512))
    again = open_store()
    assert again.get_memory(memory.id).content == "kept through releases"
    assert again.digest() == digest
    again.verify(deep=True)
    again.close()
    store = open_store()
    store.verify(deep=True)
    store.close()
    (told,) = rebuilds(caplog)
    assert ("earlier release" if made_by == "release 0.1.0" else "another store or schema") in told
    assert doctor()["damages"] == 0


class TestPolicy:
    def test_the_first_batch_of_an_open_store_is_followed_by_a_comparison(self) -> None:
        upkeep = Upkeep()
        upkeep.checked(seq=10, rows=100, seconds=0.1)
        assert upkeep.is_check_due(seq=11, rows=100, is_first=True)
        assert not upkeep.is_check_due(seq=10, rows=100, is_first=True)  # nothing was written since
        assert not upkeep.is_check_due(seq=11, rows=10_000_000, is_first=True)

    def test_comparisons_take_a_share_of_the_time_of_batches(self) -> None:
        upkeep = Upkeep()
        upkeep.checked(seq=10, rows=1_000_000, seconds=1.0)
        upkeep.unchecked_s = 49.0
        assert not upkeep.is_check_due(seq=11, rows=1_000_000, is_first=False)
        upkeep.unchecked_s = 51.0
        assert upkeep.is_check_due(seq=11, rows=1_000_000, is_first=False)

    def test_timings_of_a_small_graph_are_not_extrapolated(self) -> None:
        upkeep = Upkeep()
        upkeep.checked(seq=10, rows=100, seconds=0.1)  # nearly all of it to plan the statements
        upkeep.unchecked_s = 60.0
        assert upkeep.is_check_due(seq=5_000, rows=1_000_000, is_first=False)

    def test_between_batches_a_number_of_events_is_required(self) -> None:
        upkeep = Upkeep(checked_seq=1_000)
        assert not upkeep.is_check_due_between(seq=1_499, rows=1_000)
        assert upkeep.is_check_due_between(seq=1_500, rows=1_000)
        assert not upkeep.is_check_due_between(seq=1_500, rows=1_000_000)
        assert upkeep.is_check_due_between(seq=14_000, rows=1_000_000)

    def test_after_enough_events_it_is_always_compared(self) -> None:
        upkeep = Upkeep(check_s_a_row=1.0, unchecked_s=0.0)
        assert not upkeep.is_check_due(seq=50_000, rows=1_000_000, is_first=False)
        assert upkeep.is_check_due(seq=50_001, rows=1_000_000, is_first=False)
        assert upkeep.is_check_due_between(seq=50_001, rows=1_000_000)


class TestCompaction:
    """The engine never gives room back; a hole at the file's end stands for what it has grown by."""

    HOLE = 200 << 20

    def grown(self, store: Any, tmp_path: Path, *, batch: bool) -> Path:
        store.insert_memory({"type": "episodic", "content": "kept"})
        assert store.digest()
        if batch:
            a_batch(store, 0)
        path = tmp_path / "store" / "graph" / "memgraph.kuzu"
        with store._projector.holding():
            os.truncate(path, self.HOLE)
        return path

    def test_a_store_that_closes_after_a_batch_compacts_its_graph(
        self, open_store: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "memgraph")
        store = open_store()
        path = self.grown(store, tmp_path, batch=True)
        digest = store.digest()
        store.close()
        assert path.stat().st_size < self.HOLE / 3
        assert sum("compacted the graph" in record.getMessage() for record in caplog.records) == 1
        assert not any(record.levelno >= logging.WARNING for record in caplog.records)
        again = open_store()
        assert again.digest() == digest
        again.verify(deep=True)

    def test_sleep_compacts_the_graph(self, open_store: Open, tmp_path: Path) -> None:
        store = open_store()
        path = self.grown(store, tmp_path, batch=False)
        MemGraph(store).maintenance.sleep()
        assert path.stat().st_size < self.HOLE / 3
        store.verify(deep=True)

    def test_closing_without_a_batch_does_not_compact(self, open_store: Open, tmp_path: Path) -> None:
        store = open_store()
        path = self.grown(store, tmp_path, batch=False)
        store.close()
        assert path.stat().st_size == self.HOLE

    def test_a_graph_below_three_times_its_fresh_size_is_not_compacted(self) -> None:
        upkeep = Upkeep()
        upkeep.rebuilt(size=400 << 20, rows=1_000_000)
        assert not upkeep.is_bloated(size=1_100 << 20, rows=1_000_000)
        assert upkeep.is_bloated(size=2_400 << 20, rows=1_000_000)
