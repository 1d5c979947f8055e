"""Cursor: an MCP server in its ``mcp.json``, a hook in its ``hooks.json``. It takes context when a session starts, not at prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from memgraph.interfaces.agents.clients.claude_shape import ClaudeShape
from memgraph.interfaces.agents.connecting.change import Change
from memgraph.interfaces.agents.connecting.connector import Connector
from memgraph.interfaces.agents.connecting.merged import Entry, MergedFile
from memgraph.interfaces.agents.connecting.programs import (
    home_folder,
    hook_command,
    is_memgraphs,
    server_command,
    server_environment,
)
from memgraph.interfaces.agents.connecting.receipt import Options
from memgraph.interfaces.agents.events import EventKind, HookEvent

NAME = "cursor"
KINDS: Mapping[str, EventKind] = {"sessionStart": "session started"}
_BUDGET_S = 5


class CursorShape(ClaudeShape):
    """The hooks of Cursor."""

    def event_of(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what a payload reports; None if there is nothing to do."""
        roots = payload.get("workspace_roots")
        root = roots[0] if isinstance(roots, list) and roots else None
        named = {"session_id": payload.get("conversation_id"), "cwd": root} | dict(payload)
        return super().event_of(named)

    def answer(self, _payload: Mapping[str, Any], text: str) -> str:
        """Return the JSON that adds a text to the agent's context."""
        return json.dumps({"additional_context": text})


def cursor_folder() -> Path:
    """Return the user's directory of Cursor."""
    return home_folder() / ".cursor"


def changes(options: Options) -> list[Change]:
    """Return what connecting writes."""
    command = server_command(NAME, options)
    server = {"command": command[0], "args": command[1:], "env": server_environment(options)}
    hook = {"command": hook_command(NAME, options, budget_s=_BUDGET_S)}
    hooks = [Entry(("hooks", event), hook, is_item=True) for event in KINDS]
    return [
        MergedFile(
            cursor_folder() / "mcp.json", [Entry(("mcpServers", "memgraph"), server)], partial(is_memgraphs, NAME)
        ),
        MergedFile(cursor_folder() / "hooks.json", [Entry(("version",), 1), *hooks], partial(is_memgraphs, NAME)),
    ]


def connector() -> Connector:
    """Return what connects Cursor."""
    return Connector(NAME, "Cursor", ("cursor", "cursor-agent"), cursor_folder, changes, hint="Start a new session.")
