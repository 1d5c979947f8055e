"""The real Codex, offline, against a stand-in for its model: what it is given, and what it survives.

Needs ``codex`` on PATH or as ``MEMGRAPH_TEST_CODEX`` (``npm install @openai/codex@0.169.0``). Its hooks run without the user's approval by
the option that Codex has for that, in a home that is the test's; one test leaves it out.
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

from memgraph import MemGraph
from memgraph.interfaces.agents.jobs import waiting_jobs
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.operations import offered
from tests.responses_server import MODEL, ResponsesServer, text_of
from tests.tables import break_database

CODEX = os.environ.get("MEMGRAPH_TEST_CODEX") or shutil.which("codex")
HOOK = Path(sys.executable).parent / "memgraph-hook"
RULE = "Never run make test before make fixtures, because the departures are generated."
COMMAND = "exec_command"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not CODEX or not HOOK.exists(),
        reason="Codex is not installed (see the module's docstring), or memgraph's commands are not",
    ),
]


class Client:
    """Runs prompts in a project of one user."""

    def __init__(self, project: Path, folder: Path, environment: dict[str, str]) -> None:
        self.project = project
        self.folder = folder
        self.environment = environment
        self.printed = ""

    def prompt(self, server: ResponsesServer, text: str, *, resumes: bool = False, is_trusted: bool = True) -> str:
        """Run one prompt to its end and return the agent's last words."""
        assert CODEX
        given = {
            "model": MODEL,
            "model_provider": "stand_in",
            "model_providers.stand_in.name": "stand-in",
            "model_providers.stand_in.base_url": server.url,
            "model_providers.stand_in.wire_api": "responses",
        }
        settings = [word for name, value in given.items() for word in ("-c", f'{name}="{value}"')]
        trust = ["--dangerously-bypass-hook-trust"] if is_trusted else []
        command = [
            CODEX,
            "exec",
            "--disable",
            "plugins",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            *trust,
            *settings,
            *(["resume", "--last", text] if resumes else [text]),
        ]
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        self.printed = done.stderr
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def run(home: Path) -> Callable[..., str]:
    def call(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["--home", str(home), *arguments], obj=Settings())
        assert result.exit_code == 0, result.output
        return result.stdout

    return call


@pytest.fixture
def client(tmp_path: Path, isolated_environment: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Client]:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("MEMGRAPH_WORKER_IDLE_S", "5")
    project = tmp_path / "harbour"
    project.mkdir()
    (project / "Makefile").write_text(
        "test:\n\t@test -f fixtures.txt || (echo \"KeyError: 'departures'\" >&2; exit 2)\nfixtures:\n\t@touch fixtures.txt\n",
        "utf-8",
    )
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    folder = isolated_environment / ".codex"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CODEX", "OPENAI"))}
    yield Client(project, folder, kept)
    deadline = time.monotonic() + 60
    while waiting_jobs(home, "codex") and time.monotonic() < deadline:
        time.sleep(0.1)


def files_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in ("config.toml", "hooks.json") if (folder / name).exists()}


def given_in(request: dict[str, Any]) -> str:
    """Return what hooks added to a request, and the prompts."""
    texts = [
        (item["role"], part.get("text", ""))
        for item in request["input"]
        if item.get("type") == "message"
        for part in item["content"]
    ]
    return "\n".join(f"[{role}] {text}" for role, text in texts if not text.startswith(("<", "You are ")))


def learned(home: Path) -> None:
    """Wait until what the session left is read."""
    deadline = time.monotonic() + 150
    agents = home / "agents"
    while waiting_jobs(home, "codex") or any(agents.glob("**/*.taken")):
        log = agents / "learning.log"
        assert time.monotonic() < deadline, log.read_text("utf-8") if log.exists() else "no log"
        time.sleep(0.1)


def test_what_a_session_was_told_stands_in_the_first_request_of_the_next(
    client: Client, run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMGRAPH_EMBEDDING_MODEL")
    del client.environment["MEMGRAPH_EMBEDDING_MODEL"]
    run("connect", "codex")
    with ResponsesServer([(COMMAND, {"cmd": "make test"}), "It failed."]) as server:
        client.prompt(server, "Make the departures test pass")
        first = server.requests[0]
        assert RULE not in text_of(first)
    with ResponsesServer([(COMMAND, {"cmd": "make fixtures"}), "Understood."]) as server:
        client.prompt(server, f"No. {RULE}", resumes=True)
    learned(home)
    with ResponsesServer(["Done."]) as server:
        client.prompt(server, "The departures test is red again, make test fails. What now?")
        second = server.requests[0]
    print(f"--- session 1, first request\n{given_in(first)}\n--- session 2, first request\n{given_in(second)}")
    assert "Never run make test before make fixtures" in text_of(second)
    assert "query_id: " not in text_of(second), "the overview has it; it is not given twice"


def test_a_failed_command_is_answered_with_what_is_known_of_it(client: Client, run: Any, home: Path) -> None:
    run("connect", "codex")
    why = "KeyError: 'departures' in make test means that make fixtures was not run."
    with MemGraph.open(home) as memory:  # an overview holds no successes: only the hook of the failure gives this
        memory.save_episode("Make the departures test pass", why, "Ran make fixtures", "success", project="harbour")
    replies = [(COMMAND, {"cmd": "make fixtures"}), (COMMAND, {"cmd": "rm fixtures.txt; make test"}), "I see."]
    with ResponsesServer(replies) as server:
        client.prompt(server, "Please check")
        assert "query_id: " not in text_of(server.requests[1]), "that command succeeded"
        _, _, told = text_of(server.requests[2]).partition("Please check")
        assert "means that make fixtures was not run" in told
        assert "query_id: " in told


def test_the_tools_are_offered_in_the_first_request_and_work(client: Client, run: Any, home: Path) -> None:
    run("connect", "codex")
    run("observe", "The ferry timetable is generated by make fixtures.", "--project", "harbour")
    calls = [
        ("mcp__memgraph:recall", {"task": "generate the ferry timetable"}),
        ("mcp__memgraph:save_observation", {"text": "The quay is closed in November."}),
    ]
    with ResponsesServer([*calls, "Hello."]) as server:
        client.prompt(server, "hi")
        (tools,) = [one["tools"] for one in server.requests[0]["tools"] if one.get("name") == "mcp__memgraph"]
        assert {one.name for one in offered("core")} == {one["name"] for one in tools}
        output = next(one for one in server.requests[1]["input"] if one["type"] == "function_call_output")
        assert "is generated by make fixtures" in json.dumps(output)
    learned(home)
    with MemGraph.open(home) as memory:
        found = {one.content: one.project_id for one in memory.store.get_all_memories()}
    assert found == {
        "The ferry timetable is generated by make fixtures.": "harbour",
        "The quay is closed in November.": "harbour",
    }, "what the tool returned is not learned"


def test_hooks_that_nobody_has_approved_are_reported_and_skipped(client: Client, run: Any) -> None:
    run("observe", "The departures test needs make fixtures.", "--project", "harbour")
    with ResponsesServer(["Hello."]) as server:
        client.prompt(server, "hi")
    shown = run("connect", "codex")
    path = os.environ["PATH"]
    assert CODEX
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", f"{Path(CODEX).parent}:{path}")
        listed = {one["name"]: one for one in json.loads(run("connect", "--json"))}["codex"]
    assert listed["state"] == "needs approval"
    assert sorted(listed["unapproved"]) == ["PostToolUse", "SessionEnd", "SessionStart", "Stop", "UserPromptSubmit"]
    assert "approve the hooks in /hooks" in shown
    with ResponsesServer(["Hello."]) as server:
        client.prompt(server, "Make the departures test pass", is_trusted=False)
        assert "needs make fixtures" not in text_of(server.requests[0])


@pytest.mark.parametrize(
    "hook",
    [
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\necho no JSON; exit 1\n",
        "#!/bin/sh\necho '{\"a\": 1}'\n",
        "#!/bin/sh\nexec sleep 100\n",
        None,
    ],
    ids=["exit 1", "garbage", "unknown fields", "hangs", "missing"],
)
def test_a_broken_hook_lets_the_prompt_through(client: Client, run: Any, tmp_path: Path, hook: str | None) -> None:
    run("connect", "codex")
    place = client.folder / "hooks.json"
    document = json.loads(place.read_bytes())
    script = tmp_path / "broken"
    if hook:
        script.write_text(hook, "utf-8")
        script.chmod(0o755)
    for entries in document["hooks"].values():
        entries[0]["hooks"][0] |= {"command": str(script), "timeout": 1}
    place.write_text(json.dumps(document), "utf-8")
    with ResponsesServer(["Hello."]) as server:
        assert "Hello." in client.prompt(server, "hi")
        assert len(server.requests) == 1


def test_a_broken_store_lets_the_prompt_through(client: Client, run: Any, home: Path) -> None:
    run("connect", "codex")
    break_database(home)
    with ResponsesServer(["Hello."]) as server:
        assert "Hello." in client.prompt(server, "hi")


def test_a_hanging_worker_lets_the_prompt_through(client: Client, run: Any, home: Path) -> None:
    client.environment["MEMGRAPH_WORKER_IDLE_S"] = "60"
    run("connect", "codex")
    with ResponsesServer(["Hello."]) as server:
        client.prompt(server, "hi")
        learned(home)
        pid = json.loads(run("worker", "status", "--json"))["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            assert "Hello." in client.prompt(server, "hi again")
        finally:
            os.kill(pid, signal.SIGKILL)
        assert len(server.requests) == 2


def test_the_agent_is_asked_for_answers(client: Client, run: Any, home: Path) -> None:
    run("connect", "codex", "--answer-orders")
    with ResponsesServer(["This case is like the others."]) as server:
        client.prompt(server, "And what about case 0 of the timetable?")
        for number in range(1, 9):
            client.prompt(server, f"And what about case {number} of the timetable?", resumes=True)
        learned(home)
        with MemGraph.open(home) as memory:
            assert memory.distillation.list()
        client.prompt(server, "And the last one?", resumes=True)
        told = text_of(server.requests[-1])
    assert re.search(r"call next_work_order with its order_id", told)


def test_disconnecting_leaves_the_clients_files_as_they_would_be(client: Client, run: Any) -> None:
    (client.folder / "config.toml").write_text('# mine\nmodel_verbosity = "low"  # quiet\n', "utf-8")
    with ResponsesServer(["Hello."]) as server:
        client.prompt(server, "hi")
        before = files_of(client.folder)
        run("connect", "codex")
        assert files_of(client.folder) != before
        client.prompt(server, "hi")
    run("disconnect", "codex")
    assert files_of(client.folder) == before
