"""A journal of several files reads as one journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memgraph.journal.segments import JournalLimits

from memgraph.errors import DamagedJournalError, JournalError, StorageError, TruncatedJournalError
from memgraph.journal.journal import Journal
from memgraph.journal.legacy import segments
from memgraph.model.events.memories import MemoryAdded

Open = Callable[..., Journal]
Paths = Callable[[Journal], Path]
LIMITS = JournalLimits(segment_bytes=2_500)
Added = Callable[..., MemoryAdded]


@pytest.fixture
def rolled(open_one: Open, write: Callable[..., Any], added: Added) -> Journal:
    journal = open_one(limits=LIMITS)
    for number in range(1, 10):
        write(journal, added(number))
    return journal


def paths(journal: Journal) -> list[Path]:
    return sorted(journal.folder.glob("*.jsonl"))


def seqs(journal: Journal) -> list[int]:
    return [event.seq for commit in journal.replay() for event in commit.events]


def test_several_segments_read_as_one_journal(rolled: Journal, open_one: Open) -> None:
    assert len(paths(rolled)) >= 3
    assert all(path.stat().st_size >= 2_500 for path in paths(rolled)[:-1])
    again = open_one()
    assert again.tail == rolled.tail
    assert seqs(again) == list(range(1, 11))
    assert again.verify() == 10


def test_a_segment_is_named_after_its_first_event(rolled: Journal) -> None:
    for path in paths(rolled):
        first = path.read_bytes().split(b'"seq":', 1)[1].split(b",", 1)[0]
        assert int(path.stem) == int(first)


def test_a_commit_lies_in_one_segment(rolled: Journal, open_one: Open, write: Any, added: Added) -> None:
    before = len(paths(rolled))
    write(rolled, *[added(number) for number in range(20, 40)])
    assert len(paths(rolled)) <= before + 1
    assert seqs(open_one()) == list(range(1, 31))


def test_readers_follow_into_a_new_segment(rolled: Journal, open_one: Open, write: Any, added: Added) -> None:
    reader = open_one(limits=LIMITS)
    for number in range(20, 26):
        write(rolled, added(number))
        assert reader.has_changed()
        reader.refresh()
        assert reader.tail == rolled.tail
        assert not reader.has_changed()


def test_replay_resumes_at_every_commit(rolled: Journal) -> None:
    commits = list(rolled.replay())
    for place, commit in enumerate(commits):
        rest = list(rolled.replay(commit.after))
        assert [event.seq for found in rest for event in found.events] == list(range(place + 2, 11))


def test_a_torn_first_commit_of_a_segment_takes_its_file_with_it(
    rolled: Journal, open_one: Open, write: Any, added: Added, head_path: Paths
) -> None:
    while rolled.tail.position.offset < 2_500:
        write(rolled, added(len(seqs(rolled)) + 50))
    head, names = head_path(rolled).read_bytes(), [path.name for path in paths(rolled)]
    write(rolled, added(99))
    head_path(rolled).write_bytes(head)
    path = paths(rolled)[-1]
    assert path.name not in names
    path.write_bytes(path.read_bytes()[:-5])
    again = open_one()
    with again.locked():
        assert [path.name for path in paths(again)] == names
    assert len(again.notices) == 1
    write(again, added(99))
    assert open_one().verify() == again.tail.seq


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_segment_is_damage(rolled: Journal, open_one: Open, which: int) -> None:
    paths(rolled)[which].unlink()
    with pytest.raises(DamagedJournalError, match="does not follow"):
        open_one()


def test_a_missing_last_segment_is_a_truncated_journal(rolled: Journal, open_one: Open) -> None:
    paths(rolled)[-1].unlink()
    with pytest.raises(TruncatedJournalError):
        open_one()


@pytest.mark.parametrize("cut", [1, 20])
def test_a_torn_line_before_others_is_damage_and_nothing_is_removed(
    rolled: Journal, open_one: Open, head_path: Paths, cut: int
) -> None:
    """Without a head file nothing else shows that there was more than the first segment."""
    first = paths(rolled)[0]
    first.write_bytes(first.read_bytes()[:-cut])
    before = {path.name: path.read_bytes() for path in paths(rolled)}
    head_path(rolled).unlink()
    with pytest.raises(JournalError), open_one().locked():
        pass
    assert {path.name: path.read_bytes() for path in paths(rolled)} == before


def test_a_failed_write_is_removed(
    rolled: Journal, open_one: Open, write: Any, added: Added, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail, before = rolled.tail, [path.read_bytes() for path in paths(rolled)]

    def full(descriptor: int, data: bytes) -> None:
        segments.os.write(descriptor, data[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(segments, "write_all", full)
        with pytest.raises(StorageError, match="nothing was recorded"):
            write(rolled, added(77))
    assert [path.read_bytes() for path in paths(rolled) if path.stat().st_size] == before
    assert rolled.tail == tail
    write(rolled, added(78))
    assert open_one().verify() == 11


def test_other_files_in_the_folder_are_left_alone(rolled: Journal, open_one: Open) -> None:
    (rolled.folder / "notes.txt").write_text("mine")
    assert open_one().verify() == 10
    assert (rolled.folder / "notes.txt").read_text() == "mine"
