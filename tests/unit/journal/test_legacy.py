"""The journal of a store of release 0.1 or 0.2 is moved into the database once, and whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.errors import (
    DamagedJournalError,
    JournalError,
    KeyMissingError,
    MemGraphError,
    TruncatedJournalError,
)
from memgraph.journal import legacy
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.opening import open_journal
from memgraph.model.events.memories import MemoryAdded, VectorRef
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.store import repair_store
from memgraph.store.maintenance import migration
from memgraph.store.repair import cut_journal, find_damage
from tests.unit.journal.conftest import NOW
from tests.witness import copied

Open = Callable[..., Journal]
STORES = Path(__file__).parents[2] / "fixtures" / "stores"
RELEASES = sorted(path.name for path in STORES.iterdir() if (path / "store").exists())


class Earlier:
    """A store as release 0.2 has left it: five events, two of them in one commit, and two vectors."""

    def __init__(self, home: Path, journal: Journal) -> None:
        self.home, self.store_id = home, journal.store_id
        self.lines = [line.data + b"\n" for line in journal.every_line()]
        self.vectors = journal.vectors("m", 4).rows(2).tobytes()
        self.folder = home / "journal"
        journal.close()
        for path in home.iterdir():
            if path.is_file():
                path.unlink()
        self.folder.mkdir()
        (self.folder / "vectors").mkdir()
        (self.folder / "manifest.json").write_text(json.dumps({"format": 1, "store_id": self.store_id}))
        (self.folder / "vectors" / "m.f32").write_bytes(self.vectors)
        self.write(self.lines)

    @property
    def segment(self) -> Path:
        return self.folder / "000000000001.jsonl"

    def write(self, lines: list[bytes]) -> None:
        self.segment.write_bytes(b"".join(lines))

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def earlier(journal: Journal, write: Any, added: Callable[..., MemoryAdded], tmp_path: Path) -> Earlier:
    vectors = journal.vectors("m", 4)
    with journal.locked(), journal.committing():
        hashes = vectors.write(0, np.arange(1, 9, dtype=np.float32).reshape(2, 4))
        journal.append([CommitDraft("system", [EmbeddingSwitched(model="m", dimension=4)])], NOW)
    refs = [VectorRef(model="m", row=row, sha256=sha256) for row, sha256 in enumerate(hashes)]
    write(journal, added(1).model_copy(update={"vector": refs[0]}))
    write(journal, added(2).model_copy(update={"vector": refs[1]}), added(3))
    return Earlier(tmp_path / "store", journal)


def test_every_byte_of_every_event_and_vector_is_moved(earlier: Earlier, open_one: Open) -> None:
    before = earlier.files()
    journal = open_one()
    assert [line.data + b"\n" for line in journal.every_line()] == earlier.lines
    assert journal.vectors("m", 4).rows(2).tobytes() == earlier.vectors
    assert (journal.store_id, journal.verify()) == (earlier.store_id, 5)
    kept = earlier.home / "journal-0.2"
    where = f"was moved into {earlier.home / 'memgraph.db'}; {kept} is kept until `memgraph migrate --finish`"
    assert journal.notices == [f"the journal of an earlier release {where}"]
    assert not earlier.folder.exists()
    assert {path.name: path.read_bytes() for path in kept.rglob("*") if path.is_file()} == before
    again = open_one()
    assert (again.notices, again.tail) == ([], journal.tail)


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_release_has_signed_stays_as_it_is(release: str, tmp_path: Path) -> None:
    folder = copied(STORES / release, tmp_path / "copy")
    data = b"".join(path.read_bytes() for path in sorted((folder / "store" / "journal").glob("*.jsonl")))
    journal = open_journal(
        folder / "store",
        FileKeys(folder / "keys"),
        keys_home=folder / "keys",
        now=lambda: "",
        created_by="",
        verification_days=None,
    )
    assert b"".join(line.data + b"\n" for line in journal.every_line()) == data
    assert journal.verify() == data.count(b"\n")
    journal.close()


def test_what_was_kept_is_removed_on_request(earlier: Earlier, open_one: Open, config: Any) -> None:
    open_one()
    assert migration.finish(config) == earlier.home / "journal-0.2"
    assert not (earlier.home / "journal-0.2").exists()
    assert migration.finish(config) is None
    assert open_one().verify() == 5


def test_a_torn_final_commit_that_was_not_acknowledged_is_left_out(
    earlier: Earlier, open_one: Open, write: Any, added: Any, tmp_path: Path
) -> None:
    head = tmp_path / "keys" / "heads" / earlier.store_id
    head.write_text(json.dumps({"seq": 3, "signature": json.loads(earlier.lines[2])["signature"]}))
    for kept in ([*earlier.lines[:3], earlier.lines[3]], [*earlier.lines[:4], earlier.lines[4][:-40]]):
        earlier.write(kept)
    journal = open_one()
    assert journal.tail.seq == 3
    write(journal, added(9))
    assert open_one().verify() == 4


def test_an_acknowledged_commit_that_is_torn_is_refused_and_nothing_moved(earlier: Earlier, open_one: Open) -> None:
    earlier.write(earlier.lines[:4])
    before = earlier.files()
    for _ in range(2):
        with pytest.raises(TruncatedJournalError, match=r"journal ends at event 3, .* 5 were") as refused:
            open_one()
        assert refused.value.path == earlier.folder
    assert earlier.files() == before
    earlier.write(earlier.lines)
    assert open_one().verify() == 5


HARMS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "changed": lambda lines: [lines[0], lines[1], lines[2].replace(b"Memory 1", b"Memory 7"), *lines[3:]],
    "swapped": lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
    "repeated": lambda lines: [lines[0], lines[0], *lines[1:]],
    "dropped": lambda lines: [lines[0], *lines[2:]],
    "garbage": lambda lines: [lines[0], b"garbage\n", *lines[1:]],
    "no commit's end": lambda lines: [*lines[:3], lines[3], lines[2].replace(b'"seq":3', b'"seq":5')],
    "spaces": lambda lines: [lines[0], lines[1][:-1] + b" \n", *lines[2:]],
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_one_is_refused_and_nothing_is_moved(earlier: Earlier, open_one: Open, harm: str) -> None:
    earlier.write(HARMS[harm](earlier.lines))
    before = earlier.files()
    for _ in range(2):
        with pytest.raises(DamagedJournalError, match=r"store/journal.*memgraph repair"):
            open_one()
    assert earlier.files() == before
    assert not (earlier.home / "journal-0.2").exists()
    earlier.write(earlier.lines)
    assert open_one().verify() == 5


def test_one_without_its_key_is_refused(earlier: Earlier, open_one: Open, keys: Any) -> None:
    path = keys.path(earlier.store_id)
    stored = path.read_bytes()
    path.unlink()
    with pytest.raises(KeyMissingError, match=earlier.store_id):
        open_one()
    journal = open_one(allow_unverified=True)
    assert [line.data + b"\n" for line in journal.every_line()] == earlier.lines
    assert journal.is_read_only
    journal.close()
    assert earlier.segment.exists(), "what nothing proves is not moved"
    path.write_bytes(stored)
    assert open_one().verify() == 5


def test_a_store_that_may_not_be_written_is_read_without_moving(
    earlier: Earlier, open_one: Open, write: Any, added: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = earlier.files()
    denied = lambda *paths: next((str(one) for one in paths if earlier.home in (one, *one.parents)), None)  # noqa: E731
    for module in ("memgraph.journal.sql", "memgraph.journal.opening"):
        monkeypatch.setattr(f"{module}.refused_writes", denied)
    journal = open_one()
    assert (journal.verify(), journal.vectors("m", 4).rows(2).tobytes()) == (5, earlier.vectors)
    with pytest.raises(MemGraphError, match="may not be written"):
        write(journal, added(9))
    journal.close()
    assert earlier.files() == before
    assert not (earlier.home / "memgraph.db").exists()
    monkeypatch.undo()
    assert open_one().verify() == 5


@pytest.mark.parametrize("place", ["put", "load", "put_head", "vectors", "finish"])
def test_a_move_that_was_cut_off_is_made_once(earlier: Earlier, open_one: Open, place: str) -> None:
    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        if place in ("vectors", "finish"):
            patched.setattr(legacy, "_move_vectors" if place == "vectors" else "finish", die)
        else:
            patched.setattr(Journal, place, die)
        with pytest.raises(KeyboardInterrupt):
            open_one()
    assert earlier.files()["000000000001.jsonl"] == b"".join(earlier.lines)
    again = open_one()
    assert (again.verify(), len(again.notices)) == (5, 1)
    assert again.vectors("m", 4).rows(2).tobytes() == earlier.vectors
    assert not earlier.folder.exists()


@pytest.mark.parametrize("manifest", ["", "{}", "[]", '{"format": 1}', '{"format": 99, "store_id": "x"}', "\x00"])
def test_a_damaged_manifest_is_refused(earlier: Earlier, open_one: Open, manifest: str) -> None:
    (earlier.folder / "manifest.json").write_text(manifest)
    with pytest.raises(JournalError, match=r"manifest|format"):
        open_one()


def test_without_its_manifest_it_is_not_a_new_store(earlier: Earlier, open_one: Open) -> None:
    (earlier.folder / "manifest.json").unlink()
    with pytest.raises(JournalError, match="has no manifest"):
        open_one()
    assert not (earlier.home / "memgraph.db").exists()


@pytest.mark.parametrize("name", ["baseline.json", "archive", "000000000002.jsonl.zst"])
def test_what_a_version_between_releases_has_written_is_refused(earlier: Earlier, open_one: Open, name: str) -> None:
    (earlier.folder / name).write_bytes(b"")
    with pytest.raises(JournalError, match="development version, which this release does not read"):
        open_one()


class TestRepair:
    """A damaged journal of an earlier release is examined where it is, and moved as far as it can be read when it is repaired."""

    def test_an_examination_changes_nothing(self, earlier: Earlier, config: Any) -> None:
        earlier.write(HARMS["changed"](earlier.lines))
        before = earlier.files()
        damage = find_damage(config)
        assert damage is not None
        assert (damage.kept.seq, damage.later_events, damage.lost) == (2, 2, 3)
        with pytest.raises(DamagedJournalError):
            repair_store(config)
        assert earlier.files() == before
        assert not (earlier.home / "memgraph.db").exists()

    def test_its_damage_can_be_cut_off(self, earlier: Earlier, config: Any, open_one: Open) -> None:
        earlier.write(HARMS["changed"](earlier.lines))
        damage = find_damage(config)
        assert damage is not None
        found = cut_journal(damage, config)
        assert (found.kept_seq, found.lost) == (2, 3)
        journal = open_one()
        assert journal.verify() == journal.tail.seq == found.recorded_as + 1
        assert (earlier.home / "journal-0.2" / "000000000001.jsonl").exists()

    def test_a_truncated_one_can_be_accepted(self, earlier: Earlier, config: Any, open_one: Open) -> None:
        earlier.write(earlier.lines[:2])
        found = repair_store(config)
        assert (found.seq, list(found.lost)) == (2, [3, 4, 5])
        repair_store(config, accept_head=found)
        journal = open_one()
        assert (journal.verify(), next(journal.every_line()).data + b"\n") == (3, earlier.lines[0])


def test_a_whole_store_is_used_on(tmp_path: Path) -> None:
    folder = copied(STORES / "0.2.0", tmp_path / "copy")
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    assert not repair_store(config).is_contradicted
