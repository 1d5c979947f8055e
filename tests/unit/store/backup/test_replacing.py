"""A damaged journal: cut after what verifies, its segment put aside, or restored from a backup.

A graph on disk that is ahead of the journal afterwards is in the tests that are marked as embedded.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.disk.lock import writer_lock
from memgraph.errors import BackupError, BusyError, JournalError, StorageError
from memgraph.journal import swap
from memgraph.journal.keys.providers import FileKeys
from memgraph.journal.keys.ring import KeyRing
from memgraph.store.backup import quarantine
from memgraph.store.maintenance.keys import reseal_store, rotate_key
from memgraph.store.repair import Damage, cut_journal, find_damage, restore_journal
from memgraph.testing import FakeClock, FakeEmbedder

NOW = "2026-02-01T09:00:00.000Z"


class Place:
    """A closed store of several segments, with a backup of its first half."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        self.backup = folder / "half.tar.gz"
        self.whole = folder / "whole.tar.gz"

    def open(self) -> Any:
        parts: dict[str, Any] = {"embedder": FakeEmbedder(16), "clock": FakeClock(NOW)}
        return memgraph.AgentMemoryStore(self.config, **parts)

    @property
    def segments(self) -> list[Path]:
        return sorted((self.config.home / "journal").glob("*.jsonl"))

    def lines(self) -> list[bytes]:
        return [line for path in self.segments for line in path.read_bytes().splitlines(keepends=True)]

    def harm(self, seq: int) -> None:
        """Flip a bit in the line of an event."""
        for path in self.segments:
            lines = path.read_bytes().splitlines(keepends=True)
            for number, line in enumerate(lines):
                if json.loads(line)["head"]["seq"] == seq:
                    lines[number] = line[:-20] + bytes([line[-20] ^ 1]) + line[-19:]
                    path.write_bytes(b"".join(lines))
                    return

    def boundary_before(self, seq: int) -> int:
        ends = [head["seq"] for head in (json.loads(line)["head"] for line in self.lines()) if head["last"]]
        return max((end for end in ends if end < seq), default=0)

    def last_event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lines()[-1])
        return found

    def check(self) -> None:
        """Open, verify, rebuild, go on and open again."""
        with self.open() as store:
            store.verify(deep=True)
            digest = store.digest()
            store.rebuild()
            assert store.digest() == digest
            store.insert_memory({"type": "episodic", "content": "life goes on"})
        with self.open() as store:
            assert store.notices == []


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Place(tmp_path_factory.mktemp("damaged"))
    with place.open() as store:
        store._journal._segments._segment_bytes = 4_000
        for number in range(8):
            store.insert_memory({"type": "episodic", "content": f"text number {number}", "tags": ["a", "b"]})
        store.backup(place.backup)
        for number in range(8, 16):
            store.insert_memory({"type": "episodic", "content": f"text number {number}", "tags": ["a", "b"]})
        store.get_all_memories()
        store.backup(place.whole)
    assert len(place.segments) > 4
    return place.folder


@pytest.fixture
def place(template: Path, tmp_path: Path) -> Iterator[Place]:
    shutil.copytree(template, tmp_path / "place")
    yield Place(tmp_path / "place")
    shutil.rmtree(tmp_path / "place")


def found(place: Place) -> Damage:
    damage = find_damage(place.config)
    assert damage is not None
    return damage


def refuses(place: Place) -> None:
    with pytest.raises(JournalError):
        place.open()


class TestFinding:
    def test_a_whole_journal_has_none(self, place: Place) -> None:
        assert find_damage(place.config) is None

    def test_what_can_be_kept_and_what_is_known_to_be_lost(self, place: Place) -> None:
        total = len(place.lines())
        place.harm(9)
        damage = found(place)
        assert damage.kept.seq == place.boundary_before(9) == damage.end("tail").chain.seq
        assert (damage.known_seq, damage.later_events) == (total, total - 9)
        assert damage.lost("tail") == total - damage.kept.seq
        first = json.loads(damage.path.read_bytes().splitlines()[0])["head"]["seq"]
        assert damage.end("segment").chain.seq == first - 1 <= damage.kept.seq
        assert "event 9" in damage.problem

    def test_a_missing_segment(self, place: Place) -> None:
        gone = place.segments[2]
        seq = int(gone.stem)
        gone.unlink()
        assert found(place).kept.seq == seq - 1

    def test_without_a_head_file_the_events_after_the_damage_are_counted(self, place: Place) -> None:
        total = len(place.lines())
        place.harm(9)
        shutil.rmtree(place.config.keys_home / "heads")
        (place.config.home / "journal" / "verified.json").unlink(missing_ok=True)
        assert found(place).known_seq == total


class TestCutting:
    @pytest.mark.parametrize("part", ["tail", "segment"])
    @pytest.mark.parametrize("head", [pytest.param("there", marks=pytest.mark.embedded), "missing", "behind"])
    def test_the_rest_is_kept_aside_and_recorded(self, place: Place, part: Any, head: str) -> None:
        before = b"".join(place.lines())
        lines = place.lines()
        place.harm(9)
        heads = place.config.keys_home / "heads"
        if head == "missing":
            shutil.rmtree(heads)
        elif head == "behind":  # as after a power failure
            (path,) = heads.iterdir()
            early = json.loads(lines[1])
            path.write_text(json.dumps({"seq": 2, "signature": early["signature"]}).ljust(127) + "\n")
        if head != "there":
            (place.config.home / "journal" / "verified.json").unlink(missing_ok=True)
        refuses(place)
        damage = found(place)
        result = cut_journal(damage, place.config, part=part, reason="a bad disk", clock=FakeClock(NOW))
        assert (result.kept_seq, result.lost) == (damage.end(part).chain.seq, damage.lost(part))
        events = [json.loads(line) for line in place.lines()]
        assert [event["head"]["seq"] for event in events] == list(range(1, result.recorded_as + 1))
        (record,) = [event["payload"] for event in events if event["head"]["type"] == "journal.cut"]
        assert (record["seq"], record["events_lost"], record["reason"]) == (result.kept_seq, result.lost, "a bad disk")
        kept = sum(len(line) for line in lines[: result.kept_seq])
        aside = b"".join(path.read_bytes() for path in sorted(result.quarantine.iterdir()))
        assert len(aside) == result.cut_bytes == len(before) - kept
        assert sum(one != other for one, other in zip(aside, before[kept:], strict=True)) == 1, (
            "all of it, with the flipped bit"
        )
        place.check()

    @pytest.mark.embedded
    def test_even_the_first_event(self, place: Place) -> None:
        place.harm(1)
        first = place.segments[0].read_bytes()
        result = cut_journal(found(place), place.config)
        assert result.kept_seq == 0
        assert (result.quarantine / place.segments[0].name).read_bytes() == first
        assert [json.loads(line)["head"]["type"] for line in place.lines()[:2]] == ["store.created", "journal.cut"]
        place.check()

    def test_a_line_of_a_later_release_is_never_cut(self, place: Place) -> None:
        path = place.segments[-1]
        path.write_bytes(path.read_bytes().replace(b'"envelope_version":1', b'"envelope_version":2'))
        damage = found(place)
        assert damage.is_later_release
        before = place.lines()
        with pytest.raises(JournalError, match="install a newer memgraph"):
            cut_journal(damage, place.config)
        assert place.lines() == before
        assert not (place.config.home / "quarantine").exists()

    def test_a_journal_that_changed_since_or_is_in_use_is_left_alone(self, place: Place) -> None:
        place.harm(9)
        damage = found(place)
        place.harm(5)
        with pytest.raises(JournalError, match="has changed"):
            cut_journal(damage, place.config)
        config = place.config.model_copy(update={"lock_timeout_s": 0.05})
        with writer_lock(place.config.home / "journal").held(1.0), pytest.raises(BusyError):
            cut_journal(found(place), config)
        assert not (place.config.home / "quarantine").exists()

    @pytest.mark.parametrize("call", ["unlink", "ftruncate", "append", "replace"])
    def test_broken_off_anywhere_nothing_is_lost(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        lines = place.lines()
        place.harm(9)
        kept = found(place).kept.seq
        targets = {
            "unlink": "pathlib.Path.unlink", "ftruncate": "os.fsync", "append": "memgraph.journal.journal.Journal.append",
            "replace": "memgraph.journal.head_file.HeadFile.replace",
        }  # fmt: skip

        def crash(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(targets[call], crash)
            with pytest.raises(KeyboardInterrupt):
                cut_journal(found(place), place.config)
        refuses(place)
        if (damage := find_damage(place.config)) is not None:
            cut_journal(damage, place.config)
        else:
            condition = memgraph.store.repair_store(place.config)
            assert condition.lost
            memgraph.store.repair_store(place.config, accept_head=condition)
        assert [json.loads(line) for line in place.lines()[:kept]] == [json.loads(line) for line in lines[:kept]]
        place.check()


class TestAfterAResealingThatWasCutOff:
    """Its replacement is final, and no segment of it is in place."""

    @pytest.fixture
    def place(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
        config, clock = place.config, FakeClock(NOW)
        rotate_key(config, clock=clock)
        with place.open() as store:
            store.insert_memory({"type": "episodic", "content": "after the rotation"})
        with monkeypatch.context() as patched:
            patched.setattr(swap, "complete", lambda *_, **__: None)
            reseal_store(config, clock=clock)
        assert swap.is_planned(config.home / "journal")
        return place

    def events(self, place: Place) -> list[str]:
        return [json.loads(line)["head"]["type"] for line in place.lines()]

    @pytest.mark.parametrize("act", ["examine", "find", "accept", "restore"])
    def test_every_repair_completes_it_first(self, place: Place, act: str) -> None:
        before, config = len(place.lines()), place.config
        if act == "examine":
            assert memgraph.store.repair_store(config).contradicting == ()
        elif act == "find":
            assert find_damage(config) is None
        elif act == "accept":
            shutil.rmtree(config.keys_home / "heads")
            with pytest.raises(JournalError, match="nothing to accept"):
                memgraph.store.repair_store(config, accept_head=memgraph.store.repair_store(config))
        elif act == "restore":
            result = restore_journal(place.whole, config, clock=FakeClock(NOW))
            assert result.kept_seq == result.backup_seq
            place.check()
            return
        assert len(place.lines()) == before + 1
        assert self.events(place)[-1] == "journal.resealed"
        place.check()

    def test_a_repair_that_meets_it_midway_changes_nothing(self, place: Place) -> None:
        folder, away = place.config.home / "journal" / "replacement", place.folder / "away"
        folder.rename(away)
        place.harm(9)
        damage, before = found(place), place.lines()
        away.rename(folder)
        with pytest.raises(JournalError, match="run `memgraph repair` again"):
            quarantine.cut(
                place.config.home,
                *identify_alone(place),
                keys_home=place.config.keys_home,
                expected=damage,
                part="tail",
                now=lambda: NOW,
                cut_by="tests",
            )
        assert place.lines() == before
        assert not (place.config.home / "quarantine").exists()

    @pytest.mark.parametrize("name", ["plan.json", "000000000001.jsonl"])
    def test_a_damaged_one_is_put_aside_by_a_restoration(self, place: Place, name: str) -> None:
        config, folder = place.config, place.config.home / "journal" / "replacement"
        before = place.lines()
        prepared = bytearray((folder / name).read_bytes())
        prepared[len(prepared) // 2] ^= 1
        (folder / name).write_bytes(prepared)
        refuses(place)
        for use in (memgraph.store.repair_store, find_damage):
            with pytest.raises(JournalError, match="--from-backup FILE"):
                use(config)
        result = restore_journal(place.backup, config, clock=FakeClock(NOW))
        assert result.lost == 0
        assert place.lines()[:-1] == before
        assert not folder.exists()
        assert (result.quarantine / "replacement" / name).read_bytes() == prepared
        place.check()


def identify_alone(place: Place) -> tuple[str, KeyRing]:
    keys = FileKeys(place.config.keys_home)
    store_id = json.loads((place.config.home / "journal" / "manifest.json").read_bytes())["store_id"]
    return store_id, KeyRing.from_providers(store_id, keys)


class TestFromABackup:
    @pytest.mark.parametrize("seq", [1, 4, pytest.param(9, marks=pytest.mark.embedded)])
    def test_damage_in_what_the_backup_has_loses_nothing(self, place: Place, seq: int) -> None:
        before = place.lines()
        with place.open() as store:
            digest = store.digest()
        assert place.lines() == before
        place.harm(seq)
        refuses(place)
        result = restore_journal(place.backup, place.config, clock=FakeClock(NOW))
        assert (result.lost, result.kept_seq) == (0, len(before))
        assert result.backup_seq < result.kept_seq
        assert place.lines()[:-1] == before, "byte for byte"
        assert place.last_event()["head"]["type"] == "store.restored"
        assert {path.name for path in result.quarantine.iterdir()} >= {"manifest.json", "000000000001.jsonl"}
        with place.open() as store:
            assert store.digest() == digest
        place.check()

    @pytest.mark.embedded
    def test_damage_after_the_backup_loses_what_follows_it(self, place: Place) -> None:
        before = place.lines()
        seq = len(before) - 3
        place.harm(seq)
        kept = place.boundary_before(seq)
        result = restore_journal(place.backup, place.config)
        assert (result.kept_seq, result.lost) == (kept, len(before) - kept)
        assert place.last_event()["payload"]["events_lost"] == result.lost
        place.check()

    def test_up_to_an_event(self, place: Place) -> None:
        total = len(place.lines())
        result = restore_journal(place.whole, place.config, until=7)
        assert result.kept_seq == result.backup_seq == place.boundary_before(8)
        assert result.lost == total - result.kept_seq
        place.check()

    def test_a_journal_that_is_gone(self, place: Place) -> None:
        total = len(place.lines())
        shutil.rmtree(place.config.home / "journal")
        refuses(place)
        result = restore_journal(place.whole, place.config)
        assert result.lost == total - result.kept_seq
        place.check()

    def test_a_damaged_manifest_and_missing_vectors(self, place: Place) -> None:
        (place.config.home / "journal" / "manifest.json").write_text("nonsense")
        (vectors,) = (place.config.home / "journal" / "vectors").glob("*.f32")
        vectors.unlink()
        assert restore_journal(place.whole, place.config).lost == 0
        place.check()

    def test_what_does_not_fit_changes_nothing(self, place: Place, tmp_path: Path) -> None:
        other = Place(tmp_path / "other")
        with other.open() as store:
            store.insert_memory({"type": "episodic", "content": "another store"})
            store.backup(tmp_path / "other.tar.gz")
        shutil.copytree(other.config.keys_home, place.config.keys_home, dirs_exist_ok=True)
        before = place.lines()
        with pytest.raises(BackupError, match="of another store"):
            restore_journal(tmp_path / "other.tar.gz", place.config)
        data = bytearray(place.backup.read_bytes())
        data[len(data) // 2] ^= 1
        place.backup.write_bytes(data)
        with pytest.raises(BackupError, match="damaged"):
            restore_journal(place.backup, place.config)
        with pytest.raises(BackupError, match="memgraph restore"):
            restore_journal(place.whole, place.config.model_copy(update={"home": tmp_path / "nothing"}))
        assert place.lines() == before
        assert {path.name for path in place.config.home.iterdir()} >= {"journal"}
        assert not list(place.config.home.glob("[.]repairing*"))
        assert not (place.config.home / "quarantine").exists()

    @pytest.mark.parametrize("place_of_crash", ["unlink", "replace", "append", "head"])
    def test_broken_off_anywhere_the_same_call_repairs_it(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, place_of_crash: str
    ) -> None:
        before = place.lines()
        place.harm(4)
        targets = {
            "unlink": "pathlib.Path.unlink", "replace": "pathlib.Path.replace",
            "append": "memgraph.journal.journal.Journal.append", "head": "memgraph.journal.head_file.HeadFile.replace",
        }  # fmt: skip
        real: Callable[..., Any] = Path.replace
        calls = iter(range(1_000))

        def crash(*args: Any, **options: Any) -> Any:
            if place_of_crash == "replace" and next(calls) < 2:
                return real(*args, **options)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(targets[place_of_crash], crash)
            with pytest.raises(KeyboardInterrupt):
                restore_journal(place.backup, place.config)
        result = restore_journal(place.backup, place.config)
        assert result.lost == 0
        assert place.lines()[: len(before)] == before
        place.check()


def test_what_is_put_aside_without_hard_links_is_a_synced_private_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, place = tmp_path / "000000000001.jsonl", tmp_path / "quarantine"
    path.write_bytes(b"some events")
    path.chmod(0o644)
    place.mkdir()
    synced: list[int] = []

    def refused(*_: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(os, "fsync", fsync)
    assert quarantine.set_aside(path, place) == 11
    copy = place / path.name
    assert copy.read_bytes() == b"some events"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert synced == [copy.stat().st_ino]
    with pytest.raises(StorageError, match="File exists; nothing was removed"):
        quarantine.set_aside(path, place)
