"""Forks after opening a store; the child tries everything, then the parent continues. ``FOLDER``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from places import opened, say

import memgraph


def main() -> None:
    with opened(Path(sys.argv[1])) as store:
        known = store.insert_memory({"type": "episodic", "content": "before the fork"})
        pid = os.fork()
        if pid == 0:
            tries = {
                "read": lambda: store.get_memory(known.id),
                "search": lambda: memgraph.MemoryRetrieval(store).search_memories("fork"),
                "write": lambda: store.insert_memory({"type": "episodic", "content": "in the fork"}),
                "verify": store.verify,
            }
            for name, attempt in tries.items():
                try:
                    attempt()
                    say({name: "went through"})
                except memgraph.MemGraphError as error:
                    say({name: [type(error).__name__, str(error)]})
            store.close()
            with opened(Path(sys.argv[1]), lock_timeout_s=60.0) as own:  # one of its own is fine
                own.insert_memory({"type": "episodic", "content": "by the fork's own store"})
            say("the fork is done")
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        assert status == 0, status
        store.insert_memory({"type": "episodic", "content": "after the fork"})
        store.verify()


main()
