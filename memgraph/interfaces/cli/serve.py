"""``serve`` and ``token``: serve stores over HTTP, and make the tokens of those who may call."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, Subgroup, agent_options, pass_settings
from memgraph.interfaces.cli.base.output import emit, notice, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from memgraph.facade import MemGraph
    from memgraph.interfaces.http.access.tokens import TokenFile

_PARTS = {"mcp", "mcp_types", "anyio", "starlette", "uvicorn", "prometheus_client"}


_root = click.option(
    "--root", metavar="DIR", help="Directory of several stores, one for each tenant, instead of --home."
)


@click.command(cls=Command, params=agent_options())
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8321, show_default=True, help="Port; 0 takes a free one."
)
@_root
@click.option("--without-tokens", is_flag=True, help="Ask for no token although there are some, or all were revoked.")
@pass_settings
def serve(settings: Settings, host: str, port: int, root: str | None, without_tokens: bool) -> None:
    """Serve the store over HTTP until interrupted: REST under /v1, MCP under /mcp, pages at /."""
    from memgraph.errors import MissingExtraError
    from memgraph.interfaces.operations import Caller

    try:
        from memgraph.interfaces.http import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PARTS:
            raise
        raise MissingExtraError("HTTP servers", package=error.name or "uvicorn", extra="server") from None

    given = {"agent": settings.agent, "justification": settings.justification}
    caller = Caller.parse({name: value for name, value in given.items() if value})
    place = _place(settings, root)
    with logs_shown(settings), ExitStack() as held:
        gate = run.gate_of(
            place,
            has_tenants=root is not None,
            caller=caller,
            open_store=_opener(settings),
            without_tokens=without_tokens,
        )
        held.enter_context(run.alone(place))
        listening = run.listener(host, port, asks=gate.asks)
        at = listening.getsockname()
        address = f"http://{f'[{at[0]}]' if ':' in at[0] else at[0]}:{at[1]}"
        access = "with tokens" if gate.asks else "without tokens, for this machine alone"
        emit(settings, {"address": address, "has_tokens": gate.asks}, f"Serving at {address}, {access}.")
        sys.stdout.flush()
        run.serve(gate, listening, on_limit=limit_reporter(place))


@click.group(cls=Subgroup)
def token() -> None:
    """Make, list or revoke the tokens of those who may call `memgraph serve`."""


@token.command(params=agent_options())
@click.option(
    "--scope",
    type=click.Choice(("read", "write", "admin")),
    default="write",
    show_default=True,
    help="read: recall and look; write: store and correct, too; admin: maintenance, too.",
)
@click.option("--tenant", metavar="NAME", help="The tenant's store under --root.")
@click.option("--project", metavar="NAME", help="The only project of its calls; another one is refused.")
@click.option(
    "--days", type=click.FloatRange(min=0, min_open=True, max=36_500), help="Days until it expires; default: never."
)
@_root
@pass_settings
def create(settings: Settings, /, root: str | None, **given: Any) -> None:
    """Make a token and print it once: the server keeps only its hash."""
    if (root is None) != (given["tenant"] is None):
        raise click.UsageError("--root and --tenant belong together: a tenant is a store under a root")
    made, secret = _tokens(settings, root).create(agent=settings.agent, justification=settings.justification, **given)
    document = {**made.model_dump(mode="json", exclude={"sha256"}), "token": secret}
    emit(settings, document, secret)
    notice(f"this is token {made.id}, for agent {plain(made.agent)}; it is not shown again")


@token.command("list")
@_root
@pass_settings
def list_(settings: Settings, root: str | None) -> None:
    """List the tokens: their numbers, scopes, agents and tenants, never themselves."""
    found = _tokens(settings, root).list()
    lines = [
        "  ".join(
            [
                one.id,
                one.scope,
                plain(one.agent),
                *([one.tenant] if one.tenant else []),
                f"expires {one.expires_at or 'never'}",
            ]
        )
        for one in found
    ]
    emit(
        settings, [one.model_dump(mode="json", exclude={"sha256"}) for one in found], lines or ["There are no tokens."]
    )


@token.command()
@click.argument("number", metavar="TOKEN_ID")
@_root
@pass_settings
def revoke(settings: Settings, number: str, root: str | None) -> None:
    """Revoke the token of this number; a running server refuses it from its next request on."""
    found = _tokens(settings, root).revoke(number)
    emit(settings, {"revoked": found.id}, f"Revoked: {found.id}")


def _tokens(settings: Settings, root: str | None) -> TokenFile:
    from memgraph.interfaces.http.access.tokens import token_file

    return token_file(_place(settings, root))


def _place(settings: Settings, root: str | None) -> Path:
    from memgraph.config import config_path

    if root is not None and settings.home is not None:
        raise click.UsageError("give --root or --home: a root holds several stores, --home is one")
    return config_path(settings.home).parent if root is None else Path(root).expanduser().absolute()


def limit_reporter(place: Path) -> Callable[[str, int, int], None]:
    """Return what reports a limit of the server, to the receivers that the environment names."""
    from memgraph.config import load_config
    from memgraph.diagnostics.delivery import Repeats
    from memgraph.diagnostics.reports import BETWEEN_S, report_quota
    from memgraph.model.timestamps import to_iso
    from memgraph.store.opening import utc_now

    config, shared = load_config({"home": place}), {"store_id": None, "repeats": Repeats(between_s=BETWEEN_S)}

    def reached(name: str, value: int, limit: int) -> None:
        given: dict[str, Any] = {**shared, "now": lambda: to_iso(utc_now()), "value": value, "limit": limit}
        if name == "requests":
            report_quota(config, "server_requests", unit="requests", **given)
        else:
            report_quota(config, "server_bodies", unit="bytes", **given)

    return reached


def _opener(settings: Settings) -> Callable[[Path], MemGraph]:
    """Return what opens a store."""
    from memgraph.config import home_of, load_config
    from memgraph.facade import MemGraph
    from memgraph.store import AgentMemoryStore

    own = home_of(settings.home)[0]  # whose place may be a server

    def opened(home: Path) -> MemGraph:
        config = load_config({"home": settings.home if home == own else home})
        return MemGraph(AgentMemoryStore(config, embedder=settings.embedder))

    return opened
