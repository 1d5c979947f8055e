"""A store whose journal consists of several compressed segments is purged, saved, repaired and signed anew like any other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from memgraph.journal.closed import files
from memgraph.journal.closed.manifest import NAME
from memgraph.journal.segments import JournalLimits

import memgraph
from memgraph.errors import DamagedJournalError, JournalError
from memgraph.health.examination import extent
from memgraph.lifecycle.sleep import sleep
from memgraph.store.maintenance.keys import reseal_store, rotate_key
from memgraph.store.maintenance.migration import migrate
from memgraph.store.opening import open_store_journal
from memgraph.store.repair import cut_journal, find_damage, repair_store, restore_journal
from memgraph.testing import FakeClock, FakeEmbedder

NOW = "2026-02-01T09:00:00.000Z"
SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"


class Place:
    """A store with tiny segments."""

    def __init__(self, folder: Path, make_engine: Callable[[], Any]) -> None:
        self.folder = folder
        self.config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        self.journal = self.config.home / "journal"
        self._make_engine = make_engine

    def open(self, **settings: Any) -> Any:
        config = self.config.model_copy(update=settings)
        return memgraph.AgentMemoryStore(
            config, engine=self._make_engine(), embedder=FakeEmbedder(16), clock=FakeClock(NOW)
        )

    def packed(self) -> list[Path]:
        return [path for path in files.files_in(self.journal) if path.suffix == ".zst"]

    def plain(self) -> list[Path]:
        return [path for path in files.files_in(self.journal) if path.suffix == ".jsonl"]

    def named(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.journal / NAME).read_bytes())["body"]["segments"]
        return found

    def agrees(self) -> None:
        """Check that the manifest names what is there, and that the store verifies and goes on."""
        for one in self.named():
            assert tuple(files.extent_in(self.journal, one["name"])) == (one["size_bytes"], one["sha256"])
        with self.open() as store:
            assert store.notices == []
            store.verify(deep=True)
            store.insert_memory({"type": "episodic", "content": "life goes on"})
            store.verify()


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgraph.store.opening.JournalLimits", partial(JournalLimits, 4_000))


@pytest.fixture
def place(tmp_path: Path, make_engine: Callable[[], Any]) -> Iterator[Place]:
    place = Place(tmp_path, make_engine)
    with place.open() as store:
        store.insert_memory({"id": "00000000-0000-4000-8000-000000000001", "type": "episodic", "content": SECRET})
        for number in range(13):
            store.insert_memory({"type": "episodic", "content": f"text number {number}", "tags": ["a", f"t{number}"]})
        store.compact()
    assert len(place.packed()) > 3
    assert len(place.plain()) == 1
    yield place
    shutil.rmtree(tmp_path / "store")


def test_sleep_compresses_them(place: Place) -> None:
    before = len(place.packed())
    with place.open() as store:
        for number in range(6):
            store.insert_memory({"type": "episodic", "content": f"further text number {number}"})
        assert sleep(store).complete
    assert len(place.plain()) == 1
    assert len(place.packed()) == len(place.named()) > before


def test_nothing_that_is_remembered_changes(place: Place) -> None:
    assert len(place.packed()) == len(place.named()) == len([one for one in place.named() if one["packed"]])
    with place.open() as store:
        before = store.digest(), store.get_all_memories()
        (place.config.home / "index" / "index.npz").unlink()
        store.rebuild()
        assert (store.digest(), store.get_all_memories()) == before
        with store.at(NOW) as past:
            assert len(past.get_all_memories()) == len(before[1])
    place.agrees()


def test_the_setting_switches_it_off(place: Place) -> None:
    already = len(place.packed())
    with place.open(journal_compression=False) as store:
        for number in range(9):
            store.insert_memory({"type": "episodic", "content": f"further text number {number}"})
        store.compact()
    assert len(place.packed()) == already
    assert len(place.plain()) > 2
    place.agrees()


def test_the_setting_of_their_age_reaches_the_journal(place: Place) -> None:
    before = len(place.named())
    config = place.config.model_copy(update={"journal_segment_days": 2})
    late = FakeClock("2026-02-04T09:00:00.000Z")
    with memgraph.AgentMemoryStore(config, engine=place._make_engine(), embedder=FakeEmbedder(16), clock=late) as store:
        store.insert_memory({"type": "episodic", "content": "three days later"})
    assert len(place.named()) == before + 1


def test_a_purge_rewrites_them(place: Place, tmp_path: Path) -> None:
    before = {one["name"]: one for one in place.named()}
    with place.open() as store:
        receipt = store.purge(["00000000-0000-4000-8000-000000000001"])
        assert store.check_receipt(receipt).changed_since == []
    data = b"".join(files.read_all(place.journal, name) for name in files.names_in(place.journal))
    assert SECRET.encode() not in data
    assert "Warnemünde".encode() not in b"".join(
        path.read_bytes() for path in place.journal.rglob("*") if path.is_file()
    )
    after = {one["name"]: one for one in place.named()}
    assert after.keys() >= before.keys()
    changed = [name for name, one in before.items() if one["sha256"] != after[name]["sha256"]]
    assert [name for name in changed if before[name]["packed"]], "a compressed segment had it"
    assert all(after[name]["size_bytes"] == before[name]["size_bytes"] for name in before)
    with place.open() as store:
        store.compact()
    assert all(one["packed"] for one in place.named())
    place.agrees()


def test_a_compression_after_another_process_purged(tmp_path: Path, make_engine: Callable[[], Any]) -> None:
    """It names what is there, not what it read before the purge."""
    place = Place(tmp_path, make_engine)
    with place.open(journal_compression=False) as store:
        for number in range(13):
            store.insert_memory({"type": "episodic", "content": f"text number {number}", "tags": ["a", f"t{number}"]})
        last = store.insert_memory({"type": "episodic", "content": SECRET})
        for number in range(4):
            store.insert_memory({"type": "episodic", "content": f"later text number {number}"})
    with place.open() as store:
        other = open_store_journal(place.config, None, lambda: NOW)
        before = place.named()
        store.purge([last.id])
        assert place.named() != before
        with other.locked():
            assert other.pack_next() == before[0]["name"]
    place.agrees()


def test_a_purge_refuses_a_damaged_manifest(place: Place) -> None:
    path = place.journal / NAME
    with place.open() as store:
        path.write_bytes(b"garbage")
        with pytest.raises(DamagedJournalError, match="memgraph repair --accept-head"):
            store.purge(["00000000-0000-4000-8000-000000000001"])
        assert path.read_bytes() == b"garbage"
        assert store.get_memory("00000000-0000-4000-8000-000000000001").content == SECRET, "nothing was begun"
        assert not (place.journal / "purging.json").exists()


def test_a_purge_leaves_no_second_file_of_a_segment(place: Place) -> None:
    """Another form of a segment does not count, and may hold what was purged."""
    [holding] = [one for one in place.packed() if SECRET.encode() in files.read_all(place.journal, files.name_of(one))]
    other = place.packed()[-1]
    name = files.name_of(other)
    assert other != holding
    kept = holding.read_bytes()
    files.plain_path(place.journal, name).write_bytes(files.read_all(place.journal, name))
    other.write_bytes(kept)
    with place.open() as store:
        store.purge(["00000000-0000-4000-8000-000000000001"])
    assert not other.exists()
    place.agrees()


def test_backups_are_the_same_before_and_after(place: Place, tmp_path: Path) -> None:
    with place.open() as store:
        digest = store.digest()
        store.backup(tmp_path / "a.tar.gz")
        for number in range(9):
            store.insert_memory({"type": "episodic", "content": f"later text number {number}"})
        store.compact()  # what the first backup holds as a plain segment is compressed now
        store.backup(tmp_path / "b.tar.gz", incremental=True)
        later = store.digest()
    for name, wanted in (("a", digest), ("b", later)):
        options: dict[str, Any] = {"keys_home": place.config.keys_home, "clock": FakeClock(NOW)}
        found = memgraph.restore(tmp_path / f"{name}.tar.gz", tmp_path / name, **options)
        assert found.digest == wanted
        assert not list((tmp_path / name / "journal").glob("*.zst"))
        assert (tmp_path / name / "journal" / NAME).exists(), "it is made anew"


def test_a_compression_during_a_backup_makes_it_begin_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from memgraph.store.backup import making

    with place.open() as store:
        for number in range(6):
            store.insert_memory({"type": "episodic", "content": f"later text number {number}"})
        real = making.read_contents

        def compressing(*args: Any, **options: Any) -> Any:
            found = real(*args, **options)
            store.compact()
            return found

        monkeypatch.setattr(making, "read_contents", compressing)
        made = store.backup(tmp_path / "a.tar.gz")
        assert made.digest == store.digest()
    assert caplog.text.count("it begins again") == 1


def test_resealing_leaves_plain_segments_and_a_manifest_of_the_new_key(place: Place) -> None:
    rotate_key(place.config)
    with place.open() as store:
        for number in range(6):
            store.insert_memory({"type": "episodic", "content": f"later text number {number}"})
        keys = {one for each in place.named() for one in each["key_ids"]}
        assert len(keys) == 2
    reseal_store(place.config)
    assert place.packed() == []
    assert {one for each in place.named() for one in each["key_ids"]} < keys
    with place.open() as store:
        store.verify(deep=True)
        store.compact()
    assert len(place.packed()) == len(place.named()) > 3
    place.agrees()


def test_reports_read_them(place: Place) -> None:
    found = migrate(place.config, dry_run=True)
    assert [(one.name, one.events, one.sha256) for one in found.segments][:-1] == [
        (one["name"], one["events"], one["sha256"]) for one in place.named()
    ]
    events, size = extent(place.journal)
    assert events == found.events
    assert size == sum(path.stat().st_size for path in files.files_in(place.journal))
    assert repair_store(place.config).contradicting == ()


@pytest.fixture
def damaged(place: Place, tmp_path: Path) -> Path:
    """The path of a compressed segment that is damaged; a backup was made before."""
    with place.open() as store:
        store.backup(tmp_path / "whole.tar.gz")
    path = place.packed()[1]
    data = path.read_bytes()
    path.write_bytes(data[:-80] + bytes([data[-80] ^ 16]) + data[-79:])
    (place.journal / "verified.json").unlink(missing_ok=True)
    with pytest.raises(JournalError, match="journal damaged"):
        place.open()
    return path


@pytest.mark.parametrize("part", ["tail", "segment"])
def test_a_damaged_one_is_cut_or_put_aside(place: Place, damaged: Path, part: Any) -> None:
    found = find_damage(place.config)
    assert found is not None
    before = damaged.read_bytes()
    cut = cut_journal(found, place.config, part=part)
    assert cut.lost > 0
    aside = {path.name for path in cut.quarantine.iterdir()}
    assert {path.name for path in place.packed()[2:]} <= aside
    assert damaged.name not in aside or (cut.quarantine / damaged.name).read_bytes() == before
    assert not damaged.exists()
    place.agrees()


def test_a_damaged_one_is_restored_from_a_backup(place: Place, damaged: Path, tmp_path: Path) -> None:
    last = find_damage(place.config)
    assert last is not None
    made = restore_journal(tmp_path / "whole.tar.gz", place.config, clock=FakeClock(NOW))
    assert (made.lost, made.kept_seq >= made.backup_seq) == (0, True)
    assert (made.quarantine / damaged.name).exists()
    assert (made.quarantine / NAME).exists()
    assert place.packed() == []
    place.agrees()


def test_a_damaged_manifest_is_accepted_as_the_journal_is(place: Place) -> None:
    path, before = place.journal / NAME, place.named()
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"events": 3', b'"events": 4', 1) if b'"events": 3' in data else data[:-4])
    with pytest.raises(JournalError, match="memgraph repair --accept-head"):
        place.open()
    found = repair_store(place.config)
    assert [(one.kind, one.state) for one in found.contradicting] == [("manifest", "damaged")]
    repair_store(place.config, accept_head=found, reason="a test")
    assert [one["sha256"] for one in place.named()][: len(before)] == [one["sha256"] for one in before]
    place.agrees()
