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
from tests.recount import (
    Run,
    Tally,
    counted_of_tests,
    failing_tests,
    read_builds,
    read_git,
    read_reports,
    recount,
    recount_page,
)

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


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    """Write a history of sixty commits by two persons, of which the last fixes come before a file is renamed, and read it."""
    drawn, folder = random.Random(7), tmp_path_factory.mktemp("kitchen")
    entries, at = [], datetime(2024, 1, 5, 9, tzinfo=UTC)
    for number in range(60):
        files = drawn.sample(["oven.py", "dough.py" if number < 50 else "paste.py", "README.md"], 2)
        changed = "R100\tdough.py\tpaste.py\n" if number == 50 else "".join(f"M\t{file}\n" for file in files)
        title = "Fix the pan" if number % 4 == 0 and number < 45 else f"Add tray {number}"
        title += "\n\n    Closes #12" if number == 41 else ""
        told = f"    The old one got too hot after {number} loaves, because no air reached it, so that the\n" * (
            number % 3
        )
        told += "    baker burned both hands; now there is a gap below, and the air cools it from both sides." * (
            number % 3 > 0
        )
        day = (at + timedelta(days=3 * number)).strftime("%a %b %d %H:%M:%S %Y +0000")
        who = drawn.choice(["Ann Smith <a@x.example>", "Bob Ray <b@x.example>"])
        head = f"commit {drawn.getrandbits(160):040x}\nAuthor: {who}\nDate:   {day}\n\n"
        entries.append(f"{head}    {title}\n\n{told}\n\n{changed}\n")
    log = folder / "kitchen.log"

    def call(*args: object) -> str:
        options = ["--home", str(folder / "store"), *map(str, args)]
        env = {"MEMGRAPH_KEYS_HOME": str(folder / "keys"), "MEMGRAPH_WORKER": "off"}
        result = CliRunner().invoke(
            cli, options, prog_name="memgraph", obj=Settings(embedder=FakeEmbedder(64)), env=env
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    for many in (48, 60):
        log.write_text("".join(reversed(entries[:many])))
        call("ingest", "git", log, "--project", "kitchen")
    call("sleep", "--phase", "counting")
    return log, call


def test_every_number_and_date_of_a_history_is_that_of_its_commits(kitchen: tuple[Path, Run], tmp_path: Path) -> None:
    log, run = kitchen
    tally = recount(read_git([log]), run, tmp_path)
    assert tally.different == [], "\n".join(tally.lines())
    assert (tally.numbers["page"], tally.dates["page"]) >= (10, 15), "\n".join(tally.lines())
    assert [one for one in tally.not_compared if one.startswith("page:")] == []
    run("remember", "Open the window first", "--project", "kitchen", "--fact")
    recount_page(later := Tally(), read_git([log]), run, tmp_path)
    assert later.different == []


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[str, list[str]]]]:
    """Write a history of thirty commits and sixty reports, most of them of these commits; return their folder, and what the commits changed."""
    drawn, folder = random.Random(42), tmp_path_factory.mktemp("oven")
    commits: list[tuple[str, list[str]]] = []
    entries, at = [], datetime(2026, 1, 5, 9, tzinfo=UTC)
    for number in range(30):
        files = ["README.md"] if drawn.random() < 0.3 else drawn.sample(["oven.py", "dough.py", "README.md"], 2)
        commits.append((f"{drawn.getrandbits(160):040x}", files))
        day = (at + timedelta(days=number)).strftime("%a %b %d %H:%M:%S %Y +0000")
        changed = "".join(f"M\t{file}\n" for file in files)
        title = f"{'Fix' if number % 4 == 0 else 'Change'} step {number}"
        entries.append(
            f"commit {commits[-1][0]}\nAuthor: Ann Smith <a@x.example>\nDate:   {day}\n\n    {title}\n\n{changed}\n"
        )
    (folder / "oven.log").write_text("".join(reversed(entries)))
    (folder / "reports").mkdir()
    chances = {"heats": 0.0, "cools": 0.1, "bakes": 0.3, "rings": 0.6, "opens": 0.9}
    for number in range(60):
        begun = at + timedelta(hours=12 * number + 3)
        sha = commits[number // 2][0] if drawn.random() < 0.9 else ""
        cases = ""
        for name, chance in chances.items():
            how = "<failure message='E: cold'>AssertionError: cold</failure>" if drawn.random() < chance else ""
            how = how or ("<flakyFailure message='E: slow'/>" if drawn.random() < 0.03 else "")
            how = "<skipped/>" if drawn.random() < 0.1 else how
            cases += f"<testcase classname='oven.Oven' name='{name}'>{how}</testcase>"
        named = f"<properties><property name='GIT_COMMIT' value='{sha}'/></properties>"
        suite = f"<testsuite name='oven' timestamp='{begun:%Y-%m-%dT%H:%M:%S}' time='{drawn.randint(1, 900)}'>{named}{cases}</testsuite>"
        (folder / "reports" / f"{drawn.getrandbits(32):08x}.xml").write_text(f"<testsuites>{suite}</testsuites>")
    return folder, commits


@pytest.fixture(scope="module")
def of_tests(tested: tuple[Path, Any]) -> Run:
    """Run a command on a store of these commits and reports."""
    folder, _ = tested

    def call(*args: object) -> str:
        options = ["--home", str(folder / "store"), *map(str, args)]
        env = {"MEMGRAPH_KEYS_HOME": str(folder / "keys"), "MEMGRAPH_WORKER": "off"}
        result = CliRunner().invoke(
            cli, options, prog_name="memgraph", obj=Settings(embedder=FakeEmbedder(64)), env=env
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    call("ingest", "git", folder / "oven.log", "--project", "oven")
    call("ingest", "junit", folder / "reports", "--project", "oven")
    return call


def test_the_tests_that_fail_are_those_of_the_reports(tested: tuple[Path, Any], of_tests: Run) -> None:
    raw = read_reports(sorted((tested[0] / "reports").iterdir()))
    rows = json.loads(of_tests("query", "failing_tests", "--json"))
    for row in rows:
        assert row.pop("project") == "oven"
        row |= {name: row[name] and datetime.fromisoformat(row[name]) for name in ("last_failed_at", "last_passed_at")}
    assert rows == failing_tests(raw)
    assert len(rows) >= 4
    assert any(row["is_failing"] for row in rows)


def test_rules_of_tests_have_the_counts_of_the_reports(tested: tuple[Path, Any], of_tests: Run) -> None:
    folder, commits = tested
    counts = counted_of_tests(read_reports(sorted((folder / "reports").iterdir())), commits)
    rules = [
        rule for rule in json.loads(of_tests("learning", "--json"))["rules"] if rule["subject"].startswith("oven.Oven")
    ]
    assert {(rule["kind"], rule["subject"]): (rule["support"], rule["occasions"]) for rule in rules} == {
        key: (hits, occasions) for key, (hits, occasions) in counts.items() if hits >= 2
    }
    assert {rule["kind"] for rule in rules} == {"flaky test", "returning failure"}
    for rule in rules:
        assert len(rule["counterexamples"]) == min(rule["occasions"] - rule["support"], 50)
        assert rule["text"].startswith(f"{rule['subject']} ")
        assert f"{rule['occasions']} " in rule["text"]
    held = json.loads(of_tests("learning", "--check", "--json"))["kinds"]
    assert held["flaky test"]["asked"] > 10
    assert held["flaky test"]["answered"] > 0
    of_tests("sleep", "--phase", "counting")
    kept = {row["content"] for row in json.loads(of_tests("list", "--json", "--limit", "500"))}
    assert {rule["text"] for rule in rules} <= kept
