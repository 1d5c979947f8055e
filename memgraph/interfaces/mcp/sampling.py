"""Work orders answered by the client's own model, where the client lets a server ask it (MCP sampling). The user opts in.

A client offers this only in sessions with a handshake, and asks its user as it sees fit. Nothing waits for the answers. The protocol's
revision of 2026-07-28 deprecates it: those who connect over it are not asked.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError

from memgraph.interfaces.operations import Answer
from memgraph.lifecycle.orders import MAX_ASKED
from memgraph.logs import logger_of

_logger = logger_of(__name__)
QUIET_S = 60.0
"""Nobody is asked while a client calls operations, and for so long after: a prompt may be worked on."""
_MOST_REPLIES = 3
_MOST_TOKENS = 4_000
_MOST_REPLY_CHARS = 100_000
_PATIENCE_S = 600.0
"""A client may ask its user first."""
_ONLY_JSON = "Reply with the JSON object of the answer and nothing else."
Run = Callable[[str, Mapping[str, Any]], Awaitable[tuple[Answer | None, str]]]
"""Performs an operation for the caller: its answer, or None and the text of the refusal."""


class Calls:
    """The operations that a client calls."""

    def __init__(self) -> None:
        self._running = 0
        self._ended = anyio.current_time()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note that an operation runs in this block."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._ended = anyio.current_time()

    async def pause(self, least_s: float) -> None:
        """Wait until none has run for so long."""
        while self._running or anyio.current_time() < self._ended + least_s:
            await anyio.sleep(least_s / 10)


@asynccontextmanager
async def background(_server: Any) -> AsyncIterator[dict[str, Any]]:
    """Hold the tasks that run beside a session; they end with it."""
    async with anyio.create_task_group() as tasks:
        yield {"tasks": tasks, "calls": Calls()}
        tasks.cancel_scope.cancel()


def answer_orders(server: Server[dict[str, Any]], run: Run, quiet_s: float) -> None:
    """Have a server ask the models of clients that offer sampling for answers, between prompts."""

    async def begin(context: ServerRequestContext[dict[str, Any], Any], _params: types.NotificationParams) -> None:
        offered = context.session.client_capabilities
        if offered is not None and offered.sampling is not None:
            tasks: TaskGroup = context.lifespan_context["tasks"]
            pause = partial(context.lifespan_context["calls"].pause, quiet_s)
            tasks.start_soon(_answer_all, context.session, run, pause)

    server.add_notification_handler("notifications/initialized", types.NotificationParams, begin)


async def _answer_all(session: ServerSession, run: Run, pause: Callable[[], Awaitable[None]]) -> None:
    seen: list[str] = []
    try:
        while len(seen) < MAX_ASKED:
            await pause()
            found, refusal = await run("next_work_order", {"except_ids": seen})
            order = found.data["order"] if found is not None else None
            if found is None or order is None:
                _logger.info("asked for %d answers to work orders; %s", len(seen), refusal or "no other is open")
                return
            seen.append(order["order"]["id"])
            await _answer_one(session, run, seen[-1], found.text)
    except MCPError as error:  # the user declined, or the client cannot after all
        _logger.info("the client answers no work orders: %s", error)
    except Exception as error:  # whatever a client replies, the session goes on
        _logger.warning("work orders were not answered: %s", type(error).__name__, exc_info=_logger.isEnabledFor(10))


async def _answer_one(session: ServerSession, run: Run, order_id: str, question: str) -> None:
    """Ask for the answer to one order, and for corrections of what is refused. What stays refused leaves the order open."""
    messages = [_message("user", f"{question}\n\n{_ONLY_JSON}")]
    for _ in range(_MOST_REPLIES):
        reply = await _reply(session, messages)
        answer = _json_of(reply)
        if answer is None:
            problem = "this is not a JSON object"
        else:
            given, problem = await run("answer_work_order", {"order_id": order_id, "answer": answer})
            if given is not None:
                if not given.data["problems"] or not given.data["attempts_left"]:
                    return
                problem = "; ".join(given.data["problems"])
        messages += [
            _message("assistant", reply),
            _message("user", f"Refused: {problem}. Send the whole answer again, corrected. {_ONLY_JSON}"),
        ]


async def _reply(session: ServerSession, messages: list[types.SamplingMessage]) -> str:
    asked = types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=messages, max_tokens=_MOST_TOKENS)
    )
    found = await session.send_request(asked, types.CreateMessageResult, request_read_timeout_seconds=_PATIENCE_S)
    text = found.content.text if isinstance(found.content, types.TextContent) else ""
    return text[:_MOST_REPLY_CHARS]


def _json_of(reply: str) -> dict[str, Any] | None:
    """Return the JSON object in a reply, also in a fence or between words."""
    start, end = reply.find("{"), reply.rfind("}")
    try:
        found = json.loads(reply[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _message(role: types.Role, text: str) -> types.SamplingMessage:
    return types.SamplingMessage(role=role, content=types.TextContent(text=text))
