"""Nothing here asks the database anything: stores keep their graph in memory, unless the run is a long one."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import MemGraph


@pytest.fixture
def memory(store: Any) -> MemGraph:
    return MemGraph(store)
