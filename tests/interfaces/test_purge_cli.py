"""``purge`` and ``verify --receipt``."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli
from memgraph.journal import sql
from memgraph.journal.opening import FILE
from tests.tables import change, everything, table

Run = Callable[..., Any]
TEXT, OTHER = "Margaret moved to the house behind the old lighthouse in spring", "The staging server is called heron"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    def call(*args: object) -> Any:
        line = ["--home", str(tmp_path / "store"), *map(str, args)]
        return CliRunner().invoke(cli, line, prog_name="memgraph", obj=settings())

    return call


@pytest.fixture
def ids(run: Run) -> list[str]:
    return [json.loads(run("remember", text, "--json").stdout)["data"]["ids"][0] for text in (TEXT, OTHER)]


def test_a_purge_is_previewed_first_and_lists_earlier_exports(run: Run, ids: list[str], tmp_path: Path) -> None:
    exported = tmp_path / "all.json"
    assert run("export", exported).exit_code == 0
    before = run("list", "--json").stdout
    shown = run("purge", ids[0][:8])
    assert (shown.exit_code, "Margaret moved" in shown.stdout, str(exported) in shown.stdout) == (1, True, True)
    assert "nothing was purged; add --yes" in shown.stderr
    assert run("list", "--json").stdout == before
    previewed = json.loads(run("purge", ids[0], "--json").stdout)
    assert [(one["id"], one["why"]) for one in previewed["memories"]] == [(ids[0], "asked")]
    receipt = tmp_path / "receipt.json"
    done = run("purge", ids[0], "--yes", "--receipt", receipt)
    assert (done.exit_code, "Purged 1 memory" in done.stdout, str(exported) in done.stdout) == (0, True, True)
    assert "make a full one" in done.stdout
    assert TEXT not in run("list", "--include-suppressed").stdout
    checked = run("verify", "--receipt", receipt)
    assert (checked.exit_code, "The receipt is genuine" in checked.stdout) == (0, True)
    assert json.loads(run("verify", "--receipt", receipt, "--json").stdout)["events"] >= 1
    assert "1 event has no content, and 1 vector was removed." in checked.stdout
    assert "make a full one" in checked.stdout
    assert "1 event of the journal has no content any more." in done.stdout
    assert "1 event of the journal would lose its content" in shown.stdout
    assert str(exported) in run("purge", ids[1]).stdout
    later = json.loads(run("remember", "The mill is for sale", "--json").stdout)["data"]["ids"][0]
    for said in (run("purge", later), run("purge", later, "--yes")):  # the file is older than the memory
        assert ("The mill" in said.stdout or "Purged 1" in said.stdout, str(exported) in said.stdout) == (True, False)
    exported.unlink()
    assert str(exported) not in run("purge", ids[1]).stdout


def test_beside_a_long_read_it_says_what_is_left_to_do(
    run: Run, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "_WAIT_S", 0.05)
    with closing(sqlite3.connect(tmp_path / "store" / FILE, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM event").fetchall()
        done = run("purge", ids[0], "--yes", "--receipt", tmp_path / "mine.json")
    assert (done.exit_code, "not complete" in done.stderr, "The next command" in done.stdout) == (1, True, True)
    path = Path(done.stdout.partition("The receipt will be ")[2].rstrip().removesuffix("."))
    assert not path.exists()
    assert not (tmp_path / "mine.json").exists()
    assert run("list").exit_code == 0
    assert run("verify", "--receipt", path).exit_code == 0


def test_the_path_of_a_receipt_works_as_it_is_printed(
    run: Run, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in ([ids[0]], [ids[1], "--all", "--receipt", "mine.json"]):
        done = run("purge", *words, "--yes").stdout
        path = Path(done.partition("Receipt: ")[2].partition("; `memgraph verify")[0])
        assert path.is_absolute()
        assert path.name == "mine.json" or path.parent == tmp_path / "store" / "receipts"
        assert run("verify", "--receipt", path).exit_code == 0


def test_what_matches_everything_needs_all(run: Run, ids: list[str]) -> None:
    refused = run("purge", "--match", "the", "--yes")
    assert (refused.exit_code, "would leave no memory" in refused.stderr) == (1, True)
    assert "--all" in run("purge", "--match", "the").stderr
    for pattern in ("", " "):
        assert run("purge", "--match", pattern, "--yes").exit_code == 1
    assert len(json.loads(run("list", "--json").stdout)) == len(ids)
    assert run("purge", "--match", "the", "--yes", "--all").exit_code == 0
    assert json.loads(run("stats", "--json").stdout)["total"] == 0


def test_bad_usage_is_refused(run: Run, ids: list[str], tmp_path: Path) -> None:
    assert run("purge").exit_code == 2
    assert run("purge", ids[0], "--project", "P").exit_code == 2
    assert run("purge", "--match", "nobody said so", "--yes").exit_code == 1
    assert run("purge", ids[0], "--yes", "--agent", "coach").exit_code != 0
    bad = tmp_path / "bad.json"
    assert run("verify", "--receipt", bad).exit_code == 1
    for text in ("", "{}", "[]", '{"format": 2}', "x" * 100):
        bad.write_text(text)
        refused = run("verify", "--receipt", bad)
        assert (refused.exit_code, refused.stdout) == (1, ""), text
    assert json.loads(run("stats", "--json").stdout)["total"] == 2


def test_a_receipt_of_another_store_is_refused(run: Run, ids: list[str], tmp_path: Path, settings: Any) -> None:
    receipt = tmp_path / "receipt.json"
    assert run("purge", ids[0], "--yes", "--receipt", receipt).exit_code == 0
    elsewhere = ["--home", str(tmp_path / "other")]
    assert CliRunner().invoke(cli, [*elsewhere, "remember", OTHER], obj=settings()).exit_code == 0
    refused = CliRunner().invoke(cli, [*elsewhere, "verify", "--receipt", str(receipt)], obj=settings())
    assert (refused.exit_code, "is of another store" in refused.stderr) == (1, True)


def test_complete_removes_again_what_came_back(run: Run, ids: list[str], tmp_path: Path) -> None:
    home = tmp_path / "store"
    old = table(home, "event")
    receipt = tmp_path / "receipt.json"
    assert run("purge", ids[0], "--yes", "--receipt", receipt).exit_code == 0
    for _, seq, *_, payload, salt, _ in old:
        change(home, "UPDATE event SET payload = ?, salt = ? WHERE seq = ? AND payload IS NULL", payload, salt, seq)
    for words in (["verify"], ["verify", "--receipt", receipt]):
        refused = run(*words)
        assert (refused.exit_code, "memgraph purge --complete" in refused.stderr) == (1, True)
    done = run("purge", "--complete")
    assert (done.exit_code, done.stdout) == (0, "Every purge is complete.\n")
    assert TEXT.encode() not in everything(home)
    assert run("verify", "--receipt", receipt).exit_code == 0
    again = run("purge", "--complete", "--json")
    assert (again.exit_code, json.loads(again.stdout)) == (0, {"complete": True})


def test_nothing_to_purge_is_said_in_terms_of_what_was_asked_for(run: Run, ids: list[str]) -> None:
    for option, name, said in (
        ("--match", "nobody said so", "nothing in the journal says 'nobody said so'"),
        ("--project", "Heron", "nothing in the journal is of project 'Heron'"),
        ("--source", "log", "nothing in the journal rests on source 'log'"),
    ):
        for more in ([], ["--yes"]):
            refused = run("purge", option, name, *more)
            assert (refused.exit_code, said in refused.stderr) == (1, True), refused.stderr


@pytest.mark.embedded
def test_the_advice_for_an_unknown_project_or_source_helps(run: Run, ids: list[str]) -> None:
    run("remember", "The staging server was moved", "--project", "heron")
    advised = shlex.split(run("purge", "--project", "Heron").stderr.split("`")[1])
    listed = run(*advised[1:])
    assert "heron" in listed.stdout.split(), listed.stderr
    of_source = run("purge", "--source", "nonesuch").stderr
    assert "projects" not in of_source
    (show, read) = (shlex.split(one) for one in of_source.split("`")[1::2])
    source = next(line for line in run(*show[1:-1], ids[0]).stdout.splitlines() if line.startswith("source")).split()[
        -1
    ]
    assert run("purge", "--source", source).stdout
    assert run(*read[1:]).exit_code == 0


def test_a_source_is_purged_by_its_place_and_is_read_again(run: Run, ids: list[str], tmp_path: Path) -> None:
    log = {
        "build_id": "b1", "project_id": "P", "build_outcome": "failure", "started_at": "2026-01-01T00:00:00Z",
        "completed_at": "2026-01-01T01:00:00Z",
        "tasks": [{
            "task_id": "t", "agent_name": "MARS", "description": "Build it", "outcome": "failure",
            "output": "Error: the linker ran out of memory on host heron",
        }],
    }  # fmt: skip
    document = tmp_path / "builds.json"
    document.write_text(json.dumps(log), encoding="utf-8")
    assert run("ingest", "builds", document).exit_code == 0
    every = {one["id"] for one in json.loads(run("list", "--json").stdout)}
    assert every > set(ids)
    found = json.loads(run("purge", "--source", document, "--json").stdout)
    assert {one["id"] for one in found["memories"]} == every - set(ids)
    assert run("purge", "--source", document, "--yes").exit_code == 0
    assert {one["id"] for one in json.loads(run("list", "--json").stdout)} == set(ids)
    refused = run("purge", "--source", document)
    assert (refused.exit_code, "nothing in the journal rests on source" in refused.stderr) == (1, True)
    assert run("verify", "--deep").exit_code == 0
    assert run("ingest", "builds", document).stdout != "Nothing new to read.\n"
    assert {one["content"] for one in json.loads(run("list", "--json").stdout)} > {TEXT, OTHER}


def test_lost_tasks_and_names_that_stay_are_shown_before_and_after(run: Run, ids: list[str], tmp_path: Path) -> None:
    assert run("task", "new", "Write to Margaret").exit_code == 0
    assert run("task", "add", "decision", "By letter", "--task", "write-to-margaret").exit_code == 0
    shown = run("purge", "--match", "to margaret")
    assert (shown.exit_code, "write-to-margaret  Write to Margaret (1 item)" in shown.stdout) == (1, True)
    assert "id of a task write-to-margaret (2 events" in shown.stdout
    done = run("purge", "--match", "to margaret", "--yes")
    assert (done.exit_code, "1 task whose title had the words" in done.stdout) == (0, True), done.output
    assert "id of a task (2 events" in done.stdout
    (receipt,) = (tmp_path / "store" / "receipts").glob("*.json")
    assert "id of a task (2 events" in run("verify", "--receipt", receipt).stdout


def test_a_preview_says_why_a_memory_is_listed_that_does_not_show_the_words(run: Run, ids: list[str]) -> None:
    run("remember", "A walk by the sea", "--tag", "Margaret", "--project", "margaret-house")
    run("remember", f"{'It rained all day, and nobody went out, so we played cards. ' * 2}Margaret won")
    shown = run("purge", "--match", "margaret").stdout.splitlines()
    assert any(line.endswith("A walk by the sea (matched in its project and tags)") for line in shown)
    assert any(line.endswith("… (matched in its text, further on)") for line in shown)
    assert any("Margaret moved" in line and "matched" not in line for line in shown)
    run("edit", ids[0], "--content", "Somebody moved house in spring")
    shown = run("purge", "--match", "Margaret moved").stdout
    assert "Somebody moved house in spring (matched in an earlier version)" in shown
