"""What page, series, named queries and generalisations say of 70 builds is what their logs say, recounted by code of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder
from tests.recount import Run, read_builds, recount

WORK = {
    "src/bakery/oven.py": ("Heat the oven in two steps", "ValueError: the sensor answers {n} degrees for a cold oven"),
    "src/bakery/dough.py": ("Knead the dough of the rye loaves", "ZeroDivisionError: no flour is left in bin {n}"),
    "src/bakery/till.py": ("Print the receipts", "PermissionError: the printer refused page {n}"),
    "src/bakery/van.py": ("Plan the tour of the van", "LookupError: the street has no house {n}"),
    "src/bakery/shelf.py": ("Count the loaves on the shelves", "IndexError: shelf {n} is not on the plan"),
}
MONTHS = {2: (14, 13), 3: (12, 8), 4: (11, 6), 5: (13, 3), 6: (9, 0), 7: (11, 2)}
"""Builds of each month, and how many of them failed."""


def bakery() -> list[dict[str, Any]]:
    """Make 70 builds that fail less and less; some fail twice, some in part, and most that succeed leave no memory."""
    drawn, found, broken = random.Random(20), [], ""
    for month, (many, failed) in MONTHS.items():
        bad = {*drawn.sample(range(many), failed)}
        for place, day in enumerate(sorted(drawn.sample(range(1, 29), many))):
            at, tasks = datetime(2026, month, day, 16, 40, tzinfo=UTC), []
            for file in drawn.sample(sorted(WORK), 2 if drawn.random() < 0.2 else 1) if place in bad else ():
                title, error = WORK[file]
                told = {"description": f"{title} ({file})", "output": error.format(n=drawn.choice((3, 12, 47)))}
                tasks.append({**told, "agent_name": "ines", "outcome": "failure", "files_changed": [file]})
                broken = file
            if not tasks and broken:
                title, output = WORK[broken][0], "Ask the sensor twice, because its first answer is old."
                told = {"description": f"fix: {title} ({broken})", "output": output}
                tasks.append({**told, "agent_name": "juri", "outcome": "success", "files_changed": [broken]})
                broken = ""
            is_partial = bool(tasks) and place in bad and drawn.random() < 0.15
            if is_partial or not tasks:
                tasks.append({"description": "Bake as planned", "agent_name": "juri", "outcome": "success"})
            outcome = "partial" if is_partial else "failure" if place in bad else "success"
            numbered = [{"task_id": f"t{number}", **task} for number, task in enumerate(tasks)]
            times = {"started_at": at.isoformat(), "completed_at": (at + timedelta(minutes=25)).isoformat()}
            name = f"bakery-{len(found) + 1}"
            found.append(
                {"build_id": name, "project_id": "bakery", "tasks": numbered, "build_outcome": outcome, **times}
            )
    return found


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bakery") / "builds.jsonl"
    path.write_text("\n".join(map(json.dumps, bakery())))
    return path


@pytest.fixture(scope="module")
def run(logs: Path) -> Run:
    """Run a command on a store of these builds."""

    def call(*args: object) -> str:
        result = CliRunner().invoke(
            cli,
            ["--home", str(logs.parent / "store"), *map(str, args)],
            prog_name="memgraph",
            obj=Settings(embedder=FakeEmbedder(64)),
            env={"MEMGRAPH_KEYS_HOME": str(logs.parent / "keys"), "MEMGRAPH_WORKER": "off"},
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    call("ingest", "builds", logs)
    call("sleep")
    return call


def test_every_number_and_date_is_that_of_the_builds(run: Run, logs: Path, tmp_path: Path) -> None:
    raw = read_builds([logs])
    assert len(raw.attempts) == sum(many for many, _ in MONTHS.values()) == 70
    tally = recount(raw, run, tmp_path)
    assert tally.different == [], "\n".join(tally.lines())
    for where in ("page", "series", "failures_by_month", "failures_by_file", "recurring_failures", "generalisations"):
        assert tally.numbers[where] >= 5, "\n".join(tally.lines())
    assert sum(tally.numbers.values()) > 500
    assert sum(tally.dates.values()) > 250
    unread = [one for one in tally.not_compared if not one.startswith(("series", "page's series"))]
    assert unread == []


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("failures_by_month", lambda text: text.replace('"failures": 2', '"failures": 1')),
        ("failures_by_file", lambda text: text.replace("2026-0", "2025-0")),
        ("generalisations", lambda text: text.replace(" builds, from ", " builds, in February 2026, from ", 1)),
        ("series", lambda text: text.replace('"count": 3', '"count": 4')),
    ],
)
def test_a_figure_that_is_not_so_is_found(
    run: Run, logs: Path, tmp_path: Path, command: str, wrong: Callable[[str], str]
) -> None:
    def falsified(*args: object) -> str:
        text = run(*args)
        if command not in args:
            return text
        assert wrong(text) != text
        return wrong(text)

    assert recount(read_builds([logs]), falsified, tmp_path).different
