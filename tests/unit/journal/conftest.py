"""A journal without a store, and events to write into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memgraph.journal.envelope import CommitDraft, Committed
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.opening import FILE, open_journal
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.payload import Payload
from memgraph.model.ids import source_id
from memgraph.model.memory import MemoryRecord

NOW = "2026-02-01T09:00:00.000Z"


@pytest.fixture
def keys(tmp_path: Path) -> FileKeys:
    return FileKeys(tmp_path / "keys")


@pytest.fixture
def open_one(tmp_path: Path, keys: FileKeys) -> Callable[..., Journal]:
    """Open journals by name; the same name again reopens the same journal."""

    def open_it(name: str = "store", **options: Any) -> Journal:
        given = {"keys_home": tmp_path / "keys", "created_by": "tests", "lock_timeout_s": 5.0, **options}
        now = given.pop("now", NOW)
        return open_journal(tmp_path / name, given.pop("keys", keys), now=lambda: now, **given)

    return open_it


@pytest.fixture
def journal(open_one: Callable[..., Journal]) -> Journal:
    return open_one()


@pytest.fixture
def added() -> Callable[..., MemoryAdded]:
    """Make the event of one memory, with an id derived from a number."""

    def make(number: int = 1, **fields: Any) -> MemoryAdded:
        required = {"id": source_id("tests", number), "type": "episodic", "content": f"Memory {number}"}
        times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), NOW)
        return MemoryAdded(memory=MemoryRecord(**{**required, **times, **fields}))

    return make


@pytest.fixture
def write() -> Callable[..., list[Committed]]:
    """Append one commit."""

    def append(journal: Journal, *payloads: Payload, now: str = NOW, scope: Any = "global") -> list[Committed]:
        with journal.locked():
            return journal.append([CommitDraft(scope, payloads)], now)

    return append


@pytest.fixture
def sql(tmp_path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """Run a statement on a journal's database past memgraph, as whoever can write the file may; return the rows."""

    def run(statement: str, *values: Any, name: str = "store") -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(tmp_path / name / FILE, isolation_level=None)) as raw:
            return raw.execute(statement, values).fetchall()

    return run


@pytest.fixture
def head_path(tmp_path: Path) -> Callable[[Journal], Path]:
    """Return the path of a journal's head file."""
    return lambda journal: tmp_path / "keys" / "heads" / journal.store_id
