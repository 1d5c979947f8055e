"""What is written is durable and visible when the call returns, or nothing is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import (
    ClosedError,
    DuplicateIdError,
    InvalidInputError,
    ModelMismatchError,
    NotFoundError,
    ScopeError,
)
from memgraph.model.events.memories import MemoryDeleted, MemoryLinked, MemoryRevised, RecordPatch
from memgraph.model.events.records import AccessRecorded, DecayApplied
from memgraph.model.events.store import EmbeddingSwitched, StoreCreated
from memgraph.model.ids import new_id
from memgraph.testing import FakeEmbedder
from tests.tables import lines_of, tables

Open = Callable[..., Any]
EPISODE = {"type": "episodic", "content": "what happened"}


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """Return the rows of every table of the journal."""
    return lambda: tables(tmp_path / "store")


def heads(home: Path) -> list[dict[str, Any]]:
    return [line["head"] for line in lines_of(home)]


class TestScopes:
    def test_mixed_scopes_are_rejected_before_any_write(self, store: Any, files: Any) -> None:
        known = store.insert_memory(EPISODE)
        before, digest = files(), store.digest()
        for memories in (
            [EPISODE, {**EPISODE, "task_id": "T"}],
            [{**EPISODE, "task_id": "T"}, EPISODE],
            [{**EPISODE, "task_id": "T"}, {**EPISODE, "task_id": "U"}],
        ):
            with pytest.raises(ScopeError):
                store.insert_memories(memories)
        for scope, events, task_id in (
            ("system", [MemoryRevised(id=known.id, changed=RecordPatch(confidence=0.5))], None),
            ("global", [DecayApplied(applied_at=known.created_at, updated=0, below_threshold=0)], None),
            ("task", [MemoryDeleted(id=known.id)], None),
            ("global", [MemoryDeleted(id=known.id)], "T"),
            ("global", [memgraph.EpisodicMemory(**{**EPISODE, "task_id": "T"})], None),
            ("task", [memgraph.EpisodicMemory(**EPISODE)], "T"),
            ("task", [memgraph.EpisodicMemory(**{**EPISODE, "task_id": "U"})], "T"),
        ):
            with pytest.raises(ScopeError):
                store.commit(scope, events, task_id=task_id)
        assert files() == before
        assert store.digest() == digest

    def test_an_event_is_checked_after_those_before_it_in_its_commit(self, store: Any, files: Any) -> None:
        one, other = (store.insert_memory(EPISODE).id for _ in range(2))
        before = files()
        link = {"relation": "RELATED_TO", "created_at": "2026-02-01T09:00:00.000Z"}
        for target in (one, new_id()):
            gone = [MemoryDeleted(id=one), MemoryLinked(source_id=other, target_id=target, **link)]
            with pytest.raises(NotFoundError):
                store.commit("global", gone)
        with pytest.raises(NotFoundError):
            store.commit("global", [MemoryDeleted(id=one), MemoryDeleted(id=one)])
        assert files() == before
        store.commit("global", [MemoryLinked(source_id=other, target_id=one, **link), MemoryDeleted(id=one)])
        assert store.get_memory(one) is None

    def test_scope_none_writes_nothing(self, store: Any, files: Any, embedder: Any, embedded_texts: Any) -> None:
        known = store.insert_memory(EPISODE)
        before, texts = files(), embedded_texts(embedder)
        assert store.commit("none", [MemoryDeleted(id=known.id), memgraph.EpisodicMemory(content="never")]) == []
        assert store.commit("none", [MemoryDeleted(id=new_id())]) == []
        assert files() == before
        assert embedded_texts(embedder) == texts
        assert store.get_memory(known.id) is not None

    def test_an_empty_commit_writes_nothing(self, store: Any, files: Any) -> None:
        before = files()
        assert store.commit("global", []) == []
        assert store.insert_memories([]) == []
        assert files() == before

    def test_task_memories_are_written_in_the_tasks_scope(self, store: Any, tmp_path: Path) -> None:
        memory = store.insert_memory({**EPISODE, "task_id": "T"})
        store.update_memory(memory.id, confidence=0.5)
        store.delete_memory(memory.id)
        scopes = [
            (head["write_scope"], head["task_id"])
            for head in heads(tmp_path / "store")
            if head["type"].startswith("memory.")
        ]
        assert scopes == [("task", "T")] * 3

    def test_one_call_is_one_commit(self, store: Any, tmp_path: Path) -> None:
        store.insert_memories([EPISODE] * 5)
        commits = [head["commit_id"] for head in heads(tmp_path / "store") if head["type"] == "memory.added"]
        assert len(commits) == 5
        assert len(set(commits)) == 1


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "error"),
        [
            (lambda known: [EPISODE, {**EPISODE, "id": known}], DuplicateIdError),
            (lambda known: [{**EPISODE, "id": "6d656d67-7261-4068-8b75-7a75206a726e"}] * 2, DuplicateIdError),
            (lambda known: [EPISODE, {**EPISODE, "content": "x" * 801}], InvalidInputError),
            (lambda known: [EPISODE, {**EPISODE, "nonsense": 1}], InvalidInputError),
            (
                lambda known: [EPISODE, {"type": "semantic", "content": "x", "supporting_memory_ids": [new_id()]}],
                NotFoundError,
            ),
            (lambda known: [EPISODE, {**EPISODE, "embedding": [1.0]}], InvalidInputError),
        ],
    )
    def test_all_or_none(self, store: Any, files: Any, make: Any, error: type[Exception]) -> None:
        known = store.insert_memory(EPISODE).id
        before, digest = files(), store.digest()
        with pytest.raises(error):
            store.insert_memories(make(known))
        assert files() == before
        assert store.digest() == digest
        assert store.get_stats().total == 1

    @pytest.mark.embedded
    @pytest.mark.parametrize(
        "value", [2**31, 2**63, *(pytest.param(value, marks=pytest.mark.long) for value in (2**63 - 1, 2**64))]
    )
    def test_an_unstorable_number_is_rejected_without_damage(self, open_store: Open, value: int) -> None:
        store = open_store()
        store.insert_memory(EPISODE)
        assert store.get_stats().total == 1
        try:
            store.insert_memory({**EPISODE, "access_count": value})
        except InvalidInputError:
            expected = 1
        else:
            expected = 2
        store.insert_memory(EPISODE)
        assert store.get_stats().total == expected + 1
        store.close()
        again = open_store()
        assert again.get_stats().total == expected + 1
        again.verify()

    @pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
    def test_a_time_outside_the_calendar_is_refused(self, store: Any, time: str) -> None:
        with pytest.raises(InvalidInputError, match="occurred"):
            store.insert_memory({**EPISODE, "occurred_at": time})

    def test_an_empty_event_is_rejected(self) -> None:
        with pytest.raises(InvalidInputError, match="accesses"):
            AccessRecorded(accesses=[])

    def test_another_model_is_refused(self, open_store: Open) -> None:
        store = open_store()
        store.insert_memory(EPISODE)
        store.close()
        for other in (FakeEmbedder(64, name="other"), FakeEmbedder(32)):
            with pytest.raises(ModelMismatchError):
                open_store(embedder=other)
        assert open_store().get_stats().total == 1

    def test_a_closed_store_refuses(self, store: Any) -> None:
        known = store.insert_memory(EPISODE)
        store.close()
        store.close()
        for call in (
            lambda: store.insert_memory(EPISODE),
            lambda: store.get_memory(known.id),
            lambda: store.update_memory(known.id, confidence=0.1),
            lambda: store.delete_memory(known.id),
            lambda: store.cypher("RETURN 1"),
            store.get_stats,
            store.digest,
            store.rebuild,
            store.verify,
            lambda: store.record_access(known.id),
            lambda: store.links(known.id),
        ):
            with pytest.raises(ClosedError):
                call()


class TestLinks:
    def test_a_link_to_itself_is_refused_or_one_link(self, store: Any) -> None:
        known = store.insert_memory(EPISODE)
        try:
            store.link(known.id, "RELATED_TO", known.id)
        except InvalidInputError:
            return
        assert len(store.links(known.id)) == 1

    def test_the_chain_never_names_deleted_memories(self, store: Any) -> None:
        ids = [store.insert_memory({**EPISODE, "project_id": "P"}).id for _ in range(3)]
        store.delete_memory(ids[1])
        store.delete_memory(ids[2])
        new = store.insert_memory({**EPISODE, "project_id": "P"})
        assert new.previous_id == ids[0]
        assert [(link.source_id, link.relation) for link in store.links(new.id)] == [(ids[0], "NEXT")]

    def test_an_import_keeps_the_chain_across_tasks(self, store: Any, open_store: Open) -> None:
        context = {**EPISODE, "project_id": "P"}
        ids = [store.insert_memory({**context, **({"task_id": "T"} if n % 2 else {})}).id for n in range(4)]
        export = memgraph.MemoryCommands(store, store.embedder).export_memories()
        other = open_store("other")
        memgraph.MemoryCommands(other, other.embedder).import_memories(json.loads(export.model_dump_json()))
        assert other.digest() == store.digest()
        for key in ids:
            assert sorted(map(repr, other.links(key))) == sorted(map(repr, store.links(key)))


class TestAccess:
    @pytest.mark.embedded
    def test_it_is_visible_at_once_and_durable_after_close(self, open_store: Open, clock: Any) -> None:
        store = open_store()
        known = store.insert_memory({**EPISODE, "relevance_score": 0.5})
        other = store.insert_memory({**EPISODE, "relevance_score": 0.6})
        before = store.digest()
        clock.advance(hours=1)
        accessed = store.record_access(known.id)
        assert accessed == store.get_memory(known.id)
        assert accessed.access_count == 1
        assert accessed.last_accessed_at == store.now()
        assert accessed.relevance_score == pytest.approx(0.7, abs=0.01)
        assert [memory.id for memory in store.get_all_memories()] == [known.id, other.id]
        for count in (2, 3):
            assert store.record_access(known.id).access_count == count
        store.close()
        again = open_store()
        assert again.get_memory(known.id).access_count == 3
        assert again.digest() != before
        again.verify()

    def test_pending_uses_join_the_next_commit(self, open_store: Open, tmp_path: Path) -> None:
        store, other = open_store(), open_store()
        known = store.insert_memory(EPISODE)
        store.record_access(known.id)
        store.insert_memory(EPISODE)
        assert other.get_memory(known.id).access_count == 1
        types = [head["type"] for head in heads(tmp_path / "store")]
        assert types[-2:] == ["access.recorded", "memory.added"]

    def test_the_index_states_uses_alike_before_and_after_their_commit(self, store: Any, clock: Any) -> None:
        ids = [store.insert_memory({**EPISODE, "relevance_score": score}).id for score in (0.3, 0.5, 0.7)]
        ids.append(store.insert_memory({"type": "semantic", "content": "what is so", "is_pinned": True}).id)

        def uses() -> dict[str, list[float]]:
            names = ("access_count", "accessed_days", "anchor", "anchored_days")
            return {name: store.reader.index.column(name).tolist() for name in names}

        before = uses()
        for hours in (0.001, 7, 30, 700):
            clock.advance(hours=hours)
            memgraph.MemoryRetrieval(store).retrieve({"task_description": "what happened"})
            for memory_id in ids[1:]:
                store.record_access(memory_id)
                uses()
        pending = uses()
        store.flush()
        assert pending != before
        assert uses() == pending
        store.rebuild()
        assert uses() == pending

    @pytest.mark.embedded
    def test_cypher_and_digest_include_pending_uses(self, store: Any) -> None:
        known = store.insert_memory(EPISODE)
        store.record_access(known.id)
        assert store.cypher("MATCH (m:Memory) RETURN m.access_count AS n") == [{"n": 1}]

    def test_an_access_to_a_deleted_memory_is_dropped(self, open_store: Open) -> None:
        store = open_store()
        known = store.insert_memory(EPISODE)
        store.record_access(known.id)
        store.delete_memory(known.id)
        store.close()
        assert open_store().get_stats().total == 0

    @pytest.mark.embedded
    def test_a_kill_loses_at_most_the_access(self, run: Any, open_store: Open) -> None:
        done = run("""
store = opened()
first = store.insert_memory({"type": "episodic", "content": "first"})
store.record_access(first.id)
second = store.insert_memory({"type": "episodic", "content": "second"})
assert store.record_access(second.id).access_count == 1
print(first.id, second.id, flush=True)
os._exit(9)
""")
        assert done.returncode == 9, done.stderr
        first, second = done.stdout.split()
        store = open_store()
        assert store.get_memory(first).access_count == 1  # went with the second memory's commit
        assert store.get_memory(second).access_count in {0, 1}
        assert store.get_stats().total == 2
        store.verify()

    def test_a_missing_memory_cannot_be_accessed(self, store: Any) -> None:
        with pytest.raises(NotFoundError):
            store.record_access(new_id())


class TestThreads:
    def test_two_threads_write(self, open_store: Open) -> None:
        store = open_store()
        self.work([store, store])

    @pytest.mark.embedded
    def test_two_stores_in_two_threads_write(self, open_store: Open) -> None:
        self.work([open_store(), open_store()])

    def work(self, stores: list[Any]) -> None:
        written: list[str] = []
        failures: list[BaseException] = []

        def write(store: Any, name: int) -> None:
            try:
                for turn in range(5):
                    memory = store.insert_memory(
                        {"type": "episodic", "content": f"thread {name}, turn {turn}", "project_id": "P"}
                    )
                    assert store.get_memory(memory.id) is not None
                    store.record_access(memory.id)
                    if turn % 4 == 0:
                        store.update_memory(memory.id, tags=["changed"])
                    written.append(memory.id)
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=write, args=(store, name)) for name, store in enumerate(stores)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert failures == []
        for store in stores:
            store.flush()
        assert {memory.id for memory in stores[0].get_all_memories()} == set(written)
        assert len(written) == 10
        chain = {link.target_id for key in written for link in stores[0].links(key) if link.relation == "NEXT"}
        assert len(chain) == 9
        digest = stores[0].digest()
        stores[0].verify()
        stores[1].rebuild()
        assert stores[0].digest() == stores[1].digest() == digest


@pytest.mark.parametrize("payload", [StoreCreated(created_by="x"), EmbeddingSwitched(model="m", dimension=3)])
def test_events_reserved_for_the_store_are_rejected(store: Any, payload: Any) -> None:
    digest = store.digest()
    with pytest.raises(InvalidInputError, match="by the store itself"):
        store.commit("system", [payload])
    assert store.digest() == digest


@pytest.mark.embedded
def test_remembering_a_text_needs_no_graph(open_store: Any, tmp_path: Path) -> None:
    """It is recorded without opening the graph, or waiting for who has it, and whoever has it next brings it up."""
    hook = open_store(lock_timeout_s=0.1)
    first = memgraph.MemoryCommands(hook).remember("Deploy on Tuesdays only")
    assert first.success
    reader = open_store()
    with reader.reader.frozen():  # sits on the graph
        second = memgraph.MemoryCommands(hook).remember("Never on Fridays")
    known = {memory.id for memory in reader.get_all_memories()}
    assert known == {*first.data["ids"], *second.data["ids"]}
    reader.verify()
