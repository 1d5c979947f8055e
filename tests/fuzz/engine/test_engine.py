"""Random histories of memgraph's own changes on copies of a graph, compared cell by cell with the fold.

A short form in every run; with ``--long`` 20,000 steps, on both engines, and some in the second node group.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest

_TIMEOUT_S = 4 * 3_600.0


def run(engine: str, first: int, end: int, steps: int, *, large: bool = False) -> list[dict[str, Any]]:
    """Run the histories of some seeds, each outcome as `tests.fuzz.engine.run` says it; one that takes the process down is found, too."""
    found = []
    while first < end:
        command = [sys.executable, "-m", "tests.fuzz.engine.run", "--engine", engine]
        command += ["--seeds", f"{first}:{end}", "--steps", str(steps), *(["--large"] if large else [])]
        child = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        said = [json.loads(line) for line in child.stdout.splitlines()]
        found += [one for one in said if "steps" in one]
        if child.returncode in {0, 1} and len([one for one in said if "steps" in one]) == end - first:
            return found
        assert said, child.stderr[-2_000:]
        died_at = max(one["seed"] for one in said)
        end_of_it = f"the process ended with {child.returncode}: {child.stderr[-500:]}"
        found.append({"seed": died_at, "steps": 0, "rows": 0, "seconds": 0.0, "found": [end_of_it]})
        first = died_at + 1
    return found


def check(outcomes: list[dict[str, Any]], engine: str) -> None:
    steps = sum(one["steps"] for one in outcomes)
    rows = max(one["rows"] for one in outcomes)
    print(
        f"\n{engine}: {len(outcomes)} histories, {steps:,} steps, {rows:,} rows at most, {sum(one['seconds'] for one in outcomes):,.0f} s"
    )
    assert [(one["seed"], one["steps"], one["found"]) for one in outcomes if one["found"]] == []


@pytest.fixture(params=["kuzu", "ladybug"])
def engine(request: pytest.FixtureRequest) -> str:
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def test_a_few_histories() -> None:
    check(run("kuzu", 8, 9, 12), "kuzu")


@pytest.mark.long
def test_histories_of_20_000_steps(engine: str) -> None:
    check(run(engine, 1_000, 1_200, 100), engine)


@pytest.mark.long
def test_histories_in_the_second_node_group(engine: str) -> None:
    check(run(engine, 0, 5, 60, large=True), engine)


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A fuzz that can find nothing proves nothing: here a change loses a column."""
    from memgraph.graph import copy
    from tests.fuzz.engine.run import run as history

    real = copy.updates

    def forgetful(changes: Any, since: int) -> Any:
        rows = (one.new and {name: value for name, value in one.new.items() if name != "title"} for one in changes)
        return real([one._replace(new=new) for one, new in zip(changes, rows, strict=True)], since)

    monkeypatch.setattr(copy, "updates", forgetful)
    outcome = history(tmp_path / "one", "kuzu", 3, 30)
    assert any("title" in one for one in outcome["found"])
