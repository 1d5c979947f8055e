"""Retention: archived segments lose their signatures and the words of deleted memories, and nothing else changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from memgraph.journal.closed import files
from memgraph.journal.closed.condensed import CondensedSegments
from memgraph.journal.swap import ReplacedJournalError

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemGraph
from memgraph.errors import (
    BackupError,
    DamagedJournalError,
    InvalidInputError,
    JournalError,
    NotFoundError,
    StorageError,
)
from memgraph.journal.envelope import canonical, is_unsigned
from memgraph.journal.keys import FileKeys
from memgraph.lifecycle.generalisation.compress import compress
from memgraph.model.events.erasure import REMOVED_TEXT
from memgraph.model.events.lifecycle import FADED
from memgraph.model.timestamps import to_iso
from memgraph.store.backup.restoring import restore
from memgraph.store.compaction import compact, preview_compaction
from memgraph.store.maintenance.keys import list_keys, reseal_store, rotate_key
from memgraph.store.repair import cut_journal, drop_baseline, find_damage, restore_journal
from memgraph.testing import FakeClock, FakeEmbedder
from memgraph.viz.series.series import learning_series
from tests.engines import in_memory

SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The password of the archive was painted on the door by somebody"
BEGINNING, LATER = "2026-02-01T09:00:00.000Z", "2026-02-20"


def config_of(folder: Path, name: str = "store", days: int = 0) -> AgentMemoryConfig:
    return AgentMemoryConfig(home=folder / name, keys_home=folder / "keys", archive_retention_days=days)


def opened(folder: Path, clock: FakeClock, name: str = "store") -> Any:
    return AgentMemoryStore(config_of(folder, name), embedder=FakeEmbedder(64), clock=clock, engine=in_memory())


def words_in(folder: Path) -> set[str]:
    """Return which of the words are in any file, compressed ones unpacked."""
    found = set()
    for path in (one for one in folder.rglob("*") if one.is_file()):
        data = path.read_bytes()
        if path.suffix == ".zst":
            data = zstandard.ZstdDecompressor().stream_reader(data).read()
        found |= {
            word for word in (SECRET, OTHER, "secret-tag", "Secret title", "a private reason") if word.encode() in data
        }
    return found


def former_keys(folder: Path, journal: Any) -> list[Any]:
    """Return the keys that signed before the one in use."""
    known = FileKeys(folder / "keys").keys(journal.store_id)
    return [key for key in known if key.secret != journal.signing_key.secret]


def added_in(folder: Path) -> list[str]:
    """Return the memories that are added in archived segments."""
    journal = folder / "store" / "journal"
    lines = [line for name in archived(folder) for line in files.read_all(journal, name).split(b"\n")[:-1]]
    events = [json.loads(line) for line in lines if b'"type":"memory.added"' in line]
    return [event["payload"]["memory"]["id"] for event in events if event["payload"]]


def views_in(folder: Path) -> list[str]:
    """Return the names of the kept views of the past, without those of agents."""
    return [path.name for path in (folder / "store" / "past").iterdir() if path.name != "agents"]


def archived(folder: Path, name: str = "store") -> list[str]:
    return [files.name_of(path) for path in files.files_in(folder / name / "journal" / "archive")]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], str]:
    """A store of some weeks in several segments, of which most can be archived; the ids of its memories by what happened to them; its last day."""
    folder, clock = tmp_path_factory.mktemp("aged"), FakeClock(BEGINNING)
    store = opened(folder, clock)
    memory = MemGraph(store)
    store._journal.segments._segment_bytes = 3_000
    ids: dict[str, str] = {}

    def add(name: str, text: str, **more: Any) -> None:
        ids[name] = store.insert_memory({"type": "episodic", "content": text, "project_id": "P", **more}).id
        clock.advance(days=1)

    add("kept", "The build failed in login.py", outcome="failure", tags=["auth"])
    add("deleted", SECRET, tags=["secret-tag"], title="Secret title", outcome="failure", failure_fingerprint="f" * 16)
    add("changed", "Something else", tags=["auth"])
    store.update_memory(ids["changed"], content=OTHER, title="Secret title")
    memory.tasks.upsert("One", task_id="one")
    memory.tasks.upsert("Two", task_id="two")
    add("open", "Of an open task", task_id="one")
    add("closed", f"Of a closed task: {OTHER}", task_id="two")
    add("back", "It came back")
    add("private", "Nobody else may know", privacy_tier="private", domain="health")
    store.link(ids["deleted"], "SUPERSEDES", ids["kept"], reason="a private reason", score=0.5)
    store.record_access(ids["kept"])
    for name in ("deleted", "changed", "open", "closed", "back"):
        store.delete_memory(ids[name], **({"reason": "a private reason"} if name == "deleted" else {}))
        clock.advance(days=1)
    memory.tasks.set_status("two", "closed")
    for number in range(6):
        add(f"day {number}", f"On day {number} it worked", outcome="success")
    add("late", "Deleted late")
    for number in range(6):
        add(f"later {number}", f"On day {number} it worked again")
    store.delete_memory(ids["late"])
    store.undelete(ids["back"])
    store.flush()
    store.close()
    clock.advance(days=1)
    return folder, ids, to_iso(clock())


@pytest.fixture
def clock(template: tuple[Path, dict[str, str], str]) -> FakeClock:
    return FakeClock(template[2])


@pytest.fixture
def aged(template: tuple[Path, dict[str, str], str], tmp_path: Path) -> dict[str, str]:
    """Give the test a copy of the store, and return the ids of its memories."""
    shutil.copytree(template[0], tmp_path, dirs_exist_ok=True)
    return template[1]


@pytest.fixture
def answers() -> Callable[[Any], Any]:
    """Return what a store says of its present, its past and its learning."""

    def ask(store: Any) -> Any:
        with (
            store.as_agent("planner") as agents,
            store.at("2026-02-05") as early,
            store.at("2026-02-12") as then,
            store.at("2026-02-12", recorded=True) as recorded,
        ):
            return {
                "digest": store.digest(),
                "charts": [one.to_dict() for one in learning_series(store)],
                "of the project": [one.to_dict() for one in learning_series(store, project_id="P", bucket="day")],
                "listed": [memory.id for memory in store.get_all_memories()],
                "links": sorted(map(repr, store.every_link())),
                "agent": agents.digest(),
                "early": [memory.id for memory in early.every_memory()],
                "texts then": {memory.id: memory.content for memory in then.every_memory()},
                "recorded then": [memory.id for memory in recorded.every_memory()],
            }

    return ask


def test_only_words_of_deleted_memories_go(
    aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path
) -> None:
    with opened(tmp_path, clock) as store:
        before = answers(store)
    compact(config_of(tmp_path), before=LATER, clock=clock)
    assert words_in(tmp_path) >= {SECRET, OTHER, "secret-tag", "Secret title", "a private reason"}
    done = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert done.removed_texts == 3, "deleted, changed and closed"
    assert done.condensed_segments == len(archived(tmp_path)) > 2
    shutil.rmtree(tmp_path / "store" / "graph", ignore_errors=True)
    shutil.rmtree(tmp_path / "store" / "index", ignore_errors=True)
    assert words_in(tmp_path) == set()
    with opened(tmp_path, clock) as store:
        after = answers(store)
        texts, now = before.pop("texts then"), after.pop("texts then")
        assert after == before
        gone = {aged[name] for name in ("deleted", "changed", "closed")}
        assert {one: text for one, text in texts.items() if one not in gone} == {
            one: text for one, text in now.items() if one not in gone
        }
        assert {now[one] for one in gone & now.keys()} <= {REMOVED_TEXT}
        assert store.verify(deep=True) == store._journal.tail.seq
        store.rebuild()
        assert store.digest() == before["digest"]
        assert store.notices == []
        assert REMOVED_TEXT not in {memory.content for memory in store.get_all_memories(include_suppressed=True)}


def test_what_was_deleted_lately_or_is_of_an_open_task_can_be_restored(
    aged: dict[str, str], clock: FakeClock, tmp_path: Path
) -> None:
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        assert store.undelete(aged["late"]).content == "Deleted late"
        assert store.undelete(aged["open"]).content == "Of an open task"
        assert store.get_memory(aged["back"]).content == "It came back"
        with pytest.raises(NotFoundError, match="was removed after the retention days"):
            store.undelete(aged["deleted"])
        commits = (
            [one for one in store.editing.commits(limit=200) if "memory.deleted" in one.types]
            if hasattr(store, "editing")
            else []
        )
        assert commits is not None


def test_the_closing_of_a_task_frees_its_texts(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        MemGraph(store).tasks.set_status("one", "closed")
    done = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert (done.removed_texts, done.condensed_segments > 0) == (1, True)
    with opened(tmp_path, clock) as store, pytest.raises(NotFoundError, match="retention days"):
        store.undelete(aged["open"])


def test_again_and_not_too_early(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    assert compact(config_of(tmp_path, days=300), before=LATER, clock=clock).condensed_segments == 0
    assert not (tmp_path / "store" / "journal" / "condensed.json").exists()
    assert SECRET in words_in(tmp_path / "store" / "journal")
    seq = compact(config_of(tmp_path, days=3), before=LATER, clock=clock).events_left
    again = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert (again.condensed_segments, again.removed_texts, again.events_left) == (0, 0, seq), "and nothing is recorded"
    assert compact(config_of(tmp_path), before=LATER, clock=clock).condensed_segments == 0
    with pytest.raises(InvalidInputError, match="archive_retention_days"):
        config_of(tmp_path, days=-1)


def test_a_young_archive_is_left(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    """Only whole segments whose last event is older than the days."""
    done = compact(config_of(tmp_path, days=16), before=LATER, clock=clock)
    names = archived(tmp_path)
    assert 0 < done.condensed_segments < len(names)
    unsigned = [is_unsigned(files.read_all(tmp_path / "store" / "journal", name)) for name in names]
    assert unsigned == [True] * done.condensed_segments + [False] * (len(names) - done.condensed_segments)
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
    more = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert more.condensed_segments >= len(names) - done.condensed_segments


def test_vectors_of_removed_texts_go(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store:
        file = store._journal.vectors("fake", 64)
        rows = [file.stored(row) for row in range(file.available())]
        assert all(map(any, rows))
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    after = [file.stored(row) for row in range(file.available())]
    assert len(after) == len(rows)
    assert sum(not any(row) for row in after) == 4, "of three memories, one of which had two texts"
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)


def test_the_old_keys_are_not_needed(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    rotate_key(config_of(tmp_path), clock=clock)
    clock.advance(days=60)
    compact(config_of(tmp_path, days=3), before="2027-01-01", clock=clock)
    (path,) = (tmp_path / "keys" / "keys").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "earlier": []}))
    with opened(tmp_path, clock) as store:
        unsigned = [is_unsigned(line.data) for line in store._journal.every_line(store._journal.start.position)]
        assert unsigned.index(False) == sum(unsigned)


def test_what_was_learned_and_deleted_is_not_learned_again(tmp_path: Path) -> None:
    """Sleep knows it by what is left, and tells memories that somebody deleted from those that were collected as faded."""
    clock = FakeClock(BEGINNING)

    def learn(store: Any, *numbers: int, topic: str = "jwt") -> list[str]:
        base = {"type": "episodic", "project_id": "shop", "outcome": "negative", "tags": ["auth", topic]}
        texts = [f"Attempt {number} at {topic} failed with E{number}." for number in numbers]
        drafts = [
            {**base, "content": text, "build_id": f"b{number}"} for number, text in zip(numbers, texts, strict=True)
        ]
        return [one.id for one in store.insert_memories(drafts)]

    with opened(tmp_path, clock) as store:
        store._journal.segments._segment_bytes = 3_000
        learn(store, 1, 2, 3)
        assert compress(store, embedder=store.embedder).compressed == 1
        (made,) = store.query_by_type("semantic")
        store.delete_memory(made.id)
        faded = learn(store, 11, 12, 13, 14, topic="oauth")
        assert compress(store, embedder=store.embedder).compressed == 1
        (kept,) = store.query_by_type("semantic")
        store.delete_memory(faded[0], reason=FADED)
        clock.advance(days=1)
        for number in range(8):
            store.insert_memory({"type": "episodic", "content": f"Something else {number}"})
    clock.advance(days=30)
    done = compact(config_of(tmp_path, days=3), before="2026-02-20", clock=clock)
    assert done.removed_texts == 2
    with opened(tmp_path, clock) as store:
        learn(store, 4, 5)
        learn(store, 15, topic="oauth")
        result = compress(store, embedder=store.embedder)
        assert (result.compressed, result.updated) == (0, 1)
        (after,) = store.query_by_type("semantic")
        assert (after.id, sorted(after.evidence_build_ids)) == (kept.id, ["b11", "b12", "b13", "b14", "b15"])


@pytest.mark.parametrize("first", ["rotated", "condensed"])
def test_keys_change(aged: dict[str, str], clock: FakeClock, tmp_path: Path, first: str) -> None:
    if first == "rotated":
        rotate_key(config_of(tmp_path), clock=clock)
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        before = store.digest(), learning_series(store)
    if first == "condensed":
        rotate_key(config_of(tmp_path), clock=clock)
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
        assert (store.digest(), learning_series(store)) == before
    reseal_store(config_of(tmp_path), clock=clock)
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
        assert (store.digest(), learning_series(store)) == before
    assert [one.state for one in list_keys(config_of(tmp_path), clock=clock).keys] == ["signs", "not needed"]
    assert compact(config_of(tmp_path, days=3), before=LATER, clock=clock).condensed_segments == 0


def test_a_purge_of_what_is_condensed(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store:
        kept = store.insert_memory({"type": "episodic", "content": "Afterwards"}).id
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        receipt = store.purge([aged["kept"]])
        assert store.check_receipt(receipt).changed_since == []
        assert store.verify(deep=True)
        store.rebuild()
        assert store.get_memory(aged["kept"]) is None
        assert store.get_memory(kept) is not None
        digest = store.digest()
    assert b"login.py" not in b"".join(
        files.read_all(tmp_path / "store" / "journal", name) for name in archived(tmp_path)
    )
    with opened(tmp_path, clock) as store:
        assert store.digest() == digest
        assert store.notices == []
        store.purge([aged["deleted"]])  # what is left of it goes, too
        store.verify(deep=True)
    assert aged["deleted"] not in added_in(tmp_path)
    clock.advance(days=90)
    compact(config_of(tmp_path, days=3), before="2026-12-01", clock=clock)
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
        assert store.check_receipt(receipt).events


def test_the_placeholder_is_no_word(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    """Else a purge of one such memory would take the others with it, and whoever quotes it."""
    with opened(tmp_path, clock) as store:
        quoting = store.insert_memory({"type": "episodic", "content": f"Why does the report say {REMOVED_TEXT}?"}).id
        exact = store.insert_memory({"type": "episodic", "content": REMOVED_TEXT}).id
        store.delete_memory(exact)
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        assert [one.id for one in store.preview_purge(match="the retention days").memories] == [quoting]
        preview = store.preview_purge([aged["deleted"]])
        assert [one.id for one in preview.memories] == [aged["deleted"]]
        store.purge([aged["deleted"]])
        assert store.get_memory(quoting) is not None
        assert store.undelete(exact).content == REMOVED_TEXT, "somebody wrote this text, and it is not old"
    assert {aged["changed"], aged["closed"]} <= set(added_in(tmp_path))


def test_a_killed_retention_is_done_again(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    """Whatever is left after the last segment was written: vectors, views of the past, names in the manifest, leftovers of a compression."""
    with opened(tmp_path, clock) as store, store.at("2026-02-05"):
        file = store._journal.vectors("fake", 64)
        assert (tmp_path / "store" / "past").exists()
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    journal = tmp_path / "store" / "journal"
    stored = json.loads((journal / "condensed.json").read_bytes())
    assert stored["body"]["done"]
    leftover = journal / "archive" / ".000000000001.jsonl.zst.77.tmp"
    row = file.available() - 1
    with opened(tmp_path, clock) as store, store.at("2026-02-05"), store._journal.locked():  # as a kill leaves it
        condensed, key = store._journal.condensed, store._journal.signing_key
        leftover.write_text(SECRET)
        names = archived(tmp_path)
        store._journal.closed.forget(names, key, store._journal.ring.find)
        data = files.read_all(journal, names[0])
        condensed.replace(names[0], data, data, [key])
    zeroed = [number for number in range(row + 1) if not any(file.stored(number))]
    with file.path.open("r+b") as raw:
        raw.seek(zeroed[0] * file.row_bytes)
        raw.write(b"\x01" * file.row_bytes)
    again = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert (again.condensed_segments, again.removed_texts) == (0, 0)
    assert not any(file.stored(zeroed[0]))
    assert not leftover.exists()
    assert views_in(tmp_path) == []
    named = {one["name"] for one in json.loads((journal / "segments.json").read_bytes())["body"]["segments"]}
    assert named >= set(archived(tmp_path))
    assert json.loads((journal / "condensed.json").read_bytes())["body"]["done"] == stored["body"]["done"]


def test_a_view_in_use_is_removed_by_a_later_compaction(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store:
        with store.at("2026-02-05") as view:
            compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
            assert len(list(view.every_memory())) == 5
            assert len(views_in(tmp_path)) == 1
        compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
        assert views_in(tmp_path) == []


def test_an_event_that_is_not_what_was_signed_changes_nothing(
    aged: dict[str, str], clock: FakeClock, tmp_path: Path
) -> None:
    """All events are verified before the first segment is written: a forged deletion must not cost a memory its words."""
    compact(config_of(tmp_path), before=LATER, clock=clock)
    journal = tmp_path / "store" / "journal"
    name = archived(tmp_path)[-1]
    good = files.read_all(journal, name)
    lines = good.split(b"\n")
    forged = json.loads(lines[0])
    forged["head"]["type"], forged["payload"] = "memory.deleted", {"id": aged["kept"]}
    files.replace(journal, name, b"\n".join([canonical(forged), *lines[1:]]))
    before = {path: path.read_bytes() for path in journal.rglob("*") if path.is_file() and "lock" not in path.name}
    for run in (compact, preview_compaction):
        with pytest.raises(DamagedJournalError):
            run(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert {path: path.read_bytes() for path in before} == before
    assert not (journal / "condensed.json").exists()


def test_a_purge_does_not_sign_what_is_forged(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    journal = tmp_path / "store" / "journal"
    name = archived(tmp_path)[0]
    good = files.read_all(journal, name)
    forged = good.replace(b"login.py", b"evil.py ")
    files.replace(journal, name, forged)
    with opened(tmp_path, clock) as store, pytest.raises(DamagedJournalError, match="does not prove the content"):
        store.purge([aged["kept"]])
    assert files.read_all(journal, name) == forged
    files.replace(journal, name, good)
    with opened(tmp_path, clock) as store:
        assert store.get_memory(aged["kept"]).content == "The build failed in login.py"
        assert store.verify(deep=True)


@pytest.mark.parametrize("is_resealed", [False, True])
def test_a_replaced_key_proves_nothing(
    aged: dict[str, str], clock: FakeClock, tmp_path: Path, is_resealed: bool
) -> None:
    """Not even if the journal does not name it any more, and the manifest is gone."""
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    rotate_key(config_of(tmp_path), clock=clock)
    if is_resealed:
        reseal_store(config_of(tmp_path), clock=clock)
    with opened(tmp_path, clock) as store:
        journal = store._journal
        (former,) = [
            key
            for key in FileKeys(tmp_path / "keys").keys(journal.store_id)
            if key.secret != journal.signing_key.secret
        ]
        name = archived(tmp_path)[0]
        forged = files.read_all(journal.folder, name).replace(b"login.py", b"forged.py")
        forger = CondensedSegments(journal.folder, journal.store_id, journal.ring.find)
        forger.replace(name, files.read_all(journal.folder, name), forged, [former])
        (journal.folder / "segments.json").unlink()
        for read in (store.verify, lambda: learning_series(store), lambda: store.purge([aged["deleted"]])):
            with pytest.raises(DamagedJournalError, match="is not signed with the key that signs the journal"):
                read()
    with opened(tmp_path, clock) as store:
        assert any("is not signed with the key that signs the journal" in notice for notice in store.notices)
    for refused in (
        lambda: drop_baseline(config_of(tmp_path)),
        lambda: compact(config_of(tmp_path, days=3), clock=clock),
    ):
        with pytest.raises(DamagedJournalError, match="is not signed with the key that signs the journal"):
            refused()


def test_a_replaced_key_proves_nothing_without_the_baseline(
    aged: dict[str, str], clock: FakeClock, tmp_path: Path
) -> None:
    """A rotation in a condensed segment is not signed any more: which key signs is known when all events were read."""
    rotate_key(config_of(tmp_path), clock=clock)
    with opened(tmp_path, clock) as store:
        store._journal.segments._segment_bytes = 1_000
        for number in range(4):
            store.insert_memory({"type": "episodic", "content": f"After the rotation {number}"})
            clock.advance(days=1)
    clock.advance(days=9)
    compact(config_of(tmp_path, days=3), before="2027-01-01", clock=clock)
    drop_baseline(config_of(tmp_path))
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
        journal = store._journal
        assert is_unsigned(files.read_all(journal.folder, "000000000001.jsonl"))
        (former,) = [
            key
            for key in FileKeys(tmp_path / "keys").keys(journal.store_id)
            if key.secret != journal.signing_key.secret
        ]
    name = "000000000001.jsonl"
    data = files.read_all(journal.folder, name)
    forger = CondensedSegments(journal.folder, journal.store_id, journal.ring.find)
    forger.replace(name, data, data.replace(b"login.py", b"forged.py"), [former])
    for gone in ("segments.json", "verified.json"):
        (journal.folder / gone).unlink(missing_ok=True)
    with pytest.raises(DamagedJournalError, match="is not signed with the key that signs the journal"):
        opened(tmp_path, clock)


def test_a_process_that_stopped_reading_in_a_condensed_segment(clock: FakeClock, tmp_path: Path) -> None:
    """It is asked to open the store again, as after a resealing, and not to repair anything."""
    with opened(tmp_path, clock) as idle:
        idle.insert_memory({"type": "episodic", "content": "Day 0"})
        with opened(tmp_path, clock) as busy:
            busy._journal.segments._segment_bytes = 3_000
            gone = busy.insert_memory({"type": "episodic", "content": SECRET}).id
            busy.delete_memory(gone)
            for number in range(10):
                clock.advance(days=1)
                busy.insert_memory({"type": "episodic", "content": f"Day {number}"})
        clock.advance(days=40)
        assert compact(config_of(tmp_path, days=3), before="2027-01-01", clock=clock).condensed_segments > 1
        with pytest.raises(ReplacedJournalError, match="open the store again"):
            idle.insert_memory({"type": "episodic", "content": "Idle no more"})
        with pytest.raises(ReplacedJournalError, match="open the store again"):
            idle.get_all_memories()
    with opened(tmp_path, clock) as store:
        assert len(store.get_all_memories()) == 11


def test_a_vector_of_a_later_model_goes_too(clock: FakeClock, tmp_path: Path) -> None:
    later = FakeEmbedder(32, name="other")
    with opened(tmp_path, clock) as store:
        store._journal.segments._segment_bytes = 3_000
        gone = store.insert_memory({"type": "episodic", "content": SECRET}).id
        store.reembed(later)
    with AgentMemoryStore(config_of(tmp_path), embedder=later, clock=clock, engine=in_memory()) as store:
        store._journal.segments._segment_bytes = 3_000
        store.delete_memory(gone)
        for number in range(6):
            clock.advance(days=1)
            store.insert_memory({"type": "episodic", "content": f"Day {number}"})
    clock.advance(days=60)
    assert compact(config_of(tmp_path, days=3), before="2027-01-01", clock=clock).removed_texts == 1
    with AgentMemoryStore(config_of(tmp_path), embedder=later, clock=clock, engine=in_memory()) as store:
        for model, dimension in (("fake", 64), ("other", 32)):
            assert not any(store._journal.vectors(model, dimension).stored(0)), model
        assert store.verify(deep=True)


def test_a_memory_of_which_nothing_is_left(clock: FakeClock, tmp_path: Path) -> None:
    """A reset names it, and a purge has removed everything else: there is nothing to condense again and again."""
    with opened(tmp_path, clock) as store:
        store._journal.segments._segment_bytes = 2_000
        one = store.insert_memory({"type": "episodic", "content": SECRET}).id
        store.insert_memory({"type": "episodic", "content": "Something"})
        store.reset("memory")
        store.purge([one])
        for number in range(6):
            clock.advance(days=1)
            store.insert_memory({"type": "episodic", "content": f"Day {number}"})
    clock.advance(days=60)
    days, before = config_of(tmp_path, days=3), "2027-01-01"
    seen, done = preview_compaction(days, before=before, clock=clock), compact(days, before=before, clock=clock)
    assert (seen.condensed_segments, seen.removed_texts) == (done.condensed_segments, done.removed_texts)
    assert (done.condensed_segments > 0, done.removed_texts) == (True, 1)
    compact(days, before=before, clock=clock)  # the segment in which the first baseline ended
    again = compact(days, before=before, clock=clock)
    assert (again.condensed_segments, again.removed_texts, again.events_left) == (0, 0, 0), (
        "nothing is recorded any more"
    )


def test_there_must_be_a_store(tmp_path: Path, clock: FakeClock) -> None:
    for run in (compact, preview_compaction):
        with pytest.raises(StorageError, match="there is no store here"):
            run(config_of(tmp_path, "elsewhere"), clock=clock)
    assert not (tmp_path / "elsewhere").exists()


def test_backups_hold_the_proof(aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store:
        store.backup(tmp_path / "before.tar.gz")
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        before = answers(store)
        with pytest.raises(BackupError, match="make a full backup"):
            store.backup(tmp_path / "more.tar.gz", incremental=True)
        store.backup(tmp_path / "full.tar.gz")
        store.insert_memory({"type": "episodic", "content": "Later"})
        store.backup(tmp_path / "next.tar.gz", incremental=True)
    restore(tmp_path / "full.tar.gz", tmp_path / "copy", keys_home=tmp_path / "keys", clock=clock)
    with opened(tmp_path, clock, "copy") as store:
        assert answers(store) == before
        store.verify(deep=True)
    restore(tmp_path / "next.tar.gz", tmp_path / "second", keys_home=tmp_path / "keys", clock=clock)
    with pytest.raises(InvalidInputError, match="condensed"):
        restore(tmp_path / "full.tar.gz", tmp_path / "third", keys_home=tmp_path / "keys", until=4, clock=clock)
    restore(tmp_path / "before.tar.gz", tmp_path / "fourth", keys_home=tmp_path / "keys", clock=clock)
    with opened(tmp_path, clock, "fourth") as store:
        assert store.undelete(aged["deleted"]).content == SECRET, "an older backup has it"


def test_repaired_from_a_backup_from_before(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    """It says that texts are back, and the next compaction removes them again."""
    days = config_of(tmp_path, days=3)
    compact(config_of(tmp_path), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        store.backup(tmp_path / "before.tar.gz")
    compact(days, before=LATER, clock=clock)
    (tmp_path / "store" / "journal" / "condensed.json").unlink()
    with pytest.raises(DamagedJournalError):
        opened(tmp_path, clock).verify()
    (tmp_path / "store" / "journal" / "condensed.json").write_bytes(b"?")
    restored = restore_journal(tmp_path / "before.tar.gz", config_of(tmp_path), clock=clock)
    assert (restored.lost, restored.has_texts_back) == (0, True)
    assert SECRET in words_in(tmp_path / "store" / "journal")
    assert compact(days, before=LATER, clock=clock).removed_texts == 3
    assert words_in(tmp_path / "store" / "journal") == set()
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)


def test_repairs(aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path) -> None:
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        before = answers(store)
        store.backup(tmp_path / "full.tar.gz")
    journal = tmp_path / "store" / "journal"
    drop_baseline(config_of(tmp_path))
    with opened(tmp_path, clock) as store:
        assert answers(store) == before
        assert store.verify(deep=True)
    assert compact(config_of(tmp_path, days=3), before=LATER, clock=clock).condensed_segments == 0
    name = archived(tmp_path)[0]
    files.file_of(journal, name).write_bytes(b"?")
    assert find_damage(config_of(tmp_path)).is_in_history
    with pytest.raises(JournalError, match="cutting there would cut off everything"):
        cut_journal(find_damage(config_of(tmp_path)), config_of(tmp_path))
    restored = restore_journal(tmp_path / "full.tar.gz", config_of(tmp_path), clock=clock)
    assert (restored.lost, restored.has_texts_back) == (0, False)
    with opened(tmp_path, clock) as store:
        assert answers(store) == before
        assert store.verify(deep=True)


class TestRefused:
    @pytest.fixture
    def journal(self, aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> Path:
        compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
        return tmp_path / "store" / "journal"

    @pytest.mark.parametrize("how", ["another word", "another order", "a line less", "another outcome"])
    def test_a_changed_condensed_segment(self, journal: Path, clock: FakeClock, tmp_path: Path, how: str) -> None:
        name = archived(tmp_path)[0]
        lines = files.read_all(journal, name).split(b"\n")[:-1]
        if how == "another word":
            lines = [line.replace(b"login.py", b"logon.py") for line in lines]
        elif how == "another order":
            lines = lines[::-1]
        elif how == "a line less":
            lines = lines[:-1]
        else:
            lines = [line.replace(b'"outcome":"negative"', b'"outcome":"positive"') for line in lines]
        data = b"".join(line + b"\n" for line in lines)
        assert data != files.read_all(journal, name)
        files.replace(journal, name, data)
        with opened(tmp_path, clock) as store:
            with pytest.raises(DamagedJournalError, match="does not prove the content"):
                store.verify()
            with pytest.raises(DamagedJournalError, match="does not prove the content"):
                learning_series(store)

    def test_an_unsigned_line_elsewhere(self, journal: Path, clock: FakeClock, tmp_path: Path) -> None:
        """In a segment that is not condensed nobody may leave the signatures out."""
        condensed = files.read_all(journal, archived(tmp_path)[0]).split(b"\n")[1]
        tail = max(journal.glob("*.jsonl"))
        tail.write_bytes(tail.read_bytes() + condensed + b"\n")
        (journal / "verified.json").unlink()
        with pytest.raises(DamagedJournalError, match="it has no signature"):
            opened(tmp_path, clock)

    @pytest.mark.parametrize("what", ["changed", "missing", "of a former key"])
    def test_the_proof(self, journal: Path, clock: FakeClock, tmp_path: Path, what: str) -> None:
        """The present state does not need it: only the history is refused."""
        path = journal / "condensed.json"
        data = path.read_bytes()
        problem = "is not what this store's key signed"
        if what == "of a former key":
            rotate_key(config_of(tmp_path), clock=clock)
            assert path.read_bytes() != data
            path.write_bytes(data)
            problem = "is not signed with the key that signs the journal"
        elif what == "changed":
            path.write_bytes(data.replace(b'"format": 1', b'"format": 2'))
        else:
            path.unlink()
            problem = "it has no signature"
        with opened(tmp_path, clock) as store:
            assert (what == "missing") == (not store.notices)
            assert len(store.get_all_memories()) > 10
            with pytest.raises(DamagedJournalError, match=problem):
                store.verify()
            with pytest.raises(DamagedJournalError, match=problem):
                learning_series(store)

    def test_a_former_content(self, journal: Path, clock: FakeClock, tmp_path: Path) -> None:
        """What was condensed further is not undone by putting the former file back."""
        names = archived(tmp_path)
        former = {name: files.file_of(journal, name).read_bytes() for name in names}
        with opened(tmp_path, clock) as store:
            MemGraph(store).tasks.set_status("one", "closed")
        compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
        changed = [name for name in names if files.file_of(journal, name).read_bytes() != former[name]]
        assert changed
        files.file_of(journal, changed[0]).write_bytes(former[changed[0]])
        with opened(tmp_path, clock) as store, pytest.raises(DamagedJournalError, match="does not prove the content"):
            store.verify()
