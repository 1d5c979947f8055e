"""Verification: whatever part is corrupted is found, counted and named, and nothing is found where nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.errors import DamagedJournalError, GraphError, VectorDamageError
from memgraph.journal.vectors import row_sha256
from memgraph.store.maintenance.verifying import refuse, verify
from memgraph.store.projection.index_building import index_from
from tests.tables import VectorTable, change_payload

Open = Callable[..., Any]
SECRET = "quetzalcoatl"

CORRUPTIONS: dict[str, tuple[str, str, str, str]] = {
    # statement, table, column, problem
    "a column": ("MATCH (m:Memory {id: $id}) SET m.title = 'quetzalcoatl'", "Memory", "title", "differs"),
    "a column set to nothing": ("MATCH (m:Memory {id: $id}) SET m.tags = NULL", "Memory", "tags", "differs"),
    "a list": ("MATCH (m:Memory {id: $id}) SET m.tags = ['a', 'b']", "Memory", "tags", "differs"),
    "a time": (
        "MATCH (m:Memory {id: $id}) SET m.created_at = timestamp('2020-01-01')", "Memory", "created_at", "differs",
    ),
    "the record": (
        "MATCH (m:MemoryRow {id: $id}) SET m.record = regexp_replace(m.record, 'MARS', 'quetzalcoatl')",
        "Memory", "record", "the row of memory {id} differs from what was written",
    ),
    "the record's code": (
        "MATCH (m:MemoryRow {id: $id}) SET m.code = 7",
        "Memory", "record", "the row of memory {id} differs from what was written",
    ),
    "a column outside of the digest": ("MATCH (m:Memory {id: $id}) SET m.seq = 1", "Memory", "seq", "differs"),
    "where a vector lies": ("MATCH (m:Memory {id: $id}) SET m.vector_row = 1", "Memory", "vector_row", "differs"),
    "a memory too many": (
        "CREATE (:Memory {id: 'odd', content: 'quetzalcoatl'})", "Memory", "", "not in the journal",
    ),
    "a memory missing": ("MATCH (m:Memory {id: $id}) DETACH DELETE m", "Memory", "", "missing"),
    "a link missing": ("MATCH ()-[e:SUPERSEDES]->() DELETE e", "SUPERSEDES", "", "missing"),
    "a link's property": ("MATCH ()-[e:SUPERSEDES]->() SET e.score = 0.75", "SUPERSEDES", "score", "differs"),
    "a link too many": (
        "MATCH (a:Memory {id: $id}), (b:Memory {id: $id}) CREATE (a)-[:RELATED_TO]->(b)",
        "RELATED_TO", "", "not in the journal",
    ),
    "a link twice": (
        "MATCH (a)-[e:SUPERSEDES]->(b) CREATE (a)-[:SUPERSEDES {score: 0.5, reason: 'newer', created_at: e.created_at}]->(b)",
        "SUPERSEDES", "", "twice",
    ),
    "an edge to a tag missing": (
        "MATCH (:Memory {id: $id})-[e:TAGGED]->() DELETE e", "TAGGED", "", "missing",
    ),
    "what a memory is about": (
        "MATCH (:Memory {id: $id})-[e:MENTIONS]->() SET e.about = NOT e.about", "MENTIONS", "about", "differs",
    ),
    "a predecessor too many": (
        "MATCH (a:Memory {id: $id}) CREATE (a)-[:NEXT]->(a)", "NEXT", "", "not in the journal",
    ),
    "a tag too many": ("CREATE (:Tag {id: 'odd', name: 'quetzalcoatl'})", "Tag", "", "not in the journal"),
    "a project's last memory": ("MATCH (p:Project) SET p.last_memory_id = 'x'", "Project", "last_memory_id", "differs"),
    "a recall": ("MATCH (r:Recall) SET r.total_tokens = 7", "Recall", "total_tokens", "differs"),
    "a recall's result": ("MATCH (:Recall)-[e:RECALLED]->() SET e.score = 9.0", "RECALLED", "score", "differs"),
    "a recall missing": ("MATCH (r:Recall) DETACH DELETE r", "Recall", "", "missing"),
    "a build": ("MATCH (b:Build) SET b.name = 'quetzalcoatl'", "Build", "name", "differs"),
}  # fmt: skip
OFTEN = {
    "the record", "a column outside of the digest", "a memory too many", "a memory missing", "a link twice",
    "a recall's result",
}  # fmt: skip
"""One for each kind of row and of problem. The others are much like them, and tried with --long only."""


@pytest.fixture
def lived(lived: tuple[Any, list[str]]) -> tuple[Any, str]:
    """Return a store with a history, and the id of a memory with tags, entities and a project."""
    store, ids = lived
    result = memgraph.MemoryRetrieval(store).retrieve({"task_description": "change login.py", "agent_name": "MARS"})
    assert result.memories
    store.flush()
    return store, ids[0]


@pytest.mark.embedded
def test_any_corruption_of_the_graph_is_reported(lived: tuple[Any, str], request: pytest.FixtureRequest) -> None:
    store, memory_id = lived
    is_long = request.config.getoption("--long")
    projector = store._projector
    assert store.verification(deep=True).differing == 0
    corruptions = {name: corruption for name, corruption in CORRUPTIONS.items() if is_long or name in OFTEN}
    assert is_long or corruptions.keys() == OFTEN
    for name, (statement, table, column, problem) in corruptions.items():
        with projector.holding(), projector.engine._session.use() as connection:
            connection.run("BEGIN TRANSACTION")
            connection.run(statement, {"id": memory_id} if "$id" in statement else {})
            found, plain = verify(projector, deep=True), verify(projector)
            connection.run("ROLLBACK")
        projector.engine.release()  # a row that was changed and rolled back may conflict with the next change of it
        named = {(one.part, one.table, one.column, one.problem) for one in found.first}
        assert ("graph", table, column, problem.format(id=memory_id)) in named, (name, found)
        assert found.differing >= len(found.first) > 0, name
        assert SECRET not in repr(found), name
        assert plain.differing, name
        with pytest.raises(GraphError, match=f"{table}.*memgraph rebuild"):
            refuse(found, projector)
    assert store.verification(deep=True).differing == 0


@pytest.mark.embedded
def test_a_rebuild_repairs_the_graph(lived: tuple[Any, str]) -> None:
    store, _ = lived
    with store._projector.holding(), store._projector.engine._session.use() as connection:
        connection.run("MATCH (m:Memory) SET m.title = 'x'")
    with pytest.raises(GraphError, match="values of columns"):
        store.verify()
    store.rebuild()
    store.verify(deep=True)


@pytest.mark.embedded
def test_a_state_that_deviates_from_the_journal(lived: tuple[Any, str]) -> None:
    store, _ = lived
    projector = store._projector
    projector.engine.apply([], {**projector.projection.as_row(), "digest": "0" * 64})
    found = store.verification(deep=True)
    assert [(one.table, one.column) for one in found.first] == [("Projection", "digest")]


def spoil_column(index: Any, slot: int) -> None:
    index.column("anchor")[slot] = 0.123


def spoil_session(index: Any, slot: int) -> None:
    index.column("session")[slot] = -1


def spoil_predecessor(index: Any, slot: int) -> None:
    index.column("previous")[slot] = slot


def spoil_links(index: Any, slot: int) -> None:
    index.links.add(slot, slot, 1)


def spoil_mentions(index: Any, slot: int) -> None:
    index.mentions.remove_value(slot)


SPOILT: list[tuple[str, Callable[[Any, int], object]]] = [
    ("anchor", spoil_column),
    ("session", spoil_session),
    ("previous", spoil_predecessor),
    ("links", spoil_links),
    ("mentions", spoil_mentions),
    ("named", lambda index, slot: index.named.remove_key(slot)),
    ("agents", lambda index, slot: index.agents.remove_value(slot)),
    ("postings", lambda index, slot: index.postings.remove_value(slot)),
    ("postings", lambda index, slot: index.postings.add(index.vocabulary.code("quetzalcoatl"), slot, 1)),
    ("memory", lambda index, slot: index.remove(index.ids.names[slot])),
]


def test_any_corruption_of_the_index_is_reported(lived: tuple[Any, str]) -> None:
    store, memory_id = lived
    for part, spoil in SPOILT:
        index = store.reader.index
        spoil(index, index.slot(memory_id))
        found = store.verification(deep=True)
        assert {one.part for one in found.first} == {"index"}, part
        assert (part, memory_id) in {(one.table, one.key) for one in found.first}, part
        store._projector._indexes.index = index_from(store._projector.engine, store._projector.projection)
    spoil_column(store.reader.index, 0)
    assert store.verification().differing == 0
    with pytest.raises(GraphError, match="index"):
        store.verify(deep=True)
    store.rebuild()
    store.verify(deep=True)


def test_updated_loaded_and_built_indexes_are_equal(open_store: Open, lived: tuple[Any, str]) -> None:
    store, memory_id = lived
    assert store.reader.index
    store.update_memory(memory_id, content="Another text", tags=["new"])
    store.verify(deep=True)
    store.close()
    again = open_store()
    again.delete_memory(memory_id)
    again.verify(deep=True)


class TestVectors:
    def spoil(self, store: Any, row: int) -> None:
        VectorTable(store.config.home).put(row, b"\x01\x02\x03\x04", at=0)

    def test_every_vector_is_compared_and_named(self, lived: tuple[Any, str]) -> None:
        store, memory_id = lived
        self.spoil(store, 0)
        self.spoil(store, 7)
        found = store.verification()
        assert [(one.part, one.key, one.problem) for one in found.first] == [
            ("vectors", "0", "differs"), ("vectors", "7", "differs"),
        ]  # fmt: skip
        assert found.first[0].column == memory_id
        with pytest.raises(VectorDamageError) as refused:
            store.verify()
        assert (refused.value.row, refused.value.memory_id) == (0, memory_id)

    @pytest.mark.embedded
    def test_vectors_of_earlier_texts_are_verified_too(self, lived: tuple[Any, str]) -> None:
        """The memory may come back from its history."""
        store, _ = lived
        rows = {row["row"] for row in store.cypher("MATCH (m:Memory) RETURN m.vector_row AS row")}
        unused = min(set(range(max(rows))) - rows)
        self.spoil(store, unused)
        assert [one.key for one in store.verification().first] == [str(unused)]

    def test_cut_and_missing_rows(self, lived: tuple[Any, str]) -> None:
        store, _ = lived
        table = VectorTable(store.config.home)
        count = store.verification().vectors
        table.remove(3)
        table.cut(2, 10)
        found = store.verification()
        assert (found.differing, found.first[0].key, found.first[1].problem) == (count - 2, "2", "missing")
        assert found.first[0].problem == "missing; no memory uses it"  # it was deleted
        table.remove()
        assert store.verification().differing == count


@pytest.mark.embedded
def test_verified_items_are_counted(lived: tuple[Any, str]) -> None:
    store, _ = lived
    told: list[tuple[int, int | None]] = []
    plain, deep = store.verification(lambda done, total: told.append((done, total))), store.verification(deep=True)
    memories = len(list(store.every_memory()))
    assert plain.nodes == deep.indexed == memories
    assert plain.edges == len(store.every_link())
    assert deep.nodes == len(store.cypher("MATCH (n) WHERE NOT label(n) IN ['Projection', 'MemoryRow'] RETURN n.id"))
    assert deep.edges == len(store.cypher("MATCH ()-[e]->() RETURN label(e)"))
    assert plain.vectors == deep.vectors >= memories
    assert plain.digest == deep.digest == store.digest()
    assert plain.events == deep.events == store.verify() == store.verify(deep=True)
    assert plain.seconds.keys() == {"journal", "vectors", "graph"}
    assert deep.seconds.keys() == {"journal", "vectors", "graph", "index"}
    assert told


def test_invalid_payloads_and_broken_chains_stop_it(lived: tuple[Any, str]) -> None:
    store, _ = lived
    change_payload(store.config.home, "try 1", "try 7")
    for deep in (False, True):
        with pytest.raises(DamagedJournalError):
            store.verify(deep=deep)


@pytest.mark.embedded
def test_vectors_have_the_hashes_that_memories_name(lived: tuple[Any, str]) -> None:
    store, _ = lived
    rows = VectorTable(store.config.home).rows()
    named = {
        row["row"]: row["sha256"]
        for row in store.cypher("MATCH (m:Memory) RETURN m.vector_row AS row, m.vector_sha256 AS sha256")
    }
    assert named
    assert all(row_sha256(np.frombuffer(rows[row], "<f4")) == sha256 for row, sha256 in named.items())
