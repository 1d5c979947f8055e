"""Retention: a compaction purges memories that were deleted longer ago than the days, and nothing else changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemGraph
from memgraph.errors import BackupError, InvalidInputError, NotFoundError, StorageError
from memgraph.lifecycle.lessons import compress
from memgraph.model.events.records import FADED
from memgraph.model.timestamps import to_iso
from memgraph.store.compaction import compact
from memgraph.store.maintenance.keys import reseal_store, rotate_key
from memgraph.store.repair import drop_baseline, restore_journal
from memgraph.store.restoring import restore
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import VectorTable, everything, harm_event, raw_lines

SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The password of the archive was painted on the door by somebody"
WORDS = (SECRET, OTHER, "secret-tag", "Secret title", "a private reason")
BEGINNING, LATER = "2026-02-01T09:00:00.000Z", "2026-02-20"


def config_of(folder: Path, name: str = "store", days: int = 0) -> AgentMemoryConfig:
    return AgentMemoryConfig(home=folder / name, keys_home=folder / "keys", archive_retention_days=days)


def opened(folder: Path, clock: FakeClock, name: str = "store") -> Any:
    return AgentMemoryStore(config_of(folder, name), embedder=FakeEmbedder(64), clock=clock)


def words_in(folder: Path) -> set[str]:
    """Return which of the words are in any file of a store, compressed parts unpacked."""
    data = everything(folder)
    return {word for word in WORDS if word.encode() in data}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], str]:
    """A store of some weeks, of which most can be archived; the ids of its memories by what happened to them; its last day."""
    folder, clock = tmp_path_factory.mktemp("aged"), FakeClock(BEGINNING)
    store = opened(folder, clock)
    memory = MemGraph(store)
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
    """Return what a store says of its present, and of its past but deleted memories."""

    def ask(store: Any) -> Any:
        with store.as_agent("planner") as agents, store.at("2026-02-12") as then:
            return {
                "digest": store.digest(),
                "listed": [memory.id for memory in store.get_all_memories()],
                "links": sorted(map(repr, store.every_link())),
                "agent": agents.digest(),
                "then": [memory.id for memory in then.every_memory()],
            }

    return ask


def test_only_deleted_memories_go(aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store:
        before = answers(store)
    compact(config_of(tmp_path), before=LATER, clock=clock)
    assert words_in(tmp_path / "store") == set(WORDS)
    done = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert done.removed_texts == 3, "deleted, changed and closed"
    assert words_in(tmp_path / "store") == set()
    with opened(tmp_path, clock) as store:
        after = answers(store)
        gone = {aged[name] for name in ("deleted", "changed", "closed")}
        assert [one for one in before.pop("then") if one not in gone] == after.pop("then")
        assert after == before
        assert store.verify(deep=True) == store._journal.tail.seq
        store.rebuild()
        assert store.digest() == before["digest"]
        assert store.notices == []
    assert words_in(tmp_path / "store") == set()


def test_what_was_deleted_lately_or_is_of_an_open_task_can_be_restored(
    aged: dict[str, str], clock: FakeClock, tmp_path: Path
) -> None:
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        assert store.undelete(aged["late"]).content == "Deleted late"
        assert store.undelete(aged["open"]).content == "Of an open task"
        assert store.get_memory(aged["back"]).content == "It came back"
        with pytest.raises(NotFoundError):
            store.undelete(aged["deleted"])


def test_the_closing_of_a_task_frees_its_texts(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        MemGraph(store).tasks.set_status("one", "closed")
    assert compact(config_of(tmp_path, days=3), before=LATER, clock=clock).removed_texts == 1
    with opened(tmp_path, clock) as store, pytest.raises(NotFoundError):
        store.undelete(aged["open"])


def test_again_and_not_too_early(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    assert compact(config_of(tmp_path, days=300), before=LATER, clock=clock).removed_texts == 0
    assert SECRET in words_in(tmp_path / "store")
    planned = compact(config_of(tmp_path, days=3), before=LATER, dry_run=True, clock=clock)
    assert SECRET in words_in(tmp_path / "store")
    done = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert planned.removed_texts == done.removed_texts == 3
    again = compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert (again.removed_texts, again.events_left) == (0, done.events_left), "and nothing is recorded"
    with pytest.raises(InvalidInputError, match="archive_retention_days"):
        config_of(tmp_path, days=-1)


def test_vectors_of_removed_texts_go(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    before = VectorTable(tmp_path / "store").rows()
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    after = VectorTable(tmp_path / "store").rows()
    assert len(before.keys() - after.keys()) == 4, "of three memories, one of which had two texts"
    assert after.items() <= before.items()
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)


def test_a_vector_of_a_later_model_goes_too(clock: FakeClock, tmp_path: Path) -> None:
    later = FakeEmbedder(32, name="other")
    with opened(tmp_path, clock) as store:
        gone = store.insert_memory({"type": "episodic", "content": SECRET}).id
        store.reembed(later)
    with AgentMemoryStore(config_of(tmp_path), embedder=later, clock=clock) as store:
        store.delete_memory(gone)
        store.insert_memory({"type": "episodic", "content": "Something"})
    clock.advance(days=60)
    assert compact(config_of(tmp_path, days=3), before="2027-01-01", clock=clock).removed_texts == 1
    for model in ("fake", "other"):
        assert 0 not in VectorTable(tmp_path / "store", model).rows(), model
    with AgentMemoryStore(config_of(tmp_path), embedder=later, clock=clock) as store:
        assert store.verify(deep=True)


def test_what_was_derived_from_them_stays(clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store:
        base = {"type": "episodic", "project_id": "shop", "outcome": "negative", "tags": ["auth", "jwt"]}
        sources = [
            store.insert_memory({**base, "content": f"Attempt {n} at jwt failed with E{n}.", "build_id": f"b{n}"}).id
            for n in range(3)
        ]
        assert compress(store, embedder=store.embedder).compressed == 1
        (made,) = store.query_by_type("semantic")
        for one in sources:
            store.delete_memory(one)
    clock.advance(days=60)
    assert compact(config_of(tmp_path, days=3), before="2027-01-01", clock=clock).removed_texts == 3
    with opened(tmp_path, clock) as store:
        assert store.get_memory(made.id).content == made.content
        assert store.verify(deep=True)
    assert b"failed with E1." not in everything(tmp_path / "store")


def test_what_was_learned_from_them_is_known_as_such(tmp_path: Path) -> None:
    """Sleep goes on with it, and does not learn it a second time."""
    clock = FakeClock(BEGINNING)

    def learn(store: Any, *numbers: int) -> list[str]:
        base = {"type": "episodic", "project_id": "shop", "outcome": "negative", "tags": ["auth", "oauth"]}
        texts = [f"Attempt {number} at oauth failed with E{number}." for number in numbers]
        drafts = [
            {**base, "content": text, "build_id": f"b{number}"} for number, text in zip(numbers, texts, strict=True)
        ]
        return [one.id for one in store.insert_memories(drafts)]

    with opened(tmp_path, clock) as store:
        faded = learn(store, 11, 12, 13, 14)
        assert compress(store, embedder=store.embedder).compressed == 1
        (kept,) = store.query_by_type("semantic")
        store.delete_memory(faded[0], reason=FADED)
    clock.advance(days=30)
    assert compact(config_of(tmp_path, days=3), before="2026-02-20", clock=clock).removed_texts == 1
    with opened(tmp_path, clock) as store:
        learn(store, 15)
        result = compress(store, embedder=store.embedder)
        assert (result.compressed, result.updated) == (0, 1)
        (after,) = store.query_by_type("semantic")
        assert after.id == kept.id


def test_keys_change(aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path) -> None:
    rotate_key(config_of(tmp_path), clock=clock)
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        before = answers(store)
    reseal_store(config_of(tmp_path), clock=clock)
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
        assert answers(store) == before
    assert compact(config_of(tmp_path, days=3), before=LATER, clock=clock).removed_texts == 0


def test_a_killed_retention_is_done_again(
    aged: dict[str, str], clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the compaction and the purge, and in the middle of the purge."""
    for place in ("memgraph.store.compaction._purged", "memgraph.store.purge.purging.Purging._complete"):

        def crash(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(place, crash)
            with pytest.raises(KeyboardInterrupt):
                compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    assert words_in(tmp_path / "store") == set()


def test_a_view_of_the_past_does_not_keep_them(aged: dict[str, str], clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store, store.at("2026-02-05") as view:
        assert SECRET in {one.content for one in view.every_memory()}
        store.flush()
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store, store.at("2026-02-05") as view:
        assert SECRET not in {one.content for one in view.every_memory()}
    assert words_in(tmp_path / "store") == set()


def test_there_must_be_a_store(tmp_path: Path, clock: FakeClock) -> None:
    for run in (compact, partial(compact, dry_run=True)):
        with pytest.raises(StorageError, match="there is no store"):
            run(config_of(tmp_path, "elsewhere"), clock=clock)
    assert not (tmp_path / "elsewhere").exists()


def test_backups(aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path) -> None:
    with opened(tmp_path, clock) as store:
        store.backup(tmp_path / "before.tar.gz")
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        before = answers(store)
        with pytest.raises(BackupError, match="make a full backup"):
            store.backup(tmp_path / "more.tar.gz", incremental=True)
        store.backup(tmp_path / "full.tar.gz")
    restore(tmp_path / "full.tar.gz", tmp_path / "copy", keys_home=tmp_path / "keys", clock=clock)
    with opened(tmp_path, clock, "copy") as store:
        assert answers(store) == before
        store.verify(deep=True)
    assert words_in(tmp_path / "copy") == set()
    restore(tmp_path / "before.tar.gz", tmp_path / "second", keys_home=tmp_path / "keys", clock=clock)
    with opened(tmp_path, clock, "second") as store:
        assert store.undelete(aged["deleted"]).content == SECRET, "an older backup has it"


def test_repaired_from_a_backup_from_before(
    aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path
) -> None:
    """What was purged since is purged again."""
    with opened(tmp_path, clock) as store:
        store.backup(tmp_path / "before.tar.gz")
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        before = answers(store)
    harm_event(tmp_path / "store", len(raw_lines(tmp_path / "store")) - 2)
    restored = restore_journal(tmp_path / "before.tar.gz", config_of(tmp_path), clock=clock)
    assert restored.purged_again > 0
    assert words_in(tmp_path / "store") == set()
    with opened(tmp_path, clock) as store:
        assert store.verify(deep=True)
        assert answers(store) == before


def test_without_the_baseline(aged: dict[str, str], answers: Any, clock: FakeClock, tmp_path: Path) -> None:
    compact(config_of(tmp_path, days=3), before=LATER, clock=clock)
    with opened(tmp_path, clock) as store:
        before = answers(store)
    drop_baseline(config_of(tmp_path))
    with opened(tmp_path, clock) as store:
        store.rebuild()
        assert answers(store) == before
        assert store.verify(deep=True)
