"""``mcp``: serve the operations to an agent's client over MCP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, agent_options, pass_settings
from memgraph.interfaces.cli.base.output import notice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memgraph.facade import MemGraph
    from memgraph.interfaces.operations import Caller

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
HERE = "."
"""As a project: that of the directory in which the server is started."""
SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"


@click.command(cls=Command, params=agent_options())
@click.option(
    "--toolset",
    type=click.Choice(("core", "full")),
    default="core",
    show_default=True,
    help="The seven tools that an agent needs, or all of them.",
)
@click.option(
    "--project",
    metavar="NAME",
    help=f"Default: the git work tree, or else the directory, that {PROJECT_VARIABLE} names. A dot: those in which the server is started.",
)
@click.option("--session", metavar="ID", help=f"Default: {SESSION_VARIABLE}, if it is set.")
@click.option(
    "--answer-orders",
    "answers_orders",
    is_flag=True,
    help="Ask the client's model to answer open work orders, up to three a session, if the client offers sampling.",
)
@pass_settings
def mcp(settings: Settings, toolset: Any, project: str | None, session: str | None, answers_orders: bool) -> None:
    """Serve the store to agents over MCP, on standard input and output."""
    from memgraph.errors import MissingExtraError

    try:
        from memgraph.interfaces.mcp.stdio import serve
        from memgraph.interfaces.resident import Resident
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types", "anyio"}:
            raise
        raise MissingExtraError("MCP servers", package="mcp", extra="mcp") from None
    if sys.stdin.isatty():
        notice("waiting for an MCP client on standard input; `memgraph docs mcp` says how to configure one")
    caller = caller_of(settings, os.environ, project=project, session=session)
    with logs_shown(settings):
        serve(Resident(lambda: _opened(settings)), caller, toolset=toolset, answers_orders=answers_orders)


def caller_of(
    settings: Settings, environment: Mapping[str, str], *, project: str | None, session: str | None
) -> Caller:
    """Return who calls: what the options say, else what the client's environment says."""
    directory = str(Path.cwd()) if project == HERE else environment.get(PROJECT_VARIABLE, "").strip()
    from memgraph.extraction.readers.source import project_of_directory
    from memgraph.interfaces.operations import Caller

    given = {
        "agent": settings.agent,
        "justification": settings.justification,
        "project": project if project and project != HERE else project_of_directory(directory),
        "session": session or environment.get(SESSION_VARIABLE, "").strip(),
    }
    return Caller.parse({name: value for name, value in given.items() if value})


def _opened(settings: Settings) -> MemGraph:
    from memgraph.config import load_config
    from memgraph.facade import MemGraph
    from memgraph.store import AgentMemoryStore

    return MemGraph(AgentMemoryStore(load_config({"home": settings.home}), embedder=settings.embedder))
