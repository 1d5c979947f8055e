"""The turns of a transcript as they were written: what the agent said and did, and what it was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memgraph.extraction.readers.codex import Rollout
from memgraph.extraction.readers.files import MAX_LINE_BYTES, lines, opened
from memgraph.extraction.readers.source import named
from memgraph.extraction.readers.tool_uses import is_own
from memgraph.extraction.readers.transcripts import blocks_of, entry_of, text_of


class Turn(NamedTuple):
    """One line of a transcript.

    Attributes
    ----------
    by_agent : bool
        Whether the agent wrote it.
    text : str
        What the agent said and gave to tools, except memgraph's; else what the user said and tools returned.
    line : str
        The whole line, of whatever kind.
    calls : dict of str to str
        Commands that the agent ran, by the id of the use.
    results : dict of str to bool
        Whether each use of a tool failed, by its id.
    """

    by_agent: bool
    text: str
    line: str
    calls: dict[str, str]
    results: dict[str, bool]


def turns_of(path: Path) -> Iterator[Turn]:
    """Yield the lines of a transcript of Claude Code or a log of Codex; unreadable ones are left out.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    rollout = Rollout()
    with opened(path) as (stream, _):
        for _, line, _ in lines(stream, MAX_LINE_BYTES):
            entry = entry_of(line, MAX_LINE_BYTES)
            if isinstance(entry, dict):
                yield _turn(rollout.translated(entry), line.decode("utf-8", "replace"))


def _turn(entry: dict[str, Any], line: str) -> Turn:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    texts, calls, results = [text_of(content)], {}, {}
    for block in blocks_of(content):
        given = block.get("input")
        if block.get("type") == "tool_use" and isinstance(given, dict):
            if not is_own(str(block.get("name")), given):
                texts += _texts(given)
            if isinstance(given.get("command"), str):
                calls[named(block.get("id"), "")] = given["command"]
        elif block.get("type") == "tool_result":
            results[named(block.get("tool_use_id"), "")] = block.get("is_error") is True
            texts.append(text_of(block.get("content")))
    return Turn(entry.get("type") == "assistant", "\n".join(texts), line, calls, results)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)
