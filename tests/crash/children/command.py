"""Runs the command line under a fuse. ``FOLDER PLACE SIGNAL ARGUMENTS…``; at the place 0 it lists the places instead, at ``-`` there is no fuse."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from fuse import Fuse
from places import DIMENSION, say

import memgraph.embedding
import memgraph.store.store
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder


def main() -> None:
    folder, place, number, *arguments = sys.argv[1:]
    home = Path(folder)
    os.environ |= {
        "MEMGRAPH_HOME": str(home / "store"), "MEMGRAPH_KEYS_HOME": str(home / "keys"), "MEMGRAPH_GRAPH_IDLE_S": "60",
    }  # fmt: skip
    os.chdir(home)
    for module in (memgraph.store.store, memgraph.embedding):
        module.default_embedder = lambda *_: FakeEmbedder(DIMENSION)
    sys.modules["memgraph.lifecycle.intake.ingest"].BATCH_BUILDS = 3  # type: ignore[attr-defined]
    if place == "-":
        cli.main(arguments, prog_name="memgraph")
    fuse = Fuse(int(place), signal.Signals(int(number)))
    fuse.lay()
    try:
        cli.main(arguments, prog_name="memgraph")
    finally:
        sys.stdout.flush()
        if place == "0":
            say("")
            say(fuse.places)


main()
