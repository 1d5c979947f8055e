"""Compaction: what the baseline stands for, what it moves, and what stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, MemGraph
from memgraph.errors import InvalidInputError, KeyMissingError
from memgraph.store.compaction import compact
from memgraph.store.maintenance.keys import list_keys, reseal_store, rotate_key
from memgraph.testing import FakeClock
from tests.tables import change, everything, lines_of, raw_lines, table

SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"


def config_of(folder: Path) -> AgentMemoryConfig:
    return AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")


def archived(folder: Path) -> int:
    """Return the number of the last archived event."""
    return max((last for _, _, last, *_ in table(folder / "store", "archive")), default=0)


@pytest.fixture
def grown(open_store: Callable[..., Any], clock: FakeClock) -> Callable[..., Any]:
    """Return a store with one memory for each of ten days from 1 February 2026, and the memories' ids."""

    def make(**parts: Any) -> tuple[Any, list[str]]:
        store = open_store(clock=clock, **parts)
        ids = []
        for number in range(10):
            text = SECRET if number == 2 else f"On day {number} the build failed"
            memory = {"type": "episodic", "content": text, "project_id": "P", "tags": [f"t{number}"]}
            ids.append(store.insert_memory(memory).id)
            clock.advance(days=1)
        return store, ids

    return make


def test_opening_begins_at_the_baseline_and_history_stays(
    grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path, seen: Any
) -> None:
    store, ids = grown()
    store.delete_memory(ids[4])
    before, past = seen(store), [memory.id for memory in store.at("2026-02-04").every_memory()]
    lines = raw_lines(tmp_path / "store")
    store.close()
    planned = compact(config_of(tmp_path), before="2026-02-07", dry_run=True, clock=clock)
    assert archived(tmp_path) == 0
    done = compact(config_of(tmp_path), before="2026-02-07", clock=clock)
    same = {"seq", "until", "is_new", "archived_events", "removed_texts", "events_left"}
    assert planned.model_dump(include=same) == done.model_dump(include=same)
    assert raw_lines(tmp_path / "store") == lines, "byte for byte, archived ones too"
    assert done.is_new
    assert done.until == "2026-02-06T09:00:00.000Z"
    assert done.archived_events == done.seq == archived(tmp_path) > 0
    store = open_store(clock=clock)
    assert store._journal.tail.seq - done.seq == done.events_left > 0
    assert seen(store) == before
    store.rebuild()
    assert seen(store) == before
    assert store.verify(deep=True) == done.seq + done.events_left
    assert [memory.id for memory in store.at("2026-02-04").every_memory()] == past
    assert store.undelete(ids[4]).content == "On day 4 the build failed"
    assert store.notices == []


def test_only_the_events_after_the_baseline_are_read_on_opening(
    grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path
) -> None:
    store, ids = grown()
    store.close()
    compact(config_of(tmp_path), before="2026-02-07", clock=clock)
    change(tmp_path / "store", "UPDATE archive SET body = x'00'")
    change(tmp_path / "store", "DELETE FROM head")
    store = open_store(clock=clock)
    store.rebuild()
    assert {memory.id for memory in store.every_memory()} == set(ids)


def test_again_and_further(grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path) -> None:
    store, _ = grown()
    digest = store.digest()
    store.close()
    config = config_of(tmp_path)
    assert not compact(config, before="2026-01-01", clock=clock).is_new
    assert compact(config, clock=clock).until is None, "everything is of this month"
    first = compact(config, before="2026-02-04", clock=clock)
    assert compact(config, before="2026-02-04", clock=clock).is_new is False
    assert compact(config, before="2026-02-02", clock=clock).seq == first.seq, "a baseline never moves back"
    last = compact(config, before="2026-03-01", clock=clock)
    assert last.seq > first.seq
    assert last.events_left == 0
    assert len(table(tmp_path / "store", "baseline")) == 1
    with open_store(clock=clock) as store:
        assert store.digest() == digest
        store.insert_memory({"type": "episodic", "content": "Later"})
        assert store.verify(deep=True) == last.seq + 1
    with pytest.raises(InvalidInputError, match="is not a date"):
        compact(config, before="yesterday", clock=clock)


def test_an_open_process_goes_on(grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path) -> None:
    store, ids = grown()
    config = config_of(tmp_path)
    compact(config, before="2026-02-05", clock=clock)
    assert store.get_memory(ids[0]) is not None
    store.insert_memory({"type": "episodic", "content": "Meanwhile"})
    compact(config, before="2026-02-20", clock=clock)
    store.rebuild()
    store.insert_memory({"type": "episodic", "content": "And again"})
    assert len(list(store.every_memory())) == 12
    assert store.verify(deep=True)
    digest = store.digest()
    store.close()
    with open_store(clock=clock) as store:
        assert store.digest() == digest
        assert store.notices == []


def test_events_of_open_tasks_stay(grown: Any, clock: FakeClock, tmp_path: Path) -> None:
    store, _ = grown()
    tasks = MemGraph(store).tasks
    tasks.upsert("One", task_id="one")
    clock.advance(days=1)
    tasks.upsert("Two", task_id="two")
    clock.advance(days=1)
    tasks.set_status("one", "closed")
    clock.advance(days=1)
    store.close()
    done = compact(config_of(tmp_path), before="2026-03-01", closed_tasks=True, clock=clock)
    assert done.until == "2026-02-11T09:00:00.000Z", "before the first event of task two"
    assert compact(config_of(tmp_path), before="2026-03-01", clock=clock).events_left == 0


def test_a_purge_leaves_no_word_in_baseline_or_archive(
    grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path
) -> None:
    store, ids = grown()
    store.close()
    done = compact(config_of(tmp_path), before="2026-02-07", clock=clock)
    words = SECRET.split()
    runs = [" ".join(words[start : start + 8]).encode() for start in range(len(words) - 7)]

    def traces() -> list[bytes]:
        data = everything(tmp_path / "store")
        return [run for run in runs if run in data]

    assert traces() == runs
    with open_store(clock=clock) as store:
        receipt = store.purge([ids[2]])
        assert traces() == []
        assert store._journal.baseline.seq == done.seq
        assert store.check_receipt(receipt).events == 1
        store.verify(deep=True)
        store.rebuild()
        digest = store.digest()
        assert store.get_memory(ids[2]) is None
    with open_store(clock=clock) as store:
        assert store.digest() == digest
        assert store.notices == []


def test_a_purge_by_an_open_process_cleans_the_baseline_that_another_has_made(
    grown: Any, clock: FakeClock, tmp_path: Path
) -> None:
    store, ids = grown()
    compact(config_of(tmp_path), before="2026-02-07", clock=clock)
    assert SECRET.encode() in everything(tmp_path / "store")
    store.purge([ids[2]])
    assert SECRET.encode() not in everything(tmp_path / "store")
    store.rebuild()
    assert store.verify(deep=True)


def test_compaction_frees_keys(grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path) -> None:
    store, ids = grown()
    store.close()
    config = config_of(tmp_path)
    former = rotate_key(config, clock=clock).previous_key_id
    clock.advance(days=60)
    with pytest.raises(KeyMissingError, match="may no longer verify"):
        open_store(clock=clock)
    compact(config, before="2026-03-01", clock=clock)
    with open_store(clock=clock) as store:
        assert store.verify() > 10
    assert next((one.key_id, one.state) for one in list_keys(config, clock=clock).keys) == (former, "archived")
    assert list_keys(config, clock=clock).problems == ()
    (path,) = (tmp_path / "keys" / "keys").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "earlier": []}))
    with open_store(clock=clock) as store:
        store.rebuild()
        assert {memory.id for memory in store.every_memory()} == set(ids)
        with pytest.raises(KeyMissingError, match=former):
            store.verify()


def test_resealing_keeps_the_baseline(grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path) -> None:
    store, _ = grown()
    digest = store.digest()
    store.close()
    config = config_of(tmp_path)
    done = compact(config, before="2026-02-07", clock=clock)
    rotate_key(config, clock=clock)
    reseal_store(config, clock=clock)
    with open_store(clock=clock) as store:
        assert store._journal.baseline.seq == done.seq
        assert store.digest() == digest
        assert store.verify(deep=True) == done.seq + done.events_left + 2
        assert store.notices == []
    assert archived(tmp_path) == done.seq
    assert {line["head"]["key_id"] for line in lines_of(tmp_path / "store")} == {
        list_keys(config, clock=clock).keys[0].key_id
    }
    assert [one.state for one in list_keys(config, clock=clock).keys] == ["signs", "not needed"]


def test_a_purge_while_a_resealing_waits_for_the_store_is_resealed_with_it(
    grown: Any, open_store: Any, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The purge makes the baseline anew: the resealing must sign that one, not the one that it found when it opened the journal."""
    from memgraph.store.maintenance import keys

    store, ids = grown()
    store.close()
    config = config_of(tmp_path)
    done = compact(config, before="2026-02-07", clock=clock)
    rotate_key(config, clock=clock)
    open_journal = keys.open_store_journal

    def opened(*args: Any, **options: Any) -> Any:
        journal = open_journal(*args, **options)
        with open_store(clock=clock) as store:
            store.purge([ids[2]])
        return journal

    monkeypatch.setattr(keys, "open_store_journal", opened)
    reseal_store(config, clock=clock)
    with open_store(clock=clock) as store:
        assert store._journal.baseline.seq == done.seq
        assert store.verify(deep=True) == done.seq + done.events_left + 3
        assert ids[2] not in {memory.id for memory in store.every_memory()}
        assert store.notices == []
    for path in (tmp_path / "store").rglob("*"):
        assert not (path.is_file() and b"Margaret" in path.read_bytes()), path
