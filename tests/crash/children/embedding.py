"""Embeds memories without vectors, a few at a time, reports the number, and waits until it is killed. ``FOLDER``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from places import opened, say


def main() -> None:
    """Embed all memories without vectors."""
    with opened(Path(sys.argv[1])) as store:
        say(0)
        store.embed_awaiting(batch=2, progress=lambda looked_at, _waiting: say(looked_at))
        signal.pause()


main()
