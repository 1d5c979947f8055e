"""The agent programs that are known, a row each: what connects them, whose hooks are answered and whose sessions are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from memgraph.errors import InvalidInputError
from memgraph.interfaces.agents.clients import claude_code, codex, copilot, cursor, gemini, opencode
from memgraph.interfaces.agents.clients.claude_shape import ClaudeShape
from memgraph.interfaces.agents.clients.codex import CodexShape
from memgraph.interfaces.agents.connecting.connector import Connector
from memgraph.interfaces.agents.events import HookClient


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent program.

    Attributes
    ----------
    name : str
        As in ``memgraph connect NAME``.
    connector : callable
        Called with the release of memgraph, returns what connects the program.
    shape : HookClient, optional
        How its hooks are read and answered.
    transcripts : callable, optional
        Returns the directory of its sessions' transcripts, if these can be read.
    start_event : str
        Name of the event at whose hook the kept overview is printed while no worker runs; "" for none.
    """

    name: str
    connector: Callable[[str], Connector]
    shape: HookClient | None = None
    transcripts: Callable[[], Path] | None = None
    start_event: str = ""


AGENTS: Mapping[str, Agent] = {
    one.name: one
    for one in (
        Agent(
            "claude-code",
            claude_code.connector,
            ClaudeShape("claude-code"),
            claude_code.transcripts_folder,
            start_event="SessionStart",
        ),
        Agent(
            codex.NAME,
            lambda _release: codex.connector(),
            CodexShape(),
            codex.transcripts_folder,
            start_event="SessionStart",
        ),
        Agent(copilot.NAME, lambda _release: copilot.connector(), copilot.CopilotShape(copilot.NAME)),
        Agent(gemini.NAME, lambda _release: gemini.connector(), gemini.GeminiShape(gemini.NAME, gemini.KINDS)),
        Agent(opencode.NAME, lambda _release: opencode.connector()),
        Agent(cursor.NAME, lambda _release: cursor.connector(), cursor.CursorShape(cursor.NAME, cursor.KINDS)),
    )
}


def connectors(release: str) -> list[Connector]:
    """Return what connects each of the known agent programs."""
    return [one.connector(release) for one in AGENTS.values()]


def connector_of(name: str, release: str) -> Connector:
    """Return what connects the agent program of this name.

    Raises
    ------
    InvalidInputError
        None has this name.
    """
    return _agent(name).connector(release)


def shape_of(name: str) -> HookClient:
    """Return how a program's hooks are read and answered.

    Raises
    ------
    InvalidInputError
        None has this name, or it has no hooks that are answered.
    """
    shape = _agent(name).shape
    if shape is None:
        raise InvalidInputError("has no hooks that are answered", field="agent", value=name)
    return shape


def transcripts_of(name: str) -> Path:
    """Return the directory of a program's transcripts.

    Raises
    ------
    InvalidInputError
        None has this name, or those of this program cannot be read.
    """
    transcripts = _agent(name).transcripts
    if transcripts is None:
        readable = " and ".join(one.name for one in AGENTS.values() if one.transcripts)
        raise InvalidInputError(f"has no sessions that can be read; only {readable} have", field="agent", value=name)
    return transcripts()


def _agent(name: str) -> Agent:
    if name not in AGENTS:
        raise InvalidInputError(f"must be one of {', '.join(AGENTS)}", field="agent", value=name)
    return AGENTS[name]
