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
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_BACK = {escaped: char for char, escaped in _ESCAPES.items()}
_ESCAPED = re.compile(r"\\[\\nr]")


def as_markdown(pins: Iterable[Pin], *, task_id: str | None = None) -> str:
    """Return pins as Markdown: a line for each, with its kind, its text and its id in a comment."""
    lines = [f"# Pins of the task {task_id}" if task_id is not None else "# Pins", ""]
    lines += [_line(pin) for pin in pins if pin.task_id == task_id]
    return "\n".join(lines) + "\n"


def read_markdown(pins: Pins, text: str, *, task_id: str | None = None) -> PinsRead:
    """Edit the pins whose lines have changed, and add those of lines without an id. A pin without a line stays: `remove` it.

    Raises
    ------
    InvalidInputError, NotFoundError
        A line is no pin, or names one that does not hold or belongs elsewhere. The lines before it are done.
    """
    found: dict[str, list[str]] = {"added": [], "edited": []}
    unchanged = 0
    for number, line in enumerate(checked(QueryText, text, "text").split("\n"), start=1):
        if not line.startswith("- "):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None or match["kind"] not in PIN_KINDS:
            problem = f"is no pin in line {number}; a pin is `- [KIND] TEXT`, KIND one of {', '.join(PIN_KINDS)}"
            raise InvalidInputError(problem, field="text", value=line)
        given: dict[str, Any] = {"kind": match["kind"], "expires_at": match["until"]}
        content = _ESCAPED.sub(lambda escaped: _BACK[escaped[0]], match["text"])
        if match["id"] is None:
            made = pins.upsert(content, task_id=task_id, **given)
            changed = "added" if made.is_new else ""
            pin = made.pin
        else:
            before = pins.get(match["id"])
            if before.task_id != task_id:
                problem = (
                    f"names a pin of {f'the task {before.task_id}' if before.task_id else 'no task'} in line {number}"
                )
                raise InvalidInputError(problem, field="text", value=line)
            pin = pins.edit(before.id, text=content, **given)
            changed = "edited" if pin != before else ""
        if changed:
            found[changed].append(pin.id)
        unchanged += not changed
    return PinsRead(unchanged=unchanged, **found)


def _line(pin: Pin) -> str:
    until = f" until {pin.expires_at}" if pin.expires_at else ""
    text = "".join(_ESCAPES.get(char, char) for char in pin.content)
    return f"- [{pin.kind}{until}] {text} <!-- pin {pin.id} -->"
