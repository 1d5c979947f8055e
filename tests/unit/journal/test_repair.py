"""Accepting a journal that its head file contradicts, and refusing real damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.disk.lock import ProcessLock
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, MemGraphError, TruncatedJournalError
from memgraph.journal.head_file import Head
from memgraph.journal.journal import Journal
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.store import JournalRepaired
from memgraph.store import repair_store
from memgraph.store.repair import Condition, drop_baseline
from memgraph.testing import FakeClock

Open = Callable[..., Journal]
Paths = Callable[[Journal], Path]
Sql = Callable[..., Any]
MOMENT = "2026-02-03T10:00:00.000Z"


@pytest.fixture
def stocked(journal: Journal, write: Callable[..., Any], added: Callable[..., MemoryAdded]) -> Journal:
    for number in range(1, 5):
        write(journal, added(number))
    return journal


@pytest.fixture
def config(tmp_path: Path) -> memgraph.AgentMemoryConfig:
    return memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")


@pytest.fixture
def look(config: Any) -> Callable[[], Condition]:
    return lambda: repair_store(config)


@pytest.fixture
def settle(config: Any) -> Callable[[Condition], Condition]:
    clock = FakeClock(MOMENT)
    given = {"accepted_by": "ada", "reason": "an old copy, on purpose", "clock": clock}
    return lambda found: repair_store(config, accept_head=found, **given)  # type: ignore[arg-type]


def cut(sql: Sql, kept: int) -> None:
    """Leave the first events, as an older copy of the database would hold them."""
    sql("DELETE FROM event WHERE seq > ?", kept)
    sql("DELETE FROM head")


def last_event(journal: Journal) -> Any:
    return [event for commit in journal.replay() for event in commit.events][-1]


def break_head(case: str, path: Path, journal: Journal, sql: Sql) -> None:
    if case == "truncated":
        cut(sql, 3)
    elif case == "emptied":
        cut(sql, 0)
    elif case == "missing":
        path.unlink()
    elif case == "damaged":
        path.write_bytes(b"\xff noise " * 60)
    elif case == "absurd":
        path.write_text(json.dumps({"seq": 10**30, "signature": "f" * 64}))
    elif case == "other":
        path.write_text(json.dumps({"seq": 3, "signature": "f" * 64}))
    elif case == "other last":
        path.write_text(json.dumps({"seq": journal.tail.seq, "signature": "F" * 64}))


CASES = {
    "truncated": ("ahead", 3, 2),
    "emptied": ("ahead", 0, 5),
    "missing": ("missing", 5, 0),
    "damaged": ("damaged", 5, 0),
    "absurd": ("damaged", 5, 0),
    "other": ("other", 5, 0),
    "other last": ("other", 5, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_an_acceptance_is_reported_recorded_and_permanent(
    stocked: Journal, head_path: Paths, sql: Sql, open_one: Open, look: Any, settle: Any, case: str
) -> None:
    state, seq, lost = CASES[case]
    break_head(case, head_path(stocked), stocked, sql)
    found = look()
    assert (found.seq, len(found.lost), found.head.state) == (seq, lost, state)
    assert list(found.lost) == list(range(seq + 1, 6))[:lost]

    then = settle(found)

    again = open_one()
    assert again.notices == []
    assert again.verify() == then.seq == again.tail.seq
    event = last_event(again)
    assert isinstance(event.payload, JournalRepaired)
    record = event.payload
    assert (record.seq, record.events_lost, record.repaired_at) == (seq, lost, MOMENT)
    assert (record.repaired_by, record.reason, event.actor) == ("ada", "an old copy, on purpose", "user")
    assert [(witness.kind, witness.state) for witness in record.witnesses] == [("head", state)]
    assert json.loads(head_path(again).read_text()) == {"seq": then.seq, "signature": event.signature}
    assert not then.is_contradicted
    assert not look().is_contradicted


def test_examining_changes_nothing(stocked: Journal, head_path: Paths, sql: Sql, look: Any) -> None:
    cut(sql, 3)
    head, before = head_path(stocked).read_bytes(), sql("SELECT * FROM event")
    assert list(look().lost) == [4, 5]
    assert head_path(stocked).read_bytes() == head
    head_path(stocked).unlink()
    assert look().head.state == "missing"
    assert (sql("SELECT * FROM event"), sql("SELECT * FROM head")) == (before, [])
    assert not head_path(stocked).exists()


def test_a_whole_journal_has_nothing_to_accept(stocked: Journal, look: Any, settle: Any) -> None:
    found = look()
    assert (found.is_contradicted, len(found.lost)) == (False, 0)
    with pytest.raises(JournalError, match="nothing to accept"):
        settle(found)


def test_only_the_examined_condition_is_accepted(
    stocked: Journal, head_path: Paths, look: Any, settle: Any, write: Any, added: Any, sql: Sql
) -> None:
    head_path(stocked).unlink()
    found = look()
    write(stocked, added(8))
    head_path(stocked).unlink()
    before = sql("SELECT * FROM event")
    with pytest.raises(JournalError, match="changed"):
        settle(found)
    assert sql("SELECT * FROM event") == before
    assert not head_path(stocked).exists()


@pytest.mark.parametrize("state", ["behind", "ahead"])
def test_a_head_in_the_database_that_contradicts_the_events(
    stocked: Journal, sql: Sql, open_one: Open, look: Any, settle: Any, config: Any, write: Any, added: Any, state: str
) -> None:
    """It is signed, so every opening is refused, whatever the head file says."""
    (before,) = sql("SELECT seq, signature, body, code FROM head")
    write(stocked, added(8))
    if state == "behind":
        sql("UPDATE head SET (seq, signature, body, code) = (?, ?, ?, ?)", *before)
    else:
        sql("DELETE FROM event WHERE seq = 6")
        stocked._heads.replace(Head(before[0], before[1].hex()))
    ends, names, lost = (6, 5, 0) if state == "behind" else (5, 6, 1)
    with pytest.raises(DamagedJournalError, match=f"it ends with event {ends}, its head names event {names}"):
        open_one()
    found = look()
    assert (found.seq, found.head.state, len(found.lost)) == (ends, "agrees", lost)
    assert found.row is not None
    assert (found.row.state, found.row.seq) == (state, names)
    with pytest.raises(JournalError, match="accept-head"):
        drop_baseline(config)
    then = settle(found)
    again = open_one()
    assert again.verify() == then.seq == ends + 1
    (witness,) = last_event(again).payload.witnesses
    assert (witness.kind, witness.seq) == ("head", names)
    assert not look().is_contradicted


@pytest.mark.parametrize("number", ["'x'", "x'05'", "9223372036854775807"])
def test_the_last_event_without_its_number_is_lost(
    stocked: Journal, sql: Sql, open_one: Open, look: Any, settle: Any, number: str
) -> None:
    sql(f"UPDATE event SET seq = {number} WHERE seq = 5")
    with pytest.raises(DamagedJournalError, match="it ends with event 4, its head names event 5"):
        open_one()
    found = look()
    assert list(found.lost) == [5]
    settle(found)
    assert open_one().verify() == 5


def test_who_writes_before_the_lock_is_taken_is_not_undone(
    stocked: Journal, head_path: Paths, look: Any, settle: Any, write: Any, added: Any, open_one: Open, monkeypatch: Any
) -> None:
    head_path(stocked).unlink()
    found, acquire, written = look(), ProcessLock.acquire, list[Any]()

    def late(lock: ProcessLock, timeout_s: float) -> None:
        if not written:
            written.append(None)
            written[:] = write(stocked, added(8))
        acquire(lock, timeout_s)

    monkeypatch.setattr(ProcessLock, "acquire", late)
    with pytest.raises(JournalError, match="changed"):
        settle(found)
    assert open_one().verify() == written[0].after.seq == found.seq + 1


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM event WHERE seq = 1",
        "DELETE FROM event WHERE seq = 3",
        "UPDATE event SET seq = 9 WHERE seq = 5",
        "UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), 'Memory 2', 'Memory X') AS BLOB)",
        "UPDATE event SET signature = randomblob(32) WHERE seq = 5",
    ],
)
def test_a_broken_chain_is_not_accepted(stocked: Journal, head_path: Paths, sql: Sql, look: Any, change: str) -> None:
    sql(change)
    head_path(stocked).write_text("damaged")
    with pytest.raises(DamagedJournalError):
        look()


def test_after_a_crash_between_record_and_head_file_the_call_can_be_repeated(
    stocked: Journal, sql: Sql, open_one: Open, look: Any, settle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(sql, 2)

    def crash(self: Any, head: Any) -> None:
        raise KeyboardInterrupt

    found = look()
    with monkeypatch.context() as patched:
        patched.setattr("memgraph.journal.head_file.HeadFile.replace", crash)
        with pytest.raises(KeyboardInterrupt):
            settle(found)
    with pytest.raises(TruncatedJournalError):
        open_one()
    settle(look())
    assert open_one().verify() == 4
    assert [type(event.payload) for commit in open_one().replay() for event in commit.events].count(
        JournalRepaired
    ) == 2


def test_an_adoption_is_reported_once(stocked: Journal, head_path: Paths, open_one: Open) -> None:
    head = head_path(stocked).read_bytes()
    head_path(stocked).unlink()
    assert len(open_one().notices) == 1
    assert head_path(stocked).read_bytes() == head
    assert open_one().notices == []


class TestTheDoor:
    def config(self, tmp_path: Path) -> Any:
        return memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")

    def test_an_accepted_old_copy_can_be_used(self, open_store: Any, tmp_path: Path, clock: Any) -> None:
        store = open_store()
        kept = store.insert_memory({"type": "episodic", "content": "in the backup"})
        store.close()
        shutil.copytree(tmp_path / "store", tmp_path / "backup")
        store = open_store()
        store.insert_memories([{"type": "episodic", "content": f"lost {n}"} for n in range(3)])
        store.close()
        for path in (tmp_path / "store").glob("memgraph.db*"):
            path.unlink()
        shutil.copy(tmp_path / "backup" / "memgraph.db", tmp_path / "store" / "memgraph.db")
        with pytest.raises(TruncatedJournalError, match="repair --accept-head"):
            open_store()

        found = repair_store(self.config(tmp_path))
        assert len(found.lost) == 3
        repair_store(self.config(tmp_path), accept_head=found, clock=clock, reason="Monday's backup")

        again = open_store()
        assert [memory.id for memory in again.every_memory()] == [kept.id]
        new = again.insert_memory({"type": "episodic", "content": "life goes on"})
        again.verify()
        again.close()
        last = open_store()
        assert last.notices == []
        assert {memory.id for memory in last.every_memory()} == {kept.id, new.id}

    def test_examining_creates_no_store_and_no_key(self, tmp_path: Path, store: Any) -> None:
        other = memgraph.AgentMemoryConfig(home=tmp_path / "absent", keys_home=tmp_path / "keys")
        with pytest.raises(MemGraphError, match="no store"):
            repair_store(other)
        assert not (tmp_path / "absent").exists()
        store.close()
        shutil.rmtree(tmp_path / "keys" / "keys")
        with pytest.raises(KeyMissingError):
            repair_store(self.config(tmp_path))

    def test_only_a_returned_condition_is_accepted(self, tmp_path: Path, store: Any) -> None:
        with pytest.raises(memgraph.InvalidInputError, match="accept_head"):
            repair_store(self.config(tmp_path), accept_head=True)
