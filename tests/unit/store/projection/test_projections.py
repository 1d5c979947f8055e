"""Graph and index follow the journal by themselves: behind, deleted, foreign or corrupt."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import GraphError
from memgraph.journal.keys.providers import FileKeys
from memgraph.journal.rotation import rotate
from memgraph.store.opening import open_store_journal
from memgraph.store.projection import projector as module
from memgraph.testing import FakeEmbedder
from tests.projections import INDEX, ROWS, lose
from tests.tables import copy_journal, forget_journal

Open = Callable[..., Any]
See = Callable[[Any], dict[str, Any]]
Live = Callable[[Any], list[str]]
Lived = tuple[Any, list[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]


def search(store: Any) -> list[tuple[str, float]]:
    found = memgraph.MemoryRetrieval(store, store.embedder).search_memories("the build failed in login", limit=20)
    return [(one.memory.id, one.score) for one in found]


class TestCatchingUp:
    @pytest.mark.embedded
    def test_two_stores_on_one_home_see_each_others_writes(self, open_store: Open, seen: See) -> None:
        stores = [open_store(), open_store()]
        assert stores[0].store_id == stores[1].store_id
        ids = []
        for turn in range(6):
            one, other = stores[turn % 2], stores[1 - turn % 2]
            ids.append(one.insert_memory({"type": "episodic", "content": f"memory {turn}", "project_id": "P"}).id)
            assert other.get_memory(ids[-1]).content == f"memory {turn}"
            assert other.get_stats().total == turn + 1
            assert other.get_memory(ids[-1]).previous_id == (ids[-2] if turn else None)
        stores[0].update_memory(ids[0], content="changed")
        stores[1].link(ids[1], "SUPERSEDES", ids[0])
        stores[0].delete_memory(ids[2])
        assert seen(stores[0]) == seen(stores[1])
        assert search(stores[0]) == search(stores[1])

    @pytest.mark.embedded
    def test_a_rotation_rebuilds_what_the_earlier_key_sealed_and_is_no_damage(
        self, open_store: Open, seen: See, live: Live, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Also in a process that has graph and index open."""
        store = open_store()
        live(store)
        store.flush()
        before = seen(store)
        with store._projector.holding():  # so that the rotation can remove neither
            journal = open_store_journal(store.config, None, store.now)
            rotate(journal, FileKeys(store.config.keys_home), now=store.now, rotated_by="tests")
        assert seen(store) == before
        found = search(store)
        store.close()
        again = open_store()
        assert seen(again) == before
        assert search(again) == found
        again.verify(deep=True)
        assert again._projector.upkeep.read().damages == 0
        rebuilt = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
        assert all("another key than the one that signs now" in text for text in rebuilt), rebuilt

    def test_an_index_in_memory_follows_what_another_store_wrote(self, open_store: Open, live: Live) -> None:
        reader, writer = open_store(), open_store()
        assert search(reader) == []
        live(writer)
        writer.flush()
        expected = search(writer)
        assert search(reader) == expected
        assert [memory.id for memory in reader.get_all_memories()] == [
            memory.id for memory in writer.get_all_memories()
        ]

    def test_a_deletion_by_another_leaves_no_link_behind(self, open_store: Open) -> None:
        one, other = open_store(), open_store()
        old = one.insert_memory({"type": "semantic", "content": "the build fails on locks"})
        new = one.insert_memory({"type": "semantic", "content": "the build fails on time"})
        one.link(new.id, "SUPERSEDES", old.id)
        assert not one.reader.superseded()[one.reader.index.slot(new.id)]
        assert one.reader.superseded()[one.reader.index.slot(old.id)]
        other.delete_memory(new.id)
        assert one.get_memory(new.id) is None
        assert not one.reader.superseded().any()
        one.insert_memory({"type": "semantic", "content": "the build fails on time", "id": new.id})
        assert one.links(old.id) == []
        index = one.reader.index
        assert not one.reader.superseded()[index.slot(old.id)], "a link that was deleted is back with its memory's id"

    @pytest.mark.embedded
    def test_a_graph_that_is_behind_is_updated(self, open_store: Open, seen: See, live: Live, tmp_path: Path) -> None:
        first = open_store()
        first.insert_memory({"type": "episodic", "content": "early"})
        first.digest()  # opens the graph
        first.close()
        shutil.copyfile(tmp_path / "store" / "memgraph.db", tmp_path / "early")
        store = open_store()
        live(store)
        store.close()
        expected = seen(open_store())
        open_store().close()
        (tmp_path / "store" / "memgraph.db").unlink()
        shutil.copyfile(tmp_path / "early", tmp_path / "store" / "memgraph.db")
        again = open_store()
        assert seen(again) == expected
        again.verify()

    @pytest.mark.embedded
    def test_updating_in_small_batches_is_equivalent(
        self, open_store: Open, seen: See, lived: Lived, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, _ = lived
        expected = seen(store)
        store.close()
        (tmp_path / "store" / "memgraph.db").unlink()
        monkeypatch.setattr(module, "_BATCH_EVENTS", 7)
        again = open_store()
        assert seen(again) == expected
        again.verify()


class TestRebuilding:
    @pytest.mark.parametrize("gone", [[ROWS], [INDEX], [ROWS, INDEX]], ids="+".join)
    @pytest.mark.embedded
    def test_deleted_projections_are_rebuilt_identically(
        self, open_store: Open, seen: See, lived: Lived, tmp_path: Path, gone: list[str]
    ) -> None:
        store, _ = lived
        expected, found = seen(store), search(store)
        assert len(found) > 10
        store.close()
        lose(tmp_path / "store", gone)
        again = open_store()
        assert seen(again) == expected
        assert search(again) == found
        again.verify()

    @pytest.mark.embedded
    def test_a_rebuild_on_demand_changes_nothing(self, seen: See, lived: Lived) -> None:
        store, _ = lived
        expected, found = seen(store), search(store)
        progress: list[tuple[int, int | None]] = []
        store.rebuild(lambda done, total: progress.append((done, total)))
        assert seen(store) == expected
        assert search(store) == found
        assert progress

    @pytest.mark.embedded
    def test_a_store_goes_on_while_another_rebuilds(self, open_store: Open, seen: See, lived: Lived) -> None:
        one, other = lived[0], open_store()
        expected = seen(other)
        one.rebuild()
        assert seen(other) == expected
        new = other.insert_memory({"type": "episodic", "content": "after"})
        assert one.get_memory(new.id) is not None

    @pytest.mark.embedded
    def test_the_graph_of_another_store_is_replaced(
        self, open_store: Open, seen: See, lived: Lived, tmp_path: Path
    ) -> None:
        store, other = lived[0], open_store("other")
        other.insert_memory({"type": "episodic", "content": "of another store"})
        other.digest()  # opens the graph
        expected = seen(store)
        store.close()
        other.close()
        (tmp_path / "store" / "memgraph.db").unlink()
        shutil.copyfile(tmp_path / "other" / "memgraph.db", tmp_path / "store" / "memgraph.db")
        again = open_store()
        assert seen(again) == expected
        again.verify()

    @pytest.mark.embedded
    def test_a_graph_of_another_schema_is_replaced(
        self, open_store: Open, seen: See, lived: Lived, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, _ = lived
        expected = seen(store)
        store.flush()
        store._projector.rows.apply([], replace(store._projector.projection, schema_version="of old"))
        store.close()
        rebuilds: list[int] = []
        real = module.Projector.rebuild
        monkeypatch.setattr(
            module.Projector, "rebuild", lambda self, progress=None: (rebuilds.append(1), real(self, progress))[1]
        )
        assert seen(open_store()) == expected
        assert rebuilds

    @pytest.mark.embedded
    def test_a_graph_that_is_ahead_is_replaced(self, open_store: Open, seen: See, lived: Lived, tmp_path: Path) -> None:
        store, _ = lived
        expected = seen(store)
        copy_journal(tmp_path / "store", tmp_path / "backup")
        store.insert_memory({"type": "episodic", "content": "lost with the disk"})
        store.close()
        (tmp_path / "keys" / "heads" / store.store_id).unlink()
        forget_journal(tmp_path / "store")
        copy_journal(tmp_path / "backup", tmp_path / "store")
        again = open_store()
        assert seen(again) == expected
        again.insert_memory({"type": "episodic", "content": "new"})
        again.verify()

    @pytest.mark.embedded
    def test_replay_calls_no_model_and_no_clock(
        self, config: Any, clock: Any, embedder: Any, seen: See, lived: Lived, tmp_path: Path
    ) -> None:
        with lived[0] as store:
            expected = seen(store)
        lose(tmp_path / "store")
        with memgraph.AgentMemoryStore(config, embedder=_Broken(), clock=_broken, annotator=_Broken()) as again:
            again.rebuild()
            assert again.digest() == expected["digest"]
            assert len(again.reader.index) == len(expected["memories"])
        with memgraph.AgentMemoryStore(config, embedder=embedder, clock=clock) as last:
            assert seen(last) == expected

    @pytest.mark.embedded
    def test_a_store_that_was_closed_in_between_verifies(self, open_store: Open) -> None:
        store = open_store()
        store.insert_memory({"type": "episodic", "content": "plain"})
        for name in ("login.py", "logout.py"):
            store.close()
            store = open_store()
            store.insert_memory({"type": "episodic", "content": f"The build failed in {name}"})
        store.close()
        again = open_store()
        named = again.cypher("MATCH (m:Memory) UNWIND m.entities_name AS name RETURN name ORDER BY name")
        assert named == [{"name": "login.py"}, {"name": "logout.py"}]
        again.verify()

    def test_verify_finds_a_graph_that_was_changed(self, lived: Lived) -> None:
        store, ids = lived
        store.verify()
        row = store._projector.rows.get("Memory", ids[0])
        changed = {**row, "content": "tampered"}
        store._projector.rows.apply(
            [memgraph.ports.Change("Memory", ids[0], row, changed)], store._projector.projection
        )
        with pytest.raises(memgraph.MemGraphError, match="rebuild"):
            store.verify()
        store.rebuild()
        store.verify()


class _Broken(FakeEmbedder):
    def embed(self, texts: Any) -> Any:
        raise AssertionError("the embedder was called")

    embed_query = embed  # type: ignore[assignment]

    def annotate(self, memory: Any) -> Any:
        raise AssertionError("the annotator was called")


def _broken() -> Any:
    raise AssertionError("the clock was called")


GARBAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "noise": lambda data: bytes(range(256)) * 64,
    "text": lambda data: b"this is no database\n" * 400,
    "zeros": lambda data: bytes(len(data)),
    "no header": lambda data: bytes(4096) + data[4096:],
    "noisy header": lambda data: bytes(range(256)) * 16 + data[4096:],
    "half": lambda data: data[: len(data) // 2],
    "a page": lambda data: data[:4096],
    "a byte": lambda data: data[:1],
    "noise behind the header": lambda data: data[:4096] + bytes(range(255, -1, -1)) * ((len(data) - 4096) // 256),
}


def over(name: str) -> Callable[[Path], object]:
    """Put garbage in place of the database."""
    return lambda path: path.write_bytes(GARBAGE[name](path.read_bytes()))


def beside(name: str) -> Callable[[Path], object]:
    """Put garbage where the database looks for its log."""
    return lambda path: path.with_name(path.name + "-wal").write_bytes(GARBAGE[name](path.read_bytes()))


def replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("x")


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{name: over(name) for name in GARBAGE},
    **{f"{name} as a log": beside(name) for name in ("noise", "zeros", "text", "a byte")},
    "a folder": replace_by_a_folder,
}


class TestCorruption:
    @pytest.mark.parametrize("way", DAMAGES)
    def test_a_damaged_database_is_rebuilt(self, open_store: Open, lived: Lived, tmp_path: Path, way: str) -> None:
        store, ids = lived
        store.close()
        DAMAGES[way](tmp_path / "store" / ROWS)
        again = open_store()
        assert sorted(memory.id for memory in again.every_memory()) == sorted(ids)
        again.insert_memory({"type": "episodic", "content": "life goes on"})
        assert again.get_stats().total == len(ids) + 1
        again.verify(deep=True)

    def test_garbage_over_the_index(self, open_store: Open, lived: Lived, tmp_path: Path, seen: See) -> None:
        store, _ = lived
        expected, found = seen(store), search(store)
        store.close()
        path = tmp_path / "store" / "index" / "index.npz"
        for garbage in (b"", b"noise" * 999, path.read_bytes()[:-100]):
            path.write_bytes(garbage)
            again = open_store()
            assert search(again) == found
            assert seen(again) == expected
            again.close()


@pytest.mark.embedded
def test_a_commit_rejected_by_the_graph_is_not_skipped(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one block the next commit must not be put on a graph that lacks the one before."""
    store = open_store()
    store.insert_memory({"type": "episodic", "content": "before", "project_id": "P"})
    engine = store._projector.rows
    real = engine.apply
    refusals = [GraphError("no room")]

    def apply(*given: Any) -> None:
        if refusals:
            raise refusals.pop()
        real(*given)

    monkeypatch.setattr(engine, "apply", apply)
    with store.exclusive():
        refused = store.insert_memory({"type": "episodic", "content": "refused", "project_id": "P"})
        after = store.insert_memory({"type": "episodic", "content": "after", "project_id": "P"})
    assert not refusals
    assert {refused.id, after.id} <= {memory.id for memory in store.get_all_memories()}
    found = store.cypher("MATCH (m:Memory)-[:IN_PROJECT]->() RETURN m.content AS content ORDER BY content")
    assert [row["content"] for row in found] == ["after", "before", "refused"]
    store.verify(deep=True)


def test_a_row_that_was_changed_is_rebuilt_at_once(open_store: Open) -> None:
    store = open_store()
    kept = store.insert_memory({"type": "episodic", "content": "before", "project_id": "P"})
    with closing(sqlite3.connect(store.config.home / ROWS)) as raw, raw:
        raw.execute("UPDATE node SET body = replace(body, 'before', 'forged')")
    assert store.get_memory(kept.id).content == "before"
    assert store.insert_memory({"type": "episodic", "content": "after", "project_id": "P"})
    store.verify(deep=True)
