"""Verification: whatever part is corrupted is found, counted and named, and nothing is found where nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.errors import DamagedJournalError, GraphError, VectorDamageError
from memgraph.graph.schema import tables
from memgraph.journal.vectors import row_sha256
from memgraph.ports import Change
from memgraph.store.maintenance.verifying import refuse, verify
from tests.tables import VectorTable, change_payload, database

Open = Callable[..., Any]
SECRET = "quetzalcoatl"


def memory_with(**fields: Any) -> Callable[[Any, str], list[Change]]:
    """Return what changes the fields of a memory."""

    def changes(store: Any, memory_id: str) -> list[Change]:
        row = store._projector.rows.get("Memory", memory_id)
        after = {name: value for name, value in {**row, **fields}.items() if value is not None}
        return [Change("Memory", memory_id, row, after)]

    return changes


def every(table: str, **fields: Any) -> Callable[[Any, str], list[Change]]:
    """Return what changes the fields of all rows of a table; without any: what removes them."""
    return lambda store, _id: [
        Change(table, key, row, {**row, **fields} if fields else None) for key, row in store._projector.rows.scan(table)
    ]


CORRUPTIONS: dict[str, tuple[Callable[[Any, str], list[Change]], str, str, str]] = {
    # changes, table, column, problem
    "a column": (memory_with(title="quetzalcoatl"), "Memory", "title", "differs"),
    "a column set to nothing": (memory_with(tags=None), "Memory", "tags", "differs"),
    "a column outside of the digest": (memory_with(seq=1), "Memory", "seq", "differs"),
    "where a vector lies": (memory_with(vector_row=1), "Memory", "vector_row", "differs"),
    "a memory too many": (
        lambda store, one: [Change("Memory", "odd", None, {**store._projector.rows.get("Memory", one), "id": "odd"})],
        "Memory", "", "not in the journal",
    ),
    "a link missing": (every("SUPERSEDES"), "SUPERSEDES", "", "missing"),
    "a link's property": (every("SUPERSEDES", score=0.75), "SUPERSEDES", "score", "differs"),
    "a link too many": (
        lambda _store, one: [Change("RELATED_TO", (one, one), None, {})], "RELATED_TO", "", "not in the journal",
    ),
    "a recall's result missing": (every("RECALLED"), "RECALLED", "", "missing"),
    "a tag too many": (
        lambda _store, _id: [Change("Tag", "odd", None, {"id": "odd", "name": "quetzalcoatl"})],
        "Tag", "", "not in the journal",
    ),
    "a recall": (every("Recall", total_tokens=7), "Recall", "total_tokens", "differs"),
    "a recall's result": (every("RECALLED", score=9.0), "RECALLED", "score", "differs"),
    "a session": (every("Session", name="quetzalcoatl"), "Session", "name", "differs"),
}  # fmt: skip


@pytest.fixture
def lived(lived: tuple[Any, list[str]]) -> tuple[Any, str]:
    """Return a store with a history, and the id of a memory with tags, entities and a project."""
    store, ids = lived
    result = memgraph.MemoryRetrieval(store).retrieve({"task_description": "change login.py", "agent_name": "MARS"})
    assert result.memories
    store.flush()
    return store, ids[0]


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_any_corruption_of_the_rows_is_reported(lived: tuple[Any, str], name: str) -> None:
    store, memory_id = lived
    changes, table, column, problem = CORRUPTIONS[name]
    projector = store._projector
    assert store.verification(deep=True).differing == 0
    projector.rows.apply(changes(store, memory_id), projector.projection)
    found = verify(projector, deep=True)
    assert ("graph", table, column, problem) in {(one.part, one.table, one.column, one.problem) for one in found.first}
    assert found.differing >= len(found.first) > 0
    assert SECRET not in repr(found)
    with pytest.raises(GraphError, match="memgraph rebuild"):
        refuse(found, projector)
    store.rebuild()
    store.verify(deep=True)


def test_rows_that_this_store_did_not_write_are_reported(lived: tuple[Any, str]) -> None:
    store, _ = lived
    with database(store.config.home) as raw:
        raw.execute("UPDATE node SET code = 7")
    assert ("Memory", "a row of Memory is not what was written") in {
        (one.table, one.problem) for one in store.verification(deep=True).first
    }
    with pytest.raises(GraphError, match="a row of Memory is not what was written"):
        store.verify()
    store.rebuild()
    store.verify(deep=True)


def test_a_state_that_deviates_from_the_journal(lived: tuple[Any, str]) -> None:
    store, _ = lived
    projector = store._projector
    projector.rows.apply([], projector.projection.with_digest(0))
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
        store.rebuild()
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
        assert refused.value.path == store.config.home / "memgraph.db"

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
    with store._projector.reading():
        rows = {name: len(store._projector.rows.scan(name)) for name in tables()}
    assert deep.nodes == sum(rows[name] for name, table in tables().items() if not table.ends)
    assert deep.edges == sum(rows[name] for name, table in tables().items() if table.ends)
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
