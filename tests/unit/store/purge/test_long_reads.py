"""A read that began before a purge and goes on: the purge is recorded, and completed when it has ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryStore, MemGraph
from memgraph.errors import BusyError, InvalidInputError, NotFoundError
from memgraph.journal import sql
from memgraph.journal.opening import FILE

pytestmark = pytest.mark.embedded
SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The nightly backup of the billing database needs about forty minutes on Sundays"
Open = Callable[..., AgentMemoryStore]
Traces = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "_WAIT_S", 0.05)


@contextmanager
def long_read(home: Path) -> Iterator[None]:
    """Read a store's database during a block, as another process may."""
    with closing(sqlite3.connect(home / FILE, isolation_level=None)) as raw:
        raw.execute("BEGIN")
        raw.execute("SELECT count(*) FROM event").fetchall()
        yield


def stocked(store: AgentMemoryStore) -> tuple[str, str]:
    return tuple(store.insert_memory({"type": "episodic", "content": text}).id for text in (SECRET, OTHER))


def open_again(_store: AgentMemoryStore, again: Open, _other: str) -> None:
    again().close()


def purge_another(store: AgentMemoryStore, _again: Open, other: str) -> None:
    store.purge([other], everything=True)


def sleep(store: AgentMemoryStore, _again: Open, _other: str) -> None:
    MemGraph(store).maintenance.sleep(phases=["work-orders"])


def complete(store: AgentMemoryStore, _again: Open, _other: str) -> None:
    store.complete_purges()


@pytest.mark.parametrize("use", [open_again, purge_another, sleep, complete])
def test_a_purge_beside_it_is_completed_by_the_next_use(open_store: Open, traces: Traces, use: Any) -> None:
    with open_store() as store:
        secret, other = stocked(store)
        home = store.config.home
        with long_read(home):
            receipt = store.purge([secret])
            assert (receipt.ids, receipt.code) == ([secret], "")
            with pytest.raises(InvalidInputError, match="was changed"):
                store.check_receipt(receipt)
            assert [one.id for one in store.get_all_memories()] == [other]
            assert {name.partition("-")[0] for name in traces(home, SECRET)} == {FILE}
            with pytest.raises(NotFoundError):
                store.purge([secret])
            with pytest.raises(BusyError):
                store.complete_purges()
        assert list((home / "receipts").glob("*.json")) == []
        use(store, open_store, other)
        assert traces(home, SECRET) == []
        assert store.check_receipt((home / f"receipts/{receipt.event:012d}.json").read_bytes()).events == 1
        assert list((home / "receipts").glob("*.begun")) == []


def test_a_reset_and_a_rebuild_beside_it_succeed(open_store: Open) -> None:
    with open_store() as store:
        stocked(store)
        with long_read(store.config.home):
            assert store.reset("all").removed == {"episodic": 2}
            store.rebuild()
        assert store.get_all_memories() == []
