"""The guard admits only safe Cypher from users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import QueryError
from memgraph.graph import copy as module
from memgraph.graph.copy import QueryLimits
from memgraph.graph.guard import MAX_QUERY_CHARS, check_read_only
from memgraph.model.ids import source_id
from memgraph.ports import Change
from tests.engines import Graph, Snapshots

HOSTILE = {
    "create": "CREATE (:Tag {id: 'x'})",
    "create after match": "MATCH (m:Memory) CREATE (:Tag {id: m.id})",
    "merge": "MATCH (m:Memory) MERGE (t:Tag {id: 'x'}) RETURN t",
    "set": "MATCH (m:Memory) SET m.content = 'x'",
    "set lower case": "match (m:Memory) set m.content = 'x' return m",
    "set mixed case": "MaTcH (m:Memory) sEt m.content = 'x'",
    "delete": "MATCH (m:Memory) DELETE m",
    "detach delete": "MATCH (m:Memory) DETACH DELETE m",
    "remove": "MATCH (m:Memory) REMOVE m.content",
    "drop": "DROP TABLE Memory",
    "alter": "ALTER TABLE Memory ADD x STRING",
    "create table": "CREATE NODE TABLE X (id STRING PRIMARY KEY)",
    "copy to": "COPY (MATCH (m:Memory) RETURN m.content) TO '{out}'",
    "copy to after match": "MATCH (m) RETURN m COPY (MATCH (m:Memory) RETURN m.content) TO '{out}'",
    "copy from": "COPY Memory FROM '/etc/passwd'",
    "load from": "LOAD FROM '/etc/passwd' RETURN *",
    "load inside": "MATCH (m:Memory) LOAD FROM '/etc/passwd' RETURN *",
    "export": "EXPORT DATABASE '{out}'",
    "import": "IMPORT DATABASE '/tmp'",
    "attach": "ATTACH 'x.duckdb' AS x (dbtype duckdb)",
    "use": "USE x",
    "install": "INSTALL httpfs",
    "install upper": "UNINSTALL httpfs",
    "load extension": "LOAD EXTENSION httpfs",
    "update": "UPDATE httpfs",
    "call setting": "CALL threads=1",
    "call tables": "CALL show_tables() RETURN *",
    "call inside": "MATCH (m:Memory) CALL show_tables() RETURN *",
    "profile": "PROFILE MATCH (m) RETURN m",
    "explain": "EXPLAIN MATCH (m) RETURN m",
    "begin": "BEGIN TRANSACTION",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "checkpoint": "CHECKPOINT",
    "macro": "CREATE MACRO f(x) AS x",
    "comment on": "COMMENT ON TABLE Memory IS 'x'",
    "two statements": "RETURN 1; RETURN 2",
    "second statement": "RETURN 1; MATCH (m:Memory) DELETE m",
    "two semicolons at the end": "RETURN 1;;",
    "after a line comment": "RETURN 1 // one\nCREATE (:Tag {id: 'x'})",
    "after a carriage return": "RETURN 1 //\rCOPY (MATCH (t:Tag) RETURN t.id) TO '{out}'",
    "after a block comment": "/* MATCH */ CREATE (:Tag {id: 'x'})",
    "comment in the middle": "MATCH (m:Memory) /* x */ DELETE /* y */ m",
    "comment glued": "MATCH (m:Memory)/**/DELETE/**/m",
    "line comment in the middle": "MATCH (m:Memory) DELETE // harmless\nm",
    "nested comment": "RETURN 1 /* /* */ CREATE (:Tag {id: 'x'}) /* */ */",
    "a comment that does not end": "RETURN 1 /* CREATE (:Tag {id: 'x'})",
    "after a string with an escaped quote": "MATCH (m) WHERE m.id = 'a\\'b' DELETE m",
    "after a string with an escaped backslash": "MATCH (m) WHERE m.id = 'a\\\\' DELETE m //'",
    "after a double quoted string": 'MATCH (m) WHERE m.id = "a\\"b\'" DELETE m',
    "a string that does not end": "RETURN 'x",
    "a double quoted string that does not end": 'RETURN "x',
    "a name that does not end": "MATCH (m) RETURN m.`x",
    "between strings": "RETURN '//' CREATE (:Tag {id: '//'})",
    "a comment opener in a string": "RETURN '/*' CREATE (:Tag {id: '*/'})",
    "with tabs": "MATCH\t(m:Memory)\tDELETE\tm",
    "with newlines": "MATCH (m:Memory)\r\nDELETE\r\nm",
    "with a no-break space": "MATCH (m:Memory)\u00a0DELETE\u00a0m",
    "with a line separator": "MATCH (m:Memory)\u2028DELETE m",
    "full width letters": "\uff23\uff32\uff25\uff21\uff34\uff25 (:Tag {id: 'x'})",
    "full width inside": "MATCH (m:Memory) \uff24\uff25\uff2c\uff25\uff34\uff25 m",
    "cyrillic look-alike": "MATCH (m:Memory) D\u0415LETE m",
    "a long s": "MATCH (m:Memory) \u017fET m.content = 'x'",
    "a dotless i": "\u0131NSTALL httpfs",
    "a zero width space": "MATCH (m:Memory) DE\u200bLETE m",
    "a full width semicolon": "RETURN 1\uff1b RETURN 2",
    "a byte order mark": "\ufeffMATCH (m) RETURN m",
    "a NUL": "RETURN 1 \x00 CREATE (:Tag {id: 'x'})",
    "nothing": "",
    "white space": " \n\t ",
    "a comment alone": "// RETURN 1",
    "no statement": "42",
    "a parenthesis": "(MATCH (m) RETURN m)",
    "a name in quotes": "`CREATE` (:Tag {id: 'x'})",
    "show": "SHOW TABLES",
    "huge": "RETURN '" + "x" * MAX_QUERY_CHARS + "'",
    "nested lists": "RETURN " + "[" * 1_500 + "1" + "]" * 1_500 + " AS x",
    "nested functions": "RETURN " + "abs(" * 1_500 + "1" + ")" * 1_500 + " AS x",
    "nested cases": "RETURN " + "CASE WHEN true THEN " * 50 + "1" + " END" * 50 + " AS x",
    "foreach": "FOREACH (x IN [1] | CREATE (:Tag {id: 'x'}))",
    "call in a sub-query": "MATCH (m:Memory) CALL { CREATE (:Tag {id: 'x'}) } RETURN m",
    "create in exists": "MATCH (m:Memory) WHERE EXISTS { CREATE (:Tag {id: 'x'}) } RETURN m",
    "on create": "MATCH (m:Memory) MERGE (t:Tag {id: 'x'}) ON CREATE SET t.name = 'x'",
    "a keyword after a number": "RETURN 1CREATE (:Tag {id: 'x'})",
    "a keyword after a bracket": "MATCH (m:Memory)DELETE m",
    "a keyword glued to a number": "WITH 1.0e5LOAD FROM '/etc/passwd' RETURN *",
    "a keyword glued to a number after return": "RETURN 1.0e5LOAD FROM '/etc/passwd' RETURN *",
    "a number as an alias, glued": "MATCH (m) WITH 1.0e5COPY (MATCH (m:Memory) RETURN m.id) TO '{out}'",
    "glued to an exponent": "UNWIND [1] AS x WITH x, 1e5LOAD FROM '/etc/passwd' RETURN *",
    "glued to a negative exponent": "MATCH (m) WHERE m.seq > 1e-5DELETE m",
    "glued to a fraction": "MATCH (m:Memory) WHERE m.seq > .5DELETE m",
    "glued to a whole number": "MATCH (m:Memory) WHERE m.seq > 5DELETE m",
    "glued to a string": "MATCH (m:Memory) WHERE m.id = 'x'DELETE m",
    "glued to a name in backticks": "MATCH (m:Memory) WHERE m.`id`DELETE m",
    "glued to a currency sign": "MATCH (m:Memory) WITH m AS x$ DELETE x$",
    "a name that ends in a currency sign": "WITH 1 AS x$ LOAD FROM '/etc/passwd' RETURN *",
    "a currency sign alone": "WITH $ LOAD FROM '/etc/passwd' RETURN *",
    "after a point": "MATCH (m:Memory) WITH 1. LOAD FROM '/etc/passwd' RETURN *",
    "after a range": "MATCH (a:Memory)-[:NEXT*1..LOAD]->(b) RETURN a",
    "after three points": "MATCH (a:Memory)-[:NEXT*1...3]->(b) RETURN a.id",
    "a property called like a keyword": "MATCH (m:Memory) RETURN m. SET m.content = 'x'",
    "a label called like a keyword": "MATCH (m: DELETE m)",
    "a comment of three stars": "MATCH (m:Memory) /***/ DELETE m /**/",
    "a comment of three stars around": "RETURN 1 /***/ LOAD FROM '/etc/passwd' RETURN * /**/",
    "a comment of two stars": "RETURN 1 /**/",
    "a quote in a comment": "RETURN 1 /* ' */ LOAD FROM '/etc/passwd' RETURN * // '",
    "a comment behind the statement": "RETURN 1 // one",
    "a comment that follows a header": "// one\nRETURN 1 // two",
    "behind a header": "// MATCH\nCREATE (:Tag {id: 'x'})",
    "a header that ends in a carriage return": "// MATCH\rCREATE (:Tag {id: 'x'})",
    "a block comment as a header": "/* MATCH\n*/ MATCH (m:Memory) RETURN m",
    "a semicolon before": ";RETURN 1",
    "a semicolon in a bracket": "RETURN (1;2)",
    "an escape of a letter": "RETURN '\\n'",
    "an escape of a code point": "RETURN '\\u0027 LOAD FROM \\u0027'",
    "an escape of a long code point": "RETURN '\\U00000027'",
    "an escape of a byte": "RETURN '\\x27'",
    "an escape of a new line": "RETURN '\\\n'",
    "an escape outside": "RETURN \\u0031",
    "an escaped keyword": "MATCH (m:Memory) D\\u0045LETE m",
    "an escape at the end": "RETURN '\\'",
    "a doubled quote": "RETURN 'a''b'",
    "a doubled double quote": 'RETURN "a""b"',
    "a doubled backtick": "RETURN 1 AS `a``b`",
    "an escape in backticks": "RETURN 1 AS `a\\`",
    "a name of nothing": "RETURN 1 AS ``",
    "a quote in backticks": "MATCH (m) RETURN m.`'` DELETE m //'",
    "half a pair": "RETURN '\ud800'",
    "the other half": "RETURN '\udc00' AS x",
    "a NUL in a string": "RETURN 'a\x00b'",
    "a vertical tab": "RETURN\x0b1",
    "a form feed": "RETURN\x0c1",
    "a file separator": "MATCH (m:Memory)\x1cDELETE m",
    "a Mongolian vowel separator": "RETURN\u180e1",
    "non-ASCII digits": "RETURN \u0661",
    "a name that is not ASCII": "RETURN 1 AS \u00e9",
    "a next sequence value": "RETURN nextval('Memory_seq')",
    "brackets that do not match": "RETURN (1]",
    "a bracket too many": "RETURN 1)",
    "a bracket too few": "RETURN (1",
    "an end too many": "RETURN 1 END",
    "a case without an end": "RETURN CASE WHEN true THEN 1",
    "a case that a bracket ends": "RETURN (CASE WHEN true THEN 1)",
    "an end that is a property": "WITH {a: 1} AS x RETURN CASE WHEN x.end THEN 1 END",
    "lambdas in each other": "RETURN " + "".join(f"list_transform([1], x{n} -> " for n in range(4)) + "1" + ")" * 4,
    "lambdas in cases": "RETURN " + "".join(f"list_transform([1], `x{n}` -> CASE WHEN true THEN (" for n in range(4)) + "1" + ") END)" * 4,
    "many cases in brackets": "RETURN " + "(CASE WHEN true THEN " * 9 + "1" + " END)" * 9 + " AS x",
    "many brackets of all kinds": "RETURN " + "[{a: abs(" * 22 + "1" + ")}]" * 22 + " AS x",
    "a long range": "UNWIND range(1, 100000000) AS x RETURN count(x)",
    "a long range by steps": "RETURN range(100000000, 1, -1)",
    "a range without a step": "RETURN range(1, 10, 0)",
    "a range that is computed": "RETURN range(1, 10000 * 10000)",
    "a range of a parameter": "UNWIND range(1, $most) AS x RETURN x",
    "a range in backticks": "UNWIND `range` (1, 100000000) AS x RETURN count(x)",
    "a range spelt oddly": "UNWIND rAnGe\n(1, 100000000) AS x RETURN count(x)",
}  # fmt: skip
HONEST = {
    "count": "MATCH (m:Memory) RETURN count(*) AS n",
    "filter": "MATCH (m:Memory) WHERE m.type = 'episodic' AND m.outcome = 'negative' RETURN m.id, m.content LIMIT 5",
    "parameter": "MATCH (m:Memory) WHERE m.content CONTAINS $word RETURN m.id",
    "tags": "MATCH (m:Memory)-[:TAGGED]->(t:Tag) RETURN t.name, count(m) AS n ORDER BY n DESC, t.name",
    "optional": "OPTIONAL MATCH (m:Memory)-[:SUPPORTS]->(g:Memory) RETURN m.id, g.id",
    "with": "MATCH (m:Memory)-[:IN_PROJECT]->(p:Project) WITH p, count(m) AS n WHERE n > 0 RETURN p.name, n",
    "unwind": "UNWIND ['a', 'b'] AS x RETURN x",
    "unwind a column": "MATCH (m:Memory) UNWIND m.tags AS tag RETURN tag, count(*)",
    "structs": "MATCH (m:Memory) WHERE size(m.entities_name) > 0 RETURN m.entities_name, m.entities_kind[1]",
    "union": "MATCH (t:Tag) RETURN t.name AS name UNION ALL MATCH (a:Agent) RETURN a.name AS name",
    "path": "MATCH p = (a:Memory)-[:NEXT*1..3]->(b:Memory) RETURN length(p), a.id, b.id",
    "shortest": "MATCH p = (a:Memory)-[:NEXT* SHORTEST 1..5]->(b:Memory) RETURN length(p)",
    "exists": "MATCH (m:Memory) WHERE EXISTS { MATCH (m)-[:TAGGED]->(t:Tag) } RETURN m.id",
    "not exists": "MATCH (m:Memory) WHERE NOT EXISTS { MATCH (m)-[:CONTRADICTS]-(:Memory) } RETURN count(m)",
    "sub-query count": "MATCH (m:Memory) RETURN m.id, COUNT { MATCH (m)-[:TAGGED]->(:Tag) } AS n",
    "case": "MATCH (m:Memory) RETURN CASE WHEN m.is_pinned THEN 'yes' ELSE 'no' END AS pinned, count(*)",
    "collect": "MATCH (m:Memory)-[:INVOLVES]->(a:Agent) RETURN a.name, collect(DISTINCT m.outcome) AS outcomes",
    "time": "MATCH (m:Memory) WHERE m.created_at > timestamp('2020-01-01 00:00:00') RETURN date_trunc('day', m.created_at) AS day, count(*)",
    "list comprehension": "MATCH (m:Memory) RETURN list_filter(m.tags, x -> size(x) > 1) AS long_tags",
    "keywords in a string": "MATCH (m:Memory) WHERE m.content CONTAINS 'CREATE; DROP -- DELETE // COPY' RETURN m.id",
    "keywords in a double quoted string": 'MATCH (m:Memory) WHERE m.content CONTAINS "it\'s; LOAD FROM" RETURN m.id',
    "non-ASCII text in a string": "MATCH (m:Memory) WHERE m.content CONTAINS '数据库 Ü' RETURN m.id",
    "comment lines before": "// CREATE; 'it\n\n  // DELETE\nMATCH (m:Memory) RETURN count(*)",
    "escapes": r"""MATCH (m:Memory) WHERE m.content <> 'it\'s \\ \"' AND m.content <> "it\'s" RETURN count(*)""",
    "a regular expression with digits": r"MATCH (m:Memory) WHERE m.content =~ '.*\\d+.*' RETURN count(*)",
    "numbers": "RETURN 1, 1.5, .5, 1e5, 1.5e-3, -2, 2^3, 5 % 3, [1, 2, 3][1:2] AS part",
    "undirected": "MATCH (a:Memory)--(b) RETURN count(*)",
    "a range": "UNWIND range(1, 1000) AS x RETURN sum(x), size(range(10, -10, -5)) AS n",
    "lists of a record": "MATCH (m:Memory) UNWIND m.entities_name AS name RETURN name, count(*)",
    "lambdas": "RETURN " + "".join(f"list_transform([1], x{n} -> " for n in range(3)) + "1" + ")" * 3 + ", list_filter([1], y -> y > 0) AS n",
    "edges of all directions": "MATCH (a:Memory)-->(b), (c)<--(a)-[:NEXT]-(d) RETURN count(*)",
    "cases beside each other": "MATCH (m:Memory) RETURN " + " + ".join(["CASE WHEN m.is_pinned THEN 1 ELSE 0 END"] * 12) + " AS n",
    "cases in each other": "RETURN " + "CASE WHEN true THEN " * 8 + "1" + " END" * 8 + " AS n",
    "a keyword as a property": "MATCH (b:Build) RETURN b.outcome, b.name",
    "a quoted name": "MATCH (m:Memory) RETURN m.id AS `set of ids`",
    "a name that holds a keyword": "MATCH (m:Memory) WITH m.created_at AS created, m.updated_at AS update_time RETURN created, update_time",
    "a parameter called like a keyword": "MATCH (m:Memory) WHERE m.id <> $set RETURN count(*)",
    "arithmetic": "MATCH (m:Memory) RETURN avg(m.confidence) * 100 / 2 - 1 AS x, max(m.access_count) % 7 AS y",
    "regular expression": "MATCH (m:Memory) WHERE m.content =~ '.*mem.*' RETURN count(*)",
    "lower case": "match (m:Memory) return m.id order by m.id limit 1",
    "a moderately nested expression": "RETURN ((((((((1 + (2 * (3 - (4 + 5))))))))))) AS x",
    "evidence": "MATCH (g:Memory)-[:DERIVED_FROM]->(e:Memory)-[:FROM_BUILD]->(b:Build) RETURN g.id, collect(b.name) AS builds",
    "skip": "MATCH (m:Memory) RETURN m.id ORDER BY m.id SKIP 1 LIMIT 2",
    "nodes": "MATCH (m:Memory) RETURN m LIMIT 1",
}  # fmt: skip

OF_EACH_KIND = {"count", "path", "time", "nodes", "comment lines before", "a parameter called like a keyword"}
"""Queries whose rows hold something of each kind of value; the others are asked through the store with --long only."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_queries_are_refused(name: str) -> None:
    with pytest.raises(QueryError):
        check_read_only(HOSTILE[name])


@pytest.mark.parametrize("name", HONEST)
def test_honest_queries_pass(name: str) -> None:
    check_read_only(HONEST[name])


@pytest.mark.parametrize(
    ("longest", "one_more"),
    [
        ("RETURN '" + "x" * (MAX_QUERY_CHARS - 9) + "'", "RETURN '" + "x" * (MAX_QUERY_CHARS - 8) + "'"),
        ("RETURN range(1, 10000)", "RETURN range(1, 10001)"),
        ("RETURN range(10000, 1, -1)", "RETURN range(10000, 0, -1)"),
        ("RETURN range(0, 29997, 3)", "RETURN range(0, 30000, 3)"),
        ("RETURN " + "(" * 64 + "1" + ")" * 64, "RETURN " + "(" * 65 + "1" + ")" * 65),
        ("RETURN " + "CASE WHEN true THEN " * 8 + "1" + " END" * 8, "RETURN " + "CASE WHEN true THEN " * 9 + "1" + " END" * 9),
    ],
    ids=["characters", "range", "range downwards", "range by steps", "brackets", "cases"],
)  # fmt: skip
def test_a_limit_itself_is_admitted_and_one_more_is_not(longest: str, one_more: str) -> None:
    check_read_only(longest)
    with pytest.raises(QueryError):
        check_read_only(one_more)


@pytest.mark.parametrize("operator", ["ENDS WITH", "STARTS WITH", "CONTAINS", "IN", "=", "<>"])
def test_a_condition_of_parameters_alone_is_refused_with_any_operator(operator: str) -> None:
    with pytest.raises(QueryError, match="names only parameters"):
        check_read_only(f"MATCH (m:Memory) WHERE $word {operator} $set RETURN m.id")
    check_read_only(f"MATCH (m:Memory) WHERE m.content {operator} $set RETURN m.id")


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from memgraph import AgentMemoryConfig, AgentMemoryStore
    from memgraph.testing import FakeClock, FakeEmbedder

    folder = tmp_path_factory.mktemp("guard")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock()) as store:
        context = {"project_id": "P", "build_id": "b", "agents_involved": ["MARS"], "tags": ["auth", "db"]}
        ids = [
            store.insert_memory({"type": "episodic", "content": f"memory {n} 数据库 of login.py", **context}).id
            for n in range(4)
        ]
        store.insert_memory(
            {"type": "semantic", "content": "in general", "supporting_memory_ids": ids[:2], "project_id": "P"}
        )
        store.link(ids[0], "CONTRADICTS", ids[1])
        yield store


def parameters_of(query: str) -> dict[str, str]:
    return {word: "memory" for word in ("word", "set") if f"${word}" in query}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OF_EACH_KIND else pytest.mark.long) for name in HONEST]
)
def test_honest_queries_run(name: str, stocked: Any) -> None:
    rows = stocked.cypher(HONEST[name], **parameters_of(HONEST[name]))
    assert rows
    assert all(isinstance(row, dict) and row for row in rows)


def test_refused_queries_change_nothing(stocked: Any, tmp_path: Path) -> None:
    """Whether the guard or the engine refuses, nothing changes and no file is created."""
    everything = "MATCH (n) RETURN label(n) AS label, count(*) AS n ORDER BY label"
    before, digest = stocked.cypher(everything), stocked.digest()
    for query in HOSTILE.values():
        with pytest.raises(QueryError):
            stocked.cypher(query.replace("{out}", str(tmp_path / "out.csv")))
    assert stocked.cypher(everything) == before
    assert stocked.digest() == digest
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (m:Memory RETURN m",
        pytest.param("RETURN x", marks=pytest.mark.long),
        "MATCH (m:Nonsense) RETURN m",
        "RETURN 1 / 0",
        pytest.param("MATCH (m:Memory) RETURN m.nonsense", marks=pytest.mark.long),
        pytest.param("RETURN 'a' + 1 - []", marks=pytest.mark.long),
        "RETURN '\ud800'",
    ],
)
def test_bad_queries_are_query_errors_and_the_store_stays_usable(stocked: Any, query: str) -> None:
    with pytest.raises(QueryError):
        stocked.cypher(query)
    assert stocked.cypher("RETURN 1 AS x") == [{"x": 1}]


@pytest.mark.parametrize("value", ["\ud800", object(), {1, 2}, 2**70, b"x", lambda: 1])
def test_bad_parameters_are_query_errors(stocked: Any, value: Any) -> None:
    with pytest.raises(QueryError):
        stocked.cypher("RETURN $x AS x", x=value)


def test_parameters_are_values_never_code(stocked: Any) -> None:
    values = {"a": "'; DROP TABLE Memory //", "b": 5, "c": 0.5, "d": True, "e": None, "f": ["a", "b"], "g": {"a": 1}}
    assert stocked.cypher("RETURN $a AS a, $b AS b, $c AS c, $d AS d, $e AS e, $f AS f, $g AS g", **values) == [values]


def test_times_are_returned_in_canonical_form(stocked: Any) -> None:
    rows = stocked.cypher("MATCH (m:Memory) RETURN m.created_at AS at LIMIT 1")
    assert rows == [{"at": "2026-01-01T00:00:00.000Z"}]


def test_several_statements_do_not_run_even_past_the_guard(stocked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_read_only", lambda query: query)
    for query in ("RETURN 1; RETURN 2", "RETURN 1;RETURN $x", "COMMIT; MATCH (t:Tag) SET t.name = 'x'"):
        with pytest.raises(QueryError):
            stocked.cypher(query, **({"x": 1} if "$x" in query else {}))
    for query in ("CREATE (:Tag {id: 'x'})", "MATCH (t:Tag) SET t.name = 'x'", "DROP TABLE Tag", "RETURN '\ud800'"):
        with pytest.raises(QueryError):
            stocked.cypher(query)
    assert stocked.cypher("MATCH (t:Tag) WHERE t.name = 'x' OR t.id = 'x' RETURN count(*) AS n") == [{"n": 0}]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    limits = QueryLimits(timeout_s=0.1, grace_s=0.1, memory_bytes=200 << 20)
    rows = Snapshots()
    ids = [source_id("guard", number) for number in range(6)]
    memories = [Change("Memory", one, None, {"id": one, "type": "episodic", "content": "x"}) for one in ids]
    ends = [(one, other) for one in ids for other in ids if one != other]
    links = [Change("RELATED_TO", end, None, {"created_at": "2026-01-01T00:00:00.000Z"}) for end in ends]
    rows.take([Change("Source", "t", None, {"id": "t"}), *memories, *links])
    graph = Graph(tmp_path_factory.mktemp("limited") / "graph", rows, limits=limits)
    yield graph
    graph.close()


def test_a_query_that_takes_long_is_stopped(tmp_path: Path) -> None:
    rows = Snapshots()
    rows.take([Change("Source", "t", None, {"id": "t"})])
    graph = Graph(tmp_path / "graph", rows, limits=QueryLimits(timeout_s=0.2, grace_s=10))
    ranges = " ".join(f"UNWIND range(1, 10000) AS x{n}" for n in range(3))
    with pytest.raises(QueryError, match=r"0\.2 s"):
        graph.query(f"{ranges} RETURN sum(x0 * x1 * x2) AS x", {})
    assert graph.query("MATCH (t:Source) RETURN count(*) > 0 AS x", {}) == [{"x": True}]
    graph.close()


EXHAUSTING = {
    "a list that doubles": "WITH range(1, 10000) AS a " + "WITH list_concat(a, a) AS a " * 20 + "RETURN size(a) AS n",
    "a text that doubles": "WITH 'xxxxxxxxxx' AS a " + "WITH a + a AS a " * 32 + "RETURN size(a) AS n",
    "a long text": "RETURN size(repeat('x', 4000000000)) AS n",
    "a padded text": "RETURN size(lpad('x', 2000000000, 'y')) AS n",
    "many long texts": "UNWIND range(1, 10000) AS i RETURN collect(rpad('x', 1000000, 'y')) AS n",
    "many matches of a pattern": "RETURN size(regexp_replace(repeat('a', 10000000), 'a', repeat('b', 1000), 'g')) AS x",
    "a text cut into many": "RETURN size(string_split(repeat('a,', 50000000), ',')) AS x",
    "a lambda of lists": "RETURN size(list_transform(range(1, 10000), x -> range(1, 10000))) AS n",
    "two long texts compared": "RETURN levenshtein(repeat('a', 100000), repeat('b', 100000)) AS n",
    "a cross product": "UNWIND range(1, 10000) AS a UNWIND range(1, 10000) AS b RETURN count(DISTINCT a * 10000 + b) AS n",
    "one long row": "UNWIND range(1, 10000) AS a UNWIND range(1, 10000) AS b RETURN collect(a + b) AS n",
    "long paths": "MATCH p = (a)-[* TRAIL 1..30]-(b) RETURN count(p) AS n",
    "a date beyond dates": "RETURN date('20000-01-01') AS x",
    "an id of nothing": "RETURN id(null) AS x",
    "brackets in JSON": "RETURN json_structure(concat(repeat('[', 1000000), repeat(']', 1000000))) AS x",
}  # fmt: skip


OF_EACH_DANGER = {
    "a long text",
    "a text that doubles",
    "two long texts compared",
    "a cross product",
    "a date beyond dates",
    "brackets in JSON",
}
"""Too large at once, too large in steps, too long in one row, too many rows, a crash, and deep recursion; the others with --long only."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in OF_EACH_DANGER else pytest.mark.long) for name in EXHAUSTING]
)
def test_admitted_queries_end_in_any_case(stocked: Any, limited: Graph, name: str) -> None:
    """Either the engine's own limits end it, or the end of its process does."""
    check_read_only(EXHAUSTING[name])
    with pytest.raises(QueryError):
        limited.query(EXHAUSTING[name], {})
    assert stocked.cypher("MATCH (m:Memory) RETURN count(*) > 0 AS x") == [{"x": True}]


def test_the_number_of_rows_is_limited(stocked: Any) -> None:
    many = "UNWIND range(1, 10000) AS x UNWIND range(1, {}) AS y RETURN x, y"
    assert len(stocked.cypher(many.format(10))) == QueryLimits().rows
    with pytest.raises(QueryError, match="LIMIT"):
        stocked.cypher(many.format(11))
