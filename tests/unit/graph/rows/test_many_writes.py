"""Many small writes in one opening: the memory that the engine keeps for each is freed at intervals."""

from __future__ import annotations

from pathlib import Path

from memgraph.graph.storage.database_file import LogLimits
from memgraph.model.ids import natural_id
from memgraph.ports import Change
from tests.engines import Engine


def test_a_number_of_writes_triggers_a_checkpoint(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "graph", idle_s=60.0, log=LogLimits(most_writes=50))
    log = tmp_path / "graph" / "memgraph.kuzu.wal"
    key = natural_id("source", "s")
    before = None
    longest = 0
    for number in range(60):
        row = {"id": key, "cursor": f"lines:{number}", "records": number}
        engine.apply([Change("Source", key, before, row)], {"seq": number})
        before = row
        longest = max(longest, log.stat().st_size if log.exists() else 0)
    assert longest < 1 << 20, "each write is small: their sum alone would not have been brought in"
    assert log.stat().st_size < longest / 4
    assert engine.get("Source", key) == before
    engine.close()
