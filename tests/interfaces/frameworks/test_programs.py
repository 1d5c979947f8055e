"""The programs of the page on frameworks run as they stand there."""

from __future__ import annotations

import gc
import json
import sys
import warnings
from importlib.util import find_spec
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

import memgraph.embedding
from memgraph import AgentMemoryStore
from memgraph.testing import FakeEmbedder
from tests.documents import DOCS, blocks

PAGE = DOCS / "frameworks.md"
NEEDS = {
    "langgraph": "langgraph.graph",
    "adk": "google.adk",
    "openai_agents": "agents",
    "llama_index": "llama_index.core",
    "langchain": "langchain_core",
}
PRINTS = {
    "langgraph": ["['Ann cooks without cheese.']"] * 2,
    "pydantic_ai": ["--canary", "query_id: "],
    "anthropic": ["I will remember it.", "The till needs a coin."],
    "adk": ["['I keep two llamas.']"],
    "openai_agents": ["With a coin.", "'user: The till needs a coin to open.'"],
    "llama_index": ["--canary", "user Deploy the shop with its flag"],
    "langchain": ["Deployments of the shop need the flag --canary. "],
}


@pytest.fixture(autouse=True)
def fake_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for user in (memgraph.embedding, sys.modules[AgentMemoryStore.__module__]):
        monkeypatch.setattr(user, "default_embedder", lambda _=None: FakeEmbedder())


@pytest.fixture
def claude(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Anthropic's server: it creates a file, then says that it will remember."""
    command = {"command": "create", "path": "/memories/shop.md", "file_text": "The till needs a coin."}
    turns = [
        [{"type": "tool_use", "id": "t1", "name": "memory", "input": command}],
        [{"type": "text", "text": "I will remember it."}],
    ]

    def reply(_: Request) -> Response:
        content = turns.pop(0)
        message: dict[str, Any] = {
            "id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content,
            "stop_reason": "tool_use" if turns else "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return Response(json.dumps(message), content_type="application/json")

    httpserver.expect_request("/v1/messages").respond_with_handler(reply)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", httpserver.url_for(""))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")


@pytest.fixture
def openai(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for OpenAI's server: it says how the till opens if the history says so."""

    def reply(request: Request) -> Response:
        said = "With a coin." if "coin" in json.dumps(request.json["input"][:-1]) else "I see."
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
        message |= {"content": [{"type": "output_text", "text": said, "annotations": []}]}
        answer = {"id": "r", "object": "response", "created_at": 0, "model": "gpt", "output": [message], "tools": []}
        answer |= {"parallel_tool_calls": False, "tool_choice": "auto"}
        return Response(json.dumps(answer), content_type="application/json")

    httpserver.expect_request("/responses").respond_with_handler(reply)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for(""))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


def is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("name", PRINTS)
def test_a_program_prints_what_it_recalls(
    name: str, claude: None, openai: None, capsys: pytest.CaptureFixture[str]
) -> None:
    if not is_there(NEEDS.get(name, name)):
        pytest.skip(f"the extra {name.replace('_', '-')} is missing")
    (program,) = [block.text for block in blocks(PAGE, "python") if f"from memgraph.interfaces.{name} " in block.text]
    exec(compile(program, str(PAGE), "exec"), {"__name__": name})
    printed = capsys.readouterr().out
    for line in PRINTS[name]:
        assert line in printed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # LlamaIndex never closes the database of its chat history
        gc.collect()
