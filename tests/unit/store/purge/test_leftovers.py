"""Files beside journal, graph and index that may repeat a memory, and what others do while a purge is under way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memgraph import AgentMemoryStore, MemGraph
from memgraph.disk.folders import TemporaryFolder
from memgraph.errors import InvalidInputError, StorageError
from memgraph.index import snapshot
from memgraph.interfaces.agents.kept import Overview, keep_overview
from memgraph.interfaces.http.access.answers import Answers
from memgraph.interfaces.operations import Answer
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.sql import SQLite
from memgraph.journal.vectors import MadeVectors
from memgraph.store import past as as_of
from memgraph.store.maintenance.keys import reseal, rotate
from memgraph.viz.page.page import write_page
from tests.tables import VectorTable, table

pytestmark = pytest.mark.embedded
SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The nightly backup of the billing database needs about forty minutes on Sundays"


@pytest.fixture
def secret(store: AgentMemoryStore) -> str:
    store.insert_memory({"type": "episodic", "content": OTHER})
    return store.insert_memory({"type": "episodic", "content": SECRET}).id


@pytest.fixture
def home(store: AgentMemoryStore) -> Path:
    return store.config.home


def test_what_killed_processes_left_and_overviews_go(
    store: AgentMemoryStore, secret: str, home: Path, traces: Callable[..., list[str]]
) -> None:
    left = [
        home / "index/.index.npz.1.tmp",
        home / ".config.toml.1.tmp",
        home / "graph/load-x/Memory.json",
        home / "journal-0.2/000000000001.jsonl",
        home / "graph/query-x/memgraph.kuzu",
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(SECRET, "utf-8")
    keep_overview(home, "P", "claude", Overview(SECRET), state="x")
    assert len(traces(home, SECRET)) >= 6
    receipt = store.purge([secret])
    assert traces(home, SECRET) == []
    assert {"agents/overviews", "index/.index.npz.1.tmp", "journal-0.2"} <= set(receipt.removed)


def test_temporary_copies_of_killed_readers_go(
    store: AgentMemoryStore, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = [tmp_path / "memgraph-read-only-x" / "memgraph.db", tmp_path / "memgraph-moved-x" / "memgraph.db"]
    for path in left:
        path.parent.mkdir()
        path.write_text(SECRET, "utf-8")
    in_use = TemporaryFolder(tmp_path, "memgraph-read-only-")
    store.purge([secret])
    assert [path.parent.exists() for path in left] == [False, False]
    assert in_use.path.exists()
    in_use.remove()


def test_a_read_that_began_before_does_not_leave_a_cache_with_purged_vectors(
    store: AgentMemoryStore, secret: str, home: Path, open_store: Callable[..., AgentMemoryStore], monkeypatch: Any
) -> None:
    vector = np.asarray(store.get_memory(secret).embedding, dtype="<f4").tobytes()
    other, block, real = open_store(), ExitStack(), SQLite.erase

    def meanwhile(database: SQLite) -> None:
        assert other.reader.vectors(np.array([0, 1])).any(axis=1).all()
        block.close()
        real(database)

    block.enter_context(other.reader.frozen())
    monkeypatch.setattr(SQLite, "erase", meanwhile)
    assert store.purge([secret]).code
    assert [path for path in home.rglob("*") if path.is_file() and vector in path.read_bytes()] == []


def test_an_index_that_cannot_be_saved_is_not_left_as_it_was(
    open_store: Callable[..., AgentMemoryStore], traces: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store() as store:
        secret = store.insert_memory({"type": "episodic", "content": SECRET}).id
        store.insert_memory({"type": "episodic", "content": OTHER})
        home = store.config.home
    assert (home / "index" / "index.npz").exists()

    def full(*_args: object) -> None:
        raise StorageError("the index cannot be saved: No space left on device", path=home)

    with open_store() as store:
        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "save", full)
            assert store.purge([secret]).code
        assert not (home / "index" / "index.npz").exists()


def test_kept_answers_lose_their_words_and_still_keep_a_request_from_being_repeated(
    store: AgentMemoryStore, secret: str, home: Path, traces: Callable[..., list[str]]
) -> None:
    answers, requests = Answers(home / "server" / "answers.sqlite"), store.auditing.requests
    runs: list[int] = []

    def run() -> Answer:
        runs.append(1)
        return Answer(text=f"Remembered: {SECRET}", data={"memory_ids": [secret], "content": SECRET})

    def ask() -> tuple[Answer, bool]:
        return answers.once("k", owner="o", request={"text": "x"}, requests=requests, run=run)

    assert ask()[1] is False
    assert traces(home / "server", SECRET) != []
    store.purge([secret])
    assert traces(home, SECRET) == []
    kept, is_kept = ask()
    assert (is_kept, kept.data, len(runs)) == (True, {"memory_ids": [secret]}, 1)
    answers.close()
    assert traces(home, SECRET) == []


def test_vectors_that_no_event_names_go(store: AgentMemoryStore, secret: str, home: Path) -> None:
    model, dimension = store.vector_model
    journal = store._journal
    count = journal.named.rows[model]
    journal.vectors(model, dimension).write(count, np.ones((2, dimension), dtype=np.float32))
    unfinished = MadeVectors(journal.database, journal.vectors("another", 8), 0)
    unfinished.add([(secret, "0" * 64)], np.ones((1, 8), dtype=np.float32))
    store.purge([secret])
    assert VectorTable(home, model).rows().keys() == {0}
    assert VectorTable(home, "another").rows() == {}
    assert table(home, "made_vector") == []
    store.insert_memory({"type": "episodic", "content": "The next memory has a vector again"})
    store.verify(deep=True)


def test_no_view_keeps_what_is_purged_while_it_is_made(
    store: AgentMemoryStore, secret: str, open_store: Callable[..., AgentMemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, real = open_store(), as_of.open_projector

    def meanwhile(*args: Any) -> Any:
        monkeypatch.setattr(as_of, "open_projector", real)
        store.purge([secret])
        return real(*args)

    monkeypatch.setattr(as_of, "open_projector", meanwhile)
    with pytest.raises(StorageError, match="was purged while"):
        other.at("2099-01-01T00:00:00Z", recorded=True)
    with other.at("2099-01-01T00:00:00Z", recorded=True) as view:
        assert [one.content for one in view.every_memory()] == [OTHER]


def test_no_index_keeps_what_another_process_purges_while_it_is_saved(
    store: AgentMemoryStore,
    secret: str,
    home: Path,
    open_store: Callable[..., AgentMemoryStore],
    monkeypatch: pytest.MonkeyPatch,
    traces: Callable[..., list[str]],
) -> None:
    other, real = open_store(), snapshot.save
    assert secret in {one.memory.id for one in MemGraph(other).search_memories("Margaret")}

    def meanwhile(*args: Any) -> None:
        monkeypatch.setattr(snapshot, "save", real)
        store.purge([secret])
        real(*args)

    other.insert_memory({"type": "episodic", "content": "Two builds failed"})
    monkeypatch.setattr(snapshot, "save", meanwhile)
    other.close()
    assert traces(home, "margaret") == []


def test_an_open_view_writes_nothing_after_another_process_has_purged(
    store: AgentMemoryStore,
    secret: str,
    home: Path,
    open_store: Callable[..., AgentMemoryStore],
    traces: Callable[..., list[str]],
) -> None:
    with open_store() as other, other.at("2099-01-01T00:00:00Z", recorded=True) as view:
        store.purge([secret])
        assert len(view.query_by_type("episodic")) == 2
    assert traces(home, "margaret") == []


def test_a_restated_memory_is_in_histories_pages_and_agents_views(
    store: AgentMemoryStore, secret: str, tmp_path: Path
) -> None:
    with MemGraph(store) as memory:
        told = store.insert_memory({"type": "episodic", "content": f"She said: {SECRET}"}).id
        memory.curation.edit(told, {"content": "She said something"})
        assert memory.purge(secret).restated_ids == [told]
        entries: list[Any] = memory.curation.history(told)
        assert entries[0].what == "restated without its history, which a purge removed"
        assert memory.curation.why(told).made is not None
        assert write_page(store, tmp_path / "page.html").memories == 2
        with memory.as_agent("coach") as view:
            assert {one.content for one in view.store.every_memory()} == {OTHER, "She said something"}
        event = entries[0].event
        with pytest.raises(Exception, match="it restates a memory whose history a purge removed"):
            memory.curation.undo(event)
        with pytest.raises(Exception, match="what it removed is gone for good"):
            memory.curation.undo(event + 1)


def test_a_purged_history_can_be_signed_anew_and_receipts_still_hold(
    open_store: Callable[..., AgentMemoryStore], traces: Callable[..., list[str]]
) -> None:
    def sign_anew(store: AgentMemoryStore) -> None:
        keys_home = store.config.keys_home
        rotate(store._journal, FileKeys(keys_home), now=store.now, rotated_by="test")
        reseal(store._journal, now=store.now, resealed_by="test")

    receipts = []
    with open_store() as store:
        secret = store.insert_memory({"type": "episodic", "content": SECRET}).id
        kept = store.insert_memory({"type": "episodic", "content": OTHER}).id
        second = store.insert_memory({"type": "episodic", "content": "The key is under the mat"}).id
        home = store.config.home
        receipts.append(store.purge([secret]))
        sign_anew(store)
    with open_store() as store:
        assert [one.id for one in store.every_memory()] == [kept, second]
        store.verify(deep=True)
        assert traces(home, SECRET) == []
        assert store.check_receipt(receipts[0]).events == 1
        receipts.append(store.purge([second]))
        rotate(store._journal, FileKeys(store.config.keys_home), now=store.now, rotated_by="test")
    with open_store() as store:
        assert [store.check_receipt(one).events for one in receipts] == [1, 1]
        sign_anew(store)
    with open_store() as store:
        for one in receipts:
            assert store.check_receipt(one).events == 1
            with pytest.raises(InvalidInputError, match="was changed"):
                store.check_receipt(one.model_copy(update={"ids": [kept]}))


def test_backups_are_listed_and_what_repairs_cut_off_goes(
    store: AgentMemoryStore, secret: str, home: Path, tmp_path: Path, traces: Callable[..., list[str]]
) -> None:
    with MemGraph(store) as memory:
        memory.backup(tmp_path / "all.tar.gz")
        (home / "quarantine" / "1").mkdir(parents=True)
        (home / "quarantine" / "1" / "000000000001.jsonl").write_text(SECRET, "utf-8")
        receipt = memory.purge(secret)
        assert [(one.kind, one.path) for one in receipt.exports] == [("backup", str(tmp_path / "all.tar.gz"))]
        assert traces(home, SECRET) == []
