"""What is known of the graph's file before the engine opens it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from memgraph.errors import GraphError
from memgraph.graph.opened import OpenNote

Probe = Callable[[], None]


class ProbedError(Exception):
    """The file was tried."""


def probe() -> None:
    raise ProbedError


def never() -> None:
    pytest.fail("the file was tried, which takes long")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "graph").mkdir()
    return tmp_path / "graph" / "memgraph.kuzu"


@pytest.fixture
def closed(path: Path) -> Path:
    path.write_bytes(b"graph")
    OpenNote(path).closed()
    return path


@pytest.fixture
def left_open(closed: Path) -> Path:
    note = OpenNote(closed)
    note.admit(never)
    note.opened()
    return closed


def log(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


def admit(path: Path, probe: Probe = never) -> OpenNote:
    note = OpenNote(path)
    note.admit(probe)
    return note


class TestClosed:
    def test_one_that_is_as_it_was_may_be_opened(self, closed: Path) -> None:
        admit(closed)

    def test_one_that_is_not_there_may_be_made(self, path: Path) -> None:
        admit(path)

    def test_a_log_without_its_file_is_removed(self, path: Path) -> None:
        log(path).write_bytes(b"log")
        admit(path)
        assert not log(path).exists()

    def test_a_log_that_was_not_left_is_removed(self, closed: Path) -> None:
        for suffix in (".wal", ".shadow", ".tmp"):
            closed.with_name(closed.name + suffix).write_bytes(b"stray")
        admit(closed)
        assert sorted(entry.name for entry in closed.parent.iterdir()) == ["memgraph.kuzu", "opened.json"]

    def test_a_log_that_was_left_stays(self, path: Path) -> None:
        path.write_bytes(b"graph")
        log(path).write_bytes(b"log")
        OpenNote(path).closed()
        admit(path)
        assert log(path).read_bytes() == b"log"
        log(path).write_bytes(b"lag")
        admit(path)
        assert not log(path).exists()

    @pytest.mark.parametrize("data", [b"", b"grape", b"graph and more", b"graph"])
    def test_another_file_in_its_place_is_refused(self, closed: Path, data: bytes) -> None:
        closed.write_bytes(data)  # at once: the system's clock may not have moved since it was closed
        with pytest.raises(GraphError, match="not as it was"):
            admit(closed)

    def test_one_whose_size_was_kept_and_whose_time_was_set_back_is_taken(self, closed: Path) -> None:
        """Who takes such pains is not found out here, but by verifying."""
        status = closed.stat()
        closed.write_bytes(b"grape")
        os.utime(closed, ns=(status.st_atime_ns, status.st_mtime_ns))
        admit(closed)

    def test_one_that_nothing_is_known_of_is_refused(self, path: Path) -> None:
        path.write_bytes(b"graph")
        with pytest.raises(GraphError, match="nothing tells"):
            admit(path)

    @pytest.mark.parametrize("text", ["", "{}", "[]", "null", "1", '{"is_open": false}', "noise", "\xff", "[" * 9_999])
    def test_a_note_that_is_none_is_no_note(self, closed: Path, text: str) -> None:
        (closed.parent / "opened.json").write_text(text, "latin-1")
        with pytest.raises(GraphError, match="nothing tells"):
            admit(closed)

    def test_every_flipped_bit_of_a_note_is_harmless(self, closed: Path) -> None:
        note = closed.parent / "opened.json"
        data = note.read_bytes()
        for place in range(len(data.rstrip())):
            for bit in range(8):
                note.write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
                with suppress(GraphError, ProbedError):
                    admit(closed, probe)

    @pytest.mark.parametrize("what", ["folder", "link", "pipe"])
    def test_what_is_no_file_is_refused(self, closed: Path, what: str) -> None:
        closed.unlink()
        if what == "folder":
            closed.mkdir()
        elif what == "pipe":
            os.mkfifo(closed)
        else:
            closed.symlink_to(closed.parent / "elsewhere")
        with pytest.raises(GraphError, match="not a file"):
            admit(closed)

    def test_looking_takes_no_time(self, closed: Path) -> None:
        note = OpenNote(closed)
        took = []
        for _ in range(50):
            start = time.perf_counter()
            note.admit(never)
            note.opened()
            note.closed()
            took.append(time.perf_counter() - start)
        assert min(took) < 1e-3


class TestLeftOpen:
    def test_one_that_was_not_written_to_loses_its_log(self, left_open: Path) -> None:
        log(left_open).write_bytes(b"log")
        admit(left_open)
        assert not log(left_open).exists()

    def test_one_that_was_written_to_is_refused(self, left_open: Path) -> None:
        left_open.write_bytes(b"graph")
        log(left_open).write_bytes(b"log")
        with pytest.raises(GraphError, match="being rewritten"):
            admit(left_open)

    def test_what_a_killed_write_left_is_swept_up(self, left_open: Path) -> None:
        (left_open.parent / "load-x").mkdir()
        (left_open.parent / "load-x" / "Memory.json").write_text("[]")
        (left_open.parent / "memgraph.new").write_text("half a graph")
        (left_open.parent / "memgraph.new.wal").write_text("its log")
        admit(left_open)
        assert sorted(entry.name for entry in left_open.parent.iterdir()) == ["memgraph.kuzu", "opened.json"]

    def test_the_third_in_a_row_is_refused(self, left_open: Path) -> None:
        admit(left_open).opened()
        admit(left_open).opened()
        with pytest.raises(GraphError, match="in a row"):
            admit(left_open)

    def test_a_clean_close_between_them_ends_the_row(self, left_open: Path) -> None:
        for _ in range(4):
            note = admit(left_open)
            note.opened()
            note.closed()
            admit(left_open).opened()

    def test_one_under_suspicion_is_tried(self, closed: Path) -> None:
        OpenNote(closed).suspect()
        with pytest.raises(ProbedError):
            admit(closed, probe)

    def test_one_that_was_being_made_is_tried(self, path: Path) -> None:
        admit(path).opened()
        path.write_bytes(b"half")
        with pytest.raises(ProbedError):
            admit(path, probe)
