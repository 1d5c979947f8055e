"""Arguments of wrong types: whatever public method they are given to, what comes out is an error of memgraph's own."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.extraction.readers import BuildLogReader
from memgraph.facade.learning import Contradictions, Maintenance, Procedures
from memgraph.model.events.memories import MemoryUnlinked
from memgraph.model.events.records import RetrievalRecorded
from memgraph.testing import FakeClock, FakeEmbedder

ONE, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
WRONG: list[Any] = [None, 1, "?", [1], {"a": 1}, object()]
BUILD = {
    "build_id": "b",
    "project_id": "P",
    "build_outcome": "success",
    "started_at": "2026-01-01",
    "completed_at": "2026-01-01",
}
NOT_CALLED = {"close"}
"""It takes nothing, and nothing works after it."""
REMOVES = {"purge", "reset"}
"""What they remove does not come back: each gets a store of its own."""
RIGHT: dict[str, Any] = {
    "action": "a",
    "agent": "planner",
    "domain": "travel",
    "project": "p",
    "base_prompt": "You are",
    "beginning": ONE[:8],
    "build_log": BUILD,
    "build_logs": [],
    "by": OTHER,
    "candidate": {"content": "a"},
    "content": "a fact",
    "context": memgraph.AgentContext(query_id=ONE, retrieved_at="2026-01-01"),
    "data": {"version": "1.0.0"},
    "days": 1.0,
    "embedder": FakeEmbedder(16),
    "embedding": [1.0] * 16,
    "episode_id": ONE,
    "events": [MemoryUnlinked(source_id=ONE, relation="ELABORATES", target_id=OTHER)],
    "feedback": "like",
    "id": ONE,
    "initial": 1.0,
    "is_pinned": False,
    "iso_timestamp": "2026-01-01",
    "keep": ONE,
    "label": "clear",
    "links": [],
    "memories": [],
    "memory": {"type": "episodic", "content": "x"},
    "memory_id": ONE,
    "memory_ids": [ONE],
    "name": "failures_by_file",
    "older_id": ONE,
    "one_id": ONE,
    "other_id": OTHER,
    "outcome": "success",
    "project_id": "P",
    "proposal_id": ONE,
    "query": "MATCH (m:Memory) RETURN m.id AS id",
    "query_id": ONE,
    "reason": "because",
    "reasoning": "r",
    "record": RetrievalRecorded(
        query_id=OTHER,
        query_hmac="0" * 64,
        retrieved_at="2026-01-01T00:00:00.000Z",
        settings_version="1",
        total_tokens=0,
    ),
    "receipt": {},
    "relevance": 0.5,
    "relation": "RELATED_TO",
    "sample": 1,
    "scope": "memory",
    "situation": "s",
    "source_id": ONE,
    "target_id": OTHER,
    "task": "a task",
    "text": "a text",
    "type": "episodic",
    "when": "2026-01-02",
    "write_scope": "global",
    "value": "a text",
}
"""An argument for each parameter that must be given."""
OPTIONS: dict[str, list[str]] = {
    "build_agent_context": ["max_tokens"],
    "count_listed": ["type", "project_id", "state", "include_suppressed"],
    "cypher": ["parameter"],
    "link": ["score", "reason"],
    "purge": ["match", "project", "source", "secrets", "keep_copies", "everything"],
    "query": ["since", "limit", "project"],
    "recall": ["max_tokens", "agents", "privacy_tiers", "task_embedding", "session_id"],
    "save_episode": ["tags", "user_feedback", "occurred_at"],
    "save_observation": ["tags", "valid_at", "outcome"],
    "remember": ["tags", "project_id", "privacy_tier", "agent", "fact"],
    "search_memories": ["limit", "agents", "project_id", "trust_classes", "include_archived"],
    "update_memory": ["content", "tags", "title", "embedding", "is_pinned", "relevance_score", "id"],
}
"""What is passed on by name."""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[memgraph.MemGraph]:
    with opened_in(tmp_path_factory.mktemp("wrong")) as opened:
        yield opened


@contextmanager
def opened_in(folder: Path) -> Iterator[memgraph.MemGraph]:
    (folder / "builds.jsonl").write_text(json.dumps(BUILD) + "\n")
    RIGHT["path"] = folder / "backup.tar.gz"
    RIGHT["reader"] = BuildLogReader(folder / "builds.jsonl")
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    store = memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock())
    with memgraph.MemGraph(store) as opened:
        for one in (ONE, OTHER):
            store.insert_memory({"id": one, "type": "episodic", "content": f"An episode {one}"})
        RIGHT["existing"] = store.get_memory(ONE)
        yield opened


def methods(kind: type) -> list[str]:
    """Return the names of a class's public methods."""
    found = inspect.getmembers_static(kind, inspect.isfunction)
    return [name for name, _ in found if not name.startswith("_") and name not in NOT_CALLED]


def calls(name: str, method: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield calls with one wrong argument, each parameter in its turn, and what is wrong."""
    parameters = list(inspect.signature(method).parameters.values())
    needed = [one.name for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    varied = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        varied += OPTIONS[name]
    for field in varied:
        for value in WRONG:
            given = {**{one: RIGHT[one] for one in needed}, field: value}
            first = [given.pop(one.name) for one in parameters if one.kind is one.POSITIONAL_ONLY]
            yield f"{field}={value!r}", partial(method, *first, **given)


OWNERS: dict[str, tuple[type, Callable[[memgraph.MemGraph], Any]]] = {
    "store": (memgraph.AgentMemoryStore, lambda memory: memory.store),
    "facade": (memgraph.MemGraph, lambda memory: memory),
    "procedures": (Procedures, lambda memory: memory.procedures),
    "contradictions": (Contradictions, lambda memory: memory.contradictions),
    "maintenance": (Maintenance, lambda memory: memory.maintenance),
    "commands": (memgraph.MemoryCommands, lambda memory: memory.commands),
    "retrieval": (memgraph.MemoryRetrieval, lambda memory: memory.retrieval),
    "consolidation": (memgraph.ConsolidationPipeline, lambda memory: memory.consolidation),
}


@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner, (kind, _) in OWNERS.items() for name in methods(kind)]
)
def test_a_wrong_type_raises_no_bare_error(memory: memgraph.MemGraph, tmp_path: Path, owner: str, name: str) -> None:
    if name not in REMOVES:
        _check(memory, owner, name)
        return
    with opened_in(tmp_path) as own:
        _check(own, owner, name)


def _check(memory: memgraph.MemGraph, owner: str, name: str) -> None:
    method = getattr(OWNERS[owner][1](memory), name)
    bare = []
    for what, call in calls(name, method):
        try:
            result = call()
            if hasattr(result, "__enter__"):  # a view of the past, or a block
                with result:
                    pass
        except memgraph.MemGraphError:
            pass
        except Exception as error:  # noqa: BLE001 - just these are looked for
            bare.append(f"{what}: {type(error).__name__}: {error}")
        if name not in REMOVES and memory.store.get_memory(ONE) is None:
            memory.store.undelete(ONE)
    assert not bare, "\n".join(bare)


PARTS = ["config", "embedder", "clock", "keys", "annotator"]


@pytest.mark.parametrize("part", PARTS)
def test_nor_of_a_part_that_is_none(tmp_path: Path, part: str) -> None:
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    for value in (1, "?", [1], object()):
        with pytest.raises(memgraph.InvalidInputError) as refused:
            memgraph.AgentMemoryStore(**{"config": config, part: value})
        assert part == "config" or refused.value.field == part
        assert not (tmp_path / "store").exists()
    with pytest.raises(memgraph.InvalidInputError, match="store"):
        memgraph.MemGraph(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value", [None, 1, [1], {"a": 1}, object()], ids=["none", "number", "list", "mapping", "object"]
)
def test_a_wrong_type_is_named_by_its_field(memory: memgraph.MemGraph, value: Any) -> None:
    store = memory.store
    for field, call in {
        "relation": lambda: store.link(ONE, value, OTHER),
        "id": lambda: store.get_memory(value),
        "memory_ids": lambda: store.read_memories(value if isinstance(value, list) else [value]),
        "reader": lambda: memory.ingest(value),
        "text": lambda: store.hmac_of(value),
        "memories": lambda: store.insert_parts(value),
        "links": lambda: store.import_memories([], value),
        "events": lambda: store.commit("global", value),
        "write_scope": lambda: store.commit(value, []),
        "embedder": lambda: store.reembed(value),
    }.items():
        with pytest.raises(memgraph.InvalidInputError) as refused:
            call()
        assert refused.value.field.split(".")[0] == field
