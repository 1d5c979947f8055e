"""What each event does to the rows. (The `state` fixture checks at every fold that no old row is modified.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.fold import EmptyRows, Workspace, fold
from memgraph.fold.fold import _HANDLERS
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryReembedded,
    MemoryRevised,
    PlacedVector,
    RecordPatch,
    VectorRef,
)
from memgraph.model.events.records import (
    AccessEffect,
    AccessRecorded,
    BuildConsolidated,
    DecayApplied,
    OutcomeRecorded,
    RecalledItem,
    RetrievalRecorded,
    SourceRead,
)
from memgraph.model.events.registry import types_where
from memgraph.model.events.store import EmbeddingSwitched, StoreCreated
from memgraph.model.ids import natural_id
from memgraph.model.memory import Entity

NOW, LATER = "2026-02-01T09:00:00.000Z", "2026-02-02T09:00:00.000Z"
Added = Callable[..., MemoryAdded]
Ids = Callable[[int], str]
VECTOR = VectorRef(model="m", row=7, sha256="a" * 64)


def revised(memory_id: str, kind: Any = MemoryRevised, *, cleared: Any = (), **changed: Any) -> Any:
    vector = changed.pop("vector", None)
    return kind(id=memory_id, changed=RecordPatch(**changed), cleared=list(cleared), vector=vector)


def retrieval(query_id: str, *memory_ids: str) -> RetrievalRecorded:
    items = [RecalledItem(id=key, type="episodic", score=0.5, tokens=3) for key in memory_ids]
    return RetrievalRecorded(
        query_id=query_id, query_hmac="b" * 64, retrieved_at=NOW, settings_version="1", total_tokens=6, results=items
    )


def test_every_event_is_folded() -> None:
    assert _HANDLERS.keys() == types_where(lambda policy: policy.has_rows)


class TestAdded:
    def test_a_bare_memory_is_one_row(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1))
        assert list(state.rows) == [("Memory", memory_id(1))]
        assert state.rows["Memory", memory_id(1)] == {**added(1).dump()["memory"], "seq": 1}

    def test_its_vector_is_named(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, vector=VECTOR))
        row = state.get("Memory", memory_id(1))
        assert (row["embedding_model"], row["vector_row"], row["vector_sha256"]) == ("m", 7, "a" * 64)

    def test_what_its_fields_name_has_no_rows(self, state: Any, added: Added, memory_id: Ids) -> None:
        named = {"build_id": "b", "task_id": "t", "agents_involved": ["MARS"], "tags": ["Auth"]}
        state.fold(added(1, type="semantic", project_id="P", **named, entities=[Entity(name="login.py", kind="file")]))
        assert list(state.rows) == [("Memory", memory_id(1))]

    def test_a_predecessor_is_linked(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1), added(2, previous_id=memory_id(1)))
        assert state.table("NEXT") == {(memory_id(1), memory_id(2)): {}}

    def test_a_deleted_predecessor_is_not_linked(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(2, previous_id=memory_id(1)))
        assert state.table("NEXT") == {}

    @pytest.mark.parametrize(
        ("fields", "table"),
        [
            ({"project_id": "P"}, "Project"),
            ({"project_id": "P", "session_id": "s"}, "Session"),
            ({"session_id": "s"}, "Session"),
        ],
    )
    def test_an_episode_becomes_the_last_of_its_chain(
        self, state: Any, added: Added, memory_id: Ids, fields: dict[str, str], table: str
    ) -> None:
        state.fold(added(1, **fields))
        state.fold(added(2, **fields))
        assert [row["last_memory_id"] for row in state.table(table).values()] == [memory_id(2)]

    def test_a_generalisation_is_in_no_chain(self, state: Any, added: Added) -> None:
        state.fold(added(1, type="semantic", project_id="P"))
        assert state.table("Project") == {}


class TestRevised:
    @pytest.mark.parametrize("kind", [MemoryRevised, MemoryMerged])
    def test_it_changes_and_clears(self, state: Any, added: Added, memory_id: Ids, kind: Any) -> None:
        state.fold(added(1, title="T", location="L", confidence=0.5))
        state.fold(revised(memory_id(1), kind, cleared=["title"], confidence=0.75, updated_at=LATER))
        row = state.get("Memory", memory_id(1))
        assert "title" not in row
        assert (row["confidence"], row["location"], row["updated_at"], row["seq"]) == (0.75, "L", LATER, 1)

    def test_a_new_vector_replaces_the_old(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, vector=VECTOR))
        state.fold(revised(memory_id(1), vector=VectorRef(model="m", row=9, sha256="c" * 64)))
        assert state.get("Memory", memory_id(1))["vector_row"] == 9

    def test_a_revision_to_the_same_values_is_no_change(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, tags=["a"], confidence=0.5))
        assert state.fold(revised(memory_id(1), tags=["a"], confidence=0.5)) == []


class TestDeleted:
    def test_every_edge_at_it_is_removed(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, tags=["a"], project_id="P"), added(2), added(3, previous_id=memory_id(1)))
        state.fold(
            MemoryLinked(source_id=memory_id(1), relation="SUPPORTS", target_id=memory_id(2), created_at=NOW),
            MemoryLinked(source_id=memory_id(2), relation="CONTRADICTS", target_id=memory_id(1), created_at=NOW),
            MemoryLinked(source_id=memory_id(2), relation="CONTRADICTS", target_id=memory_id(3), created_at=NOW),
            retrieval("6d656d67-7261-4068-8b75-7a75206a726e", memory_id(1)),
        )
        state.fold(MemoryDeleted(id=memory_id(1)))
        edges = [key for (_, key) in state.rows if isinstance(key, tuple)]
        assert edges == [(memory_id(2), memory_id(3))]
        assert state.get("Memory", memory_id(1)) is None
        assert state.table("Project") == {}

    def test_edges_created_in_the_same_commit_are_removed_too(self, state: Any, added: Added, memory_id: Ids) -> None:
        link = MemoryLinked(source_id=memory_id(1), relation="SUPPORTS", target_id=memory_id(2), created_at=NOW)
        state.fold(added(1, tags=["a"]), added(2), link, MemoryDeleted(id=memory_id(1)))
        assert [key for (_, key) in state.rows if isinstance(key, tuple)] == []

    def test_the_chain_is_closed(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, project_id="P"), added(2, project_id="P", previous_id=memory_id(1)))
        project = natural_id("project", "P")
        state.fold(MemoryDeleted(id=memory_id(2)))
        assert state.get("Project", project)["last_memory_id"] == memory_id(1)
        state.fold(added(3, project_id="P", type="semantic"), MemoryDeleted(id=memory_id(1)))
        assert state.get("Project", project) is None

    def test_deleting_another_memory_keeps_the_chains_last(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, project_id="P"), added(2, project_id="P", previous_id=memory_id(1)))
        state.fold(MemoryDeleted(id=memory_id(1)))
        assert state.get("Project", natural_id("project", "P"))["last_memory_id"] == memory_id(2)

    @pytest.mark.parametrize("is_one_commit", [True, False])
    def test_the_chain_is_closed_across_earlier_deletions(
        self, state: Any, added: Added, memory_id: Ids, is_one_commit: bool
    ) -> None:
        state.fold(
            *(added(n, project_id="P", **({"previous_id": memory_id(n - 1)} if n > 1 else {})) for n in (1, 2, 3))
        )
        deletions = [MemoryDeleted(id=memory_id(2)), MemoryDeleted(id=memory_id(3))]
        for payloads in [deletions] if is_one_commit else [[payload] for payload in deletions]:
            state.fold(*payloads)
        assert state.get("Project", natural_id("project", "P"))["last_memory_id"] == memory_id(1)

    def test_another_chain_is_unchanged(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, project_id="P", session_id="s"), added(2, project_id="P"))
        state.fold(MemoryDeleted(id=memory_id(1)))
        assert state.get("Project", natural_id("project", "P"))["last_memory_id"] == memory_id(2)

    def test_the_same_id_may_be_added_again(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, tags=["a", "b"], project_id="P"))
        state.fold(MemoryDeleted(id=memory_id(1)), added(1, tags=["b", "c"]))
        assert state.get("Memory", memory_id(1))["tags"] == ["b", "c"]
        assert state.table("Project") == {}


class TestLinks:
    def test_a_link_and_its_properties(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1), added(2))
        key = (memory_id(1), memory_id(2))
        link = {"source_id": key[0], "relation": "SUPERSEDES", "target_id": key[1]}
        state.fold(MemoryLinked(**link, score=0.5, reason="newer", created_at=NOW))
        assert state.get("SUPERSEDES", key) == {"score": 0.5, "reason": "newer", "created_at": NOW}
        state.fold(MemoryLinked(**link, created_at=LATER))
        assert state.get("SUPERSEDES", key) == {"created_at": LATER}

    def test_a_derivation_is_two_edges_per_source(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1), added(2), added(3, type="semantic"))
        state.fold(
            MemoryDerived(id=memory_id(3), source_ids=[memory_id(1), memory_id(2), memory_id(9)], created_at=NOW)
        )
        assert state.table("DERIVED_FROM").keys() == {(memory_id(3), memory_id(1)), (memory_id(3), memory_id(2))}
        assert state.table("SUPPORTS").keys() == {(memory_id(1), memory_id(3)), (memory_id(2), memory_id(3))}


class TestRecords:
    def test_access(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1), added(2))
        effect = AccessEffect(
            id=memory_id(1), access_count=3, last_accessed_at=LATER, relevance_anchor=0.9, relevance_at=LATER
        )
        changes = state.fold(AccessRecorded(accesses=[effect, effect.model_copy(update={"id": memory_id(9)})]))
        assert [(change.table, change.key) for change in changes] == [("Memory", memory_id(1))]
        row = state.get("Memory", memory_id(1))
        assert {name: row[name] for name in effect.model_dump()} == effect.model_dump()

    def test_retrieval_and_outcome(self, state: Any, added: Added, memory_id: Ids) -> None:
        query = "6d656d67-7261-4068-8b75-7a75206a726e"
        state.fold(added(1), added(2))
        state.fold(retrieval(query, memory_id(1), memory_id(9), memory_id(2)))
        recalled = state.table("RECALLED")
        assert {key[1]: row["rank"] for key, row in recalled.items()} == {memory_id(1): 1, memory_id(2): 3}
        assert state.get("Recall", query)["total_tokens"] == 6
        state.fold(
            OutcomeRecorded(
                query_id=query,
                outcome="success",
                used=[memory_id(1), memory_id(9)],
                overridden=[memory_id(2)],
                recorded_at=LATER,
            )
        )
        assert state.get("RECALLED", (query, memory_id(1)))["used"] is True
        assert state.get("RECALLED", (query, memory_id(2)))["used"] is False
        recall = state.get("Recall", query)
        assert (recall["outcome"], recall["outcome_at"], recall["query_hmac"]) == ("success", LATER, "b" * 64)

    def test_a_build_named_by_memories_before_its_consolidation(self, state: Any, added: Added) -> None:
        state.fold(added(1, project_id="P", build_id="b"))
        build = BuildConsolidated(
            project_id="P", build_id="b", log_sha256="d" * 64, outcome="failure", started_at=NOW, completed_at=LATER,
            task_count=2, agents=["MARS"], complete=True, extracted=1, merged=0, extractor="rules", consolidated_at=LATER,
        )  # fmt: skip
        state.fold(build)
        assert len(state.table("Build")) == 1
        row = state.get("Build", natural_id("build", "b", project_id="P"))
        assert (row["name"], row["outcome"], row["is_complete"], row["agents"]) == ("b", "failure", True, ["MARS"])

    def test_a_run_is_that_of_the_last_consolidation(self, state: Any) -> None:
        build = BuildConsolidated(
            project_id="P", build_id="b", log_sha256="d" * 64, outcome="failure", started_at=NOW, completed_at=LATER,
            task_count=2, complete=True, extracted=1, merged=0, extractor="rules", consolidated_at=LATER, passed=["a::one"],
        )  # fmt: skip
        state.fold(build)
        assert [row["passed"] for row in state.table("Run").values()] == [["a::one"]]
        state.fold(build.model_copy(update={"passed": []}))
        assert (state.table("Run"), len(state.table("Build"))) == ({}, 1)
        state.fold(build.model_copy(update={"passed": []}))
        assert state.table("Run") == {}

    def test_reembedding_changes_only_the_vectors(self, state: Any, added: Added, memory_id: Ids) -> None:
        state.fold(added(1, tags=["a"], task_id="T"), added(2))
        before = [state.get("Memory", memory_id(number)) for number in (1, 2)]
        vectors = [PlacedVector(id=memory_id(number), row=number, sha256=str(number) * 64) for number in (2, 9, 1)]
        state.fold(MemoryReembedded(model="new", embedded_at=LATER, vectors=vectors))
        for number, row in zip((1, 2), before, strict=True):
            assert state.get("Memory", memory_id(number)) == {
                **row, "embedding_model": "new", "embedded_at": LATER, "vector_row": number, "vector_sha256": str(number) * 64,
            }  # fmt: skip

    def test_a_source(self, state: Any) -> None:
        fields = dict.fromkeys(("records", "builds", "extracted", "merged", "skipped"), 1)
        read = {"source_id": "git:/x", "kind": "git", "locator": "/x", "project_id": "P", "read_at": NOW, **fields}
        state.fold(SourceRead(cursor="abc", **read))
        state.fold(SourceRead(cursor="def", **read))
        assert [row["cursor"] for row in state.table("Source").values()] == ["def"]

    @pytest.mark.parametrize(
        "payload",
        [
            StoreCreated(created_by="x"),
            EmbeddingSwitched(model="m", dimension=3),
            DecayApplied(applied_at=NOW, updated=3, below_threshold=1),
        ],
    )
    def test_history_events_change_no_row(self, state: Any, payload: Any) -> None:
        assert state.fold(payload) == []


@pytest.mark.parametrize("is_stocked", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda m: revised(m(9), confidence=0.5, tags=["x"]),
        lambda m: revised(m(9), MemoryMerged, project_id="P"),
        lambda m: MemoryDeleted(id=m(9)),
        lambda m: MemoryLinked(source_id=m(9), relation="SUPPORTS", target_id=m(1), created_at=NOW),
        lambda m: MemoryLinked(source_id=m(1), relation="SUPPORTS", target_id=m(9), created_at=NOW),
        lambda m: MemoryDerived(id=m(9), source_ids=[m(1)], created_at=NOW),
        lambda m: MemoryDerived(id=m(1), source_ids=[m(9)], created_at=NOW),
        lambda m: AccessRecorded(
            accesses=[
                AccessEffect(id=m(9), access_count=1, last_accessed_at=NOW, relevance_anchor=1.0, relevance_at=NOW)
            ]
        ),
        lambda m: OutcomeRecorded(query_id=m(9), outcome="success", used=[m(1)], recorded_at=NOW),
        lambda m: MemoryReembedded(model="m", embedded_at=NOW, vectors=[PlacedVector(id=m(9), row=0, sha256="a" * 64)]),
    ],
)
def test_an_event_about_a_missing_subject_changes_nothing(
    state: Any, added: Added, memory_id: Ids, make: Callable[[Ids], Any], is_stocked: bool
) -> None:
    if is_stocked:
        state.fold(added(1, project_id="P", tags=["a"]))
    assert state.fold(make(memory_id)) == []


def test_one_fold_of_many_events_equals_many_folds_of_one(state: Any, added: Added, memory_id: Ids) -> None:
    events = [
        added(1, tags=["a"], project_id="P", session_id="s"),
        added(2, tags=["a", "b"], project_id="P", session_id="s", previous_id=memory_id(1)),
        MemoryLinked(source_id=memory_id(1), relation="SUPPORTS", target_id=memory_id(2), created_at=NOW),
        revised(memory_id(1), tags=["c"], cleared=["session_id"]),
        added(3, type="semantic", entities=[Entity(name="x", kind="concept")]),
        MemoryDerived(id=memory_id(3), source_ids=[memory_id(1), memory_id(2)], created_at=NOW),
        MemoryDeleted(id=memory_id(2)),
        added(4, project_id="P", previous_id=memory_id(1)),
        revised(memory_id(4), entities=[Entity(name="y", kind="file", about=True)]),
        MemoryDeleted(id=memory_id(4)),
        added(4, tags=["again"]),
    ]
    one_by_one, at_once = state, type(state)()
    for event in events:
        one_by_one.fold(event)
    at_once.fold(*events)
    assert at_once.rows == one_by_one.rows


def test_an_unknown_event_is_an_error() -> None:
    event = Event(
        1, "c", True, "memory.invented", StoreCreated(created_by="x"), {}, "global", None, "agent", NOW, NOW, "s"
    )
    with pytest.raises(KeyError):
        fold(Workspace(EmptyRows()), event)
