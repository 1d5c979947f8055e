"""Writes until the disk is full, then frees space and continues. ``FOLDER limit BYTES`` or ``FOLDER fill BYTES_LEFT``.

``limit``: no file may grow past so many bytes. ``fill``: a file on the store's disk takes all but so many.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from places import opened, say

import memgraph

MOST = 400


def main() -> None:
    folder, how, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    ballast = folder / "ballast"
    with opened(folder) as store:
        if how == "limit":
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        else:
            free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
            ballast.write_bytes(bytes(max(0, free - size)))
        refusals = 0
        for number in range(MOST):
            try:
                memory = store.insert_memory({"type": "episodic", "content": f"{number} " + "long " * 150})
            except memgraph.MemGraphError as error:
                say({"refused": str(error), "type": type(error).__name__})
                refusals += 1
                if refusals == 3:
                    assert store.get_all_memories(), "reading needs no room"
                    assert memgraph.MemoryRetrieval(store).search_memories("the build failed")
                    break
            else:
                say(memory.id)
        if how == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        else:
            ballast.unlink()
        say(store.insert_memory({"type": "episodic", "content": "with room again"}).id)
        store.verify()
    say("closed")


main()
