"""Hooks of the shape that Claude Code introduced: JSON on standard input, ``hookSpecificOutput`` on standard output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.extraction.error_text import error_lines
from memgraph.extraction.readers.source import one_line, storable_text
from memgraph.extraction.readers.transcripts import description_of, is_own
from memgraph.interfaces.agents.events import EventKind, HookEvent
from memgraph.model.results.retrieval import MAX_SEARCHED_CHARS

KINDS: Mapping[str, EventKind] = {
    "SessionStart": "session started",
    "UserPromptSubmit": "prompt submitted",
    "PostToolUseFailure": "tool failed",
    "Stop": "turn ended",
    "SessionEnd": "session ended",
}
_NOT_FROM_THE_USER = frozenset({"system", "poll_event"})
"""Sources of prompts that the client writes itself: reports of background tasks, messages of other agents."""
_ERROR_LINES = 4
_ERROR_CHARS = 1_000
_MAX_FIELD_CHARS = 4_096


@dataclass(frozen=True)
class ClaudeShape:
    """The hooks of a client that speaks as Claude Code does.

    Attributes
    ----------
    name : str
    kinds : mapping of str to EventKind
        Its names of the events.
    max_chars : int
        Maximum characters of an answer.
    """

    name: str
    kinds: Mapping[str, EventKind] = field(default_factory=lambda: KINDS)
    max_chars: int = 9_000

    def fits(self, text: str) -> bool:
        """Return whether an answer is not too long."""
        return len(text) <= self.max_chars

    def event_of(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what a payload reports; None if there is nothing to do."""
        kind = self.kinds.get(str(payload.get("hook_event_name")))
        if kind is None or (kind == "prompt submitted" and payload.get("source") in _NOT_FROM_THE_USER):
            return None
        failed = self.failure(payload) if kind == "tool failed" else ""
        if kind == "tool failed" and not failed:
            return None
        return HookEvent(
            kind,
            session_id=one_line(text_field(payload, "session_id", is_required=True), 300),
            cwd=text_field(payload, "cwd")[:_MAX_FIELD_CHARS],
            transcript=text_field(payload, "transcript_path")[:_MAX_FIELD_CHARS],
            text=failed or (_prompt(payload) if kind == "prompt submitted" else ""),
            call_id=one_line(text_field(payload, "tool_use_id"), 300),
            has_lost_context=kind == "session started" and payload.get("source") in {"clear", "compact"},
            is_answer=payload.get("stop_hook_active") is True,
        )

    def answer(self, payload: Mapping[str, Any], text: str) -> str:
        """Return the JSON that adds a text to the agent's context."""
        output = {"hookEventName": payload["hook_event_name"], "additionalContext": text}
        return json.dumps({"hookSpecificOutput": output})

    def failure(self, payload: Mapping[str, Any]) -> str:
        """Return what was done and how it failed; "" if a person interrupted it, or it was a use of memgraph itself."""
        if payload.get("is_interrupt") is True:
            return ""
        return failure_of(payload.get("tool_name"), payload.get("tool_input"), payload.get("error"))


def text_field(payload: Mapping[str, Any], name: str, *, is_required: bool = False) -> str:
    """Return a field that is a text; "" if it is missing.

    Raises
    ------
    InvalidInputError
        It is something else, or a required one is missing.
    """
    value = payload.get(name)
    if isinstance(value, str) and (value or not is_required):
        return storable_text(value)
    if value is None and not is_required:
        return ""
    raise InvalidInputError("must be a text", field=name, value=value)


def _prompt(payload: Mapping[str, Any]) -> str:
    prompt = payload.get("prompt")
    return storable_text(prompt[:MAX_SEARCHED_CHARS]).strip() if isinstance(prompt, str) else ""


def failure_of(tool: object, given: object, error: object) -> str:
    """Return what a tool did and how it failed; "" for a use of memgraph itself."""
    given = given if isinstance(given, dict) else {}
    if not isinstance(tool, str) or not isinstance(error, str) or is_own(tool, given):
        return ""
    file = one_line(given.get("file_path") or given.get("notebook_path") or given.get("path"))
    said = error_lines(storable_text(error), limit=_ERROR_LINES)
    return "\n".join([description_of(one_line(tool, 100), given, file), *(said or [one_line(error, _ERROR_CHARS)])])
