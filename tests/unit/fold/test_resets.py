"""The fold of a reset. What it does to whole stores is tested in ``tests/unit/store/maintenance/test_reset.py``."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.model.events.store import StoreReset


def test_a_memory_that_is_missing_changes_nothing(state: Any, memory_id: Any) -> None:
    assert state.fold(StoreReset(scope="all", removed=[memory_id(1)])) == []


def test_only_a_replay_from_the_first_event_clears_tables(state: Any, added: Any) -> None:
    """Over old rows the fold would not see which there are, so it must not be silent."""
    state.fold(added(1))
    with pytest.raises(RuntimeError, match="only a replay"):
        state.fold(StoreReset(scope="all", cleared={"Recall": 1}))
