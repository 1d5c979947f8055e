"""Events found by the bytes of their lines are those that parsing every line finds."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryLinked


@pytest.fixture
def journal(store: Any) -> Any:
    said = 'He wrote "type":"memory.deleted" and "relation":"DERIVED_FROM" on the wall'
    first = store.insert_memory({"type": "semantic", "content": said, "source": "notes"})
    second = store.insert_memory({"type": "semantic", "content": "The wall is white", "source": "notes of May"})
    store.link(first.id, "RELATED_TO", second.id)
    return store._journal


def test_text_in_a_memory_imitates_no_event(journal: Any, store: Any) -> None:
    assert list(journal.lines_of(MemoryDeleted.TYPE)) == []
    assert journal.events_of(MemoryDeleted.TYPE) == []
    assert journal.events_of(MemoryLinked.TYPE, holding=b'"relation":"DERIVED_FROM"') == []
    gone = store.list_memories()[0].id
    store.delete_memory(gone)
    assert [event.payload.id for event in journal.events_of(MemoryDeleted.TYPE)] == [gone]


def test_what_is_found_is_what_reading_everything_finds(journal: Any) -> None:
    every = list(journal.events_after(0))
    for type_ in {event.type for event in every}:
        assert journal.events_of(type_) == [event for event in every if event.type == type_]
    (linked,) = journal.events_of(MemoryLinked.TYPE, holding=b'"RELATED_TO"')
    ids = [linked.payload.source_id, linked.payload.target_id]
    by_id = {one: [event for event in every if one in str(event.content)] for one in ids}
    assert journal.histories(ids) == by_id
    assert journal.histories(ids[:1]) == {ids[0]: by_id[ids[0]]}


def test_lines_are_found_by_how_the_value_of_a_field_begins(journal: Any) -> None:
    found = [
        journal.content(line)["memory"]["source"]
        for line in journal.lines_of(MemoryAdded.TYPE, holding=b'"source":"notes o')
    ]
    assert found == ["notes of May"]
    assert len(list(journal.lines_of(MemoryAdded.TYPE, holding=b'"source":"notes'))) == 2
