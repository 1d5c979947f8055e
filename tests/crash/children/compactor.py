"""Compacts a journal, under a fuse. ``FOLDER DATE DAYS [PLACE SIGNAL]``; without a place it tells the places at the end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from fuse import Fuse
from places import say

import memgraph
from memgraph.store.compaction import compact
from memgraph.testing import FakeClock

LATER = "2026-03-05T00:00:00.000Z"


def main() -> None:
    """Compact the journal."""
    folder, before, days = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", archive_retention_days=days)
    fuse = Fuse(int(sys.argv[4]), signal.Signals(int(sys.argv[5]))) if len(sys.argv) > 4 else Fuse()
    fuse.lay()
    compact(config, before=before, clock=FakeClock(LATER))
    fuse.pass_("before it is acknowledged")
    say(fuse.places)


main()
