"""The text of a value: what is recalled of an item, and searched. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memgraph.text.cutting import split_text

MAX_PARTS = 50
"""Parts of an item's text that are recalled and searched: 40,000 characters. Its value is kept whole."""
_CARRIERS = frozenset({"text", "content", "data", "memory", "value", "page_content"})
"""Names of fields that say nothing about the text in them."""
_ENDS = ".!?…"


def text_of(value: Mapping[str, Any], path: str) -> str:
    """Return a value as text that can be understood by itself.

    A lone text stands for itself. Else the item's place comes first, then a sentence for each text, number and truth value, with the
    names of its fields.
    """
    lines = list(_lines(value, ()))
    if len(lines) == 1 and lines[0] in _texts(value):
        return lines[0]
    return " ".join([f"{path}:", *(line if line[-1] in _ENDS else f"{line}." for line in lines)])


def _texts(value: Mapping[str, Any]) -> Iterator[str]:
    for part in value.values():
        if isinstance(part, str):
            yield part.strip()
        elif isinstance(part, Mapping):
            yield from _texts(part)


def _lines(value: Any, names: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _lines(part, names if name in _CARRIERS else (*names, str(name)))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if value and all(isinstance(one, str | int | float) for one in value):
            yield from _lines(", ".join(map(str, value)), names)
        else:
            for part in value:
                yield from _lines(part, names)
    elif value is not None and (said := str(value).strip()):
        yield f"{' '.join(names).replace('_', ' ')}: {said}" if names else said


def parts_of(texts: Sequence[str], path: str) -> list[str]:
    """Return the parts of some texts, each short enough for a memory; without any text, the item's place."""
    cleaned = (text.replace("\x00", " ") for text in texts)
    parts = [part for text in cleaned for part in split_text(text) if part.strip()]
    return parts[:MAX_PARTS] or [path]
