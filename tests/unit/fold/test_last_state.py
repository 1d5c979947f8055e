"""How `memory.unlinked` and `memory.undeleted` change the rows, and the last state of a deleted memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.errors import InvalidInputError
from memgraph.fold.fold import last_known
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    RecallAgain,
    RecordPatch,
    VectorRef,
)
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessEffect, AccessRecorded, OutcomeRecorded, RecalledItem, RetrievalRecorded
from memgraph.model.ids import natural_id
from memgraph.model.memory import MemoryRecord

NOW, LATER = "2026-02-01T09:00:00.000Z", "2026-02-02T09:00:00.000Z"
VECTOR = VectorRef(model="m", row=7, sha256="a" * 64)
QUERY = "00000000-0000-4000-8000-00000000000f"
Added = Callable[..., MemoryAdded]
Ids = Callable[[int], str]


def linked(source: str, relation: Any, target: str, **properties: Any) -> MemoryLinked:
    return MemoryLinked(source_id=source, relation=relation, target_id=target, created_at=NOW, **properties)


def unlinked(source: str, relation: Any, target: str) -> MemoryUnlinked:
    return MemoryUnlinked(source_id=source, relation=relation, target_id=target)


def retrieval(*memory_ids: str) -> RetrievalRecorded:
    items = [RecalledItem(id=key, type="episodic", score=0.5, tokens=3) for key in memory_ids]
    return RetrievalRecorded(
        query_id=QUERY, query_hmac="b" * 64, retrieved_at=NOW, settings_version="1", total_tokens=6, results=items
    )


def back(added: MemoryAdded, seq: int, *followers: str, **fields: Any) -> MemoryUndeleted:
    """Return the event that undeletes an added memory."""
    recalls = fields.pop("recalls", [])
    record = MemoryRecord.parse({**added.memory.model_dump(), **fields})
    return MemoryUndeleted(
        memory=record, vector=added.vector, added_seq=seq, follower_ids=list(followers), recalls=recalls
    )


def events(*payloads: Payload) -> list[Event]:
    return [
        Event(seq, "c", True, payload.TYPE, payload, payload.dump(), "global", None, "agent", NOW, NOW, "s")
        for seq, payload in enumerate(payloads, start=1)
    ]


class TestUnlinked:
    def test_only_the_named_link_is_removed(self, state: Any, added: Added, memory_id: Ids) -> None:
        one, two = memory_id(1), memory_id(2)
        state.fold(added(1), added(2), linked(one, "SUPPORTS", two), linked(one, "RELATED_TO", two))
        state.fold(linked(two, "SUPPORTS", one))
        changes = state.fold(unlinked(one, "SUPPORTS", two))
        assert [(change.table, change.key, change.new) for change in changes] == [("SUPPORTS", (one, two), None)]
        assert state.table("SUPPORTS").keys() == {(two, one)}
        assert state.table("RELATED_TO").keys() == {(one, two)}

    def test_unlinking_a_missing_link_changes_nothing(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1), added(2))
        assert state.fold(unlinked(memory_id(1), "SUPPORTS", memory_id(2))) == []

    def test_next_cannot_be_unlinked(self, memory_id: Ids) -> None:
        with pytest.raises(InvalidInputError, match="relation"):
            unlinked(memory_id(1), "NEXT", memory_id(2))


class TestUndeleted:
    @pytest.fixture
    def rows(self, state: Any, added: Added, memory_id: Ids) -> dict[Any, Any]:
        """Fold three consecutive memories, each with a context, and return the rows."""
        fields = {"project_id": "P", "session_id": "s", "tags": ["a"], "agents_involved": ["MARS"]}
        for number in (1, 2, 3):
            previous = memory_id(number - 1) if number > 1 else None
            state.fold(added(number, vector=VECTOR, previous_id=previous, **fields))
        return dict(state.rows)

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_all_rows_are_restored(self, state: Any, rows: Any, added: Added, memory_id: Ids, number: int) -> None:
        me = memory_id(number)
        row = rows["Memory", me]
        state.fold(MemoryDeleted(id=me))
        assert state.rows != rows
        fields = {name: row[name] for name in ("project_id", "session_id", "tags", "agents_involved")}
        followers = [memory_id(number + 1)] if number < 3 else []
        previous = {"previous_id": row["previous_id"]} if "previous_id" in row else {}
        state.fold(back(added(number, vector=VECTOR, **fields, **previous), row["seq"], *followers))
        assert state.rows == rows

    def test_one_fold_gives_the_same_rows(self, state: Any, rows: Any, added: Added, memory_id: Ids) -> None:
        fields = {"project_id": "P", "session_id": "s", "tags": ["a"], "agents_involved": ["MARS"]}
        event = back(added(2, vector=VECTOR, previous_id=memory_id(1), **fields), 2, memory_id(3))
        assert state.fold(MemoryDeleted(id=memory_id(2)), event) == []
        assert state.rows == rows

    def test_a_follower_that_still_names_it_is_linked(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(2, previous_id=memory_id(1)))
        assert state.table("NEXT") == {}
        state.fold(back(added(1), 1, memory_id(2), memory_id(9)))
        assert state.table("NEXT").keys() == {(memory_id(1), memory_id(2))}

    def test_a_later_last_memory_stays_the_last(self, state: Any, rows: Any, added: Added, memory_id: Ids) -> None:
        fields = {"project_id": "P", "session_id": "s"}
        state.fold(MemoryDeleted(id=memory_id(3)))
        state.fold(added(4, previous_id=memory_id(2), **fields))
        state.fold(back(added(3, previous_id=memory_id(2), **fields), 3))
        key = natural_id("session", "s", project_id="P")
        assert state.get("Session", key)["last_memory_id"] == memory_id(4)

    def test_recalls_are_restored_with_their_outcomes(self, state: Any, added: Added, memory_id: Ids) -> None:
        me = memory_id(1)
        state.fold(added(1), added(2), retrieval(memory_id(2), me))
        state.fold(OutcomeRecorded(query_id=QUERY, outcome="success", used=[me], recorded_at=NOW))
        before = dict(state.rows)
        state.fold(MemoryDeleted(id=me))
        known = RecallAgain(query_id=QUERY, rank=2, score=0.5, tokens=3, used=True)
        unknown = RecallAgain(query_id=memory_id(99), rank=1, score=0.5, tokens=3)
        state.fold(back(added(1), 1, recalls=[known, unknown]))
        assert state.rows == before


class TestLastKnown:
    def test_every_kind_of_event_counts(self, added: Added, memory_id: Ids) -> None:
        me, other, third = memory_id(1), memory_id(2), memory_id(3)
        effect = AccessEffect(id=me, access_count=4, last_accessed_at=LATER, relevance_anchor=0.7, relevance_at=LATER)
        known = last_known(
            events(
                added(1, vector=VECTOR, tags=["a"]),
                added(2),
                linked(me, "RELATED_TO", other, reason="r", score=0.5),
                linked(other, "CONTRADICTS", me),
                linked(other, "SUPPORTS", third),
                MemoryDerived(id=third, source_ids=[me, other], created_at=NOW),
                unlinked(other, "CONTRADICTS", me),
                MemoryRevised(id=me, changed=RecordPatch(tags=["b"], is_pinned=True)),
                MemoryRevised(id=other, changed=RecordPatch(tags=["c"])),
                AccessRecorded(accesses=[effect]),
                retrieval(other, me),
                OutcomeRecorded(query_id=QUERY, outcome="success", overridden=[me], recorded_at=NOW),
                MemoryDeleted(id=other),
                MemoryDeleted(id=me),
            ),
            me,
        )
        assert known is not None
        row, edges = known
        assert (row["tags"], row["is_pinned"], row["access_count"], row["relevance_anchor"]) == (["b"], True, 4, 0.7)
        assert (row["seq"], row["vector_row"], row["embedding_model"]) == (1, 7, "m")
        found = {(table, key): properties for table, key, properties in edges}
        assert found == {
            ("RELATED_TO", (me, other)): {"reason": "r", "score": 0.5, "created_at": NOW},
            ("DERIVED_FROM", (third, me)): {"created_at": NOW},
            ("SUPPORTS", (me, third)): {"created_at": NOW},
            ("RECALLED", (QUERY, me)): {"rank": 2, "score": 0.5, "tokens": 3, "used": False},
        }

    def test_a_memory_added_again_keeps_nothing_of_its_former_state(self, added: Added, memory_id: Ids) -> None:
        me, other = memory_id(1), memory_id(2)
        known = last_known(
            events(added(1), added(2), linked(me, "SUPPORTS", other), MemoryDeleted(id=me), added(1, content="New")), me
        )
        assert known is not None
        assert (known.row["content"], known.row["seq"], known.edges) == ("New", 5, [])

    def test_a_memory_undeleted_before_keeps_its_links(self, added: Added, memory_id: Ids) -> None:
        me, other = memory_id(1), memory_id(2)
        link = linked(me, "SUPPORTS", other)
        known = last_known(events(added(1), added(2), link, MemoryDeleted(id=me), back(added(1), 1), link), me)
        assert known is not None
        assert (known.row["seq"], [table for table, _, _ in known.edges]) == (1, ["SUPPORTS"])

    def test_an_unknown_memory_has_no_last_state(self, added: Added, memory_id: Ids) -> None:
        assert last_known(events(added(1)), memory_id(2)) is None
        assert last_known([], memory_id(2)) is None
