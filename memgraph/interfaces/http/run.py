"""Runs the server: decides where it may listen, and ends it without losing what was accepted."""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import uvicorn
from starlette.types import Receive, Scope, Send

from memgraph.errors import InvalidInputError
from memgraph.interfaces.http.access.gate import Gate
from memgraph.interfaces.http.access.refusals import RefusedTokenError
from memgraph.interfaces.http.access.stores import Stores, lock_of
from memgraph.interfaces.http.access.tokens import Token, token_file
from memgraph.interfaces.http.app import app_of
from memgraph.interfaces.http.limits import HeadTimed, Limits, OnLimit, ignore
from memgraph.interfaces.http.problems import problem
from memgraph.interfaces.operations import Caller

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

_GIVE_BACK_S = 1.0
"""Freed memory is given back so often."""
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
"""Options of ``mallopt`` of the GNU C library."""
_ARENAS = 1
_MAPPED_FROM_BYTES = 64 << 10


def _library() -> ctypes.CDLL | None:
    """Return the C library if it is GNU's: others have no such options."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None


def limit_heaps() -> None:
    """Keep what threads free together, not in a heap for each few of them. Before they are started."""
    if library := _library():
        library.mallopt(_M_ARENA_MAX, _ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)


def give_back() -> None:
    """Give the system the memory that was freed."""
    if library := _library():
        library.malloc_trim(0)


@contextmanager
def alone(place: Path) -> Iterator[None]:
    """Be the only server of a place for a block: a server knows by itself which requests of a key are running.

    Raises
    ------
    BusyError
        Another process serves it.
    """
    lock = lock_of(place)
    try:
        yield
    finally:
        lock.release()


def gate_of(
    place: Path,
    *,
    has_tenants: bool,
    caller: Caller,
    open_store: Callable[[Path], MemGraph],
    without_tokens: bool = False,
) -> Gate:
    """Return the gate of a server. It asks for tokens if any were ever made, even if all have been revoked.

    Parameters
    ----------
    place : Path
        The root of the tenants' stores, or the one store.
    caller : Caller
        For whom requests act if there are no tokens.
    without_tokens : bool
        Serve without tokens although there is a file of tokens.

    Raises
    ------
    InvalidInputError
        There are tenants and no tokens; or all tokens were revoked; or `caller` names an agent, and there are tokens.
    ConfigError
        The tokens cannot be read.
    """
    tokens = token_file(place)
    asks = tokens.exists and not without_tokens
    if asks and not tokens.list():
        problem = (
            "has no tokens left: all were revoked; run `memgraph token create`, or start it with --without-tokens "
            "to let everybody on this machine in"
        )
        raise InvalidInputError(problem, field="--root" if has_tenants else "--home", value=str(place))
    if asks and caller != Caller():
        problem = (
            "cannot be given to a server with tokens: the token decides the agent; give it to `memgraph token create`"
        )
        raise InvalidInputError(problem, field="--agent")
    if has_tenants and not asks:
        problem = "has no tokens, and which store a request means is what its token says; run `memgraph token create`"
        raise InvalidInputError(problem, field="--root", value=str(place))

    def home_of(tenant: str | None) -> Path:
        if (tenant is not None) != has_tenants:
            problem = "the token belongs to a server with several stores" if tenant else "the token names no store"
            raise RefusedTokenError(f"{problem}; ask who runs the server for another")
        return place if tenant is None else place / "stores" / tenant

    stores = Stores(home_of, open_store, locks=has_tenants)
    if asks:
        return Gate(stores, tokens)
    local = Token(
        id="loopback",
        sha256="",
        scope="admin",
        created_at="2000-01-01T00:00:00.000Z",
        **caller.model_dump(include={"agent", "justification", "project"}, exclude_none=True),
    )
    return Gate(stores, None, unasked=local)


def listener(host: str, port: int, *, asks: bool) -> socket.socket:
    """Return a listening socket.

    Raises
    ------
    InvalidInputError
        The address cannot be listened on, or is not loopback and the server has no tokens.
    """
    try:
        address = _address(host)
        if not asks and not address.is_loopback:
            problem = (
                "is reachable from other machines, and without tokens whoever reaches the server reads and changes "
                "all that it may; run `memgraph token create`, or listen on 127.0.0.1"
            )
            raise InvalidInputError(problem, field="--host", value=host)
        made = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((str(address), port))
            made.listen(128)
        except BaseException:
            made.close()
            raise
    except OSError as error:
        raise InvalidInputError(
            f"cannot be listened on: {error.strerror}; choose another", field="--port", value=port
        ) from None
    return made


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address of a host's name, or the one that it is."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return ipaddress.ip_address(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])


def serve(
    gate: Gate,
    listening: socket.socket,
    *,
    limits: Limits | None = None,
    on_start: Callable[[uvicorn.Server], None] = lambda _server: None,
    close_stores: bool = True,
    on_limit: OnLimit = ignore,
) -> None:
    """Serve until SIGTERM or SIGINT; then answer the requests that were taken, and close the stores.

    Parameters
    ----------
    on_start : callable
        Given the server before it runs: `should_exit` ends it in a thread, where it gets no signals.
    close_stores : bool
        Close the stores at the end.
    on_limit : callable
        Called when a request is refused because of a limit of the server; see `memgraph.interfaces.http.limits`.
    """
    within = limits or Limits()

    class Timed(HeadTimed):
        head_s = within.head_s
        stalled_s = within.stalled_s
        heads = max(1, within.connections // 4)
        begun: ClassVar[dict[str, dict[HeadTimed, None]]] = {}

    app = app_of(gate, limits=within, close_stores=close_stores, on_limit=on_limit)

    async def crowded(scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request of a connection too many; uvicorn's own limit does not say when to come again."""
        is_full = scope["type"] == "http" and len(server.server_state.connections) > within.connections
        detail = f"{within.connections} connections are open; send it again after the time in Retry-After"
        full = problem(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers={"Connection": "close"})
        await (full if is_full else app)(scope, receive, send)

    config = uvicorn.Config(
        crowded,
        http=Timed,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=int(within.head_s),
        timeout_graceful_shutdown=int(within.ending_s),
        h11_max_incomplete_event_size=16_384,
    )

    class Ending(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            gate.is_ending = True
            await super().shutdown(sockets)

    server, has_ended = Ending(config), threading.Event()

    def tidy() -> None:
        while not has_ended.wait(_GIVE_BACK_S):
            give_back()

    limit_heaps()
    tidying = threading.Thread(target=tidy, name="memory", daemon=True)
    tidying.start()
    on_start(server)
    try:
        server.run(sockets=[listening])
    finally:
        has_ended.set()
        tidying.join()
