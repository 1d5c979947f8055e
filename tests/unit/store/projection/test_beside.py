"""Recall beside a write of another thread: it waits for nobody, and sees the store as of the last finished commit."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.errors import GraphError
from memgraph.store.repair import cut_journal, find_damage
from memgraph.store.rows import Rows, in_bulk
from tests.tables import database, harm_event, raw_lines

Open = Callable[..., Any]
OLD, NEW = 40, 200
"""So many new ones are more than a thousand rows: they are brought into a copy of the index."""
WAIT_S = 20.0


def episodes(count: int, word: str) -> list[dict[str, Any]]:
    return [
        {"type": "episodic", "content": f"The {word} deploy number {n} failed on step {n % 7}", "tags": [word, f"t{n % 9}"], "project_id": "P"}
        for n in range(count)
    ]  # fmt: skip


def searched(store: Any, text: str = "deploy failed") -> list[str]:
    found = memgraph.MemoryRetrieval(store).search_memories(text, limit=500)
    return sorted(one.memory.content for one in found)


def shown(store: Any) -> set[int]:
    """Return how many memories each way of reading shows: one number, if all see the same state."""
    with store.reader.frozen():
        listed = int(store.reader.listed().sum())
        counts = {listed, len(store.reader.read(store.reader.ranked_ids(store.reader.listed())))}
    return {*counts, store.get_stats().total, len(store.get_all_memories()), len(searched(store))}


@pytest.fixture
def stocked(store: Any) -> Any:
    """Return a store in which this process has recalled, so that all it needs for that is in memory."""
    store.insert_memories(episodes(OLD, "old"))
    assert len(searched(store)) == OLD
    return store


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


@contextmanager
def held_up(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Iterator[threading.Event]:
    """Let a call wait, in the midst of a write, until the block is over; the event tells that it has come so far."""
    arrived, is_over, real = threading.Event(), threading.Event(), getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        arrived.set()
        assert is_over.wait(WAIT_S), "the write waited too long"
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, call)
        try:
            yield arrived
        finally:
            is_over.set()


def in_time(future: Future[Any]) -> Any:
    return future.result(WAIT_S / 2)


@pytest.mark.parametrize(
    ("part", "count"),
    [
        ("journal.append", NEW),
        pytest.param("rows.apply", NEW, marks=pytest.mark.embedded),
        ("journal.append", 3),
        ("rows.apply", 3),
    ],
)
def test_reads_beside_a_writer_see_the_previous_state(
    stocked: Any, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, part: str, count: int
) -> None:
    owner, name = part.split(".")
    some = stocked.get_all_memories()[0].id
    with held_up(monkeypatch, getattr(stocked._projector, owner), name) as arrived:
        writing = pool.submit(stocked.insert_memories, episodes(count, "new"))
        assert arrived.wait(WAIT_S)
        assert in_time(pool.submit(shown, stocked)) == {OLD}
        assert in_time(pool.submit(stocked.get_memory, some)).id == some
        query = {"task_description": "deploy failed", "max_episodic": 3}
        assert len(in_time(pool.submit(memgraph.MemoryRetrieval(stocked).retrieve, query)).memories) == 3
        assert not writing.done()
    in_time(writing)
    assert shown(stocked) == {OLD + count}
    stocked.verify(deep=True)


@pytest.mark.embedded
def test_recalls_beside_a_bulk_insert_see_all_of_it_or_nothing(stocked: Any, pool: ThreadPoolExecutor) -> None:
    new = 1_000
    during: list[int] = []
    inserting = pool.submit(stocked.insert_memories, episodes(new, "new"))
    with stocked.reader.frozen():
        pass
    while not inserting.done():
        with stocked.reader.frozen():
            listed = int(stocked.reader.listed().sum())
            tagged = sum("new" in memory.tags for memory in stocked.get_all_memories())
            hits = len(searched(stocked, "new"))
        assert (listed, tagged, hits) in {(OLD, 0, OLD), (OLD + new, new, 500)}
        during.append(listed)
    in_time(inserting)
    assert during.count(OLD) >= 3
    assert shown_count(stocked) == OLD + new
    assert during == sorted(during)


def shown_count(store: Any) -> int:
    total: int = store.get_stats().total
    return total


def test_updates_and_deletions_are_atomic_for_readers(
    stocked: Any, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = stocked.get_all_memories()[:2]

    def change() -> None:
        with stocked.exclusive():
            stocked.update_memory(first.id, content="Rolled back by hand")
            stocked.delete_memory(second.id)

    with held_up(monkeypatch, stocked._projector.rows, "apply") as arrived:
        changing = pool.submit(change)
        assert arrived.wait(WAIT_S)
        assert in_time(pool.submit(stocked.get_memory, first.id)).content == first.content
        assert in_time(pool.submit(searched, stocked)) == searched(stocked)
        assert in_time(pool.submit(stocked.get_memory, second.id)) is not None
    in_time(changing)
    assert stocked.get_memory(first.id).content == "Rolled back by hand"
    assert stocked.get_memory(second.id) is None
    assert "Rolled back by hand" in searched(stocked, "rolled back by hand")


def test_a_use_being_committed_is_counted_once(
    stocked: Any, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = stocked.get_all_memories()[0].id
    stocked.record_access(memory_id)

    def count() -> tuple[int, int]:
        with stocked.reader.frozen():
            index = stocked.reader.index
            return stocked.get_memory(memory_id).access_count, int(index.column("access_count")[index.slot(memory_id)])

    with held_up(monkeypatch, stocked._projector.rows, "apply") as arrived:
        flushing = pool.submit(stocked.flush)
        assert arrived.wait(WAIT_S)
        assert in_time(pool.submit(count)) == (1, 1)
        assert in_time(pool.submit(stocked.record_access, memory_id)).access_count == 2
        assert in_time(pool.submit(count)) == (2, 2)
    in_time(flushing)
    assert count() == (2, 2)
    stocked.flush()
    assert count() == (2, 2)
    stocked.verify(deep=True)


def test_a_commit_that_the_rows_refuse_leaves_nothing(
    stocked: Any, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in the journal nor for readers; the next one, in the same block, follows what was before."""
    events = raw_lines(stocked.config.home)

    def fail(*_: Any) -> None:
        raise GraphError("out of order")

    with stocked.exclusive():
        with monkeypatch.context() as patch:
            patch.setattr(stocked._projector.rows, "apply", fail)
            with pytest.raises(GraphError, match="out of order"):
                stocked.insert_memories(episodes(NEW, "new"))
        assert shown(stocked) == in_time(pool.submit(shown, stocked)) == {OLD}
        assert raw_lines(stocked.config.home) == events
        stocked.insert_memories(episodes(3, "newer"))
    assert shown(stocked) == {OLD + 3}
    stocked.verify(deep=True)


@pytest.mark.embedded
def test_recall_works_during_a_rebuild(stocked: Any, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    before = searched(stocked)
    with held_up(monkeypatch, stocked._projector.rows, "rebuild") as arrived:
        rebuilding = pool.submit(stocked.rebuild)
        assert arrived.wait(WAIT_S)
        assert in_time(pool.submit(searched, stocked)) == before
    in_time(rebuilding)
    assert searched(stocked) == before


def test_reading_links_does_not_wait_for_the_writer(
    stocked: Any, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = stocked.get_all_memories()[0].id
    with stocked.reader.frozen(), pytest.raises(RuntimeError, match="inside a block of reads"):
        stocked.suppress(memory_id)

    def linked() -> tuple[int, int]:
        with stocked.reader.frozen():
            return len(stocked.links(memory_id)), stocked.get_stats().total

    before = linked()
    with held_up(monkeypatch, stocked._projector.rows, "apply") as arrived:
        writing = pool.submit(stocked.insert_memories, episodes(NEW, "new"))
        assert arrived.wait(WAIT_S)
        assert in_time(pool.submit(linked)) == before
    in_time(writing)
    assert linked()[1] == OLD + NEW


def test_concurrent_writes_reads_and_uses_are_consistent(open_store: Open) -> None:
    store = open_store()
    store.insert_memories(episodes(OLD, "old"))
    ids = [memory.id for memory in store.get_all_memories()]

    def write(number: int) -> None:
        store.insert_memories(episodes(150 if number == 6 else 2, f"w{number}"))

    def read(number: int) -> None:
        assert memgraph.MemoryRetrieval(store).retrieve({"task_description": "deploy failed"}).memories
        assert store.record_access(ids[number % 5]).access_count > 0

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(read if n % 3 else write, n) for n in range(15)]:
            done.result(60)
    store.flush()
    assert store.get_stats().total == OLD + 150 + 4 * 2
    counted = sum(memory.access_count for memory in store.get_all_memories())
    assert counted >= 10 * 2
    store.verify(deep=True)
    assert sum(memory.access_count for memory in open_store().get_all_memories()) == counted


def test_bulk_work_yields_to_threads_and_restores_the_interpreter() -> None:
    before = sys.getswitchinterval()
    with in_bulk():
        assert sys.getswitchinterval() < before
        with in_bulk():
            assert sys.getswitchinterval() < before
        assert sys.getswitchinterval() < before
    assert np.isclose(sys.getswitchinterval(), before)


def test_a_read_that_has_to_wait_for_another_process_does_not_keep_the_processor_busy(
    open_store: Open, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store() as store:
        for one in episodes(3, "old"):
            store.insert_memory(one)
        config = store.config
    harm_event(config.home, len(raw_lines(config.home)))
    found = find_damage(config)
    assert found is not None
    cut_journal(found, config)  # the rows are of another event with the number of the last one
    store, looks, real = open_store(), list[object](), Rows.state
    monkeypatch.setattr(Rows, "state", lambda rows: looks.append(rows) or real(rows))
    with database(config.home) as other:
        other.execute("BEGIN IMMEDIATE")
        reading = pool.submit(store.get_all_memories)
        time.sleep(0.3)
        assert (reading.done(), 0 < len(looks) < 200) == (False, True)
    assert len(in_time(reading)) == 2
