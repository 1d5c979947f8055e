"""Old memory of the process does not get into the engine's files, although the engine writes buffers that it has not filled."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from memgraph.graph.zeroed_memory import ZeroedMemory

FILL = 90
UNFILLED = bytes([FILL ^ 255]) * 32
"""What new memory holds in a process of this setting of the GNU C library, until something is written to it."""
CHILD = """
import sys
from pathlib import Path
from memgraph.model.ids import natural_id
from memgraph.ports import Change
from tests.engines import Engine

engine = Engine(Path(sys.argv[1]), idle_s=60.0)
key = natural_id("source", "s")
row = {"id": key, "cursor": "lines:1", "records": 1}
if sys.argv[2] == "rebuilt":
    engine.rebuild([Change("Source", key, None, row)], {"seq": 1})
engine.apply([Change("Source", key, row, {**row, "records": 2})], {"seq": 2})
if sys.argv[2] == "checkpointed":
    engine.checkpoint()
engine.close()
"""


@pytest.mark.embedded
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library can zero memory")
@pytest.mark.parametrize("way", ["rebuilt", "checkpointed", "with its log"])
def test_old_memory_is_in_no_file_of_the_engine(tmp_path: Path, way: str) -> None:
    environment = {**os.environ, "MALLOC_PERTURB_": str(FILL)}
    command = [sys.executable, "-c", CHILD, str(tmp_path / "graph"), way]
    subprocess.run(command, env=environment, check=True, timeout=60, cwd=Path(__file__).parents[3])
    files = [path for path in (tmp_path / "graph").iterdir() if path.is_file()]
    assert "memgraph.kuzu" in {path.name for path in files}
    assert [path.name for path in files if UNFILLED in path.read_bytes()] == []


def test_memory_is_zeroed_while_anyone_wants_it() -> None:
    asked: list[int] = []
    zeroed = ZeroedMemory(asked.append)
    zeroed.begin()
    zeroed.begin()
    zeroed.end()
    assert asked == [255]
    zeroed.end()
    assert asked == [255, 0]
