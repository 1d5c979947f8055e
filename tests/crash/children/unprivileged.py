"""Opens a store, writes and closes it as a user who is not its administrator. ``FOLDER REHEARSAL``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from places import opened, say

import memgraph

NOBODY = 65534


def work(folder: Path) -> None:
    with opened(folder) as store:
        memgraph.MemoryRetrieval(store).search_memories("the build failed")
        say("read")
        store.insert_memory({"type": "episodic", "content": "as nobody"})
        say("written")
        store.verify()


def main() -> None:
    work(Path(sys.argv[2]))  # what is imported late is imported now
    say("rehearsed")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        work(Path(sys.argv[1]))
    except memgraph.MemGraphError as error:
        say({"type": type(error).__name__, "message": str(error)})
    else:
        say("done")


main()
