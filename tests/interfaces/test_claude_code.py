"""The real Claude Code, offline, against a stand-in for its model: what it is given, and what it survives.

Needs ``claude`` on PATH or as ``MEMGRAPH_TEST_CLAUDE`` (``npm install @anthropic-ai/claude-code@2.1.197``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph, assets
from memgraph.interfaces.agents.jobs import waiting_jobs
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.operations import offered
from tests.messages_server import MODEL, MessagesServer, text_of

CLAUDE = os.environ.get("MEMGRAPH_TEST_CLAUDE") or shutil.which("claude")
HOOK = Path(sys.executable).parent / "memgraph-hook"
RULE = "Never run make test before make fixtures, because the departures are generated."
STAND_IN = """#!{python}
import json, sys
from memgraph import MemGraph, assets
from memgraph.interfaces.agents.hooks import answer_hook

home = sys.argv[sys.argv.index("--home") + 1]
with MemGraph.open(home) as memory:
    print(answer_hook(memory, sys.argv[1], json.load(sys.stdin)))
"""
"""For an installation without the resident worker: opens the store for each event."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not CLAUDE, reason="Claude Code is not installed (see the module's docstring)"),
]


class Client:
    """Runs prompts in a project of one user."""

    def __init__(self, project: Path, environment: dict[str, str]) -> None:
        self.project = project
        self.environment = environment

    def prompt(self, server: MessagesServer, text: str, *options: str) -> str:
        """Run one prompt to its end and return what is printed."""
        assert CLAUDE
        command = [
            CLAUDE,
            "-p",
            text,
            "--model",
            MODEL,
            "--allowedTools",
            "Bash,mcp__plugin_memgraph_memgraph",
            *options,
        ]
        environment = self.environment | {"ANTHROPIC_BASE_URL": server.url}
        done = subprocess.run(
            command,
            cwd=self.project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the installed commands, or of stand-ins."""
    if HOOK.exists():
        return HOOK.parent
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "memgraph").symlink_to(HOOK.parent / "memgraph")
    (folder / "memgraph-hook").write_text(STAND_IN.format(python=sys.executable), "utf-8")
    (folder / "memgraph-hook").chmod(0o755)
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(folder))
    return folder


@pytest.fixture
def run(home: Path, scripts: Path) -> Callable[..., str]:
    def call(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["--home", str(home), *arguments], obj=Settings())
        assert result.exit_code == 0, result.output
        return result.stdout

    return call


@pytest.fixture
def client(tmp_path: Path, isolated_environment: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Client]:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("MEMGRAPH_WORKER_IDLE_S", "5")
    (tmp_path / "harbour").mkdir()
    (tmp_path / "harbour" / "Makefile").write_text(
        "test:\n\t@test -f fixtures.txt || (echo \"KeyError: 'departures'\" >&2; exit 2)\nfixtures:\n\t@touch fixtures.txt\n",
        "utf-8",
    )
    subprocess.run(["git", "init", "-q", str(tmp_path / "harbour")], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "ANTHROPIC"))}
    yield Client(
        tmp_path / "harbour",
        kept
        | {
            "ANTHROPIC_API_KEY": "sk-ant-none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )
    deadline = time.monotonic() + 60
    while waiting_jobs(home, "claude-code") and time.monotonic() < deadline:
        time.sleep(0.1)


def given_in(text: str) -> str:
    """Return what hooks added to a request, and the prompt at its end."""
    parts = [
        part
        for part in re.findall(r"<system-reminder>\n(.*?)</system-reminder>", text, re.DOTALL)
        if "hook" in part[:40]
    ]
    return "\n".join([*parts, text.rpartition("</system-reminder>")[2].strip()])


def save_success(home: Path) -> None:
    """Save what an overview does not hold, so that only a recall gives it."""
    why = "KeyError: 'departures' in make test means that make fixtures was not run."
    with MemGraph.open(home) as memory:
        memory.save_episode("Make the departures test pass", why, "Ran make fixtures", "success", project="harbour")


def learned(home: Path) -> None:
    """Wait until what the session left is read."""
    deadline = time.monotonic() + 150
    agents = home / "agents"
    while waiting_jobs(home, "claude-code") or any(agents.glob("**/*.taken")):
        log = agents / "learning.log"
        assert time.monotonic() < deadline, log.read_text("utf-8") if log.exists() else "no log"
        time.sleep(0.1)


def test_what_a_session_was_told_stands_in_the_first_request_of_the_next(
    client: Client, run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMGRAPH_EMBEDDING_MODEL")
    del client.environment["MEMGRAPH_EMBEDDING_MODEL"]
    run("connect", "claude-code")
    with MessagesServer([("Bash", {"command": "make test", "description": "Run the tests"}), "It failed."]) as server:
        client.prompt(server, "Make the departures test pass")
        assert RULE not in text_of(server.requests[0])
        first = text_of(server.requests[0])
    with MessagesServer([("Bash", {"command": "make fixtures", "description": "Generate"}), "Understood."]) as server:
        client.prompt(server, f"No. {RULE}", "--continue")
    learned(home)
    with MessagesServer(["Done."]) as server:
        client.prompt(server, "The departures test is red again, make test fails. What now?")
        second = text_of(server.requests[0])
    print(f"--- session 1, first request\n{given_in(first)}\n--- session 2, first request\n{given_in(second)}")
    assert "Never run make test before make fixtures" in second
    assert "query_id: " not in second, "the overview has it; it is not given twice"


def test_a_failure_is_answered_with_what_is_known_of_it(client: Client, run: Any, home: Path) -> None:
    run("connect", "claude-code")
    save_success(home)
    with MessagesServer([("Bash", {"command": "make test", "description": "Run the tests"}), "I see."]) as server:
        client.prompt(server, "Please check")
        assert "means that make fixtures was not run" not in text_of(server.requests[0])
        assert "means that make fixtures was not run" in text_of(server.requests[1])


def test_the_plugin_is_valid_and_loaded(client: Client, run: Any, isolated_environment: Path) -> None:
    run("connect", "claude-code")
    assert CLAUDE
    plugin = isolated_environment / ".claude" / "skills" / "memgraph"
    told = subprocess.run(
        [CLAUDE, "plugin", "validate", str(plugin)], env=client.environment, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    with MessagesServer(["Hello."]) as server:
        client.prompt(server, "hi")
        assert "memgraph:memgraph" in text_of(server.requests[0]), "the skill is offered"
        tools = {tool["name"] for tool in server.requests[0]["tools"]}
        assert {f"mcp__plugin_memgraph_memgraph__{one.name}" for one in offered("core")} <= tools


def test_the_plugin_of_the_package_works_without_being_connected(client: Client, run: Any, home: Path) -> None:
    """As it is in the wheel, with the commands that are on PATH: for those who install plugins in a way of their own."""
    fact = "KeyError: 'departures' in make test means that make fixtures was not run."
    run("observe", fact, "--project", "harbour")
    plugin = str(assets.folder("agents") / "claude-code")
    client.environment |= {"PATH": f"{HOOK.parent}:{os.environ['PATH']}", "MEMGRAPH_HOME": str(home)}
    with MessagesServer(["Hello."]) as server:
        client.prompt(server, "What does KeyError: 'departures' in make test mean?", "--plugin-dir", plugin)
        assert "means that make fixtures was not run" in text_of(server.requests[0])
        tools = {tool["name"] for tool in server.requests[0]["tools"]}
        assert {f"mcp__plugin_memgraph_memgraph__{one.name}" for one in offered("core")} <= tools
    assert CLAUDE
    validation = [CLAUDE, "plugin", "validate", plugin]
    told = subprocess.run(validation, env=client.environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize(
    "hook",
    ["#!/bin/sh\nexit 2\n", "#!/bin/sh\necho no JSON; exit 1\n", "#!/bin/sh\nexec sleep 100\n", None],
    ids=["exit 2", "garbage", "hangs", "missing"],
)
def test_a_broken_hook_lets_the_prompt_through(
    client: Client, run: Any, isolated_environment: Path, tmp_path: Path, hook: str | None
) -> None:
    """Exit code 2 is the client's own word for blocking: our hook never uses it, and a test of the worker says so."""
    run("connect", "claude-code")
    plugin = isolated_environment / ".claude" / "skills" / "memgraph"
    place = plugin / "hooks" / "hooks.json"
    document = json.loads(place.read_bytes())
    script = tmp_path / "broken"
    if hook:
        script.write_text(hook, "utf-8")
        script.chmod(0o755)
    for entries in document["hooks"].values():
        entries[0]["hooks"][0] |= {"command": str(script), "timeout": 1}
    place.write_text(json.dumps(document), "utf-8")
    with MessagesServer(["Hello."]) as server:
        blocked = hook is not None and "exit 2" in hook
        client.prompt(server, "hi")
        assert len(server.requests) == (0 if blocked else 1)


def test_a_broken_store_lets_the_prompt_through(client: Client, run: Any, home: Path) -> None:
    run("connect", "claude-code")
    for path in (home / "journal").iterdir():
        path.write_bytes(b"broken")
    with MessagesServer(["Hello."]) as server:
        assert "Hello." in client.prompt(server, "hi")


def test_a_worker_that_hangs_lets_the_prompt_through(client: Client, run: Any, home: Path) -> None:
    """A stopped process accepts connections and says nothing: what a worker looks like that waits for a lock or a disk."""
    run("connect", "claude-code")
    save_success(home)
    asked = "What does KeyError: 'departures' in make test mean?"
    with MessagesServer(["Hello."]) as server:
        client.prompt(server, "hi")
        began = time.monotonic()
        client.prompt(server, asked)
        usual_s = time.monotonic() - began
        assert "means that make fixtures was not run" in text_of(server.requests[1]), "the worker runs and answers"
    learned(home)
    pid = json.loads(run("worker", "status", "--json"))["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with MessagesServer(["Hello."]) as server:
            began = time.monotonic()
            assert "Hello." in client.prompt(server, asked)
            print(
                f"a session of one prompt took {time.monotonic() - began:.1f} s with a stopped worker, else {usual_s:.1f} s"
            )
            assert "means that make fixtures was not run" not in text_of(server.requests[0])
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_agent_is_asked_for_answers_and_gives_them(client: Client, run: Any, home: Path) -> None:
    def answered(told: str) -> Any:
        """Answer the order that the hook names; otherwise talk."""
        asked = re.search(r"Orders: ([0-9a-f-]{36})", told)
        if not asked or "Skipped: " in told:
            return "This case is like the others."
        tool = "answer_work_order" if "Schema of the answer" in told else "next_work_order"
        given = {"order_id": asked[1]} | ({"reason": "nothing to say"} if tool == "answer_work_order" else {})
        return f"mcp__plugin_memgraph_memgraph__{tool}", given

    run("connect", "claude-code", "--answer-orders")
    with MessagesServer([answered]) as server:
        client.prompt(server, "And what about case 0 of the timetable?")
        for number in range(1, 9):
            client.prompt(server, f"And what about case {number} of the timetable?", "--continue")
        learned(home)
        client.prompt(server, "And the last one?", "--continue")
        told = text_of(server.requests[-1])
    assert told.count("call next_work_order with its order_id") == 1
    with MemGraph.open(home) as memory:
        assert [order.skip_reason for order in memory.distillation.list(state="skipped")] == ["nothing to say"]


def test_disconnecting_leaves_the_clients_directory_as_it_would_be(
    client: Client, run: Any, isolated_environment: Path
) -> None:
    folder = isolated_environment / ".claude"
    with MessagesServer(["Hello."]) as server:
        client.prompt(server, "hi")
    before = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    run("connect", "claude-code")
    run("disconnect", "claude-code")
    assert {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_disconnecting_after_use_leaves_what_the_user_has_and_has_changed(
    client: Client, run: Any, isolated_environment: Path
) -> None:
    folder = isolated_environment / ".claude"
    own = folder / "skills" / "tides" / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\nname: tides\ndescription: Reads the tide table.\n---\nLook at tides.csv.\n", "utf-8")
    (folder / "settings.json").write_text('{"model":"sonnet" }\n', "utf-8")
    run("connect", "claude-code")
    with MessagesServer(["Hello."]) as server:
        client.prompt(server, "hi")
    own.write_text(own.read_text("utf-8") + "The harbour is closed at ebb.\n", "utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "memgraph" not in path.parts}
    run("disconnect", "claude-code")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    left = [path for path in folder.rglob("*memgraph*") if "projects" not in path.parts]
    assert left == []
    with MessagesServer(["Hello."]) as server:
        client.prompt(server, "hi")
        assert "memgraph:memgraph" not in text_of(server.requests[0])
        assert not [tool for tool in server.requests[0]["tools"] if "memgraph" in tool["name"]]
