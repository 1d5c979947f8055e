"""A memory with the graph in memory, for doors of frameworks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memgraph import MemGraph


@pytest.fixture
def memory(open_store: Callable[..., Any]) -> MemGraph:
    return MemGraph(open_store(agents={"coach": {"domain": "health"}, "reader": {"write": []}}))


@pytest.fixture(autouse=True)
def event_loop_of_thread() -> Iterator[None]:
    """Give the thread an event loop: `run_sync` of frameworks makes one otherwise, and leaves it open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()
    asyncio.set_event_loop(None)
