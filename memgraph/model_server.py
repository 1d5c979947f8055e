"""What the clients of models' servers share: addresses, and limits on the time and the size of an exchange.

Importing this module does not import httpx, which would take a third of a second.
"""

from __future__ import annotations

import ipaddress
import threading
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import socket

    from httpx import Request, Response

TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 5.0
BYTES_A_TOKEN = 64
"""A response may have this many bytes for each token of the reply that was asked for."""
ENVELOPE_BYTES = 65_536
"""A response may have this many bytes besides those of the reply."""
_MAX_TOKENS = 10_000_000
"""A larger token count reported by a server is an error."""

_exchange: ContextVar[Exchange | None] = ContextVar("memgraph_exchange", default=None)


class ResponseTooLongError(Exception):
    """The response exceeds the exchange's limit, or is compressed, so that its size is unknown. Not public: the clients translate it."""


class Exchange:
    """One request and its response, with a limit on the total time and on the size of the response's body.

    httpx limits the time of each read only, so a server that sends a byte now and then would never time out. At the
    deadline the connection is shut down, which ends any read or write. Not covered are the lookup of the host's name and the
    attempts to connect, each of which has a limit of its own.

    Use it as a context manager around one request of a client that was made with `client_options`. A response that is too long raises
    `ResponseTooLongError` within the block; leaving the block after the deadline raises `TimeoutError`, because a response that was cut
    off by it may look complete.
    """

    def __init__(self, *, timeout_s: float, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._timer = threading.Timer(timeout_s, self._end)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._connections: list[socket.socket] = []
        self._is_over = False

    def __enter__(self) -> Self:
        self._token = _exchange.set(self)
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        _exchange.reset(self._token)
        with self._lock:
            while self._connections:
                self._connections.pop().close()
        if self._is_over and (error is None or isinstance(error, Exception)):
            raise TimeoutError("the exchange took too long") from error

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Note each connection when it is made; called by the client's transport (httpx's request extension ``trace``)."""
        if event.endswith("connect_tcp.complete"):
            # a duplicate, because TLS detaches the original
            connection = info["return_value"].get_extra_info("socket").dup()
            with self._lock:
                self._connections.append(connection)
                if self._is_over:
                    _shut_down(connection)

    def receive(self, response: Response) -> None:
        """Read the response's body, up to its maximum size."""
        import httpx

        if response.headers.get("content-encoding", "identity") != "identity":
            raise ResponseTooLongError("the response is compressed, although that was not requested")
        body = bytearray()
        for part in response.stream:  # type: ignore[union-attr]  # the stream of a synchronous client
            body += part
            if len(body) > self._max_bytes:
                raise ResponseTooLongError(f"the response has more than {self._max_bytes:,} bytes")
        response.stream.close()  # type: ignore[union-attr]
        response.stream = httpx.ByteStream(bytes(body))

    def _end(self) -> None:
        with self._lock:
            self._is_over = True
            for connection in self._connections:
                _shut_down(connection)


def client_options(address: str, *, timeout_s: float, connect_timeout_s: float = CONNECT_TIMEOUT_S) -> dict[str, Any]:
    """Return the options of an httpx client for an `Exchange`: no kept connections or redirects, and no proxy to this machine."""
    import httpx

    return {
        "timeout": httpx.Timeout(timeout_s, connect=min(connect_timeout_s, timeout_s)),
        "limits": httpx.Limits(max_keepalive_connections=0),
        "headers": {"accept-encoding": "identity"},
        "follow_redirects": False,
        "trust_env": not is_this_machine(address),
        "event_hooks": {"request": [_on_request], "response": [_on_response]},
    }


def _on_request(request: Request) -> None:
    if (exchange := _exchange.get()) is not None:
        request.extensions = {**request.extensions, "trace": exchange.trace}


def _on_response(response: Response) -> None:
    if (exchange := _exchange.get()) is not None:
        exchange.receive(response)


def _shut_down(connection: socket.socket) -> None:
    import socket

    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is closed already
        return


def count(said: object) -> int | None:
    """Return a token count reported by a server; None if it cannot be right."""
    return said if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= _MAX_TOKENS else None


def is_this_machine(address: str) -> bool:
    """Return whether an address is one of this machine."""
    try:
        host = urlsplit(address if "://" in address else f"//{address}").hostname
        return host is None or host == "localhost" or _is_local(ipaddress.ip_address(host))
    except ValueError:
        return False


def _is_local(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.is_loopback or address.is_unspecified
