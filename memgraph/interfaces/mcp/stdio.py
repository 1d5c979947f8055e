"""Serves MCP on the process's standard streams until the client closes them or a signal ends the process."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any, cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from memgraph.interfaces.mcp.server import server_of
from memgraph.interfaces.operations import Answer, Caller, perform
from memgraph.interfaces.operations.operation import Toolset
from memgraph.interfaces.resident import Resident
from memgraph.ports import Progress

_QUEUED_LINES = 16
_MOST_DIGITS = 100


def serve(store: Resident, caller: Caller, *, toolset: Toolset = "core", answers_orders: bool = False) -> None:
    """Serve until standard input ends or the process gets SIGINT or SIGTERM; then close the store.

    Operations that are running come to their end first, or to their next report of progress: what was stored stays stored.
    With `answers_orders` the models of clients that offer sampling are asked to answer open work orders.
    While serving, standard output belongs to the protocol: what else writes to it goes to standard error.
    """

    def run(offered: Toolset, name: str, arguments: Mapping[str, Any], progress: Progress | None) -> Answer:
        return perform(store.memory(), caller, name, arguments, toolset=offered, progress=progress)

    answer = partial(run, "full") if answers_orders else None
    try:
        anyio.run(_serve, server_of(partial(run, toolset), toolset=toolset, answer=answer))
    finally:
        store.close()


async def _serve(server: Server[dict[str, Any]]) -> None:
    try:
        async with anyio.create_task_group() as tasks:
            _end_on_signals(tasks.cancel_scope)
            # what the first call needs takes a second to import: begin while the client introduces itself
            Thread(target=import_module, args=("memgraph.facade",), name="imports", daemon=True).start()
            nothing = cast("anyio.AsyncFile[str]", _nothing())
            async with stdio_server(stdin=nothing) as (_, writer):
                sender, reader = anyio.create_memory_object_stream[SessionMessage | Exception](0)
                tasks.start_soon(_read, _lines(_taken_stdin()), sender, writer.send)
                await server.run(reader, writer, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client is gone: as if it had closed the other stream


async def _nothing() -> AsyncIterator[str]:
    """Yield nothing: the library's own reader of standard input does not end at a signal, and drops what it cannot read."""
    return
    yield


async def _read(
    lines: AsyncIterator[bytes],
    sender: MemoryObjectSendStream[SessionMessage | Exception],
    reply: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Pass the messages on standard input to the server; answer what is none with an error, for its sender would wait for ever."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the server has ended
        async with sender:
            async for line in lines:
                found = _message(line)
                await (reply if isinstance(found, types.JSONRPCError) else sender.send)(SessionMessage(found))


def _end_on_signals(scope: anyio.CancelScope) -> None:
    """Cancel the scope at SIGINT and SIGTERM. The handlers stay: a second signal must not interrupt the closing of the store."""
    loop = asyncio.get_running_loop()

    def end(number: int, frame: Any) -> None:  # noqa: ARG001 (a signal handler's signature)
        if not loop.is_closed():
            loop.call_soon_threadsafe(scope.cancel)

    for kind in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(kind) is not signal.SIG_IGN:
            signal.signal(kind, end)


def _taken_stdin() -> io.FileIO:
    """Return standard input under another descriptor, and leave an empty one: a child must not read the protocol."""
    stream = io.FileIO(fcntl.fcntl(sys.stdin.fileno(), fcntl.F_DUPFD_CLOEXEC, 3), closefd=False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, sys.stdin.fileno())
    os.close(null)
    return stream


async def _lines(stream: io.FileIO) -> AsyncIterator[bytes]:
    """Yield the lines of a stream that are not blank. A daemon reads them: a thread that waits for input could not be ended."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue(_QUEUED_LINES)

    def read() -> None:
        reader = io.BufferedReader(stream)
        try:
            while line := reader.readline():
                asyncio.run_coroutine_threadsafe(queue.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(queue.put(b""), loop).result()
        except RuntimeError:
            return  # the loop has ended

    Thread(target=read, name="standard input", daemon=True).start()
    while line := await queue.get():
        if line.strip():
            yield line


def _message(line: bytes) -> types.JSONRPCMessage:
    """Return the message of a line, or the error to answer."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        pass
    try:
        # half an emoji, from where a client cut a text: the strict reader refuses it
        found = json.loads(line.decode("utf-8", "replace"), parse_int=_number)
        mended = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        return _refusal(None, types.PARSE_ERROR, "this line is no JSON, or nested too deeply")
    try:
        return types.jsonrpc_message_adapter.validate_json(mended, by_name=False)
    except ValidationError:
        number = found.get("id") if isinstance(found, dict) else None
        return _refusal(number, types.INVALID_REQUEST, "this line is no message of JSON-RPC 2.0")


def _number(digits: str) -> int | float:
    """Return a number, as floating point if no one could mean it exactly."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def _refusal(number: Any, code: int, message: str) -> types.JSONRPCError:
    is_id = isinstance(number, int | str) and not isinstance(number, bool)
    return types.JSONRPCError(
        jsonrpc="2.0", id=number if is_id else None, error=types.ErrorData(code=code, message=message)
    )
