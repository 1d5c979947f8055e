"""What README.md and the pages of `memgraph docs` say is so: blocks run, names exist, tables are those of the code."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memgraph.embedding
from memgraph import AgentMemoryStore, Embedder
from memgraph.config import load_config
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from tests.documents import DOCS, PAGES, README, ROOT, Block, blocks, stale

INPUTS = Path(__file__).parent / "fixtures" / "inputs"
GATE = (ROOT / ".ci" / "run").read_text("utf-8")
NAMES = [page.stem for page in PAGES]
DEFAULT_EMBEDDER = memgraph.embedding.default_embedder
RUN = ("sh", "console", "python")
BUILD = blocks(DOCS / "sources.md", "json")[0].text
REASONS: dict[str, Callable[[str], bool]] = {
    "set-up line, run by the gate": lambda text: text.startswith("python3 -m venv") and "python3 -m venv" in GATE,
    "the gate runs it": lambda text: all(
        line.replace(" -n auto", "") in GATE + README.read_text("utf-8") for line in text.splitlines()
    ),
    "writes into this checkout": lambda text: text == "python -m tests.documents\n",
    "installs packages": lambda text: "pip install" in text,
    "a process has one engine": lambda text: all("--engine" in line for line in text.splitlines()),
    "needs a framework, and tested in tests/interfaces/frameworks/test_programs.py": lambda text: any(
        f"from memgraph.interfaces.{name} import" in text
        for name in (
            "adk",
            "anthropic",
            "langchain",
            "langgraph",
            "llama_index",
            "openai_agents",
            "pydantic_ai",
        )
    ),
    "needs a server, and tested in tests/interfaces/test_http_server.py": lambda text: all(
        line.startswith("curl -sf ") for line in text.splitlines()
    ),
    "needs an Ollama server": lambda text: all("ollama:" in line for line in text.splitlines()),
}
"""Why a block may be left unrun, and how that can be seen in its text."""
TESTED = re.compile(r"slow, and tested in (tests/[\w/]+\.py)")


def is_true(reason: str, text: str) -> bool:
    """Return whether a reason not to run a block holds; one may also name a test that runs the same commands."""
    if named := TESTED.fullmatch(reason):
        path = ROOT / named[1]
        words = {word for line in text.splitlines() for word in line.split()[1:3]}
        return path.exists() and all(f'"{word}"' in path.read_text("utf-8") for word in words)
    return reason in REASONS and REASONS[reason](text)


class Terminal:
    """Runs the shell blocks of one page in this process, in a folder with something of every kind to read.

    Words in capitals stand for what the store at hand has.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.recalled: list[str] = []

    def run(self, line: str) -> str:
        """Run one line, which must succeed, and return what it prints on standard output."""
        words = shlex.split(line, comments=True)
        assert words[0] == "memgraph", f"only memgraph is run here: {line}"
        words = [self.value_of(word) if word in PLACEHOLDERS else word for word in words]
        if words[1] == "recall":
            self.recalled = words
        return self.invoke(words[1:])

    def invoke(self, arguments: list[str]) -> str:
        result = CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=Settings())
        assert result.exit_code == 0, f"memgraph {shlex.join(arguments)}: {result.output}"
        return result.stdout

    def asked(self, *arguments: str) -> Any:
        return json.loads(self.invoke([*arguments, "--json"]))

    def value_of(self, name: str) -> str:
        """Return what a placeholder stands for: from its first use on the same."""
        if name not in self.names:
            self.names |= PLACEHOLDERS[name](self)
        return self.names[name]


def memories(terminal: Terminal) -> dict[str, str]:
    newest = terminal.asked("list", "--sort-by", "created")
    return {"ID": newest[0]["id"], "OTHER_ID": newest[1]["id"]}


def recall(terminal: Terminal) -> dict[str, str]:
    found = terminal.asked(*terminal.recalled[1:])
    return {"QUERY_ID": found["query_id"], "ID": found["memories"][0]["id"]}


def episode(terminal: Terminal) -> dict[str, str]:
    return {"EPISODE_ID": terminal.asked("list", "--type", "episodic", "--sort-by", "created")[0]["id"]}


def proposal(terminal: Terminal) -> dict[str, str]:
    return {"PROPOSAL_ID": terminal.asked("proposals")[0]["id"]}


def contradiction(terminal: Terminal) -> dict[str, str]:
    one = terminal.asked("contradictions")[0]
    return {"NEW_ID": one["newer"]["id"], "OLD_ID": one["older"]["id"]}


def work_order(terminal: Terminal) -> dict[str, str]:
    return {"ORDER_ID": terminal.asked("distil")[0]["id"]}


def pin(terminal: Terminal) -> dict[str, str]:
    return {"PIN_ID": terminal.asked("pins")[0]["id"]}


def handoff(terminal: Terminal) -> dict[str, str]:
    return {"HANDOFF_ID": terminal.asked("handoff", "list")[0]["id"]}


PLACEHOLDERS: dict[str, Callable[[Terminal], dict[str, str]]] = {
    "ID": memories,
    "OTHER_ID": memories,
    "QUERY_ID": recall,
    "EPISODE_ID": episode,
    "PROPOSAL_ID": proposal,
    "ORDER_ID": work_order,
    "PIN_ID": pin,
    "HANDOFF_ID": handoff,
    "NEW_ID": contradiction,
    "OLD_ID": contradiction,
}


@cache
def embedder() -> Embedder:
    """Return the packaged model, loaded once."""
    return DEFAULT_EMBEDDER()


@pytest.fixture
def terminal(tmp_path: Path, isolated_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    folder = tmp_path / "shop"
    shutil.copytree(INPUTS, folder)
    (folder / "builds.jsonl").write_text(BUILD, "utf-8")
    (folder / "target").mkdir()
    (folder / "junit").rename(folder / "target" / "reports")
    for kind in ("target/reports/*.xml", "trajectories/*.traj"):  # one of each is enough
        for path in sorted(folder.glob(kind))[1:]:
            path.unlink()
    (folder / "trials").mkdir()
    (folder / "alfworld_trial_0.json").rename(folder / "trials" / "alfworld_trial_0.json")
    shutil.copytree(folder / "transcripts", isolated_environment / ".claude" / "projects" / "shop")
    (folder / "answer.json").write_text('{"verdict": "newer holds"}', "utf-8")
    changes = {
        "import_csv.py": "Fix the CSV import\n\nThe header was lost because of a byte order mark.",
        "repair.py": "Fix the repair of a damaged journal\n\nIt was cut before its last whole line because the line had no end.",
    }
    for name in changes:
        (folder / name).write_text("ENCODING = 'utf-8-sig'\n", "utf-8")
    history = {f"GIT_{who}_{what}": "a@b.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    commits = [[["add", name], ["commit", "-q", "-m", message]] for name, message in changes.items()]
    for command in (["init", "-q"], *chain.from_iterable(commits)):
        subprocess.run(["git", *command], cwd=folder, env={**os.environ, **history}, check=True, capture_output=True)
    monkeypatch.chdir(folder)
    for user in (memgraph.embedding, sys.modules[AgentMemoryStore.__module__]):
        monkeypatch.setattr(user, "default_embedder", lambda _=None: embedder())
    return Terminal()


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with the output that it shows."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def is_as_shown(output: str, shown: str) -> bool:
    """Return whether output is as a page shows it, where […] stands for anything."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("[…]"))
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None


def run(block: Block, source: Path, terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    if block.language == "python":
        exec(compile(block.text, str(source), "exec"), {"__name__": source.stem})
        assert capsys.readouterr().out.strip(), "a block shows something"
    elif block.language == "console":
        for command, shown in commands(block.text):
            output = terminal.run(command)
            assert is_as_shown(output, shown), f"{command} prints\n{output}"
    else:
        for line in filter(str.strip, block.text.splitlines()):
            terminal.run(line)


@pytest.mark.parametrize(
    "source", [page for page in PAGES if any(not one.reason for one in blocks(page, *RUN))], ids=lambda page: page.stem
)
def test_the_blocks_of_a_page_run_in_order(
    source: Path, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks(source, *RUN):
        if block.reason is None:
            run(block, source, terminal, capsys)


@pytest.mark.parametrize("source", PAGES, ids=NAMES)
def test_a_block_that_is_not_run_has_a_reason_that_is_true(source: Path) -> None:
    marked = [block for block in blocks(source) if block.reason is not None]
    assert [block for block in marked if not is_true(block.reason or "", block.text)] == []
    assert source.read_text("utf-8").count("<!-- not run:") == len(marked), "a mark stands directly above its block"


@pytest.mark.parametrize("source", PAGES, ids=NAMES)
def test_other_blocks_can_be_read(source: Path) -> None:
    known = {*RUN, "text", "json", "toml", "mermaid"}
    assert {block.language for block in blocks(source)} <= known
    assert source.read_text("utf-8").count("```") == 2 * len(blocks(source))
    for block in blocks(source, "json"):
        json.loads(block.text)
    for block in blocks(source, "toml"):
        load_config(tomllib.loads(block.text), environment={})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("memgraph list", "needs an Ollama server"),
        ("memgraph list", "the gate runs it"),
        ("memgraph list", "installs packages"),
        ("memgraph list", "no time"),
        ("memgraph nonsense", "slow, and tested in tests/interfaces/test_viz_cli.py"),
        ("memgraph viz charts x", "slow, and tested in tests/interfaces/test_nothing.py"),
    ],
)
def test_a_wrong_reason_would_be_noticed(text: str, reason: str) -> None:
    assert not is_true(reason, text)


def test_other_output_than_shown_would_be_noticed() -> None:
    assert is_as_shown("a 1 b\nc\n", "a […] b\nc")
    assert is_as_shown("x\ny\nlast\n", "[…]\nlast")
    assert not is_as_shown("a 1 b\nc\nd\n", "a […] b\nc")


@pytest.mark.parametrize("source", [DOCS / "operations.md"], ids=["operations"])
def test_the_lines_of_the_crontab_run(source: Path, terminal: Terminal, tmp_path: Path) -> None:
    """In the order of a Sunday and the day after, with a day for each date and a folder for each place."""
    (crontab,) = [block.text for block in blocks(source, "text") if "MAILTO" in block.text]
    lines = [line.split(None, 5) for line in crontab.splitlines() if line[:1] in "*0123456789"]
    assert len(lines) == 8
    assert all(" > $METRICS" in line or line.endswith(" >> $LOG") for *_, line in lines), "results would be mailed"
    assert re.search(r"^PATH=/\S*/\.venv/bin:", crontab, re.MULTILINE), "cron would not find memgraph"
    terminal.run('memgraph remember "Deploy on Tuesdays only"')
    (purged,) = terminal.asked("remember", "Margaret deploys on Mondays")["data"]["ids"]
    for *_, weekday, line in lines:
        assert "%" not in line.replace("\\%", ""), "a crontab ends a command at a bare %"
        command = "memgraph" + line.partition("memgraph")[2]
        command = re.sub(r" >>? \$\S+", "", command).partition(" && ")[0]
        command = command.replace(r"$(date +\%F)", "monday" if weekday == "1-6" else "sunday")
        command, _, otherwise = (
            command.replace("/backups", str(tmp_path)).replace("/var/tmp", str(tmp_path)).partition(" || ")
        )
        if otherwise:  # what a purge has changed refuses it
            terminal.run(f"memgraph purge {purged} --yes")
            with pytest.raises(AssertionError, match="make a full backup"):
                terminal.run(command)
            command = otherwise
        terminal.run(command)
    assert {path.name for path in tmp_path.glob("*.tar.gz")} == {"sunday.tar.gz", "monday.tar.gz"}


def test_the_generated_tables_are_those_of_the_code() -> None:
    assert [page.name for page, _ in stale()] == [], "`python -m tests.documents` writes them"


def test_every_folder_and_top_level_module_is_described() -> None:
    package = ROOT / "memgraph"
    there = {*(path.parent for path in package.glob("*/**/__init__.py")), *package.glob("[!_]*.py")}
    described = set(
        re.findall(r"^\| `(memgraph/[\w/.]+)` \| \S", (DOCS / "architecture.md").read_text("utf-8"), re.MULTILINE)
    )
    assert {str(path.relative_to(ROOT)) for path in there} <= described


@pytest.mark.parametrize("source", PAGES, ids=NAMES)
def test_a_page_begins_with_its_title_and_what_it_covers(source: Path) -> None:
    title, empty, summary, after = source.read_text("utf-8").splitlines()[:4]
    assert title.startswith("# ")
    assert empty == ""
    assert summary
    if source != README:
        assert after == ""
        assert summary.endswith(".")
        assert len(summary) <= 120


def paths_named(text: str) -> set[str]:
    """Return what looks like a path of the project in backticks."""
    return set(re.findall(r"`((?:memgraph|tests|queries|schema|visualizations|\.ci)/[\w./-]*)`", text)) - {"memgraph/"}


def modules_named(text: str) -> set[str]:
    """Return what looks like a module of the package, or a name in one, in backticks."""
    return set(re.findall(r"`(memgraph(?:\.\w+)+)`", text))


def exists(dotted: str) -> bool:
    """Return whether a dotted name is a module, or a name that can be reached from one."""
    parts = dotted.split(".")
    if ".".join(parts[:-1]) == "memgraph.interfaces":
        return find_spec(dotted) is not None  # its import may need an extra
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


CURRENT = [page for page in (*PAGES, ROOT / "tests" / "benchmarks" / "README.md") if page.stem != "changelog"]
"""The changelog also names what was there once."""


@pytest.mark.parametrize("source", CURRENT, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_what_a_page_names_is_there(source: Path) -> None:
    text = source.read_text("utf-8")
    places = {name for name in paths_named(text) if "NAME" not in name}
    assert [name for name in sorted(places) if not (ROOT / name).exists()] == []
    assert [name for name in sorted(modules_named(text)) if not exists(name)] == []
    linked = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert [target for target in linked if not (source.parent / target).exists()] == []


def test_recipes_name_files_and_names_in_them_that_are_there() -> None:
    text = (DOCS / "contributing.md").read_text("utf-8")
    recipes = text.split("## Recipe: ")[1:]
    assert [recipe.split("\n")[0] for recipe in recipes] == [
        "a reader", "an event type", "a retrieval stage", "a named query", "a command",
    ]  # fmt: skip
    for recipe in recipes:
        files = {name for name in paths_named(recipe) if name.endswith((".py", ".cypher")) and "NAME" not in name}
        assert len(files) >= 3
        code = "\n".join((ROOT / name).read_text("utf-8") for name in files)
        constants = set(re.findall(r"`([A-Z_]{4,})`", recipe)) | set(re.findall(r"`(_[A-Z_]+)`", recipe))
        assert [name for name in sorted(constants) if name not in code] == []


def test_a_missing_name_would_be_noticed() -> None:
    assert paths_named("`memgraph/nowhere.py` and `tests/`, memgraph/free.py") == {"memgraph/nowhere.py", "tests/"}
    assert modules_named("`memgraph.config.load_config` memgraph.other") == {"memgraph.config.load_config"}
    assert exists("memgraph.config.load_config")
    assert not exists("memgraph.config.load_nothing")
    assert not exists("memgraph.nowhere")
