"""A commit is there whole or not at all, in the order of one writer after another, and others see it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from memgraph.errors import BusyError, JournalError, ReadOnlyError
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.journal import Journal
from memgraph.journal.sql import FullDatabaseError
from memgraph.model.events.memories import MemoryAdded
from tests.unit.journal.conftest import NOW

Open = Callable[..., Journal]
Sql = Callable[..., Any]


def contents(journal: Journal) -> list[str]:
    events = [event for commit in journal.replay() for event in commit.events]
    return [event.payload.memory.content for event in events if isinstance(event.payload, MemoryAdded)]


class TestAllOrNothing:
    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, FullDatabaseError(Path("x"), "full")])
    def test_an_exception_leaves_it_as_it_was(
        self, journal: Journal, open_one: Open, write: Any, added: Any, sql: Sql, head_path: Any, error: Any
    ) -> None:
        write(journal, added(1))
        before = journal.tail, journal.named, journal.used, sql("SELECT * FROM event"), sql("SELECT * FROM head")
        head = head_path(journal).read_bytes()
        told: list[str] = []
        journal.on_full = lambda: told.append("full")

        def fail() -> None:
            with journal.locked(), journal.committing():
                journal.append([CommitDraft("global", [added(2)])], NOW)
                journal.append([CommitDraft("global", [added(3)])], NOW)
                raise error

        with pytest.raises(error if isinstance(error, type) else type(error)):
            fail()
        after = journal.tail, journal.named, journal.used, sql("SELECT * FROM event"), sql("SELECT * FROM head")
        assert after == before
        assert head_path(journal).read_bytes() == head
        assert told == (["full"] if isinstance(error, FullDatabaseError) else [])
        write(journal, added(4))
        assert contents(open_one()) == ["Memory 1", "Memory 4"]

    @pytest.mark.parametrize("place", ["inside", "before the head file"])
    def test_a_kill_loses_nothing_that_was_acknowledged(
        self, journal: Journal, open_one: Open, write: Any, added: Any, tmp_path: Path, place: str
    ) -> None:
        write(journal, added(1))
        script = f"""
            import os, signal, sys
            from pathlib import Path
            sys.path.insert(0, {str(Path(__file__).parents[3])!r})
            from memgraph.journal.envelope import CommitDraft
            from memgraph.journal.journal import Journal
            from memgraph.journal.key_providers import FileKeys
            from memgraph.journal.opening import open_journal
            from memgraph.model.events.memories import MemoryDeleted
            from memgraph.model.ids import new_id
            home, keys = Path({str(tmp_path / "store")!r}), Path({str(tmp_path / "keys")!r})
            journal = open_journal(home, FileKeys(keys), keys_home=keys, now=lambda: {NOW!r}, created_by="tests")
            def die(*_):
                os.kill(os.getpid(), signal.SIGKILL)
            if {place!r} == "before the head file":
                Journal._write_head_file = die
            with journal.locked(), journal.committing():
                journal.append([CommitDraft("global", [MemoryDeleted(id=new_id())] * 2)], {NOW!r})
                if {place!r} == "inside":
                    die()
        """
        ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False, env={**os.environ})
        assert ended.returncode == -signal.SIGKILL
        is_there = place == "before the head file"
        again = open_one()
        assert again.verify() == (4 if is_there else 2)
        journal.refresh()
        assert journal.tail == again.tail
        write(journal, added(5))
        assert open_one().notices == []


class TestOthers:
    def test_what_another_has_written_is_seen_when_it_is_read_on(
        self, journal: Journal, open_one: Open, write: Any, added: Any
    ) -> None:
        other = open_one()
        assert not other.has_changed()
        write(journal, added(1))
        assert other.has_changed()
        assert contents(other) == []
        other.refresh()
        assert (other.has_changed(), other.tail, contents(other)) == (False, journal.tail, ["Memory 1"])

    def test_who_writes_reads_on_before(self, journal: Journal, open_one: Open, write: Any, added: Any) -> None:
        others = [journal, open_one(), open_one()]
        for number in range(6):
            write(others[number % 3], added(number))
        assert contents(open_one()) == [f"Memory {number}" for number in range(6)]
        assert open_one().verify() == 7

    def test_an_open_commit_is_not_seen(self, journal: Journal, open_one: Open, added: Any) -> None:
        other = open_one()
        with journal.locked(), journal.committing():
            journal.append([CommitDraft("global", [added(1)])], NOW)
            other.refresh()
            assert (other.tail.seq, other.has_changed()) == (1, False)
        other.refresh()
        assert other.tail.seq == 2

    def test_a_second_writer_waits_and_then_gives_up(
        self, journal: Journal, open_one: Open, write: Any, added: Any, tmp_path: Path
    ) -> None:
        other = open_one(lock_timeout_s=0.05)
        with journal.locked(), pytest.raises(BusyError) as refused, other.locked():
            pass
        assert refused.value.pid == os.getpid()
        [note] = (tmp_path / "store").glob("*.pid")
        with journal.locked():
            note.write_text("4194305")  # more than any pid of a process
            with pytest.raises(BusyError, match="another process") as refused, other.locked():
                pass
        assert refused.value.pid is None
        write(other, added(1))

    def test_threads_do_not_interleave(self, open_one: Open, write: Any, added: Any) -> None:
        journals = [open_one() for _ in range(3)]
        threads = [
            Thread(
                target=lambda journal=one, base=10 * number: [
                    write(journal, added(base), added(base + 1)) for _ in range(4)
                ]
            )
            for number, one in enumerate(journals)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        again = open_one()
        assert again.verify() == 1 + 3 * 4 * 2
        assert all(len({event.commit_id for event in commit.events}) == 1 for commit in again.replay())

    def test_one_that_writes_past_the_lock_is_noticed(
        self, journal: Journal, open_one: Open, added: Any, sql: Sql
    ) -> None:
        """The fence: what is continued is what the database holds."""
        with journal.locked():
            other = open_one()
            other.holds_lock = True  # as after a lock that the system has lost
            other.append([CommitDraft("global", [added(1)])], NOW)
            with pytest.raises(JournalError, match="another process has written"):
                journal.append([CommitDraft("global", [added(2)])], NOW)
        journal.refresh()
        assert (contents(journal), sql("SELECT COUNT(*) FROM event")) == (["Memory 1"], [(2,)])


def test_nothing_is_written_without_the_lock(journal: Journal, added: Any) -> None:
    with pytest.raises(JournalError, match="needs the writer lock"):
        journal.append([CommitDraft("global", [added(1)])], NOW)
    assert journal.tail.seq == 1


def test_one_that_may_not_be_written_is_read(
    journal: Journal, open_one: Open, write: Any, added: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(journal, added(1))
    journal.close()
    monkeypatch.setattr("memgraph.journal.sql.refused_writes", lambda *paths: f"{paths[0]}: Read-only file system")
    again = open_one()
    assert (contents(again), again.is_read_only) == (["Memory 1"], True)
    with pytest.raises(ReadOnlyError, match="Read-only file system"):
        write(again, added(2))


def test_an_empty_commit_is_none(journal: Journal, write: Any) -> None:
    assert write(journal) == []
    assert journal.tail.seq == 1
