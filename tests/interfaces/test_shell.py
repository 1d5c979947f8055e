"""Shell manners: help in groups, the overview, completion, suggestions, and what a terminal gets that a pipe does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner, Result

from memgraph import MemGraph
from memgraph.assets import texts
from memgraph.interfaces.cli.base.commands import GROUPS, OTHER_WORDS, Group
from memgraph.interfaces.cli.base.completing import RELATIONS
from memgraph.interfaces.cli.group import COMMANDS, cli
from memgraph.interfaces.cli.learning.ingest import KINDS
from memgraph.lifecycle import sleep
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.testing import FakeEmbedder
from tests.unit.lifecycle.distillation.stories import failure, fix

Run = Callable[..., Result]
INPUTS = Path(__file__).parents[1] / "fixtures" / "inputs"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run one command in this process against one store; it must end with `code`."""

    def call(*args: object, code: int = 0, home: str = "store") -> Result:
        given = ["--home", str(tmp_path / home), *map(str, args)]
        result = CliRunner().invoke(cli, given, prog_name="memgraph", obj=settings(), color=True)
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


# One JSON document from every command


class _Filled:
    """A store in which every command has something to do, and what the commands are given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with MemGraph.open(folder / "store", embedder=FakeEmbedder(dimension=64)) as memory:
            steps = "1. Run the checks. 2. Write the changelog. 3. Tag the release."
            episodes = [
                memory.save_episode(f"Release version 1.{n}", "All was green.", steps, "success", build_id=f"b{n}")
                for n in range(3)
            ]
            memory.procedures.learn()
            memory.store.insert_memories([failure(1), fix(2), failure(3)])
            self.ports = [
                memory.store.insert_memory(
                    {"type": "semantic", "content": f"The port of the billing service is {port}", "is_pinned": True}
                ).id
                for port in (8080, 9090)
            ]
            memory.store.link(self.ports[1], "CONTRADICTS", self.ports[0])
            sleep(memory.store, phases=["work-orders"])
            self.episode = episodes[0].episode_id
            self.one, self.other = (
                memory.commands.remember(text).data["ids"][0]
                for text in ("Deploy on Tuesdays", "Ask before the ledger")
            )
            memory.store.link(self.one, "CONTRADICTS", self.other)
            self.proposal = memory.procedures.proposals()[0].id
            self.orders = [one.id for one in memory.distillation.list()]
            self.query = memory.recall("deploy").query_id
            self.merged = [
                memory.commands.remember(text).data["ids"][0] for text in ("Lamps are green", "Ropes are coiled")
            ]
            for name in ("quay", "mole"):
                memory.tasks.upsert(f"Repair the {name}", task_id=name)
            memory.tasks.sessions.switch("shell", "mole")
            self.item = memory.tasks.ask("mole", "Which stones?").id
            pins = memory.tasks.pins
            self.pin, gone = (pins.upsert(text).pin for text in ("No work at night", "Wear boots"))
            self.confirm, self.cancel = ([one.id, pins.request_removal(one.id).token] for one in (gone, self.pin))
            work = memory.tasks.handoffs
            self.handoffs = [work.create("mole", done, from_agent="mason").id for done in ("Counted", "Measured")]
        (folder / "answer.txt").write_text("Counted. <chat-memory>Be brief</chat-memory>")
        (folder / "answer.json").write_text(json.dumps({"statements": []}))

    def calls(self) -> dict[str, list[str]]:
        """Return the arguments of every command, in an order in which each succeeds."""
        one, other = self.one, self.other
        older, newer = self.ports
        out = {name: str(self.folder / name) for name in ("page.html", "graph.json", "export.json")}
        return {
            **{words: [] for words in "stats|list|queries|proposals|contradictions|distil".split("|")},
            **{f"{group} list": [] for group in ("queries", "proposals", "contradictions", "distil")},
            "": [],
            "recall": ["deploy"],
            "search": ["deploy"],
            "ask": ["release"],
            "show": [one],
            "queries show": ["memories_by_use"],
            "queries schema": [],
            "docs": ["settings"],
            "backup": [str(self.folder / "backup.tar.gz")],
            "migrate": ["--dry-run"],
            "compact": [],
            "format-age": ["2026-01-05"],
            "remember": ["The harbour opens at six"],
            "observe": ["The user prefers window seats"],
            "episode": ["Book a table", "--reasoning", "a", "--action", "b", "--outcome", "success"],
            "feedback": [self.episode, "like"],
            "outcome": [self.query, "success", "--used", one],
            "edit": [one, "--content", "Deploy on Wednesdays", "--tag", "+ops"],
            "pin": [one],
            "unpin": [one],
            "tag": [one, "night"],
            "untag": [one, "night"],
            "split": [one, "--part", "Deploy on Wednesdays", "--part", "Never on Fridays"],
            "undo": [],
            "history": [one],
            "why": [one],
            "merge": self.merged,
            "forget": [one],
            "unforget": [one],
            "archive": [one],
            "unarchive": [one],
            "invalidate": [one],
            "revalidate": [one],
            "supersede": [one, "--by", other],
            "unsupersede": [one],
            "delete": [one],
            "undelete": [one],
            "link": [one, "SUPPORTS", other],
            "unlink": [one, "SUPPORTS", other],
            **self._task_calls(),
            "proposals approve": [self.proposal],
            "proposals reopen": [self.proposal],
            "proposals reject": [self.proposal],
            "distil show": [self.orders[0]],
            "distil answer": [self.orders[0], str(self.folder / "answer.json")],
            "distil skip": [self.orders[1]],
            "contradictions find": [],
            "contradictions resolve": [older, newer, "--keep", newer],
            "contradictions dismiss": [one, other],
            "sleep": ["--phase", "temporal"],
            "compress": [],
            "collect": [],
            "viz page": [out["page.html"]],
            "viz series": [],
            "viz export": [out["graph.json"]],
            "export": [out["export.json"]],
            "import": [out["export.json"]],
            "ingest builds": [str(INPUTS / "builds.jsonl")],
            "embed": [],
            "reembed": ["minilm"],
            "rebuild": [],
            "verify": [],
            "audit": [],
            "repair": [],
            "worker status": [],
            "worker stop": [],
            "token create": [],
            "token list": [],
            "config init": [],
            "config show": [],
            "completion": ["bash"],
            "keys list": [],
            "keys check": [],
            "keys rotate": [],
            "keys export": [str(self.folder / "keys.json")],
            "keys import": [str(self.folder / "keys.json")],
            "purge": [self.other, "--yes"],
            "reset": ["--memory", "--yes"],
        }

    def _task_calls(self) -> dict[str, list[str]]:
        view = str(self.folder / "pins.md")
        return {
            **{
                words: []
                for words in ("task", "task list", "pins", "pins list", "session", "session show", "session kept")
            },
            "task new": ["Paint the boat"],
            "task add": ["decision", "Use granite"],
            "task done": [self.item],
            "task set": ["phase=design"],
            "task show": ["mole", "--related"],
            "task link": ["mole", "quay"],
            "task unlink": ["mole", "quay"],
            "task switch": ["quay", "--push"],
            "task resume": [],
            "task status": ["quay", "suspended"],
            "task archive": ["quay"],
            "task close": ["quay"],
            "pins add": ["Helmets on"],
            "pins edit": [self.pin.id, "--text", "No work after dark"],
            "pins remove": [self.pin.id],
            "pins cancel": self.cancel,
            "pins confirm": self.confirm,
            "pins write": [view],
            "pins read": [view],
            "session set": ["--doing", "Count the stones"],
            "session about": ["Stones"],
            "session keep": ["tide", "High at noon"],
            "session promote": ["tide"],
            "session prune": [],
            "session absorb": [str(self.folder / "answer.txt")],
            "session autoswitch": ["on"],
            "session mode": ["supportive"],
            "session clear": [],
            "turn": ["Which stones for the mole?"],
            "prompt": ["Build the mole"],
            **self._handoff_calls(),
        }

    def _handoff_calls(self) -> dict[str, list[str]]:
        return {
            "handoff create": ["The stones are counted", "--task", "mole", "--from", "mason"],
            "handoff list": [],
            "handoff show": [self.handoffs[0]],
            "handoff accept": [self.handoffs[0], "--agent", "diver"],
            "handoff withdraw": [self.handoffs[1]],
            "ledger checkpoint": ["mason", "--goal", "A mole that stands"],
            "ledger list": [],
            "ledger show": ["mason"],
            "continuity": ["--task", "mole"],
        }


ELSEWHERE = {
    "demo": "test_cli.py",
    "restore": "test_upkeep.py",
    "doctor": "test_cli.py",
    "query": "test_query_cli.py",
    "secrets scan": "test_secrets_cli.py",
    "viz charts": "test_viz_cli.py",
    **{f"ingest {kind}": "test_ingest_cli.py" for kind in KINDS if kind not in {"builds", "git"}},
    "ingest git": "test_cli.py",
    "about": "test_about_cli.py",
    "learning": "test_about_cli.py",
    "worker run": "test_worker_cli.py",
    "distil run": "test_distil_cli.py",
    "connect": "test_connect_cli.py",
    "disconnect": "test_connect_cli.py",
    "serve": "test_http_server.py",
    "token revoke": "test_http_server.py",
    "move": "test_postgres.py",
}
"""Commands that take long, and the tests that read their document."""
SERVERS = {"mcp"}
"""Commands that speak a protocol on standard output."""


def test_every_command_prints_one_json_document(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgraph.embedding.default_embedder", lambda _: FakeEmbedder(dimension=64))
    calls = _Filled(tmp_path).calls()
    missing = {" ".join(path) for path in leaves(cli)} - calls.keys() - ELSEWHERE.keys() - SERVERS
    assert not missing, "a new command needs its arguments here"
    for words, arguments in calls.items():
        printed = run(*words.split(), *arguments, "--json").stdout
        assert isinstance(json.loads(printed), dict | list), words
        assert printed.count("\n") == 1, words
    for words, file in ELSEWHERE.items():
        text = Path(__file__).with_name(file).read_text("utf-8")
        assert re.search(rf'"{words.split()[-1]}"', text), words
        assert "--json" in text


@pytest.mark.parametrize(
    ("args", "code", "kind", "says"),
    [
        (["show", "a-memory-that-is-not-there"], 1, "NotFoundError", "a-memory-that-is-not-there"),
        (["show", "x"], 1, "InvalidInputError", "must be an id"),
        (["show"], 2, "MissingParameter", "Missing argument"),
        (["ingest", "git", "nowhere"], 1, "SourceError", "nowhere"),
    ],
)
def test_with_json_a_refusal_is_one_document_too(run: Run, args: list[str], code: int, kind: str, says: str) -> None:
    run("remember", "The vault holds the deploy key")
    refused = run(*args, "--json", code=code)
    told = json.loads(refused.stdout)["error"]
    assert (told["type"], told["exit_code"]) == (kind, code)
    assert says in told["message"]
    assert says in refused.stderr


def test_a_document_is_not_followed_by_that_of_a_refusal(run: Run) -> None:
    run("remember", "The vault holds the deploy key")
    assert json.loads(run("reset", "--all", "--json", code=1).stdout)["done"] is False


def test_the_help_says_what_each_exit_code_means(run: Run) -> None:
    told = " ".join(run("--help").stdout.split())
    assert "130 interrupted" in told
    assert "143 terminated" in told


@pytest.mark.parametrize("home", [None, "", "~nobody-of-this-name"])
def test_a_home_directory_that_nobody_knows_is_named_and_makes_no_folder(tmp_path: Path, home: str | None) -> None:
    script = "import os, pwd, sys\npwd.getpwuid = lambda uid: (_ for _ in ()).throw(KeyError(uid))\nfrom memgraph.interfaces.cli.group import main\nmain()"
    environment = {"PATH": os.environ["PATH"], "MEMGRAPH_WORKER": "off"}
    if home is not None:
        environment["MEMGRAPH_HOME"] = home

    here = tmp_path / "here"
    here.mkdir()

    def call(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script, *args],
            env=environment | more,
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )

    refused = call("remember", "one")
    assert refused.returncode == 1
    assert "set HOME, or MEMGRAPH_HOME and MEMGRAPH_KEYS_HOME" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert list(here.iterdir()) == []
    named = {"MEMGRAPH_HOME": str(here / "store"), "MEMGRAPH_KEYS_HOME": str(here / "keys")}
    for words in (["remember", "one"], ["doctor"], ["config", "show"], ["connect"], ["recall", "one"]):
        done = call(*words, **named)
        assert done.returncode == 0, (words, done.stderr)
    assert sorted(one.name for one in here.iterdir()) == ["keys", "store"]


@pytest.mark.parametrize(("limit", "code"), [(1 << 29, 0), (4 << 30, 0)])
def test_a_limit_of_address_space_is_no_damage_of_the_graph(tmp_path: Path, limit: int, code: int) -> None:
    environment = os.environ | {"MEMGRAPH_WORKER": "off", "OPENBLAS_NUM_THREADS": "1"}
    command = ["memgraph", "--home", str(tmp_path / "store")]
    where = Path(sys.executable).with_name("memgraph")
    subprocess.run([where, *command[1:], "observe", "The vault holds the deploy key"], env=environment, check=True)
    limited = subprocess.run(
        ["sh", "-c", f'ulimit -v {limit >> 10}; exec "$@"', "sh", str(where), *command[1:], "list"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert limited.returncode == code, limited.stderr
    assert "rebuilding" not in limited.stderr
    assert "Traceback" not in limited.stderr
    assert (
        "deploy key"
        in subprocess.run(
            [where, *command[1:], "list"], env=environment, capture_output=True, text=True, check=True
        ).stdout
    )


def test_nothing_found_is_no_failure(run: Run) -> None:
    for command in ("list", "search x", "recall x", "ask x", "proposals", "contradictions", "distil"):
        run(*command.split())
        assert not json.loads(run(*command.split(), "--json").stdout) or command in {"recall x", "ask x"}


# What a terminal gets


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let a command's streams be a terminal of 60 columns and 10 lines."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    for name, value in {"COLUMNS": "60", "LINES": "10", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


@pytest.fixture
def paged(terminal: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that are given to the pager."""
    texts: list[str] = []
    terminal.setattr(click, "echo_via_pager", lambda text, color=None: texts.append(text))
    return texts


@pytest.fixture
def long_list(run: Run) -> Run:
    for number in range(8):
        run("remember", f"Harbour number {number} opens at six, and its gate {number * 7} closes when the tide is out")
    return run


def test_a_list_longer_than_the_screen_is_paged_and_fits_its_width(long_list: Run, paged: list[str]) -> None:
    assert long_list("list").stdout == ""
    (text,) = paged
    lines = [click.unstyle(line) for line in text.split("\n")]
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()).count("Harbour number") == 8


@pytest.mark.parametrize("command", [["docs"], ["config", "show"], ["queries"], ["proposals"], []])
def test_tables_of_names_fit_the_terminal(long_list: Run, terminal: pytest.MonkeyPatch, command: list[str]) -> None:
    lines = click.unstyle(long_list(*command, "--no-pager").stdout).splitlines()
    words = [line for line in lines if len(line) > 60 and "  " in line.strip()]
    assert [line for line in words if max(map(len, line.split())) < 30] == []


@pytest.mark.parametrize("how", ["short", "option", "empty", "json", "piped"])
def test_a_pager_is_left_out(long_list: Run, paged: list[str], terminal: pytest.MonkeyPatch, how: str) -> None:
    options = {"short": ["--limit", "1"], "option": ["--no-pager"], "json": ["--json"]}.get(how, [])
    if how == "empty":
        terminal.setenv("PAGER", "")
    if how == "piped":
        terminal.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: False)
    assert "Harbour number" in long_list("list", *options).stdout
    assert paged == []


def test_colour_is_for_terminals_and_not_with_no_color(long_list: Run, terminal: pytest.MonkeyPatch) -> None:
    colour = re.compile(r"\x1b\[[0-9;]*3[0-7]")
    assert "\x1b[" in long_list("list", "--limit", "1").stdout
    assert colour.search(long_list("rebuild").output)
    terminal.setenv("NO_COLOR", "1")
    assert not colour.search(long_list("rebuild").output + long_list("list", "--limit", "1").output)
    terminal.delenv("NO_COLOR")
    terminal.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: False)
    assert "\x1b" not in long_list("list").output + long_list("rebuild").output


@pytest.mark.parametrize(
    "command", ["rebuild", "verify --deep", "export FILE", "import FILE", "viz page FILE", "sleep"]
)
def test_long_commands_show_the_remaining_time_on_a_terminal(
    run: Run, terminal: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    run("remember", "The harbour opens at six")
    if command.startswith("import"):
        run("export", tmp_path / "FILE", "--json")
        exported = json.loads((tmp_path / "FILE").read_text())
        (tmp_path / "FILE").write_text(json.dumps({**exported, "embedding_model": "another"}))
    arguments = [str(tmp_path / one) if one == "FILE" else one for one in command.split()]
    home = "other" if command.startswith("import") else "store"
    assert re.search(r"(?:\d+:\d\d|-:--:--) left", click.unstyle(run(*arguments, home=home).stderr))
    terminal.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: False)
    assert "left" not in run(*arguments, home=home).stderr
