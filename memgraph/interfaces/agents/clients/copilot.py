"""GitHub Copilot CLI: an MCP server in its ``mcp-config.json``, hooks in a file of memgraph's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from memgraph.interfaces.agents.clients.claude_shape import ClaudeShape
from memgraph.interfaces.agents.connecting.change import Change
from memgraph.interfaces.agents.connecting.connector import Connector
from memgraph.interfaces.agents.connecting.files import OwnFiles
from memgraph.interfaces.agents.connecting.merged import Entry, MergedFile
from memgraph.interfaces.agents.connecting.programs import (
    hook_command,
    is_memgraphs,
    server_command,
    server_environment,
    user_folder,
)
from memgraph.interfaces.agents.connecting.receipt import Options
from memgraph.interfaces.agents.events import HookEvent
from memgraph.text import lazy_re as re

NAME = "copilot"
_BUDGETS_S = {"sessionStart": 5, "userPromptSubmitted": 3, "postToolUse": 3, "postToolUseFailure": 3}
"""Seconds that a hook may take, by event."""
_MORE_S = 2
_EXIT_CODE = re.compile(r"<shellId: \S{1,40} completed with exit code [1-9]\d{0,4}>\s*$")


class CopilotShape(ClaudeShape):
    """The hooks of Copilot: names in camelCase, and no name of the event, which its fields tell."""

    def event_of(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what a payload reports; None if there is nothing to do."""
        named = {
            "hook_event_name": self._event(payload),
            "session_id": payload.get("sessionId"),
            "cwd": payload.get("cwd"),
            "source": payload.get("source"),
            "prompt": payload.get("prompt"),
            "tool_name": payload.get("toolName"),
            "tool_input": payload.get("toolArgs"),
            "error": _error(payload),
        }
        return super().event_of(named)

    def answer(self, _payload: Mapping[str, Any], text: str) -> str:
        """Return the JSON that adds a text to the agent's context."""
        return json.dumps({"additionalContext": text})

    @staticmethod
    def _event(payload: Mapping[str, Any]) -> str:
        if "prompt" in payload:
            return "UserPromptSubmit"
        if "toolName" in payload:
            return "PostToolUseFailure" if _error(payload) else ""
        return "SessionStart" if "source" in payload else ""


def _error(payload: Mapping[str, Any]) -> object:
    """Return how a tool failed: its error, or the output of a command with an exit code, which Copilot counts as a success."""
    error, result = payload.get("error"), payload.get("toolResult")
    if isinstance(error, dict):
        return error.get("message")
    text = result.get("textResultForLlm") if isinstance(result, dict) else None
    return error or (text if isinstance(text, str) and _EXIT_CODE.search(text) else None)


def copilot_folder() -> Path:
    """Return the user's directory of Copilot."""
    return user_folder("COPILOT_HOME", ".copilot")


def changes(options: Options) -> list[Change]:
    """Return what connecting writes."""
    command = server_command(NAME, options)
    server = {
        "type": "local",
        "command": command[0],
        "args": command[1:],
        "env": server_environment(options),
        "tools": ["*"],
    }
    hooks = {event: [_hook(options, budget_s)] for event, budget_s in _BUDGETS_S.items()}
    own = json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"
    return [
        MergedFile(
            copilot_folder() / "mcp-config.json",
            [Entry(("mcpServers", "memgraph"), server)],
            partial(is_memgraphs, NAME),
        ),
        OwnFiles(copilot_folder() / "hooks", {"memgraph.json": own.encode()}, is_own_folder=False),
    ]


def _hook(options: Options, budget_s: int) -> dict[str, Any]:
    return {
        "type": "command",
        "bash": hook_command(NAME, options, budget_s=budget_s),
        "timeoutSec": budget_s + _MORE_S,
    }


def connector() -> Connector:
    """Return what connects Copilot."""
    return Connector(NAME, "GitHub Copilot CLI", ("copilot",), copilot_folder, changes, hint="Start a new session.")
