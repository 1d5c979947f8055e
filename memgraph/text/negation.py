"""Negation: contracted denials are written out, so that “isn't” and “is not” are the same words. Pure."""

from __future__ import annotations

import re

_CONTRACTED = re.compile(
    r"\b(?:(?P<irregular>ca|wo|sha)n['’]?t|(?P<verb>[a-z]{2,8})n['’]t|cannot"
    r"|(?P<bare>do|does|did|is|are|was|were|has|have|had|would|could|should)nt)\b",
    re.IGNORECASE,
)
_IRREGULAR = {"ca": "can", "wo": "will", "sha": "shall"}


def expanded(text: str) -> str:
    """Return a text with its contracted denials written out: “can't”, “cannot” → “can not”, “isn't”, “isnt” → “is not”."""
    return _CONTRACTED.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    irregular = found["irregular"]
    verb = found["verb"] or found["bare"] or _IRREGULAR.get((irregular or "ca").lower(), "can")
    return f"{verb} not"
