"""Prints what a correction changed: the difference of each field, and the command that undoes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from memgraph.interfaces.cli.base.output import count, emit, plain
from memgraph.text.cutting import preview

if TYPE_CHECKING:
    from memgraph.interfaces.cli.base.options import Settings
    from memgraph.model.results.curation import ChangedMemory, EditResult, FieldChange

_LONG = 60
_UNSET = "(not set)"


def report(settings: Settings, command: str, done: str, result: EditResult, *, undo: str | None = None) -> None:
    """Print the result of a correction.

    Parameters
    ----------
    done : str
        What was done, in the past tense and capitalised.
    undo : str, optional
        The command that undoes it. Default: ``undo`` with the event.
    """
    from memgraph.model.results.curation import MemoryCommandResult

    message = _message(done, result, undo)
    document = MemoryCommandResult(command=command, success=True, message=message, data=result.model_dump(mode="json"))
    emit(settings, document, [*changed_lines(result.memories), plain(message)])


def changed_lines(memories: Sequence[ChangedMemory]) -> list[str]:
    """Return the differences of memories as lines; several memories have a heading each."""
    lines = []
    for memory in memories:
        if len(memories) > 1:
            lines.append(heading(memory))
        lines += [f"  {line}" for change in memory.fields for line in difference(change)]
    return lines


def heading(memory: ChangedMemory) -> str:
    """Return one line about a changed memory."""
    return f"{memory.id}  {memory.change}: {plain(preview(memory.content))}"


def difference(change: FieldChange) -> list[str]:
    """Return the difference of a field: one line, or a unified difference of long texts."""
    old, new = _shown(change.old), _shown(change.new)
    if max(len(old), len(new)) <= _LONG:
        return [plain(f"{change.field}: {old} → {new}")]
    before, after = _pieces(change.old), _pieces(change.new)
    return [
        f"{plain(change.field)}:",
        *(
            f"  {line[0]}{plain(line[1:])}"
            for line in list(unified_diff(before, after, n=1, lineterm=""))[2:]
            if line[:2] != "@@"
        ),
    ]


def _message(done: str, result: EditResult, undo: str | None) -> str:
    changed = [memory for memory in result.memories if memory.change == "changed"] or result.memories[-1:]
    already = f" ({count(len(result.unchanged), 'memory', 'memories')} unchanged)" if result.unchanged else ""
    if result.event is None:
        return f"Nothing to change: {count(len(result.unchanged), 'memory is', 'memories are')} as wanted already."
    what = f"'{preview(changed[0].content)}'" if len(changed) == 1 else count(len(changed), "memory", "memories")
    return f"{done}: {what}{already}; undo: memgraph {undo or f'undo {result.event}'}"


def _shown(value: Any) -> str:
    if value is None or value == []:
        return _UNSET
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if isinstance(value, dict) and isinstance(value.get("name"), str):  # an entity
        return str(value["name"])
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pieces(value: Any) -> list[str]:
    """Return a value in the pieces that are compared: the sentences or lines of a text, the items of a list."""
    if value is None:
        return []
    items: Iterable[Any] = value if isinstance(value, list) else _sentences(_shown(value))
    return [_shown(item) for item in items]


def _sentences(text: str) -> list[str]:
    return [part for line in text.splitlines() for part in line.replace(". ", ".\n").split("\n")] or [text]
