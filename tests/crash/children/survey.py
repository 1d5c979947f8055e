"""Opens a store after a crash, checks all of it, and continues to use it. ``FOLDER [quickly] [graph]``.

Quickly: without a rebuild, and checked once. With its graph, which costs a process.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

from places import opened, say

from memgraph.model.ids import source_id


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def main() -> None:
    folder, is_quick, with_graph = Path(sys.argv[1]), "quickly" in sys.argv, "graph" in sys.argv
    heard = _Heard()
    logging.getLogger("memgraph").addHandler(heard)
    with opened(folder) as store:
        digest = store.digest()
        memories = {memory.id: memory for memory in store.every_memory()}
        store.every_link()  # reading a damaged row rebuilds the rows; `verify` only reports it
        with store._projector.reading():
            seen = Counter(key for key, _ in store._projector.rows.scan("Memory"))
        assert seen == Counter(memories.keys()), "rows and index differ"
        if with_graph:
            shown = {row["m.id"]: row["m.content"] for row in store.cypher("MATCH (m:Memory) RETURN m.id, m.content")}
            assert shown == {key: memory.content for key, memory in memories.items()}, "graph and index differ"
        store.verify()
        if not is_quick:
            store.rebuild()
        assert store.digest() == digest, "replay gives another state"
        assert {memory.id: memory for memory in store.every_memory()} == memories, "replay gives other memories"
        new = {"id": source_id("crash", "life goes on"), "type": "episodic", "content": "life goes on in login.py"}
        store.insert_memory(new)
        assert store.get_memory(new["id"]) is not None
        if not is_quick:
            assert store.verify() > 1
    with closing(sqlite3.connect(folder / "store" / "memgraph.db")) as raw:
        payloads = [json.loads(row[0]) for row in raw.execute("SELECT payload FROM event WHERE type = 'memory.added'")]
    added = Counter(payload["memory"]["id"] for payload in payloads)
    assert set(added.values()) <= {1}, "a memory was recorded twice"
    say({"digest": digest, "memories": len(memories), "heard": heard.messages})


main()
