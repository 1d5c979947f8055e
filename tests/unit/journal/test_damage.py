"""Every changed byte of a journal is detected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError
from memgraph.journal.journal import Journal
from memgraph.model.events.memories import MemoryAdded

Open = Callable[..., Journal]
Paths = Callable[[Journal], Path]
Added = Callable[..., MemoryAdded]


@pytest.fixture
def small(journal: Journal, write: Callable[..., Any], added: Added) -> Journal:
    write(journal, added(1))
    write(journal, added(2), added(3))
    return journal


def undetected(path: Path, open_one: Open, flips: list[tuple[int, int]]) -> list[tuple[int, int, bytes]]:
    data = path.read_bytes()
    missed = []
    for position, mask in flips:
        flipped = bytearray(data)
        flipped[position] ^= mask
        path.write_bytes(bytes(flipped))
        try:
            open_one()
        except JournalError:
            continue
        missed.append((position, mask, data[position - 20 : position + 20]))
    path.write_bytes(data)
    return missed


def test_a_flipped_byte_is_detected(small: Journal, segment: Paths, open_one: Open) -> None:
    size = segment(small).stat().st_size
    flips = [(at, (0x01, 0x20, 0x80, 0xFF)[at // 5 % 4]) for at in range(0, size, 5)] + [(size - 1, 0x01)]
    assert undetected(segment(small), open_one, flips) == []
    assert open_one().tail == small.tail


@pytest.mark.long
def test_every_flipped_bit_is_detected(small: Journal, segment: Paths, open_one: Open) -> None:
    size = segment(small).stat().st_size
    flips = [(at, 1 << bit) for at in range(size) for bit in range(8)]
    assert undetected(segment(small), open_one, flips) == []


def test_the_message_names_the_position(small: Journal, segment: Paths, open_one: Open) -> None:
    path = segment(small)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1].replace(b"Memory 1", b"Memory X") + b"".join(lines[2:]))
    with pytest.raises(DamagedJournalError, match="backup") as refused:
        open_one()
    assert (refused.value.path, refused.value.offset, refused.value.seq) == (path, len(lines[0]), 2)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    "order", [[0, 2, 1, 3], [0, 1, 1, 2, 3], [0, 1, 3, 2], [1, 2, 3], [0, 2, 3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 0]]
)
def test_lines_dropped_repeated_or_moved_are_damage(
    small: Journal, segment: Paths, open_one: Open, order: list[int]
) -> None:
    lines = segment(small).read_bytes().splitlines(keepends=True)
    segment(small).write_bytes(b"".join(lines[at] for at in order))
    with pytest.raises(JournalError):
        open_one()


def test_events_of_another_store_are_damage(
    small: Journal, segment: Paths, open_one: Open, write: Any, added: Added
) -> None:
    other = open_one("other")
    write(other, added(9))
    segment(small).write_bytes(segment(small).read_bytes() + segment(other).read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(DamagedJournalError):
        open_one()
    segment(small).write_bytes(segment(other).read_bytes())
    with pytest.raises(KeyMissingError, match="not this key's"):  # every line is of another key: then the key is wrong
        open_one()


def test_damage_to_an_open_journal_is_detected(
    small: Journal, segment: Paths, open_one: Open, write: Any, added: Added
) -> None:
    reader = open_one()
    write(small, added(4))
    segment(small).write_bytes(segment(small).read_bytes().replace(b"Memory 4", b"Memory X"))
    with pytest.raises(DamagedJournalError):
        reader.refresh()


def test_a_damaged_journal_is_left_unchanged(small: Journal, segment: Paths, open_one: Open) -> None:
    damaged = segment(small).read_bytes().replace(b"Memory 2", b"Memory X")
    segment(small).write_bytes(damaged)
    with pytest.raises(DamagedJournalError):
        open_one()
    assert segment(small).read_bytes() == damaged


def test_verify_finds_damage_after_opening(small: Journal, segment: Paths) -> None:
    segment(small).write_bytes(segment(small).read_bytes().replace(b"Memory 1", b"Memory X"))
    with pytest.raises(DamagedJournalError):
        small.verify()


@pytest.mark.parametrize("manifest", ["", "{}", "[]", '{"format": 1}', '{"format": 99, "store_id": "x"}', "\x00"])
def test_a_damaged_manifest_is_refused(small: Journal, open_one: Open, manifest: str) -> None:
    (small.folder / "manifest.json").write_text(manifest)
    with pytest.raises(JournalError, match=r"manifest|format"):
        open_one()


def test_a_journal_without_its_manifest_is_not_a_new_store(small: Journal, open_one: Open, segment: Paths) -> None:
    (small.folder / "manifest.json").unlink()
    before = segment(small).read_bytes()
    with pytest.raises(Exception, match="has no manifest"):
        open_one()
    assert segment(small).read_bytes() == before
    assert not (small.folder / "manifest.json").exists()
