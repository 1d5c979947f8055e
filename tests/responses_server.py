"""A stand-in for OpenAI's Responses API: scripted replies to real clients, whose requests it keeps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MODEL = "gpt-5-codex"
Reply = str | tuple[str, dict[str, Any]]


class ResponsesServer:
    """Serves on a free port of this machine.

    Parameters
    ----------
    replies : sequence
        One per request, in order; the last one is repeated. A text, or (tool, arguments) for a call of a function: ``namespace:tool`` if it
        is in one.

    Attributes
    ----------
    requests : list of dict
        The bodies of the requests, in order.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._replies = list(replies)
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                if not self.path.endswith("/responses"):
                    self._send(200, "application/json", b"{}")
                    return
                events = outer.reply(body)
                data = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
                self._send(200, "text/event-stream", data.encode())

            def do_GET(self) -> None:
                self._send(404, "application/json", b"{}")

            def _send(self, code: int, kind: str, data: bytes) -> None:
                self.send_response(code)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of the reply to a request."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
        return list(_events(self._replies[min(number, len(self._replies) - 1)], number))


def text_of(request: dict[str, Any]) -> str:
    """Return all texts of a request's input, and what its calls returned."""
    return "\n".join(_texts(request["input"]))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for name in ("text", "content", "output"):
            yield from _texts(value.get(name))


def _events(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    item: dict[str, Any]
    if isinstance(reply, str):
        content = [{"type": "output_text", "text": reply, "annotations": []}]
        item = {
            "type": "message",
            "role": "assistant",
            "id": f"msg_{number}",
            "status": "completed",
            "content": content,
        }
    else:
        name, given = reply
        namespace, _, name = name.rpartition(":")
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number:04d}",
            "name": name,
            "arguments": json.dumps(given),
        } | ({"namespace": namespace} if namespace else {})
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield {"type": "response.created", "response": {"id": f"resp_{number}"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    if isinstance(reply, str):
        part = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        yield {"type": "response.output_text.delta", **part, "delta": reply}
    done = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}
