"""Files of JSON lines that several processes write: none loses a line, also while they rotate the file."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import resource
import threading
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from memgraph.diagnostics.delivery import append_line, predecessor_of

ROUNDS, LINES, MAX_BYTES = 400, 5, 1_000


def write(folder: str, writer: str, barrier: Barrier) -> None:
    """Write some lines to each of the files, at the same time as another process."""
    for number in range(ROUNDS):
        barrier.wait(60)
        for line in range(LINES):
            append_line(Path(folder) / f"{number}.jsonl", {"writer": writer, "line": line}, max_bytes=MAX_BYTES)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_two_processes_that_rotate_a_file_lose_no_line(tmp_path: Path) -> None:
    """Each file is full before, and what they write has room in one: a second rotation would replace the full one."""
    full = {"text": "x" * MAX_BYTES}
    for number in range(ROUNDS):
        append_line(tmp_path / f"{number}.jsonl", full)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    writers = [context.Process(target=write, args=(str(tmp_path), one, barrier), daemon=True) for one in "ab"]
    for one in writers:
        one.start()
    for one in writers:
        one.join(120)
    assert [one.exitcode for one in writers] == [0, 0]
    expected = [(writer, line) for writer in "ab" for line in range(LINES)]
    for number in range(ROUNDS):
        path = tmp_path / f"{number}.jsonl"
        assert read(predecessor_of(path)) == [full], f"round {number}"
        assert sorted((one["writer"], one["line"]) for one in read(path)) == expected, f"round {number}"


def test_a_file_that_was_rotated_while_it_was_waited_for_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_line(path, {"number": 1})
    held = os.open(path, os.O_WRONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    writer = threading.Thread(target=append_line, args=(path, {"number": 2}))
    writer.start()
    writer.join(0.1)
    assert writer.is_alive(), "it waits for the one who has the file"
    path.replace(predecessor_of(path))
    os.close(held)
    writer.join(60)
    assert (read(predecessor_of(path)), read(path)) == ([{"number": 1}], [{"number": 2}])


def test_nobody_waits_for_a_process_that_hangs(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_line(path, {"number": 1})
    held = os.open(path, os.O_WRONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        append_line(path, {"number": 2}, max_bytes=1, timeout_s=0.05)
    finally:
        os.close(held)
    assert read(path) == [{"number": 1}, {"number": 2}], "it is written, but not rotated"
    assert not predecessor_of(path).exists()


@pytest.mark.parametrize("target", ["/dev/null", "pipe"])
def test_what_is_no_file_is_written_to(tmp_path: Path, target: str) -> None:
    path = Path(target)
    if target == "pipe":
        path = tmp_path / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    append_line(path, {"number": 1}, max_bytes=1)
    if target == "pipe":
        assert json.loads(os.read(reader, 100)) == {"number": 1}
        os.close(reader)
    assert path.exists()


def write_beyond_the_limit(path: str, most_bytes: int) -> None:
    """Write a line of which only a part has room."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
    with pytest.raises(OSError, match="too large"):
        append_line(Path(path), {"text": "x" * 1_000})


def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    """Else the next line would be spoilt, too."""
    path = tmp_path / "a.jsonl"
    append_line(path, {"number": 1})
    writer = multiprocessing.get_context("spawn").Process(target=write_beyond_the_limit, args=(str(path), 500))
    writer.start()
    writer.join(60)
    assert writer.exitcode == 0
    append_line(path, {"number": 2})
    assert [one["number"] for one in read(path)] == [1, 2]


def test_a_file_that_cannot_be_renamed_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    predecessor_of(path).mkdir()
    for number in range(3):
        append_line(path, {"number": number}, max_bytes=0)
    assert [one["number"] for one in read(path)] == [0, 1, 2]
