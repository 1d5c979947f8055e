"""The doors through which the contract tests of operations go, as a table: each opens on a store for a caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from memgraph import MemGraph
from memgraph.errors import MemGraphError
from memgraph.interfaces.operations import Answer, Caller, perform
from memgraph.interfaces.refusals import message_of


class RefusedError(Exception):
    """The operation was refused; the message is what the caller gets."""


Door = Callable[[str, Mapping[str, Any]], Answer]
"""Calls an operation by its name and returns the answer, or raises `RefusedError`. A door for language models gives no data."""


@contextmanager
def directly(memory: MemGraph, caller: Caller) -> Iterator[Door]:
    """Call the operations in this process."""

    def call(name: str, arguments: Mapping[str, Any]) -> Answer:
        try:
            return perform(memory, caller, name, arguments)
        except MemGraphError as error:
            raise RefusedError(message_of(error)) from None

    yield call


@contextmanager
def over_mcp(memory: MemGraph, caller: Caller) -> Iterator[Door]:
    """Call them as tools of the MCP server, with the official client and a transport in memory."""
    from anyio.from_thread import start_blocking_portal
    from mcp import Client

    from memgraph.interfaces.mcp.server import server_of

    server = server_of(
        lambda name, arguments, progress: perform(memory, caller, name, arguments, progress=progress), toolset="full"
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:

        def call(name: str, arguments: Mapping[str, Any]) -> Answer:
            found = portal.call(client.call_tool, name, dict(arguments))
            [content] = found.content
            assert found.structured_content is None
            if found.is_error:
                raise RefusedError(content.text)
            return Answer(text=content.text, data={})

        yield call


@contextmanager
def over_http(memory: MemGraph, caller: Caller) -> Iterator[Door]:
    """POST to the server's application with a token of the caller's agent."""
    from starlette.testclient import TestClient

    from memgraph.interfaces.http.access.gate import Gate
    from memgraph.interfaces.http.access.stores import Stores
    from memgraph.interfaces.http.access.tokens import token_file
    from memgraph.interfaces.http.app import app_of

    home = memory.store.config.home
    tokens = token_file(home)
    _, secret = tokens.create("admin", agent=caller.agent, justification=caller.justification)
    given = {"Memgraph-Project": caller.project, "Memgraph-Session": caller.session}
    headers = {"Authorization": f"Bearer {secret}", **{name: value for name, value in given.items() if value}}
    app = app_of(Gate(Stores(lambda _: home, lambda _: memory), tokens), close_stores=False)
    with TestClient(app, headers=headers) as client:

        def call(name: str, arguments: Mapping[str, Any]) -> Answer:
            found = client.post(f"/v1/{name}", json=arguments)
            if found.is_error:
                assert found.headers["content-type"] == "application/problem+json"
                raise RefusedError(found.json()["detail"])
            return Answer(**found.json())

        yield call


DOORS: Mapping[str, Callable[[MemGraph, Caller], AbstractContextManager[Door]]] = {
    "direct": directly,
    "mcp": over_mcp,
    "http": over_http,
}
