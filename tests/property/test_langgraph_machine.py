"""A state machine of all that LangGraph does to a store, against its own store on SQLite: both must answer the same.

What is left out of the comparison is what differs on purpose (`memgraph docs frameworks`): queries, times to live, filters that compare
values of different kinds, and the order of what was put within a second. In between, the store sleeps, is opened again, and holds memories
of other doors.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from memgraph import AgentMemoryStore, MemGraph
from memgraph.config import AgentMemoryConfig
from memgraph.testing import FakeClock, FakeEmbedder

pytest.importorskip("langgraph.store.sqlite", reason="langgraph-checkpoint-sqlite is missing")

from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from langgraph.store.sqlite import SqliteStore

from memgraph.interfaces.langgraph import MemGraphStore

LABELS = st.sampled_from(["a", "b", "A", "a-b", "ä", "x y", "[a]", "%", "a*", "a\n"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
KEYS = st.sampled_from(["k", "K", "k.1", "ü k", "/x/y", "'; --"])
NUMBERS = st.integers(-20, 20) | st.integers(-8, 8).map(lambda number: number / 4)
TEXTS = st.sampled_from(
    ["", "x", "X", "Rome", "the user lives in Rome", "the user lives in Oslo", "é", "\n", "\u0000", "😀"]
)
LISTS = st.lists(st.integers(0, 3) | st.sampled_from(["p", "q"]), max_size=2)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "number": NUMBERS,
    "text": TEXTS,
    "flag": st.booleans(),
    "nothing": st.none(),
    "list": LISTS,
}
VALUES = st.fixed_dictionaries(
    {},
    optional={
        **KINDS,
        "deep": st.fixed_dictionaries({}, optional={"number": NUMBERS, "text": TEXTS}),
        "long": st.integers(0, 12_000).map(lambda size: ("All work and no play. " * 600)[:size]),
    },
)
ORDERED = st.sampled_from(["$gt", "$gte", "$lt", "$lte"])
CONDITIONS = {
    "number": NUMBERS | st.dictionaries(ORDERED | st.sampled_from(["$eq", "$ne"]), NUMBERS, min_size=1, max_size=2),
    "text": TEXTS | st.dictionaries(ORDERED | st.sampled_from(["$eq", "$ne"]), TEXTS, min_size=1, max_size=2),
    "flag": st.booleans(),
    "nothing": st.none(),
    "list": LISTS,
    "deep.number": NUMBERS,
    "missing": NUMBERS | st.none(),
}
FILTERS = st.none() | st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: CONDITIONS[name] for name in names})
)
PATHS = st.lists(LABELS | st.just("*"), min_size=1, max_size=3).map(tuple)
MATCHES = st.lists(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=2).map(tuple)
PUTS = st.builds(PutOp, NAMESPACES, KEYS, VALUES | st.none(), st.none() | st.just(False), ttl=st.none())
READS = (
    st.builds(GetOp, NAMESPACES, KEYS)
    | st.builds(
        SearchOp, PREFIXES, FILTERS, st.just(1_000) | st.integers(0, 3), st.just(0) | st.integers(0, 3), query=st.none()
    )
    | st.builds(
        ListNamespacesOp, st.none() | MATCHES, st.none() | st.integers(1, 3), st.integers(1, 20), st.integers(0, 2)
    )
)


class StoreMachine(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="memgraph-langgraph-"))
        self.clock = FakeClock()
        self.oracle_of = SqliteStore.from_conn_string(":memory:")
        self.oracle = self.oracle_of.__enter__()
        self.oracle.setup()
        self.open()

    def open(self) -> None:
        config = AgentMemoryConfig(home=self.root / "store", keys_home=self.root / "keys")
        store = AgentMemoryStore(config, embedder=FakeEmbedder(), clock=self.clock)
        self.memory = MemGraph(store)
        self.store = MemGraphStore(self.memory)

    @rule(ops=st.lists(PUTS | READS, min_size=1, max_size=6))
    def batch(self, ops: list[Op]) -> None:
        self.clock.advance(minutes=1)
        for op, ours, theirs in zip(ops, self.store.batch(ops), self.oracle.batch(ops), strict=True):
            if isinstance(op, SearchOp) and (op.limit < 1_000 or op.offset):
                assert len(ours) == len(theirs)
                assert len({(one.namespace, one.key) for one in ours}) == len(ours)
            else:
                assert shown(ours) == shown(theirs), op

    @rule(namespace=NAMESPACES, key=KEYS, value=VALUES)
    def put(self, namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> None:
        self.clock.advance(minutes=1)
        for store in (self.store, self.oracle):
            store.put(namespace, key, value)
        assert self.store.get(namespace, key).value == value
        assert self.store.search(namespace, limit=1)[0].key == key, "the latest comes first"

    @rule(text=TEXTS.filter(str.strip))
    def save_elsewhere(self, text: str) -> None:
        self.memory.save_observation(text.replace("\u0000", "0"))

    @rule(days=st.integers(0, 400))
    def sleep(self, days: int) -> None:
        self.clock.advance(days=days)
        self.memory.maintenance.sleep()

    @rule()
    def open_again(self) -> None:
        self.memory.close()
        self.open()

    @invariant()
    def everything_is_equal(self) -> None:
        assert shown(self.store.search((), limit=1_000)) == shown(self.oracle.search((), limit=1_000))
        assert self.store.list_namespaces() == self.oracle.list_namespaces()

    def teardown(self) -> None:
        try:
            self.memory.store.verify()
        finally:
            self.memory.close()
            self.oracle_of.__exit__(None, None, None)
            shutil.rmtree(self.root)


def shown(result: Any) -> Any:
    """Return an answer without what the two stores need not have in common: times, scores, the order of items."""
    if isinstance(result, list) and all(isinstance(one, SearchItem) for one in result):
        return sorted((one.namespace, one.key, repr(sorted(one.value.items()))) for one in result)
    return (result.namespace, result.key, result.value) if hasattr(result, "value") else result


def run(examples: int, steps: int) -> None:
    machine = type("Machine", (StoreMachine,), {})
    few = settings(
        max_examples=examples,
        deadline=None,
        stateful_step_count=steps,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    run_state_machine_as_test(machine, settings=few)


def test_the_store_answers_as_the_one_on_sqlite() -> None:
    run(examples=4, steps=12)


@pytest.mark.long
def test_the_store_answers_as_the_one_on_sqlite_at_length() -> None:
    run(examples=60, steps=40)
