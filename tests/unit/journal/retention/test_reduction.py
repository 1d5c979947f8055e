"""What is left of each type of event after the retention days."""

from __future__ import annotations

from typing import Any

import pytest
from memgraph.journal.retention.reduction import reduced

from memgraph.journal.envelope import Chain, CommitDraft, Event, seal
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryLinked,
    MemoryMerged,
    MemoryReembedded,
    MemoryRevised,
    MemoryUndeleted,
)
from memgraph.model.events.payload import Payload, nothing
from memgraph.model.events.records import FADED
from memgraph.model.events.registry import PAYLOADS, types_where
from memgraph.model.events.store import REMOVED_TEXT
from memgraph.model.events.tasks import PinPayload
from memgraph.model.memory import MemoryRecord
from memgraph.ports import SigningKey

GONE, THERE = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
NOW = "2026-02-01T09:00:00.000Z"
VECTOR = {"model": "m", "row": 3, "sha256": "a" * 64}
KEPT = {
    "id": GONE, "type": "semantic", "outcome": "negative", "project_id": "P", "build_id": "b1", "evidence_build_ids": ["b1", "b2"],
    "failure_fingerprint": "f" * 16, "privacy_tier": "sensitive", "domain": "health", "trust_class": "web", "session_id": "s",
    "previous_id": THERE, "created_at": NOW, "updated_at": NOW, "occurred_at": NOW, "valid_at": NOW, "invalid_at": NOW,
    "relevance_anchor": 0.5, "relevance_at": NOW, "floor": 0.1, "is_suppressed": True, "archived_at": NOW, "confidence": 0.7,
    "source": "compression",
}  # fmt: skip
WORDS = {
    "content": "the secret", "title": "a secret title", "speaker": "a secret person", "agents_involved": ["a secret agent"],
    "reason": "a secret reason", "archive_summary": "a secret summary", "archive_reason": "a secret cause",
    "invalidation_reason": "a secret end", "lesson": "a secret lesson", "pattern": "a secret pattern", "asked": "a secret question",
    "files_involved": ["secret.py"], "action_log": [{"t": 1, "action": "a secret step"}], "steps": ["a secret step"],
    "entities": [{"kind": "file", "name": "secret.py", "about": True}], "outcome_word": "failure",
}  # fmt: skip


def event_of(payload: Payload) -> Event:
    """Return an event as the journal gives it."""
    scope: Any = "system" if "system" in payload.SCOPES and "global" not in payload.SCOPES else "global"
    (event,) = seal([CommitDraft(scope, [payload])], Chain("s"), SigningKey("k", b"k" * 32), NOW).events
    return event


def record(memory_id: str = GONE, **more: Any) -> MemoryRecord:
    names = {"tags": ["secret", "lesson"], "source_event_ids": [THERE, "a secret page"]}
    return MemoryRecord.parse({**KEPT, **WORDS, **names, "id": memory_id, **more})


def left(payload: Payload) -> Any:
    return reduced(event_of(payload), {GONE}.__contains__)


@pytest.mark.parametrize(
    "payload",
    [
        MemoryAdded(memory=record(), vector=VECTOR),
        MemoryUndeleted(memory=record(), vector=VECTOR, added_seq=4, follower_ids=[THERE]),
    ],
    ids=lambda payload: payload.TYPE,
)
def test_words_of_a_memory_go(payload: Any) -> None:
    found = left(payload)
    assert "secret" not in str(found)
    assert "vector" not in found
    memory = found.pop("memory")
    assert memory.pop("content") == REMOVED_TEXT
    assert (memory.pop("tags"), memory.pop("source_event_ids")) == (["lesson"], [THERE])
    assert {name: value for name, value in memory.items() if name in KEPT} == KEPT
    assert set(memory) - set(KEPT) <= {"access_count", "is_pinned"}
    again = type(payload).parse({**found, "memory": {**memory, "content": REMOVED_TEXT}})
    assert left(again) is None or "secret" not in str(left(again))


@pytest.mark.parametrize("kind", [MemoryRevised, MemoryMerged])
def test_words_of_a_revision_go_and_the_same_fields_change(kind: type[Any]) -> None:
    changed = {"content": "the secret", "title": "a secret title", "outcome": "positive", "tags": ["secret"]}
    more = {"candidate_id": THERE, "candidate_content": "a secret copy"} if kind is MemoryMerged else {}
    payload = kind.parse({"id": GONE, "changed": changed, "cleared": ["lesson"], "vector": VECTOR, **more})
    found = left(payload)
    assert found.pop("changed") == {"content": REMOVED_TEXT, "outcome": "positive"}
    assert found == {"id": GONE, "cleared": ["lesson", "tags", "title"], **({"candidate_id": THERE} if more else {})}
    only_state = kind.parse({"id": GONE, "changed": {"is_suppressed": True, "updated_at": NOW}})
    assert left(only_state) is None


@pytest.mark.parametrize(
    ("changed", "kept", "cleared"),
    [
        ({"title": "a secret title"}, {}, ["title"]),
        ({"tags": ["secret", "lesson"]}, {"tags": ["lesson"]}, []),
        ({"tags": ["secret"]}, {}, ["tags"]),
        ({"archive_reason": "a secret cause", "archived_at": NOW}, {"archived_at": NOW}, ["archive_reason"]),
        ({"archive_reason": "proposed", "archived_at": NOW}, {"archive_reason": "proposed", "archived_at": NOW}, []),
        ({"source_event_ids": ["a secret page"]}, {}, ["source_event_ids"]),
    ],
)
def test_no_earlier_value_comes_back(changed: Any, kept: Any, cleared: list[str]) -> None:
    """Also what is no text, such as archiving, must not look like a change of one, or times of events would be others."""
    payload = MemoryRevised.parse({"id": GONE, "changed": changed})
    found = left(payload) or payload.dump()
    assert (found.get("changed", {}), found.get("cleared", [])) == (kept, cleared)


@pytest.mark.parametrize(("vectors", "expected"), [([GONE], []), ([GONE, THERE], [THERE]), ([THERE], None)])
def test_vectors_of_a_later_model_go(vectors: list[str], expected: list[str] | None) -> None:
    placed = [{"id": one, "row": row, "sha256": "a" * 64} for row, one in enumerate(vectors)]
    found = left(MemoryReembedded.parse({"model": "m", "embedded_at": NOW, "vectors": placed}))
    assert (found if expected is None else [one["id"] for one in found.get("vectors", [])]) == expected


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (MemoryDeleted(id=GONE, reason="a secret reason"), {"id": GONE}),
        (MemoryDeleted(id=GONE, reason=FADED), None),
        (MemoryDeleted(id=GONE), None),
    ],
)
def test_reasons_go_unless_sleep_needs_them(payload: Payload, expected: Any) -> None:
    assert left(payload) == expected


@pytest.mark.parametrize("ends", [(GONE, THERE), (THERE, GONE)])
def test_the_reason_of_a_link_goes(ends: tuple[str, str]) -> None:
    named = {"source_id": ends[0], "relation": "CONTRADICTS", "target_id": ends[1], "created_at": NOW}
    assert left(MemoryLinked.parse({**named, "reason": "a secret reason", "score": 0.5})) == {**named, "score": 0.5}
    assert left(MemoryLinked.parse(named)) is None


@pytest.mark.parametrize(
    "payload",
    [
        MemoryAdded(memory=record(THERE), vector=VECTOR),
        MemoryRevised.parse({"id": THERE, "changed": {"content": "the secret"}}),
        MemoryMerged.parse({"id": THERE, "changed": {}, "candidate_id": GONE, "candidate_content": "the secret"}),
        MemoryDeleted(id=THERE, reason="a secret reason"),
        MemoryLinked.parse(
            {"source_id": THERE, "relation": "CONTRADICTS", "target_id": THERE, "created_at": NOW, "reason": "why"}
        ),
    ],
    ids=lambda payload: payload.TYPE,
)
def test_everything_about_other_memories_stays(payload: Payload) -> None:
    assert left(payload) is None


def test_every_type_that_carries_words_of_memories_is_known() -> None:
    """A new type of event that a purge of a memory removes needs a rule here, too; these hold numbers, or are rows of the present state."""
    carrying = types_where(lambda policy: policy.carries is not nothing)
    reduced_here = {
        "memory.added",
        "memory.undeleted",
        "memory.revised",
        "memory.merged",
        "memory.deleted",
        "memory.linked",
    }
    pins = {type_ for (type_, _), kind in PAYLOADS.items() if issubclass(kind, PinPayload)}
    assert carrying - reduced_here - pins == {"procedure.measured", "distil.requested"}
