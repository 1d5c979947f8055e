"""A repair from a backup that was made before a purge: what was purged since does not come back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph.store.compaction import compact
from memgraph.store.repair import JournalRestored, restore_journal
from memgraph.testing import FakeClock
from tests.tables import VectorTable, raw_lines, table
from tests.unit.store.backup.test_replacing import NOW, Place

pytestmark = pytest.mark.embedded
SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The nightly backup of the billing database needs about forty minutes on Sundays"
LATER = "2026-03-01T09:00:00.000Z"
assert LATER > NOW


def episode(content: str) -> dict[str, Any]:
    return {"type": "episodic", "content": content}


class Purged(Place):
    """A store of which a memory was purged after its backup was made."""

    secret: str
    kept: list[str]

    @property
    def home(self) -> Path:
        return self.config.home

    def traces(self, text: str = "lighthouse") -> list[str]:
        return [
            path.name for path in self.home.rglob("*") if path.is_file() and text.encode() in path.read_bytes().lower()
        ]

    def number_of(self, type_: str) -> int:
        heads = [json.loads(line)["head"] for line in self.lines()]
        return max(int(head["seq"]) for head in heads if head["type"] == type_)

    def restore(self, **options: Any) -> JournalRestored:
        return restore_journal(self.backup, self.config, clock=FakeClock(LATER), **options)

    def check_without(self) -> None:
        """Check that the text is in no file, before and after an opening, and that the rest is there."""
        assert self.traces() == []
        with self.open() as store:
            assert store.get_memory(self.secret) is None
            store.verify(deep=True)
            assert [one.id for one in store.every_memory()][: len(self.kept)] == self.kept
            receipt = self.home / "receipts" / f"{self.number_of('memory.purged'):012d}.json"
            assert store.check_receipt(receipt.read_bytes()).events > 0
        assert 1 not in VectorTable(self.home).rows(), "the vector of the second memory"
        assert self.traces() == []


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Purged:
    place = Purged(tmp_path_factory.mktemp("purged"))
    with place.open() as store:
        first = store.insert_memory(episode(OTHER)).id
        place.secret = store.insert_memory(episode(SECRET)).id
        store.backup(place.backup)
        place.kept = [first, store.insert_memory(episode("Between the backup and the purge")).id]
        store.purge(
            [place.secret, store.insert_memory(episode(f"{OTHER}: the old lighthouse too")).id], keep_copies=True
        )
        place.kept.append(store.insert_memory(episode("After the purge")).id)
    return place


@pytest.fixture
def place(template: Purged, tmp_path: Path) -> Iterator[Purged]:
    shutil.copytree(template.folder, tmp_path / "place")
    place = Purged(tmp_path / "place")
    place.secret, place.kept = template.secret, list(template.kept)
    assert place.traces() == []
    yield place
    shutil.rmtree(tmp_path / "place")


def test_where_the_purge_itself_is_kept(place: Purged) -> None:
    place.harm(1)
    result = place.restore()
    assert (result.lost, result.purged_again) == (0, 1)
    assert result.quarantine.is_dir()
    place.check_without()
    place.check()


def test_where_the_vectors_come_from_the_backup_too(place: Purged) -> None:
    place.harm(1)
    VectorTable(place.home).remove()
    assert place.restore().purged_again == 1
    assert place.traces() == []
    assert VectorTable(place.home).rows().keys() >= {0}
    assert 1 not in VectorTable(place.home).rows()


@pytest.mark.parametrize("known_by", ["event", "receipt"])
def test_where_the_purge_is_lost(place: Purged, known_by: str) -> None:
    after, purge = place.number_of("backup.made"), place.number_of("memory.purged")
    place.harm(after)
    if known_by == "event":
        shutil.rmtree(place.home / "receipts")
    else:
        place.harm(purge)
    place.kept = place.kept[:1]
    result = place.restore()
    assert (result.lost > 0, result.purged_again) == (True, 1)
    assert [json.loads(line)["head"]["type"] for line in place.lines()[-2:]] == ["store.restored", "memory.purged"]
    place.check_without()


def test_up_to_an_event(place: Purged) -> None:
    place.kept = place.kept[:1]
    assert place.restore(until=place.number_of("backup.made") - 1).purged_again == 1
    place.check_without()


def test_a_receipt_that_was_changed_purges_nothing(place: Purged) -> None:
    for seq in [place.number_of(type_) for type_ in ("backup.made", "memory.purged")]:
        place.harm(seq)
    (path,) = (place.home / "receipts").glob("*.json")
    path.write_text(path.read_text().replace('"ranges"', '"rangez"'))
    (path.parent / "nonsense.json").write_text("nonsense")
    assert place.restore().purged_again == 0
    with place.open() as store:
        assert store.get_memory(place.secret) is not None


def test_a_purge_of_events_that_a_former_restoration_dropped_removes_nothing_of_the_present_ones(place: Purged) -> None:
    with place.open() as store:
        dropped = store.insert_memory(episode("This one is dropped")).id
        store.purge([dropped])
    first = place.number_of("backup.made") - 1
    place.restore(until=first)
    with place.open() as store:
        ids = [store.insert_memory(episode(f"Present number {number}")).id for number in range(12)]
        store.backup(place.whole)
    place.harm(2)
    result = restore_journal(place.whole, place.config, clock=FakeClock("2026-04-01T09:00:00.000Z"))
    assert result.lost == 0
    assert place.traces() == []
    with place.open() as store:
        assert {one.id for one in store.every_memory()} >= set(ids)
        store.verify(deep=True)


@pytest.mark.parametrize("place_of_crash", ["fill", "append", "accept_end"])
def test_broken_off_anywhere_the_same_call_completes_it(
    place: Purged, monkeypatch: pytest.MonkeyPatch, place_of_crash: str
) -> None:
    place.harm(1)
    targets = {
        "fill": "memgraph.store.repair.fill",
        "append": "memgraph.journal.journal.Journal.append",
        "accept_end": "memgraph.journal.head_file.HeadFile.replace",
    }

    def crash(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(targets[place_of_crash], crash)
        with pytest.raises(KeyboardInterrupt):
            place.restore()
    place.restore()
    place.check_without()


def test_where_the_store_is_compacted(tmp_path: Path) -> None:
    """The purge is known from the archive, and no word comes back into events, archive, baseline or quarantine."""
    place = Purged(tmp_path / "place")
    with place.open() as store:
        secret = store.insert_memory(episode(SECRET)).id
        for number in range(12):
            store.insert_memory(episode(f"{OTHER}, number {number}"))
    compact(place.config, before="2027-01-01", clock=FakeClock("2027-01-05T00:00:00.000Z"))
    with place.open() as store:
        store.backup(place.backup)
        store.purge([secret], keep_copies=True)
        for number in range(12):
            store.insert_memory(episode(f"After the purge, number {number}"))
        kept = {one.id for one in store.get_all_memories()}
    compact(place.config, before="2027-02-01", clock=FakeClock("2027-02-05T00:00:00.000Z"))
    shutil.rmtree(place.home / "receipts")
    place.kept = []
    result = place.restore()
    assert (result.lost, result.purged_again) == (0, 1)
    assert place.traces() == []
    assert not any(b"lighthouse" in line for line in raw_lines(place.home))
    with place.open() as store:
        assert store.notices == []
        store.verify(deep=True)
        assert {one.id for one in store.get_all_memories()} == kept
    compact(place.config, before="2027-02-01", clock=FakeClock("2027-02-05T00:00:00.000Z"))
    assert table(place.home, "archive")
    assert place.traces() == []
