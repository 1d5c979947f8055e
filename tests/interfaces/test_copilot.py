"""The real GitHub Copilot CLI, offline, against a stand-in for its model.

Needs ``copilot`` on PATH or as ``MEMGRAPH_TEST_COPILOT`` (``npm install @github/copilot@1.0.102``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.operations import offered
from tests.responses_server import ResponsesServer, text_of
from tests.tables import break_database

COPILOT = os.environ.get("MEMGRAPH_TEST_COPILOT") or shutil.which("copilot")
HOOK = Path(sys.executable).parent / "memgraph-hook"
CAUSE = "KeyError: 'delay' in make test means that the fixture is out of date."

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not COPILOT or not HOOK.exists(),
        reason="Copilot is not installed (see the module's docstring), or memgraph's commands are not",
    ),
]


@pytest.fixture
def run(tmp_path: Path, isolated_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("MEMGRAPH_WORKER_IDLE_S", "5")

    def call(*arguments: str) -> str:
        result = CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), *arguments], obj=Settings())
        assert result.exit_code == 0, result.output
        return result.stdout

    return call


@pytest.fixture
def prompt(tmp_path: Path, run: Any) -> Callable[..., str]:
    """Run one prompt to its end and return what is printed."""
    project = tmp_path / "harbour"
    project.mkdir()
    (project / "Makefile").write_text("test:\n\t@echo \"KeyError: 'delay'\" >&2; exit 2\n", "utf-8")
    subprocess.run(["git", "init", "-q", str(project)], check=True)

    def call(server: ResponsesServer, text: str) -> str:
        assert COPILOT
        given = {
            "COPILOT_PROVIDER_BASE_URL": server.url,
            "COPILOT_PROVIDER_WIRE_API": "responses",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "gpt-5",
            "COPILOT_OFFLINE": "true",
        }
        done = subprocess.run(
            [COPILOT, "-p", text, "--allow-all-tools", "--no-auto-update"],
            cwd=project,
            env=os.environ | given,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    return call


def test_copilot_gets_the_tools_and_what_is_known(run: Any, prompt: Any, tmp_path: Path) -> None:
    run("connect", "copilot")
    run("observe", CAUSE, "--project", "harbour")
    with MemGraph.open(tmp_path / "store") as memory:  # an overview holds no successes
        why = "KeyError: 'delay' in make test was due to the fixture."
        memory.save_episode("Make the delay test pass", why, "Ran make fixtures", "success", project="harbour")
    with ResponsesServer([("bash", {"command": "make test", "description": "Run the tests"}), "I see."]) as server:
        assert "I see." in prompt(server, "Please look")
        first, second = map(text_of, server.requests)
        tools = {one.get("name") for one in server.requests[0]["tools"]}
    assert {f"memgraph-{one.name}" for one in offered("core")} <= tools
    assert CAUSE in first, "the overview"
    assert "query_id: " not in first
    assert "was due to the fixture" not in first
    assert "was due to the fixture" in second.partition("Please look")[2], "the failure"
    assert "query_id: " in second
    with ResponsesServer(["I see."]) as server:
        prompt(server, "Please have make test pass in spite of the KeyError: 'delay'")
        assert "was due to the fixture" in text_of(server.requests[0])


def test_a_broken_store_or_hook_lets_the_prompt_through(
    run: Any, prompt: Any, tmp_path: Path, isolated_environment: Path
) -> None:
    run("connect", "copilot")
    break_database(tmp_path / "store")
    with ResponsesServer(["Hello."]) as server:
        assert "Hello." in prompt(server, "hi")
    own = isolated_environment / ".copilot" / "hooks" / "memgraph.json"
    own.write_text(own.read_text("utf-8").replace("memgraph-hook", "no-such-hook"), "utf-8")
    with ResponsesServer(["Hello."]) as server:
        assert "Hello." in prompt(server, "hi")
