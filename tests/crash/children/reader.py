"""Reads repeatedly until the file ``stop`` exists. ``FOLDER``. What it has seen must stay, and be consistent; each round is reported."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from places import opened, say

import memgraph


def main() -> None:
    folder = Path(sys.argv[1])
    seen: set[str | None] = set()
    with opened(folder, lock_timeout_s=120.0) as store:
        retrieval = memgraph.MemoryRetrieval(store)
        while not (folder / "stop").exists():
            found = {memory.id for memory in store.get_all_memories()}
            assert seen <= found, "memories have gone"
            seen = found
            hits = retrieval.search_memories("the build failed in login", limit=10)
            assert bool(hits) == bool(store.get_all_memories())
            count = store.cypher("MATCH (m:Memory) RETURN count(m) AS count")[0]["count"]
            assert count >= len(found)
            say("a round")
            time.sleep(0.1)  # the writers need the processor, too


main()
