"""Rows and index follow the journal by themselves: behind, deleted, foreign or corrupt. A damaged journal is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.disk.files import clear
from memgraph.errors import MemGraphError
from memgraph.journal.key_providers import FileKeys
from memgraph.store import projector as module
from memgraph.store.maintenance.keys import rotate
from memgraph.store.opening import open_store_journal
from memgraph.testing import FakeEmbedder
from tests.tables import FILE, ROWS, change, copy_journal, forget_journal, put_rows

Open = Callable[..., Any]
See = Callable[[Any], dict[str, Any]]
Live = Callable[[Any], list[str]]
Lived = tuple[Any, list[str]]


def lose_rows(home: Path) -> None:
    for name in ROWS:
        change(home, f"DELETE FROM {name}")


def lose_index(home: Path) -> None:
    (home / "index" / "index.npz").unlink()


LOSSES = {"rows": [lose_rows], "index": [lose_index], "rows and index": [lose_rows, lose_index]}


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
        """Also in a process that has rows and index open."""
        store = open_store()
        live(store)
        store.flush()
        before = seen(store)
        journal = open_store_journal(store.config, None, store.now)
        rotate(journal, FileKeys(store.config.keys_home), now=store.now, rotated_by="tests")
        journal.close()
        caplog.clear()
        caplog.set_level(logging.INFO, "memgraph")
        assert seen(store) == before
        found = search(store)
        store.close()
        again = open_store()
        assert seen(again) == before
        assert search(again) == found
        again.verify(deep=True)
        assert "sealed with another key than the one that signs now" in caplog.text
        assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []

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

    @pytest.mark.parametrize("batch", [7, 1_000])
    def test_rows_that_are_behind_are_updated(
        self, open_store: Open, seen: See, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
    ) -> None:
        with open_store() as store:
            store.insert_memory({"type": "episodic", "content": "early"})
            assert search(store)
        copy_journal(store.config.home, tmp_path / "early")
        with open_store() as store:
            live(store)
            store.flush()
            expected, found = seen(store), search(store)
        put_rows(store.config.home, tmp_path / "early")
        monkeypatch.setattr(module, "_BATCH_EVENTS", batch)
        monkeypatch.setattr(module.Projector, "rebuild", None)
        again = open_store()
        assert (seen(again), search(again)) == (expected, found)
        again.verify(deep=True)


class TestRebuilding:
    @pytest.mark.parametrize("gone", LOSSES)
    def test_deleted_projections_are_rebuilt_identically(
        self, open_store: Open, seen: See, lived: Lived, tmp_path: Path, gone: str
    ) -> None:
        store, _ = lived
        expected, found = seen(store), search(store)
        assert len(found) > 10
        store.close()
        for lose in LOSSES[gone]:
            lose(tmp_path / "store")
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

    def test_rows_of_another_store_are_replaced(
        self, open_store: Open, seen: See, lived: Lived, tmp_path: Path
    ) -> None:
        store, other = lived[0], open_store("other")
        other.insert_memory({"type": "episodic", "content": "of another store"})
        expected = seen(store)
        store.close()
        other.close()
        put_rows(tmp_path / "store", tmp_path / "other")
        again = open_store()
        assert seen(again) == expected
        again.verify()

    @pytest.mark.embedded
    def test_rows_of_another_schema_are_replaced(
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

    def test_rows_that_are_ahead_are_replaced(self, open_store: Open, seen: See, lived: Lived, tmp_path: Path) -> None:
        store, _ = lived
        store.flush()
        expected, home = seen(store), tmp_path / "store"
        copy_journal(home, tmp_path / "backup")
        store.insert_memory({"type": "episodic", "content": "lost with the disk"})
        store.close()
        copy_journal(home, tmp_path / "lost")
        (tmp_path / "keys" / "heads" / store.store_id).unlink()
        forget_journal(home)
        copy_journal(tmp_path / "backup", home)
        put_rows(home, tmp_path / "lost")
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
        lose_rows(tmp_path / "store")
        lose_index(tmp_path / "store")
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

    def test_verify_finds_rows_that_were_changed(self, lived: Lived) -> None:
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


def beside(name: str, suffix: str) -> Callable[[Path], object]:
    """Put garbage where the database looks for a log."""
    return lambda path: path.with_name(path.name + suffix).write_bytes(GARBAGE[name](path.read_bytes()))


def replace_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "file").write_text("x")


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{name: over(name) for name in GARBAGE},
    "a folder": replace_by_a_folder,
}
LOGS = {
    f"{name} as {suffix}": beside(name, suffix)
    for name in ("noise", "zeros", "text", "a byte")
    for suffix in ("-wal", "-journal")
}


class TestCorruption:
    @pytest.mark.parametrize("way", DAMAGES)
    def test_a_damaged_journal_is_refused(self, open_store: Open, lived: Lived, way: str) -> None:
        with lived[0] as store:
            path, digest = store.config.home / FILE, store.digest()
        before = path.read_bytes()
        DAMAGES[way](path)
        for _ in range(2):
            with pytest.raises(MemGraphError, match=r"memgraph\.db"):
                open_store().digest()
        clear(path)
        path.write_bytes(before)
        assert open_store().digest() == digest

    @pytest.mark.parametrize("way", LOGS)
    def test_garbage_in_place_of_its_log_is_ignored(self, open_store: Open, lived: Lived, way: str) -> None:
        with lived[0] as store:
            digest = store.digest()
        LOGS[way](store.config.home / FILE)
        again = open_store()
        assert again.digest() == digest
        again.insert_memory({"type": "episodic", "content": "life goes on"})
        again.verify(deep=True)

    @pytest.mark.parametrize("way", DAMAGES | LOGS)
    def test_the_damaged_database_of_a_view_is_rebuilt(self, lived: Lived, way: str) -> None:
        store, _ = lived
        with store.at(store.now()) as past:
            digest, found = past.digest(), search(past)
        (path,) = (store.config.home / "past").glob(f"*/{FILE}")
        (DAMAGES | LOGS)[way](path)
        with store.at(store.now()) as past:
            assert (past.digest(), search(past)) == (digest, found)
            past.verify(deep=True)

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


def test_a_row_that_was_changed_is_rebuilt_at_once(store: Any) -> None:
    kept = store.insert_memory({"type": "episodic", "content": "before", "project_id": "P"})
    change(store.config.home, "UPDATE node SET body = replace(body, 'before', 'forged')")
    assert store.get_memory(kept.id).content == "before"
    assert store.insert_memory({"type": "episodic", "content": "after", "project_id": "P"})
    store.verify(deep=True)


def test_an_index_that_was_interrupted_half_way_is_not_used(open_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store()
    known = 0
    while known == 0 or known < len(store.reader.index._columns["seq"]):  # until there is no place for another one
        store.insert_memory({"type": "episodic", "content": f"Memory {known} of many"})
        known += 1
    names = type(store.reader.index.ids)
    code = names.code

    def half(ids: Any, *given: Any) -> Any:
        code(ids, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(names, "code", half)
        with pytest.raises(KeyboardInterrupt):
            store.insert_memory({"type": "episodic", "content": "The last of many"})
    for again in (store, open_store()):
        found = memgraph.MemoryRetrieval(again).search_memories("memory of many", limit=99)
        assert len(found) == len(again.reader.index) == known + 1
        again.close()
