"""No event is served or derived from that is not what was signed, in its place."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, MemGraphError, TruncatedJournalError
from memgraph.journal.baseline import archive_row
from memgraph.journal.journal import Journal, ReplacedJournalError
from memgraph.journal.opening import FILE
from memgraph.journal.sql import SQLite
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.ids import source_id

Open = Callable[..., Journal]
Sql = Callable[..., Any]
Added = Callable[..., MemoryAdded]

CHANGES = {
    "payload": "UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), 'Memory 2', 'Memory 7') AS BLOB) WHERE seq = 3",
    "payload gone": "UPDATE event SET payload = NULL, salt = NULL WHERE seq = 3",
    "payload not JSON": "UPDATE event SET payload = x'7b' WHERE seq = 3",
    "payload as text": "UPDATE event SET payload = CAST(payload AS TEXT) WHERE seq = 3",
    "salt": "UPDATE event SET salt = randomblob(16) WHERE seq = 3",
    "head": 'UPDATE event SET head = CAST(replace(CAST(head AS TEXT), \'"actor":"agent"\', \'"actor":"user"\') AS BLOB) WHERE seq = 3',
    "head with spaces": "UPDATE event SET head = CAST(head || x'20' AS BLOB) WHERE seq = 3",
    "signature": "UPDATE event SET signature = randomblob(32) WHERE seq = 3",
    "short signature": "UPDATE event SET signature = substr(signature, 1, 31) WHERE seq = 3",
    "signature as text": "UPDATE event SET signature = hex(signature) WHERE seq = 3",
    "type": "UPDATE event SET type = 'memory.deleted' WHERE seq = 3",
    "type is a number": "UPDATE event SET type = 7 WHERE seq = 3",
    "event gone": "DELETE FROM event WHERE seq = 3",
    "first event gone": "DELETE FROM event WHERE seq = 1",
    "number is none": "UPDATE event SET seq = 'x' WHERE seq = 3",
    "numbers moved": "UPDATE event SET seq = 99 WHERE seq = 3",
    "another in its place": "UPDATE event SET (head, payload, salt, signature) = (SELECT head, payload, salt, signature FROM event WHERE seq = 2) WHERE seq = 3",
}
"""What is done to the third event of five."""


@pytest.fixture
def small(journal: Journal, write: Callable[..., Any], added: Added) -> Journal:
    write(journal, added(1))
    write(journal, added(2), added(3))
    write(journal, added(4))
    return journal


def contents(journal: Journal) -> list[str]:
    events = [event for commit in journal.replay() for event in commit.events]
    return [event.payload.memory.content for event in events if isinstance(event.payload, MemoryAdded)]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_event_is_neither_replayed_nor_verified(
    small: Journal, open_one: Open, sql: Sql, change: str
) -> None:
    sql(CHANGES[change])
    for read in (lambda: open_one().verify(), lambda: list(open_one().replay()), small.verify):
        with pytest.raises(DamagedJournalError, match=r"memgraph repair") as refused:
            read()
        assert refused.value.path == small.home / FILE
        assert refused.value.seq in (1, 3, 6)
        assert str(refused.value.path) in str(refused.value)


@pytest.mark.parametrize("change", CHANGES)
def test_without_a_head_the_opening_finds_it(small: Journal, open_one: Open, sql: Sql, change: str) -> None:
    sql(CHANGES[change])
    sql("DELETE FROM head")
    with pytest.raises(DamagedJournalError):
        open_one()


@pytest.mark.parametrize("seq", [2, 3, 5])
def test_what_is_read_alone_is_verified_too(small: Journal, open_one: Open, sql: Sql, seq: int) -> None:
    sql(
        "UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), 'Memory', 'Mammal') AS BLOB) WHERE seq = ?", seq
    )
    journal = open_one()
    with pytest.raises(DamagedJournalError, match=f"event {seq}: the payload is not the one that was signed"):
        list(journal.events_after(0))
    (line,) = [line for line in journal.lines_of(MemoryAdded.TYPE) if line.seq == seq]
    with pytest.raises(DamagedJournalError):
        journal.content(line)


@pytest.mark.parametrize(
    "forged",
    [
        "UPDATE head SET seq = 2, signature = (SELECT signature FROM event WHERE seq = 2)",
        "UPDATE head SET body = CAST(replace(CAST(body AS TEXT), 'timestamp', 'timestamq') AS BLOB)",
        "UPDATE head SET body = x''",
        "UPDATE head SET code = '0'",
        "UPDATE head SET code = ''",
        "UPDATE head SET signature = randomblob(32)",
        "DELETE FROM head",
    ],
)
def test_a_head_that_is_missing_or_that_the_key_does_not_vouch_for_is_not_believed(
    small: Journal, open_one: Open, sql: Sql, write: Any, added: Added, forged: str
) -> None:
    sql(forged)
    journal = open_one()
    assert (journal.tail, journal.named, journal.used) == (small.tail, small.named, small.used)
    if not forged.startswith("DELETE"):
        assert journal.notices == ["the head of the journal did not match it; all events were verified"]
    write(journal, added(9))
    again = open_one()
    assert (again.notices, again.verify()) == ([], 6)


def test_events_after_the_head_are_damage(small: Journal, open_one: Open, sql: Sql) -> None:
    """An older row of the head beside newer events: nobody writes that."""
    sql("INSERT INTO event SELECT tenant, 6, type, head, payload, salt, signature FROM event WHERE seq = 5")
    with pytest.raises(DamagedJournalError, match="it ends with event 6, its head names event 5"):
        open_one()


def test_events_of_another_store_are_damage(
    small: Journal, open_one: Open, sql: Sql, write: Any, added: Added, tmp_path: Any
) -> None:
    other = open_one("other")
    write(other, added(9))
    other.close()
    rows = sql("SELECT * FROM event WHERE seq = 2", name="other")
    sql("INSERT INTO event VALUES (?, 6, ?, ?, ?, ?, ?)", 1, *rows[0][2:])
    sql("DELETE FROM head")
    with pytest.raises(DamagedJournalError, match=r"event 6: "):
        open_one()
    sql("DELETE FROM event")
    for row in sql("SELECT * FROM event", name="other"):
        sql("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    with pytest.raises(KeyMissingError, match="not this key's"):  # every event is of another key: then the key is wrong
        open_one()


def test_damage_to_an_open_journal_is_found_when_it_is_read_on(
    small: Journal, open_one: Open, sql: Sql, write: Any, added: Added
) -> None:
    reader = open_one()
    write(small, added(7))
    sql("UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), 'Memory 7', 'Memory X') AS BLOB) WHERE seq = 6")
    with pytest.raises(DamagedJournalError):
        reader.refresh()
    with pytest.raises(DamagedJournalError):
        write(reader, added(8))


def test_a_rolled_back_database_is_refused_by_who_has_it_open(
    journal: Journal, open_one: Open, sql: Sql, write: Any, added: Added, tmp_path: Any
) -> None:
    write(journal, added(1))
    before = {name: sql(f"SELECT * FROM {name}") for name in ("event", "head")}
    write(journal, added(2))
    reader = open_one()
    for name, rows in before.items():
        sql(f"DELETE FROM {name}")
        for row in rows:
            sql(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", *row)
    for read in (open_one, reader.refresh, lambda: write(reader, added(3))):
        with pytest.raises(TruncatedJournalError, match="repair --accept-head"):
            read()


def test_another_history_of_the_same_length_is_refused(
    journal: Journal, open_one: Open, sql: Sql, write: Any, added: Added
) -> None:
    write(journal, added(1))
    before = {name: sql(f"SELECT * FROM {name}") for name in ("event", "head")}
    write(journal, added(2))
    for name, rows in before.items():
        sql(f"DELETE FROM {name}")
        for row in rows:
            sql(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", *row)
    from memgraph.journal.head_file import Head

    fresh = open_one
    with pytest.raises(TruncatedJournalError):
        fresh()
    journal._heads.replace(Head(2, before["event"][1][-1].hex()))  # as an acceptance does
    other = fresh()
    write(other, added(3))
    with pytest.raises(ReplacedJournalError, match="open the store again"):
        journal.refresh()
    assert contents(fresh()) == ["Memory 1", "Memory 3"]


def test_a_commit_without_its_end_is_damage(small: Journal, open_one: Open, sql: Sql) -> None:
    sql("DELETE FROM event WHERE seq > 3")
    sql("DELETE FROM head")
    with pytest.raises(DamagedJournalError, match="a commit has no end"):
        open_one()


def test_a_damaged_journal_is_left_unchanged(small: Journal, open_one: Open, sql: Sql) -> None:
    sql(CHANGES["payload"])
    sql("DELETE FROM head")
    before = sql("SELECT * FROM event")
    with pytest.raises(DamagedJournalError):
        open_one()
    assert sql("SELECT * FROM event") == before


def test_no_byte_of_the_file_can_be_changed_so_that_something_else_is_served(
    small: Journal, open_one: Open, sql: Sql, request: pytest.FixtureRequest
) -> None:
    """Every page is touched: either the change is refused, or it was in unused space and everything is as before."""
    written = contents(small)
    small.close()
    sql("PRAGMA wal_checkpoint(TRUNCATE)")
    path = small.home / FILE
    data = path.read_bytes()
    used = [at for at in range(0, len(data), 1 if request.config.getoption("--long") else 37) if data[at]]
    refused = 0
    for at in used:
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        path.write_bytes(bytes(flipped))
        for suffix in ("-wal", "-shm"):
            path.with_name(FILE + suffix).unlink(missing_ok=True)
        try:
            journal = open_one()
            journal.verify()
            found = contents(journal), [line.seq for line in journal.lines_of(MemoryAdded.TYPE)]
            journal.close()
        except (MemGraphError, ValueError):
            refused += 1
            continue
        assert found == (written, [2, 3, 4, 5]), at
    assert refused > len(used) // 4


def test_no_byte_of_its_write_ahead_log_can_be_changed_so_that_something_else_is_served(
    small: Journal, open_one: Open, tmp_path: Any, request: pytest.FixtureRequest
) -> None:
    """As a killed process leaves it: what was acknowledged is there, or its loss is told."""
    written = contents(small)
    data = (small.home / f"{FILE}-wal").read_bytes()
    assert len(data) > 10_000
    used = [at for at in range(0, len(data), 11 if request.config.getoption("--long") else 397) if data[at]]
    refused = 0
    for number, at in enumerate(used):
        home = tmp_path / f"copy{number}"
        home.mkdir()
        shutil.copy(small.home / FILE, home)
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        (home / f"{FILE}-wal").write_bytes(flipped)
        try:
            journal = open_one(home.name)
            journal.verify()
            found = contents(journal)
            journal.close()
        except MemGraphError:
            refused += 1
            continue
        assert found == written, at
    assert refused > len(used) // 2


def test_a_database_that_is_none_is_refused_by_name(small: Journal, open_one: Open) -> None:
    small.close()
    path = small.home / FILE
    for data in (b"garbage" * 1_000, path.read_bytes()[:5_000]):
        for suffix in ("-wal", "-shm"):
            path.with_name(FILE + suffix).unlink(missing_ok=True)
        path.write_bytes(data)
        with pytest.raises(MemGraphError, match=r"memgraph\.db") as refused:
            open_one().verify()
        assert "memgraph repair" in str(refused.value)


@pytest.mark.parametrize("found", ["../../outside/evil", "", b"\x00\xff", 7, source_id("tests", 1).upper()])
@pytest.mark.parametrize("column", ["store_id", "copy_id"])
def test_an_id_that_is_none_becomes_no_file_name(
    open_one: Open, sql: Sql, tmp_path: Path, column: str, found: object
) -> None:
    """A prepared directory would have its key and its head file made outside of the keys' folder."""
    SQLite(tmp_path / "store" / FILE).close()
    identity = {"store_id": source_id("tests", 1), "copy_id": None, column: found}
    sql("INSERT INTO tenant (tenant, name, store_id, copy_id) VALUES (1, '', ?, ?)", *identity.values())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DamagedJournalError, match="the store's id or number is none"):
        open_one()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "change", ["UPDATE tenant SET name = 'x'", "UPDATE tenant SET tenant = 7", "DELETE FROM tenant"]
)
def test_events_of_no_store_are_not_hidden_by_a_new_one(
    small: Journal, open_one: Open, sql: Sql, tmp_path: Path, change: str
) -> None:
    small.close()
    sql(change)
    before = sql("SELECT * FROM tenant")
    with pytest.raises(DamagedJournalError):
        open_one()
    assert sql("SELECT * FROM tenant") == before


def test_a_head_with_any_code_is_not_believed(small: Journal, open_one: Open, sql: Sql) -> None:
    sql("UPDATE head SET code = 'é'")
    again = open_one()
    assert again.verify() == 5
    assert "all events were verified" in again.notices[0]


@pytest.mark.parametrize(
    "header", [b"[]", b'{"body": "x", "code": 1}', b'{"body": {"format": 2}, "code": "x"}', "é", 7]
)
def test_a_baseline_that_is_none_is_refused(small: Journal, open_one: Open, sql: Sql, header: object) -> None:
    sql("INSERT INTO baseline VALUES (1, ?, x'')", header)
    with pytest.raises(JournalError, match=r"the baseline in .* is damaged"):
        open_one()


def test_a_later_release_is_refused(small: Journal, open_one: Open, sql: Sql) -> None:
    sql("PRAGMA user_version = 99")
    with pytest.raises(
        JournalError, match=r"memgraph\.db: version 99 of its tables is unknown .* install a newer memgraph"
    ):
        open_one()


class TestArchive:
    """Events that a compaction has archived are verified like all others."""

    @pytest.fixture
    def archived(self, small: Journal, sql: Sql) -> Journal:
        lines = list(small.every_line(until=4))
        with small.locked(), small.committing() as tx:
            tx.run("put_archive", 1, *archive_row(lines))
            tx.run("remove_events_until", 1, 4)
        return small

    def test_it_is_read_like_the_rest(self, archived: Journal, open_one: Open) -> None:
        journal = open_one()
        assert journal.verify() == 5
        assert contents(journal) == ["Memory 1", "Memory 2", "Memory 3", "Memory 4"]
        assert [line.seq for line in journal.lines_of(MemoryAdded.TYPE)] == [2, 3, 4, 5]

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE archive SET body = x'00'",
            "UPDATE archive SET body = substr(body, 1, length(body) - 9)",
            "UPDATE archive SET body = ''",
            "DELETE FROM archive",
            "UPDATE archive SET first = 2",
            "UPDATE archive SET last = 3",
            "UPDATE archive SET last = 'x'",
            "UPDATE archive SET first = x'01'",
        ],
    )
    def test_a_changed_one_is_refused(self, archived: Journal, open_one: Open, sql: Sql, change: str) -> None:
        sql(change)
        with pytest.raises(JournalError, match=r"memgraph repair"):
            open_one().verify()

    def test_types_that_were_taken_off_it_are_refused(self, archived: Journal, open_one: Open, sql: Sql) -> None:
        sql("UPDATE archive SET types = '[]'")
        with pytest.raises(JournalError):
            open_one().verify()

    def test_its_purged_payloads_are_erased(self, archived: Journal, open_one: Open, sql: Sql) -> None:
        from memgraph.journal.envelope import CommitDraft
        from memgraph.model.events.store import MemoryPurged, ranges_of
        from tests.unit.journal.conftest import NOW

        with archived.locked(), archived.committing():
            archived.append([CommitDraft("system", [MemoryPurged(ranges=ranges_of({3}), purged_at=NOW)])], NOW)
            archived.erase({3})
        journal = open_one()
        assert journal.verify() == 6
        assert contents(journal) == ["Memory 1", "Memory 3", "Memory 4"]


def test_an_index_that_lost_an_event_is_found(small: Journal, open_one: Open, sql: Sql) -> None:
    """Else what is looked up by its type would be missing without a word."""
    small.close()
    path = small.home / FILE
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'made_vector') WHERE name = 'event_type'"
        )
    journal = open_one()
    with pytest.raises(MemGraphError, match="memgraph repair"):
        journal.verify()
