"""A stand-in for an OpenAI-compatible server: chat completions."""

from __future__ import annotations

from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.ollama_server import answered


class ChatServer:
    """Serves ``/v1/chat/completions``; keeps the bodies that it was sent in `asked`, and their headers in `headers`."""

    def __init__(self, http: HTTPServer) -> None:
        self.base_url = http.url_for("/v1")
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.replies: list[Any] = ["{}"]
        http.expect_request("/v1/chat/completions", method="POST").respond_with_handler(self._chat)

    def _chat(self, request: Request) -> Response:
        self.asked.append(request.get_json())
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        return answered(completion(reply) if isinstance(reply, str) else reply)


def completion(text: str | None, **fields: Any) -> dict[str, Any]:
    """Return a response as such servers send it."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage, **fields}
