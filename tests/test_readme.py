"""What README.md says can be done, can be done."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from memgraph.config import _ENVIRONMENT, AgentMemoryConfig
from memgraph.interfaces.cli.group import COMMANDS, cli
from memgraph.testing import FakeEmbedder

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


SHELL_LINES = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
COMMAND_LINES = [line for line in SHELL_LINES if line.startswith("memgraph")]


def parsed(line: str) -> None:
    """Parse a command line as far as click does before it runs anything."""
    command: click.Command = cli
    context = cli.make_context("memgraph", shlex.split(line, comments=True)[1:])
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        command, context = found, found.make_context(name, rest, parent=context)


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_every_command_exists_with_its_options(line):
    parsed(line)


@pytest.mark.parametrize("line", ["memgraph nonsense", "memgraph list --odd", "memgraph ingest svn .", "memgraph show"])
def test_a_wrong_command_would_be_noticed(line):
    with pytest.raises(click.UsageError):
        parsed(line)


def test_every_command_is_named():
    assert [name for name in COMMANDS if not re.search(rf"`{name}`|memgraph {name}\b", TEXT)] == []


@pytest.mark.parametrize(
    "parts",
    [
        ("python3 -m venv .venv", ".venv/bin/pip install -q .", ".venv/bin/memgraph demo"),
        ("python3 -m venv .venv", ".venv/bin/pip install -q '.[test]'", ".venv/bin/python -m pytest -q -n auto"),
    ],
)
def test_a_fresh_machine_needs_one_line(parts):
    assert [line for line in SHELL_LINES if line == " && ".join(parts)] == [" && ".join(parts)]
    assert sum(parts[-1] in line for line in SHELL_LINES) == 1


@pytest.mark.parametrize("source", blocks("python"))
def test_the_python_runs(source, monkeypatch, capsys):
    monkeypatch.setattr("memgraph.store.store.default_embedder", lambda _: FakeEmbedder(dimension=64))
    program = ROOT / "README.md"
    exec(compile(source, str(program), "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.strip()


def test_the_first_python_block_prints_what_it_recalls_with_the_real_model(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", blocks("python")[0]], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    assert "byte order mark" in ended.stdout
    assert "'outcome': 'negative'" in ended.stdout
    assert ended.stderr == ""


def test_every_setting_is_in_the_table():
    fields = set(AgentMemoryConfig.model_fields) - {"home"}
    assert [
        name for name in [*sorted(fields), *_ENVIRONMENT] if f"`{name}`" not in TEXT and f"`[{name}]`" not in TEXT
    ] == []


def test_what_it_points_at_is_there():
    folders = re.findall(r"`((?:memgraph|tests|queries|schema|\.ci)/?[\w./]*)`", TEXT)
    assert folders
    missing = [name for name in folders if not (ROOT / name).exists()]
    assert missing == []
