"""A command whose standard streams are closed, full or broken, and settings that are no file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import memgraph
from tests.tables import lines_of

Ended = subprocess.CompletedProcess[str]


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., Ended]:
    """Run a command in a process of its own, its streams redirected by a shell."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(memgraph.__file__).parents[1]),
        "MEMGRAPH_EMBEDDING_MODEL": "none",
        "MEMGRAPH_KEYS_HOME": str(tmp_path / "keys"),
    }

    def run(redirection: str, *args: str) -> Ended:
        command = [sys.executable, "-m", "memgraph", "--home", str(tmp_path / "store"), *args]
        return subprocess.run(
            ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *command],
            capture_output=True, text=True, env=environment, timeout=60, check=False,
        )  # fmt: skip

    return run


def journal(folder: Path) -> list[str]:
    """Return the contents of the memories that were added."""
    events = lines_of(folder / "store")
    return [event["payload"]["memory"]["content"] for event in events if event["head"]["type"] == "memory.added"]


def test_closed_streams_are_as_good_as_empty_ones(shell: Callable[..., Ended], tmp_path: Path) -> None:
    assert shell("<&- >&- 2>&-", "remember", "one").returncode == 0
    listed = shell(">&-", "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    refused = shell("<&-", "remember", "-")
    assert (refused.returncode, refused.stderr) == (1, "memgraph: there is no text to remember\n")
    assert journal(tmp_path) == ["one"]  # and nothing was printed into it


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_what_was_kept_is_kept_where_the_answer_cannot_be_written(shell: Callable[..., Ended], tmp_path: Path) -> None:
    ended = shell("> /dev/full", "remember", "one")
    assert ended.returncode == 74
    assert ended.stderr.splitlines()[-1] == (
        "memgraph: the command is done and its changes are kept, but standard output could not be written: "
        "No space left on device"
    )
    assert shell("> /dev/full 2>&1", "remember", "two").returncode == 74
    assert journal(tmp_path) == ["one", "two"]


def test_settings_that_are_no_file_are_refused_at_once(shell: Callable[..., Ended], tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    os.mkfifo(tmp_path / "store" / "config.toml")
    ended = shell("", "list")
    assert ended.returncode == 1
    assert ended.stderr == (
        f"memgraph: {tmp_path / 'store' / 'config.toml'} is not a regular file; replace or remove it\n"
    )
