"""Repairs damaged vectors, a few at a time, reports the number, and waits until it is killed. ``FOLDER``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from places import opened, say


def main() -> None:
    """Repair all damaged vectors."""
    with opened(Path(sys.argv[1])) as store:
        say(0)
        store.repair_vectors(batch=2, progress=lambda done, _total: say(done))
        signal.pause()


main()
