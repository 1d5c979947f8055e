"""MCP over streamable HTTP: the server of `memgraph mcp`, for whoever the request's token names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from memgraph.interfaces.http.access.gate import Gate
from memgraph.interfaces.http.routes import caller_of, token_of
from memgraph.interfaces.mcp.server import server_of
from memgraph.interfaces.operations import Answer
from memgraph.interfaces.operations.operation import Toolset
from memgraph.interfaces.refusals import remote_message_of
from memgraph.ports import Progress

_request: ContextVar[Request] = ContextVar("request")
"""The request that a tool is called by. The library's server passes it to handlers, not to what they call."""


class Tools:
    """The endpoint of a toolset, as an application of its own. It keeps no sessions: each request stands for itself, with its token."""

    def __init__(self, gate: Gate, toolset: Toolset, *, body_bytes: int) -> None:
        def run(name: str, arguments: Mapping[str, Any], progress: Progress | None) -> Answer:
            request = _request.get()
            token = token_of(request)
            caller = caller_of(token, request)
            return gate.run(token, caller, name, arguments, toolset=toolset, progress=progress)[0]

        async def in_thread(name: str, call: Callable[[], Answer]) -> Answer:
            return await gate.in_thread(token_of(_request.get()), name, call)

        server = server_of(run, toolset=toolset, in_thread=in_thread, message=remote_message_of)
        self.manager = StreamableHTTPSessionManager(server, stateless=True, max_request_body_size=body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        set_before = _request.set(Request(scope))
        try:
            await self.manager.handle_request(scope, receive, send)
        finally:
            _request.reset(set_before)
