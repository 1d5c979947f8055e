"""Servers of models: requests of JSON, with limits on the time and the size of an exchange, and every failure as one error.

Importing this module does not import httpx, which would take a third of a second.
"""

from __future__ import annotations

import ipaddress
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar
from urllib.parse import urlsplit

from memgraph.errors import ProviderError
from memgraph.model.base import has_credentials, without_credentials

if TYPE_CHECKING:
    import socket

    from httpx import Client, Request, Response

TIMEOUT_S = 60.0
CONNECT_TIMEOUT_S = 5.0
BYTES_A_TOKEN = 64
"""A response may have this many bytes for each token of the reply that was asked for."""
ENVELOPE_BYTES = 65_536
"""A response may have this many bytes besides those of the reply."""
PAUSE_S = 15.0
_MAX_TOKENS = 10_000_000
"""A larger token count reported by a server is an error."""
_MAX_SAID_CHARS = 200
_UNANSWERED = 2
_OF_THE_CLIENT = "ALL_PROXY, HTTP_PROXY, HTTPS_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
"""Environment variables that httpx reads."""
T = TypeVar("T")

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


class ModelServer:
    """One server of models. Every failure of client, network or server is a `ProviderError` that says what to do.

    No connection is kept open between requests, so nothing has to be closed and a forked process shares no socket.
    Redirects are not followed, and a server on this machine is never called through a proxy: texts are sent only to the
    configured address. `timeout_s` is for a whole request. After two unanswered requests in a row, requests fail immediately for
    `pause_s`: otherwise hundreds of batches would each wait for an absent server.
    """

    KIND: ClassVar[str] = "server"
    START: ClassVar[str] = "start it"
    ADDRESS: ClassVar[str]
    """How to give the right address."""
    CREDENTIALS: ClassVar[str]
    """What to do about a user name and password in the address."""
    SLOW: ClassVar[str]
    """The setting of the timeout."""
    KEY_VARIABLE: ClassVar[str] = ""

    def __init__(self, address: str, *, timeout_s: float, pause_s: float = PAUSE_S, key: str = "") -> None:
        self._address, self._key = address, key
        self.timeout_s = timeout_s
        self._pause_s = pause_s
        self._unanswered = 0
        self._asked_again_at = 0.0
        self._problem = ""

    @property
    def host(self) -> str:
        """The address for display: without user name and password."""
        return without_credentials(self._address)

    def ask(self, path: str, request: Mapping[str, Any], *, model: str, max_bytes: int, read: Callable[[Any], T]) -> T:
        """Post a request that concerns a model, and return what `read` finds in the answer."""
        if self._unanswered >= _UNANSWERED and time.monotonic() < self._asked_again_at:
            raise self.failed(model, self._problem)
        if has_credentials(self._address):
            why = f"a user name and password are not accepted in the address of {self.host}; {self.CREDENTIALS}"
            raise self.failed(model, why)
        if not _is_address(self.url()):
            article = "an" if self.KIND[0] in "AEIOU" else "a"
            why = f"{self.host or 'an empty text'} is not the address of {article} {self.KIND}; {self.ADDRESS}"
            raise self.failed(model, why)
        status, body = self._posted(path, request, model, max_bytes + ENVELOPE_BYTES)
        self._unanswered = 0
        if status != 200:
            said = _message_in(body)
            raise self.failed(model, self.refused(model, status, said), status=status, server_says=self.shown(said))
        try:
            return read(json.loads(body))
        except (ValueError, LookupError, TypeError, RecursionError) as error:  # no JSON, or JSON of another shape
            why = f"the {self.KIND} at {self.host} returned an invalid answer for {model} ({type(error).__name__}); {self.ADDRESS}"
            raise self.failed(model, why) from error

    def refused(self, model: str, status: int, said: str) -> str:  # noqa: ARG002 - a server's own statuses
        """Return what a status means and what to do about it; `said` is the server's message."""
        if 300 <= status < 400:
            return f"the {self.KIND} at {self.host} answered with a redirect; {self.ADDRESS} that is its target"
        return f"the {self.KIND} at {self.host} refused a request for {model} with status {status}"

    def shown(self, said: str) -> str:
        """Return a server's message as it may be shown."""
        return " ".join(said.split())[:_MAX_SAID_CHARS]

    def failed(self, model: str, problem: str, *, status: int | None = None, server_says: str = "") -> ProviderError:
        """Return the error of a request that concerns a model."""
        return ProviderError(problem, model=model, host=self.host, status=status, server_says=server_says)

    def url(self) -> str:
        """Return the address that is asked."""
        return self._address

    @cached_property
    def _client(self) -> Client:
        """The client, made at the first request: it reads certificates."""
        import httpx

        return httpx.Client(**client_options(self._address, timeout_s=self.timeout_s))

    def _posted(self, path: str, request: Mapping[str, Any], model: str, max_bytes: int) -> tuple[int, bytes]:
        """Return the status and the body, read up to the maximum size and time."""
        import httpx

        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {self._key}"} if self._key else {})
        server = f"the {self.KIND} at {self.host}"
        try:
            client = self._client
        except (
            ImportError,
            OSError,
            ValueError,
        ) as error:  # its message is left out: an address in it may contain a password
            why = f"{server} cannot be asked for {model} in this environment ({type(error).__name__}): correct or unset {_OF_THE_CLIENT}"
            raise self.failed(model, why) from error
        try:
            with Exchange(timeout_s=self.timeout_s, max_bytes=max_bytes):
                response = client.post(f"{self.url()}{path}", content=json.dumps(request), headers=headers)
                return response.status_code, response.content
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError, ResponseTooLongError) as error:
            cause = error
        match cause:
            case httpx.ConnectError() | httpx.ConnectTimeout():
                raise self._unanswering(
                    model, f"no {self.KIND} answers at {self.host}; {self.START}, or {self.ADDRESS}"
                ) from cause
            case TimeoutError() | httpx.TimeoutException():
                why = f"{server} did not answer for {model} within {self.timeout_s:g} s; raise {self.SLOW}, or use a smaller model"
                raise self._unanswering(model, why) from cause
            case httpx.InvalidURL() | httpx.LocalProtocolError() | UnicodeError():
                why = f"the request to {self.host} cannot be made; {self.ADDRESS}, and check {self.KEY_VARIABLE}"
            case ResponseTooLongError():
                why = f"{server} cannot be used for {model}: {cause}"
            case _:
                why = f"{server} closed the connection while answering for {model} ({type(cause).__name__}); try again"
        raise self.failed(model, why) from cause

    def _unanswering(self, model: str, problem: str) -> ProviderError:
        self._unanswered += 1
        self._asked_again_at = time.monotonic() + self._pause_s
        self._problem = problem
        return self.failed(model, problem)


def _is_address(address: str) -> bool:
    """Return whether a text is an address that can be asked."""
    try:
        parts = urlsplit(address)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _message_in(body: bytes) -> str:
    """Return the message of a refusal, in one of the usual forms; of what is no JSON the text itself."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return body[: 4 * _MAX_SAID_CHARS].decode("utf-8", "replace")
    error = found.get("error", found) if isinstance(found, dict) else found
    said = error.get("message", "") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


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
