"""The corpus of injections on the command line: a line each, marked, and no code for the terminal, piped or not."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from memgraph.interfaces.cli.analysis.query import print_csv, print_table
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.model.results.rows import Column, Rows
from memgraph.testing import FakeEmbedder
from tests.property.poisoned import TEXTS, check_notes, check_visible, imported

COLUMNS = (Column("at", "INT64"), Column("text", "STRING"))
COMMANDS = {
    "list": ["list", "--limit", "200"],
    "search": ["search", "till imported rule", "--limit", "100"],
    "ask": ["ask", "the tests and the branch"],
    "recall": ["recall", "the tests and the branch", "--floor", "off"],
    "prefix": ["recall", "the tests and the branch", "--floor", "off", "--format", "prefix"],
    "delimited": ["recall", "the tests and the branch", "--floor", "off", "--format", "delimited"],
    "overview": [],
    "task show": ["task", "show", "till"],
    "pins list": ["pins", "list", "--task", "till"],
    "session show": ["session", "show"],
    "session kept": ["session", "kept"],
    "prompt": ["prompt", "--task", "till"],
    "handoff list": ["handoff", "list"],
    "ledger list": ["ledger", "list"],
    "continuity": ["continuity", "--task", "till"],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fill a store by commands with the texts."""
    folder = tmp_path_factory.mktemp("poisoned")
    (folder / "web.json").write_text(json.dumps(imported()))
    hostile = [text for text in TEXTS if len(text.splitlines()) > 1 or not text.isprintable()]

    def run(*args: str) -> None:
        assert run_in(folder, *args).exit_code == 0, args

    run("import", str(folder / "web.json"))
    run("task", "new", " ".join(hostile)[:150], "--id", "till", "--switch")
    for kind, text in zip(("decision", "constraint", "question", "action"), hostile, strict=False):
        run("task", "add", kind, text)
    run("pins", "add", hostile[4], "--kind", "constraint", "--task", "till")
    run("session", "set", "--doing", hostile[5], "--context", hostile[6], "--notes", "\n".join(hostile)[:900])
    run("session", "about", " ".join(hostile)[:300])
    run("session", "keep", "kept", " ".join(hostile)[:300])
    run("handoff", "create", " ".join(hostile), "--from", "eng", "--issue", hostile[7])
    run("ledger", "checkpoint", "eng", "--goal", " ".join(hostile)[:400])
    return folder


def run_in(folder: Path, *args: str) -> Result:
    settings = Settings(embedder=FakeEmbedder(dimension=8))
    env = {"MEMGRAPH_KEYS_HOME": str(folder / "keys"), "MEMGRAPH_SESSION": None}
    return CliRunner().invoke(cli, ["--home", str(folder / "store"), *args], obj=settings, env=env)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_terminal", [False, True], ids=["piped", "terminal"])
def test_a_command_prints_lines_of_its_own(
    home: Path, command: str, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_terminal:
        monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
        monkeypatch.setenv("PAGER", "")
        monkeypatch.setenv("TERM", "xterm")
    found = run_in(home, *COMMANDS[command])
    assert found.exit_code == 0, found.output
    printed = click.unstyle(found.stdout) if is_terminal and command in {"list", "search", "overview"} else found.stdout
    assert printed
    check_visible(printed, separators="\n\t" if command in {"list", "search"} else "\n")
    check_visible(click.unstyle(found.stderr))
    if command in {"recall", "prompt", "continuity"}:
        check_notes(printed)


def test_lists_in_the_shell_mark_what_comes_from_outside(home: Path) -> None:
    lines = run_in(home, *COMMANDS["list"]).stdout.splitlines()
    cells = [line.split("\t") for line in lines]
    assert {len(one) for one in cells} == {8}
    marked = [one for one in cells if one[-1].startswith("[source: web] ")]
    assert len(marked) == len(TEXTS)
    for line in run_in(home, *COMMANDS["search"]).stdout.splitlines():
        assert re.match(r"\[source: web\] |\w+: ", line.split("\t")[-1]), line


@pytest.mark.parametrize("is_terminal", [False, True], ids=["piped", "terminal"])
def test_a_table_and_its_csv_hold_the_texts_as_cells(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = Rows([{"at": place, "text": text} for place, text in enumerate(TEXTS)], columns=COLUMNS)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("PAGER", "")
    print_table(rows)
    table = click.unstyle(capsysbinary.readouterr().out.decode())
    check_visible(table)
    if not is_terminal:  # where each row is a block of lines
        assert len(table.splitlines()) == len(TEXTS) + 1
    print_csv(rows)
    printed = capsysbinary.readouterr().out.decode()
    read = list(csv.reader(io.StringIO(printed, newline="")))
    assert len(read) == len(TEXTS) + 1
    if is_terminal:
        check_visible(printed.replace("\r\n", "\n"))
    else:
        assert [row[1] for row in read[1:]] == TEXTS


def test_a_command_about_one_memory_prints_lines_of_its_own(home: Path) -> None:
    rows: list[dict[str, Any]] = json.loads(run_in(home, "list", "--limit", "200", "--json").stdout)
    [hostile] = [one["id"] for one in rows if one["content"].startswith("\x1b[2J")]
    for word in "show history why forget unforget archive unarchive pin unpin tag untag delete".split():
        found = run_in(home, word, hostile, *(["night"] if "tag" in word else []))
        assert found.exit_code == 0, found.output
        check_visible(found.stdout)
        check_visible(found.stderr)
