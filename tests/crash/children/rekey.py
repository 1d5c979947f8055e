"""Rotates a store's key or reseals its journal. ``FOLDER rotate|reseal [PLACE SIGNAL]``: with a place, a fuse burns there; else the places are told."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from fuse import Fuse
from places import say

import memgraph
from memgraph.store.maintenance.keys import reseal_store, rotate_key
from memgraph.testing import FakeClock


def main() -> None:
    folder, what = Path(sys.argv[1]), sys.argv[2]
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    fuse = Fuse() if len(sys.argv) == 3 else Fuse(int(sys.argv[3]), signal.Signals(int(sys.argv[4])))
    fuse.lay()
    do = rotate_key if what == "rotate" else reseal_store
    do(config, clock=FakeClock())
    fuse.pass_("before it is acknowledged")
    say(fuse.places)


main()
