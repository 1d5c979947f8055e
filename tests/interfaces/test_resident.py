"""A store that is kept open is opened again when its journal was replaced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.diagnostics.reports import RecallWatch
from memgraph.errors import BusyError, ClosedError
from memgraph.interfaces.http.access.stores import Stores
from memgraph.interfaces.resident import Resident
from memgraph.journal.head_file import HeadFile
from memgraph.journal.journal import ReplacedJournalError
from memgraph.lifecycle import sleep
from memgraph.store.compaction import compact
from memgraph.store.maintenance.keys import reseal_store, rotate_key
from memgraph.testing import FakeClock, FakeEmbedder


class Opener:
    """Opens one store, and counts how often."""

    def __init__(self, folder: Path) -> None:
        self.config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        self.times = 0

    def __call__(self, *_: object) -> memgraph.MemGraph:
        self.times += 1
        store = memgraph.AgentMemoryStore(self.config, embedder=FakeEmbedder(16), clock=FakeClock())
        return memgraph.MemGraph(store)

    def reseal(self) -> None:
        rotate_key(self.config, clock=FakeClock())
        reseal_store(self.config, clock=FakeClock())


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return Opener(tmp_path)


@pytest.fixture
def resident(opener: Opener) -> Iterator[Resident]:
    made = Resident(opener)
    yield made
    made.close()


@pytest.mark.parametrize("compacts", ["before", "after", ""])
def test_it_is_opened_again_once_after_a_resealing(
    opener: Opener, resident: Resident, caplog: Any, compacts: str
) -> None:
    with opener() as other:
        other.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
    if compacts == "before":
        compact(opener.config, before="2100-01-01", clock=FakeClock())
    first = resident.memory()
    first.search_memories("cache")
    opener.reseal()
    if compacts == "after":
        compact(opener.config, before="2100-01-01", clock=FakeClock())
    first.store.insert_memory({"type": "episodic", "content": "The cache is warm"})
    again = resident.memory()
    assert again is first
    assert sorted(one.content for one in again.store.get_all_memories()) == ["The cache is cold", "The cache is warm"]
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"], "a resealing is no forgery"
    assert caplog.text.count("opening the store again") == 1


def test_a_store_is_opened_while_it_is_rotated_and_resealed(
    opener: Opener, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    with opener() as memory:
        memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
    read = HeadFile.read

    def late(self: HeadFile) -> Any:
        found = read(self)
        monkeypatch.undo()
        opener.reseal()
        return found

    monkeypatch.setattr(HeadFile, "read", late)
    with opener() as memory:
        assert len(memory.store.get_all_memories()) == 1
        assert memory.store.notices == []
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"], "a resealing is no forgery"


def test_other_writers_a_rotation_and_a_purge_do_not_open_it_again(opener: Opener, resident: Resident) -> None:
    memory = resident.memory()
    memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
    with opener() as other:
        made = other.store.insert_memory({"type": "episodic", "content": "The cache is warm"})
    rotate_key(opener.config, clock=FakeClock())
    before = opener.times
    assert resident.memory() is memory
    memory.store.purge(made.id)
    assert resident.memory() is memory
    memory.store.insert_memory({"type": "episodic", "content": "The cache is hot"})
    assert resident.memory() is memory
    assert opener.times == before


def test_a_server_keeps_its_lock_on_a_store_that_is_opened_again(opener: Opener, tmp_path: Path) -> None:
    stores = Stores(lambda tenant: tmp_path / str(tenant), opener, locks=True)
    first = stores.memory("ada")
    first.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
    opener.reseal()
    assert stores.memory("ada").store.insert_memory({"type": "episodic", "content": "The cache is warm"})
    stores.close()
    other = Stores(lambda tenant: tmp_path / str(tenant), opener, locks=True)
    assert other.memory("ada"), "the lock was released"
    other.close()


def test_a_sleep_goes_on_when_the_journal_is_resealed_meanwhile(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opener() as memory:
        for project in ("shop", "cafe"):
            attempt = {"type": "episodic", "project_id": project, "outcome": "negative", "tags": ["auth", "jwt"]}
            memory.store.insert_memories(
                [{**attempt, "content": f"Attempt {n} failed", "build_id": f"b{n}"} for n in range(3)]
            )
        embed = memory.store.embedder.embed

        def resealed(texts: Any) -> Any:
            monkeypatch.undo()
            opener.reseal()
            return embed(texts)

        monkeypatch.setattr(memory.store.embedder, "embed", resealed)
        report = sleep(memory.store)
        assert memory.store.embedder.embed != resealed
        made = memory.store.query_by_type("semantic")
    assert report.complete
    assert {one.project_id for one in made} == {"shop", "cafe"}


def test_a_part_of_the_store_that_was_resealed_says_so(opener: Opener) -> None:
    with opener() as memory:
        memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
        reader = memory.store.reader
        opener.reseal()
        assert memory.store.get_all_memories()
        with pytest.raises(ReplacedJournalError, match="open the store again"):
            _ = reader.index


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Let a store be opened again only when it may: in the midst, with some of its parts made."""
    opening, may_open = threading.Event(), threading.Event()

    class Slow(RecallWatch):
        def __init__(self, *given: Any, **options: Any) -> None:
            opening.set()
            assert may_open.wait(60)
            super().__init__(*given, **options)

    monkeypatch.setattr("memgraph.store.store.RecallWatch", Slow)
    may_open.set()
    return opening, may_open


@pytest.mark.parametrize("use", ["get_all_memories", "digest", "close"])
def test_other_threads_wait_until_it_is_opened_again(
    opener: Opener, slowly: tuple[threading.Event, threading.Event], use: str
) -> None:
    opening, may_open = slowly
    with opener() as memory, ThreadPoolExecutor(2) as pool:
        memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
        opening.clear()
        may_open.clear()
        opener.reseal()
        first = pool.submit(memory.store.get_all_memories)
        assert opening.wait(60)
        second = pool.submit(getattr(memory.store, use))
        assert not wait([second], timeout=0.3).done
        may_open.set()
        assert second.exception(60) is None
        if use == "close":
            with pytest.raises(ClosedError, match="the store is closed"):
                memory.store.get_all_memories()
        else:
            assert len(first.result(60)) == 1


def test_what_keeps_it_from_being_opened_again_may_pass(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: Any) -> Any:
        raise BusyError("it", pid=None, timeout_s=1.0)

    with opener() as memory:
        memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
        opener.reseal()
        with monkeypatch.context() as patched:
            patched.setattr("memgraph.store.store.open_store_journal", busy)
            with pytest.raises(BusyError):
                memory.store.get_all_memories()
        assert len(memory.store.get_all_memories()) == 1


def test_it_can_be_closed_although_the_journal_was_replaced_while_uses_were_pending(
    opener: Opener, caplog: Any
) -> None:
    with opener() as memory:
        made = memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
        memory.store.record_access(made.id)
        opener.reseal()
    assert "the uses of memories in the last second are not recorded" in caplog.text


def test_what_is_read_of_a_journal_that_was_resealed_is_no_damage(opener: Opener) -> None:
    with opener() as memory:
        memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
        reader = memory.store.reader
        opener.reseal()
        with pytest.raises(ReplacedJournalError, match="open the store again"):
            list(reader.events_after(0))


def test_a_block_of_reads_goes_on_when_another_thread_learns_that_the_key_was_rotated(
    opener: Opener, caplog: Any
) -> None:
    with opener() as memory, ThreadPoolExecutor(1) as pool:
        made = memory.store.insert_memory({"type": "episodic", "content": "The cache is cold"})
        journal = memory.store._journal
        with memory.store.reader.frozen():
            rotate_key(opener.config, clock=FakeClock())
            known = journal.used
            written = pool.submit(memory.store.insert_memory, {"type": "episodic", "content": "The cache is warm"})
            while journal.used is known:
                assert not written.done()
            assert memory.store.reader.read([made.id])[0].content == "The cache is cold"
        written.result(60)
        assert len(memory.store.get_all_memories()) == 2
    assert "not what was written" not in caplog.text
