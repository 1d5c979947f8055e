"""The graph as other libraries read it back: networkx, polars."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import polars as pl
import pytest
from defusedxml import ElementTree

from memgraph import StorageError
from memgraph.errors import MissingExtraError
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.testing import FakeClock
from memgraph.viz.export import Graph, gexf, graph_parquet, graphml, node_kinds, node_link, series_parquet, shown_graph
from memgraph.viz.files import make_folder, write_files
from memgraph.viz.series import Point, Series
from tests.unit.viz.conftest import HOSTILE

Store = Any
NOTHING = Graph([], [])
LINKS = 2 * len(HOSTILE)
"""From one memory to each of these, from each to the next, and to the one beside them."""


@pytest.fixture(scope="module")
def graph(motley: Store) -> Graph:
    return shown_graph(motley)


@pytest.fixture(scope="module")
def ids(graph: Graph) -> dict[str, str]:
    return {node["title"]: node["id"] for node in graph.nodes}


def printable(text: str) -> str:
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "\ufffd", text)


def test_only_what_may_be_shown_and_the_links_between_it(graph: Graph, ids: dict[str, str], motley: Store) -> None:
    assert set(ids) == {"plain", "next", *HOSTILE}
    assert {(edge["source"], edge["relation"], edge["target"]) for edge in graph.edges} == {
        *((ids["plain"], "RELATED_TO", ids[name]) for name in HOSTILE),
        (ids["plain"], "NEXT", ids["next"]),
        *((ids[one], "NEXT", ids[other]) for one, other in pairwise(HOSTILE)),
    }
    assert all("embedding" not in node and "supporting_memory_ids" not in node for node in graph.nodes)
    whole = shown_graph(motley, include={"sensitive", "private", "suppressed", "archived"}, project_id="shop")
    assert (len(whole.nodes), len(whole.edges)) == (6, 9)
    assert shown_graph(motley, limit=1).edges == []


def test_networkx_reads_the_node_link_document(graph: Graph, ids: dict[str, str]) -> None:
    read = nx.node_link_graph(json.loads(node_link(graph)), edges="edges")
    assert (read.is_directed(), read.is_multigraph(), len(read), read.size()) == (True, True, 8, LINKS)
    for name, text in HOSTILE.items():
        assert read.nodes[ids[name]]["content"] == text
    plain = read.nodes[ids["plain"]]
    assert plain["action_log"][0]["action"] == "looked"
    assert plain["tags"] == ["t"]
    link = read.edges[ids["plain"], ids["rtl"], "RELATED_TO"]
    assert (link["score"], link["reason"]) == (0.5, HOSTILE["control"])


def test_graphml_has_the_labels_that_programs_show(graph: Graph) -> None:
    read = nx.read_graphml(io.BytesIO(graphml(graph)), force_multigraph=True)
    assert read.number_of_edges()
    for _, node in read.nodes(data=True):
        assert 0 < len(node["label"]) <= 61
    plain = next(node for _, node in read.nodes(data=True) if node["title"] == "plain")
    assert plain["content"].startswith(plain["label"].rstrip("…"))
    for _, _, edge in read.edges(data=True):
        assert edge["label"] == edge["relation"]


def test_networkx_reads_the_graphml(graph: Graph, ids: dict[str, str]) -> None:
    written = graphml(graph)
    read = nx.read_graphml(io.BytesIO(written), force_multigraph=True)
    assert (read.is_directed(), len(read), read.size()) == (True, 8, LINKS)
    for name, text in HOSTILE.items():
        assert read.nodes[ids[name]]["content"] == printable(text)
    plain = read.nodes[ids["plain"]]
    assert (plain["is_pinned"], plain["access_count"], plain["duration_seconds"]) == (False, 1, 2.5)
    assert (json.loads(plain["tags"]), json.loads(plain["entities"])[0]["name"]) == (["t"], "a.py")
    assert plain["occurred_at"] == "2026-03-01T09:00:00.000Z"
    (link,) = read.get_edge_data(ids["plain"], ids["rtl"]).values()
    assert (link["relation"], link["score"], link["reason"]) == ("RELATED_TO", 0.5, printable(HOSTILE["control"]))
    names = [key.attrib["attr.name"] for key in ElementTree.fromstring(written) if key.tag.endswith("key")]
    assert "location" not in names  # nobody said any


def test_networkx_reads_the_gexf(graph: Graph, ids: dict[str, str]) -> None:
    read = nx.read_gexf(io.BytesIO(gexf(graph)))
    assert (read.is_directed(), len(read), read.size()) == (True, 8, LINKS)
    plain = read.nodes[ids["plain"]]
    assert (plain["is_pinned"], plain["duration_seconds"], json.loads(plain["tags"])) == (False, 2.5, ["t"])
    assert plain["content"].startswith(plain["label"].rstrip("…"))


@pytest.mark.parametrize("written", [graphml, gexf])
def test_what_memories_name_are_nodes(opened: Any, tmp_path: Path, written: Any) -> None:
    commit = {
        "project_id": "web",
        "git_commit": "a" * 40,
        "agents_involved": ["Ada"],
        "release": "1.0",
        "source": "commit",
    }
    changes = [{"path": "new.py", "kind": "R", "added": 1, "removed": 1, "was": "old.py"}]
    with opened(tmp_path, FakeClock()) as store:
        store.insert_memory(
            {"type": "episodic", "content": "Moved", "outcome": "success", "changes": changes, **commit}
        )
        graph, without = shown_graph(store, include={"records"}, named=True), shown_graph(store, named=True)
    assert without == NOTHING
    read = nx.MultiDiGraph((nx.read_graphml if written is graphml else nx.read_gexf)(io.BytesIO(written(graph))))
    called = {key: (node["type"], node.get("name")) for key, node in read.nodes(data=True)}
    joined = {(called[one], edge["relation"], called[other]) for one, other, edge in read.edges(data=True)}
    episode = ("episodic", None)
    assert joined >= {
        (episode, "CHANGED", ("file", "new.py")),
        (("file", "old.py"), "RENAMED", ("file", "new.py")),
        (episode, "AUTHORED_BY", ("person", "Ada")),
        (episode, "IN_RELEASE", ("release", "1.0")),
        (episode, "OF_COMMIT", ("commit", "a" * 40)),
    }


def test_an_export_has_the_tests_of_runs_but_no_failure_that_is_forgotten(opened: Any, tmp_path: Path) -> None:
    tasks = [
        {"task_id": f"t{number}", "agent_name": "ci", "description": f"Test {name}", "test": name, "outcome": outcome}
        for number, (name, outcome) in enumerate([("a", "success"), ("b", "failure"), ("c", "failure")])
    ]
    times = dict.fromkeys(("started_at", "completed_at"), "2026-01-05T10:00:00Z")
    build = {"build_id": "b1", "project_id": "web", "build_outcome": "failure", "git_commit": "a" * 40, **times}
    with opened(tmp_path, FakeClock()) as store:
        ConsolidationPipeline(store).consolidate({**build, "tasks": tasks})
        (hidden,) = [one.id for one in store.every_memory() if one.source_event_ids == ["b1/t2"]]
        store.suppress(hidden)
        graph = shown_graph(store, include={"records"}, named=True)
    called = {node["id"]: (node["type"], node.get("name")) for node in graph.nodes}
    joined = {(edge["relation"], called[edge["target"]]) for edge in graph.edges if called[edge["source"]][0] == "run"}
    run = {
        ("PASSED", ("test", "a")),
        ("FAILED", ("test", "b")),
        ("OF_BUILD", ("build", "b1")),
        ("RAN_ON", ("commit", "a" * 40)),
    }
    assert joined == run


def test_an_export_reads_the_runs_of_its_builds_alone(opened: Any, tmp_path: Path, monkeypatch: Any) -> None:
    times = dict.fromkeys(("started_at", "completed_at"), "2026-01-05T10:00:00Z")
    with opened(tmp_path, FakeClock()) as store:
        for project in ("web", "api"):
            for build, outcome in (("b1", "failure"), ("b2", "success")):
                task = {"task_id": "t", "agent_name": "ci", "description": "Test a", "test": "a", "outcome": outcome}
                log = {"build_id": build, "project_id": project, "build_outcome": outcome, "tasks": [task], **times}
                ConsolidationPipeline(store).consolidate(log)
        shown = {one.build_id for one in store.every_memory() if one.project_id == "web"}
        monkeypatch.setattr(type(store.reader), "every_record", None)
        graph = shown_graph(store, project_id="web", include={"records"}, named=True)
    runs = [(node["project_id"], node["name"]) for node in graph.nodes if node["type"] == "run"]
    assert sorted(runs) == sorted(("web", build) for build in shown)
    assert runs


def test_a_thing_is_one_node_however_memories_name_it(opened: Any, tmp_path: Path) -> None:
    commit = {
        "type": "episodic", "outcome": "success", "source": "commit", "project_id": "web", "git_commit": "a" * 40,
        "agents_involved": ["Ada Lovelace"], "release": "1.0", "closes": ["7"], "changes": [{"path": "src/Cart.py", "kind": "M"}],
    }  # fmt: skip
    named = {"commit": "a" * 12, "issue": "#7", "file": "src/cart.py", "person": "ada lovelace", "symbol": "total"}
    entities = [{"name": name, "kind": kind} for kind, name in named.items()]
    note = {"type": "semantic", "project_id": "web", "entities": [*entities, {"name": "1.0", "kind": "commit"}]}
    with opened(tmp_path, FakeClock()) as store:
        store.insert_memory({**commit, "content": "Lock the cart"})
        store.insert_memory({**note, "content": "Carts are locked", "agents_involved": ["Ada Lovelace", "MARS"]})
        elsewhere = {"project_id": "api", "entities": [{"name": "src/cart.py", "kind": "file"}]}
        store.insert_memory({"type": "semantic", "content": "Carts are counted", **elsewhere})
        graph = shown_graph(store, include={"records"}, named=True)
    called = {node["id"]: (node["type"], node.get("name"), node.get("project_id")) for node in graph.nodes}
    assert sorted(called[key][:2] for key in called if called[key][1]) == [
        ("agent", "MARS"), ("commit", "a" * 40), ("file", "src/Cart.py"), ("file", "src/cart.py"), ("issue", "7"), ("person", "Ada Lovelace"),
        ("project", "api"), ("project", "web"), ("release", "1.0"), ("symbol", "total"),
    ]  # fmt: skip
    assert [one[2] for one in called.values() if one[0] == "file"] == ["web", "api"]
    ids = {node["content"]: node["id"] for node in graph.nodes if "content" in node}
    told = [ids["Lock the cart"], ids["Carts are locked"]]
    of_both = [{edge["target"] for edge in graph.edges if edge["source"] == one} for one in told]
    assert {called[key][0] for key in set.intersection(*of_both)} == {
        *("commit", "file", "issue", "person", "project", "release")
    }


def test_polars_reads_the_tables(graph: Graph, ids: dict[str, str]) -> None:
    nodes, edges = (pl.read_parquet(io.BytesIO(table)) for table in graph_parquet(graph))
    assert (nodes.height, edges.height) == (8, LINKS)
    assert nodes.columns == list(node_kinds())
    by_id = {row["id"]: row for row in nodes.to_dicts()}
    for name, text in HOSTILE.items():
        assert by_id[ids[name]]["content"] == text
    plain = by_id[ids["plain"]]
    assert (plain["tags"], plain["is_pinned"], plain["access_count"]) == (["t"], False, 1)
    assert plain["valid_at"] == datetime(2026, 2, 1, tzinfo=UTC)
    assert json.loads(plain["action_log"])[0]["t"] == 1.5
    assert plain["location"] is None
    assert set(edges["relation"]) == {"RELATED_TO", "NEXT"}


def test_a_graph_of_nothing_is_one(learned: Store) -> None:
    assert shown_graph(learned, project_id="nobody's") == NOTHING
    assert len(nx.node_link_graph(json.loads(node_link(NOTHING)), edges="edges")) == 0
    assert len(nx.read_graphml(io.BytesIO(graphml(NOTHING)))) == 0
    nodes, edges = (pl.read_parquet(io.BytesIO(table)) for table in graph_parquet(NOTHING))
    assert (nodes.columns, nodes.height, edges.height) == (list(node_kinds()), 0, 0)


def test_every_kind_of_field_is_known() -> None:
    kinds = node_kinds()
    assert list(kinds)[:3] == ["id", "type", "content"]
    told = {
        name: kinds[name]
        for name in ("occurred_at", "event_date", "confidence", "override_count", "tags", "common_errors")
    }
    assert list(told.values()) == ["time", "time", "number", "whole", "texts", "records"]


def test_polars_reads_series_in_long_form() -> None:
    one = Series(
        "a", "A", "share", "A of all.", (Point("2026-02-01", "x", None, 0), Point("2026-03-01", "x", 0.5, 2)), "month"
    )
    table = pl.read_parquet(io.BytesIO(series_parquet([one, Series("b", "B", "memories", "B.")])))
    assert table.rows()[1] == ("a", "share", "month", datetime(2026, 3, 1).date(), "x", 0.5, 2)  # noqa: DTZ001 - a day
    assert table["value"].to_list() == [None, 0.5]


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"memgraph-kuzu\[parquet\]"):
        graph_parquet(NOTHING)


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    place = tmp_path / "place"
    old, folder = place / "old", place / "folder"
    folder.mkdir(parents=True)
    old.write_bytes(b"old")
    for hindrance in (folder, place / "nowhere" / "file", old / "below"):
        with pytest.raises(StorageError, match="cannot be written") as refused:
            write_files({old: b"new", hindrance: b"new"})
        assert refused.value.path == hindrance
    assert old.read_bytes() == b"old"
    write_files({old: b"new"})
    assert (old.read_bytes(), sorted(place.iterdir())) == (b"new", [folder, old])
    with pytest.raises(StorageError, match="cannot be written"):
        make_folder(old / "below")


def test_what_is_there_keeps_its_mode_and_a_link_is_followed(tmp_path: Path) -> None:
    place = tmp_path / "place"
    target, link, dangling = place / "deep" / "target", place / "link", place / "dangling"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    dangling.symlink_to(place / "deep" / "new")
    write_files({link: b"new", dangling: b"made"})
    assert (link.readlink(), target.read_bytes(), target.stat().st_mode & 0o777) == (target, b"new", 0o640)
    made = place / "deep" / "new"
    assert (dangling.is_symlink(), made.read_bytes(), made.stat().st_mode & 0o777) == (True, b"made", 0o600)
    assert {path.name for path in place.rglob("*")} == {"deep", "target", "link", "dangling", "new"}


def test_what_is_no_regular_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "place"
    place.mkdir()
    pipe, link, loop = place / "pipe", place / "link", place / "loop"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    loop.symlink_to(loop)
    for path in (pipe, link, loop):
        with pytest.raises(StorageError, match="cannot be written: it is not a regular file"):
            write_files({place / "other": b"", path: b"new"})
    assert pipe.is_fifo()
    assert {path.name for path in place.iterdir()} == {"pipe", "link", "loop"}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="must name a file"):
        write_files({Path(): b"new"})
    with pytest.raises(StorageError, match="cannot be written"):
        write_files({Path("a\0b"): b"new"})
