"""Nodes exist as long as a memory is attached to them, however the commits were divided."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryRevised, RecordPatch
from memgraph.model.events.records import BuildConsolidated
from memgraph.model.ids import natural_id
from tests.unit.fold.conftest import NOW, State

NODE_TABLES = ("Project", "Build", "Session", "Task", "Agent", "Tag", "Entity")
Added = Callable[..., MemoryAdded]
Ids = Callable[[int], str]


def attached(state: State) -> set[tuple[str, Any]]:
    """Return the nodes that edges of memories lead to."""
    nodes = {(table, key) for table, key in state.rows if table in NODE_TABLES}
    ends = {key[1] for _, key in state.rows if isinstance(key, tuple)}
    return {(table, key) for table, key in nodes if key in ends}


def names(state: State, table: str) -> set[str]:
    return {row["name"] for row in state.table(table).values()}


def revised(memory_id: str, *, cleared: tuple[str, ...] = (), **changed: Any) -> MemoryRevised:
    return MemoryRevised(id=memory_id, changed=RecordPatch(**changed), cleared=list(cleared))


def test_every_kind_of_node_is_removed_with_its_last_memory(state: State, added: Added, memory_id: Ids) -> None:
    fields: dict[str, Any] = {
        "project_id": "P",
        "build_id": "b",
        "session_id": "s",
        "task_id": "t",
        "agents_involved": ["Ada"],
        "tags": ["secret"],
        "entities": [{"kind": "person", "name": "Dr. Anna Smith"}],
    }
    state.fold(added(1, **fields), added(2, **fields))
    assert attached(state) == {(table, key) for table, key in state.rows if table in NODE_TABLES}
    assert {table for table, _ in attached(state)} == set(NODE_TABLES)
    before = attached(state)
    state.fold(MemoryDeleted(id=memory_id(1)))
    assert attached(state) == before
    state.fold(MemoryDeleted(id=memory_id(2)))
    assert state.rows == {}


def test_a_tag_is_removed_when_the_last_memory_loses_it(state: State, added: Added, memory_id: Ids) -> None:
    state.fold(added(1, tags=["Secret", "kept"]), added(2, tags=["secret"]))
    state.fold(revised(memory_id(1), tags=["kept"]))
    assert names(state, "Tag") == {"Secret", "kept"}
    state.fold(revised(memory_id(2), cleared=("tags",)))
    assert names(state, "Tag") == {"kept"}


def test_a_suppressed_memory_keeps_its_tags(state: State, added: Added, memory_id: Ids) -> None:
    state.fold(added(1, tags=["secret"]))
    state.fold(revised(memory_id(1), is_suppressed=True))
    assert names(state, "Tag") == {"secret"}


def test_a_consolidated_build_stays(state: State, added: Added, memory_id: Ids) -> None:
    state.fold(added(1, build_id="b", project_id="P"))
    build = BuildConsolidated(
        project_id="P", build_id="b", log_sha256="d" * 64, outcome="failure", started_at=NOW, completed_at=NOW,
        task_count=2, agents=[], complete=True, extracted=1, merged=0, extractor="rules", consolidated_at=NOW,
    )  # fmt: skip
    state.fold(build)
    state.fold(MemoryDeleted(id=memory_id(1)))
    assert list(state.table("Build")) == [natural_id("build", "b", project_id="P")]
    assert state.table("Project") == {}


@pytest.mark.parametrize("seed", range(40))
def test_single_commits_equal_one_commit(added: Added, memory_id: Ids, seed: int) -> None:
    draw = random.Random(seed)
    live: list[int] = []
    payloads: list[Any] = []

    def tags() -> list[str]:
        return draw.sample(["a", "A", "b", "c", "d"], draw.randrange(4))

    for number in range(1, 40):
        kind = draw.choice(["add", "add", "revise", "delete"])
        if kind == "add" or not live:
            live.append(number)
            fields = {"tags": tags(), "project_id": draw.choice(["P", "Q"]), "session_id": draw.choice(["s", "t"])}
            payloads.append(added(number, **fields))
        elif kind == "revise":
            new = tags()
            changed = {"tags": new} if new else {"cleared": ("tags",)}
            payloads.append(revised(memory_id(draw.choice(live)), **changed))
        else:
            payloads.append(MemoryDeleted(id=memory_id(gone := draw.choice(live))))
            live.remove(gone)
    one_by_one, at_once, in_parts = State(), State(), State()
    for payload in payloads:
        one_by_one.fold(payload)
        assert attached(one_by_one) == {place for place in one_by_one.rows if place[0] in NODE_TABLES}
    at_once.fold(*payloads)
    while payloads:
        size = draw.randrange(1, 6)
        in_parts.fold(*payloads[:size])
        payloads = payloads[size:]
    assert one_by_one.rows == at_once.rows == in_parts.rows


def test_many_memories_of_one_tag(state: State, added: Added, memory_id: Ids) -> None:
    state.fold(*(added(n, tags=["many"]) for n in range(1, 301)))
    state.fold(*(MemoryDeleted(id=memory_id(n)) for n in range(1, 300)))
    assert names(state, "Tag") == {"many"}
    state.fold(MemoryDeleted(id=memory_id(300)))
    assert state.rows == {}
