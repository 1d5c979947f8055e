"""Pins as a Markdown list, which can be edited and read back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.model.base import QueryText, checked
from memgraph.model.results.tasks import PIN_KINDS, Pin, PinsRead
from memgraph.tasks.pins import Pins

_LINE = re.compile(
    r"- \[(?P<kind>\w+)(?: until (?P<until>[^\]]+))?\] (?P<text>.*?)(?: <!-- pin (?P<id>[0-9a-f-]{36}) -->)?", re.ASCII
)
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "<": "\\<"}
_BACK = {escaped: char for char, escaped in _ESCAPES.items()}
_UNSAFE = re.compile("[\\\\<\x01-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")
"""What could end a line, begin a comment or tag, or is not seen by who edits the list."""
_ESCAPED = re.compile(r"\\(?:[\\nr<]|u\{(?P<code>[0-9a-f]{1,5})\})")


def as_markdown(pins: Iterable[Pin], *, task_id: str | None = None) -> str:
    """Return pins as Markdown: a line for each, with its kind, its text and its id in a comment."""
    lines = [f"# Pins of the task {_escaped(task_id)}" if task_id is not None else "# Pins", ""]
    lines += [_line(pin) for pin in pins if pin.task_id == task_id]
    return "\n".join(lines) + "\n"


def read_markdown(pins: Pins, text: str, *, task_id: str | None = None) -> PinsRead:
    """Edit the pins whose lines have changed, and add those of lines without an id. A pin without a line stays: `remove` it.

    Raises
    ------
    InvalidInputError, NotFoundError
        A line is no pin, or names one that does not exist or belongs elsewhere: then nothing is changed. Or a text is refused, for
        instance because its pin no longer holds: then the lines before it are done.
    """
    lines = [
        _parsed(pins, number, line, task_id)
        for number, line in enumerate(checked(QueryText, text, "text").split("\n"), start=1)
        if line.startswith("- ")
    ]
    ids: dict[str, list[str]] = {"added": [], "edited": []}
    unchanged = 0
    for before, content, given in lines:
        if before is None:
            made = pins.upsert(content, task_id=task_id, **given)
            changed = "added" if made.is_new else ""
            pin = made.pin
        else:
            pin = pins.edit(before.id, text=content, **given)
            changed = "edited" if pin != before else ""
        if changed:
            ids[changed].append(pin.id)
        unchanged += not changed
    return PinsRead(unchanged=unchanged, **ids)


def _parsed(pins: Pins, number: int, line: str, task_id: str | None) -> tuple[Pin | None, str, dict[str, Any]]:
    """Return the pin that a line names, its text, and its kind and end."""
    match = _LINE.fullmatch(line.rstrip())
    if match is None or match["kind"] not in PIN_KINDS:
        problem = f"is no pin in line {number}; a pin is `- [KIND] TEXT`, KIND one of {', '.join(PIN_KINDS)}"
        raise InvalidInputError(problem, field="text", value=line)
    content = _ESCAPED.sub(_unescaped, match["text"])
    before = pins.get(match["id"]) if match["id"] is not None else None
    if before is not None and before.task_id != task_id:
        problem = f"names a pin of {f'the task {before.task_id}' if before.task_id else 'no task'} in line {number}"
        raise InvalidInputError(problem, field="text", value=line)
    return before, content, {"kind": match["kind"], "expires_at": match["until"]}


def _line(pin: Pin) -> str:
    until = f" until {pin.expires_at}" if pin.expires_at else ""
    text = _escaped(pin.content)
    return f"- [{pin.kind}{until}] {text} <!-- pin {pin.id} -->"


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: _ESCAPES.get(found[0], f"\\u{{{ord(found[0]):x}}}"), text)


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found["code"], 16)) if found["code"] else _BACK[found[0]]
