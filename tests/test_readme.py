"""README.md: short, its set-up lines are those that the gate runs, and its example works with the packaged model."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memgraph.interfaces.cli.group import COMMANDS
from tests.documents import README, ROOT, blocks

TEXT = README.read_text("utf-8")
SHELL_LINES = [line for block in blocks(README, "sh") for line in block.text.splitlines()]


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 200


@pytest.mark.parametrize(
    "parts",
    [
        ("python3 -m venv .venv", ".venv/bin/pip install -q .", ".venv/bin/memgraph demo"),
        ("python3 -m venv .venv", ".venv/bin/pip install -q '.[test]'", ".venv/bin/python -m pytest -q -n auto"),
    ],
)
def test_a_fresh_machine_needs_one_line(parts: tuple[str, ...]) -> None:
    assert [line for line in SHELL_LINES if line == " && ".join(parts)] == [" && ".join(parts)]
    named = parts[-1].split()[1] if "demo" in parts[-1] else "pytest"  # what the gate looks for, in the whole file
    assert sum("python3 -m venv" in line and named in line for line in TEXT.splitlines()) == 1


def test_it_shows_six_commands() -> None:
    shown = [line.split()[1] for line in SHELL_LINES if line.startswith("memgraph ")]
    assert len(set(shown)) == len(shown) == 6
    assert set(shown) <= COMMANDS.keys()


def test_the_python_example_prints_what_it_recalls_with_the_real_model() -> None:
    (example,) = blocks(README, "python")
    ended = subprocess.run(
        [sys.executable, "-c", example.text], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    assert "byte order mark" in ended.stdout
    assert "'outcome': 'negative'" in ended.stdout
    assert ended.stderr == ""
