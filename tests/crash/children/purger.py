"""Purges a memory of a store, under a fuse. ``FOLDER ID [PLACE SIGNAL]``; without a place it tells the places at the end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from fuse import Fuse
from places import opened, say


def main() -> None:
    """Purge the memory."""
    folder, memory_id = Path(sys.argv[1]), sys.argv[2]
    fuse = Fuse(int(sys.argv[3]), signal.Signals(int(sys.argv[4]))) if len(sys.argv) > 3 else Fuse()
    fuse.watch()
    with opened(folder) as store:
        assert store.get_memory(memory_id) is not None
        fuse.lay()
        store.purge([memory_id])
        fuse.pass_("before it is acknowledged")
    say(fuse.places)


main()
