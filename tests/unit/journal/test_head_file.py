"""The head file outside the store distinguishes a truncated journal from a short one."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import DamagedJournalError, JournalError, TruncatedJournalError
from memgraph.journal.journal import Journal
from memgraph.model.events.memories import MemoryAdded

Open = Callable[..., Journal]
Paths = Callable[[Journal], Path]
Sql = Callable[..., Any]


def cut(sql: Sql, kept: int) -> None:
    """Leave the first events, as an older copy of the database would hold them."""
    sql("DELETE FROM event WHERE seq > ?", kept)
    sql("DELETE FROM head")


@pytest.fixture
def stocked(journal: Journal, write: Callable[..., Any], added: Callable[..., MemoryAdded]) -> Journal:
    for number in range(1, 5):
        write(journal, added(number))
    return journal


def test_it_names_the_last_event(stocked: Journal, head_path: Paths) -> None:
    head = json.loads(head_path(stocked).read_text())
    assert head == {"seq": 5, "signature": stocked.tail.signature}
    assert stat.S_IMODE(head_path(stocked).stat().st_mode) == 0o600


def test_a_shorter_number_overwrites_a_longer_one_completely(
    stocked: Journal, head_path: Paths, open_one: Open
) -> None:
    size = head_path(stocked).stat().st_size
    head_path(stocked).write_bytes(json.dumps({"seq": 10**30, "signature": "f" * 64}).ljust(size).encode())
    with pytest.raises(TruncatedJournalError):
        open_one()


@pytest.mark.parametrize("kept", [0, 1, 2, 4])
def test_a_truncated_journal_is_refused_naming_both_numbers(
    stocked: Journal, sql: Sql, open_one: Open, kept: int
) -> None:
    cut(sql, kept)
    with pytest.raises(TruncatedJournalError, match=rf"event {kept}, .* 5 were") as refused:
        open_one()
    assert (refused.value.seq, refused.value.head_seq) == (kept, 5)


def test_a_missing_database_is_refused_if_something_was_made_from_it(stocked: Journal, open_one: Open) -> None:
    stocked.close()
    for path in stocked.home.glob("memgraph.db*"):
        path.unlink()
    (stocked.home / "cache").mkdir(exist_ok=True)
    (stocked.home / "cache" / "fake.8.f32").write_bytes(b"x")
    for _ in range(2):
        with pytest.raises(
            JournalError, match=r"memgraph\.db holds no events, but .*cache was made from some: restore"
        ):
            open_one()
    assert list(stocked.home.glob("memgraph.db*")) == []


def test_a_journal_truncated_while_it_is_open_is_refused(stocked: Journal, sql: Sql, write: Any, added: Any) -> None:
    cut(sql, 2)
    with pytest.raises(JournalError):
        write(stocked, added(9))


def test_a_truncated_journal_stays_refused(stocked: Journal, sql: Sql, head_path: Paths, open_one: Open) -> None:
    head = head_path(stocked).read_bytes()
    before = sql("SELECT * FROM event WHERE seq > 3")
    cut(sql, 3)
    for _ in range(2):
        with pytest.raises(TruncatedJournalError):
            open_one()
    assert head_path(stocked).read_bytes() == head
    assert sql("SELECT MAX(seq) FROM event") == [(3,)]
    for row in before:
        sql("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    assert open_one().tail == stocked.tail


def test_a_missing_head_is_adopted_with_a_notice(stocked: Journal, head_path: Paths, open_one: Open) -> None:
    head = head_path(stocked).read_bytes()
    head_path(stocked).unlink()
    again = open_one()
    assert again.tail == stocked.tail
    with again.locked():
        assert any("no head file" in notice and "5" in notice for notice in again.notices)
    assert head_path(stocked).read_bytes() == head
    with again.locked():
        assert len(again.notices) == 1


def test_an_outdated_head_is_updated(stocked: Journal, head_path: Paths, open_one: Open, sql: Sql) -> None:
    """After a power failure it may name an earlier event."""
    head = head_path(stocked).read_bytes()
    ((signature,),) = sql("SELECT signature FROM event WHERE seq = 3")
    head_path(stocked).write_text(json.dumps({"seq": 3, "signature": signature.hex()}))
    again = open_one()
    with again.locked():
        assert again.notices == []
    assert json.loads(head_path(stocked).read_text()) == json.loads(head)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "5",
        "null",
        '{"seq": 5}',
        '{"seq": "five", "signature": "x"}',
        "\ufffd",
        '{"seq": null, "signature": ""}',
    ],
)
def test_a_damaged_head_is_refused(stocked: Journal, head_path: Paths, open_one: Open, text: str) -> None:
    head_path(stocked).write_text(text)
    with pytest.raises(JournalError, match="head file"):
        open_one()


def test_a_head_that_is_not_text_is_refused(stocked: Journal, head_path: Paths, open_one: Open) -> None:
    head_path(stocked).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JournalError, match="head file"):
        open_one()


@pytest.mark.parametrize("seq", [1, 3, 5])
def test_the_head_of_another_history_is_refused(stocked: Journal, head_path: Paths, open_one: Open, seq: int) -> None:
    head_path(stocked).write_text(json.dumps({"seq": seq, "signature": "f" * 64}))
    with pytest.raises(DamagedJournalError, match="a different event") as refused:
        open_one()
    assert refused.value.seq == seq


def test_a_head_after_the_journals_end_is_a_truncated_journal(
    stocked: Journal, head_path: Paths, open_one: Open
) -> None:
    head_path(stocked).write_text(json.dumps({"seq": 6, "signature": "f" * 64}))
    with pytest.raises(TruncatedJournalError) as refused:
        open_one()
    assert (refused.value.seq, refused.value.head_seq) == (5, 6)
