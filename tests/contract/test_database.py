"""One contract for every database that can hold a store: what `memgraph.journal.sql.Database` promises."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest

from memgraph.config import without_password
from memgraph.errors import BusyError, ClosedError, JournalError, ReadOnlyError, StorageError
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.head_file import HeadFile
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.keyring import KeyRing
from memgraph.journal.opening import add_store, identity_in
from memgraph.journal.sql import SCHEMA_VERSION, Database, Postgres, SQLite
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.store import MemoryPurged, ranges_of
from memgraph.model.ids import source_id
from memgraph.model.memory import MemoryRecord

NOW = "2026-02-01T09:00:00.000Z"
STORE, OTHER = source_id("tests", 1), source_id("tests", 2)
_USER = "nobody"
"""Who runs the server if the tests run as root, which it refuses."""


def _program(name: str) -> str | None:
    found = shutil.which(name)
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return found or (str(places[-1]) if places else None)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return the address of a PostgreSQL server in a temporary folder, reached through a socket."""
    initdb, pg_ctl = _program("initdb"), _program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed: neither initdb nor pg_ctl is on the PATH or in /usr/lib/postgresql")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    is_root = os.getuid() == 0
    if is_root and shutil.which("runuser") is None:
        pytest.skip("the tests run as root, and runuser is not installed: PostgreSQL does not run as root")
    with TemporaryDirectory(prefix="mg-pg-", dir="/tmp") as name:
        folder = Path(name)
        if is_root:
            shutil.chown(folder, _USER)
        prefix = ["runuser", "-u", _USER, "--"] if is_root else []

        def run(*command: str) -> None:
            subprocess.run([*prefix, *command], check=True, capture_output=True, cwd=name, timeout=120)

        data = str(folder / "data")
        run(initdb, "-D", data, "-U", "memgraph", "-A", "trust", "-N")
        settings = f"-c listen_addresses='' -c unix_socket_directories={name} -c fsync=off"
        run(pg_ctl, "-D", data, "-w", "-l", str(folder / "log"), "-o", settings, "start")
        try:
            yield f"postgresql://memgraph@/postgres?host={name}"
        finally:
            with suppress(subprocess.SubprocessError):
                run(pg_ctl, "-D", data, "-m", "immediate", "-w", "stop")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return where a new, empty database is."""
    if request.param == "sqlite":
        yield str(tmp_path / "store" / "memgraph.db")
        return
    url = request.getfixturevalue("server")
    import psycopg

    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("DROP SCHEMA IF EXISTS memgraph CASCADE")
    yield url


@pytest.fixture
def connect(address: str) -> Iterator[Callable[..., Database]]:
    """Open the database; every call is a client of its own."""
    opened: list[Database] = []

    def open_one(name: str = "one") -> Database:
        is_server = address.startswith("postgresql")
        opened.append(Postgres(address, name) if is_server else SQLite(Path(address)))
        identity_in(opened[-1])  # a server's rows are found by the number of the store
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()


@pytest.fixture
def database(connect: Callable[..., Database]) -> Database:
    found = connect()
    with found.writing(5.0):
        add_store(found, STORE)
    return found


@pytest.fixture
def open_journal(connect: Callable[..., Database], tmp_path: Path) -> Callable[..., Journal]:
    """Open the journal of a store in the database; it is made if it is not there."""
    keys = FileKeys(tmp_path / "keys")

    def opened(name: str = "one", store_id: str = STORE) -> Journal:
        database = connect(name)
        if identity_in(database) is None:
            with database.writing(5.0):
                add_store(database, store_id)
        key = keys.key(store_id) or keys.create(store_id)
        ring, heads = KeyRing(store_id, keys, active=key), HeadFile(tmp_path / "keys", store_id)
        journal = Journal(database, tmp_path / name, store_id, ring, heads=heads, lock_timeout_s=5.0)
        journal.load()
        return journal

    return opened


def write(journal: Journal, *numbers: int) -> None:
    with journal.locked():
        append(journal, *numbers)


def append(journal: Journal, *numbers: int) -> None:
    times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), NOW)
    made = [
        MemoryAdded(memory=MemoryRecord(id=source_id("tests", one), type="episodic", content=f"Memory {one}", **times))  # type: ignore[arg-type]
        for one in numbers
    ]
    journal.append([CommitDraft("global", made)], NOW)


def contents(journal: Journal) -> list[str]:
    return [event.payload.memory.content for commit in journal.replay() for event in commit.events]  # type: ignore[attr-defined]


def put(tx: Any, database: Database, model: str, place: int = 0) -> None:
    tx.run("put_vector", database.tenant, model, place, b"value")


def count(database: Database, model: str) -> int:
    with database.reading() as tx:
        return len(list(tx.rows("vectors_from", database.tenant, model, 0, 1_000)))


class TestTransactions:
    def test_what_is_committed_is_there_for_others_and_after_closing(self, database: Database, connect: Any) -> None:
        with database.writing(5.0) as tx:
            put(tx, database, "m")
            assert count(database, "m") == 1
            assert count(connect(), "m") == 0
        assert count(connect(), "m") == 1
        database.close()
        assert count(connect(), "m") == 1

    def test_an_exception_rolls_everything_back(self, database: Database) -> None:
        def fail(error: type[BaseException]) -> None:
            with database.writing(5.0) as tx:
                put(tx, database, "m")
                raise error

        for error in (ValueError, KeyboardInterrupt):
            with pytest.raises(error):
                fail(error)
            assert count(database, "m") == 0

    def test_they_nest_and_end_with_the_outermost(self, database: Database, connect: Any) -> None:
        other = connect()
        with database.writing(5.0) as tx:
            with database.writing(5.0) as inner, database.reading():
                put(inner, database, "m")
            assert count(other, "m") == 0
            put(tx, database, "m", 1)
        assert count(other, "m") == 2

        def fail() -> None:
            with database.writing(5.0), database.writing(5.0) as tx:
                put(tx, database, "m", 2)
                raise ValueError("inner")

        with pytest.raises(ValueError, match="inner"):
            fail()
        assert count(other, "m") == 2

    def test_a_write_inside_a_read_is_a_mistake(self, database: Database) -> None:
        with database.reading(), pytest.raises(RuntimeError, match="inside a block of reads"), database.writing(5.0):
            pass

    def test_a_failed_statement_leaves_it_usable(self, database: Database) -> None:
        with pytest.raises(StorageError), database.writing(5.0) as tx:  # and not the vendor's error
            tx.run("add_tenant", database.name, STORE, None)
        with database.writing(5.0) as tx:
            put(tx, database, "m")
        assert count(database, "m") == 1

    def test_a_block_of_reads_sees_one_state(self, database: Database, connect: Any) -> None:
        other = connect()
        with other.reading():
            assert count(other, "m") == 0
            with database.writing(5.0) as tx:
                put(tx, database, "m")
            assert count(other, "m") == 0
        assert count(other, "m") == 1

    def test_each_thread_has_its_own(self, database: Database) -> None:
        written, looked = Event(), Event()
        seen: list[int] = []

        def look() -> None:
            written.wait(60)
            seen.append(count(database, "m"))
            looked.set()

        thread = Thread(target=look)
        thread.start()
        with database.writing(5.0) as tx:
            put(tx, database, "m")
            written.set()
            assert looked.wait(60)
        thread.join()
        assert (seen, count(database, "m")) == ([0], 1)

    def test_closing_waits_for_blocks_of_other_threads(self, database: Database, connect: Any) -> None:
        begun, closed = Event(), Event()
        seen: list[int] = []

        def write() -> None:
            with database.writing(5.0) as tx:
                begun.set()
                closed.wait(60)
                for ordinal in range(100):
                    put(tx, database, "m", ordinal)
                seen.append(count(database, "m"))

        thread = Thread(target=write)
        thread.start()
        assert begun.wait(60)
        database.close()
        with pytest.raises(ClosedError):
            count(database, "m")
        closed.set()
        thread.join()
        assert (seen, count(connect(), "m")) == ([100], 100)


class TestWriters:
    def test_a_second_writer_waits_and_then_gives_up(self, open_journal: Any, connect: Any) -> None:
        """Of two that write to one store; its head is what they wait for."""
        write(open_journal(), 1)
        first, second = connect(), connect()
        assert identity_in(first) == identity_in(second) is not None
        with first.writing(5.0) as tx:
            put(tx, first, "m")
            with pytest.raises(BusyError), second.writing(0.05):
                pass
        with second.writing(5.0) as tx:
            put(tx, second, "m", 1)
        assert count(first, "m") == 2

    def test_the_writers_lock_is_held_by_one(self, database: Database, connect: Any) -> None:
        first, second = database.lock(), connect().lock()
        with first.held(1.0):
            assert not second.try_acquire()
            assert second.is_held()
            with pytest.raises(BusyError):
                second.acquire(0.05)
        assert not first.is_held()
        assert second.try_acquire()
        assert not first.try_acquire()
        second.release()
        second.release()
        assert first.try_acquire()
        first.release()

    def test_it_ends_with_the_process_that_held_it(self, database: Database, address: str) -> None:
        script = """
            import os, signal, sys
            from pathlib import Path
            from memgraph.journal.sql import Postgres, SQLite
            address = sys.argv[1]
            database = Postgres(address, "one") if address.startswith("postgresql") else SQLite(Path(address))
            lock = database.lock()
            lock.acquire(5.0)
            print("held", flush=True)
            sys.stdin.read()
        """
        command = [sys.executable, "-c", textwrap.dedent(script), address]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == b"held\n"
            lock = database.lock()
            assert not lock.try_acquire()
            child.kill()
            child.wait()
            lock.acquire(10.0)
            lock.release()

    def test_one_that_may_not_be_written_is_read(self, database: Database) -> None:
        database.refused = "it is somebody else's"
        with pytest.raises(ReadOnlyError, match="somebody else's"), database.writing(5.0):
            pass
        assert count(database, "m") == 0

    def test_a_closed_one_says_so(self, connect: Any) -> None:
        database = connect()
        database.retain()
        database.close()
        assert count(database, "m") == 0
        database.close()
        with pytest.raises(ClosedError, match="open it again"):
            count(database, "m")

    def test_a_lost_connection_is_made_again(self, database: Database, address: str) -> None:
        if not address.startswith("postgresql"):
            pytest.skip("a file has no connection to lose")
        import psycopg

        with psycopg.connect(address, autocommit=True) as raw:
            raw.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert count(database, "m") == 0
        with database.writing(5.0) as tx:
            put(tx, database, "m")
        assert count(database, "m") == 1


class TestTables:
    def test_those_of_a_later_release_are_refused(self, database: Database, connect: Any, address: str) -> None:
        later = SCHEMA_VERSION + 1
        with database._connection() as connection:
            if address.startswith("postgresql"):
                connection.raw.execute(f"UPDATE memgraph_version SET version = {later}")
            else:
                connection.raw.execute(f"PRAGMA user_version = {later}")
        with pytest.raises(
            JournalError, match=rf"version {later} of its tables is unknown .* install a newer memgraph"
        ):
            connect()

    def test_they_are_made_once_by_whoever_comes_first(self, connect: Any) -> None:
        failed: list[Exception] = []

        def opened() -> None:
            try:
                connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
                failed.append(error)

        threads = [Thread(target=opened) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []

    def test_size_shrinking_and_checking(self, database: Database) -> None:
        with database.writing(5.0) as tx:
            tx.many("put_vector", [(database.tenant, "m", place, bytes(4_000)) for place in range(500)])
        database.erase()
        before = database.size_bytes()
        assert before > 0
        with database.writing(5.0) as tx:
            tx.run("remove_vectors_from", database.tenant, "m", 0)
        database.erase()
        database.shrink()
        database.check()
        assert database.size_bytes() < before

    def test_shrinking_does_without_space(self, database: Database) -> None:
        with database.writing(5.0) as tx:
            tx.many("put_vector", [(database.tenant, "m", place, bytes(4_000)) for place in range(100)])
        database.erase()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            database.shrink()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        database.check()
        assert count(database, "m") == 100


class TestJournals:
    def test_one_is_appended_replayed_and_read_by_others(self, open_journal: Any) -> None:
        journal, other = open_journal(), open_journal()
        write(journal, 1)
        write(journal, 2, 3)
        assert other.has_changed()
        other.refresh()
        assert (other.tail, other.verify()) == (journal.tail, 3)
        write(other, 4)
        again = open_journal()
        assert contents(again) == ["Memory 1", "Memory 2", "Memory 3", "Memory 4"]
        assert (again.verify(), again.notices) == (4, [])

    def test_a_commit_that_fails_leaves_nothing(self, open_journal: Any) -> None:
        journal = open_journal()
        write(journal, 1)

        def fail() -> None:
            with journal.locked(), journal.committing():
                append(journal, 2)
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fail()
        assert journal.tail.seq == 1
        write(journal, 3)
        assert contents(open_journal()) == ["Memory 1", "Memory 3"]

    def test_what_is_erased_is_in_no_table_and_the_rest_verifies(self, open_journal: Any, address: str) -> None:
        journal = open_journal()
        for number in (1, 2, 3):
            write(journal, number)
        with journal.locked(), journal.committing():
            event = MemoryPurged(ids=[source_id("tests", 2)], ranges=ranges_of({2}), purged_at=NOW)
            journal.append([CommitDraft("system", [event])], NOW)
            journal.erase({2})
        journal.database.erase()
        again = open_journal()
        assert again.verify() == 4
        assert [line.seq for line in again.every_line() if line.is_purged] == [2]
        assert all(b"Memory 2" not in line.data for line in again.every_line())
        if not address.startswith("postgresql"):
            for path in Path(address).parent.iterdir():
                assert path.is_dir() or b"Memory 2" not in path.read_bytes()

    def test_a_changed_event_is_refused(self, open_journal: Any) -> None:
        journal = open_journal()
        write(journal, 1)
        write(journal, 2)
        with journal.database.writing(5.0) as tx:
            tx.run("sign_event", b"{}", b"", journal.database.tenant, 1)
        with pytest.raises(JournalError, match="event 1"):
            open_journal().verify()

    def test_two_stores_of_one_server_do_not_see_each_other(self, open_journal: Any, address: str) -> None:
        if not address.startswith("postgresql"):
            pytest.skip("a file holds one store")
        one, two = open_journal("one", STORE), open_journal("two", OTHER)
        assert one.database.tenant != two.database.tenant
        write(one, 1)
        write(two, 2)
        write(two, 3)
        with one.database.lock().held(1.0):
            write(two, 4)
        with one.database.writing(5.0):
            write(two, 5)  # neither waits for the other's head
        assert contents(open_journal("one", STORE)) == ["Memory 1"]
        assert contents(open_journal("two", OTHER)) == ["Memory 2", "Memory 3", "Memory 4", "Memory 5"]
        with one.locked(), one.committing():
            one.erase({1})
        assert contents(open_journal("two", OTHER))[0] == "Memory 2"


def test_an_address_is_shown_without_its_password() -> None:
    shown = without_password(
        "postgresql://ada:secret@db.example:5432/memories?password=secret&passw%6Frd=secret&sslmode=require"
    )
    assert shown == "postgresql://ada@db.example:5432/memories?sslmode=require"
