"""Shell manners: help in groups, the overview, completion, suggestions, and what a terminal gets that a pipe does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner, Result

from memgraph.assets import texts
from memgraph.interfaces.cli.base.commands import GROUPS, OTHER_WORDS, Group
from memgraph.interfaces.cli.base.completing import RELATIONS
from memgraph.interfaces.cli.group import COMMANDS, cli
from memgraph.model.link import EXPLICIT_RELATIONS

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run one command in this process against one store; it must end with `code`."""

    def call(*args: object, code: int = 0, home: str = "store", stdin: str | None = None) -> Result:
        given = ["--home", str(tmp_path / home), *map(str, args)]
        result = CliRunner().invoke(cli, given, input=stdin, prog_name="memgraph", obj=settings())
        assert result.exit_code == code, result.output
        return result

    return call


# Help and suggestions


def test_the_help_lists_each_command_once_in_its_group() -> None:
    text = CliRunner().invoke(cli, ["--help"]).stdout
    sections = re.split(rf"^({'|'.join(map(re.escape, GROUPS.values()))}):$", text, flags=re.MULTILINE)
    shown = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert list(shown) == list(GROUPS.values())
    assert set(GROUPS) == set(get_args(Group))
    for name, entry in COMMANDS.items():
        places = [heading for heading, rows in shown.items() if re.search(rf"^  {name} ", rows, re.MULTILINE)]
        assert places == [GROUPS[entry.group]]


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["remeber", "x"], "remember"),
        (["ls"], "list"),
        (["Status"], "stats"),
        (["config", "shwo"], "show"),
        (["viz", "chart"], "charts"),
        (["list", "--projct", "x"], "--project"),
        (["ingest", "gti", "."], "git"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_meant(run: Run, args: list[str], meant: str) -> None:
    result = run(*args, code=2)
    assert re.search(rf"Did you mean [^?]*{meant}", result.stderr)


def test_a_word_of_another_tool_names_a_command_and_hides_none() -> None:
    assert set(OTHER_WORDS.values()) <= COMMANDS.keys()
    assert not OTHER_WORDS.keys() & COMMANDS.keys()


# The overview


def test_alone_it_says_what_is_in_the_store_and_what_to_do_next(run: Run) -> None:
    run("remember", "Deploy on Tuesdays", "--project", "shop")
    run("remember", "Ask before touching the ledger", "--project", "shop")
    run("remember", "The harbour opens at six", "--project", "ferry")
    said = run().stdout
    assert "memories        3 (3 semantic)\n" in said
    assert "projects        shop (2), ferry (1)\n" in said
    assert "last learned    just now" in said
    assert 'memgraph recall "TASK"' in said
    document = json.loads(run("--json").stdout)
    assert (document["memories"], document["projects"]) == (3, {"shop": 2, "ferry": 1})
    assert [one["command"] for one in document["next"]][-1] == "memgraph --help"


def test_alone_without_a_store_it_says_how_to_begin_and_creates_nothing(run: Run, tmp_path: Path) -> None:
    result = run(home="none")
    assert result.stdout.startswith(f"There is no store at {tmp_path / 'none'} yet")
    assert "memgraph demo" in result.stdout
    assert json.loads(run("--json", home="none").stdout)["exists"] is False
    assert not (tmp_path / "none").exists()


# Completion


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Return what bash would be offered for the last word of a line."""

    def call(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        monkeypatch.setenv("_MEMGRAPH_COMPLETE", "bash_complete")
        said = CliRunner().invoke(cli, [], prog_name="memgraph").stdout
        return [row.partition(",")[2] for row in said.split()]

    return call


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("memgraph unf", ["unforget"]),
        ("memgraph viz p", ["page"]),
        ("memgraph list --sort-by c", ["created"]),
        ("memgraph list --pro", ["--project"]),
        ("memgraph query agents_by_o", ["agents_by_outcome"]),
        ("memgraph queries show agents_by_o", ["agents_by_outcome"]),
        ("memgraph docs set", ["settings"]),
        ("memgraph link ID sup", ["SUPERSEDES", "SUPPORTS"]),
    ],
)
def test_a_shell_is_offered_what_fits(completed: Callable[[str], list[str]], line: str, some: list[str]) -> None:
    assert completed(line) == some


def test_every_command_and_query_is_offered(completed: Callable[[str], list[str]]) -> None:
    assert completed("memgraph ") == list(COMMANDS)
    assert completed("memgraph query ") == list(texts("queries", ".cypher"))
    assert sorted(RELATIONS) == sorted(EXPLICIT_RELATIONS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_memgraph(run: Run, shell: str) -> None:
    script = run("completion", shell).stdout
    assert f"_MEMGRAPH_COMPLETE={shell}_complete" in script
    assert json.loads(run("completion", shell, "--json").stdout)["script"] == script.rstrip("\n")


def test_completion_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import os, sys\n"
        "os.environ |= {'COMP_WORDS': 'memgraph un', 'COMP_CWORD': '1', '_MEMGRAPH_COMPLETE': 'bash_complete'}\n"
        "from memgraph.interfaces.cli import cli\n"
        "try:\n    cli.main([], 'memgraph')\n"
        "except SystemExit:\n    print(*sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "plain,unforget" in ended.stdout
    assert not {"pydantic", "numpy", "kuzu", "rich"} & set(ended.stdout.split())


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """Return every command that is no group, by its words."""
    if not isinstance(command, click.Group):
        return {path: command}
    found: dict[tuple[str, ...], click.Command] = {}
    ctx = click.Context(command)
    for name in command.list_commands(ctx):
        inner = command.get_command(ctx, name)
        assert inner is not None
        found |= leaves(inner, (*path, name))
    return found
