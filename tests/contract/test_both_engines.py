"""The contract of graph engines for the engine that is not the default, in a separate process, because a process can use only one."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HELD_BY_BOTH = [
    "tests/contract/test_graph_engine.py",
    "tests/unit/graph/rows/test_losses.py",
    "tests/unit/graph/test_columns.py",
    "tests/unit/test_queries.py",
]
A_PART = [
    f"{HELD_BY_BOTH[0]}::{name}"
    for name in ("TestEmpty", "TestUpdates", "TestNeighbours", "TestState", "test_rows_are_stored_on_disk")
]
"""What the default run asks of the other engine: rows of every kind are written, changed, read and kept."""
COMMANDS = """
import json, sys
from click.testing import CliRunner
from memgraph.interfaces.cli.group import cli

for command in json.loads(sys.argv[1]):
    result = CliRunner().invoke(cli, command, prog_name="memgraph")
    print(json.dumps([result.exit_code, result.stdout, result.stderr]))
"""
needs_ladybug = pytest.mark.skipif(
    find_spec("ladybug") is None, reason="ladybug is not installed (the extra `ladybug`)"
)


@needs_ladybug
def test_a_store_moved_to_ladybug_and_back_is_unchanged(
    isolated_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    verify = ["verify", "--deep", "--json"]
    query = ["query", "--json", "--cypher", "MATCH (m:Memory) RETURN m.* ORDER BY m.id"]

    def run(*commands: list[str]) -> list[Any]:
        """Run commands in one process."""
        given = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
        done = subprocess.run(given, capture_output=True, text=True, timeout=120, check=True)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        assert [result[0] for result in results] == [0] * len(commands), results
        return [json.loads(stdout) for _, stdout, _ in results if stdout.startswith(("{", "["))]

    def files() -> list[str]:
        return sorted(path.name for path in (isolated_environment / "memgraph" / "graph").glob("memgraph.*"))

    text = ("--reasoning", "It was red.", "--action", "1. Look. 2. Mend.", "--outcome", "success", "--project", "P")
    episodes = [["episode", f"The build of `part{n}.py` broke", *text, "--build", f"b{n}"] for n in range(3)]
    _, before, rows = run(*episodes, ["sleep"], ["recall", "--json", "the build broke"], verify, query)
    assert before["differing"] == 0
    moved, moved_rows, there, there_rows = run(
        ["rebuild", "--engine", "ladybug"], verify, query, ["remember", "Ladybugs have spots"], verify, query
    )
    assert "memgraph.ladybug" in files()
    assert not any(name.startswith("memgraph.kuzu") for name in files())
    assert (moved["digest"], moved["differing"], moved_rows) == (before["digest"], 0, rows)
    assert there["digest"] != before["digest"]
    back, back_rows = run(["rebuild", "--engine", "kuzu"], verify, query)
    assert not any(name.startswith("memgraph.ladybug") for name in files())
    assert (back["digest"], back["differing"], back_rows) == (there["digest"], 0, there_rows)


@needs_ladybug
@pytest.mark.parametrize(
    "tests",
    [
        pytest.param([*A_PART, "-k", "not [memory"], id="a part"),
        pytest.param(HELD_BY_BOTH, id="all", marks=pytest.mark.long),
    ],
)
def test_ladybug_fulfils_the_contract(tests: list[str]) -> None:
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
        *tests,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3_000:]
    assert " passed" in done.stdout
