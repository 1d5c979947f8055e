"""The agent programs that are known: whose hooks are answered, and what connects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from memgraph.errors import InvalidInputError
from memgraph.interfaces.agents.clients import claude_code, codex, copilot, cursor, gemini, opencode
from memgraph.interfaces.agents.clients.claude_shape import ClaudeShape
from memgraph.interfaces.agents.clients.codex_hooks import CodexShape
from memgraph.interfaces.agents.connecting.connector import Connector
from memgraph.interfaces.agents.events import HookClient

HOOK_CLIENTS: Mapping[str, HookClient] = {
    one.name: one
    for one in (
        ClaudeShape("claude-code"),
        CodexShape(),
        copilot.CopilotShape(copilot.NAME),
        gemini.GeminiShape(gemini.NAME, gemini.KINDS),
        cursor.CursorShape(cursor.NAME, cursor.KINDS),
    )
}


def connectors(release: str) -> list[Connector]:
    """Return all known agent programs."""
    return [
        claude_code.connector(release),
        codex.connector(),
        copilot.connector(),
        gemini.connector(),
        opencode.connector(),
        cursor.connector(),
    ]


def connector_of(name: str, release: str) -> Connector:
    """Return the agent program of this name.

    Raises
    ------
    InvalidInputError
        None has this name.
    """
    known = {one.name: one for one in connectors(release)}
    if name not in known:
        raise InvalidInputError(f"must be one of {', '.join(known)}", field="agent", value=name)
    return known[name]


def transcripts_of(name: str) -> Path:
    """Return the directory of a program's transcripts.

    Raises
    ------
    InvalidInputError
        Those of this program cannot be read.
    """
    if name not in _TRANSCRIPTS:
        readable = " and ".join(_TRANSCRIPTS)
        raise InvalidInputError(f"has no sessions that can be read; only {readable} have", field="agent", value=name)
    return _TRANSCRIPTS[name]()


_TRANSCRIPTS: Mapping[str, Callable[[], Path]] = {
    "claude-code": claude_code.transcripts_folder,
    "codex": codex.transcripts_folder,
}
