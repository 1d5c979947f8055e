"""The graph is a copy of today's rows: complete, current, only ever read, and thrown away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from memgraph.disk.files import clear
from memgraph.disk.seal import Seal
from memgraph.errors import ConfigError, DiskFullError, GraphError, MissingExtraError, QueryError
from memgraph.graph import copy as module
from memgraph.graph.copy import VENDORS, GraphCopy, QueryLimits, Vendor
from memgraph.graph.process import EngineProcess
from memgraph.model.ids import natural_id
from memgraph.ports import Change, Key, Row
from tests.engines import SEAL, Graph, Snapshots, vendor_name
from tests.tables import bytes_of

pytestmark = pytest.mark.embedded

SOURCES = "MATCH (s:Source) RETURN s.id AS id ORDER BY id"
SUM = "UNWIND range(1, 10000) AS a UNWIND range(1, 10000) AS b UNWIND range(1, {}) AS c RETURN sum(a * c) AS x"
CRASHING = "RETURN date('20000-01-01') AS x"


def put(table: str, key: Key, row: Row | None = None) -> Change:
    """Return a change that puts a row; a node's has its key."""
    return Change(table, key, None, {"id": key, **(row or {})} if isinstance(key, str) else row or {})


def gone(table: str, key: Key) -> Change:
    return Change(table, key, {}, None)


def bases(folder: Path) -> list[Path]:
    return sorted(folder.glob("base-*"))


def beside(folder: Path) -> list[str]:
    """Return the names of all files but the bases."""
    return sorted(path.name for path in folder.glob("*") if path not in bases(folder))


def hurried(folder: Path, rows: Snapshots) -> GraphCopy:
    """Return a graph that follows no change without a fresh base."""
    return GraphCopy(folder / "graph", VENDORS[vendor_name()], SEAL, rows.snapshot, limits=QueryLimits(changes=0))


def ids(graph: GraphCopy) -> list[str]:
    return [row["id"] for row in graph.query(SOURCES, {})]


@pytest.fixture
def rows() -> Snapshots:
    rows = Snapshots()
    rows.take([put("Source", "t", {"name": "auth"}), put("Memory", "m", {"tags": ["auth"]})])
    return rows


@pytest.fixture
def graph(rows: Snapshots, tmp_path: Path) -> Iterator[GraphCopy]:
    graph = Graph(tmp_path / "graph", rows)
    yield graph
    graph.close()


class TestRows:
    def test_it_answers_with_the_rows_as_they_are(self, graph: GraphCopy, rows: Snapshots) -> None:
        query = (
            "MATCH (m:Memory)-[:TAGGED]->(t:Tag) RETURN m.tags AS tags, t.name AS name, m.title AS title, m.seq AS seq"
        )
        assert graph.query(query, {}) == [{"tags": ["auth"], "name": "auth", "title": "", "seq": 1}]
        rows.take([put("Memory", "m", {"tags": ["auth", "b"], "title": "it's"})])
        assert graph.query(query + " ORDER BY name", {}) == [
            {"tags": ["auth", "b"], "name": name, "title": "it's", "seq": 1} for name in ("auth", "b")
        ]
        rows.take([put("Memory", "m", {"seq": 1})])
        assert graph.query(query, {}) == []

    def test_rows_come_and_go(self, graph: GraphCopy, rows: Snapshots, tmp_path: Path) -> None:
        assert ids(graph) == ["t"]
        rows.take([put("Memory", "n", {"tags": ["b"]}), put("NEXT", ("m", "n")), put("Source", "u")])
        rows.take([put("Memory", "m"), gone("Source", "t")])
        assert ids(graph) == ["u"]
        found = graph.query("MATCH (m:Memory)-[e]->(n) RETURN m.id AS a, label(e) AS r, n.id AS b ORDER BY r", {})
        assert list(map(tuple, map(dict.values, found))) == [
            ("m", "NEXT", "n"),
            ("n", "TAGGED", natural_id("tag", "b")),
        ]
        assert graph.query("MATCH (t:Tag) RETURN t.name AS name", {}) == [{"name": "b"}]
        assert len(bases(tmp_path / "graph")) == 1

    def test_properties_of_edges_change(self, graph: GraphCopy, rows: Snapshots) -> None:
        query = "MATCH (:Memory)-[e:SUPPORTS]->(:Memory) RETURN e.score AS s, e.reason AS r, e.created_at AS at"
        moment = "2026-02-01T09:00:00.123Z"
        rows.take([put("Memory", "n"), put("SUPPORTS", ("m", "n"), {"score": 0.5, "created_at": moment})])
        assert graph.query(query, {}) == [{"s": 0.5, "r": "", "at": moment}]
        rows.take([put("SUPPORTS", ("m", "n"), {"reason": "because"})])
        assert graph.query(query, {}) == [{"s": None, "r": "because", "at": None}]

    def test_rows_without_a_graph_so_far(self, tmp_path: Path) -> None:
        graph = Graph(tmp_path / "graph", Snapshots())
        assert ids(graph) == []
        graph.close()

    def test_many_changes_make_a_fresh_base(self, rows: Snapshots, tmp_path: Path) -> None:
        graph = Graph(tmp_path / "graph", rows, limits=QueryLimits(changes=3))
        assert ids(graph) == ["t"]
        first = bases(tmp_path / "graph")
        rows.take([put("Source", name) for name in "abcd"])
        assert ids(graph) == [*"abcdt"]
        assert len(bases(tmp_path / "graph")) == 1
        assert bases(tmp_path / "graph") != first
        graph.close()

    def test_a_value_of_each_column(self, graph: GraphCopy, rows: Snapshots) -> None:
        """By COPY and by statement."""
        row = {
            "steps": ["a", "", "ü'\"\\\n"],
            "duration_seconds": 1e22,
            "is_solved": False,
            "attempt": 2**40,
            "event_date": "0001-01-01T00:00:00.000Z",
        }
        query = f"MATCH (m:Memory {{id: $id}}) RETURN {', '.join(f'm.{name} AS {name}' for name in row)}"
        records = {"action_log": [{"t": 0.0, "action": "x"}, {"t": 2.5, "action": "", "error": "e"}]}
        for key in ("n", "o"):
            rows.take([put("Memory", key, row | records)])
            assert graph.query(query, {"id": key}) == [row]
            (lists,) = graph.query(
                "MATCH (m:Memory {id: $id}) RETURN m.action_log_t AS t, m.action_log_error AS e", {"id": key}
            )
            assert lists == {"t": [0.0, 2.5], "e": ["", "e"]}
            graph.write_base()


class TestFiles:
    def test_another_process_may_use_the_base(
        self, graph: GraphCopy, rows: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graph.write_base()
        graph.close()
        monkeypatch.setattr(GraphCopy, "write_base", lambda self: pytest.fail("a base was written"))
        rows.take([put("Source", "u")])
        other = Graph(tmp_path / "graph", rows)
        assert ids(other) == ["t", "u"]
        other.close()

    @pytest.mark.parametrize("place", [0, 4096, -1])
    def test_a_changed_base_is_not_served(self, graph: GraphCopy, tmp_path: Path, place: int) -> None:
        graph.write_base()
        (base,) = bases(tmp_path / "graph")
        content = bytearray(base.read_bytes())
        content[place] ^= 1
        base.write_bytes(content)
        assert ids(graph) == ["t"]
        assert not base.exists() or base.read_bytes() != content

    def test_a_base_of_another_store_or_state_is_not_served(
        self, graph: GraphCopy, rows: Snapshots, tmp_path: Path
    ) -> None:
        other = GraphCopy(tmp_path / "graph", VENDORS[vendor_name()], Seal(b"o" * 32), rows.snapshot)
        rows.take([put("Source", "foreign")])
        other.write_base()
        other.close()
        rows.take([gone("Source", "foreign")])
        assert ids(graph) == ["t"]
        rows.take([put("Source", "u")])
        graph.write_base()
        rows.era = "another"
        rows.tables["Source"]["v"] = {"id": "v"}
        assert ids(graph) == ["t", "u", "v"]

    def test_only_its_owner_reads_it(self, graph: GraphCopy, tmp_path: Path) -> None:
        assert ids(graph) == ["t"]
        assert {path.stat().st_mode & 0o077 for path in [tmp_path / "graph", *(tmp_path / "graph").iterdir()]} == {0}

    def test_closing_leaves_the_base_alone(self, graph: GraphCopy, tmp_path: Path) -> None:
        assert ids(graph) == ["t"]
        graph.close()
        graph.close()
        assert beside(tmp_path / "graph") == []
        assert len(bases(tmp_path / "graph")) == 1

    def test_after_many_writes_the_base_is_there_before_the_query(
        self, rows: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_QUICK_ROWS", 1)
        monkeypatch.setattr(module, "_QUIET_S", 0.01)
        graph = hurried(tmp_path, rows)
        assert ids(graph) == ["t"]
        before = bases(tmp_path / "graph")
        with graph.written_after(), graph.written_after():
            rows.take([put("Source", name) for name in "ab"])
        until = time.monotonic() + 60
        while not {*before}.isdisjoint(written := bases(tmp_path / "graph")) and time.monotonic() < until:
            time.sleep(0.01)
        assert len(written) == 1
        assert ids(graph) == [*"abt"]
        assert bases(tmp_path / "graph") == written
        with graph.written_after():
            pass
        graph.write_due()
        assert bases(tmp_path / "graph") == written  # no row has changed

    def test_a_base_that_is_due_is_written_before_closing(
        self, rows: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graph = hurried(tmp_path, rows)
        for quick, has_queried, is_written in ((1, False, False), (2, True, False), (1, True, True)):
            monkeypatch.setattr(module, "_QUICK_ROWS", quick)
            if has_queried:
                assert ids(graph) == ["t"]
            before = bases(tmp_path / "graph")
            with graph.written_after():
                rows.take([put("Source", "t")])
            assert bases(tmp_path / "graph") == before
            graph.write_due()
            assert (bases(tmp_path / "graph") != before) == is_written

    def test_an_engine_that_is_not_installed(self, rows: Snapshots, tmp_path: Path) -> None:
        graph = GraphCopy(tmp_path / "graph", Vendor("nowhere", extra="far"), SEAL, rows.snapshot)
        with pytest.raises(MissingExtraError, match="nowhere"):
            graph.query(SOURCES, {})

    def test_what_a_killed_process_left_is_removed(self, graph: GraphCopy, rows: Snapshots, tmp_path: Path) -> None:
        program = """
import os, signal, sys
from pathlib import Path
from tests.engines import Graph, Snapshots
graph = Graph(Path(sys.argv[1]), Snapshots())
assert graph.query("RETURN 1 AS x", {}) == [{"x": 1}]
graph._snapshot = lambda: os.kill(os.getpid(), signal.SIGKILL)
graph.write_base()
"""
        killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "graph")], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert [name.split("-")[0] for name in beside(tmp_path / "graph")] == ["query", "query"]
        assert ids(graph) == ["t"]
        graph.close()
        assert beside(tmp_path / "graph") == []

    def test_forgotten_rows_are_in_no_file(self, graph: GraphCopy, rows: Snapshots, tmp_path: Path) -> None:
        rows.take([put("Source", "u", {"name": "a secret word"})])
        assert ids(graph) == ["t", "u"]
        graph.write_base()
        rows.take([put("Source", "w", {"name": "another secret word"})])
        assert ids(graph) == ["t", "u", "w"]
        rows.take([gone("Source", "u"), gone("Source", "w")])
        rows.era = "purged"
        graph.forget()
        assert list((tmp_path / "graph").iterdir()) == []
        assert ids(graph) == ["t"]
        graph.write_base()
        kept = [bytes_of(path) for path in (tmp_path / "graph").rglob("*") if path.is_file()]
        assert {b"auth" in one for one in kept if one} == {True}
        assert not any(b"secret word" in one for one in kept)

    def test_a_row_that_was_changed_away_is_in_no_later_base(
        self, graph: GraphCopy, rows: Snapshots, tmp_path: Path
    ) -> None:
        """The process that writes a base knows today's rows only: the engine writes whole pages, of which it fills a part."""
        for number in range(3):
            rows.take([put("Source", f"u{n}", {"name": f"a secret word {number} {n} " * 20}) for n in range(200)])
            graph.write_base()
            assert len(ids(graph)) == 201
        rows.take([gone("Source", f"u{n}") for n in range(200)])
        graph.write_base()
        (base,) = bases(tmp_path / "graph")
        assert b"secret word" not in bytes_of(base)

    def test_a_full_disk_is_said(self, graph: GraphCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_SPARE_BYTES", 1 << 62)
        with pytest.raises(DiskFullError, match="free some disk space"):
            graph.write_base()
        assert list((tmp_path / "graph").iterdir()) == []

    def test_a_path_with_a_pattern_is_refused(self, rows: Snapshots, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="patterns"):
            Graph(tmp_path / "a*b", rows).query(SOURCES, {})
        graph = Graph(tmp_path / "it's \\ here", rows)
        assert ids(graph) == ["t"]
        graph.close()


class TestFailures:
    def test_a_copy_is_kept_for_the_next_query(self, graph: GraphCopy, rows: Snapshots, tmp_path: Path) -> None:
        assert ids(graph) == ["t"]
        (copied,) = beside(tmp_path / "graph")
        rows.take([put("Source", "u")])
        assert ids(graph) == ["t", "u"]
        assert beside(tmp_path / "graph") == [copied]

    def test_a_crash_costs_only_the_query(
        self, graph: GraphCopy, rows: Snapshots, caplog: pytest.LogCaptureFixture
    ) -> None:
        rows.take([put("Source", "u")])
        with pytest.raises(QueryError, match="SIGSEGV"):
            graph.query(CRASHING, {})
        assert ids(graph) == ["t", "u"]
        assert "anew" not in caplog.text

    def test_a_process_that_ends_just_before_it_is_asked_costs_nothing(
        self,
        graph: GraphCopy,
        rows: Snapshots,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        assert ids(graph) == ["t"]
        before, real, ended = bases(tmp_path / "graph"), module.updates, list[int]()

        def ending(changes: Iterable[Change], since: int) -> Iterator[Any]:
            yield from real(changes, since)
            if not ended:
                ended.append(since)
                for child in module._CHILDREN:
                    child.stop()

        monkeypatch.setattr(module, "updates", ending)
        rows.take([put("Source", "u")])
        assert ids(graph) == ["t", "u"]
        assert (bases(tmp_path / "graph"), len(ended)) == (before, 1)
        assert "anew" not in caplog.text

    def test_changes_that_the_engine_refuses_make_a_fresh_base(
        self, graph: GraphCopy, rows: Snapshots, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert ids(graph) == ["t"]
        monkeypatch.setattr(
            module, "updates", lambda changes, _: [("MATCH (n:Nothing) RETURN n", {})] if changes else []
        )
        rows.take([put("Source", "u")])
        assert ids(graph) == ["t", "u"]
        assert caplog.text.count("the graph is written anew") == 1

    @pytest.mark.parametrize("times", [2, 100])
    def test_a_base_that_purges_remove_while_it_is_written_is_written_again(
        self, rows: Snapshots, tmp_path: Path, times: int
    ) -> None:
        removed: list[Path] = []

        @contextmanager
        def snapshot() -> Iterator[Any]:
            with rows.snapshot() as found:
                yield found
            removed.extend(parts := [path for path in (tmp_path / "graph").glob("query-*") if len(removed) < times])
            for path in parts:
                clear(path)

        graph = GraphCopy(tmp_path / "graph", VENDORS[vendor_name()], SEAL, snapshot)
        if times == 2:
            assert ids(graph) == ["t"]
            assert len(removed) == 2
        else:
            with pytest.raises(GraphError, match="was removed while it was written, as a purge does; try again"):
                ids(graph)
        graph.close()

    def test_a_copy_that_a_purge_removes_before_it_follows_is_said(
        self, graph: GraphCopy, rows: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert ids(graph) == ["t"]
        real = module.updates

        def removing(changes: Iterable[Change], since: int) -> Iterator[Any]:
            yield from real(changes, since)
            for path in (tmp_path / "graph").glob("query-*"):
                clear(path)

        monkeypatch.setattr(module, "updates", removing)
        monkeypatch.setattr(module, "_ATTEMPTS", 1)  # as if the others had failed so, too
        rows.take([put("Source", "s")])
        with pytest.raises(GraphError, match="was removed while it was written, as a purge does; try again"):
            ids(graph)
        monkeypatch.undo()
        assert ids(graph) == ["s", "t"]

    @pytest.mark.parametrize("times", [1, 2])
    def test_a_copy_that_a_purge_removes_before_the_query_is_made_anew_once(
        self, graph: GraphCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
    ) -> None:
        real, removed = EngineProcess.query, list[Path]()

        def failing(self: EngineProcess, *given: Any) -> Any:
            if len(removed) == times:
                return real(self, *given)
            removed.extend((tmp_path / "graph").glob("query-*"))
            clear(removed[-1])
            self.stop()
            raise GraphError("the graph engine failed")

        monkeypatch.setattr(EngineProcess, "query", failing)
        if times == 1:
            assert ids(graph) == ["t"]
        else:
            with pytest.raises(GraphError, match="as a purge does; try again"):
                ids(graph)
        assert len(removed) == times

    def test_what_another_process_removes_at_once_is_forgotten(
        self, graph: GraphCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert ids(graph) == ["t"]
        folder = tmp_path / "graph" / "query-other"
        (folder / "inner").mkdir(parents=True)
        (folder / "graph").write_bytes(b"rows")
        rmdir = os.rmdir

        def late(path: Any, **given: Any) -> None:
            rmdir(path, **given)
            if str(path).endswith("inner"):
                raise FileNotFoundError(path)

        monkeypatch.setattr(os, "rmdir", late)
        graph.forget()
        assert [*(tmp_path / "graph").glob("query-*")] == []

    def test_an_engine_that_never_opens_is_an_error(self, graph: GraphCopy, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            graph, "_opening", lambda path, pool_bytes: b'{"engine": "kuzu", "path": "/", "options": {}}'
        )
        with pytest.raises(GraphError, match="graph engine failed"):
            graph.query(SOURCES, {})

    def test_rows_that_cannot_be_read_are_an_error(self, rows: Snapshots, tmp_path: Path) -> None:
        @contextmanager
        def broken() -> Iterator[Any]:
            raise GraphError("no rows")
            yield

        graph = GraphCopy(tmp_path / "graph", VENDORS[vendor_name()], SEAL, broken)
        with pytest.raises(GraphError, match="no rows"):
            graph.query(SOURCES, {})


class TestTogether:
    def test_a_short_query_does_not_wait_for_a_long_one(self, graph: GraphCopy, rows: Snapshots) -> None:
        assert ids(graph) == ["t"]
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.extend(graph.query(SUM.format(4), {})))
        thread.start()
        until(module._CHILDREN[0].turn.locked)
        rows.take([put("Source", "u")])
        assert ids(graph) == ["t", "u"]
        assert not found
        thread.join()
        assert found == [{"x": 50_005_000 * 10_000 * 10}]

    def test_no_snapshot_is_open_while_a_query_runs(self, rows: Snapshots, tmp_path: Path) -> None:
        open_ones: list[int] = []

        @contextmanager
        def snapshot() -> Iterator[Snapshots]:
            open_ones.append(1)
            yield rows
            open_ones.pop()

        graph = GraphCopy(tmp_path / "graph", VENDORS[vendor_name()], SEAL, snapshot)
        assert ids(graph) == ["t"]
        real, seen = module.EngineProcess.query, []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(module.EngineProcess, "query", lambda *given: seen.append(len(open_ones)) or real(*given))
            assert ids(graph) == ["t"]
        assert seen == [0]
        graph.close()

    def test_stores_take_turns(self, graph: GraphCopy, tmp_path: Path) -> None:
        rows = Snapshots()
        rows.take([put("Source", "o")])
        other = Graph(tmp_path / "other", rows)
        failures: list[BaseException] = []

        def work(mine: GraphCopy, expected: str) -> None:
            try:
                for _ in range(3):
                    assert ids(mine) == [expected]
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=one) for one in [(graph, "t"), (other, "o")] * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert failures == []
        other.close()

    def test_processes_write_bases_at_once(self, graph: GraphCopy, tmp_path: Path) -> None:
        program = """
import sys
from pathlib import Path
from tests.engines import Graph, Snapshots
from memgraph.ports import Change
rows = Snapshots()
graph = Graph(Path(sys.argv[1]), rows)
for number in range(4):
    rows.take([Change("Source", f"t{number}", None, {"id": f"t{number}"})])
    graph.write_base()
    assert len(graph.query("MATCH (t:Source) RETURN t.id", {})) == number + 1
graph.close()
"""
        command = [sys.executable, "-W", "error", "-c", program, str(tmp_path / "graph")]
        others = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        assert [(other.communicate(timeout=300)[1], other.returncode) for other in others] == [("", 0)] * 2
        assert ids(graph) == ["t"]


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
