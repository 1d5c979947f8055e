"""A store that may not be written, or whose disk is full, can be read; writes are refused in clear words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memgraph

PROGRAM = """
import json, resource, sys
from click.testing import CliRunner
from memgraph.interfaces.cli import cli

found = []
for arguments in json.loads(sys.argv[2]):
    if isinstance(arguments, int):
        resource.setrlimit(resource.RLIMIT_FSIZE, (arguments, arguments))
        continue
    done = CliRunner().invoke(cli, ["--home", sys.argv[1], *arguments])
    failure = done.exception if not isinstance(done.exception, SystemExit) else None
    found.append([done.exit_code, done.stdout, done.stderr, repr(failure) if failure else ""])
print(json.dumps(found))
"""
READING = ("list", "show {}", "recall deploy", "search deploy", "stats", "export", "verify")
QUERY = "query tags_by_trend"
WRITING = ("remember more", "forget {}", "rebuild")
Answers = list[tuple[int, str, str]]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """Return the home of a store and the id of its only memory."""
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    home = tmp_path / "store"
    with memgraph.MemGraph.open(home) as memory:
        first = memory.store.insert_memory({"type": "semantic", "content": "Deploy on Tuesdays", "tags": ["deploy"]})
        memory.store.get_stats()
    yield home, first.id
    for path in (home, *home.rglob("*")):
        path.chmod(0o700)


def run(home: Path, memory_id: str, *commands: str | int) -> Answers:
    """Run commands in one process that may do what the files' modes say, whoever runs the tests; a number limits files from then on."""
    wanted = [one if isinstance(one, int) else one.format(memory_id).split() for one in commands]
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(home), json.dumps(wanted)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("the administrator may write everywhere")
        command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    answers: list[list[Any]] = json.loads(done.stdout)
    assert [failure for *_, failure in answers if failure] == [], "a traceback"
    return [(code, out, err) for code, out, err, _ in answers]


def protect(home: Path) -> None:
    for path in (*home.rglob("*"), home):
        path.chmod(0o500 if path.is_dir() else 0o400)


def contents(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in home.rglob("*")}


def check_read(answers: Answers, memory_id: str, *, of_recall: str) -> None:
    for command, (code, out, err) in zip(READING, answers, strict=True):
        assert code == 0, (command, out, err)
        told = [line for line in err.splitlines() if "not recorded" in line]
        assert len(told) == (command == "recall deploy"), (command, err)
        assert all(of_recall in line for line in told), err
    listed, shown, recalled, searched, *_ = (out for _, out, _ in answers)
    assert all(memory_id in out for out in (listed, shown, searched))
    assert "Deploy on Tuesdays" in recalled


def test_a_read_only_store(made: tuple[Path, str], tmp_path: Path) -> None:
    home, memory_id = made
    with memgraph.MemGraph.open(home) as memory:
        memory.store.insert_memory({"type": "semantic", "content": "Rollbacks take an hour"})
    protect(home)
    before = contents(home)
    *read, query, doctor, past, remember, forget, rebuild, without_room = run(
        home, memory_id, *READING, QUERY, "doctor", "list --as-of 2999-01-01", *WRITING, 64 << 10, "list"
    )
    assert "Rollbacks take an hour" in read[0][1]
    check_read(read, memory_id, of_recall=str(home))
    assert (query[0], "deploy" in query[1]) == (0, True), query
    assert doctor[0] == 0, doctor
    assert f"read-only: {home}: Permission denied" in doctor[1]
    assert memory_id in past[1], past
    for code, _, err in (remember, forget, rebuild):
        assert code == 1
        assert "Permission denied: the store is read-only; give this user write access" in err
        assert "Traceback" not in err
    assert without_room[0] == 1
    assert "is read-only, and its rows cannot be copied" in without_room[2]
    assert "set TMPDIR to a directory with free space" in without_room[2]
    assert contents(home) == before
    assert not list((tmp_path / "temporary").iterdir()), "a copy was left"


def test_a_full_disk(made: tuple[Path, str]) -> None:
    home, memory_id = made
    *read, query, remember, forget = run(home, memory_id, 8 << 10, *READING, QUERY, "remember more", "forget {}")
    check_read(read, memory_id, of_recall="nothing was recorded")
    assert (query[0], query[2].count("\n")) == (1, 1), query  # Cypher runs on a copy, which needs space
    assert "free some disk space and try again" in query[2]
    for code, _, err in (remember, forget):
        assert code == 1
        assert "nothing was recorded" in err
        assert "free some disk space and try again" in err
