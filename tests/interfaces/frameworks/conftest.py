"""A memory with the graph in memory, for doors of frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemGraph


@pytest.fixture
def needs_database() -> bool:
    return False


@pytest.fixture
def memory(open_store: Callable[..., Any]) -> MemGraph:
    return MemGraph(open_store(agents={"coach": {"domain": "health"}, "reader": {"write": []}}))
