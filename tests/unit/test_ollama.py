"""Every failure of the real client, of the wire and of the server arrives as one error that says what to do."""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from memgraph.embedding import OllamaEmbedder
from memgraph.errors import EmbeddingError, ProviderError
from memgraph.extraction.llm.servers import OllamaLanguageModel
from memgraph.ollama import OllamaConnection
from tests.ollama_server import OllamaServer, refused, said, skipped_where_absent, socket_server, unused_address

ASK = [{"role": "user", "content": "the secret text"}]
NO_ANSWER = "returned an invalid answer"


@pytest.fixture
def server(httpserver: HTTPServer) -> OllamaServer:
    return OllamaServer(httpserver)


def chat(host: str, **options: Any) -> str:
    return OllamaLanguageModel("llama3.2", host=host, **options).complete(ASK, {"type": "object"})


def embed(host: str, **options: Any) -> Any:
    return OllamaEmbedder("nomic-embed-text", host=host, **options).embed(["the secret text"])


BOTH = pytest.mark.parametrize(
    ("ask", "failure"), [(chat, ProviderError), (embed, EmbeddingError)], ids=["chat", "embed"]
)

RESPONSES = {
    "model not pulled": (404, {"error": 'model "x" not found, try pulling it first'}, r"run `ollama pull (llama3\.2|nomic-embed-text)`"),
    "no such call": (404, "404 page not found", "update Ollama"),
    "server error": (500, {"error": "failed to encode response: json: unsupported value: NaN"}, "status 500"),
    "error that is no JSON": (502, "<html>Bad Gateway</html>", "status 502"),
    "error that is JSON of another shape": (500, "[]", NO_ANSWER),
    "error of another type": (400, {"error": {"code": 7}}, "status 400"),
    "no JSON": (200, "<html>Welcome</html>", NO_ANSWER),
    "cut short JSON": (200, '{"model": "m", "mess', NO_ANSWER),
    "JSON that is no object": (200, [1, 2], NO_ANSWER),
    "null": (200, "null", NO_ANSWER),
    "object without the field": (200, {"done": True}, NO_ANSWER),
    "field of another type": (200, {"message": "text", "embeddings": "text"}, NO_ANSWER),
    "null where the field should be": (200, {"message": None, "embeddings": None}, NO_ANSWER),
    "nested without end": (200, "[" * 100_000, NO_ANSWER),
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("case", RESPONSES)
def test_what_a_server_answers_wrongly(
    server: OllamaServer, ask: Callable[..., Any], failure: type[Exception], case: str
) -> None:
    status, body, message = RESPONSES[case]
    server.embed = lambda _: refused(status, body)
    server.replies = [refused(status, body)]
    with pytest.raises(failure, match=message):
        ask(server.host)
    assert len(server.asked) == 1  # nothing is tried again down here


@BOTH
def test_an_absent_server_is_an_error(ask: Callable[..., Any], failure: type[Exception]) -> None:
    with pytest.raises(failure, match="ollama serve"):
        ask(unused_address())


@BOTH
def test_a_server_that_says_nothing_is_waited_for_no_longer_than_set(
    ask: Callable[..., Any], failure: type[Exception]
) -> None:
    with socket_server(None) as host:
        started = time.monotonic()
        with pytest.raises(failure, match=r"within 0\.2 s; raise ollama_timeout_s"):
            ask(host, timeout_s=0.2)
        assert time.monotonic() - started < 30


OK = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "headers": b"HTTP/1.1 200 OK\r\nx-filler: " + b"a" * 200,
    "body": OK + b"content-length: 200\r\n\r\n" + b" " * 200,
    "body without a length": OK + b"\r\n" + b"[" * 200,
}


@BOTH
@pytest.mark.parametrize("case", DRIPS)
def test_the_timeout_covers_a_response_that_arrives_byte_by_byte(
    ask: Callable[..., Any], failure: type[Exception], case: str
) -> None:
    with socket_server(DRIPS[case], pause_s=0.2) as host:
        started = time.monotonic()
        with pytest.raises(failure, match=r"within 0\.3 s"):
            ask(host, timeout_s=0.3)
        assert time.monotonic() - started < 20


@BOTH
def test_a_response_that_is_too_long_or_compressed_is_refused(
    server: OllamaServer, ask: Callable[..., Any], failure: type[Exception]
) -> None:
    server.embed = lambda _: Response(gzip.compress(b" " * 3_000_000), headers={"content-encoding": "gzip"})
    server.replies = [server.embed({})]
    with pytest.raises(failure, match="compressed"):
        ask(server.host)
    server.embed = lambda _: Response(b" " * 3_000_000)
    server.replies = [server.embed({})]
    with pytest.raises(failure, match=r"more than [\d,]+ bytes"):
        ask(server.host)


def test_who_is_away_is_asked_twice_and_then_not_for_a_while() -> None:
    with socket_server(None) as host:
        connection = OllamaConnection(host, timeout_s=0.2, pause_s=3_600)
        for _ in range(2):
            with pytest.raises(ProviderError, match="did not answer"):
                connection.embed("nomic-embed-text", ["a"])
    with pytest.raises(ProviderError, match="did not answer"):  # it is gone: who asked would hear that
        connection.embed("nomic-embed-text", ["a"])


def test_a_server_that_is_back_is_asked_again() -> None:
    host = unused_address()
    connection = OllamaConnection(host, pause_s=0.2)
    for _ in range(3):
        with pytest.raises(ProviderError):
            connection.embed("nomic-embed-text", ["a"])
    with HTTPServer(host="127.0.0.1", port=int(host.rpartition(":")[2])) as http:
        OllamaServer(http)
        time.sleep(0.2)
        assert len(connection.embed("nomic-embed-text", ["a"]).vectors) == 1


BROKEN = {
    "closed at once": b"",
    "no HTTP": b"220 mail.example ESMTP\r\n",
    "closed in the midst": b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"mod',
}


@BOTH
@pytest.mark.parametrize("case", BROKEN)
def test_a_connection_that_breaks_off(ask: Callable[..., Any], failure: type[Exception], case: str) -> None:
    with socket_server(BROKEN[case]) as host, pytest.raises(failure, match="closed the connection"):
        ask(host)


@BOTH
def test_bytes_that_are_no_text(ask: Callable[..., Any], failure: type[Exception]) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n"
    with socket_server(head + b"\xff\xfe\x80\x81") as host, pytest.raises(failure, match=NO_ANSWER):
        ask(host)


@BOTH
def test_texts_do_not_follow_a_redirect(
    server: OllamaServer, ask: Callable[..., Any], failure: type[Exception]
) -> None:
    there = refused(307, "")
    there.headers["Location"] = f"{server.host}/elsewhere"
    server.embed = lambda _: there
    server.replies = [there]
    with pytest.raises(failure, match="redirect"):
        ask(server.host)
    assert len(server.asked) == 1


@BOTH
@pytest.mark.parametrize("host", ["http://127.0.0.1:99999", "http://[::1", "ftp://127.0.0.1:1"])
def test_an_address_that_is_none(ask: Callable[..., Any], failure: type[Exception], host: str) -> None:
    with pytest.raises(failure, match="is not the address of an Ollama server"):
        ask(host)


@BOTH
def test_a_server_on_this_machine_is_not_asked_through_a_proxy(
    server: OllamaServer, ask: Callable[..., Any], failure: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, unused_address())
    ask(server.host)
    assert len(server.asked) == 1


def test_the_error_says_who_and_where_and_logs_no_text(server: OllamaServer) -> None:
    server.replies = [refused(500, {"error": "cannot digest: the secret\ntext"})]
    with pytest.raises(ProviderError) as caught:
        chat(server.host)
    error = caught.value
    assert (error.model, error.host, error.status) == ("llama3.2", server.host, 500)
    assert str(error).endswith("cannot digest: the secret text")
    assert "secret" not in error.loggable
    server.embed = lambda _: refused(500, {"error": "cannot digest: the secret text"})
    with pytest.raises(EmbeddingError) as refusal:
        embed(server.host)
    assert "secret" not in str(refusal.value)


def test_a_password_in_the_address_is_not_shown() -> None:
    assert OllamaConnection("http://me:word@127.0.0.1:11434").host == "http://127.0.0.1:11434"


@BOTH
def test_an_address_with_a_password_is_refused_without_repeating_it(
    server: OllamaServer,
    ask: Callable[..., Any],
    failure: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = server.host.replace("//", "//anna:s3cr3t@")
    monkeypatch.setenv("OLLAMA_HOST", address)
    for host in (address, ""):
        with pytest.raises(failure, match="remove the user name and password") as caught:
            ask(host)
        assert "s3cr3t" not in str(caught.value)
    assert server.asked == []


def test_the_host_is_the_setting_else_the_environment_else_the_usual_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OllamaConnection().host == "127.0.0.1:9"  # what the tests set OLLAMA_HOST to
    assert OllamaConnection("http://gpu:1").host == "http://gpu:1"
    monkeypatch.delenv("OLLAMA_HOST")
    assert OllamaConnection().host == "http://127.0.0.1:11434"


def test_what_a_chat_sends(server: OllamaServer) -> None:
    server.replies = [said('{"a": 1}')]
    model = OllamaLanguageModel("llama3.2", host=server.host, context_tokens=4096, reply_tokens=512)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert model.reply(ASK, schema) == ('{"a": 1}', 100, 20)
    [body] = server.chats
    assert body["options"] == {"temperature": 0, "seed": 1, "num_ctx": 4096, "num_predict": 512}
    assert (body["model"], body["think"], body["stream"], body["format"]) == ("llama3.2", False, False, schema)
    assert body["messages"] == ASK
    assert model.name == "ollama/llama3.2"


def test_a_reply_beyond_all_measure_is_refused(server: OllamaServer) -> None:
    server.replies = [said("x" * 20_000)]
    with pytest.raises(ProviderError, match="20,000 characters to a request for 256 tokens"):
        chat(server.host, reply_tokens=256)


@pytest.mark.parametrize(
    "counts", [{"prompt_eval_count": None}, {"prompt_eval_count": -4}, {"prompt_eval_count": 10**12}]
)
def test_counts_that_cannot_be_are_none(server: OllamaServer, counts: dict[str, Any]) -> None:
    server.replies = [said("{}", **counts)]
    assert OllamaLanguageModel("m", host=server.host).reply(ASK).prompt_tokens is None


@BOTH
@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:9"),
        ("ALL_PROXY", "nonsense://user:password@127.0.0.1:9"),
        ("OLLAMA_HOST", "http://[::1"),
        ("SSL_CERT_FILE", "/nonexistent"),
    ],
)
def test_an_environment_in_which_the_client_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[..., Any],
    failure: type[Exception],
    name: str,
    value: str,
    is_loaded: bool,
) -> None:
    if is_loaded:
        import ollama  # noqa: F401
    else:
        for module in [one for one in sys.modules if one.partition(".")[0] == "ollama"]:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setenv(name, value)
    host = "" if name == "OLLAMA_HOST" else "https://ollama.invalid"
    with pytest.raises(failure) as raised:
        ask(host)
    assert name in str(raised.value) or "ollama_host" in str(raised.value)
    assert "password" not in str(raised.value)


@BOTH
@pytest.mark.parametrize(("status", "is_skipped"), [(404, True), (500, False)])
def test_live_tests_are_skipped_only_where_server_or_model_is_absent(
    server: OllamaServer, ask: Callable[..., Any], failure: type[Exception], status: int, is_skipped: bool
) -> None:
    server.embed = lambda _: refused(status, {"error": "model not found"})
    server.replies = [refused(status, {"error": "model not found"})]
    with pytest.raises(pytest.skip.Exception if is_skipped else failure), skipped_where_absent():
        ask(server.host)
    with pytest.raises(pytest.skip.Exception), skipped_where_absent():
        ask(unused_address())
