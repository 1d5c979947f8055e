"""A repair from a backup that was made before a purge: what was purged since does not come back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from memgraph.journal.segments import JournalLimits

from memgraph.store.compaction import compact
from memgraph.store.repair import JournalRestored, restore_journal
from memgraph.testing import FakeClock
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
            vectors = store._journal.vectors(*store.vector_model)
            assert not vectors.rows(2)[1].any(), "the vector of the second memory"
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
    for path in (place.home / "journal" / "vectors").glob("*.f32"):
        path.unlink()
    assert place.restore().purged_again == 1
    assert place.traces() == []
    with place.open() as store:
        assert not store._journal.vectors(*store.vector_model).rows(2)[1].any()


@pytest.mark.parametrize("known_by", ["event", "receipt"])
def test_where_the_purge_is_lost(place: Purged, known_by: str) -> None:
    after = place.number_of("backup.made")
    place.harm(after)
    if known_by == "event":
        shutil.rmtree(place.home / "receipts")
    else:
        place.harm(place.number_of("memory.purged"))
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
    place.harm(place.number_of("backup.made"))
    place.harm(place.number_of("memory.purged"))
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


@pytest.mark.parametrize("place_of_crash", ["replace", "append", "rewrite"])
def test_broken_off_anywhere_the_same_call_or_the_next_opening_completes_it(
    place: Purged, monkeypatch: pytest.MonkeyPatch, place_of_crash: str
) -> None:
    place.harm(1)
    targets = {
        "replace": "memgraph.store.repair._replace",
        "append": "memgraph.journal.journal.Journal.append",
        "rewrite": "memgraph.store.backup.purged_again.rewrite_segments",
    }

    def crash(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(targets[place_of_crash], crash)
        with pytest.raises(KeyboardInterrupt):
            place.restore()
    if place_of_crash != "rewrite":
        place.restore()
    else:
        with place.open():
            pass
    place.check_without()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgraph.store.opening.JournalLimits", partial(JournalLimits, 3_000))


def unpacked(path: Path) -> bytes:
    if path.suffix != ".zst":
        return path.read_bytes()
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        data: bytes = stream.read()
        return data


def holding(home: Path, word: bytes) -> list[str]:
    """Return the files of a store that hold a word, compressed ones unpacked."""
    return [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() and word in unpacked(path)]


@pytest.mark.parametrize("is_compacted", [False, True], ids=["compressed", "compacted"])
@pytest.mark.usefixtures("small_segments")
def test_where_segments_are_closed(tmp_path: Path, is_compacted: bool) -> None:
    """The purge is known from a compressed segment, and no word comes back into segments, archive, baseline or quarantine."""
    place = Purged(tmp_path / "place")
    with place.open() as store:
        secret = store.insert_memory(episode(SECRET)).id
        for number in range(12):
            store.insert_memory(episode(f"{OTHER}, number {number}"))
        store.compact()
    if is_compacted:
        compact(place.config, clock=FakeClock("2027-01-05T00:00:00.000Z"))
    with place.open() as store:
        store.backup(place.backup)
        store.purge([secret], keep_copies=True)
        for number in range(12):
            store.insert_memory(episode(f"After the purge, number {number}"))
        store.compact()
        kept = {one.id for one in store.get_all_memories()}
    shutil.rmtree(place.home / "receipts")
    result = place.restore()
    assert (result.lost, result.purged_again) == (0, 1)
    assert holding(place.home, b"lighthouse") == []
    with place.open() as store:
        assert store.notices == []
        store.verify(deep=True)
        assert {one.id for one in store.get_all_memories()} == kept
    assert holding(place.home, b"lighthouse") == []
