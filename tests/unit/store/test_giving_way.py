"""A long query does not keep others from the graph: it starts again on a copy."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph.graph.storage import database_file as file
from memgraph.ports import Change
from tests.engines import Engine

pytestmark = pytest.mark.embedded

SUM = "UNWIND range(1, 10000) AS a UNWIND range(1, 10000) AS b UNWIND range(1, {}) AS c RETURN sum(a * c) AS x"
LONG, ANSWER = SUM.format(4), [{"x": 50_005_000 * 10_000 * 10}]  # more than 1 s
LONGISH, ITS_ANSWER = SUM.format(1), [{"x": 50_005_000 * 10_000}]
ENDLESS = f"UNWIND range(1, 10000) AS d {LONG}"

OTHER = """
import sys, time
from pathlib import Path
import memgraph
from memgraph.testing import FakeEmbedder

folder = Path(sys.argv[1])
config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", graph_idle_s=0.0)
with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64)) as store:
    retrieval = memgraph.MemoryRetrieval(store)
    print("open", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    assert store.get_memory(sys.argv[2]).content == "Tokens expire"
    assert len(retrieval.search_memories("Tokens expire")) == 1
    print(time.monotonic() - began, flush=True)
"""
QUERY = """
import signal, sys
from pathlib import Path
from tests.engines import Engine

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs without it
engine = Engine(Path(sys.argv[1]) / "graph", patience_s=0.05)
answer = engine.cypher(sys.argv[2], {}, gives_way=lambda: True)
try:
    answer()
except KeyboardInterrupt:
    print("interrupted")
"""


def copies(folder: Path) -> list[Path]:
    return list((folder / "graph").glob("query-*"))


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


class Asking(threading.Thread):
    """Asks a store in a thread."""

    def __init__(self, ask: Callable[[], Any]) -> None:
        super().__init__()
        self.ask = ask
        self.answer: Any = None
        self.start()

    def run(self) -> None:
        self.answer = self.ask()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path / "graph", patience_s=0.05)
    engine.apply([Change("Tag", "t", None, {"id": "t", "name": "auth"})], {"seq": 1})
    yield engine
    engine.close()


@pytest.fixture
def impatient(store: Any) -> Any:
    """A store whose queries give way almost at once."""
    store._projector.engine.patience_s = 0.05
    return store


class TestStores:
    def test_another_process_reads_while_a_query_runs(self, impatient: Any, tmp_path: Path) -> None:
        store = impatient
        memory = store.insert_memory({"type": "semantic", "content": "Tokens expire"})
        command = [sys.executable, "-W", "error", "-c", OTHER, str(tmp_path), memory.id]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdin is not None
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
            asking = Asking(lambda: store.cypher(LONG))
            until(lambda: store._projector.has_graph)
            other.stdin.write("go\n")
            other.stdin.flush()
            assert float(other.stdout.readline()) < 3
            assert asking.is_alive(), "it has waited for the query"
            asking.join()
        assert asking.answer == ANSWER
        assert not copies(store.config.home)

    def test_another_thread_reads_while_a_query_runs(self, impatient: Any) -> None:
        store = impatient
        memory = store.insert_memory({"type": "semantic", "content": "Tokens expire"})
        asking = Asking(lambda: store.cypher(LONG))
        until(lambda: store._projector.has_graph)
        assert store.get_memory(memory.id) == memory
        assert copies(store.config.home)
        store.insert_memory({"type": "semantic", "content": "and can write"})
        assert store.cypher("MATCH (m:Memory) RETURN count(*) AS n") == [{"n": 2}]
        assert asking.is_alive(), "short queries wait for a long one"
        asking.join()
        assert asking.answer == ANSWER

    def test_a_query_inside_a_larger_block_is_not_interrupted(self, impatient: Any) -> None:
        impatient.insert_memory({"type": "semantic", "content": "Tokens expire"})
        with impatient.reader.frozen(links=True):
            waiting = Asking(lambda: impatient.cypher("MATCH (m:Memory) RETURN count(*) AS n"))
            until(lambda: impatient._projector.gate.guard.is_awaited)
            assert impatient.cypher(LONGISH) == ITS_ANSWER
            assert waiting.answer is None, "the block was not held"
        waiting.join()
        assert waiting.answer == [{"n": 1}]


class TestCopies:
    def test_a_short_query_needs_no_copy(self, tmp_path: Path) -> None:
        engine = Engine(tmp_path / "graph")
        engine.apply([Change("Tag", "t", None, {"id": "t", "name": "auth"})], {"seq": 1})
        assert engine.cypher("MATCH (t:Tag) RETURN t.name AS n", {}, gives_way=lambda: True) == [{"n": "auth"}]
        engine.close()

    def test_a_copy_has_the_graphs_state_at_the_query(self, engine: Engine, tmp_path: Path) -> None:
        busy = LONGISH.replace("RETURN", "WITH") + " MATCH (t:Tag) RETURN x, count(*) AS tags"
        query = engine.cypher(busy, {}, gives_way=lambda: True)
        assert callable(query)
        (copy,) = copies(tmp_path)
        assert copy.stat().st_mode & 0o777 == 0o700
        engine.apply([Change("Tag", "u", None, {"id": "u", "name": "later"})], {"seq": 2})
        assert query() == [ITS_ANSWER[0] | {"tags": 1}]
        assert not copies(tmp_path)

    def test_an_unused_copy_is_removed(self, engine: Engine, tmp_path: Path) -> None:
        query = engine.cypher(ENDLESS, {}, gives_way=lambda: True)
        assert copies(tmp_path)
        del query
        assert not copies(tmp_path)

    def test_a_waiting_query_gives_way_too(self, engine: Engine, tmp_path: Path) -> None:
        other = Engine(tmp_path / "other" / "graph")
        assert other.cypher("RETURN 1 AS x", {}) == [{"x": 1}]
        asking = Asking(lambda: other.cypher(SUM.format(2), {}))
        until(file._SHORT_QUERIES._turn.locked)
        query = engine.cypher("MATCH (t:Tag) RETURN t.name AS n", {}, gives_way=lambda: True)
        assert copies(tmp_path)
        assert query() == [{"n": "auth"}]
        assert asking.is_alive()
        asking.join()
        other.close()

    def test_without_disk_space_the_query_continues(self, engine: Engine, tmp_path: Path) -> None:
        engine.release()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (engine.size_bytes(), hard))
        try:
            answer = engine.cypher(LONGISH, {}, gives_way=lambda: True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert answer == ITS_ANSWER

    @pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGKILL])
    def test_a_copy_of_a_killed_process_is_removed(
        self, engine: Engine, tmp_path: Path, number: signal.Signals
    ) -> None:
        engine.release()
        command = [sys.executable, "-c", QUERY, str(tmp_path), ENDLESS]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
            until(lambda: copies(tmp_path))
            engine.state()  # the graph can be opened, which leaves the copy to its owner
            assert copies(tmp_path)
            engine.release()
            os.kill(other.pid, number)
            out, _ = other.communicate(timeout=30)
        if number == signal.SIGKILL:
            assert copies(tmp_path)
            engine.state()
        else:
            assert out == "interrupted\n"
        assert not copies(tmp_path)
