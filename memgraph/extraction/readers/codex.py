"""Translation of Codex session logs (``~/.codex/sessions/**/rollout-*.jsonl``) into the entries of Claude Code transcripts.

A rollout holds one session: its id and directory come first, then messages and calls, each in a ``payload`` (in old files, at the top level). The
``event_msg`` lines repeat the messages and are skipped.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from memgraph.text import lazy_re as re

_KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ITEMS = frozenset({"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call", "custom_tool_call_output"})  # fmt: skip
_MAX_OUTPUT_CHARS = 100_000
_MOST_RUNNING = 64
_PRINTED = "Output:\n"
_EXIT_CODE = re.compile(r"(?:^Exit code:\s{0,4}|[Pp]rocess exited with code )(\d{1,5})\b", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d{1,12})\b", re.MULTILINE)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,1000})$", re.MULTILINE)
_NOT_THE_USER = re.compile(r"\s*(?:<([\w-]{1,40})[^>\n]{0,200}>.*</\1[^>\n]{0,200}>\s*\Z|# AGENTS\.md)", re.DOTALL)
"""Blocks that Codex writes in the user's name: one element, or the project's instructions."""
_PREAMBLE = re.compile(r"\s*# Context from my IDE setup:.*\n## My request for Codex:", re.DOTALL)
"""What an IDE puts before a request. A file shown in it may imitate its last line: the last one counts."""


@dataclass
class Rollout:
    """The session of a Codex log while it is read; entries of other formats pass unchanged."""

    session: str = ""
    cwd: str = ""
    by_agent: bool = False
    line: int = 0
    latest: str | None = None
    turns: list[str | None] = field(default_factory=list)
    running: dict[int, tuple[str, str]] = field(default_factory=dict)
    polls: dict[str, int] = field(default_factory=dict)

    def translated(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return an entry as Claude Code would have written it; one without content if it has none."""
        kind, payload = entry.get("type"), entry.get("payload")
        if isinstance(payload, dict) and kind in _KINDS:
            self._begin(payload if kind == "session_meta" else {}, payload if kind == "turn_context" else {})
            item = payload if kind == "response_item" else {}
        elif kind is None and isinstance(entry.get("id"), str) and "timestamp" in entry and "sessionId" not in entry:
            self._begin(entry, {})
            item = {}
        elif entry.keys() == {"record_type"}:
            item = {}  # old files announce each record by a line that holds nothing else
        elif self.session and kind in _ITEMS:
            item = entry
        else:
            return entry
        common = {"sessionId": self.session, "cwd": self.cwd, "timestamp": entry.get("timestamp"), "program": "codex"}
        told = _content(self._of_one_process(item))
        self._place(told, payload if isinstance(payload, dict) else {})
        return common | told

    def _of_one_process(self, item: dict[str, Any]) -> dict[str, Any]:
        """Return an item; nothing for a call that polls a process and for an output while that runs: its last output answers its own call."""
        kind, call = item.get("type"), item.get("call_id")
        if not isinstance(call, str):
            return item
        if kind == "function_call" and item.get("name") == "write_stdin":
            number = object_of(item.get("arguments")).get("session_id")
            if not (isinstance(number, int) and number in self.running):
                return item
            self.polls[call] = number
            return {}
        if kind == "function_call_output":
            text = "\n".join(_texts(item.get("output")))
            head, mark, printed = text[:_MAX_OUTPUT_CHARS].partition(_PRINTED)
            number = self.polls.pop(call, None)
            began, before = self.running.pop(number, ("", "")) if number is not None else (call, "")
            if running := _RUNNING.search(head[:1_000]):
                if len(self.running) >= _MOST_RUNNING:
                    self.running.pop(next(iter(self.running)))
                self.running[int(running[1])] = began or call, f"{before}{printed}\n"[-_MAX_OUTPUT_CHARS:]
                return {}
            if number is not None:
                return item | {"call_id": began, "output": f"{head}{mark}{before}{printed}"}
        return item

    def _place(self, told: dict[str, Any], event: dict[str, Any]) -> None:
        """Say after which entry an item was written, as turns can be rolled back, and that a session of an agent has no user."""
        number = event.get("num_turns") if event.get("type") == "thread_rolled_back" else 0
        if isinstance(number, int) and 0 < number <= len(self.turns):
            self.latest = self.turns[-number]
            del self.turns[-number:]
        if "message" not in told:
            return
        told["isSidechain"] = self.by_agent
        if told["type"] == "user" and [one for one in told["message"]["content"] if one["type"] == "text"]:
            self.turns.append(self.latest)
        self.line += 1
        told["uuid"], told["parentUuid"] = f"line {self.line}", self.latest
        self.latest = told["uuid"]

    def _begin(self, meta: dict[str, Any], turn: dict[str, Any]) -> None:
        if isinstance(meta.get("id"), str) and not self.session:
            self.session = meta["id"]
            self.by_agent = "subagent" in str(meta.get("source"))[:200]
        cwd = meta.get("cwd") or turn.get("cwd")
        self.cwd = cwd if isinstance(cwd, str) else self.cwd


def _content(item: dict[str, Any]) -> dict[str, Any]:
    """Return the type and message of an item."""
    kind = item.get("type")
    if kind == "message" and item.get("role") in {"user", "assistant"}:
        blocks = item.get("content")
        blocks = [one for one in blocks if isinstance(one, dict)] if isinstance(blocks, list) else []
        texts = [one["text"] for one in blocks if isinstance(one.get("text"), str)]
        if item["role"] == "user":
            texts = [_PREAMBLE.sub("", text, count=1) for text in texts if not _NOT_THE_USER.match(text)]
        return _said(item["role"], [{"type": "text", "text": text} for text in texts])
    if kind in {"function_call", "custom_tool_call", "local_shell_call"}:
        return _said("assistant", [_called(item)])
    if kind in {"function_call_output", "custom_tool_call_output"}:
        return _said("user", [_answered(item)])
    return {"type": "codex"}


def _said(role: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": role, "message": {"role": role, "content": blocks}}


def _called(item: dict[str, Any]) -> dict[str, Any]:
    given = object_of(item.get("arguments")) or object_of(item.get("action"))
    patch = item.get("input") if isinstance(item.get("input"), str) else given.get("input") or given.get("patch")
    name, told = item.get("name"), given
    if isinstance(item.get("namespace"), str) and isinstance(name, str):  # of an MCP server's tool
        name = f"{item['namespace']}__{name}"
    if command := _command(given):
        name, told = "Bash", {"command": command}
        patch = command if "*** Begin Patch" in command else patch
    if isinstance(patch, str) and (files := _PATCHED.findall(patch)):
        name, told = (
            "apply_patch",
            {"file_path": files[0].strip(), "files": [file.strip() for file in files], "patch": patch},
        )
    return {"type": "tool_use", "id": item.get("call_id"), "name": name, "input": told}


def _command(given: dict[str, Any]) -> str:
    """Return a call's command: the script of ``bash -lc``, else its words."""
    command = given.get("command", given.get("cmd"))
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return command[2] if len(command) == 3 and command[1] in {"-lc", "-c"} else shlex.join(command)
    return command if isinstance(command, str) else ""


def _answered(item: dict[str, Any]) -> dict[str, Any]:
    output = item.get("output")
    text = "\n".join(_texts(output))[:_MAX_OUTPUT_CHARS]
    told = object_of(text) if text.startswith("{") else {}
    code = None
    if isinstance(told.get("output"), str):
        text, metadata = told["output"], told.get("metadata")
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    elif match := _EXIT_CODE.search(text[:1_000]):
        code = int(match[1])
        text = text.partition(_PRINTED)[2] or text
    is_error = code not in {None, 0} or (isinstance(output, dict) and output.get("success") is False)
    said = f"Exit code {code}\n{text}" if is_error and code is not None else text
    return {"type": "tool_result", "tool_use_id": item.get("call_id"), "content": said, "is_error": is_error}


def _texts(output: object) -> Iterator[str]:
    if isinstance(output, str):
        yield output
    elif isinstance(output, dict):
        yield from _texts(output.get("content"))
    elif isinstance(output, list):
        yield from (one["text"] for one in output if isinstance(one, dict) and isinstance(one.get("text"), str))


def object_of(given: object) -> dict[str, Any]:
    """Return an object, also one that is written as JSON text; empty for anything else."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, dict) else {}
