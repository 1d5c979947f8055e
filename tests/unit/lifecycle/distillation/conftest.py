"""A store with something that rules leave undecided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.lifecycle.distillation.stories import ERROR, failure, fix


@pytest.fixture
def returned() -> list[dict[str, Any]]:
    """Return a failure, its fix, and the failure that came back, in three builds."""
    return [failure(1), fix(2), failure(3, content=f"The nightly import failed again: {ERROR}")]


@pytest.fixture
def ordered(store: Any, returned: list[dict[str, Any]]) -> Callable[..., Any]:
    """Store the memories, sleep, and return the open work orders."""
    from memgraph.lifecycle import sleep
    from memgraph.lifecycle.orders import work_orders

    def make(memories: list[dict[str, Any]] | None = None) -> Any:
        store.insert_memories(returned if memories is None else memories)
        sleep(store, phases=["work-orders"])
        return work_orders(store)

    return make
