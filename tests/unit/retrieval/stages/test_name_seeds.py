"""What a query names outright is preferred: who said it, what it is about, its tag, a procedure's trigger, a time."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.model.results.retrieval import Explanation
from memgraph.model.timestamps import epoch_days
from memgraph.retrieval.stages.time_phrases import spans_in

NOW = epoch_days("2026-03-18T12:00:00.000Z")  # a Wednesday


@pytest.fixture
def why(store: Any) -> Any:
    """Recall all, and return each content's explanation, best first."""

    def recall(text: str, **config: Any) -> dict[str, Explanation]:
        many = {"max_episodic": 50, "max_semantic": 50, "max_procedural": 50, "max_tokens": 100_000}
        retrieval = memgraph.MemoryRetrieval(store, config=memgraph.RetrievalConfig(**many, **config))
        result = retrieval.retrieve({"task_description": text})
        content = {memory.id: memory.content for memory in result.memories}
        ranked = sorted(result.explanations, key=lambda found: -found.score)
        return {content[found.memory_id]: found for found in ranked}

    return recall


def episode(content: str, **fields: Any) -> memgraph.EpisodicMemory:
    return memgraph.EpisodicMemory(content=content, project_id="shop", **fields)


def test_statements_of_a_named_speaker_are_preferred(store: Any, why: Any) -> None:
    store.insert_memories([episode("I went camping", speaker="Ann"), episode("I went camping too", speaker="Bob")])

    found = why("Where did Bob's tent stand when camping?")

    assert next(iter(found)) == "I went camping too"
    assert found["I went camping too"].speaker > 0 == found["I went camping"].speaker


def test_two_named_speakers_share_the_preference(store: Any, why: Any) -> None:
    store.insert_memories(
        [episode("camping", speaker="Ann"), episode("tent", speaker="Bob"), episode("lake", speaker="Eve")]
    )

    found = why("Did Ann and Bob meet?")

    assert found["camping"].speaker == found["tent"].speaker == pytest.approx(0.1)
    assert found["lake"].speaker == 0


@pytest.mark.parametrize("query", ["Who directed Bloody Moon?", "who directed bloody moon", "the BLOODY MOON's end"])
def test_memories_about_a_named_entity_are_preferred(store: Any, why: Any, query: str) -> None:
    store.insert_memories(
        [episode("Filmed in Spain", title="Bloody Moon (film)"), episode("Moon over Spain", title="Spain")]
    )

    found = why(query)

    assert next(iter(found)) == "Filmed in Spain"
    assert found["Filmed in Spain"].named == pytest.approx(0.3)
    assert found["Moon over Spain"].named == 0


def test_a_shared_name_weighs_less(store: Any, why: Any) -> None:
    store.insert_memories(
        [episode("an actor", title="James Scott (actor)"), episode("a poet", title="James Scott (poet)")]
    )

    found = why("When was James Scott born?")

    assert found["an actor"].named == found["a poet"].named == pytest.approx(0.3 / 2**0.5, abs=1e-6)


def test_a_file_is_named_without_its_folders(store: Any, why: Any) -> None:
    store.insert_memories(
        [episode("the lock leaks", files_involved=["src/auth/session.py"]), episode("a session at noon")]
    )

    assert why("change session.py")["the lock leaks"].named > 0


def test_a_tag_of_which_all_words_are_named_counts(store: Any, why: Any) -> None:
    store.insert_memories([episode("a", tags=["data-loss"]), episode("b", tags=["data"])])

    found = why("Was there data loss before?")

    assert found["a"].tag > 0
    assert found["b"].tag > 0
    assert why("Was there loss?")["a"].tag == 0


def test_a_procedure_is_found_by_its_trigger(store: Any, why: Any) -> None:
    given = {"project_id": "shop", "steps": ["export", "import"]}
    sure = memgraph.ProceduralMemory(content="p1", trigger_pattern="move the billing database", confidence=1.0, **given)
    unsure = memgraph.ProceduralMemory(
        content="p2", trigger_pattern="move the billing database", confidence=0.5, **given
    )
    other = memgraph.ProceduralMemory(
        content="p3", trigger_pattern="rotate the signing keys of every host", confidence=1.0, **given
    )
    store.insert_memories([sure, unsure, other])

    found = why("move billing to another database host")

    assert found["p1"].trigger == pytest.approx(0.3)
    assert found["p2"].trigger == pytest.approx(0.15)
    assert found["p3"].trigger == 0, "less than half of its words are there"


def test_events_in_a_named_time_are_preferred(store: Any, why: Any) -> None:
    store.insert_memories([episode("hiking", occurred_at="2023-07-05"), episode("sailing", occurred_at="2023-09-05")])

    found = why("What was done in July 2023?")

    assert found["hiking"].time > 0 == found["sailing"].time


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("on 8 May, 2023", "2023-05-08", "2023-05-09"),
        ("on May 8th 2023", "2023-05-08", "2023-05-09"),
        ("on the 8th of May 2023", "2023-05-08", "2023-05-09"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("in Feb. 2024", "2024-02-01", "2024-03-01"),
        ("on 2023-05-08", "2023-05-08", "2023-05-09"),
        ("in 2023-05", "2023-05-01", "2023-06-01"),
        ("during 2024", "2024-01-01", "2025-01-01"),
        ("in January", "2026-01-01", "2026-02-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("today", "2026-03-18", "2026-03-19"),
        ("what failed yesterday?", "2026-03-17", "2026-03-18"),
        ("last week", "2026-03-09", "2026-03-16"),
        ("this week", "2026-03-16", "2026-03-23"),
        ("last month", "2026-02-01", "2026-03-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("a week ago", "2026-03-08", "2026-03-15"),
        ("10 days ago", "2026-03-08", "2026-03-09"),
    ],
)
def test_a_time_is_a_span_of_days(text: str, start: str, end: str) -> None:
    (span,) = spans_in(text, NOW)

    assert (span.start_days, span.end_days) == (
        epoch_days(f"{start}T00:00:00.000Z"),
        epoch_days(f"{end}T00:00:00.000Z"),
    )


@pytest.mark.parametrize("text", ["", "it may fail", "31 February 2023", "version 2023.5", "marching", "1 in 10"])
def test_invalid_dates_name_no_time(text: str) -> None:
    assert spans_in(text, NOW) == []


def test_many_times_are_bounded_and_cost_little() -> None:
    assert len(spans_in("in May 2023, " * 100_000, NOW)) == 1
    assert len(spans_in(" ".join(f"{day} May 2023" for day in range(1, 29)), NOW)) == 8
