"""An OpenAI-compatible server: what it is sent, that the key stays secret, and every failure as one error. Against a stand-in server."""

from __future__ import annotations

import gzip
import json
import logging
import time
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from memgraph.errors import ConfigError, ProviderError
from memgraph.extraction.llm.extractor import ModelExtractor, default_extractor, reply_schema
from memgraph.extraction.llm.servers import KEY_VARIABLE, ChatCompletionsModel
from memgraph.lifecycle import ConsolidationPipeline
from tests.chat_server import ChatServer, completion
from tests.ollama_server import refused, socket_server, unused_address
from tests.unit.test_ollama import DRIPS

ASK = [{"role": "user", "content": "the question"}]
KEY = "key-that-nobody-may-see-1234567890"
SERVER = {"model": "small", "context_tokens": 8192, "timeout_s": 5}


@pytest.fixture
def server(httpserver: HTTPServer) -> ChatServer:
    return ChatServer(httpserver)


def ask(base_url: str, **options: Any) -> str:
    return ChatCompletionsModel("small", base_url=base_url, **options).complete(ASK, reply_schema(3))


def test_what_is_asked_and_what_is_counted(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    model = ChatCompletionsModel("small", base_url=f"{server.base_url}/", reply_tokens=77)
    reply = model.reply(ASK, reply_schema(3))
    assert (reply.text, reply.prompt_tokens, reply.completion_tokens) == ("{}", 100, 20)
    [body] = server.asked
    assert (body["model"], body["messages"], body["temperature"], body["max_tokens"]) == ("small", ASK, 0, 77)
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"] == {"name": "reply", "strict": True, "schema": reply_schema(3)}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in repr(model) + model.name + model.host + json.dumps(body)
    assert model.reply(ASK).text == "{}"
    assert "response_format" not in server.asked[1]


def test_without_a_key_none_is_sent_and_the_usual_variable_is_not_read(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ask(server.base_url)
    assert "authorization" not in server.headers[0]


RESPONSES = {
    "wrong key": (401, {"error": {"message": f"Incorrect key {KEY}"}}, f"set {KEY_VARIABLE}"),
    "no such model": (404, {"error": {"message": "no model"}}, "check openai.model"),
    "limit": (429, {"error": {"message": "slow down"}}, "try again later"),
    "server error": (500, {"error": "broken"}, "status 500"),
    "error that is no JSON": (502, "<html>Bad Gateway</html>", "status 502"),
    "error of another shape": (500, [1], "status 500"),
    "redirect": (307, "", "redirect"),
    "no JSON": (200, "<html>Welcome</html>", "invalid answer"),
    "cut short": (200, '{"choices": [{"mess', "invalid answer"),
    "no choices": (200, {"choices": []}, "invalid answer"),
    "another shape": (200, [1, 2], "invalid answer"),
    "null": (200, "null", "invalid answer"),
    "no text": (200, completion(None), "returned no text"),
    "too long": (200, completion("x" * 300_000), "more than"),
}


@pytest.mark.parametrize("case", RESPONSES)
def test_what_a_server_answers_wrongly(server: ChatServer, case: str) -> None:
    status, body, told = RESPONSES[case]
    server.replies = [refused(status, body)]
    with pytest.raises(ProviderError, match=told) as failed:
        ask(server.base_url, key=KEY)
    assert KEY not in str(failed.value) + failed.value.loggable
    assert failed.value.model == "small"


@pytest.mark.parametrize(
    "usage", [None, 5, {}, {"prompt_tokens": -1, "completion_tokens": "many"}, {"prompt_tokens": 10**9}]
)
def test_counts_that_cannot_be_are_not_used(server: ChatServer, usage: Any) -> None:
    server.replies = [completion("{}", usage=usage)]
    assert ChatCompletionsModel("m", base_url=server.base_url).reply(ASK)[1:] == (None, None)


def test_a_server_that_is_absent_silent_or_breaks_off() -> None:
    with pytest.raises(ProviderError, match="no server answers"):
        ask(unused_address())
    with socket_server(None) as silent, pytest.raises(ProviderError, match=r"within 0\.3 s"):
        ask(silent, timeout_s=0.3)
    cut_short = b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"
    with socket_server(cut_short) as broken, pytest.raises(ProviderError, match="broke off"):
        ask(broken)


def test_a_reply_that_trickles_in_ends_with_the_timeout(server: ChatServer) -> None:
    def trickle() -> Any:
        for _ in range(1_200):
            time.sleep(0.05)
            yield b" "

    server.replies = [Response(trickle(), content_type="application/json")]
    began = time.monotonic()
    with pytest.raises(ProviderError, match="did not answer"):
        ask(server.base_url, timeout_s=0.3)
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("case", DRIPS)
def test_the_timeout_covers_a_response_that_arrives_byte_by_byte(case: str) -> None:
    with socket_server(DRIPS[case], pause_s=0.2) as host:
        began = time.monotonic()
        with pytest.raises(ProviderError, match=r"within 0\.3 s"):
            ask(host, timeout_s=0.3)
        assert time.monotonic() - began < 20


def test_a_compressed_response_is_refused(server: ChatServer) -> None:
    server.replies = [Response(gzip.compress(b" " * 100_000), headers={"content-encoding": "gzip"})]
    with pytest.raises(ProviderError, match="compressed"):
        ask(server.base_url)
    assert server.headers[0]["accept-encoding"] == "identity"


def test_an_address_with_a_password_is_refused_without_repeating_it(server: ChatServer) -> None:
    for key in (KEY, ""):
        with pytest.raises(ProviderError, match=f"set {KEY_VARIABLE} to the key") as failed:
            ask(server.base_url.replace("//", "//anna:s3cr3t@"), key=key)
        assert "s3cr3t" not in str(failed.value)
    assert server.asked == []


@pytest.mark.parametrize(
    "address", ["", "127.0.0.1:8000", "ftp://h/v1", "http://", "http://[", "http://h:99999", "file:///etc/passwd"]
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ProviderError, match=r"set openai\.base_url"):
        ask(address)


def test_a_key_is_not_sent_unencrypted_to_another_machine_or_with_line_ends(server: ChatServer) -> None:
    with pytest.raises(ProviderError, match="without encryption"):
        ask("http://models.example.org/v1", key=KEY)
    with pytest.raises(ProviderError, match=KEY_VARIABLE) as failed:
        ask(server.base_url, key=f"{KEY}\r\nx-other: 1")
    assert KEY not in str(failed.value)
    assert server.asked == []


@pytest.mark.parametrize("lacking", ["base_url", "model"])
def test_the_settings_name_what_is_missing(open_store: Any, server: ChatServer, lacking: str) -> None:
    settings = {**SERVER, "base_url": server.base_url, lacking: " "}
    with open_store(extractor="openai", openai=settings) as store, pytest.raises(ConfigError, match=lacking):
        default_extractor(store.config)


def test_what_it_finds_is_kept_with_its_cost_and_the_key_is_nowhere(
    open_store: Any, server: ChatServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    caplog.set_level(logging.DEBUG)
    claim = {
        "type": "semantic",
        "content": "Note: the importer needs a byte order mark",
        "outcome": "neutral",
        "tags": [],
    }
    claim |= {"confidence": 0.9, "evidence": ["the importer needs a byte order mark"], "event_index": 0}
    server.replies = [json.dumps({"memories": [claim]}), refused(401, {"error": {"message": f"bad {KEY}"}})]
    task = {
        "task_id": "t",
        "agent_name": "A",
        "description": "Note: the importer needs a byte order mark",
        "outcome": "success",
    }
    log = {"build_id": "b", "project_id": "shop", "tasks": [task], "build_outcome": "success"}
    log |= {"started_at": "2026-01-05", "completed_at": "2026-01-06"}
    with open_store(extractor="openai", openai={**SERVER, "base_url": server.base_url}) as store:
        pipeline = ConsolidationPipeline(store)
        result = pipeline.consolidate(log)
        [memory] = store.read_memories(result.new_memory_ids)
        assert memory.content == claim["content"]
        assert memory.reason.startswith("openai/small found it worth remembering")
        assert (result.usage.calls, result.usage.prompt_tokens) == (1, 100)
        served = pipeline.consolidate({**log, "build_id": "b2"})
        assert "the rules served instead of openai/small" in served.notice
        assert isinstance(default_extractor(store.config), ModelExtractor)
        everything = caplog.text + served.notice + "".join(map(str, store.notices))
        folder = store.config.home
    everything += "".join(
        path.read_bytes().decode("latin-1") for path in (folder / "journal").rglob("*") if path.is_file()
    )
    assert KEY not in everything
