"""Compares the graph cell by cell with the rows that it must hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from memgraph.graph.copy import GraphCopy
from memgraph.graph.schema import Table, columns_of, tables
from memgraph.model.ids import natural_id, short_name
from memgraph.ports import Key, Row
from tests.fuzz.engine.histories import Rows


def differences(graph: GraphCopy, expected: Rows) -> Iterator[str]:
    """Yield what the graph holds otherwise: table, key, column and both values; edges as they are found from either end."""
    whole = with_named(expected.tables)
    for name, table in tables().items():
        rows = {key: _visible(table, row) for key, row in whole.get(name, {}).items()}
        for query in _scans(table):
            yield from _compared(name, _found(graph, query, table), rows)


def differences_around(graph: GraphCopy, expected: Rows, memory_ids: Iterable[str]) -> Iterator[str]:
    """Yield what the graph holds otherwise of the edges at memories."""
    for memory_id in memory_ids:
        found = set()
        for arrow in ("-[e]->", "<-[e]-"):
            for row in graph.query(
                f"MATCH (m:Memory {{id: $id}}){arrow}(n) RETURN label(e) AS t, n.id AS n", {"id": memory_id}
            ):
                found.add((row["t"], (memory_id, row["n"]) if arrow.endswith(">") else (row["n"], memory_id)))
        right = {(table, key) for table, key, _ in expected.edges_at(memory_id)}
        own = {"Memory": {memory_id: row} if (row := expected.get("Memory", memory_id)) else {}}
        right |= {
            (table, key)
            for table, rows in with_named(own).items()
            for key in rows
            if isinstance(key, tuple) and key[0] == memory_id
        }
        if found != right:
            yield f"the edges at {memory_id} are {found!r:.200} instead of {right!r:.200}"


def with_named(rows: Mapping[str, Mapping[Key, Row]]) -> dict[str, dict[Key, Row]]:
    """Return the rows with what memories name: an edge to each thing, and a node for it, in the words of the design."""
    whole = {table: dict(of_it) for table, of_it in rows.items()}

    def name(memory: str, edge: str, table: str, what: str, said: str, project: str, fields: Row | None = None) -> None:
        known_as = " ".join(said.casefold().split()) if table in {"Tag", "Entity"} else said
        node = natural_id(what, known_as, project_id=project or None)
        nodes = whole.setdefault(table, {})
        bare = {"id": node, "name": said, **({"project_id": project} if project else {})}
        nodes[node] = {
            **bare,
            **({"kind": what[7:], "short_name": short_name(what[7:], said)} if table == "Entity" else {}),
            **nodes.get(node, {}),
        }
        whole.setdefault(edge, {})[memory, node] = fields or {}

    for one, row in rows.get("Memory", {}).items():
        memory, project = str(one), row.get("project_id", "")
        for edge, table, said, within in [
            ("IN_PROJECT", "Project", [project], ""),
            ("FROM_BUILD", "Build", [row.get("build_id"), *row.get("evidence_build_ids", [])], project),
            ("IN_SESSION", "Session", [row.get("session_id")], project),
            ("IN_TASK", "Task", [row.get("task_id")], ""),
            ("INVOLVES", "Agent", row.get("agents_involved", []), ""),
            ("TAGGED", "Tag", row.get("tags", []), ""),
        ]:
            for thing in filter(None, said):
                name(memory, edge, table, table.lower(), thing, within)
        if commit := row.get("git_commit"):
            for edge, table, said, within in [
                ("OF_COMMIT", "Commit", [commit], project),
                ("AUTHORED_BY", "Person", row.get("agents_involved", []), ""),
                ("IN_RELEASE", "Release", [row.get("release")], project),
                ("CLOSES", "Issue", row.get("closes", []), project),
                ("REVERTS", "Commit", row.get("undoes", []), project),
                ("MENDS", "Commit", [row.get("mends")], project),
            ]:
                for thing in filter(None, said):
                    name(memory, edge, table, table.lower(), thing, within)
            for change in row.get("changes", []):
                numbers = {"kind": change["kind"], "added": change.get("added", 0), "removed": change.get("removed", 0)}
                name(memory, "CHANGED", "File", "file", change["path"], project, numbers)
                if was := change.get("was"):
                    name(memory, "RENAMED", "File", "file", was, project, {"memory_id": memory, "seq": row.get("seq")})
                    old, new = (natural_id("file", one, project_id=project or None) for one in (was, change["path"]))
                    whole["RENAMED"].pop((memory, old))
                    whole["RENAMED"][old, new, memory] = {"memory_id": memory, "seq": row.get("seq")}
        for entity in row.get("entities", []):
            name(
                memory,
                "MENTIONS",
                "Entity",
                f"entity:{entity['kind']}",
                entity["name"],
                project,
                {"about": entity["about"]},
            )
    for one, row in rows.get("Run", {}).items():
        run, project, commit = str(one), row["project_id"], row.get("git_commit", "")
        for edge, table, said in [
            ("PASSED", "Test", row.get("passed", [])),
            ("FAILED", "Test", [failed["name"] for failed in row.get("failed", [])]),
            ("OF_BUILD", "Build", [row["name"]]),
            ("RAN_ON", "Commit", [commit] if len(commit) == 40 else []),
        ]:
            for thing in said:
                name(run, edge, table, table.lower(), thing, project)
    return whole


def _scans(table: Table) -> list[str]:
    """Return queries for all rows. The engine stores edges at their sources and again at their targets, and may lose either."""
    alias = "n" if table.ends is None else "e"
    wanted = ", ".join(f"{alias}.{name} AS {name}" for name in table.columns)
    if table.ends is None:
        return [f"MATCH (n:{table.name}) RETURN {wanted}"]
    pattern = f"MATCH (a:{table.ends[0]})-[e:{table.name}]->(b:{table.ends[1]})"
    wanted = ", ".join(filter(None, ("a.id AS `from`", "b.id AS `to`", wanted)))
    return [f"{pattern} HINT ({one} JOIN e) JOIN {other} RETURN {wanted}" for one, other in ("ab", "ba")]


def _found(graph: GraphCopy, query: str, table: Table) -> Iterator[tuple[Key, Row]]:
    for row in graph.query(query, {}):
        key = (
            row["id"] if table.ends is None else (row.pop("from"), row.pop("to"), *filter(None, [row.get("memory_id")]))
        )
        yield key, {name: value for name, value in row.items() if value not in (None, "", [])}


def _visible(table: Table, row: Row) -> Row:
    return {name: value for name, value in columns_of(table, row).items() if value not in ("", [])}


def _compared(table: str, found: Iterable[tuple[Key, Row]], expected: dict[Key, Row]) -> Iterator[str]:
    seen: set[Key] = set()
    for key, row in found:
        if key in seen:
            yield f"{table} {key}: twice"
        seen.add(key)
        if key not in expected:
            yield f"{table} {key}: not expected"
        elif row != expected[key]:
            for column in sorted(row.keys() | expected[key].keys()):
                mine, right = row.get(column), expected[key].get(column)
                if mine != right:
                    yield f"{table} {key}, {column}: {mine!r:.80} instead of {right!r:.80}"
    for key in expected.keys() - seen:
        yield f"{table} {key}: missing"
