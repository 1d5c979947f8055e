"""An index gives the same answers whether it was built, updated or loaded."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph.disk.seal import Seal
from memgraph.fold import Workspace, fold
from memgraph.index import snapshot
from memgraph.index.analyser import analyse
from memgraph.index.index import RELATION_CODE, Index, IndexOffset, superseded
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryLinked,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    RecordPatch,
)
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessEffect, AccessRecorded
from memgraph.model.ids import natural_id, source_id
from memgraph.model.memory import Entity, MemoryRecord
from memgraph.ports import Change, Key, Row
from tests.engines import SEAL
from tests.tables import copy_journal, forget_journal

NOW, LATER = "2026-02-01T09:00:00.000Z", "2026-02-03T12:00:00.000Z"
NAMED = ("project", "session", "task", "domain", "speaker")
SLOTS = ("previous", "following")


class World:
    """Current rows, and an index that is updated with every change."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, Key], Row] = {}
        self.index = Index()
        self.seq = 0

    def get(self, table: str, key: Key) -> Row | None:
        return self.rows.get((table, key))

    def has(self, table: str, key: Key) -> bool:
        return (table, key) in self.rows

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        return [(t, k, row) for (t, k), row in self.rows.items() if isinstance(k, tuple) and memory_id in k]

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        return [k[0] for t, k in self.rows if t == table and isinstance(k, tuple) and k[1] == target][:limit]

    def live(self, *payloads: Payload) -> list[Change]:
        workspace = Workspace(self)
        for payload in payloads:
            self.seq += 1
            fold(
                workspace,
                Event(
                    self.seq, "c", True, payload.TYPE, payload, payload.dump(), "global", None, "agent", NOW, NOW, "s"
                ),
            )
        changes = list(workspace.changes())
        for change in changes:
            if change.new is None:
                del self.rows[change.table, change.key]
            else:
                self.rows[change.table, change.key] = change.new
        self.index.apply(changes)
        return changes

    def built(self) -> Index:
        index = Index()
        memories = sorted(
            (row for (table, _), row in self.rows.items() if table == "Memory"), key=lambda row: row["seq"]
        )
        index.build(memories, [place for place in self.rows if place[0] in RELATION_CODE])
        return index

    @property
    def ids(self) -> list[str]:
        return [str(key) for table, key in self.rows if table == "Memory"]


def added(number: int, **fields: Any) -> MemoryAdded:
    required = {"id": source_id("tests", number), "type": "episodic", "content": f"Memory {number}"}
    times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), NOW)
    return MemoryAdded(memory=MemoryRecord(**{**required, **times, **fields}))


def linked(source: int, relation: Any, target: int) -> MemoryLinked:
    return MemoryLinked(
        source_id=source_id("tests", source), relation=relation, target_id=source_id("tests", target), created_at=NOW
    )


def answers(index: Index) -> dict[str, Any]:
    """Return all answers of an index about live memories, by id, because slots and codes may differ."""
    live = index.column("is_live")
    slots = np.flatnonzero(live).tolist()
    name = index.ids.names

    def other(slot: int) -> str | None:
        return name[slot] if slot >= 0 and live[slot] else None

    columns = {}
    for column in index._columns:
        values = index.column(column)
        if column in NAMED:
            columns[column] = {name[s]: index.scopes.names[values[s]] if values[s] >= 0 else None for s in slots}
        elif column in SLOTS:
            columns[column] = {name[s]: other(int(values[s])) for s in slots}
        else:
            columns[column] = {name[s]: values[s].item() for s in slots}

    def by_name(kind: str, names: str) -> dict[str, list[tuple[str, int]]]:
        found = {}
        for code, word in enumerate(getattr(index, names).names):
            pairs = [
                (name[slot], weight)
                for slot, weight in zip(*map(list, getattr(index, kind).get(code)), strict=True)
                if live[slot]
            ]
            if pairs:
                found[word] = sorted(pairs)
        return found

    return {
        "columns": columns,
        "postings": by_name("postings", "vocabulary"),
        "mentions": by_name("mentions", "entities"),
        "agents": by_name("agents", "agent_names"),
        "named": {
            name[s]: sorted((index.entities.names[e], int(w)) for e, w in zip(*index.named.get(s), strict=True))
            for s in slots
        },
        "tags": by_name("tags", "tag_names"),
        "tagged": {name[s]: sorted(index.tag_names.names[t] for t in index.tagged.get(s)[0]) for s in slots},
        "triggers": by_name("triggers", "vocabulary"),
        "sequences": {name[s]: [index.vocabulary.names[t] for t in index.sequences.get(s)] for s in slots},
        "links": {
            name[s]: sorted((name[o], int(w)) for o, w in zip(*index.links.get(s), strict=True) if live[o])
            for s in slots
        },
        "superseded": {name[s]: bool(superseded(index, live)[s]) for s in slots},
        "supporting": {name[s]: index.supporting_ids(name[s]) for s in slots},
        "ids": sorted(name[s] for s in slots),
    }


def reloaded(index: Index, folder: Path) -> Index:
    snapshot.save(index, folder / "index.npz", "store", SEAL)
    loaded = snapshot.load(folder / "index.npz", "store", SEAL)
    assert loaded is not None
    return loaded


contents = st.sampled_from(
    ["the build failed", "login.py times out", "数据库 locked", "v1.2.3 released", "failed failed again"]
)
tags = st.lists(st.sampled_from(["auth", "db", "critical-failure"]), max_size=2, unique=True)
entities = st.lists(
    st.builds(Entity, name=st.sampled_from(["Login.py", "E1", "x"]), kind=st.sampled_from(["file", "error"]), about=st.booleans()),
    max_size=2,
    unique_by=lambda entity: (entity.kind, entity.name),
)  # fmt: skip
changeable = st.fixed_dictionaries(
    {},
    optional={
        "content": contents,
        "tags": tags,
        "entities": entities,
        "is_pinned": st.booleans(),
        "is_suppressed": st.booleans(),
        "archived_at": st.just(LATER),
        "invalid_at": st.just(LATER),
        "project_id": st.sampled_from(["P", "Q"]),
        "agents_involved": st.lists(st.sampled_from(["MARS", "VENUS"]), max_size=2, unique=True),
        "outcome": st.sampled_from(["positive", "negative", "unknown"]),
        "privacy_tier": st.sampled_from(["public", "private"]),
        "floor": st.sampled_from([0.0, 0.1]),
        "steps": st.lists(contents, max_size=2),
        "title": contents,
        "speaker": st.sampled_from(["Ann", "Bob"]),
    },
)
history = st.lists(
    st.one_of(
        st.tuples(st.just("add"), changeable, st.sampled_from(["episodic", "semantic", "procedural"])),
        st.tuples(st.just("revise"), changeable, st.integers(0, 99)),
        st.tuples(st.just("delete"), st.just({}), st.integers(0, 99)),
        st.tuples(
            st.sampled_from(sorted(RELATION_CODE)), st.just({}), st.tuples(st.integers(0, 99), st.integers(0, 99))
        ),
        st.tuples(st.just("access"), st.just({}), st.integers(0, 99)),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=history)
def test_built_updated_and_loaded_indexes_agree(history: list[tuple[str, dict[str, Any], Any]], tmp_path: Path) -> None:
    world = World()
    for number, (step, fields, which) in enumerate(history):
        ids = world.ids
        if step == "add":
            project = fields.get("project_id")
            node = world.get("Project", natural_id("project", project)) if project else None
            chain = (
                {"previous_id": node["last_memory_id"]}
                if which == "episodic" and node and "last_memory_id" in node
                else {}
            )
            world.live(added(number, type=which, **fields, **chain))
        elif not ids:
            continue
        elif step == "revise":
            world.live(MemoryRevised(id=ids[which % len(ids)], changed=RecordPatch(**fields)))
        elif step == "delete":
            world.live(MemoryDeleted(id=ids[which % len(ids)]))
        elif step == "access":
            effect = AccessEffect(
                id=ids[which % len(ids)],
                access_count=number,
                last_accessed_at=LATER,
                relevance_anchor=0.5,
                relevance_at=LATER,
            )
            world.live(AccessRecorded(accesses=[effect]))
        elif ids[which[0] % len(ids)] != ids[which[1] % len(ids)]:
            ends = {"source_id": ids[which[0] % len(ids)], "target_id": ids[which[1] % len(ids)]}
            world.live(MemoryLinked(relation=step, created_at=NOW, **ends))  # type: ignore[arg-type]
    expected = answers(world.built())
    assert answers(world.index) == expected
    assert answers(reloaded(world.index, tmp_path)) == expected
    assert answers(reloaded(world.built(), tmp_path)) == expected
    assert expected["ids"] == sorted(world.ids)


@pytest.fixture
def world() -> World:
    world = World()
    world.live(
        added(
            1,
            content="The build failed",
            tags=["auth"],
            project_id="P",
            session_id="s",
            entities=[Entity(name="Login.py", kind="file")],
        ),
        added(
            2,
            content="Fixed by a retry",
            agents_involved=["MARS"],
            project_id="P",
            session_id="s",
            previous_id=source_id("tests", 1),
        ),
        added(3, type="semantic", content="Retries help"),
        linked(1, "SUPPORTS", 3),
        linked(2, "SUPPORTS", 3),
    )
    return world


class TestAnswers:
    def test_postings_hold_the_analysed_text(self, world: World) -> None:
        index = world.index
        for term in analyse("build failed auth February"):
            slots, counts = index.postings.get(index.vocabulary.find(term))
            assert index.slot(source_id("tests", 1)) in slots
            assert (counts >= 1).all()
        assert index.column("words")[index.slot(source_id("tests", 1))] == 3

    def test_a_revised_text_is_found_only_by_its_new_words(self, world: World) -> None:
        world.live(MemoryRevised(id=source_id("tests", 1), changed=RecordPatch(content="Sourdough rises")))
        postings = answers(world.index)["postings"]
        assert "build" not in postings
        assert [memory for memory, _ in postings["sourdough"]] == [source_id("tests", 1)]

    def test_entities_are_known_both_ways_and_compared_case_folded(self, world: World) -> None:
        world.live(added(4, project_id="P", entities=[Entity(name="LOGIN.PY", kind="file", about=True)]))
        mentions = answers(world.index)["mentions"]
        assert mentions == {"file\x1fP\x1flogin.py": sorted([(source_id("tests", 1), 1), (source_id("tests", 4), 2)])}

    def test_support_and_supersession(self, world: World) -> None:
        ids = [source_id("tests", number) for number in range(5)]
        assert world.index.supporting_ids(ids[3]) == sorted([ids[1], ids[2]])
        world.live(added(4), linked(4, "SUPERSEDES", 3))
        assert answers(world.index)["superseded"] == {ids[1]: False, ids[2]: False, ids[3]: True, ids[4]: False}
        world.live(MemoryDeleted(id=ids[4]), MemoryDeleted(id=ids[1]))
        assert not any(answers(world.index)["superseded"].values())
        assert world.index.supporting_ids(ids[3]) == [ids[2]]

    def test_a_slot_never_changes_and_a_deleted_one_is_dead(self, world: World) -> None:
        first = world.index.slot(source_id("tests", 1))
        world.live(MemoryDeleted(id=source_id("tests", 2)))
        assert world.index.slot(source_id("tests", 2)) == -1
        assert world.index.slot(source_id("tests", 1)) == first
        assert world.index.slot("unknown") == -1
        world.live(added(2, content="Back again"))
        assert world.index.slot(source_id("tests", 2)) >= 0
        assert answers(world.index) == answers(world.built())

    def test_an_undeleted_memory_is_back_in_its_place(self, world: World) -> None:
        world.live(linked(2, "SUPERSEDES", 1))
        world.live(added(4, project_id="P", session_id="s", previous_id=source_id("tests", 2)))
        before, row = answers(world.built()), world.get("Memory", source_id("tests", 2))
        links = [linked(2, "SUPPORTS", 3), linked(2, "SUPERSEDES", 1)]
        world.live(MemoryDeleted(id=source_id("tests", 2)))
        assert world.index.followers(source_id("tests", 1)) == [source_id("tests", 4)]
        back = MemoryUndeleted(
            memory=MemoryRecord.parse({name: row[name] for name in row if name != "seq"}),  # type: ignore[union-attr]
            added_seq=row["seq"],  # type: ignore[index]
            follower_ids=[source_id("tests", 4)],
        )
        effect = AccessEffect(  # the follower's row comes first in the commit
            id=source_id("tests", 4), access_count=0, last_accessed_at=LATER, relevance_anchor=1.0, relevance_at=NOW
        )
        world.live(AccessRecorded(accesses=[effect]), back, *links)
        after = answers(world.index)
        assert after == answers(world.built())
        assert {**after, "columns": {**after["columns"], "accessed_days": None}} == {
            **before,
            "columns": {**before["columns"], "accessed_days": None},
        }

    def test_an_unlinked_pair_is_removed(self, world: World) -> None:
        ends = {"source_id": source_id("tests", 1), "target_id": source_id("tests", 3)}
        world.live(MemoryUnlinked(relation="SUPPORTS", **ends))  # type: ignore[arg-type]
        assert world.index.supporting_ids(source_id("tests", 3)) == [source_id("tests", 2)]
        assert answers(world.index) == answers(world.built())

    def test_a_memory_recorded_later_is_no_predecessor(self, world: World) -> None:
        world.live(added(6, previous_id=source_id("tests", 7)))
        world.live(added(7), MemoryRevised(id=source_id("tests", 6), changed=RecordPatch(is_pinned=True)))
        assert answers(world.index) == answers(world.built())
        assert answers(world.index)["columns"]["previous"][source_id("tests", 6)] is None

    def test_order_and_ties(self, world: World) -> None:
        index = world.index
        everything = index.column("is_live").copy()
        assert index.live_ids(everything, np.zeros(len(index))) == sorted(world.ids)
        order = np.zeros(len(index))
        order[index.slot(source_id("tests", 3))] = 1.0
        assert index.live_ids(everything, order)[0] == source_id("tests", 3)

    def test_an_access_is_applied_before_its_commit(self, world: World) -> None:
        use = {"access_count": 3, "last_accessed_at": LATER, "relevance_anchor": 0.5, "relevance_at": LATER}
        world.index.touch({"id": source_id("tests", 1), **use})
        world.index.touch({"id": "unknown", **use})
        effect = AccessEffect(
            id=source_id("tests", 1), access_count=3, last_accessed_at=LATER, relevance_anchor=0.5, relevance_at=LATER
        )
        touched = answers(world.index)
        world.live(AccessRecorded(accesses=[effect]))
        assert answers(world.index) == touched == answers(world.built())

    @pytest.mark.parametrize("count", [2**31 - 1])
    def test_any_count_that_can_be_stored_can_be_indexed(self, world: World, count: int) -> None:
        world.live(added(4, access_count=count))
        assert answers(world.index)["columns"]["access_count"][source_id("tests", 4)] > 10**9

    def test_the_choice_between_two_successors_does_not_depend_on_history(self, world: World) -> None:
        world.live(added(4, previous_id=source_id("tests", 1)), added(5, previous_id=source_id("tests", 1)))
        assert answers(world.index) == answers(world.built())
        world.live(MemoryRevised(id=source_id("tests", 4), changed=RecordPatch(is_pinned=True)))
        assert answers(world.index)["columns"]["following"] == answers(world.built())["columns"]["following"]

    def test_after_the_deletion_of_a_successor_the_other_one_follows(self, world: World) -> None:
        world.live(added(4, previous_id=source_id("tests", 1)), MemoryDeleted(id=source_id("tests", 4)))
        assert answers(world.index)["columns"]["following"] == answers(world.built())["columns"]["following"]

    def test_a_cleared_predecessor_has_no_follower(self, world: World) -> None:
        patch = MemoryRevised(id=source_id("tests", 2), changed=RecordPatch(), cleared=["previous_id"])
        world.live(patch)
        assert answers(world.index)["columns"] == answers(world.built())["columns"]

    def test_after_a_deletion_a_memory_with_the_same_id_has_no_old_links(self, world: World) -> None:
        """A process that finds another's deletion already in the graph calls remove, and later put and relink."""
        world.live(added(4), linked(4, "SUPERSEDES", 3), linked(4, "SUPPORTS", 3))
        world.index.remove(source_id("tests", 4))
        for place in [place for place in world.rows if source_id("tests", 4) in place[1]]:
            del world.rows[place]
        assert answers(world.index) == answers(world.built())
        world.live(added(4))
        assert answers(world.index) == answers(world.built())


class TestSnapshot:
    def test_it_keeps_its_offset(self, world: World, tmp_path: Path) -> None:
        world.index.offset = IndexOffset(7, "sig", "a rebuild")
        loaded = reloaded(world.index, tmp_path)
        assert loaded.offset == world.index.offset
        assert loaded.changed == world.index.changed == 0

    def test_an_empty_index_round_trips(self, tmp_path: Path) -> None:
        assert answers(reloaded(Index(), tmp_path)) == answers(Index())

    def test_a_loaded_index_can_be_updated(self, world: World, tmp_path: Path) -> None:
        world.index = reloaded(world.index, tmp_path)
        world.live(added(4, tags=["new"]), linked(4, "CONTRADICTS", 1), MemoryDeleted(id=source_id("tests", 2)))
        assert answers(world.index) == answers(world.built())

    def test_saving_again_replaces_it_and_leaves_no_other_file(self, world: World, tmp_path: Path) -> None:
        folder = tmp_path / "index"
        reloaded(world.index, folder)
        world.live(added(4))
        reloaded(world.index, folder)
        assert [path.name for path in folder.iterdir()] == ["index.npz"]
        assert (folder / "index.npz").stat().st_mode & 0o077 == 0

    def test_a_concurrent_rename_by_another_process_does_no_harm(
        self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone = tmp_path / ".index.npz.1.tmp"
        monkeypatch.setattr(Path, "glob", lambda _folder, _pattern: iter([gone]))
        reloaded(world.index, tmp_path)
        assert not gone.exists()

    def test_a_missing_snapshot_is_none(self, tmp_path: Path) -> None:
        assert snapshot.load(tmp_path / "index.npz", "store", SEAL) is None

    def test_a_snapshot_of_another_store_is_not_loaded(self, world: World, tmp_path: Path) -> None:
        reloaded(world.index, tmp_path)
        assert snapshot.load(tmp_path / "index.npz", "another", SEAL) is None

    @pytest.mark.parametrize("version", ["INDEX_VERSION", "ANALYSER_VERSION"])
    def test_a_snapshot_of_another_version_is_not_loaded(
        self, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
    ) -> None:
        reloaded(world.index, tmp_path)
        monkeypatch.setattr(snapshot, version, 99)
        assert snapshot.load(tmp_path / "index.npz", "store", SEAL) is None

    def test_a_damaged_snapshot_is_not_loaded(self, world: World, tmp_path: Path) -> None:
        damages: dict[str, Callable[[bytes], bytes]] = {
            "empty": lambda data: b"",
            "garbage": lambda data: b"garbage" * 100,
            "without its last byte": lambda data: data[:-1],
            "half": lambda data: data[: len(data) // 2],
            "its beginning": lambda data: data[:100],
            "without its beginning": lambda data: data[100:],
            "another member": lambda data: data.replace(b"store_id", b"store_xx"),
            "longer": lambda data: b"x" + data,
        }
        reloaded(world.index, tmp_path)
        path = tmp_path / "index.npz"
        data = path.read_bytes()
        for name, damage in damages.items():
            path.write_bytes(damage(data))
            assert snapshot.load(path, "store", SEAL) is None, name
        gc.collect()  # a file left open would be reported here

    def test_flipped_bytes_are_detected(self, world: World, tmp_path: Path) -> None:
        reloaded(world.index, tmp_path)
        path = tmp_path / "index.npz"
        data = path.read_bytes()
        for position in range(0, len(data), max(1, len(data) // 250)):
            flipped = bytearray(data)
            flipped[position] ^= 0x55
            path.write_bytes(bytes(flipped))
            assert snapshot.load(path, "store", SEAL) is None, position

    def test_a_snapshot_sealed_with_another_key_is_not_loaded(self, world: World, tmp_path: Path) -> None:
        """A forger of a snapshot can compute every code except the store's."""
        reloaded(world.index, tmp_path)
        path = tmp_path / "index.npz"
        data = path.read_bytes()[64:]
        path.write_bytes(Seal(b"x" * 32).code(data).encode() + data)
        assert snapshot.load(path, "store", SEAL) is None
        path.write_bytes(SEAL.code(data).encode() + data)
        assert snapshot.load(path, "store", SEAL) is not None

    def test_a_snapshot_that_says_less_than_it_should_is_not_loaded(self, world: World, tmp_path: Path) -> None:
        reloaded(world.index, tmp_path)
        path = tmp_path / "index.npz"
        data = path.read_bytes()[64:]
        for part in (b'"store_id"', b'"column.type"', b'"postings.values"', b'"names"'):
            other = data.replace(part, part.swapcase())
            assert other != data
            path.write_bytes(SEAL.code(other).encode() + other)
            assert snapshot.load(path, "store", SEAL) is None, part


class TestInAStore:
    @pytest.fixture
    def lived(self, open_store: Callable[..., Any]) -> Any:
        store = open_store()
        ids = [
            store.insert_memory({"type": "episodic", "content": f"memory {n} of login.py", "tags": ["a"]}).id
            for n in range(6)
        ]
        store.link(ids[1], "SUPERSEDES", ids[0])
        store.delete_memory(ids[2])
        return store

    def snapshot_of(self, folder: Path) -> Path:
        return folder / "store" / "index" / "index.npz"

    @pytest.mark.parametrize("state", ["gone", "damaged", "foreign", "kept"])
    def test_the_answers_are_the_same(
        self, lived: Any, open_store: Callable[..., Any], tmp_path: Path, state: str
    ) -> None:
        expected = answers(lived.reader.index)
        lived.close()
        path = self.snapshot_of(tmp_path)
        assert path.exists()
        if state == "gone":
            path.unlink()
        elif state == "damaged":
            path.write_bytes(path.read_bytes()[:200])
        elif state == "foreign":
            other = open_store("other")
            other.insert_memory({"type": "episodic", "content": "of another store"})
            assert len(other.reader.index) == 1
            other.close()
            path.write_bytes((tmp_path / "other" / "index" / "index.npz").read_bytes())
        assert answers(open_store().reader.index) == expected

    def test_an_old_snapshot_is_updated(self, lived: Any, open_store: Callable[..., Any], tmp_path: Path) -> None:
        assert len(lived.reader.index)
        lived.close()
        path = self.snapshot_of(tmp_path)
        old = path.read_bytes()
        store = open_store()
        ids = sorted(memory.id for memory in store.get_all_memories())
        store.update_memory(ids[0], content="something else entirely", tags=["b"])
        store.link(ids[1], "CONTRADICTS", ids[2])
        store.delete_memory(ids[3])
        store.insert_memory({"type": "semantic", "content": "in general", "supporting_memory_ids": ids[:2]})
        expected = answers(store.reader.index)
        store.close()
        path.write_bytes(old)
        again = open_store()
        assert answers(again.reader.index) == expected
        again.rebuild()
        assert answers(again.reader.index) == expected

    @pytest.mark.embedded
    def test_a_snapshot_ahead_of_the_journal_is_not_loaded(
        self, lived: Any, open_store: Callable[..., Any], tmp_path: Path
    ) -> None:
        """The journal was restored from a backup, its head file was deleted, but the index was not."""
        lived.flush()
        expected = answers(lived.reader.index)
        copy_journal(tmp_path / "store", tmp_path / "backup")
        ghost = lived.insert_memory({"type": "episodic", "content": "a ghost that no journal knows"})
        assert len(answers(lived.reader.index)["ids"]) == len(expected["ids"]) + 1
        store_id = lived.store_id
        lived.close()
        forget_journal(tmp_path / "store")
        copy_journal(tmp_path / "backup", tmp_path / "store")
        (tmp_path / "keys" / "heads" / store_id).unlink()
        again = open_store()
        assert again.get_memory(ghost.id) is None
        assert answers(again.reader.index) == expected
        assert again.get_stats().total == len(expected["ids"])
