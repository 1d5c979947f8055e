"""Codex: an MCP server in its ``config.toml``, hooks in its ``hooks.json``. It runs hooks only once the user has approved them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

from memgraph.disk.files import open_regular
from memgraph.interfaces.agents.clients.claude_shape import KINDS, ClaudeShape, failure_of
from memgraph.interfaces.agents.connecting.change import Change
from memgraph.interfaces.agents.connecting.connector import Connector
from memgraph.interfaces.agents.connecting.merged import Entry, MergedFile
from memgraph.interfaces.agents.connecting.programs import (
    hook_command,
    is_memgraphs,
    server_command,
    server_environment,
    user_folder,
)
from memgraph.interfaces.agents.connecting.receipt import Options
from memgraph.interfaces.agents.events import EventKind

_KINDS: Mapping[str, EventKind] = {
    "PostToolUse" if name == "PostToolUseFailure" else name: kind for name, kind in KINDS.items()
}
_MAX_BYTES = 9_000
"""Codex writes answers of more than 2,500 tokens to a file; it reckons with four bytes a token."""
_TAIL_BYTES = 1_000_000
NAME = "codex"
BUDGETS_S = {"SessionStart": 5, "UserPromptSubmit": 3, "PostToolUse": 3, "Stop": 3, "SessionEnd": 2}
"""Seconds that a hook may take, by event. Codex gives the last one three."""
_MORE_S = 1
"""Codex ends a hook that takes so much longer."""
_ASKING_S = 5.0
_EVENTS = {f"{event[0].lower()}{event[1:]}": event for event in BUDGETS_S}
_APPROVED = frozenset({"trusted", "managed"})


def codex_folder() -> Path:
    """Return the user's directory of Codex."""
    return user_folder("CODEX_HOME", ".codex")


def transcripts_folder() -> Path:
    """Return the directory of all sessions."""
    return codex_folder() / "sessions"


def changes(options: Options) -> list[Change]:
    """Return what connecting writes.

    Servers get little of Codex's environment, so the store is always named; they are started in the session's directory.
    If the server is not required, the first turn may begin without its tools. If it is and cannot start, no session begins.
    """
    command = server_command(NAME, options)
    server = {
        "command": command[0],
        "args": [*command[1:], "--project", "."],
        "env": server_environment(options),
        "required": find_spec("mcp") is not None,
    }
    hooks = [
        Entry(("hooks", event), {"hooks": [_hook(options, budget_s)]}, is_item=True)
        for event, budget_s in BUDGETS_S.items()
    ]
    return [
        MergedFile(
            codex_folder() / "config.toml", [Entry(("mcp_servers", "memgraph"), server)], partial(is_memgraphs, NAME)
        ),
        MergedFile(codex_folder() / "hooks.json", hooks, partial(is_memgraphs, NAME)),
    ]


def _hook(options: Options, budget_s: int) -> dict[str, Any]:
    command = hook_command(NAME, options, budget_s=budget_s)
    return {"type": "command", "command": command, "timeout": budget_s + _MORE_S}


def unapproved_hooks(binary: str) -> Sequence[str] | None:
    """Ask Codex which of memgraph's hooks it skips because the user has not approved them; None if it does not answer.

    A Codex that was never started is not asked: no hook can have been approved yet, and asking would make it write its own files.
    """
    if not (codex_folder() / "installation_id").exists():
        return list(BUDGETS_S)
    try:
        found = list(_listed_hooks(binary))
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return None
    return [
        _EVENTS.get(one["eventName"], one["eventName"])
        for one in found
        if is_memgraphs(NAME, one) and (one["trustStatus"] not in _APPROVED or one["enabled"] is not True)
    ]


def _listed_hooks(binary: str) -> Iterator[dict[str, Any]]:
    """Yield the hooks of the user that Codex knows."""
    asked: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "memgraph", "version": "1"}}},
        {"method": "initialized"},
        {"id": 1, "method": "hooks/list", "params": {"cwds": [str(codex_folder())]}},
    ]
    command = [binary, "app-server", "--disable", "plugins"]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with (
        TemporaryDirectory(
            prefix="memgraph-"
        ) as folder,  # its databases are made there instead of among the user's files
        subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nothing, env=os.environ | {"CODEX_SQLITE_HOME": folder}
        ) as process,
    ):
        timer = Timer(_ASKING_S, process.kill)
        timer.start()
        try:
            answer = _answer_of(process, asked)
        finally:
            timer.cancel()
            process.kill()
    for place in answer["data"]:
        yield from place["hooks"]


def _answer_of(process: subprocess.Popen[bytes], asked: Sequence[dict[str, Any]]) -> Any:
    """Return the result of the last request."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("no pipes")
    process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in asked))
    process.stdin.flush()
    for line in process.stdout:  # until it answers, or is killed
        answer = json.loads(line)
        if answer.get("id") == asked[-1]["id"]:
            return answer["result"]
    raise ValueError("no answer")


def connector() -> Connector:
    """Return what connects Codex."""
    return Connector(
        name=NAME,
        title="Codex",
        binaries=("codex",),
        folder=codex_folder,
        changes=changes,
        hint="Start a new session, and approve the hooks in /hooks: Codex skips them until then.",
        unapproved=unapproved_hooks,
        how_to_approve="approve them in /hooks of Codex",
    )


@dataclass(frozen=True)
class CodexShape(ClaudeShape):
    """The hooks of Codex: Claude Code's shape, with limits of its own and without an event for a failed tool."""

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
