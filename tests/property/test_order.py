"""Commits that have nothing to do with each other may come in any order: the state is the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.errors import DuplicateIdError
from memgraph.graph.schema import tables
from memgraph.testing import FakeClock, FakeEmbedder

Step = tuple[str, int, int]
steps = st.tuples(
    st.sampled_from(
        ["insert", "insert", "update", "link", "unlink", "use", "delete", "undelete", "suppress", "archive"]
    ),
    st.integers(0, 2),
    st.integers(0, 2),
)
histories = st.lists(
    st.lists(steps, max_size=8).map(lambda drawn: [("insert", 0, 0), ("insert", 1, 1), *drawn]), min_size=2, max_size=3
)


def memory_id(history: int, number: int) -> str:
    return str(UUID(int=history << 8 | number, version=4))


def take(store: memgraph.AgentMemoryStore, history: int, step: Step) -> None:
    """Do one thing to the memories of one history; what is impossible just now is refused, in every order alike."""
    what, one, other = step
    first, second = memory_id(history, one), memory_id(history, other)
    context = {"project_id": f"P{history}", "tags": ["shared", f"t{other}"], "agents_involved": ["MARS"]}
    doings: dict[str, Callable[[], object]] = {
        "insert": lambda: store.insert_memory({"type": "episodic", "content": f"Build {one}", "id": first, **context}),
        "update": lambda: store.update_memory(first, content=f"Changed {other}", relevance_score=other / 2),
        "link": lambda: store.link(first, "SUPERSEDES", second, score=0.5),
        "unlink": lambda: store.unlink(first, "SUPERSEDES", second),
        "use": lambda: store.record_access(first),
        "delete": lambda: store.delete_memory(first),
        "undelete": lambda: store.undelete(first),
        "suppress": lambda: store.suppress(first),
        "archive": lambda: store.archive(first, reason="old"),
    }
    try:
        doings[what]()
    except (memgraph.NotFoundError, DuplicateIdError, memgraph.InvalidInputError):
        return


def edges(store: memgraph.AgentMemoryStore) -> set[tuple[str, Any]]:
    """Return the table and the ends of each edge of the graph."""
    with store._projector.reading():
        engine = store._projector.rows
        return {(name, key) for name, table in tables().items() if table.ends for key, _ in engine.scan(name)}


def live(folder: Path, name: str, given_histories: Sequence[Sequence[Step]], turns: Sequence[int]) -> dict[str, Any]:
    """Live the histories through, a step of the named one at a turn, and return all that can be seen."""
    config = memgraph.AgentMemoryConfig(home=folder / name, keys_home=folder / "keys")
    waiting = [list(history) for history in given_histories]
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(8), clock=FakeClock()) as store:
        for turn in turns:
            take(store, turn, waiting[turn].pop(0))
        store.flush()
        store.verify()
        return {
            "digest": store.digest(),
            "memories": {memory.id: memory for memory in store.every_memory()},
            "links": store.every_link(),
            "listed": [memory.id for memory in store.get_all_memories()],
            "edges": edges(store),
        }


@settings(max_examples=4, database=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(given_histories=histories, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_independent_commits_does_not_matter(given_histories: list[list[Step]], seed: int) -> None:
    in_turn = [turn for turn, history in enumerate(given_histories) for _ in history]
    mixed = in_turn.copy()
    Random(seed).shuffle(mixed)
    with tempfile.TemporaryDirectory(prefix="memgraph-order-") as name:
        one_by_one = live(Path(name), "one", given_histories, in_turn)
        interleaved = live(Path(name), "other", given_histories, mixed)
    assert interleaved == one_by_one
