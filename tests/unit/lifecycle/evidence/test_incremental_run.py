"""Scopes that a run looks at again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.lifecycle.errors import analyse_errors
from memgraph.lifecycle.procedures import learn_procedures


@pytest.mark.parametrize("context", [{"task_id": "open-work"}, {"project_id": "shop"}], ids=["task", "project"])
def test_the_only_memory_of_a_scope_is_deleted(open_store: Callable[..., Any], context: dict[str, str]) -> None:
    """The saved index forgets the scope's name, so a run after the next opening cannot know it."""
    with open_store() as store:
        (only,) = store.insert_memories(
            [{"type": "episodic", "content": "It failed with E1.", "outcome": "negative", **context}]
        )
        for number in range(2):
            store.insert_memory({"type": "episodic", "content": f"Call {number} failed", "outcome": "negative"})
        analyse_errors(store)
        learn_procedures(store)
        store.delete_memory(only.id)
    with open_store() as store:
        assert any(name.startswith("\0") for name in store.reader.index.scopes.names), "the name is forgotten"
        analyse_errors(store)
        learn_procedures(store)
