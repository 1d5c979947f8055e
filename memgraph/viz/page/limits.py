"""How much a page has room for."""

from __future__ import annotations

MEMORIES = 5_000
"""On a page by default: of more, nothing is made out."""
FULL_TEXTS = 5_000
"""Of so many memories the whole text is given, of the others its beginning."""
SHORT_CHARS = 120
