"""The contract of graph engines, held by the engine that is not the default: in a process of its own, which takes only one."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HELD_BY_BOTH = [
    "tests/contract/test_graph_engine.py",
    "tests/unit/graph/test_losses.py",
    "tests/unit/graph/test_columns.py",
]


@pytest.mark.skipif(find_spec("ladybug") is None, reason="ladybug is not installed (the extra `ladybug`)")
def test_ladybug_holds_what_kuzu_does() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        "--engine",
        "ladybug",
        *HELD_BY_BOTH,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3_000:]
    assert " passed" in done.stdout
