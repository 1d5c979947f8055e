"""What the fields of a memory or a run imply in the graph: edges to what it names, and the nodes of that. They follow from its row, and are not stored.

A node that several memories name is called as the first of them spells it; a copy that follows keeps that spelling. Projects, builds,
sessions, tasks and agents may have rows of their own as well, which then say more of the node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from memgraph.graph.schema import Statement, Table, matching, tables, unset, upserts
from memgraph.model.ids import canonical_name, natural_id, short_name
from memgraph.model.memory import RECORD_SOURCES, SAID_SOURCE
from memgraph.ports import Change, Key, Row
from memgraph.text.words import is_bot

EDGES = frozenset(
    "TAGGED MENTIONS INVOLVES IN_PROJECT FROM_BUILD IN_SESSION IN_TASK CHANGED RENAMED OF_COMMIT AUTHORED_BY IN_RELEASE CLOSES REVERTS "
    "MENDS OF_TURN PASSED FAILED OF_BUILD RAN_ON".split()
)
NAMING = ("Memory", "Run")
"""Tables whose rows imply nodes and edges."""
FIELDS = frozenset({"id", "name", "kind", "project_id", "short_name"})
"""Columns of a node that follow from the memories and runs that name it."""
_OF_SESSIONS = frozenset({SAID_SOURCE, RECORD_SOURCES[SAID_SOURCE]})
_WHOLE_SHA_CHARS = 40
_BARE: Row = {}
_ABOUT: dict[bool, Row] = {is_about: {"about": is_about} for is_about in (True, False)}
"""Rows are never modified, so equal edges share one."""


Edge = tuple[str, Row, str, Row, Row | None]
"""An edge from a memory or run, or from a file that it names: its table and row, the table and row of the node that it leads to, the earlier file's row."""


def implied_by_run(run: Row) -> Iterator[Edge]:
    """Yield the edges that a run's row implies, each once."""
    project = run.get("project_id")
    for test in run.get("passed", ()):
        yield "PASSED", _BARE, "Test", _node("Test", test, project), None
    for test in run.get("failed", ()):
        yield "FAILED", _BARE, "Test", _node("Test", test["name"], project), None
    yield "OF_BUILD", _BARE, "Build", _node("Build", run["name"], project), None
    if len(commit := run.get("git_commit", "")) >= _WHOLE_SHA_CHARS:
        yield "RAN_ON", _BARE, "Commit", _node("Commit", commit, project), None


def implied(memory: Row) -> Iterator[Edge]:
    """Yield the edges that a memory's row implies, each once."""
    project = memory.get("project_id")
    if project:
        yield "IN_PROJECT", _BARE, "Project", _node("Project", project), None
    for build in dict.fromkeys([*filter(None, [memory.get("build_id")]), *memory.get("evidence_build_ids", ())]):
        yield "FROM_BUILD", _BARE, "Build", _node("Build", build, project), None
    if session := memory.get("session_id"):
        yield "IN_SESSION", _BARE, "Session", _node("Session", session, project), None
    if task := memory.get("task_id"):
        yield "IN_TASK", _BARE, "Task", _node("Task", task), None
    for agent in dict.fromkeys(memory.get("agents_involved", ())):
        yield "INVOLVES", _BARE, "Agent", _node("Agent", agent), None
    for tag in memory.get("tags", ()):
        yield "TAGGED", _BARE, "Tag", _node("Tag", tag), None
    for entity in memory.get("entities", ()):
        about = _ABOUT[entity.get("about", False)]
        yield "MENTIONS", about, "Entity", _entity(entity["kind"], entity["name"], project), None
    if memory.get("source") in _OF_SESSIONS:
        own = f"{memory.get('build_id')}/"  # a duplicate that was merged into it may be of another kind
        for event in memory.get("source_event_ids", ()):
            if event.startswith(own):
                yield "OF_TURN", _BARE, "Turn", _node("Turn", event, project), None
    if commit := memory.get("git_commit"):
        yield from _of_commit(memory, commit, project)


def _of_commit(memory: Row, commit: str, project: str | None) -> Iterator[Edge]:
    yield "OF_COMMIT", _BARE, "Commit", _node("Commit", commit, project), None
    for author in dict.fromkeys(memory.get("agents_involved", ())):
        if memory.get("change_kind") != "merge" and not is_bot(author):
            yield "AUTHORED_BY", _BARE, "Person", _node("Person", author), None
    if release := memory.get("release"):
        yield "IN_RELEASE", _BARE, "Release", _node("Release", release, project), None
    for number in memory.get("closes", ()):
        yield "CLOSES", _BARE, "Issue", _node("Issue", number, project), None
    for undone in memory.get("undoes", ()):
        yield "REVERTS", _BARE, "Commit", _node("Commit", undone, project), None
    if mended := memory.get("mends"):
        yield "MENDS", _BARE, "Commit", _node("Commit", mended, project), None
    for change in memory.get("changes", ()):
        done = _done(change["kind"], change.get("added"), change.get("removed"))
        now = _node("File", change["path"], project)
        yield "CHANGED", done, "File", now, None
        if was := change.get("was"):
            renamed = {"memory_id": memory["id"], "seq": memory.get("seq")}
            yield "RENAMED", renamed, "File", now, _node("File", was, project)


@lru_cache(maxsize=4_096)
def _done(kind: str, added: int | None, removed: int | None) -> Row:
    return {"kind": kind, "added": added, "removed": removed}


@lru_cache(maxsize=65_536)
def _node(table: str, name: str, project_id: str | None = None) -> Row:
    known_as = canonical_name(name) if table == "Tag" else name
    key = natural_id(table.lower(), known_as, project_id=project_id)
    return {"id": key, "name": name, **({"project_id": project_id} if project_id else {})}


@lru_cache(maxsize=65_536)
def _entity(kind: str, name: str, project_id: str | None) -> Row:
    key = natural_id(f"entity:{kind}", canonical_name(name), project_id=project_id)
    row = {"id": key, "name": name, "kind": kind, "short_name": short_name(kind, name)}
    return {**row, **({"project_id": project_id} if project_id else {})}


class Implied:
    """The nodes and edges that memories and runs imply, gathered while their rows are read, and held: of a run up to 2,002 edges."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, Row]] = defaultdict(dict)
        self._edges: dict[str, dict[tuple[str, ...], Row]] = defaultdict(dict)

    def gather(self, memory_id: str, memory: Row, *, source_table: str = "Memory") -> None:
        """Add what a row of `Memory` or of another source table implies. A node is as the first names it; of two mentions of one thing the last counts."""
        for table, row, leads_to, node, source in (
            implied(memory) if source_table == "Memory" else implied_by_run(memory)
        ):
            target = node["id"]
            self.nodes[leads_to].setdefault(target, node)
            if source is None:
                self._edges[table][memory_id, target] = row
            else:
                self.nodes[leads_to].setdefault(source["id"], source)
                self._edges[table][source["id"], target, memory_id] = row

    def edges(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over the edges of a table."""
        return (((ends[0], ends[1]), row) for ends, row in self._edges.get(table, _BARE).items())

    def of(self, table: str, rows: Iterable[tuple[Key, Row]]) -> Iterable[tuple[Key, Row]]:
        """Return a table's rows with those that the gathered rows imply."""
        if table in EDGES:
            return self.edges(table)
        if named := self.nodes.get(table):
            own = {str(key): row for key, row in rows}
            return [(key, {**named.get(key, _BARE), **own.get(key, _BARE)}) for key in {**named, **own}]
        return rows


def updates(changes: Iterable[Change], since: int) -> Iterator[Statement]:
    """Return the statements that bring a copy up to date that is as at the event `since`.

    A memory or run whose change has an `old` row keeps its edges. Edges leave before nodes, and nodes come before edges; at last nodes go that
    no memory names any more, unless they have rows of their own.
    """
    rows: dict[str, dict[Key, Row | None]] = defaultdict(dict)
    found, former = Implied(), {name: dict[Key, None]() for name in NAMING}
    for name, key, old, new in changes:
        rows[name][key] = new
        if name in NAMING and old is None and new is not None:
            found.gather(str(key), new, source_table=name)
        if name in NAMING and (
            new is None or (old is None and (new["seq"] <= since or name == "Run"))
        ):  # no other has edges in the copy; a run's number is that of its last event
            former[name][key] = None
    memory, named = tables()["Memory"], _named()
    alone = {ends[1] for edge in EDGES if (ends := tables()[edge].ends) and former.get(ends[0])}
    for name, table in reversed(tables().items()):
        gone = [key for key, row in rows[name].items() if row is None]
        if name in named and gone:
            alone.add(name)
            yield from matching(table, gone, f" SET {unset(table, _own(table))[0]}")
        else:
            yield from matching(table, gone, " DELETE x")
        if name in EDGES:
            source = (table.ends or ("", ""))[0]
            theirs = "-[e:{}]->()" if source in NAMING else " MATCH ()-[e:{} {{memory_id: x.id}}]->()"
            of = source if source in NAMING else memory.name
            yield from matching(tables()[of], former[of], f"{theirs.format(name)} DELETE e")
    for name, table in tables().items():
        yield from upserts(table, ((key, row) for key, row in rows[name].items() if row is not None))
        yield from upserts(table, found.nodes[name].items(), unless_there=True)
        yield from upserts(table, found.edges(name))
    for name in sorted(alone):
        is_bare = unset(tables()[name], _own(tables()[name]))[1]
        is_unnamed = " AND ".join(f"NOT EXISTS {{ MATCH {pattern} }}" for pattern in named[name])
        # of nodes whose edges have just come back the engine may find none, and then refuses to delete them
        kept = [*found.nodes[name]]
        is_new = " AND NOT x.id IN $kept" if kept else ""
        yield f"MATCH (x:{name}) WHERE {is_unnamed}{is_bare}{is_new} DELETE x", {"kept": kept} if kept else {}


@cache
def _named() -> dict[str, list[str]]:
    """Return the tables of nodes that memories name, each with the patterns of the edges at which such a node `x` is named."""
    found: dict[str, list[str]] = {}
    for edge in sorted(EDGES):
        source, target = tables()[edge].ends or ("", "")
        found.setdefault(target, []).append(f"(:{source})-[:{edge}]->(x)")
        if source not in NAMING:
            found.setdefault(source, []).append(f"(x)-[:{edge}]->(:{target})")
    return found


def _own(table: Table) -> list[str]:
    """Return the columns of a node that only a row of its own sets."""
    return [name for name in table.columns if name not in FIELDS]
