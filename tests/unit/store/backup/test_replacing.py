"""A damaged journal: cut after what verifies, or restored from a backup.

A graph on disk that is ahead of the journal afterwards is in the tests that are marked as embedded.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.disk.lock import writer_lock
from memgraph.errors import BackupError, BusyError, JournalError
from memgraph.journal.opening import opened
from memgraph.store.repair import Damage, cut_journal, find_damage, restore_journal
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import VectorTable, change, forget_journal, harm_event, make_newer, raw_lines, tables

NOW = "2026-02-01T09:00:00.000Z"


class Place:
    """A closed store, with a backup of its first half."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        self.backup = folder / "half.tar.gz"
        self.whole = folder / "whole.tar.gz"

    def open(self) -> Any:
        parts: dict[str, Any] = {"embedder": FakeEmbedder(16), "clock": FakeClock(NOW)}
        return memgraph.AgentMemoryStore(self.config, **parts)

    def lines(self) -> list[bytes]:
        return raw_lines(self.config.home)

    def harm(self, seq: int) -> None:
        """Flip a bit of an event."""
        harm_event(self.config.home, seq)

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
        for number in range(8):
            store.insert_memory({"type": "episodic", "content": f"text number {number}", "tags": ["a", "b"]})
        store.backup(place.backup)
        for number in range(8, 16):
            store.insert_memory({"type": "episodic", "content": f"text number {number}", "tags": ["a", "b"]})
        store.get_all_memories()
        store.backup(place.whole)
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
    with pytest.raises(JournalError), place.open() as store:
        store.verify()


class TestFinding:
    def test_a_whole_journal_has_none(self, place: Place) -> None:
        assert find_damage(place.config) is None

    def test_what_can_be_kept_and_what_is_known_to_be_lost(self, place: Place) -> None:
        total = len(place.lines())
        place.harm(9)
        damage = found(place)
        assert damage.kept.seq == place.boundary_before(9)
        assert (damage.known_seq, damage.later_events) == (total, total - 9)
        assert damage.lost == total - damage.kept.seq
        assert "event 9" in damage.problem

    def test_a_missing_event(self, place: Place) -> None:
        change(place.config.home, "DELETE FROM event WHERE seq = 9")
        assert found(place).kept.seq == place.boundary_before(9)

    def test_without_a_head_file_the_events_after_the_damage_are_counted(self, place: Place) -> None:
        total = len(place.lines())
        place.harm(9)
        shutil.rmtree(place.config.keys_home / "heads")
        assert found(place).known_seq == total


class TestCutting:
    @pytest.mark.parametrize("head", [pytest.param("there", marks=pytest.mark.embedded), "missing", "behind"])
    def test_the_rest_is_kept_aside_and_recorded(self, place: Place, head: str) -> None:
        lines = place.lines()
        place.harm(9)
        harmed = place.lines()
        heads = place.config.keys_home / "heads"
        if head == "missing":
            shutil.rmtree(heads)
        elif head == "behind":  # as after a power failure
            (path,) = heads.iterdir()
            early = json.loads(lines[1])
            path.write_text(json.dumps({"seq": 2, "signature": early["signature"]}).ljust(127) + "\n")
        refuses(place)
        damage = found(place)
        result = cut_journal(damage, place.config, reason="a bad disk", clock=FakeClock(NOW))
        assert (result.kept_seq, result.lost) == (damage.kept.seq, damage.lost)
        assert place.lines()[: result.kept_seq] == lines[: result.kept_seq]
        events = [json.loads(line) for line in place.lines()]
        assert [event["head"]["seq"] for event in events] == list(range(1, len(events) + 1))
        assert events[result.recorded_as - 1]["head"]["type"] in ("journal.cut", "journal.repaired")
        (record,) = [event["payload"] for event in events if event["head"]["type"] == "journal.cut"]
        assert (record["seq"], record["events_lost"], record["reason"]) == (result.kept_seq, result.lost, "a bad disk")
        (aside,) = result.quarantine.iterdir()
        assert aside.read_bytes().splitlines() == harmed[result.kept_seq :], "all of it, with the flipped bit"
        assert aside.stat().st_size == result.cut_bytes
        place.check()

    @pytest.mark.embedded
    def test_even_the_first_event(self, place: Place) -> None:
        place.harm(1)
        harmed = place.lines()
        result = cut_journal(found(place), place.config)
        assert result.kept_seq == 0
        assert (result.quarantine / "events.jsonl").read_bytes().splitlines() == harmed
        assert [json.loads(line)["head"]["type"] for line in place.lines()[:2]] == ["store.created", "journal.cut"]
        place.check()

    def test_a_line_of_a_later_release_is_never_cut(self, place: Place) -> None:
        change(
            place.config.home,
            """UPDATE event SET head = CAST(replace(CAST(head AS TEXT), '"envelope_version":1', '"envelope_version":2') AS BLOB)
            WHERE seq = (SELECT MAX(seq) FROM event)""",
        )
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
        database = opened(place.config.home)
        with database.lock().held(1.0), pytest.raises(BusyError):
            cut_journal(found(place), config)
        database.close()
        assert not (place.config.home / "quarantine").exists()

    @pytest.mark.parametrize("call", ["_keep", "append", "accept_end"])
    def test_broken_off_anywhere_nothing_is_lost(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        lines = place.lines()
        place.harm(9)
        kept = found(place).kept.seq
        targets = {
            "_keep": "memgraph.store.repair._keep",
            "append": "memgraph.journal.journal.Journal.append",
            "accept_end": "memgraph.journal.head_file.HeadFile.replace",
        }

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
        assert place.lines()[:kept] == lines[:kept]
        place.check()

    def test_what_was_cut_off_does_not_answer_for_what_is_written_instead(self, place: Place) -> None:
        """The cache of vectors had those of the events that are gone."""
        with place.open() as store:
            assert store.reader.has_vector().all()
        place.harm(len(place.lines()) - 3)
        cut_journal(found(place), place.config)
        with place.open() as store:
            new = store.insert_memory({"type": "episodic", "content": "written instead"})
            (vector,) = FakeEmbedder(16).embed(["written instead"])
            assert store.get_memory(new.id).embedding.tobytes() == vector.tobytes()


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
        assert len((result.quarantine / "events.jsonl").read_bytes().splitlines()) == len(before)
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
        forget_journal(place.config.home)
        refuses(place)
        result = restore_journal(place.whole, place.config)
        assert result.lost == total - result.kept_seq
        place.check()

    def test_a_file_that_is_no_database_any_more(self, place: Place) -> None:
        total = len(place.lines())
        forget_journal(place.config.home)
        (place.config.home / "memgraph.db").write_bytes(b"nonsense" * 1000)
        result = restore_journal(place.whole, place.config)
        assert result.lost == total - result.kept_seq
        assert (result.quarantine / "memgraph.db").read_bytes() == b"nonsense" * 1000
        place.check()

    @pytest.mark.parametrize("harm", ["DROP TABLE tenant", "UPDATE tenant SET store_id = '../evil'"])
    def test_a_database_that_names_no_store_any_more(self, place: Place, harm: str) -> None:
        total = len(place.lines())
        change(place.config.home, harm)
        result = restore_journal(place.whole, place.config)
        assert result.lost == total - result.kept_seq
        assert (result.quarantine / "memgraph.db").exists()
        place.check()

    def test_a_database_of_a_later_release_stays(self, place: Place) -> None:
        make_newer(place.config.home)
        before = (place.config.home / "memgraph.db").read_bytes()
        with pytest.raises(JournalError, match="install a newer memgraph"):
            restore_journal(place.whole, place.config)
        assert (place.config.home / "memgraph.db").read_bytes() == before
        assert not (place.config.home / "quarantine").exists()

    def test_a_damaged_database_in_use_stays(self, place: Place) -> None:
        forget_journal(place.config.home)
        (place.config.home / "memgraph.db").write_bytes(b"nonsense" * 1000)
        config = place.config.model_copy(update={"lock_timeout_s": 0.05})
        with writer_lock(config.home).held(1.0), pytest.raises(BusyError):
            restore_journal(place.whole, config)
        assert (place.config.home / "memgraph.db").read_bytes() == b"nonsense" * 1000
        assert not (place.config.home / "quarantine").exists()

    def test_missing_and_damaged_vectors(self, place: Place) -> None:
        before = VectorTable(place.config.home).rows()
        VectorTable(place.config.home).remove(3)
        assert restore_journal(place.whole, place.config).lost == 0
        assert VectorTable(place.config.home).rows() == before
        place.check()

    def test_what_does_not_fit_changes_nothing(self, place: Place, tmp_path: Path) -> None:
        other = Place(tmp_path / "other")
        with other.open() as store:
            store.insert_memory({"type": "episodic", "content": "another store"})
            store.backup(tmp_path / "other.tar.gz")
        shutil.copytree(other.config.keys_home, place.config.keys_home, dirs_exist_ok=True)
        before = tables(place.config.home)
        with pytest.raises(BackupError, match="of another store"):
            restore_journal(tmp_path / "other.tar.gz", place.config)
        data = bytearray(place.backup.read_bytes())
        data[len(data) // 2] ^= 1
        place.backup.write_bytes(data)
        with pytest.raises(BackupError, match="damaged"):
            restore_journal(place.backup, place.config)
        with pytest.raises(BackupError, match="memgraph restore"):
            restore_journal(place.whole, place.config.model_copy(update={"home": tmp_path / "nothing"}))
        assert tables(place.config.home) == before
        assert not list(place.config.home.glob("[.]repairing*"))
        assert not (place.config.home / "quarantine").exists()

    @pytest.mark.parametrize("place_of_crash", ["fill", "append", "accept_end"])
    def test_broken_off_anywhere_the_same_call_repairs_it(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, place_of_crash: str
    ) -> None:
        before = place.lines()
        place.harm(4)
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
                restore_journal(place.backup, place.config)
        result = restore_journal(place.backup, place.config)
        assert result.lost == 0
        assert place.lines()[: len(before)] == before
        place.check()
