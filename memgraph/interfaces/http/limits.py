"""Limits of requests: how many at once, how large, how slow; and what every response says to browsers."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection
from http import HTTPStatus
from time import monotonic
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from memgraph.interfaces.http.problems import problem
from memgraph.model.base import Model

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response that has none of its own."""
LimitName = Literal["requests", "buffered_bytes"]
OnLimit = Callable[[LimitName, int, int], None]


def ignore(_name: str, _value: int, _limit: int) -> None:
    """Report no limit."""


class Limits(Model):
    """Limits of a server.

    Attributes
    ----------
    body_bytes : int
        Largest body of a request.
    open_body_bytes : int
        The same for paths that need no token.
    buffered_bytes : int
        Bodies that are held at the same time, of all requests together; what exceeds it is answered with 503.
    body_s, head_s : float
        Time for the body, and for the head, to arrive.
    stalled_s : float
        Time in which a client has to take what was sent to it.
    requests : int
        Requests that run or wait for a slot; another one is answered with 503. What exceeds half of them, or of `buffered_bytes`, for one
        client is answered with 429, so that the others have the rest.
    connections : int
        Open connections; another one is answered with 503. Of those of one address whose head is not whole, a quarter of that
        number may be open: the oldest is closed for one more.
    ending_s : float
        Time that requests have to end when the server is stopped; then they are answered with 503.
    closing_s : float
        Time that operations which still run have to end after that, before the stores are closed.
    """

    body_bytes: int = 4 << 20
    open_body_bytes: int = 8 << 10
    buffered_bytes: int = 64 << 20
    body_s: float = 10.0
    head_s: float = 10.0
    stalled_s: float = 10.0
    requests: int = 128
    connections: int = 512
    ending_s: float = 30.0
    closing_s: float = 60.0


class Secured:
    """Answers only requests that a page of another site cannot have made, and sets the headers of `SECURITY`."""

    def __init__(self, app: ASGIApp, *, only_loopback: bool) -> None:
        self._app = app
        self._only_loopback = only_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._refusal(Headers(scope=scope)) or self._app
        await app(scope, receive, send_secured)

    def _refusal(self, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may see another end of the body
            detail = "a request has Content-Length or Transfer-Encoding, not both"
            return problem(HTTPStatus.BAD_REQUEST, detail, headers={"Connection": "close"})
        if self._only_loopback and _parts(f"//{host}")[0] not in LOOPBACK:
            detail = (
                "without tokens this server answers only to localhost: another name may be a site's that rebinds it"
            )
            return problem(HTTPStatus.MISDIRECTED_REQUEST, detail)
        if origin is not None and _parts(origin)[1] != host:
            return problem(HTTPStatus.FORBIDDEN, "requests from pages of other sites are refused")
        return None


def _parts(address: str) -> tuple[str | None, str | None]:
    """Return the host's name in an address, and the name with its port; None for anything else."""
    try:
        found = urlsplit(address)
        return found.hostname, found.netloc
    except ValueError:
        return None, None


class Limited:
    """Reads each body within the limits before the request runs, and refuses requests that would have to wait too long.

    Parameters
    ----------
    open_paths : collection of str
        Paths that need no token.
    on_limit : callable
        Called with the name, the value and the limit of ``requests`` or ``buffered_bytes`` when a request is refused because of it.
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, *, open_paths: Collection[str], on_limit: OnLimit = ignore
    ) -> None:
        self._app = app
        self._limits = limits
        self._open_paths = open_paths
        self._on_limit = on_limit
        self._buffered: Counter[str] = Counter()
        self._running: Counter[str] = Counter()

    @property
    def running(self) -> int:
        """Number of requests that run or wait."""
        return self._running.total()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self._app(scope, receive, send)
            return
        body, size, client = bytearray(), 0, _client(scope)
        try:
            refusal = await self._read_into(body, scope, receive)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            whole, size = bytes(body), len(body)
            body.clear()  # or it would be held twice
            await self._run(whole, scope, receive, send)
        finally:
            _take(self._buffered, client, len(body) + size)

    async def _run(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        client, what = _client(scope), "requests are running or waiting"
        if refusal := self._refusal("requests", self._running, client, 1, self._limits.requests, what):
            await refusal(scope, receive, send)
            return
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> Message:
            return next(messages, None) or await receive()

        self._running[client] += 1
        try:
            await self._app(scope, replay, send)
        finally:
            _take(self._running, client, 1)

    def _refusal(
        self, name: LimitName, held: Counter[str], client: str, more: int, limit: int, what: str
    ) -> Response | None:
        """Return what refuses a request that would exceed a limit of the server, or the half of it that one client may have."""
        total, own = held.total() + more, held[client] + more
        if total <= limit and (not client or own <= max(1, limit // 2)):
            return None
        self._on_limit(name, total, limit)
        is_full = total > limit
        detail = f"{total - more if is_full else own - more:,} {what}{'' if is_full else ' for this client'}"
        status = HTTPStatus.SERVICE_UNAVAILABLE if is_full else HTTPStatus.TOO_MANY_REQUESTS
        return problem(status, f"{detail}; send it again after the time in Retry-After")

    async def _read_into(self, body: bytearray, scope: Scope, receive: Receive) -> Response | None:
        """Read the body, counted in `_buffered`; return the response that refuses it and closes the connection, if any."""
        is_open = scope["path"] in self._open_paths
        most = self._limits.open_body_bytes if is_open else self._limits.body_bytes
        closing = {"Connection": "close"}
        too_large = problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a body has at most {most:,} bytes{'' if is_open else '; store less at a time'}",
            headers=closing,
        )
        given = Headers(scope=scope).get("content-length", "0")
        if not given.isdecimal() or int(given) > most:
            return too_large
        until = monotonic() + self._limits.body_s
        while True:
            try:
                message = await asyncio.wait_for(receive(), max(0.0, until - monotonic()))
            except TimeoutError:
                detail = f"the body did not arrive within {self._limits.body_s:g} s"
                return problem(HTTPStatus.REQUEST_TIMEOUT, detail, headers=closing)
            part = message.get("body", b"")
            if len(body) + len(part) > most:
                return too_large
            client, most_held = _client(scope), self._limits.buffered_bytes
            what = "bytes of other requests' bodies are held"
            if refusal := self._refusal("buffered_bytes", self._buffered, client, len(part), most_held, what):
                refusal.headers.update(closing)
                return refusal
            body += part
            self._buffered[client] += len(part)
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                return None


def _client(scope: Scope) -> str:
    """Return the client whose share of the limits a request uses; an empty text if there are no clients to share with."""
    token = scope.get("memgraph.token")
    return token.client if token else ""


def _take(held: Counter[str], client: str, number: int) -> None:
    held[client] -= number
    if not held[client]:
        del held[client]


class HeadTimed(H11Protocol):
    """Uvicorn's protocol, which itself waits for clients for ever: closes a connection whose head does not arrive, or that takes no answer, in time."""

    head_s = Limits().head_s
    stalled_s = Limits().stalled_s
    heads = Limits().connections // 4
    begun: ClassVar[dict[str, dict[HeadTimed, None]]] = {}
    """Connections by address whose next head has begun or is the first, and is not there yet, the oldest first; of one server."""
    _stalled: asyncio.TimerHandle | None = None
    _timer: asyncio.TimerHandle
    _address = ""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._await_head()
        self._count_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._timer.cancel()
        self._flows()
        self.has_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait for a head that begins after an answer, or for the rest of a body that was answered before; no longer for one that is there."""
        if self._is_answered() and self._timer.cancelled():
            self._await_head()
        super().data_received(data)
        if self._is_answered():
            self._count_head()
        elif self.cycle is not None:
            self._timer.cancel()
            self.has_head()

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what was sent."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Send more."""
        self._flows()
        super().resume_writing()

    def has_head(self) -> None:
        """Count it no longer among those whose head is awaited."""
        waiting = self.begun.get(self._address, {})
        waiting.pop(self, None)
        if not waiting:
            self.begun.pop(self._address, None)

    def _flows(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.head_s, self.transport.close)

    def _count_head(self) -> None:
        """Count it among those whose head is awaited; the oldest of too many of one address is closed."""
        waiting = self.begun.setdefault(self._address, {})
        waiting[self] = None
        if len(waiting) > self.heads:
            oldest = next(iter(waiting))
            oldest.has_head()  # it does not count any more
            oldest.transport.close()
