"""Ways out of the views, and back: who still sees a memory in which state (the table of the design, §3)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.errors import DamagedJournalError
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.model.events.memories import MemoryUndeleted
from memgraph.model.link import REPLACED
from tests.tables import change_payload, copy_journal, put_rows

Open = Callable[..., Any]
See = Callable[[Any], dict[str, Any]]
TEXT, NEWER_TEXT = "The queue is drained by one worker", "The queue is drained by four workers"
EARLIER, LATER = "2026-01-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"
VIEWS = ("get", "list", "recall", "dedup", "stats")
TABLE = {
    "suppressed": "✓✗✗✗✓",
    "archived": "✓✗✗✗✗",
    "invalidated": "✓✗✗✗✓",
    "superseded": "✓✓✗✗✓",
    "deleted": "✗✗✗✗✗",
}
"""As the design has it: seen (✓) or not by get, list, recall, deduplication and statistics."""


def seen_by(states: tuple[str, ...]) -> dict[str, bool]:
    """Return who sees a memory that is in all these states: those that see it in each."""
    return {view: all(TABLE[state][place] == "✓" for state in states) for place, view in enumerate(VIEWS)}


class House:
    """One memory among others, and everything that may show it."""

    def __init__(self, store: Any, vector_at: Any) -> None:
        self.store = store
        self.vector = vector_at(1.0)
        context = {"project_id": "P", "outcome": "negative"}
        given = {"type": "episodic", **context, "is_pinned": True}
        self.id = store.insert_memory({**given, "content": TEXT, "embedding": self.vector}).id
        self.newer = store.insert_memory(
            {"type": "episodic", **context, "content": NEWER_TEXT, "embedding": vector_at(0.2, axis=2)}
        ).id
        self.bystanders = store.get_stats().total - 1
        self.commands = memgraph.MemoryCommands(store)
        self.retrieval = memgraph.MemoryRetrieval(store)

    def enter(self, state: str) -> Any:
        ways = {
            "suppressed": lambda: self.store.suppress(self.id),
            "archived": lambda: self.store.archive(self.id, reason="old", summary="a worker"),
            "invalidated": lambda: self.store.invalidate(self.id, reason="four now"),
            "superseded": lambda: self.store.supersede(self.id, by=self.newer, reason="scaled"),
            "deleted": lambda: self.store.delete_memory(self.id, reason="mistaken"),
        }
        return ways[state]()

    def leave(self, state: str) -> Any:
        ways = {
            "suppressed": lambda: self.store.unsuppress(self.id),
            "archived": lambda: self.store.unarchive(self.id),
            "invalidated": lambda: self.store.revalidate(self.id),
            "superseded": lambda: self.store.unsupersede(self.id),
            "deleted": lambda: self.store.undelete(self.id),
        }
        return ways[state]()

    def views(self, store: Any = None) -> dict[str, bool]:
        """Return which views show the memory. All doors of a view must agree."""
        store = store or self.store
        commands, retrieval = memgraph.MemoryCommands(store), memgraph.MemoryRetrieval(store)
        query = {"task_description": TEXT, "task_embedding": self.vector, "project_id": "P"}
        doors = {
            "get": [store.get_memory(self.id) is not None, commands.show(self.id) is not None],
            "list": [
                self._has(store.get_all_memories()),
                self._has(store.query_by_type("episodic")),
                self._has(store.query_by_project("P")),
                self._has(store.query_by_project("P", type="episodic")),
                any(entry.id == self.id for entry in commands.list()),
            ],
            "recall": [
                self._has(retrieval.retrieve(query).memories),
                self._has([scored.memory for scored in retrieval.search_memories(TEXT)]),
                self.id in commands.ask(TEXT).data["ids"],
            ],
            "dedup": [
                self._has([ConsolidationPipeline(store).deduplicate(self.vector, "episodic", project_id=project)])
                for project in ("P", None)
            ],
            "stats": [store.get_stats().total == self.bystanders + 1],
        }
        found = {}
        for view, shown in doors.items():
            assert len(set(shown)) == 1, f"the doors of {view} disagree: {shown}"
            found[view] = shown[0]
        return found

    def _has(self, memories: list[Any]) -> bool:
        return any(memory is not None and memory.id == self.id for memory in memories)


@pytest.fixture
def house(open_store: Open, fake_embedder: Any, vector_at: Any) -> House:
    return House(open_store(embedder=fake_embedder({TEXT: vector_at(1.0)})), vector_at)


class TestTable:
    def test_a_memory_in_force_is_visible_everywhere(self, house: House) -> None:
        assert house.views() == dict.fromkeys(VIEWS, True)

    @pytest.mark.embedded
    def test_each_state_and_its_reversal(self, house: House) -> None:
        for state in TABLE:
            house.enter(state)
            assert house.views() == seen_by((state,)), state
            house.leave(state)
            assert house.views() == dict.fromkeys(VIEWS, True), state

    def test_two_states_both_apply(self, house: House) -> None:
        for states in itertools.combinations(("suppressed", "archived", "invalidated", "superseded"), 2):
            for state in states:
                house.enter(state)
            assert house.views() == seen_by(states), states
            house.leave(states[0])
            assert house.views() == seen_by(states[1:]), states
            house.leave(states[1])
            assert house.views() == dict.fromkeys(VIEWS, True), states

    def test_an_undeleted_memory_keeps_its_states(self, house: House) -> None:
        states = ("suppressed", "superseded")
        for state in states:
            house.enter(state)
        house.enter("deleted")
        house.leave("deleted")
        assert house.views() == seen_by(states)

    def test_the_table_holds_after_a_rebuild_and_for_another_process(self, house: House, open_store: Open) -> None:
        other = open_store(embedder=house.store.embedder)
        for state in ("superseded", "deleted"):
            house.enter(state)
            assert house.views(other) == seen_by((state,))
            house.store.rebuild()
            assert house.views() == seen_by((state,))
            house.leave(state)
            assert house.views(other) == dict.fromkeys(VIEWS, True)

    def test_a_future_invalidation_takes_effect_then(self, house: House, clock: Any) -> None:
        house.store.invalidate(house.id, at=LATER)
        assert house.views() == dict.fromkeys(VIEWS, True)
        assert house.store.list_memories(state="invalidated") == []
        clock.advance(days=40)
        assert house.views() == seen_by(("invalidated",))

    def test_archived_memories_can_be_requested(self, house: House) -> None:
        def found() -> bool:
            hits = house.retrieval.search_memories(TEXT, include_archived=True)
            return any(hit.memory.id == house.id for hit in hits)

        house.enter("archived")
        assert found()
        house.enter("suppressed")
        assert not found()

    def test_hiding_the_newer_memory_restores_the_older(self, house: House) -> None:
        house.enter("superseded")
        for out, back in (("suppress", "unsuppress"), ("archive", "unarchive"), ("invalidate", "revalidate")):
            getattr(house.store, out)(house.newer)
            assert house.views()["recall"] is house.views()["dedup"] is True
            getattr(house.store, back)(house.newer)
            assert house.views()["recall"] is house.views()["dedup"] is False

    def test_a_hidden_memory_in_a_chain_is_skipped(self, house: House) -> None:
        last = house.store.insert_memory({"type": "episodic", "content": "No queue at all", "project_id": "P"}).id
        house.enter("superseded")
        house.store.supersede(house.newer, by=last)
        house.store.suppress(house.newer)
        assert house.views() == {**seen_by(("superseded",)), "stats": False}  # one more is counted, none less

    @pytest.mark.parametrize("state", ["suppressed", "archived", "invalidated", "superseded"])
    def test_each_state_can_be_listed(self, house: House, state: str) -> None:
        assert house.store.list_memories(state=state) == []
        house.enter(state)
        assert [memory.id for memory in house.store.list_memories(state=state)] == [house.id]
        assert [entry.id for entry in house.commands.list(state=state, project="P")] == [house.id]
        assert house.commands.list(state=state, project="Q") == []
        house.store.suppress(house.id)  # whatever else it is
        assert [memory.id for memory in house.store.list_memories(state=state)] == [house.id]

    def test_an_unknown_state_is_refused(self, store: Any) -> None:
        for ask in (store.list_memories, memgraph.MemoryCommands(store).list):
            with pytest.raises(memgraph.InvalidInputError, match="state"):
                ask(state="lost")


class TestFields:
    def test_archiving_records_time_and_reason(self, house: House, clock: Any) -> None:
        found = house.store.archive(house.id, reason="old")
        assert (found.archived_at, found.archive_reason, found.archive_summary) == (house.store.now(), "old", None)
        clock.advance(days=1)
        again = house.store.archive(house.id, summary="one worker")
        assert (again.archived_at, again.archive_reason, again.archive_summary) == (
            found.archived_at,
            "old",
            "one worker",
        )
        back = house.store.unarchive(house.id)
        assert (back.archived_at, back.archive_reason, back.archive_summary) == (None, None, None)

    def test_invalidating_records_time_and_reason(self, house: House, clock: Any) -> None:
        now = house.store.now()
        assert house.store.invalidate(house.id, at=LATER).invalid_at == LATER
        assert house.store.invalidate(house.id).invalid_at == now  # now is before the time that was set
        clock.advance(days=1)
        assert house.store.invalidate(house.id, reason="moved").invalid_at == now  # it has been since
        assert house.store.invalidate(house.id, at="2026-01-01").invalid_at == EARLIER
        assert house.store.get_memory(house.id).invalidation_reason == "moved"
        back = house.store.revalidate(house.id)
        assert (back.invalid_at, back.invalidation_reason) == (None, None)
        with pytest.raises(memgraph.InvalidInputError, match="at:"):
            house.store.invalidate(house.id, at="soon")

    def test_both_apis_are_equivalent(self, house: House) -> None:
        store = house.store
        store.update_memory(
            house.id, archived_at=EARLIER, archive_reason="old", archive_summary="s", is_suppressed=True
        )
        assert house.views() == seen_by(("archived", "suppressed"))
        store.unarchive(house.id)
        store.unsuppress(house.id)
        assert house.views() == dict.fromkeys(VIEWS, True)
        store.invalidate(house.id, reason="moved")
        after = store.update_memory(house.id, invalid_at=None)
        assert (after.invalid_at, after.invalidation_reason) == (None, None)

    def test_a_reason_given_with_a_reversal_is_kept(self, house: House) -> None:
        house.store.archive(house.id, reason="old", summary="s")
        after = house.store.update_memory(house.id, archived_at=None, archive_reason="it was old")
        assert (after.archive_reason, after.archive_summary) == ("it was old", None)


class TestIdempotence:
    @pytest.mark.parametrize("state", TABLE)
    def test_repeated_transitions_record_nothing(self, house: House, state: str) -> None:
        def events() -> int:
            return int(house.store._journal.tail.seq)

        for step in (house.leave, house.enter):
            if step == house.enter:
                step(state)
            before, digest = events(), house.store.digest()
            step(state)
            assert (events(), house.store.digest()) == (before, digest)

    def test_unlinking_a_missing_link(self, house: House) -> None:
        before = house.store._journal.tail
        assert house.store.unlink(house.id, "related_to", house.newer) is False
        assert house.store._journal.tail == before

    @pytest.mark.parametrize("missing", ["00000000-0000-4000-8000-000000000000", "no id"])
    def test_a_missing_memory_raises_an_error(self, store: Any, missing: str) -> None:
        ways = "suppress unsuppress archive unarchive invalidate revalidate undelete unsupersede"
        for way in ways.split():
            with pytest.raises(memgraph.NotFoundError):
                getattr(store, way)(missing)

    def test_a_missing_end_raises_an_error(self, house: House) -> None:
        gone = "00000000-0000-4000-8000-000000000000"
        for ends in ((house.id, gone), (gone, house.id)):
            with pytest.raises(memgraph.NotFoundError):
                house.store.supersede(ends[0], by=ends[1])
            with pytest.raises(memgraph.NotFoundError):
                house.store.unlink(ends[0], "SUPPORTS", ends[1])

    def test_each_transition_is_one_commit_in_the_memorys_scope(self, house: House, tmp_path: Path) -> None:
        store = house.store
        own = store.insert_memory({"type": "semantic", "content": "of a task", "task_id": "T"}).id
        other = store.insert_memory({"type": "semantic", "content": "of the same", "task_id": "T"}).id
        store.link(own, "RELATED_TO", other)
        ways: list[Callable[[], Any]] = [
            lambda: store.suppress(own), lambda: store.archive(own, reason="x"), lambda: store.invalidate(own),
            lambda: store.supersede(other, by=own), lambda: store.unlink(own, "RELATED_TO", other),
            lambda: store.delete_memory(own), lambda: store.undelete(own),
        ]  # fmt: skip
        for way in ways:
            before = store._journal.tail
            way()
            (commit,) = store._journal.replay(before)
            assert {(event.write_scope, event.task_id) for event in commit.events} == {("task", "T")}
        assert store.get_memory(own).task_id == "T"


class TestLinks:
    def test_a_removed_link_is_gone_everywhere(self, house: House, open_store: Open, seen: See) -> None:
        before = seen(house.store)
        house.store.link(house.id, "CONTRADICTS", house.newer, reason="r", score=0.5)
        other = open_store(embedder=house.store.embedder)
        assert len(other.links(house.id)) == 2  # NEXT is the other
        assert house.store.unlink(house.id.upper(), "contradicts", house.newer) is True
        assert seen(house.store) == before
        assert seen(other) == before
        house.store.rebuild()
        assert seen(house.store) == before

    def test_only_the_named_link_is_removed(self, house: House) -> None:
        for relation in ("SUPPORTS", "RELATED_TO"):
            house.store.link(house.id, relation, house.newer)
            house.store.link(house.newer, relation, house.id)
        house.store.unlink(house.id, "SUPPORTS", house.newer)
        left = {(link.source_id, link.relation) for link in house.store.links(house.id)}
        assert left - {(house.id, "NEXT")} == {
            (house.newer, "SUPPORTS"), (house.id, "RELATED_TO"), (house.newer, "RELATED_TO"),
        }  # fmt: skip

    def test_removed_support_no_longer_counts(self, house: House) -> None:
        ids = [house.id, house.newer]
        general = house.store.insert_memory({"type": "semantic", "content": "G", "supporting_memory_ids": ids}).id
        house.store.unlink(house.id, "SUPPORTS", general)
        assert house.store.get_memory(general).supporting_memory_ids == [house.newer]

    @pytest.mark.parametrize("relation", ["NEXT", "likes"])
    def test_other_relations_are_refused(self, house: House, relation: str) -> None:
        with pytest.raises(memgraph.InvalidInputError, match="relation"):
            house.store.unlink(house.id, relation, house.newer)

    def test_superseded_by_is_the_inverse(self, house: House) -> None:
        link = house.store.supersede(house.id, by=house.newer, reason="scaled", score=0.9)
        assert (link.source_id, link.target_id, link.reason, link.score) == (house.newer, house.id, "scaled", 0.9)
        assert house.store.supersede(house.id, by=house.newer) == link
        assert house.store.supersede(house.id, by=house.newer, reason="new").score == 0.9
        assert house.store.unlink(house.id, "superseded_by", house.newer) is True

    def test_nothing_supersedes_what_supersedes_it(self, house: House) -> None:
        last = house.store.insert_memory({"type": "episodic", "content": "No queue at all"}).id
        house.enter("superseded")
        house.store.supersede(house.newer, by=last)
        for older, by in ((last, house.id), (house.newer, house.id), (house.id, house.id)):
            with pytest.raises(memgraph.InvalidInputError):
                house.store.supersede(older, by=by)

    def test_unsupersede_undoes_one_or_all(self, house: House) -> None:
        other = house.store.insert_memory({"type": "episodic", "content": "No queue at all"}).id
        house.enter("superseded")
        house.store.supersede(house.id, by=other)
        assert house.store.unsupersede(house.id, by=other) == [other]
        assert house.views()["recall"] is False
        assert house.store.unsupersede(house.id, by=other) == []
        house.store.supersede(house.id, by=other)
        assert sorted(house.store.unsupersede(house.id)) == sorted([other, house.newer])

    def test_a_replaced_memory_is_true_again_only_when_nothing_replaces_it(self, house: House) -> None:
        other = house.store.insert_memory({"type": "episodic", "content": "No queue at all"}).id
        house.enter("superseded")
        house.store.supersede(house.id, by=other)
        house.store.invalidate(house.id, reason=REPLACED)
        house.store.unsupersede(house.id, by=other)
        assert house.store.get_memory(house.id).invalid_at is not None
        house.store.unsupersede(house.id, by=house.newer)
        assert house.store.get_memory(house.id).invalid_at is None


@pytest.fixture
def chain(store: Any) -> Iterator[tuple[Any, list[str]]]:
    """Return a store with six episodes in a row, links, and a recall that returned them."""
    fields = {"type": "episodic", "project_id": "P", "session_id": "s", "tags": ["a"], "agents_involved": ["MARS"]}
    fields["entities"] = [{"name": "login.py", "kind": "file"}]
    ids = [store.insert_memory({**fields, "content": f"Event {n} of the night"}).id for n in range(6)]
    store.link(ids[1], "SUPERSEDES", ids[0], reason="newer", score=0.5)
    store.link(ids[3], "CONTRADICTS", ids[1])
    store.insert_memory({"type": "semantic", "content": "In general", "supporting_memory_ids": ids[1:3]})
    recalled = memgraph.MemoryRetrieval(store).retrieve({"task_description": "the night", "project_id": "P"})
    used = [memory.id for memory in recalled.memories]
    store.record_outcome(recalled.query_id, "success", used=used[:1], overridden=used[1:2])
    store.record_access(ids[1])
    store.update_memory(ids[1], content="Event one of the night, corrected", tags=["a", "b"])
    return store, ids


class TestUndelete:
    @pytest.mark.parametrize("place", [0, pytest.param(1, marks=pytest.mark.embedded), 5])
    def test_undelete_restores_everything(self, chain: Any, seen: See, place: int) -> None:
        store, ids = chain
        before = seen(store)
        vector = store.get_memory(ids[place]).embedding
        store.delete_memory(ids[place])
        back = store.undelete(ids[place])
        assert back.id == ids[place]
        assert np.array_equal(back.embedding, vector)
        assert seen(store) == before
        store.rebuild()
        assert seen(store) == before

    @pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (5, 4)])
    def test_several_are_restored_in_any_order(self, chain: Any, seen: See, order: tuple[int, ...]) -> None:
        store, ids = chain
        before, found = seen(store), search(store)
        for place in sorted(order):
            store.delete_memory(ids[place])
        for place in order:
            store.undelete(ids[place])
        assert seen(store) == before
        assert search(store) == found
        assert [one.previous_id for one in store.read_memories(ids)] == [None, *ids[:-1]]

    def test_an_index_in_memory_follows_what_another_process_undeletes(self, chain: Any, open_store: Open) -> None:
        store, ids = chain
        second = open_store()
        found = search(second)
        for place in (1, 2, 4):
            store.delete_memory(ids[place])
        assert search(second) == search(store) != found
        for place in (2, 4, 1):
            store.undelete(ids[place])
        assert search(second) == search(store) == found

    def test_the_order_depends_on_existing_memories_only(self, chain: Any) -> None:
        store, ids = chain

        def order() -> dict[int, int | None]:
            there = {place: store.get_memory(key) for place, key in enumerate(ids)}
            place_of = {key: place for place, key in enumerate(ids)}
            return {place: place_of.get(memory.previous_id) for place, memory in there.items() if memory is not None}

        for place in (2, 1, 3):
            store.delete_memory(ids[place])
        assert order() == {0: None, 4: 0, 5: 4}
        store.undelete(ids[1])
        assert order() == {0: None, 1: 0, 4: 1, 5: 4}
        store.undelete(ids[3])
        assert order() == {0: None, 1: 0, 3: 1, 4: 3, 5: 4}
        store.delete_memory(ids[1])
        store.undelete(ids[2])
        assert order() == {0: None, 2: 0, 3: 2, 4: 3, 5: 4}

    def test_two_successors_are_both_joined_and_restored(self, chain: Any, open_store: Open) -> None:
        store, ids = chain
        fields = {"type": "episodic", "project_id": "P", "session_id": "s", "previous_id": ids[2]}
        branch = store.insert_memory({**fields, "content": "Event 3b of the night"}).id
        second = open_store()
        before = search(second)
        store.delete_memory(ids[2])
        for one in (store, second):
            index = one.reader.index
            previous = [index.column("previous")[index.slot(key)] for key in (ids[3], branch)]
            assert previous == [index.slot(ids[1])] * 2
        store.undelete(ids[2])
        assert [one.previous_id for one in store.read_memories([ids[3], branch])] == [ids[2]] * 2
        assert search(second) == search(store) == before

    def test_changes_made_meanwhile_are_kept(self, chain: Any) -> None:
        store, ids = chain
        store.delete_memory(ids[5])
        new = store.insert_memory({"type": "episodic", "content": "Event 7", "project_id": "P", "session_id": "s"})
        assert new.previous_id == ids[4]
        store.undelete(ids[5])
        assert store.get_memory(ids[5]).previous_id == ids[4]
        assert store.get_memory(new.id).previous_id == ids[4]  # it was recorded so
        following = store.insert_memory(
            {"type": "episodic", "content": "Event 8", "project_id": "P", "session_id": "s"}
        )
        assert following.previous_id == new.id

    def test_a_link_is_restored_with_its_last_end(self, chain: Any) -> None:
        store, ids = chain
        for key in (ids[0], ids[1]):
            store.delete_memory(key)
        store.undelete(ids[0])
        assert not any(link.relation == "SUPERSEDES" for link in store.links(ids[0]))
        store.undelete(ids[1])
        (link,) = [link for link in store.links(ids[0]) if link.relation == "SUPERSEDES"]
        assert (link.source_id, link.reason, link.score) == (ids[1], "newer", 0.5)

    def test_a_removed_link_is_not_restored(self, chain: Any) -> None:
        store, ids = chain
        store.unlink(ids[1], "SUPERSEDES", ids[0])
        store.delete_memory(ids[1])
        store.undelete(ids[1])
        assert not any(link.relation == "SUPERSEDES" for link in store.links(ids[1]))

    def test_a_memory_added_again_under_its_id_is_the_later_one(self, chain: Any) -> None:
        store, ids = chain
        store.delete_memory(ids[1])
        store.insert_memory({"type": "episodic", "content": "Another", "id": ids[1]})
        assert store.undelete(ids[1]).content == "Another"  # it is there
        store.delete_memory(ids[1])
        assert store.undelete(ids[1]).content == "Another"
        assert not any(link.relation != "NEXT" for link in store.links(ids[1]))

    def test_twice_and_after_closing(self, chain: Any, seen: See, open_store: Open) -> None:
        store, ids = chain
        before = seen(store)
        for _ in range(2):
            store.delete_memory(ids[2])
            store.close()
            store = open_store()
            store.undelete(ids[2])
        assert seen(store) == before

    def test_rows_that_are_behind_follow(self, chain: Any, seen: See, open_store: Open, tmp_path: Path) -> None:
        store, ids = chain
        home = tmp_path / "store"
        store.close()
        copy_journal(home, tmp_path / "early")
        store = open_store()
        for key in (ids[2], ids[3], ids[1]):
            store.delete_memory(key)
        for key in (ids[3], ids[1]):
            store.undelete(key)
        expected, found = seen(store), search(store)
        store.close()
        put_rows(home, tmp_path / "early")
        again = open_store()
        assert (seen(again), search(again)) == (expected, found)
        again.verify()

    def test_pending_accesses_are_committed_first(self, chain: Any) -> None:
        store, ids = chain
        store.delete_memory(ids[2])
        index = store.reader.index
        assert index.column("previous")[index.slot(ids[3])] == index.slot(ids[1])
        store.record_access(ids[3])
        store.undelete(ids[2])
        index = store.reader.index
        assert index.column("previous")[index.slot(ids[3])] == index.slot(ids[2])

    def test_the_event_is_reserved_for_the_store(self, chain: Any) -> None:
        store, ids = chain
        store.delete_memory(ids[2])
        store.undelete(ids[2])
        (event,) = [e for c in store._journal.replay() for e in c.events if isinstance(e.payload, MemoryUndeleted)]
        store.delete_memory(ids[2])
        with pytest.raises(memgraph.InvalidInputError, match="undelete"):
            store.commit("global", [event.payload])

    def test_a_changed_journal_line_is_refused(self, chain: Any, tmp_path: Path) -> None:
        store, ids = chain
        store.delete_memory(ids[2])
        change_payload(tmp_path / "store", "Event 2 of the night", "Event 9 of the night")
        with pytest.raises(DamagedJournalError):
            store.undelete(ids[2])


def search(store: Any) -> list[tuple[str, float]]:
    found = memgraph.MemoryRetrieval(store).search_memories("event of the night", limit=20)
    return [(one.memory.id, one.score) for one in found]


class TestFindingIds:
    def test_a_prefix_identifies_an_id(self, house: House) -> None:
        for beginning in (house.id[:8], house.id[:13].upper(), f" {house.id} "):
            assert house.store.find_id(beginning) == house.id

    def test_ambiguous_prefixes_are_listed(self, store: Any) -> None:
        ids = [f"abcdef01-0000-4000-8000-{n:012d}" for n in range(7)]
        for key in ids:
            store.insert_memory({"type": "semantic", "content": f"memory {key[-2:]}", "id": key})
        with pytest.raises(memgraph.InvalidInputError, match="matches 7 ids") as refused:
            store.find_id("abcdef01")
        assert ids[0] in str(refused.value)
        assert ids[4] in str(refused.value)
        assert "…" in str(refused.value)
        assert store.find_id(ids[3][:-1] + "3") == ids[3]

    @pytest.mark.parametrize("given", ["", "abc", "1234567", "zzzzzzz"])
    def test_a_short_prefix_is_rejected(self, store: Any, given: str) -> None:
        with pytest.raises(memgraph.InvalidInputError, match="8 characters"):
            store.find_id(given)

    def test_an_unknown_prefix_raises_an_error(self, house: House) -> None:
        for beginning in ("00000000", "not an id at all"):
            with pytest.raises(memgraph.NotFoundError):
                house.store.find_id(beginning)

    def test_deleted_ids_are_searched_separately(self, house: House) -> None:
        with pytest.raises(memgraph.NotFoundError):
            house.store.find_id(house.id[:8], deleted=True)
        house.store.delete_memory(house.id)
        assert house.store.find_id(house.id[:8], deleted=True) == house.id
        with pytest.raises(memgraph.NotFoundError):
            house.store.find_id(house.id[:8])


class TestForgetting:
    def test_forget_and_restore_by_text(self, house: House) -> None:
        forgot = house.commands.forget(TEXT)
        assert forgot.data == {"id": house.id}
        assert f"memgraph unforget {house.id}" in forgot.message
        assert house.views() == seen_by(("suppressed",))
        back = house.commands.unforget(TEXT)
        assert (back.command, back.success, back.data) == ("unforget", True, {"id": house.id})
        assert f"memgraph forget {house.id}" in back.message
        assert house.views() == dict.fromkeys(VIEWS, True)

    def test_forget_by_id_and_by_prefix(self, house: House) -> None:
        assert house.commands.forget(house.id).success
        assert house.store.get_memory(house.id).is_suppressed
        assert house.commands.unforget(house.id[:8]).success
        assert not house.store.get_memory(house.id).is_suppressed
        again = house.commands.unforget(house.id)
        assert again.success
        assert "is not forgotten" in again.message

    def test_restoring_finds_only_forgotten_memories(self, house: House) -> None:
        result = house.commands.unforget(TEXT)
        assert (result.success, result.data) == (False, None)
        assert "suppressed" in result.message

    def test_eight_letters_may_be_a_text(self, house: House) -> None:
        assert not house.commands.forget("deadbeef").success
