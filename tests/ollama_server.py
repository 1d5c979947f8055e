"""What stands in for an Ollama server under the real client: its two calls, and sockets that misbehave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memgraph.errors import EmbeddingError, ProviderError
from memgraph.testing import FakeEmbedder

Answer = Callable[[dict[str, Any]], Any]


class OllamaServer:
    """Serves ``/api/embed`` and ``/api/chat``; keeps what it was sent in `asked`, as (path, body)."""

    def __init__(self, http: HTTPServer) -> None:
        self.host = http.url_for("").rstrip("/")
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.model = FakeEmbedder(dimension=768)
        self.embed: Answer = self.vectors
        self.replies: list[Any] = ["{}"]
        http.expect_request("/api/embed", method="POST").respond_with_handler(self._embed)
        http.expect_request("/api/chat", method="POST").respond_with_handler(self._chat)

    def vectors(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = [text.partition("search_document: ")[2] or text for text in body["input"]]
        return {"model": body["model"], "embeddings": self.model.embed(texts).tolist(), "prompt_eval_count": len(texts)}

    def _embed(self, request: Request) -> Response:
        body = request.get_json()
        self.asked.append(("/api/embed", body))
        return answered(self.embed(body))

    def _chat(self, request: Request) -> Response:
        self.asked.append(("/api/chat", request.get_json()))
        reply = self.replies[min(len(self.chats), len(self.replies)) - 1]
        if isinstance(reply, Response | dict | list):
            return answered(reply)
        return answered(said(reply if isinstance(reply, str) else json.dumps(reply)))

    @property
    def chats(self) -> list[dict[str, Any]]:
        return [body for path, body in self.asked if path == "/api/chat"]


@contextmanager
def skipped_where_absent() -> Iterator[None]:
    """Skip a test of a live server where there is none, or it has not the model; any other failure is one."""
    try:
        yield
    except (EmbeddingError, ProviderError) as error:
        if "no Ollama server answers at" in str(error) or "run `ollama pull" in str(error):
            pytest.skip(str(error))
        raise


def said(text: str, **fields: Any) -> dict[str, Any]:
    """Return a chat response as Ollama sends it."""
    counts = {"prompt_eval_count": 100, "eval_count": 20}
    return {"model": "m", "message": {"role": "assistant", "content": text}, "done": True, **counts, **fields}


def answered(body: Any) -> Response:
    return body if isinstance(body, Response) else Response(json.dumps(body), content_type="application/json")


def refused(status: int, body: Any) -> Response:
    return Response(body if isinstance(body, str) else json.dumps(body), status=status, content_type="application/json")


@contextmanager
def socket_server(response: bytes | None, *, pause_s: float = 0.0) -> Iterator[str]:
    """Serve one raw response to each connection, then close it; None: no response. Yields the address.

    With a pause, the bytes are sent one by one.
    """
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)

        def serve() -> None:
            held = []
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                held.append(connection)
                if response is not None:
                    connection.settimeout(2)
                    connection.recv(65_536)
                    parts = [bytes([byte]) for byte in response] if pause_s else [response]
                    for part in parts:
                        if done.wait(pause_s) or not sent(connection, part):
                            break
                    connection.close()
            for connection in held:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            done.set()
            thread.join()


def sent(connection: socket.socket, part: bytes) -> bool:
    try:
        connection.sendall(part)
    except OSError:  # the client has closed the connection
        return False
    return True


def unused_address() -> str:
    """Return an address of this machine where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"
