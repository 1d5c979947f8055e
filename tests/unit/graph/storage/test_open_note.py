"""The check of the graph's file before the engine opens it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from memgraph.disk.seal import Seal
from memgraph.errors import GraphError, OutdatedGraphError
from memgraph.graph.storage.open_note import OpenNote
from tests.engines import SEAL

Probe = Callable[[], None]


class ProbedError(Exception):
    """The file was probed."""


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
    OpenNote(path, SEAL).closed(is_rewritten=True)
    return path


@pytest.fixture
def left_open(closed: Path) -> Path:
    note = OpenNote(closed, SEAL)
    note.admit(never)
    note.opened()
    return closed


def log(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


def admit(path: Path, probe: Probe = never) -> OpenNote:
    note = OpenNote(path, SEAL)
    note.admit(probe)
    return note


class TestClosed:
    def test_an_unchanged_file_may_be_opened(self, closed: Path) -> None:
        admit(closed)

    def test_a_missing_file_may_be_created(self, path: Path) -> None:
        admit(path)

    def test_a_log_without_its_file_is_removed(self, path: Path) -> None:
        log(path).write_bytes(b"log")
        admit(path)
        assert not log(path).exists()

    def test_an_unrecorded_log_is_removed(self, closed: Path) -> None:
        for suffix in (".wal", ".shadow", ".tmp"):
            closed.with_name(closed.name + suffix).write_bytes(b"stray")
        admit(closed)
        assert sorted(entry.name for entry in closed.parent.iterdir()) == ["memgraph.kuzu", "opened.json"]

    def test_a_recorded_log_stays(self, path: Path) -> None:
        path.write_bytes(b"graph")
        log(path).write_bytes(b"log")
        OpenNote(path, SEAL).closed(is_rewritten=True)
        admit(path)
        assert log(path).read_bytes() == b"log"
        log(path).write_bytes(b"lag")
        admit(path)
        assert not log(path).exists()

    @pytest.mark.parametrize("data", [b"", b"grape", b"graph and more"])
    def test_another_file_in_its_place_is_refused(self, closed: Path, data: bytes) -> None:
        closed.write_bytes(data)  # immediately: the file's time may equal that of its close
        with pytest.raises(GraphError, match="differs from its state"):
            admit(closed)

    def test_a_changed_file_with_the_same_size_and_time_is_refused(self, closed: Path) -> None:
        status = closed.stat()
        closed.write_bytes(b"grape")
        os.utime(closed, ns=(status.st_atime_ns, status.st_mtime_ns))
        with pytest.raises(GraphError, match="differs from its state"):
            admit(closed)

    def test_a_note_sealed_with_another_key_is_refused(self, closed: Path) -> None:
        OpenNote(closed, Seal(b"x" * 32)).closed(is_rewritten=True)
        with pytest.raises(GraphError, match="no valid seal"):
            admit(closed)

    def test_a_file_of_an_earlier_release_is_outdated_and_not_damaged(self, closed: Path) -> None:
        (closed.parent / "opened.json").write_text(
            '{"is_open": false, "pid": 1, "unclean": 0, "file": [5, 1], "log": null}'
        )
        with pytest.raises(OutdatedGraphError, match="earlier release"):
            admit(closed)

    def test_another_file_s_note_is_refused(self, closed: Path) -> None:
        other = closed.rename(closed.with_name("memgraph.other"))
        with pytest.raises(GraphError, match="no valid seal"):
            admit(other)

    def test_a_file_changed_after_its_close_is_not_opened_for_a_query(self, closed: Path) -> None:
        note = admit(closed)
        note.check()
        closed.write_bytes(b"grape")
        with pytest.raises(GraphError, match="changed while it was closed"):
            note.check()

    def test_a_file_without_a_note_is_refused(self, path: Path) -> None:
        path.write_bytes(b"graph")
        with pytest.raises(GraphError, match="no valid seal"):
            admit(path)

    @pytest.mark.parametrize(
        "text", ["", "{}", "[]", "null", "1", '{"note": {}, "code": "x"}', "noise", "\xff", "[" * 9_999]
    )
    def test_an_invalid_note_counts_as_missing(self, closed: Path, text: str) -> None:
        (closed.parent / "opened.json").write_text(text, "latin-1")
        with pytest.raises(GraphError, match="no valid seal"):
            admit(closed)

    def test_every_flipped_bit_of_a_note_is_harmless(self, closed: Path) -> None:
        note = closed.parent / "opened.json"
        data = note.read_bytes()
        for place in range(len(data.rstrip())):
            for bit in range(8):
                note.write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
                with pytest.raises(GraphError):
                    admit(closed)

    @pytest.mark.parametrize("what", ["folder", "link", "pipe"])
    def test_anything_but_a_file_is_refused(self, closed: Path, what: str) -> None:
        closed.unlink()
        if what == "folder":
            closed.mkdir()
        elif what == "pipe":
            os.mkfifo(closed)
        else:
            closed.symlink_to(closed.parent / "elsewhere")
        with pytest.raises(GraphError, match="not a file"):
            admit(closed)

    def test_the_check_is_fast(self, closed: Path) -> None:
        note = OpenNote(closed, SEAL)
        took = []
        for _ in range(50):
            start = time.perf_counter()
            note.admit(never)
            note.opened()
            note.closed(is_rewritten=True)
            took.append(time.perf_counter() - start)
        assert min(took) < 1e-3


class TestLeftOpen:
    def test_an_unwritten_file_loses_its_log(self, left_open: Path) -> None:
        log(left_open).write_bytes(b"log")
        admit(left_open)
        assert not log(left_open).exists()

    def test_a_written_file_is_refused(self, left_open: Path) -> None:
        left_open.write_bytes(b"grape")
        log(left_open).write_bytes(b"log")
        with pytest.raises(GraphError, match="being rewritten"):
            admit(left_open)

    def test_files_of_a_killed_write_are_removed(self, left_open: Path) -> None:
        (left_open.parent / "load-x").mkdir()
        (left_open.parent / "load-x" / "Memory.json").write_text("[]")
        (left_open.parent / "memgraph.new").write_text("half a graph")
        (left_open.parent / "memgraph.new.wal").write_text("its log")
        admit(left_open)
        assert sorted(entry.name for entry in left_open.parent.iterdir()) == ["memgraph.kuzu", "opened.json"]

    def test_the_third_unclean_close_in_a_row_is_refused(self, left_open: Path) -> None:
        admit(left_open).opened()
        admit(left_open).opened()
        with pytest.raises(GraphError, match="in a row"):
            admit(left_open)

    def test_a_clean_close_resets_the_count(self, left_open: Path) -> None:
        for _ in range(4):
            note = admit(left_open)
            note.opened()
            note.closed(is_rewritten=True)
            admit(left_open).opened()

    def test_a_suspect_file_is_probed(self, closed: Path) -> None:
        admit(closed).suspect()
        with pytest.raises(ProbedError):
            admit(closed, probe)

    def test_a_file_that_was_being_created_is_refused(self, path: Path) -> None:
        admit(path).opened()
        path.write_bytes(b"half")
        with pytest.raises(GraphError, match="being rewritten"):
            admit(path)
