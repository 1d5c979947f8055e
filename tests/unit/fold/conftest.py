"""A projection held in a dictionary, folded event by event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import pytest

from memgraph.fold import Workspace, fold
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.payload import Payload
from memgraph.model.ids import source_id
from memgraph.model.memory import MemoryRecord
from memgraph.ports import Change, Key, Row

NOW = "2026-02-01T09:00:00.000Z"


class State:
    """The rows so far. Checks that each fold is pure: the rows it read are unchanged."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, Key], Row] = {}
        self.seq = 0

    def get(self, table: str, key: Key) -> Row | None:
        return self.rows.get((table, key))

    def has(self, table: str, key: Key) -> bool:
        return (table, key) in self.rows

    def edges_at(self, memory_id: str) -> Iterable[tuple[str, Key, Row]]:
        return [(t, k, row) for (t, k), row in self.rows.items() if isinstance(k, tuple) and memory_id in k]

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        return [k[0] for t, k in self.rows if t == table and isinstance(k, tuple) and k[1] == target][:limit]

    def fold(self, *payloads: Payload) -> list[Change]:
        before = deepcopy(self.rows)
        workspace = Workspace(self)
        for payload in payloads:
            self.seq += 1
            event = Event(
                self.seq, "c", True, payload.TYPE, payload, payload.dump(), "global", None, "agent", NOW, NOW, "s"
            )
            kept = payload.model_copy(deep=True)
            fold(workspace, event)
            assert payload == kept, "the event was modified"
        changes = list(workspace.changes())
        assert self.rows == before, "an old row was modified"
        for change in changes:
            assert change.old == self.rows.get((change.table, change.key))
            if change.new is None:
                del self.rows[change.table, change.key]
            else:
                assert None not in change.new.values()
                assert [] not in change.new.values()
                self.rows[change.table, change.key] = change.new
        return changes

    def table(self, name: str) -> dict[Key, Row]:
        return {key: row for (table, key), row in self.rows.items() if table == name}


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def memory_id() -> Callable[[int], str]:
    return lambda number: source_id("tests", number)


@pytest.fixture
def added(memory_id: Callable[[int], str]) -> Callable[..., MemoryAdded]:
    """Make the event of one memory, with an id derived from a number."""

    def make(number: int = 1, *, vector: Any = None, **fields: Any) -> MemoryAdded:
        required = {"id": memory_id(number), "type": "episodic", "content": f"Memory {number}"}
        times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), NOW)
        return MemoryAdded(memory=MemoryRecord(**{**required, **times, **fields}), vector=vector)

    return make
