"""Size limits of the page."""

from __future__ import annotations

MEMORIES = 5_000
"""Default maximum number of memories on a page: with more, the map is unreadable."""
FULL_TEXTS = 5_000
"""Number of memories with their full text; of the others only the beginning is included."""
SHORT_CHARS = 120
