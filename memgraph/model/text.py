"""Cutting texts: into what a memory can hold, and to what it is recognised by."""

from __future__ import annotations

import re

from memgraph.model.base import MAX_CONTENT_CHARS

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")


_PREVIEW_CHARS = 60


def preview(text: str) -> str:
    """Return the beginning of a text, to recognise it by: at most 60 characters and, where it was cut, an ellipsis."""
    return text if len(text) <= _PREVIEW_CHARS else f"{text[:_PREVIEW_CHARS].rstrip()}…"


def split_text(text: str, limit: int = MAX_CONTENT_CHARS) -> list[str]:
    """Split a text into parts of at most `limit` characters: at sentence ends, else at spaces, else anywhere."""
    parts: list[str] = []
    current = ""
    for sentence in _SENTENCE_END.split(text.strip()):
        for piece in _pieces(sentence.strip(), limit):
            joined = f"{current} {piece}" if current else piece
            if len(joined) <= limit:
                current = joined
            else:
                parts.append(current)
                current = piece
    return [*parts, current] if current else parts


def _pieces(sentence: str, limit: int) -> list[str]:
    pieces = []
    while len(sentence) > limit:
        cut = sentence.rfind(" ", 1, limit + 1)
        cut = cut if cut > 0 else limit
        pieces.append(sentence[:cut].rstrip())
        sentence = sentence[cut:].lstrip()
    return [*pieces, sentence] if sentence else pieces
