"""A store on an engine that it is given: here the one in memory, which keeps nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore, InvalidInputError, MemGraph, MemoryRetrieval
from memgraph.errors import ClosedError, QueryError
from memgraph.testing import InMemoryEngine

SHOP = [
    {
        "type": "episodic",
        "project_id": "shop",
        "content": f"The deploy failed because the disk of runner {one} was full",
    }
    for one in ("one", "two", "three")
]


@pytest.fixture
def open_on(tmp_path: Path, clock: Any, embedder: Any) -> Iterator[Callable[..., AgentMemoryStore]]:
    """Open stores on an engine, or on their own graph. All are closed at the end."""
    with ExitStack() as opened:

        def open_one(engine: Any = None, name: str = "store") -> AgentMemoryStore:
            config = AgentMemoryConfig(home=tmp_path / name, keys_home=tmp_path / "keys")
            return opened.enter_context(AgentMemoryStore(config, embedder=embedder, clock=clock, engine=engine))

        yield open_one


@pytest.fixture
def write(clock: Any) -> Callable[[Any], list[str]]:
    """Write what the engine must add, change, link and remove; return the ids."""

    def write_to(store: Any) -> list[str]:
        ids = [f"{number:08x}-0000-7000-8000-000000000000" for number in range(len(SHOP))]
        store.insert_memories([{**memory, "id": one} for memory, one in zip(SHOP, ids, strict=True)])
        clock.advance(days=1)
        store.update_memory(
            ids[0], content="The deploy failed because the disk of every runner was full", tags=["disk"]
        )
        store.link(ids[0], "RELATED_TO", ids[1])
        store.supersede(ids[1], by=ids[0])
        store.delete_memory(ids[2])
        store.record_access(ids[0])
        store.flush()
        return ids

    return write_to


def test_a_store_on_the_engine_writes_reads_recalls_and_verifies(
    open_on: Callable[..., AgentMemoryStore], write: Callable[[Any], list[str]]
) -> None:
    engine = InMemoryEngine()
    store = open_on(engine)
    first, second, _ = write(store)
    assert {memory.id for memory in store.list_memories()} == {first, second}
    assert {link.relation for link in store.links(first)} >= {"RELATED_TO", "SUPERSEDES"}
    assert store.get_memory(first).access_count == 1
    found = MemoryRetrieval(store).retrieve(
        {"task_description": "the disk of the runner is full", "project_id": "shop"}
    )
    assert [memory.id for memory in found.memories] == [first]
    assert all(phase.complete for phase in MemGraph(store).maintenance.sleep().phases)
    assert store.to_networkx().number_of_nodes() == 2
    assert store.verify(deep=True) > 0
    assert engine.calls
    assert not (store.config.home / "graph").exists()


def test_it_matches_the_graph_on_disk(
    open_on: Callable[..., AgentMemoryStore], write: Callable[[Any], list[str]], clock: Any
) -> None:
    digests = set()
    for name, engine in (("memory", InMemoryEngine()), ("disk", None)):
        clock.set("2026-02-01T09:00:00Z")
        store = open_on(engine, name)
        write(store)
        digests.add(store.digest())
    assert len(digests) == 1


def test_a_rebuild_and_a_new_engine_are_filled_from_the_journal(
    open_on: Callable[..., AgentMemoryStore], write: Callable[[Any], list[str]], clock: Any
) -> None:
    store = open_on(InMemoryEngine())
    first, *_ = write(store)
    before, moment = store.digest(), store.now()
    store.rebuild()
    assert store.digest() == before
    store.close()

    with open_on(InMemoryEngine()) as again:
        assert again.digest() == before
        assert again.get_memory(first).tags == ["disk"]
        clock.advance(days=1)
        again.suppress(first)
        with again.at(moment) as past:
            assert past.digest() == before
    with open_on() as on_disk:  # no engine: the store's own graph is made
        assert on_disk.get_memory(first).is_suppressed
        assert on_disk.cypher("MATCH (m:Memory) RETURN count(*) AS n") == [{"n": 2}]


def test_a_graph_of_another_store_is_not_used(
    open_on: Callable[..., AgentMemoryStore], write: Callable[[Any], list[str]]
) -> None:
    engine = InMemoryEngine()
    write(open_on(engine, "one"))
    assert open_on(engine, "other").get_all_memories() == []


def test_unsupported_operations_raise_clear_errors(open_on: Callable[..., AgentMemoryStore], tmp_path: Path) -> None:
    engine = InMemoryEngine()
    with open_on(engine) as store:
        store.insert_memory(SHOP[0])
        with pytest.raises(QueryError, match="the in-memory engine runs no Cypher"):
            store.cypher("MATCH (m:Memory) RETURN m.id")
    with pytest.raises(ClosedError, match="the engine is closed; create another"):
        open_on(engine).get_all_memories()
    with pytest.raises(InvalidInputError, match=r"engine.*has no method `rebuild`"):
        open_on(tmp_path)
