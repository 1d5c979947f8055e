"""A journal reads the same whether its closed segments are plain or compressed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from memgraph.journal.closed import files
from memgraph.journal.closed.manifest import NAME
from memgraph.journal.segments import JournalLimits, Position, Segments

from memgraph.errors import DamagedJournalError, MissingExtraError, StorageError
from memgraph.journal.envelope import Line
from memgraph.journal.journal import Journal
from memgraph.journal.search import holds
from memgraph.model.events.memories import MemoryAdded

Open = Callable[..., Journal]
Added = Callable[..., MemoryAdded]
Seen = tuple[Any, ...]
LIMITS = JournalLimits(segment_bytes=2_500)


@pytest.fixture
def rolled(open_one: Open, write: Callable[..., Any], added: Added) -> Journal:
    journal = open_one(limits=LIMITS)
    for number in range(1, 14):
        write(journal, added(number))
    assert len(journal.segments.names()) == 5
    return journal


def pack(journal: Journal) -> list[str]:
    packed = []
    with journal.locked():
        while (name := journal.pack_next()) is not None:
            packed.append(name)
    return packed


def stated(journal: Journal) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((journal.folder / NAME).read_bytes())["body"]["segments"]
    return found


def every(segments: Segments) -> list[Line]:
    return list(segments.lines(segments.first()))


def everything(segments: Segments) -> Seen:
    """What every method of reading returns, from and to every position."""
    lines = every(segments)
    places = [segments.first(), *(line.end for line in lines)]
    return (
        segments.names(),
        segments.last(),
        lines,
        [segments.size(name) for name in segments.names()],
        [segments.holding(seq) for seq in range(1, 15)],
        [list(segments.lines(place)) for place in places],
        [b"".join(segments.blocks(start, end)) for start in places for end in places if start <= end],
        [segments.ends_before(place) for place in places],
        [segments.ends_before(Position(place.segment, place.offset + 90_000)) for place in places],
    )


def test_every_method_reads_both_forms_alike(rolled: Journal) -> None:
    before = everything(rolled.segments)
    names = rolled.segments.names()
    assert pack(rolled) == names[:-1]
    assert [path.name for path in files.files_in(rolled.folder)] == [*(f"{one}.zst" for one in names[:-1]), names[-1]]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files.files_in(rolled.folder))
    assert everything(rolled.segments) == before
    assert not rolled.has_changed()


def test_another_process_reads_on_while_segments_are_compressed(
    rolled: Journal, open_one: Open, write: Any, added: Added
) -> None:
    reader = open_one()
    lines = reader.segments.lines(reader.segments.first())
    read = [next(lines) for _ in range(4)]  # it has the second segment open
    pack(rolled)
    assert [*read, *lines] == every(rolled.segments)
    write(rolled, added(50))
    assert reader.has_changed()
    reader.refresh()
    assert reader.tail == rolled.tail
    assert not reader.has_changed()
    reader.checkpoint()
    assert open_one().tail == rolled.tail


def test_a_compressed_journal_opens_verifies_and_is_written_to(
    rolled: Journal, open_one: Open, write: Any, added: Added
) -> None:
    rolled.checkpoint()
    pack(rolled)
    again = open_one(limits=LIMITS)
    assert again.tail == rolled.tail
    for number in range(20, 24):
        write(again, added(number))
    pack(again)
    again.checkpoint()
    last = open_one()
    assert last.notices == []
    assert last.verify() == 18
    assert [event.seq for commit in last.replay() for event in commit.events] == list(range(1, 19))


def test_opening_by_a_checkpoint_unpacks_nothing(
    rolled: Journal, open_one: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(rolled)
    rolled.checkpoint()
    unpacked: list[Path] = []
    real = files._Unpacked.__init__

    def counting(self: Any, file: Any, path: Path) -> None:
        unpacked.append(path)
        real(self, file, path)

    monkeypatch.setattr(files._Unpacked, "__init__", counting)
    assert open_one().tail == rolled.tail
    assert unpacked == []
    (rolled.folder / NAME).unlink()  # which proves what the files contain
    assert open_one().tail == rolled.tail
    assert len(unpacked) == 4


def test_the_types_of_events_are_found_in_both_forms(rolled: Journal) -> None:
    pack(rolled)
    assert holds(rolled, "memory.added")
    assert holds(rolled, "store.created"), "it is in the first segment, which is compressed"
    assert not holds(rolled, "memory.purged")


@pytest.mark.parametrize("place", range(14))
def test_cutting_leaves_a_plain_segment_to_be_written_to(rolled: Journal, place: int) -> None:
    lines = every(rolled.segments)
    size = sum(rolled.segments.size(name) for name in rolled.segments.names())
    pack(rolled)
    end = lines[place].end
    on_disk = sum(path.stat().st_size for path in files.files_in(rolled.folder) if files.name_of(path) > end.segment)
    removed = rolled.segments.cut(end)
    assert removed == rolled_size(lines, end) + on_disk
    assert size > 0
    assert every(rolled.segments) == lines[: place + 1]
    assert files.file_of(rolled.folder, end.segment).suffix == ".jsonl"
    then = rolled.segments.append(end, b'{"x":1}\n', 99)
    assert [line.data for line in every(rolled.segments)][-1] == b'{"x":1}'
    assert then.offset == 8 if end.offset >= 2_500 else end.offset + 8


def rolled_size(lines: list[Line], end: Position) -> int:
    """The bytes after a position in its segment."""
    return max(line.end.offset for line in lines if line.end.segment == end.segment) - end.offset


@pytest.mark.parametrize("is_plain_wrong", [False, True])
def test_a_segment_in_both_forms_is_the_plain_one(rolled: Journal, open_one: Open, is_plain_wrong: bool) -> None:
    """A kill between the two steps of compressing leaves both."""
    name = rolled.segments.names()[1]
    data = files.read_all(rolled.folder, name)
    pack(rolled)
    (rolled.folder / name).write_bytes(data[:-1] + b"X" if is_plain_wrong else data)
    if is_plain_wrong:
        with pytest.raises(DamagedJournalError):
            open_one()
        return
    again = open_one()
    assert every(again.segments) == every(rolled.segments)
    assert pack(again) == [name]
    assert not (rolled.folder / name).exists()


class TestDamage:
    @pytest.mark.parametrize("has_checkpoint", [False, True])
    def test_every_flipped_byte_is_found(self, rolled: Journal, open_one: Open, has_checkpoint: bool) -> None:
        if has_checkpoint:
            rolled.checkpoint()
        pack(rolled)
        path = files.packed_path(rolled.folder, rolled.segments.names()[1])
        whole = path.read_bytes()
        for place in range(0, len(whole), 97):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            try:
                journal = open_one()
            except DamagedJournalError as error:
                assert error.path.name.startswith(path.name[:12])  # noqa: PT017 - or it unpacks to the same
            else:
                with pytest.raises(DamagedJournalError, match="not the file that the manifest names"):
                    journal.verify()
        path.write_bytes(whole)
        assert open_one().verify() == 14

    @pytest.mark.parametrize("left", [0, 3, 30, -9])
    def test_one_that_ends_early_is_damage(self, rolled: Journal, open_one: Open, left: int) -> None:
        pack(rolled)
        path = files.packed_path(rolled.folder, rolled.segments.names()[1])
        path.write_bytes(path.read_bytes()[:left])
        with pytest.raises(DamagedJournalError, match="`memgraph repair`"):
            open_one()

    def test_one_that_unpacks_to_more_than_it_states_is_read_no_further(self, rolled: Journal, open_one: Open) -> None:
        pack(rolled)
        path = files.packed_path(rolled.folder, rolled.segments.names()[0])
        content = files.read_all(rolled.folder, rolled.segments.names()[0])
        bomb = zstandard.ZstdCompressor(write_content_size=False).compress(content + bytes(1 << 24))
        path.write_bytes(bomb)
        with pytest.raises(DamagedJournalError, match="does not state its size"):
            open_one()
        path.write_bytes(zstandard.ZstdCompressor().compress(content + bytes(1 << 24)))
        with pytest.raises(DamagedJournalError, match="has no end"):
            open_one()

    def test_a_missing_one_is_damage(self, rolled: Journal, open_one: Open) -> None:
        pack(rolled)
        files.packed_path(rolled.folder, rolled.segments.names()[1]).unlink()
        with pytest.raises(DamagedJournalError, match="does not follow"):
            open_one()

    def test_a_replaced_one_is_found_although_it_unpacks_to_the_same(self, rolled: Journal, open_one: Open) -> None:
        pack(rolled)
        name = rolled.segments.names()[1]
        path = files.packed_path(rolled.folder, name)
        path.write_bytes(zstandard.ZstdCompressor(level=19).compress(files.read_all(rolled.folder, name)))
        with pytest.raises(DamagedJournalError, match="not the file that the manifest names"):
            open_one().verify()


def test_without_the_package_nothing_is_compressed_and_a_compressed_journal_says_what_is_missing(
    rolled: Journal, open_one: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    assert pack(rolled) == []
    assert open_one().verify() == 14
    monkeypatch.undo()
    pack(rolled)
    (rolled.folder / "verified.json").unlink()
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"memgraph-kuzu\[zstd\]"):
        open_one()


def test_a_full_disk_leaves_the_plain_segment(rolled: Journal, open_one: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    before = every(rolled.segments)

    def full(*_args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_packed", full)
    with rolled.locked(), pytest.raises(StorageError, match="cannot be compressed: No space left"):
        rolled.pack_next()
    monkeypatch.undo()
    assert every(open_one().segments) == before
    assert len(pack(rolled)) == 4


def test_the_hash_of_a_compressed_file_is_named(rolled: Journal) -> None:
    pack(rolled)
    for one in stated(rolled):
        data = files.packed_path(rolled.folder, one["name"]).read_bytes()
        assert one["packed"] == {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        assert len(data) < one["size_bytes"]
