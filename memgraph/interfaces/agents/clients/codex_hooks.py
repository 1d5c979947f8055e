"""Hooks of Codex: Claude Code's shape, with limits of its own and without an event for a failed tool."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memgraph.disk.files import open_regular
from memgraph.interfaces.agents.clients.claude_shape import KINDS, ClaudeShape, failure_of
from memgraph.interfaces.agents.events import EventKind

_KINDS: Mapping[str, EventKind] = {
    "PostToolUse" if name == "PostToolUseFailure" else name: kind for name, kind in KINDS.items()
}
_MAX_BYTES = 9_000
"""Codex writes answers of more than 2,500 tokens to a file; it reckons with four bytes a token."""
_TAIL_BYTES = 1_000_000


@dataclass(frozen=True)
class CodexShape(ClaudeShape):
    """The hooks of Codex."""

    name: str = "codex"
    kinds: Mapping[str, EventKind] = field(default_factory=lambda: _KINDS)

    def fits(self, text: str) -> bool:
        """Return whether an answer is not too long."""
        return len(text.encode()) <= _MAX_BYTES

    def answer(self, payload: Mapping[str, Any], text: str) -> str:
        """Return the JSON that adds a text to the agent's context; at the end of a turn, that has it go on."""
        if payload["hook_event_name"] == "Stop":
            return json.dumps({"decision": "block", "reason": text})
        return super().answer(payload, text)

    def failure(self, payload: Mapping[str, Any]) -> str:
        """Return what a command was and how it failed; "" if it did not. The event does not say, the session's log does."""
        call_id, path = payload.get("tool_use_id"), payload.get("transcript_path")
        if not isinstance(call_id, str) or not isinstance(path, str) or not call_id:
            return ""
        ended = next((one for one in _ended_commands(Path(path), call_id) if one.get("id") == call_id), {})
        if ended.get("exit_code") in {None, 0}:
            return ""
        output = ended.get("aggregated_output") or payload.get("tool_response")
        return failure_of(payload.get("tool_name"), payload.get("tool_input"), output)


def _ended_commands(path: Path, call_id: str) -> Iterator[dict[str, Any]]:
    """Yield the commands that ended, newest first, from the lines of a session's log that name a call."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).splitlines()
    except (OSError, ValueError):
        return
    for line in reversed(lines):
        if b"item_completed" in line and call_id.encode() in line:
            with suppress(ValueError, TypeError, AttributeError):
                item = json.loads(line)["payload"]["item"]
                if item.get("type") == "CommandExecution":
                    yield item
