"""Accepting a journal that its head file or checkpoint contradicts, and refusing real damage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, MemGraphError, TruncatedJournalError
from memgraph.interfaces.cli.tasks.handoff import accept
from memgraph.journal.journal import Journal
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.store import JournalRepaired
from memgraph.store import repair_store
from memgraph.store.repair import Condition, examine

Open = Callable[..., Journal]
Paths = Callable[[Journal], Path]
MOMENT = "2026-02-03T10:00:00.000Z"


@pytest.fixture
def stocked(journal: Journal, write: Callable[..., Any], added: Callable[..., MemoryAdded]) -> Journal:
    for number in range(1, 5):
        write(journal, added(number))
    return journal


@pytest.fixture
def look(tmp_path: Path, keys: Any) -> Callable[[Journal], Condition]:
    def examined(journal: Journal, **options: Any) -> Condition:
        return examine(
            tmp_path / "store", journal.store_id, keys.key(journal.store_id), keys_home=tmp_path / "keys", **options
        )

    return examined


@pytest.fixture
def settle(tmp_path: Path, keys: Any) -> Callable[[Journal, Condition], Condition]:
    def accepted(journal: Journal, found: Condition) -> Condition:
        return accept(
            tmp_path / "store",
            journal.store_id,
            keys.key(journal.store_id),
            keys_home=tmp_path / "keys",
            expected=found,
            now=lambda: MOMENT,
            accepted_by="ada",
            reason="an old copy, on purpose",
        )

    return accepted


def cut(path: Path, kept: int) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))


def last_event(journal: Journal) -> Any:
    return [event for commit in journal.replay() for event in commit.events][-1]


def states(found: Condition) -> dict[str, str]:
    return {witness.kind: witness.state for witness in found.witnesses}


def break_head(case: str, path: Path, journal: Journal, segment: Path) -> None:
    if case == "truncated":
        cut(segment, 3)
    elif case == "emptied":
        segment.write_bytes(b"")
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
    stocked: Journal, head_path: Paths, segment: Paths, open_one: Open, look: Any, settle: Any, case: str
) -> None:
    state, seq, lost = CASES[case]
    break_head(case, head_path(stocked), stocked, segment(stocked))
    found = look(stocked)
    assert (found.seq, len(found.lost), states(found)["head"]) == (seq, lost, state)
    assert list(found.lost) == list(range(seq + 1, 6))[:lost]

    then = settle(stocked, found)

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
    assert not then.contradicting
    assert not look(again).contradicting


def test_examining_changes_nothing(
    stocked: Journal, head_path: Paths, segment: Paths, look: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Journal, "_maybe_checkpoint", lambda journal: journal.checkpoint())  # one is always due
    stocked.verify()
    cut(segment(stocked), 3)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pid"}
    assert look(stocked).lost
    assert look(stocked, by_checkpoint=True).lost
    head_path(stocked).unlink()
    assert states(look(stocked)) == {"head": "missing", "checkpoint": "ahead"}
    del before[head_path(stocked)]
    assert before == {
        path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pid"
    }


def test_a_whole_journal_has_nothing_to_accept(stocked: Journal, look: Any, settle: Any) -> None:
    found = look(stocked)
    assert (found.contradicting, len(found.lost), found.torn_events) == ((), 0, 0)
    with pytest.raises(JournalError, match="nothing to accept"):
        settle(stocked, found)


def test_the_checkpoint_only_determines_which_events_are_verified(
    stocked: Journal, look: Any, write: Any, added: Any
) -> None:
    stocked.verify()
    write(stocked, added(7))
    assert look(stocked, by_checkpoint=True) == look(stocked)


def test_a_journal_behind_its_checkpoint_can_be_accepted(
    stocked: Journal, head_path: Paths, segment: Paths, open_one: Open, look: Any, settle: Any
) -> None:
    stocked.verify()
    cut(segment(stocked), 2)
    head_path(stocked).unlink()
    for _ in range(2):
        with pytest.raises(TruncatedJournalError, match="repair --accept-head"):
            open_one()
    found = look(stocked)
    assert states(found) == {"head": "missing", "checkpoint": "ahead"}
    assert list(found.lost) == [3, 4, 5]
    settle(stocked, found)
    again = open_one()
    assert again.notices == []
    assert again.verify() == 3


def test_only_the_examined_condition_is_accepted(
    stocked: Journal, head_path: Paths, look: Any, settle: Any, write: Any, added: Any, segment: Paths
) -> None:
    head_path(stocked).unlink()
    found = look(stocked)
    write(stocked, added(8))
    head_path(stocked).unlink()
    before = segment(stocked).read_bytes()
    with pytest.raises(JournalError, match="changed"):
        settle(stocked, found)
    assert segment(stocked).read_bytes() == before
    assert not head_path(stocked).exists()


@pytest.mark.parametrize("line", [0, 2, 4])
def test_a_broken_chain_is_not_repaired(
    stocked: Journal, head_path: Paths, segment: Paths, look: Any, line: int
) -> None:
    lines = segment(stocked).read_bytes().splitlines(keepends=True)
    del lines[line]
    segment(stocked).write_bytes(b"".join([*lines, lines[0]] if line == 4 else lines))
    head_path(stocked).unlink()
    with pytest.raises(DamagedJournalError):
        look(stocked)


def test_a_flipped_byte_is_not_repaired(stocked: Journal, head_path: Paths, segment: Paths, look: Any) -> None:
    segment(stocked).write_bytes(segment(stocked).read_bytes().replace(b"Memory 2", b"Memory X"))
    head_path(stocked).write_text("damaged")
    with pytest.raises(DamagedJournalError):
        look(stocked)


def test_a_torn_tail_is_reported_and_removed_only_by_an_acceptance(
    stocked: Journal, head_path: Paths, segment: Paths, open_one: Open, look: Any, settle: Any
) -> None:
    whole = segment(stocked).read_bytes()
    segment(stocked).write_bytes(whole[:-20])  # part of the last commit, which the head file names
    torn = len(whole[:-20]) - len(b"".join(whole.splitlines(keepends=True)[:4]))
    found = look(stocked)
    assert (found.seq, found.torn_events, found.torn_bytes) == (4, 1, torn)
    assert segment(stocked).read_bytes() == whole[:-20]
    settle(stocked, found)
    record = last_event(open_one()).payload
    assert (record.dropped_bytes, record.events_lost) == (torn, 1)


def test_after_a_crash_between_record_and_head_the_call_can_be_repeated(
    stocked: Journal, segment: Paths, open_one: Open, look: Any, settle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(segment(stocked), 2)

    def crash(self: Any, head: Any) -> None:
        raise KeyboardInterrupt

    found = look(stocked)
    with monkeypatch.context() as patched:
        patched.setattr("memgraph.store.repair.HeadFile.replace", crash)
        with pytest.raises(KeyboardInterrupt):
            settle(stocked, found)
    with pytest.raises(TruncatedJournalError):
        open_one()
    settle(stocked, look(stocked))
    assert open_one().verify() == 4
    assert [type(event.payload) for commit in open_one().replay() for event in commit.events].count(
        JournalRepaired
    ) == 2


class TestTornTails:
    def test_a_reader_reports_a_torn_tail_without_removing_it(
        self, stocked: Journal, open_one: Open, segment: Paths, head_path: Paths, write: Any, added: Any
    ) -> None:
        head, before = head_path(stocked).read_bytes(), segment(stocked).stat().st_size
        write(stocked, added(5), added(6))
        head_path(stocked).write_bytes(head)
        data = segment(stocked).read_bytes()[:-30]
        segment(stocked).write_bytes(data)
        again = open_one()
        assert again.torn_tail() == (2, len(data) - before)
        assert segment(stocked).read_bytes() == data
        write(again, added(7))
        assert again.torn_tail() == (0, 0)

    def test_a_commit_being_written_is_not_torn(
        self, stocked: Journal, open_one: Open, segment: Paths, added: Any
    ) -> None:
        again = open_one()
        with stocked.locked():
            with segment(stocked).open("ab") as file:
                file.write(b'{"head":')
            assert again.torn_tail() == (0, 0)
        assert again.torn_tail() == (1, 8)


def test_an_adoption_is_reported_once(stocked: Journal, head_path: Paths, open_one: Open) -> None:
    head = head_path(stocked).read_bytes()
    head_path(stocked).unlink()
    assert len(open_one().notices) == 1
    assert head_path(stocked).read_bytes() == head
    assert open_one().notices == []


def test_a_head_at_the_checkpoint_is_compared_although_events_follow(
    stocked: Journal, head_path: Paths, open_one: Open, write: Any, added: Any
) -> None:
    stocked.verify()
    write(stocked, added(9))
    head_path(stocked).write_text(json.dumps({"seq": 5, "signature": "f" * 64}))
    with pytest.raises(DamagedJournalError, match="repair --accept-head"):
        open_one()


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
        shutil.rmtree(tmp_path / "store" / "journal")
        shutil.copytree(tmp_path / "backup" / "journal", tmp_path / "store" / "journal")
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
