"""A stand-in for Anthropic's Messages API: scripted replies to real clients, whose requests it keeps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MODEL = "claude-sonnet-4-5"


class MessagesServer:
    """Serves on a free port of this machine.

    Parameters
    ----------
    replies : sequence
        One per request that offers tools, in order; the last one is repeated. A text, or (tool, input) for a use of a tool.
        Requests without tools (titles, summaries) get a short text.

    Attributes
    ----------
    requests : list of dict
        The bodies of the requests that offer tools, in order.
    """

    def __init__(self, replies: Sequence[str | tuple[str, dict[str, Any]]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._replies = list(replies)
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if "count_tokens" in self.path:
                    self._send(200, "application/json", json.dumps({"input_tokens": 10}).encode())
                elif "/v1/messages" not in self.path:
                    self._send(200, "application/json", b"{}")
                else:
                    events = outer.reply(body)
                    if body.get("stream"):
                        data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
                        self._send(200, "text/event-stream", data.encode())
                    else:
                        self._send(200, "application/json", json.dumps(message_of(events)).encode())

            def do_GET(self) -> None:
                self._send(404, "application/json", b"{}")

            def do_HEAD(self) -> None:
                self._send(200, "text/plain", b"")

            def _send(self, code: int, kind: str, data: bytes) -> None:
                self.send_response(code)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of the reply to a request."""
        if not body.get("tools"):
            return list(_events("ok", 0))
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
        return list(_events(self._replies[min(number, len(self._replies) - 1)], number))


def message_of(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the message that some events amount to."""
    message = dict(events[0]["message"])
    block = dict(events[1]["content_block"])
    delta = events[2]["delta"]
    block |= {"text": delta["text"]} if "text" in delta else {"input": json.loads(delta["partial_json"])}
    return message | {"content": [block], "stop_reason": events[-2]["delta"]["stop_reason"]}


def text_of(request: dict[str, Any]) -> str:
    """Return all texts of the messages of a request."""
    return "\n".join(_texts(request["messages"]))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for name in ("text", "content"):
            yield from _texts(value.get(name))


def _events(reply: str | tuple[str, dict[str, Any]], number: int) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 5}
    yield {
        "type": "message_start",
        "message": {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        },
    }
    if isinstance(reply, str):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta: dict[str, Any] = {"type": "text_delta", "text": reply}
    else:
        block = {"type": "tool_use", "id": f"toolu_{number:04d}", "name": reply[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply[1])}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = "end_turn" if isinstance(reply, str) else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}
