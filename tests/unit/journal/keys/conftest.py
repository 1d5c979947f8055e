"""Fixtures of the journal, and a journal whose key was rotated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys
from memgraph.store.maintenance.keys import rotate
from tests.unit.journal.conftest import NOW


@pytest.fixture
def turn(keys: FileKeys) -> Callable[..., Any]:
    """Rotate a journal's key."""

    def rotated(journal: Journal, provider: Any = None, now: str = NOW) -> Any:
        return rotate(journal, provider or keys, now=lambda: now, rotated_by="tests")

    return rotated


@pytest.fixture
def rotated(journal: Journal, write: Any, added: Any, turn: Any) -> Journal:
    """A journal with events under two keys."""
    write(journal, added(1))
    turn(journal)
    write(journal, added(2))
    return journal
