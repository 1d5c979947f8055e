"""Negation: contracted denials are written out, so that “isn't” and “is not” are the same words. Pure."""

from __future__ import annotations

import re

_CONTRACTED = re.compile(r"\b(?:(ca|wo|sha)n['’]t|cannot|([a-z]{2,8})n['’]t)\b", re.IGNORECASE)
_IRREGULAR = {"ca": "can", "wo": "will", "sha": "shall"}


def expanded(text: str) -> str:
    """Return a text with its contracted denials written out: “can't”, “cannot” → “can not”, “isn't” → “is not”."""
    return _CONTRACTED.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    verb = found[2] or _IRREGULAR.get((found[1] or "ca").lower(), "can")
    return f"{verb} not"
