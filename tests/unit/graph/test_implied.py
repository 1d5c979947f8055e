"""What memories name: an edge to each thing, and a node for it, as long as one of them names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.graph.copy import GraphCopy
from memgraph.graph.implied import implied, updates
from memgraph.model.ids import natural_id
from memgraph.ports import Change
from tests.engines import Graph, Snapshots

NAMED: dict[str, Any] = {
    "project_id": "P", "build_id": "b1", "evidence_build_ids": ["b1", "b2"], "session_id": "s", "task_id": "t",
    "agents_involved": ["MARS"], "tags": ["Auth"],
    "entities": [{"name": "login.py", "kind": "file", "about": True}, {"name": "E1", "kind": "error"}],
}  # fmt: skip


@pytest.fixture
def rows() -> Snapshots:
    return Snapshots()


@pytest.fixture
def graph(rows: Snapshots, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[GraphCopy]:
    graph = Graph(tmp_path / "graph", rows)
    yield graph
    graph.close()
    assert "written anew" not in caplog.text, "a copy could not follow"


def put(rows: Snapshots, key: str, table: str = "Memory", **fields: Any) -> None:
    rows.take([Change(table, key, None, {"id": key, **fields})])


def names(graph: GraphCopy, table: str) -> list[str]:
    return [row["name"] for row in graph.query(f"MATCH (x:{table}) RETURN x.name AS name ORDER BY name", {})]


def edges(graph: GraphCopy) -> set[tuple[str, str, str]]:
    found = graph.query("MATCH (m:Memory)-[e]->(x) RETURN m.id AS m, label(e) AS e, x.name AS x", {})
    return {(row["m"], row["e"], row["x"]) for row in found}


def test_each_thing_that_a_memory_names() -> None:
    found = {(edge, table, node["id"]) for edge, _, table, node, _ in implied({"id": "m", **NAMED})}
    assert found == {
        ("IN_PROJECT", "Project", natural_id("project", "P")),
        *(("FROM_BUILD", "Build", natural_id("build", name, project_id="P")) for name in ("b1", "b2")),
        ("IN_SESSION", "Session", natural_id("session", "s", project_id="P")),
        ("IN_TASK", "Task", natural_id("task", "t")),
        ("INVOLVES", "Agent", natural_id("agent", "MARS")),
        ("TAGGED", "Tag", natural_id("tag", "auth")),
        ("MENTIONS", "Entity", natural_id("entity:file", "login.py", project_id="P")),
        ("MENTIONS", "Entity", natural_id("entity:error", "e1", project_id="P")),
    }
    assert list(implied({"id": "m", "content": "x"})) == []


@given(name=st.text(st.characters(exclude_categories=["Cs"])))
def test_the_id_of_a_name_is_its_uuid(name: str) -> None:
    namespace = UUID("6d656d67-7261-5068-8b75-7a75206a726e")
    assert natural_id("tag", name, project_id="P") == str(uuid5(namespace, f"tag\x1fP\x1f{name}"))


@pytest.mark.embedded
@pytest.mark.parametrize("follows", [False, True], ids=["a fresh graph", "a copy that follows"])
def test_nodes_come_and_go_with_the_memories_that_name_them(graph: GraphCopy, rows: Snapshots, follows: bool) -> None:
    def seen() -> set[tuple[str, str, str]]:
        if not follows:
            graph.write_base()
        return edges(graph)

    put(rows, "m", **NAMED)
    named = {
        ("IN_PROJECT", "P"),
        ("FROM_BUILD", "b1"),
        ("FROM_BUILD", "b2"),
        ("IN_SESSION", "s"),
        ("IN_TASK", "t"),
        ("INVOLVES", "MARS"),
    }
    named |= {("TAGGED", "Auth"), ("MENTIONS", "login.py"), ("MENTIONS", "E1")}
    assert seen() == {("m", *one) for one in named}
    put(rows, "n", tags=["auth"], agents_involved=["MARS"])
    assert seen() == {("m", *one) for one in named} | {("n", "TAGGED", "Auth"), ("n", "INVOLVES", "MARS")}
    put(rows, "m", tags=["Auth", "new"])
    assert seen() == {
        ("m", "TAGGED", "Auth"),
        ("m", "TAGGED", "new"),
        ("n", "TAGGED", "Auth"),
        ("n", "INVOLVES", "MARS"),
    }
    assert [names(graph, table) for table in ("Project", "Build", "Entity", "Tag")] == [[], [], [], ["Auth", "new"]]
    rows.take([Change("Memory", "m", {}, None)])
    assert seen() == {("n", "TAGGED", names(graph, "Tag")[0]), ("n", "INVOLVES", "MARS")}
    rows.take([Change("Memory", "n", {}, None)])
    assert seen() == set()
    assert graph.query("MATCH (x) RETURN x.id", {}) == []


@pytest.mark.embedded
def test_a_node_with_a_row_of_its_own_stays(graph: GraphCopy, rows: Snapshots) -> None:
    build = natural_id("build", "b1", project_id="P")
    put(rows, build, "Build", name="b1", project_id="P", outcome="failure")
    put(rows, "m", build_id="b1", project_id="P")
    query = "MATCH (x:Build) RETURN x.name AS name, x.outcome AS outcome"
    assert graph.query(query, {}) == [{"name": "b1", "outcome": "failure"}]
    rows.take([Change("Build", build, {}, None)])
    assert graph.query(query, {}) == [{"name": "b1", "outcome": ""}]
    assert edges(graph) == {("m", "FROM_BUILD", "b1"), ("m", "IN_PROJECT", "P")}
    put(rows, build, "Build", name="b1", project_id="P", outcome="success")
    rows.take([Change("Memory", "m", {}, None)])
    assert graph.query(query, {}) == [{"name": "b1", "outcome": "success"}]
    assert names(graph, "Project") == []


COMMIT: dict[str, Any] = {
    "project_id": "P", "git_commit": "c1", "agents_involved": ["Ada"], "release": "1.0", "closes": ["7"], "undoes": ["c0"], "mends": "b0",
    "changes": [{"path": "new.py", "kind": "R", "added": 1, "removed": 2, "was": "old.py"}, {"path": "a.py", "kind": "M"}],
}  # fmt: skip


@pytest.mark.embedded
@pytest.mark.parametrize("follows", [False, True], ids=["a fresh graph", "a copy that follows"])
def test_what_commits_name_comes_and_goes_with_them(graph: GraphCopy, rows: Snapshots, follows: bool) -> None:
    def seen() -> tuple[set[tuple[str, str, str]], list[dict[str, Any]]]:
        if not follows:
            graph.write_base()
        renamed = graph.query(
            "MATCH (a:File)-[e:RENAMED]->(b:File) RETURN a.name AS a, b.name AS b, e.memory_id AS m ORDER BY m", {}
        )
        return edges(graph), list(renamed)

    put(rows, "m", **COMMIT)
    of_it = {
        ("IN_PROJECT", "P"), ("INVOLVES", "Ada"), ("OF_COMMIT", "c1"), ("AUTHORED_BY", "Ada"), ("IN_RELEASE", "1.0"), ("CLOSES", "7"),
        ("REVERTS", "c0"), ("MENDS", "b0"), ("CHANGED", "new.py"), ("CHANGED", "a.py"),
    }  # fmt: skip
    rename = {"a": "old.py", "b": "new.py"}
    assert seen() == ({("m", *one) for one in of_it}, [{**rename, "m": "m"}])
    put(rows, "n", **COMMIT)
    both = {(memory, *one) for memory in "mn" for one in of_it}
    assert seen() == (both, [{**rename, "m": "m"}, {**rename, "m": "n"}])
    put(rows, "m", **{**COMMIT, "closes": [], "changes": COMMIT["changes"][1:]})
    assert seen() == (both - {("m", "CLOSES", "7"), ("m", "CHANGED", "new.py")}, [{**rename, "m": "n"}])
    rows.take([Change("Memory", "n", {}, None)])
    assert seen() == ({("m", *one) for one in of_it - {("CLOSES", "7"), ("CHANGED", "new.py")}}, [])
    assert names(graph, "File") == ["a.py"]
    assert names(graph, "Issue") == []
    rows.take([Change("Memory", "m", {}, None)])
    assert graph.query("MATCH (x) RETURN x.id", {}) == []


@pytest.mark.embedded
def test_a_label_that_is_also_a_keyword(graph: GraphCopy, rows: Snapshots) -> None:
    put(rows, "m", **COMMIT)
    found = graph.query("MATCH (:Memory)-[:REVERTS]->(c:Commit) RETURN c.name AS name", {})
    assert found == [{"name": "c0"}]


RUN: dict[str, Any] = {
    "name": "r1", "project_id": "P", "outcome": "failure", "git_commit": "c" * 40, "seq": 1,
    "passed": ["a::one", "a::two"], "failed": [{"name": "a::two", "task": "a::two (first run)"}, {"name": "a::three", "task": "a::three"}],
}  # fmt: skip


@pytest.mark.embedded
@pytest.mark.parametrize("follows", [False, True], ids=["a fresh graph", "a copy that follows"])
def test_tests_come_and_go_with_the_runs_that_ran_them(graph: GraphCopy, rows: Snapshots, follows: bool) -> None:
    def seen() -> set[tuple[str, str, str]]:
        if not follows:
            graph.write_base()
        found = graph.query("MATCH (r:Run)-[e]->(x) RETURN r.name AS r, label(e) AS e, x.name AS x", {})
        return {(row["r"], row["e"], row["x"]) for row in found}

    put(rows, "m", project_id="P", build_id="r1", git_commit="c" * 40)
    assert seen() == set()
    put(rows, "r", "Run", **RUN)
    ran = {("PASSED", "a::one"), ("PASSED", "a::two"), ("FAILED", "a::two"), ("FAILED", "a::three")}
    of_it = {*ran, ("OF_BUILD", "r1"), ("RAN_ON", "c" * 40)}
    assert seen() == {("r1", *one) for one in of_it}
    together = "MATCH (r:Run)-[:RAN_ON]->(:Commit)<-[:OF_COMMIT]-(m:Memory)-[:FROM_BUILD]->(:Build)<-[:OF_BUILD]-(r) RETURN m.id AS m, r.failed_task AS t"
    assert graph.query(together, {}) == [{"m": "m", "t": ["a::two (first run)", "a::three"]}]
    put(rows, "s", "Run", **{**RUN, "name": "r2", "failed": [], "git_commit": "c0ffee1"})
    assert seen() == {("r1", *one) for one in of_it} | {
        ("r2", "PASSED", "a::one"),
        ("r2", "PASSED", "a::two"),
        ("r2", "OF_BUILD", "r2"),
    }
    put(rows, "r", "Run", **{**RUN, "failed": RUN["failed"][:1]})
    assert ("r1", "FAILED", "a::three") not in seen()
    assert names(graph, "Test") == ["a::one", "a::two"]
    rows.take([Change("Run", "r", {}, None), Change("Memory", "m", {}, None)])
    assert seen() == {("r2", "PASSED", "a::one"), ("r2", "PASSED", "a::two"), ("r2", "OF_BUILD", "r2")}
    assert names(graph, "Commit") == []
    rows.take([Change("Run", "s", {}, None)])
    assert graph.query("MATCH (x) RETURN x.id", {}) == []


def test_a_run_that_follows_looks_for_nodes_without_names_among_those_that_runs_name() -> None:
    statements = updates([Change("Run", "r", None, {"id": "r", **RUN}), Change("Tag", "t", {}, {"id": "t"})], since=0)
    looked = [re.search(r"\(x:(\w+)\) WHERE NOT EXISTS", one) for one, _ in statements]
    assert [one[1] for one in looked if one] == ["Build", "Commit", "Test"]


@pytest.mark.embedded
def test_what_was_said_in_a_turn_leads_to_it(graph: GraphCopy, rows: Snapshots) -> None:
    of_it = {"build_id": "s1", "project_id": "P", "source_event_ids": ["s1/user@9:00", "git-1/c1"]}
    put(rows, "said", source="session turn", **of_it)
    put(rows, "rule", source="transcript", **of_it)
    put(rows, "run", source="run", **of_it)
    found = graph.query("MATCH (m:Memory)-[:OF_TURN]->(t:Turn) RETURN m.id AS id, t.name AS turn ORDER BY id", {})
    assert found == [{"id": "rule", "turn": "s1/user@9:00"}, {"id": "said", "turn": "s1/user@9:00"}]
