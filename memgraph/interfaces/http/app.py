"""The application: REST, MCP and pages behind one gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memgraph.errors import MemGraphError
from memgraph.interfaces.http.access.gate import ENDING, Gate, bearer, check
from memgraph.interfaces.http.access.refusals import RefusedTokenError, UnavailableError
from memgraph.interfaces.http.contract import document
from memgraph.interfaces.http.limits import Limited, Limits, OnLimit, Secured, ignore
from memgraph.interfaces.http.metrics import ROUTE, Counted, Metrics
from memgraph.interfaces.http.pages import Pages
from memgraph.interfaces.http.problems import problem, problem_of
from memgraph.interfaces.http.routes import caller_of, json_response, routes_of, token_of
from memgraph.interfaces.mcp.server import server_of
from memgraph.interfaces.operations import Answer
from memgraph.interfaces.operations.operation import Toolset
from memgraph.interfaces.refusals import remote_message_of
from memgraph.ports import Progress

OPEN = {"/healthz", "/openapi.json", "/login"}
"""Paths that need no token: they show nothing of a store."""
_request: ContextVar[Request] = ContextVar("request")
"""The request that a tool is called by. The library's server passes it to handlers, not to what they call."""


class Application:
    """The application of a server, and its routes."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route]) -> None:
        self._app = app
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. A final slash of the path is ignored, because a redirect loses some clients' bodies or tokens."""
        if scope["type"] == "http" and len(scope["path"]) > 1 and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"][:-1]}
        await self._app(scope, receive, send)


def app_of(
    gate: Gate, *, limits: Limits | None = None, close_stores: bool = True, on_limit: OnLimit = ignore
) -> Application:
    """Return the application of a server. It can be started once.

    Parameters
    ----------
    close_stores : bool
        Close the stores when the application ends.
    on_limit : callable
        As for `Limited`.
    """
    limits = limits or Limits()
    schema = document(asks=gate.asks)
    pages = Pages(gate)
    tools, all_tools = (Tools(gate, name, body_bytes=limits.body_bytes) for name in ("core", "full"))

    async def health(_request: Request) -> Response:
        return json_response({"status": "ok"}, {})

    async def openapi(_request: Request) -> Response:
        return json_response(schema, {})

    async def counters(request: Request) -> Response:
        check(token_of(request), "read")
        return metrics.page()

    routes = [
        Route("/healthz", health, methods=["GET"], name="health"),
        Route("/openapi.json", openapi, methods=["GET"], name="openapi"),
        Route("/metrics", counters, methods=["GET"], name="metrics"),
        *routes_of(gate),
        *pages.routes(),
        Route("/mcp", tools, methods=["POST"], name="mcp"),
        Route("/mcp/full", all_tools, methods=["POST"], name="mcp"),
    ]

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        async with tools.manager.run(), all_tools.manager.run():
            try:
                yield
            finally:
                if close_stores:
                    await to_thread.run_sync(partial(gate.close, wait_s=limits.closing_s))

    inner = Starlette(
        routes=[_named(one) for one in routes], lifespan=lifespan, exception_handlers={HTTPException: _no_route}
    )
    inner.router.redirect_slashes = False
    limited = Limited(inner, limits, open_paths=OPEN, on_limit=on_limit)
    metrics = Metrics(running=lambda: limited.running, stores=lambda: gate.stores.open_count)
    admitted = _Admitted(limited, gate, pages)
    return Application(Counted(Secured(admitted, only_loopback=not gate.asks), metrics), routes)


class Tools:
    """MCP over streamable HTTP: the server of `memgraph mcp` with a toolset, for whoever the request's token names.

    An application of its own. It keeps no sessions: each request stands for itself, with its token.
    """

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


class _Admitted:
    """Admits requests whose token is valid, and keeps what it allows in the request's scope."""

    def __init__(self, app: ASGIApp, gate: Gate, pages: Pages) -> None:
        self._app = app
        self._gate = gate
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        has_begun = is_answered = False

        async def send_noted(message: Message) -> None:
            nonlocal has_begun, is_answered
            has_begun = True
            is_answered = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        ending = problem_of(UnavailableError(ENDING))
        if self._gate.is_ending:
            await ending(scope, receive, send)
            return
        try:
            await self._admit(scope, receive, send_noted)
        except asyncio.CancelledError:  # the server's patience with its last requests is over
            if not self._gate.is_ending:
                raise
            if not has_begun:
                await ending(scope, receive, send)
            elif not is_answered:  # a stream of events: it ends without a result
                await send({"type": "http.response.body", "body": b""})

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        is_page = self._pages.has(scope["path"])
        try:
            secret = bearer(request) or (self._pages.secret_of(request) if is_page else None)
            scope["memgraph.token"] = self._gate.token_of(secret)
        except MemGraphError as error:
            may_sign_in = is_page and not bearer(request) and isinstance(error, RefusedTokenError)
            refusal = self._pages.to_login() if may_sign_in else problem_of(error)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _named(route: Route) -> Route:
    """Let a route write its name into the scope, for the counters."""
    app, name = route.app, route.name

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = name
        await app(scope, receive, send)

    route.app = named
    return route


async def _no_route(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    hint = {
        404: "there is no such path; /openapi.json lists what there is",
        405: f"this path takes {headers.get('Allow', 'another method')}",
    }
    return problem(status, hint.get(status, "the request was refused"), headers=headers)
