"""A memory over the fakes, with two tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemGraph


@pytest.fixture
def memory(store: Any) -> MemGraph:
    return MemGraph(store)


@pytest.fixture
def tasks(memory: MemGraph) -> Any:
    memory.tasks.upsert("Fix the login", task_id="login")
    memory.tasks.upsert("Write the docs", task_id="docs")
    return memory.tasks


@pytest.fixture
def bytes_of(store: Any) -> Callable[[], bytes]:
    """Return everything that the journal holds."""

    def read() -> bytes:
        folder = store.config.home / "journal"
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl")))

    return read
