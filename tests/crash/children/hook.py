"""An agent's hook: runs ``memgraph remember`` repeatedly, each time as a new process would. ``FOLDER COUNT``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from places import DIMENSION, say

import memgraph.store.store
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    os.environ |= {
        "MEMGRAPH_HOME": str(folder / "store"),
        "MEMGRAPH_KEYS_HOME": str(folder / "keys"),
        "MEMGRAPH_LOCK_TIMEOUT_S": "120",
    }
    memgraph.store.store.default_embedder = lambda *_: FakeEmbedder(DIMENSION)
    for number in range(count):
        text = f"Hook says {number}"
        try:
            cli.main(["remember", text], prog_name="memgraph")
        except SystemExit as exit_:
            if exit_.code != 0:
                raise
        say(text)


main()
