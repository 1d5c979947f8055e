"""Serves MCP on the process's standard streams until the client closes them or the process is told to end."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from importlib import import_module
from threading import Thread
from typing import Any, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memgraph.interfaces.mcp.resident import Resident
from memgraph.interfaces.mcp.server import server_of
from memgraph.interfaces.operations import Answer, Caller, perform
from memgraph.interfaces.operations.operation import Toolset
from memgraph.ports import Progress

_QUEUED_LINES = 16
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def serve(store: Resident, caller: Caller, *, toolset: Toolset = "core") -> None:
    """Serve until standard input ends or the process gets SIGINT or SIGTERM; then close the store.

    Operations that are running come to their end first, or to their next report of progress: what was stored stays stored.
    While serving, standard output belongs to the protocol: what else writes to it goes to standard error.
    """

    def run(name: str, arguments: Mapping[str, Any], progress: Progress | None) -> Answer:
        return perform(store.memory(), caller, name, arguments, toolset=toolset, progress=progress)

    try:
        anyio.run(_serve, server_of(run, toolset=toolset))
    finally:
        store.close()


async def _serve(server: Server[dict[str, Any]]) -> None:
    try:
        with anyio.CancelScope() as scope:
            _end_on_signals(scope)
            # what the first call needs takes a second to import: begin while the client introduces itself
            Thread(target=import_module, args=("memgraph.facade",), name="imports", daemon=True).start()
            lines = cast("anyio.AsyncFile[str]", _lines(_taken_stdin()))
            async with stdio_server(stdin=lines) as (reader, writer):
                await server.run(reader, writer, server.create_initialization_options())
    except* BrokenPipeError:
        pass  # the client is gone: as if it had closed the other stream


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


async def _lines(stream: io.FileIO) -> AsyncIterator[str]:
    """Yield the lines of a stream. A daemon reads them: a thread that waits for input could not be ended."""
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
        yield _readable(line.decode("utf-8", "replace"))


def _readable(line: str) -> str:
    """Return a message with halves of characters replaced: the library drops one that has any, and its sender would wait for ever.

    A client makes such a half when it cuts a text in the middle of an emoji.
    """
    if not _SURROGATE.search(line):
        return line
    try:
        message = json.loads(line)
    except ValueError:
        return line
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace").decode()
