"""A commit torn by a crash is removed as a whole, only by the lock's holder, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import DamagedJournalError, TruncatedJournalError
from memgraph.journal.journal import Journal
from memgraph.model.events.memories import MemoryAdded

Open = Callable[..., Journal]
Paths = Callable[[Journal], Path]
Added = Callable[..., MemoryAdded]


class Torn:
    """A journal whose last commit of two events can be cut at any byte."""

    def __init__(
        self, journal: Journal, path: Path, head: Path, write: Callable[..., Any], added: Added, step: int
    ) -> None:
        self._step = step
        write(journal, added(1))
        self.path, self.head = path, head
        self.before = path.read_bytes()
        self.head_before = head.read_bytes()
        self.seq_before = journal.tail.seq
        write(journal, added(2), added(3))
        self.after = path.read_bytes()
        self.head_after = head.read_bytes()
        self.seq_after = journal.tail.seq

    def cut(self, size: int, *, is_acknowledged: bool) -> None:
        self.path.write_bytes(self.after[:size])
        self.head.write_bytes(self.head_after if is_acknowledged else self.head_before)

    @property
    def cuts(self) -> list[int]:
        """Every position around the ends of lines, and a sample of the others."""
        start, end = len(self.before), len(self.after)
        ends = {place + 1 for place in range(start, end) if self.after[place : place + 1] == b"\n"}
        near = {place + by for place in {start, *ends} for by in range(-3, 4)}
        return sorted(near.intersection(range(start, end)) | set(range(start, end, self._step)))


@pytest.fixture
def torn(
    request: pytest.FixtureRequest,
    journal: Journal,
    segment: Paths,
    head_path: Paths,
    write: Callable[..., Any],
    added: Added,
) -> Torn:
    step = 1 if request.config.getoption("--long") else 8
    return Torn(journal, segment(journal), head_path(journal), write, added, step)


def test_every_cut_of_an_unacknowledged_commit_recovers_to_the_previous_one(torn: Torn, open_one: Open) -> None:
    for size in torn.cuts:
        torn.cut(size, is_acknowledged=False)
        journal = open_one()
        assert journal.tail.seq == torn.seq_before, size
        assert torn.path.read_bytes() == torn.after[:size], "a reader changes nothing"
        with journal.locked():
            assert torn.path.read_bytes() == torn.before, size
        expected = [f"dropped a torn final commit after event 2 ({size - len(torn.before)} bytes)"]
        assert journal.notices == (expected if size > len(torn.before) else []), size


def test_every_cut_of_an_acknowledged_commit_is_refused(torn: Torn, open_one: Open) -> None:
    for size in torn.cuts:
        torn.cut(size, is_acknowledged=True)
        with pytest.raises(TruncatedJournalError) as refused:
            open_one()
        assert (refused.value.seq, refused.value.head_seq) == (torn.seq_before, torn.seq_after), size
        assert torn.path.read_bytes() == torn.after[:size]


def test_a_whole_commit_without_its_head_file_entry_stays(torn: Torn, open_one: Open) -> None:
    torn.cut(len(torn.after), is_acknowledged=False)
    journal = open_one()
    with journal.locked():
        assert journal.tail.seq == torn.seq_after
    assert journal.notices == []
    assert torn.path.read_bytes() == torn.after
    assert json.loads(torn.head.read_text()) == json.loads(torn.head_after)


def test_the_next_commit_replaces_the_torn_one(
    torn: Torn, open_one: Open, write: Callable[..., Any], added: Added
) -> None:
    torn.cut(len(torn.after) - 1, is_acknowledged=False)
    write(open_one(), added(4))
    again = open_one()
    contents = [event.payload.memory.content for commit in again.replay() for event in commit.events if event.seq > 1]  # type: ignore[attr-defined]
    assert contents == ["Memory 1", "Memory 4"]
    assert again.verify() == 3


def test_a_whole_line_without_its_commits_end_is_torn(torn: Torn, open_one: Open) -> None:
    first_line = torn.after[len(torn.before) :].splitlines(keepends=True)[0]
    torn.cut(len(torn.before) + len(first_line), is_acknowledged=False)
    journal = open_one()
    assert [event.seq for commit in journal.replay() for event in commit.events] == [1, 2]
    with journal.locked():
        assert torn.path.read_bytes() == torn.before


def test_a_process_with_the_journal_open_recovers_too(
    torn: Torn, open_one: Open, write: Callable[..., Any], added: Added
) -> None:
    torn.cut(len(torn.before), is_acknowledged=False)
    journal = open_one()
    torn.cut(len(torn.after) - 1, is_acknowledged=False)  # another process dies here
    write(journal, added(4))
    assert len(journal.notices) == 1
    assert open_one().verify() == 3


def test_a_torn_commit_before_others_is_damage(torn: Torn, open_one: Open, write: Any, added: Added) -> None:
    write(open_one(), added(4))
    lines = torn.path.read_bytes().splitlines(keepends=True)
    del lines[3]  # the end of the commit of two
    torn.path.write_bytes(b"".join(lines))
    torn.head.unlink()
    with pytest.raises(DamagedJournalError):
        open_one()


def test_garbage_after_the_last_commit_is_damage_if_it_is_a_line(torn: Torn, open_one: Open) -> None:
    torn.path.write_bytes(torn.after + b"garbage\n")
    with pytest.raises(DamagedJournalError, match="not JSON") as refused:
        open_one()
    assert (refused.value.path, refused.value.offset, refused.value.seq) == (torn.path, len(torn.after), 5)


def test_the_store_reports_a_removed_commit(open_store: Callable[..., Any], tmp_path: Path) -> None:
    store = open_store()
    kept = store.insert_memory({"type": "episodic", "content": "whole"})
    head = tmp_path / "keys" / "heads" / store.store_id
    path = tmp_path / "store" / "journal" / "000000000001.jsonl"
    before = head.read_bytes()
    store.insert_memory({"type": "episodic", "content": "torn"})
    store.close()
    for checkpoint in path.parent.glob("verified.json"):
        checkpoint.unlink()
    head.write_bytes(before)
    path.write_bytes(path.read_bytes()[:-100])
    again = open_store()
    new = again.insert_memory({"type": "episodic", "content": "new"})
    assert any("torn" in notice for notice in again.notices)
    assert {memory.id for memory in again.get_all_memories()} == {kept.id, new.id}
    again.verify()
