"""``memgraph compress``, and what `ingest` does of it by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli


def logs(path: Path, builds: int) -> Path:
    """Write build logs in which the same fails for the same reason."""
    hosts = ["alder", "birch", "cedar", "maple", "willow"]
    task = {
        "task_id": "t",
        "agent_name": "MARS",
        "description": "Deploy",
        "outcome": "failure",
        "files_changed": ["deploy/run.py"],
    }
    lines = [
        {
            "build_id": f"b{n}", "project_id": "shop", "build_outcome": "failure", "started_at": f"2026-01-{n + 1:02}T10:00:00Z",
            "completed_at": f"2026-01-{n + 1:02}T11:00:00Z", "tasks": [{**task, "output": f"Error: no route to host {hosts[n % 5]} at step {n}"}],
        }
        for n in range(builds)
    ]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def done(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., str]:
    """Run a command that must succeed, and return what it printed on stdout."""

    def call(*args: object) -> str:
        result = CliRunner().invoke(
            cli,
            ["--home", str(tmp_path / "store"), *map(str, args)],
            prog_name="memgraph",
            obj=settings(),
        )
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return call


@pytest.mark.parametrize(("builds", "is_due"), [(9, False), (10, True)])
def test_an_ingest_compresses_once_when_ten_builds_have_come(
    done: Callable[..., str], tmp_path: Path, builds: int, is_due: bool
) -> None:
    source = logs(tmp_path / "builds.jsonl", builds)
    assert json.loads(done("ingest", "builds", source, "--json"))["compressed"] == int(is_due)
    assert json.loads(done("ingest", "builds", source, "--json"))["compressed"] == 0

    result = json.loads(done("compress", "--json"))
    assert (result["compressed"], result["updated"]) == (int(not is_due), 0)
    assert done("compress") == "Nothing new to generalise.\n"
    (made,) = json.loads(done("list", "--type", "semantic", "--json"))
    assert made["content"].startswith(
        "The same failed with `run.py` in 9 builds" if not is_due else "The same failed with `run.py` in 10 builds"
    )


def test_an_error_of_three_builds_is_reported_where_it_is_learned(done: Callable[..., str], tmp_path: Path) -> None:
    source = logs(tmp_path / "builds.jsonl", 3)
    source.write_text(re.sub(r"host \w+ at step \d", "host alder", source.read_text()))
    done("ingest", "builds", source)

    told = json.loads(done("compress", "--json"))
    (known,) = json.loads(done("list", "--type", "semantic", "--json"))
    assert (told["compressed"], told["new_memory_ids"]) == (1, [known["id"]])
    assert done("compress") == "Nothing new to generalise.\n"
