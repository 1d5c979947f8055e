"""Corrections by a person: what each changes, refuses and records, and how it is undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.errors import InvalidInputError, NotFoundError, ScopeError, UndoError
from memgraph.facade import MemGraph
from tests.tables import raw_lines

GONE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def memory(store: Any) -> MemGraph:
    return MemGraph(store)


@pytest.fixture
def fact(store: Any) -> str:
    return str(store.insert_memory({"type": "semantic", "content": "Deploy on Tuesdays", "tags": ["deploy", "ops"]}).id)


@pytest.fixture
def other(store: Any) -> str:
    given = {"type": "semantic", "content": "The window opens at nine", "tags": ["window"], "privacy_tier": "sensitive"}
    return str(store.insert_memory({**given, "is_pinned": True, "source_event_ids": ["b/1"]}).id)


def user_events(store: Any, after: int = 0) -> list[Any]:
    return [event for event in store.reader.events_after(after) if event.actor == "user"]


def offset(store: Any) -> int:
    return int(store.reader.index.offset.seq)


def test_an_edit_sets_fields_embeds_new_content_and_states_the_differences(
    memory: MemGraph, fact: str, embedded_texts: Callable[[Any], list[str]], embedder: Any
) -> None:
    values = {"content": "Deploy on Wednesdays", "title": "Day", "valid_at": "2026-01-01", "privacy_tier": "private"}
    result = memory.curation.edit(fact, values, add_tags=["Ops", "night"], remove_tags=["DEPLOY"])
    found = memory.store.get_memory(fact)
    assert found is not None
    assert (found.content, found.title, found.privacy_tier) == ("Deploy on Wednesdays", "Day", "private")
    assert found.tags == ["ops", "night"]
    assert np.allclose(found.embedding, embedder.embed(["Deploy on Wednesdays"])[0])
    changes = {change.field: (change.old, change.new) for change in result.memories[0].fields}
    assert changes["content"] == ("Deploy on Tuesdays", "Deploy on Wednesdays")
    assert changes["tags"] == (["deploy", "ops"], ["ops", "night"])
    assert changes["valid_at"] == (None, "2026-01-01T00:00:00.000Z")
    assert "embedded_at" not in changes
    (event,) = user_events(memory.store)
    assert (event.type, event.seq) == ("memory.revised", result.event)


def test_an_edit_that_changes_nothing_records_nothing(memory: MemGraph, fact: str) -> None:
    before = offset(memory.store)
    result = memory.curation.edit(fact, {"content": "Deploy on Tuesdays"}, add_tags=["DEPLOY"], remove_tags=["absent"])
    assert (result.event, result.memories, result.unchanged) == (None, [], [fact])
    assert offset(memory.store) == before


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"created_at": "2026-01-01"}, "created_at"),
        ({"is_pinned": True}, "is_pinned"),
        ({"privacy_tier": "secret"}, "privacy_tier"),
        ({"valid_at": "yesterday"}, "valid_at"),
        ({"content": ""}, "content"),
        ({"content": None}, "content"),
        ({"tags": "deploy"}, "tags"),
    ],
)
def test_a_wrong_value_is_refused_and_changes_nothing(
    memory: MemGraph, fact: str, values: dict[str, Any], field: str
) -> None:
    before = memory.store.digest()
    with pytest.raises(InvalidInputError) as error:
        memory.curation.edit(fact, values)
    assert error.value.field == field
    assert memory.store.digest() == before


def test_content_is_edited_one_memory_at_a_time(memory: MemGraph, fact: str, other: str) -> None:
    with pytest.raises(InvalidInputError, match="one memory at a time"):
        memory.curation.edit([fact, other], {"content": "x"})
    with pytest.raises(NotFoundError):
        memory.curation.pin([fact, GONE])
    assert memory.store.get_stats().pinned_count == 1


def test_a_project_is_changed_unless_the_memory_belongs_to_a_sequence_or_a_build(memory: MemGraph, fact: str) -> None:
    memory.curation.edit(fact, {"project_id": "shop"})
    assert [one.id for one in memory.store.query_by_project("shop")] == [fact]
    episode = memory.store.insert_memory(
        {"type": "episodic", "content": "It failed", "project_id": "old", "build_id": "b"}
    )
    with pytest.raises(InvalidInputError, match="build_id belongs to its project"):
        memory.curation.edit(episode.id, {"project_id": "shop"})
    moved = memory.curation.edit(episode.id, {"project_id": "shop"}, as_new=True).memories[0]
    found = memory.store.get_memory(moved.id)
    assert found is not None
    assert (found.project_id, found.build_id, found.evidence_build_ids) == ("shop", None, [])


def test_a_new_version_supersedes_the_old_one_in_one_commit(memory: MemGraph, fact: str, other: str) -> None:
    store = memory.store
    general = store.insert_memory({"type": "semantic", "content": "In general", "supporting_memory_ids": [fact, other]})
    store.archive(general.id)
    before, digest = offset(store), store.digest()
    result = memory.curation.edit(general.id, {"content": "In general, at nine"}, as_new=True)
    new = store.get_memory(result.memories[0].id)
    assert new is not None
    assert (new.content, new.archived_at, new.supporting_memory_ids) == (
        "In general, at nine",
        None,
        sorted([fact, other]),
    )
    assert store.get_memory(general.id).content == "In general"
    assert len({event.commit_id for event in user_events(store, before)}) == 1
    assert [one.id for one in store.list_memories(state="superseded")] == [general.id]
    memory.curation.undo()
    assert store.digest() == digest


def test_a_merge_unites_what_the_memories_have_and_keeps_the_texts_readable(
    memory: MemGraph, fact: str, other: str
) -> None:
    store = memory.store
    third = store.insert_memory({"type": "semantic", "content": "A third"}).id
    store.link(other, "ELABORATES", third)
    store.link(third, "CONTRADICTS", other)
    digest = store.digest()
    memory.curation.merge([fact, other])
    kept = store.get_memory(fact)
    assert kept is not None
    assert (kept.content, kept.tags, kept.source_event_ids) == (
        "Deploy on Tuesdays",
        ["deploy", "ops", "window"],
        ["b/1"],
    )
    assert (kept.privacy_tier, kept.is_pinned) == ("sensitive", True)
    assert store.get_memory(other).content == "The window opens at nine"
    links = {(link.source_id, link.relation, link.target_id): link.reason for link in store.links(fact)}
    assert links == {
        (fact, "ELABORATES", third): None,
        (third, "CONTRADICTS", fact): None,
        (fact, "SUPERSEDES", other): "merged by the user",
    }
    memory.curation.undo()
    assert store.digest() == digest


def test_cues_are_united_by_a_merge_and_go_with_their_text(memory: MemGraph, fact: str, other: str) -> None:
    store = memory.store

    def cues() -> list[str]:
        return list(store.get_memory(fact).cues)

    store.update_memory(fact, cues=["a", "b", "c"])
    store.update_memory(other, cues=["b", "d", "e", "f"])
    memory.curation.merge([fact, other])
    assert cues() == ["a", "b", "c", "d", "e"]
    memory.curation.edit(fact, {"title": "Day"})
    assert cues() == ["a", "b", "c", "d", "e"]
    memory.curation.edit(fact, {"content": "Deploy on Fridays", "cues": ["a", "b", "c", "d", "e"]})
    assert cues() == ["a", "b", "c", "d", "e"], "they were given with the text"
    memory.curation.edit(fact, {"cues": ["a"]})
    assert cues() == ["a"]
    store.update_memory(fact, content="Deploy on Mondays")
    assert cues() == []
    with pytest.raises(InvalidInputError, match="cues"):
        memory.curation.edit(fact, {"cues": ["x"] * 6})


def test_a_merge_refuses_one_memory_a_circle_and_different_tasks(memory: MemGraph, fact: str, other: str) -> None:
    with pytest.raises(InvalidInputError, match="at least two"):
        memory.curation.merge([fact, fact])
    with pytest.raises(InvalidInputError, match="one of the memories"):
        memory.curation.merge([fact, other], keep=memory.store.insert_memory({"type": "semantic", "content": "x"}).id)
    memory.store.supersede(fact, by=other)
    with pytest.raises(InvalidInputError, match="is itself superseded"):
        memory.curation.merge([fact, other])
    assert memory.curation.merge([fact, other], keep=other).event is not None
    task = memory.store.insert_memory({"type": "semantic", "content": "Of a task", "task_id": "T"}).id
    with pytest.raises(ScopeError, match="no task, 'T'"):
        memory.curation.merge([other, task])


def test_a_split_derives_its_parts_from_the_memory_that_they_supersede(memory: MemGraph, other: str) -> None:
    store, digest = memory.store, memory.store.digest()
    result = memory.curation.split(other, ["The window opens", "It is nine"])
    parts = [store.get_memory(one.id) for one in result.memories if one.change == "added"]
    assert [part.content for part in parts] == ["The window opens", "It is nine"]
    for part in parts:
        assert (part.tags, part.privacy_tier, part.is_pinned) == (["window"], "sensitive", True)
        assert part.embedding is not None
        relations = {(link.source_id, link.relation) for link in store.links(part.id)}
        assert relations >= {(part.id, "DERIVED_FROM"), (part.id, "SUPERSEDES"), (other, "SUPPORTS")}
    with pytest.raises(InvalidInputError, match="at least two"):
        memory.curation.split(other, ["Only one"])
    memory.curation.undo()
    assert store.digest() == digest


def test_changes_of_many_memories_are_one_commit_and_one_undo(memory: MemGraph, fact: str, other: str) -> None:
    digest, before = memory.store.digest(), offset(memory.store)
    result = memory.curation.tag([fact, other, fact], ["night"])
    assert [one.id for one in result.memories] == [fact, other]
    assert len({event.commit_id for event in user_events(memory.store, before)}) == 1
    memory.curation.undo(result.event)
    assert memory.store.digest() == digest


def test_undoing_goes_further_back_each_time_and_an_undoing_can_be_undone(memory: MemGraph, fact: str) -> None:
    states = [memory.store.digest()]
    for call in (lambda: memory.curation.pin(fact), lambda: memory.curation.tag(fact, ["x"])):
        call()
        states.append(memory.store.digest())
    last = memory.curation.undo()
    first = memory.curation.undo()
    assert memory.store.digest() == states[0]
    assert (first.is_redo, memory.curation.undo(first.event).is_redo) == (False, True)
    assert memory.store.digest() == states[1]
    memory.curation.undo(last.event)
    assert memory.store.digest() == states[2]
    assert memory.curation.undo().undone == last.undone  # it is in force again
    with pytest.raises(UndoError, match="undone already"):
        memory.curation.undo(last.undone)


def test_undo_restores_the_vector_of_the_former_text_to_the_bit(
    memory: MemGraph, vector_at: Any, embedded_texts: Any
) -> None:
    given = {"type": "semantic", "content": "Given with a vector", "embedding": vector_at(0.3)}
    made = memory.store.insert_memory(given)
    memory.curation.edit(made.id, {"content": "Another text"})
    asked = len(embedded_texts(memory.store.embedder))
    memory.curation.undo()
    assert np.array_equal(memory.store.get_memory(made.id).embedding, vector_at(0.3))
    assert len(embedded_texts(memory.store.embedder)) == asked


def test_what_stands_in_the_way_of_an_undoing_is_named(memory: MemGraph, fact: str, other: str) -> None:
    first = memory.curation.tag(fact, ["x"]).event
    second = memory.curation.untag(fact, ["ops"]).event
    memory.curation.pin(fact)  # another field does not count
    with pytest.raises(UndoError) as error:
        memory.curation.undo(first)
    assert error.value.blocked_by == [second]
    assert f"event {second} (memory.revised, tags)" in str(error.value)
    linked = memory.store.curation.states.link(fact, "RELATED_TO", other)
    link = offset(memory.store)
    memory.store.link(fact, "RELATED_TO", other, reason="another reason", created_at=linked.created_at)
    with pytest.raises(UndoError, match=r"memory\.linked"):
        memory.curation.undo(link)
    memory.store.delete_memory(fact)
    with pytest.raises(UndoError, match=r"memory\.deleted"):
        memory.curation.undo(second)


def test_changes_of_other_fields_since_are_kept(memory: MemGraph, fact: str) -> None:
    tagged = memory.curation.tag(fact, ["x"]).event
    memory.curation.pin(fact)
    memory.curation.undo(tagged)
    found = memory.store.get_memory(fact)
    assert found is not None
    assert (found.tags, found.is_pinned) == (["deploy", "ops"], True)


def test_what_is_no_change_of_memories_is_not_undone(memory: MemGraph, fact: str) -> None:
    memory.recall("deploy")
    memory.store.flush()
    (recall,) = [event.seq for event in memory.store.reader.events_after(0) if event.type == "retrieval.recorded"]
    with pytest.raises(UndoError, match="which memories a recall returned"):
        memory.curation.undo(recall)
    with pytest.raises(UndoError, match="upkeep"):
        memory.curation.undo(1)
    with pytest.raises(NotFoundError, match="no event with id '999'"):
        memory.curation.undo(999)
    with pytest.raises(InvalidInputError, match="no change by a user"):
        memory.curation.undo()
    with pytest.raises(InvalidInputError):
        memory.curation.undo(-1)


def test_remembering_forgetting_and_deleting_are_undone(memory: MemGraph, fact: str) -> None:
    empty = memory.store.digest()
    (remembered,) = memory.commands.remember("Ask before touching the billing tables").data["ids"]
    full = memory.store.digest()
    memory.commands.forget(remembered)
    memory.curation.undo()
    assert memory.store.digest() == full
    memory.store.curation.states.delete_memory(fact)
    memory.curation.undo()
    assert memory.store.digest() == full
    memory.curation.undo()
    assert memory.store.get_memory(remembered) is None
    assert memory.store.digest() == empty


def test_several_are_invalidated_archived_forgotten_and_deleted_at_once(
    memory: MemGraph, fact: str, other: str
) -> None:
    store, ids = memory.store, [fact, other]
    store.link(fact, "RELATED_TO", other)
    digest = store.digest()
    memory.curation.invalidate(ids, reason="moved", at="2026-01-01")
    assert [one.invalid_at for one in store.list_memories(state="invalidated")] == ["2026-01-01T00:00:00.000Z"] * 2
    memory.curation.archive(ids, reason="old")
    memory.curation.forget(ids)
    assert sorted(one.id for one in store.list_memories(state="suppressed")) == sorted(ids)
    memory.curation.delete(ids, reason="wrong")
    assert list(store.every_memory()) == []
    for _ in range(4):
        memory.curation.undo()
    assert store.digest() == digest


def test_taking_back_a_replacement_is_one_commit(memory: MemGraph, fact: str, other: str) -> None:
    from memgraph.model.link import REPLACED

    memory.store.invalidate(fact, reason=REPLACED)
    memory.store.supersede(fact, by=other)
    before, digest = offset(memory.store), memory.store.digest()
    assert memory.store.curation.states.unsupersede(fact) == [other]
    assert len({event.commit_id for event in user_events(memory.store, before)}) == 1
    memory.curation.undo()
    assert memory.store.digest() == digest


def test_a_view_of_the_past_is_not_corrected(memory: MemGraph, fact: str, clock: Any) -> None:
    clock.advance(days=1)
    memory.curation.pin(fact)
    with memory.at("2026-02-01") as past, pytest.raises(memgraph.errors.ReadOnlyError):
        past.curation.pin(fact)


def test_secrets_are_neither_stored_nor_shown(memory: MemGraph, fact: str) -> None:
    key = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
    results = [
        memory.curation.edit(fact, {"content": f"The key is {key}"}),
        memory.curation.edit(fact, {"content": f"Again, the key is {key}"}, as_new=True),
        memory.curation.split(fact, [f"The key is {key}", "It is secret"]),
    ]
    assert key not in "".join(result.model_dump_json() for result in results)
    assert not any(key.encode() in line for line in raw_lines(memory.store.config.home))


def test_many_additions_are_undone_and_redone_at_once(memory: MemGraph) -> None:
    store = memory.store
    given = {"type": "episodic", "project_id": "P", "session_id": "s", "tags": ["many"]}
    before = store.digest()
    ids = [one.id for one in store.insert_memories([{**given, "content": f"Event {n}"} for n in range(60)])]
    after, last = store.digest(), offset(store)
    undone = memory.curation.undo(last)
    assert len(undone.memories) == 60
    assert store.digest() == before
    memory.curation.undo(undone.event)
    assert store.digest() == after
    assert [one.id for one in store.every_memory()] == ids
