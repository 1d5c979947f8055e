"""The gate: decides from the token who calls and what is allowed, and runs operations for it, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Condition
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import HTTPConnection

from memgraph.errors import MemGraphError, PermissionDeniedError
from memgraph.interfaces.http.access.refusals import RefusedTokenError, UnavailableError
from memgraph.interfaces.http.access.stores import Stores
from memgraph.interfaces.http.access.tokens import Scope, Token, TokenFile
from memgraph.interfaces.operations import OPERATIONS, Answer, Caller, perform
from memgraph.interfaces.operations.operation import Effect, Toolset
from memgraph.logs import logger_of
from memgraph.ports import Progress

logger = logger_of(__name__)
T = TypeVar("T")
ENDING = "the server is ending; send the request again, a write with the same Idempotency-Key"
NEEDS: Mapping[Effect, Scope] = {"read": "read", "write": "write", "maintain": "admin"}
"""The scope that an operation needs, by its effect."""


class Slots:
    """Slots for one kind of operation, given in order of arrival; no client gets more than `each`.

    Parameters
    ----------
    total : int
        Operations that run at the same time.
    each : int
        Those of one client.
    """

    def __init__(self, total: int, each: int) -> None:
        self._all = CapacityLimiter(total)
        self._each = each
        self._of_client: dict[str, CapacityLimiter] = {}

    async def run(self, client: str, call: Callable[[], T]) -> T:
        """Run a function in a thread when a slot is free."""
        async with self._of_client.setdefault(client, CapacityLimiter(self._each)):
            return await to_thread.run_sync(call, limiter=self._all)


class Gate:
    """Knows the tokens and the stores.

    Parameters
    ----------
    tokens : TokenFile or None
        None: whoever reaches the server acts as `unasked`. The server then listens on loopback only.
    unasked : Token
        What a request without a token may do, if there are no tokens.
    """

    def __init__(self, stores: Stores, tokens: TokenFile | None, *, unasked: Token | None = None) -> None:
        self.stores = stores
        self._tokens = tokens
        self._unasked = unasked
        # A query may take half a minute, and maintenance an hour: each kind has slots of its own, so that it delays no other.
        slots = {None: (4, 2), "query": (2, 1), "sleep": (1, 1)}
        self._slots = {kind: Slots(total, each if self.asks else total) for kind, (total, each) in slots.items()}
        self._turn = Condition()
        self._working = 0
        self._is_closed = False
        self.is_ending = False
        """Whether the server is ending: it takes no more requests."""

    @property
    def asks(self) -> bool:
        """Whether requests need a token."""
        return self._tokens is not None

    def token_of(self, secret: str | None) -> Token:
        """Return what a presented token allows.

        Raises
        ------
        RefusedTokenError
        UnavailableError
            The tokens cannot be read. The cause, with its paths, is in the log alone.
        """
        if self._tokens is None:
            if self._unasked is None:
                raise RefusedTokenError("this server has no tokens; run `memgraph token create`")
            return self._unasked
        if not secret:
            raise RefusedTokenError("this server needs a token: send the header `Authorization: Bearer TOKEN`")
        try:
            return self._tokens.verified(secret)
        except RefusedTokenError:
            raise
        except (MemGraphError, OSError) as error:
            logger.error("tokens cannot be read: %s", error)
            raise UnavailableError("the tokens cannot be read; ask who runs the server") from None

    def run(
        self,
        token: Token,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        *,
        key: str | None = None,
        toolset: Toolset = "full",
        progress: Progress | None = None,
    ) -> tuple[Answer, bool]:
        """Run an operation; return the answer, and whether it was kept from an earlier request with this key.

        Raises
        ------
        PermissionDeniedError
            The token does not allow it.
        MemGraphError
            What the operation raises.
        """
        operation = OPERATIONS.get(name)
        if operation is not None:  # `perform` says what there is instead
            check(token, NEEDS[operation.effect])
        memory = self.stores.memory(token.tenant)
        call = partial(perform, memory, caller, name, arguments, toolset=toolset, progress=progress)
        if key is None or operation is None or operation.effect != "write":
            return call(), False
        return self.stores.answers(token.tenant).once(
            key,
            owner=token.id,
            request={"operation": name, "arguments": arguments, "caller": caller.model_dump(mode="json")},
            requests=memory.store.auditing.requests,
            run=call,
            is_one_commit=operation.is_one_commit,
        )

    async def in_thread(self, token: Token, name: str, call: Callable[[], T]) -> T:
        """Run what an operation needs in one of its few slots. Once begun it ends by itself, whatever becomes of the request; `close` waits for it."""

        def run() -> T:
            with self.working():
                return call()

        return await self._slots.get(name, self._slots[None]).run(token.client, run)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Keep the stores open for a block. In the thread that uses them.

        Raises
        ------
        UnavailableError
            The stores were closed.
        """
        with self._turn:
            if self._is_closed:
                raise UnavailableError(ENDING)
            self._working += 1
        try:
            yield
        finally:
            with self._turn:
                self._working -= 1
                self._turn.notify_all()

    def close(self, *, wait_s: float) -> None:
        """Close the stores when nothing uses them any more. After `wait_s` seconds leave them open: what is stored is safe without closing."""
        self.is_ending = True
        with self._turn:
            is_idle = self._turn.wait_for(lambda: self._working == 0, wait_s)
            self._is_closed = True
        if is_idle:
            self.stores.close()
        else:
            logger.error("%d operations still run after %g s; their stores are not closed", self._working, wait_s)


def check(token: Token, scope: Scope) -> None:
    """Refuse a token that does not allow a scope.

    Raises
    ------
    PermissionDeniedError
    """
    if not token.allows(scope):
        problem = (
            f"this needs a token of scope {scope}, and this one has {token.scope}; ask who runs the server for another"
        )
        raise PermissionDeniedError(problem, agent=token.agent)


def bearer(connection: HTTPConnection) -> str | None:
    """Return the token in the Authorization header."""
    kind, _, secret = connection.headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None
