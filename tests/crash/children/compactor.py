"""Compacts a journal, under a fuse. ``FOLDER DATE [PLACE SIGNAL]``; without a place it tells the places at the end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from fuse import Fuse
from places import say

import memgraph
from memgraph.store.compaction.compacting import compact
from memgraph.testing import FakeClock


def main() -> None:
    """Compact the journal."""
    folder, before = Path(sys.argv[1]), sys.argv[2]
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    fuse = Fuse(int(sys.argv[3]), signal.Signals(int(sys.argv[4]))) if len(sys.argv) > 3 else Fuse()
    fuse.lay()
    compact(config, before=before, clock=FakeClock())
    fuse.pass_("before it is acknowledged")
    say(fuse.places)


main()
