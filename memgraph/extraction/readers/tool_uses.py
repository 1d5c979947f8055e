"""What a use of a tool was, what it changed, and how it ended, from its input and output in a transcript."""

from __future__ import annotations

from typing import Any

from memgraph.extraction.readers.source import MAX_OUTPUT_CHARS, cleaned, one_line
from memgraph.model.build import TaskOutcome
from memgraph.text import lazy_re as re

_CHANGE_CHARS = 600
"""Maximum characters of the old and of the new text of an edit."""
_EXIT_CODE = re.compile(r"(?:Error: )?Exit code (\d{1,5})\b")
_ASKING = re.compile(r"(?:\S*/)?(?:e?grep|rg|git (?:grep|diff)|diff|cmp|test|\[|pgrep|which|command -v)(?:\s|$)")
"""Programs for which exit code 1 is a regular result."""

_RUNS_A_CHECK = re.compile(
    r"(?:\s{0,4}(?:cd\s[^&;|\n]{1,200}(?:&&|;)|[A-Z_][A-Z0-9_]{0,40}=\S{0,200}\s|(?:uv|poetry|pipenv|hatch|npx|python3? -m)\s(?:run\s)?))*"
    r"\s{0,4}(?:pytest|unittest|tox|nox|jest|vitest|mypy|tsc|go|cargo|npm|pnpm|yarn|make)\b"
)
_FAILED = re.compile(
    r"^(?:FAIL(?:\s+\S+\s+\d[\d.]*s)?|=+ .{0,80}\b[1-9]\d* (?:failed|errors?)\b.{0,80} =+|npm (?:error|ERR!) \S.{0,400}|error: could not compile\b.{0,200}|"
    r"test result: FAILED\b.{0,200}|Tests:\s{1,8}[1-9]\d* failed\b.{0,200}|FAILED \((?:failures|errors)=.{1,40}\)|Found [1-9]\d* errors? in .{1,100})$",
    re.MULTILINE,
)
"""Verdicts of programs that check, which a pipe hides from the exit code."""

_OWN_TOOL = re.compile(r"mcp__(?:\w{1,80}_)?memgraph__")
_OWN_COMMAND = re.compile(r"\s*(?:\S*/|uvx? (?:run )?)?memgraph\s")


def is_own(tool: str, given: dict[str, Any]) -> bool:
    """Return whether a use of a tool is one of memgraph itself: what it returns is in the memory already."""
    if _OWN_TOOL.match(tool):
        return True
    command = given.get("command")
    return tool in {"Bash", "shell"} and isinstance(command, str) and _OWN_COMMAND.match(command[:500]) is not None


def change_of(description: str, given: dict[str, Any]) -> str:
    """Return what an edit replaced by what, as far as it is short; of a new file only its name."""
    edits = [given, *(one for one in listed(given.get("edits")) if isinstance(one, dict))]
    lines = [description]
    for edit in edits[:20]:
        for sign, name in (("-", "old_string"), ("+", "new_string")):
            text = cleaned(edit.get(name), 2 * _CHANGE_CHARS)
            lines += [f"{sign} {line}" for line in text.splitlines()] if len(text) <= _CHANGE_CHARS else []
    patch = [line for line in cleaned(given.get("patch"), 2 * _CHANGE_CHARS).splitlines() if line[:1] in {"-", "+"}]
    lines += [f"{line[0]} {line[1:]}" for line in patch]
    return cleaned("\n".join(lines), MAX_OUTPUT_CHARS)


def listed(given: object) -> list[Any]:
    """Return a list, or an empty one instead of anything else."""
    return given if isinstance(given, list) else []


def description_of(tool: str, given: dict[str, Any], file: str) -> str:
    """Return a use of a tool in one line: the tool, and the file, command or subject."""
    if tool == "Bash":
        command = cleaned(given.get("command"), MAX_OUTPUT_CHARS).partition("\n")[0]
        return f"Bash: {one_line(given.get('description')) or one_line(command)}"
    if file:
        return one_line(f"{tool} {file}")
    asked = (given.get(name) for name in ("description", "pattern", "query", "url", "prompt", "subject"))
    about = next(filter(None, map(one_line, asked)), "") or next(filter(None, map(one_line, given.values())), "")
    return one_line(f"{tool}: {about}") if about else tool


def outcome_of(command: str, output: str, *, is_error: bool) -> TaskOutcome:
    """Return how a use ended; an exit code that answers a question is no failure, the verdict of a check that says so is one."""
    if not is_error:
        is_check = _RUNS_A_CHECK.match(command[:1_000]) is not None
        return "failure" if is_check and _FAILED.search(output[-2_000:]) else "success"
    code = _EXIT_CODE.match(output)
    is_answer = code and int(code[1]) == 1 and _ASKING.match(command) and len(output.splitlines()) == 1
    return "success" if is_answer else "failure"
