"""A purged event keeps its head and its place in the chain, and holds nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from memgraph.errors import DamagedJournalError, JournalError
from memgraph.journal.envelope import (
    Chain,
    CommitDraft,
    Line,
    LineError,
    parsed,
    seal,
    unseal,
    unseal_purged,
)
from memgraph.journal.journal import Journal
from memgraph.journal.keyring import key_from_secret
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.store import MemoryPurged, ranges_of

NOW, KEY = "2026-02-01T09:00:00.000Z", key_from_secret(b"k" * 32)
START = Chain("store-1")
Added = Callable[..., MemoryAdded]
Sql = Callable[..., Any]


@pytest.fixture
def lines(added: Added) -> list[Line]:
    drafts = [
        CommitDraft("global", [added(1), added(2)]),
        CommitDraft("global", [added(3, content='"},"payload":null')]),
    ]
    return seal(drafts, START, KEY, NOW).lines


@pytest.fixture
def purged(journal: Journal, write: Any, added: Added) -> Journal:
    """Three memories, of which the second was purged."""
    for number in (1, 2, 3):
        write(journal, added(number))
    with journal.locked(), journal.committing():
        event = MemoryPurged(ids=[added(2).memory.id], ranges=ranges_of({3}), purged_at=NOW)
        journal.append([CommitDraft("system", [event])], NOW)
        journal.erase({3})
    journal.database.erase()
    return journal


def test_payload_and_salt_are_gone_and_the_rest_is_as_before(lines: list[Line]) -> None:
    chain = START
    for line in lines:
        gone = line.purged()
        assert (gone.payload, gone.salt, gone.is_purged, line.is_purged) == (None, None, True, False)
        assert (gone.head, gone.signature, gone.purged()) == (line.head, line.signature, gone)
        _, expected = unseal(line, chain, KEY)
        head, chain = unseal_purged(gone, chain, KEY)
        signed = orjson.loads(line.head)
        assert (head.seq, head.commit_id, head.last) == (line.seq, signed["commit_id"], signed["last"])
        assert chain == expected


def test_every_flipped_bit_of_a_purged_event_is_refused(lines: list[Line]) -> None:
    data = lines[0].purged().data
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(LineError):
            unseal_purged(parsed(bytes(flipped)), START, KEY)


@pytest.mark.parametrize("left", [{"payload": b"{}"}, {"salt": b"0" * 16}])
def test_an_event_that_is_purged_by_half_is_refused(lines: list[Line], left: dict[str, Any]) -> None:
    half = lines[0].purged()._replace(**left)
    for read in (unseal, unseal_purged):
        with pytest.raises(LineError):
            read(half, START, KEY)  # type: ignore[operator]


def test_ranges_name_exactly_the_events() -> None:
    seqs = {3, 4, 5, 9, 11, 12}
    ranges = ranges_of(seqs)
    assert [(one.first, one.last) for one in ranges] == [(3, 5), (9, 9), (11, 12)]
    assert MemoryPurged(ranges=ranges, purged_at=NOW).seqs() == seqs


def test_it_leaves_no_byte_in_any_file_and_the_journal_verifies(purged: Journal, open_one: Any) -> None:
    for path in purged.home.rglob("*"):
        if path.is_file():
            assert b"Memory 2" not in path.read_bytes(), path
    assert open_one().verify() == 5
    assert [line.seq for line in open_one().every_line() if line.is_purged] == [3]


def test_a_missing_payload_that_no_purge_names_is_damage(purged: Journal, open_one: Any, sql: Sql) -> None:
    sql("UPDATE event SET payload = NULL, salt = NULL WHERE seq = 2")
    with pytest.raises(DamagedJournalError, match="event 2: the payload is missing and no purge names it"):
        open_one().verify()


@pytest.mark.parametrize("column", ["payload", "salt"])
def test_half_a_payload_is_damage(purged: Journal, open_one: Any, sql: Sql, column: str) -> None:
    sql(f"UPDATE event SET {column} = x'00' WHERE seq = 3")
    with pytest.raises(DamagedJournalError, match="event 3: "):
        open_one().verify()


def test_a_purge_that_was_changed_is_damage(purged: Journal, open_one: Any, sql: Sql) -> None:
    """Else what it names could be anything."""
    changed = "CAST(replace(CAST(payload AS TEXT), '\"first\":3', '\"first\":2') AS BLOB)"
    sql(f"UPDATE event SET payload = {changed} WHERE type = 'memory.purged'")
    with pytest.raises(DamagedJournalError, match="event 5: "):
        open_one().verify()


def test_a_payload_that_came_back_is_told_and_erased_again(
    journal: Journal, write: Any, added: Added, sql: Sql, open_one: Any
) -> None:
    write(journal, added(1))
    write(journal, added(2))
    ((payload, salt),) = sql("SELECT payload, salt FROM event WHERE seq = 3")
    with journal.locked(), journal.committing():
        event = MemoryPurged(ids=[added(2).memory.id], ranges=ranges_of({3}), purged_at=NOW)
        journal.append([CommitDraft("system", [event])], NOW)
        journal.erase({3})
    sql("UPDATE event SET payload = ?, salt = ? WHERE seq = 3", payload, salt)
    again = open_one()
    with pytest.raises(
        JournalError, match=r"event 3 was purged and has a payload again; run `memgraph purge --complete`"
    ):
        again.verify()
    assert again.unpurged(again.purged_seqs()) == [3]
    with again.locked():
        again.erase({3})
    assert open_one().verify() == 4
