"""Gemini CLI: an MCP server and hooks, both in its ``settings.json``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from memgraph.interfaces.agents.clients.claude_shape import ClaudeShape, failure_of
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
from memgraph.text import lazy_re as re

NAME = "gemini"
KINDS: Mapping[str, EventKind] = {
    "SessionStart": "session started",
    "BeforeAgent": "prompt submitted",
    "AfterTool": "tool failed",
}
_BUDGETS_S = {"SessionStart": 5, "BeforeAgent": 3, "AfterTool": 3}
"""Seconds that a hook may take, by event."""
_MORE_S = 2


_INJECTED = re.compile(r"<hook_context>.*?</hook_context>\s*", re.DOTALL)
_EXIT_CODE = re.compile(r"^Exit Code: [1-9]\d{0,4}$", re.MULTILINE)


class GeminiShape(ClaudeShape):
    """The hooks of Gemini CLI: Claude Code's shape with other names, and the error in the tool's response."""

    def event_of(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what a payload reports; None if there is nothing to do. A prompt may hold what a hook added before: that is left out."""
        prompt = payload.get("prompt")
        own = {"prompt": _INJECTED.sub("", prompt)} if isinstance(prompt, str) else {}
        return super().event_of({**payload, **own})

    def failure(self, payload: Mapping[str, Any]) -> str:
        """Return what was done and how it failed; "" if it did not, or it was a use of memgraph itself."""
        response = payload.get("tool_response")
        response = response if isinstance(response, dict) else {}
        error, told = response.get("error"), response.get("llmContent")
        error = error.get("message") if isinstance(error, dict) else error
        if not error and isinstance(told, str) and _EXIT_CODE.search(told):
            error = response.get("returnDisplay")
        return failure_of(payload.get("tool_name"), payload.get("tool_input"), error) if error else ""


def gemini_folder() -> Path:
    """Return the user's directory of Gemini CLI."""
    return home_folder() / ".gemini"


def changes(options: Options) -> list[Change]:
    """Return what connecting writes."""
    command = server_command(NAME, options)
    server = {"command": command[0], "args": command[1:], "env": server_environment(options)}
    hooks = [
        Entry(("hooks", event), {"hooks": [_hook(options, budget_s)]}, is_item=True)
        for event, budget_s in _BUDGETS_S.items()
    ]
    entries = [Entry(("mcpServers", "memgraph"), server), *hooks]
    return [MergedFile(gemini_folder() / "settings.json", entries, partial(is_memgraphs, NAME))]


def _hook(options: Options, budget_s: int) -> dict[str, Any]:
    command = hook_command(NAME, options, budget_s=budget_s)
    return {"name": "memgraph", "type": "command", "command": command, "timeout": 1_000 * (budget_s + _MORE_S)}


def connector() -> Connector:
    """Return what connects Gemini CLI."""
    return Connector(NAME, "Gemini CLI", ("gemini",), gemini_folder, changes, hint="Start a new session.")
