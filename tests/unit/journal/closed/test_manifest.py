"""The manifest names the closed segments, and is refused if it was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memgraph.journal.closed import files
from memgraph.journal.closed.manifest import NAME
from memgraph.journal.segments import JournalLimits

from memgraph.errors import DamagedJournalError, TruncatedJournalError
from memgraph.interfaces.cli.tasks.handoff import accept
from memgraph.journal.journal import Journal
from memgraph.journal.keys.providers import FileKeys
from memgraph.model.events.memories import MemoryAdded
from memgraph.store.repair import examine
from tests.unit.journal.conftest import NOW

Open = Callable[..., Journal]
Added = Callable[..., MemoryAdded]
LIMITS = JournalLimits(segment_bytes=2_500)


@pytest.fixture
def rolled(open_one: Open, write: Callable[..., Any], added: Added) -> Journal:
    journal = open_one(limits=LIMITS)
    for number in range(1, 14):
        write(journal, added(number))
    assert len(journal.segments.names()) == 5
    return journal


def body(journal: Journal) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((journal.folder / NAME).read_bytes())["body"]
    return found


def test_it_names_each_closed_segment(rolled: Journal) -> None:
    names = rolled.segments.names()
    assert (rolled.folder / NAME).stat().st_mode & 0o777 == 0o600
    found = body(rolled)
    assert found["store_id"] == rolled.store_id
    assert found["key_id"] == rolled.signing_key.key_id
    assert [one["name"] for one in found["segments"]] == names[:-1]
    assert [(one["first_seq"], one["last_seq"], one["events"]) for one in found["segments"]] == [
        (1, 3, 3),
        (4, 6, 3),
        (7, 9, 3),
        (10, 12, 3),
    ]
    for one in found["segments"]:
        data = (rolled.folder / one["name"]).read_bytes()
        assert one["size_bytes"] == len(data)
        assert one["sha256"] == hashlib.sha256(data).hexdigest()
        assert one["key_ids"] == [rolled.signing_key.key_id]
        assert one["packed"] is None


def test_a_store_of_one_segment_has_none(journal: Journal, write: Any, added: Added) -> None:
    write(journal, added(1))
    assert not (journal.folder / NAME).exists()


@pytest.mark.parametrize("has_checkpoint", [False, True])
@pytest.mark.parametrize("kept", [0, 2])
def test_one_that_is_behind_is_completed_by_the_next_writer(
    rolled: Journal, open_one: Open, write: Any, added: Added, has_checkpoint: bool, kept: int
) -> None:
    """A kill after an append that closed a segment, and a store that had none."""
    if has_checkpoint:
        rolled.checkpoint()
    before, path = body(rolled), rolled.folder / NAME
    if kept:
        rolled.closed.forget(rolled.segments.names()[kept:], rolled.signing_key, rolled.ring.find)
        assert len(body(rolled)["segments"]) == kept
    else:
        path.unlink()
    again = open_one(limits=LIMITS)
    assert again.notices == []
    assert again.verify() == 14
    write(again, added(60))
    assert body(again) == before
    assert open_one().verify() == 15


def test_it_is_not_completed_from_a_segment_that_changed_since_it_was_verified(
    rolled: Journal, open_one: Open, write: Any, added: Added
) -> None:
    (rolled.folder / NAME).unlink()
    again = open_one(limits=LIMITS)
    path = rolled.folder / rolled.segments.names()[1]
    path.write_bytes(path.read_bytes().replace(b"Memory 4", b"Memory X"))
    write(again, added(60))  # which is recorded all the same
    assert not (rolled.folder / NAME).exists()
    with pytest.raises(DamagedJournalError):
        open_one()


def test_every_flipped_bit_is_refused(rolled: Journal, open_one: Open) -> None:
    path = rolled.folder / NAME
    whole = path.read_bytes()
    for place in range(0, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 7)]) + whole[place + 1 :])
        with pytest.raises(DamagedJournalError, match="memgraph repair --accept-head"):
            open_one()
    path.write_bytes(whole)
    assert open_one().tail == rolled.tail


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: b"",
        lambda stored: b"null",
        lambda stored: b"[]",
        lambda stored: b"\xff",
        lambda stored: json.dumps({**stored, "hmac": 7}).encode(),
        lambda stored: json.dumps({**stored, "hmac": "\u00e9"}).encode(),
        lambda stored: json.dumps({**stored, "body": {**stored["body"], "segments": []}}).encode(),
        lambda stored: json.dumps({**stored, "body": {**stored["body"], "key_id": "file:other:1"}}).encode(),
        lambda stored: json.dumps(stored, indent=1).encode(),
    ],
)
def test_a_changed_one_is_refused(rolled: Journal, open_one: Open, change: Callable[[Any], bytes]) -> None:
    path = rolled.folder / NAME
    path.write_bytes(change(json.loads(path.read_bytes())))
    with pytest.raises(DamagedJournalError, match=r"segments\.json, byte 0: it is not what this store's key signed"):
        open_one()


def test_one_that_was_changed_while_the_journal_is_open_is_not_replaced(rolled: Journal) -> None:
    path = rolled.folder / NAME
    path.write_bytes(b"{}")
    for call in (
        lambda: rolled.drop_checkpoint(rolled.segments.names()[:1]),
        lambda: rolled.drop_checkpoint(()),
        rolled.pack_next,
    ):
        with rolled.locked(), pytest.raises(DamagedJournalError, match="memgraph repair --accept-head"):
            call()
        assert path.read_bytes() == b"{}"


def test_one_that_is_too_large_is_refused(rolled: Journal, open_one: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (rolled.folder / NAME).stat().st_size
    monkeypatch.setattr("memgraph.journal.closed.manifest.MAX_BYTES", size)
    assert open_one().tail == rolled.tail
    monkeypatch.setattr("memgraph.journal.closed.manifest.MAX_BYTES", size - 1)
    with pytest.raises(DamagedJournalError, match=rf"segments\.json, byte 0: it is larger than {size - 1:,} bytes"):
        open_one()


def test_that_of_another_store_is_refused(rolled: Journal, open_one: Open, write: Any, added: Added) -> None:
    other = open_one("other", limits=LIMITS)
    for number in range(1, 5):
        write(other, added(number))
    (rolled.folder / NAME).write_bytes((other.folder / NAME).read_bytes())
    with pytest.raises(DamagedJournalError, match="not what this store's key signed"):
        open_one()


def test_without_a_head_file_it_still_shows_that_segments_are_missing(
    rolled: Journal, open_one: Open, head_path: Callable[[Journal], Path]
) -> None:
    for name in rolled.segments.names()[2:]:
        (rolled.folder / name).unlink()
    head_path(rolled).unlink()
    with pytest.raises(TruncatedJournalError, match=r"manifest .*segments\.json") as refused:
        open_one()
    assert (refused.value.seq, refused.value.head_seq) == (6, 12)


def test_a_rewritten_segment_that_verifies_is_reported(rolled: Journal, open_one: Open) -> None:
    """Its events are authentic, but it is not the segment that was closed: here, because two of them became one."""
    first, second = (rolled.folder / name for name in rolled.segments.names()[:2])
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()
    with pytest.raises(DamagedJournalError, match=r"names the segment 000000000004\.jsonl, which is not there"):
        open_one()


class TestRepair:
    @pytest.fixture
    def look(self, rolled: Journal, keys: FileKeys, tmp_path: Path) -> Callable[[], Any]:
        key = keys.key(rolled.store_id)
        assert key is not None
        self.key = key
        return lambda: examine(rolled.folder.parent, rolled.store_id, key, keys_home=tmp_path / "keys")

    def accepted(self, rolled: Journal, found: Any, tmp_path: Path) -> Any:
        return accept(
            rolled.folder.parent,
            rolled.store_id,
            self.key,
            keys_home=tmp_path / "keys",
            expected=found,
            now=lambda: NOW,
            accepted_by="tests",
        )

    def test_a_whole_one_agrees(self, rolled: Journal, look: Callable[[], Any]) -> None:
        assert [(one.kind, one.state) for one in look().witnesses] == [("head", "agrees"), ("manifest", "agrees")]

    def test_a_damaged_one_is_accepted_and_written_anew(
        self, rolled: Journal, open_one: Open, look: Callable[[], Any], tmp_path: Path
    ) -> None:
        before, path = body(rolled), rolled.folder / NAME
        path.write_bytes(b"{}")
        found = look()
        assert [(one.kind, one.state) for one in found.contradicting] == [("manifest", "damaged")]
        assert path.read_bytes() == b"{}", "looking changes nothing"
        then = self.accepted(rolled, found, tmp_path)
        assert then.contradicting == ()
        assert body(rolled) == before
        again = open_one()
        assert again.verify() == 15
        (record,) = again.events_after(14)
        assert record.content["witnesses"] == [{"kind": "manifest", "state": "damaged"}]

    def test_missing_segments_are_counted_as_lost(
        self,
        rolled: Journal,
        open_one: Open,
        look: Callable[[], Any],
        tmp_path: Path,
        head_path: Callable[[Journal], Path],
    ) -> None:
        for name in rolled.segments.names()[2:]:
            (rolled.folder / name).unlink()
        head_path(rolled).unlink()
        found = look()
        assert [(one.kind, one.state, one.seq) for one in found.contradicting] == [
            ("head", "missing", None),
            ("manifest", "ahead", 12),
        ]
        assert len(found.lost) == 6
        self.accepted(rolled, found, tmp_path)
        assert open_one().verify() == 7
        names = [one["name"] for one in body(rolled)["segments"]]
        assert names == ["000000000001.jsonl", "000000000004.jsonl"], "what was named as closed is not written to again"


class TestAge:
    def test_an_old_segment_is_closed_at_the_next_append(self, open_one: Open, write: Any, added: Added) -> None:
        journal = open_one(limits=JournalLimits(segment_days=30.0))
        reader = open_one()
        for number, day in enumerate(("02-01", "03-03", "03-04", "03-20", "04-04", "12-01"), 1):
            write(journal, added(number), now=f"2026-{day}T09:00:00.000Z")
            assert reader.has_changed()
            reader.refresh()
            assert reader.tail == journal.tail
            assert not reader.has_changed()
        assert journal.segments.names() == [
            "000000000001.jsonl",
            "000000000004.jsonl",
            "000000000006.jsonl",
            "000000000007.jsonl",
        ]
        assert [one["last_seq"] for one in body(journal)["segments"]] == [3, 5, 6]
        assert open_one().verify() == 7

    def test_the_age_survives_a_new_process_and_a_clock_set_back(
        self, open_one: Open, write: Any, added: Added
    ) -> None:
        write(open_one(), added(1), now="2026-02-20T09:00:00.000Z")
        write(open_one(), added(2), now="2025-01-01T09:00:00.000Z")
        assert len(open_one().segments.names()) == 1
        write(open_one(), added(3), now="2026-03-04T09:00:00.000Z")
        assert len(open_one().segments.names()) == 2


def test_nothing_is_added_to_a_segment_that_is_named(
    rolled: Journal, open_one: Open, write: Any, added: Added, head_path: Any
) -> None:
    """A repair or a torn commit can leave a closed segment as the last one."""
    while rolled.tail.position.offset < 2_500:
        write(rolled, added(rolled.tail.seq + 50))
    head = head_path(rolled).read_bytes()
    write(rolled, added(90))
    head_path(rolled).write_bytes(head)
    last = rolled.folder / rolled.segments.last()
    last.write_bytes(last.read_bytes()[:-5])
    again = open_one()  # whose segments may be larger
    write(again, added(91))
    assert again.segments.last() == last.name
    assert open_one().verify() == again.tail.seq
    assert files.name_of(last) not in [one["name"] for one in body(again)["segments"]]
