"""What a review found wrong once: each of these failed before it was mended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.model.results.retrieval import Explanation
from memgraph.retrieval.stages import seeds as seed
from memgraph.retrieval.stages.time_phrases import spans_in


def episode(content: str, **fields: Any) -> memgraph.EpisodicMemory:
    return memgraph.EpisodicMemory(content=content, **{"project_id": "A", **fields})


def found(store: Any, query: str, **given: Any) -> dict[str, Explanation]:
    unmoved = {"use_weight": 0.0, "relevance_weight": 0.0}  # asking counts as use
    config = memgraph.RetrievalConfig(
        **{"max_episodic": 50, "max_semantic": 50, "max_tokens": 100_000, **unmoved, **given}
    )
    result = memgraph.MemoryRetrieval(store, config=config).retrieve({"task_description": query, "project_id": "A"})
    content = {memory.id: memory.content for memory in result.memories}
    return {content[why.memory_id]: why for why in result.explanations}


def test_the_replacement_of_an_answer_is_as_certain(store: Any) -> None:
    old = store.insert_memory(episode("the deploy target is heroku"))
    retrieval = memgraph.MemoryRetrieval(store)
    before = retrieval.retrieve({"task_description": "deploy target heroku"}).certainty_score

    new = store.insert_memory(episode("we moved to fly"))
    store.link(new.id, "SUPERSEDES", old.id)

    assert retrieval.retrieve({"task_description": "deploy target heroku"}).certainty_score == pytest.approx(
        before, abs=0.2
    )


def test_a_name_of_another_project_hides_none(store: Any) -> None:
    store.insert_memory(episode("a city", title="New York"))
    before = found(store, "New York Times readers")["a city"]
    other = store.insert_memory(episode("a newspaper", title="New York Times", project_id="B"))

    assert found(store, "New York Times readers")["a city"] == before
    store.delete_memory(other.id)
    assert found(store, "New York Times readers")["a city"] == before


def test_the_number_of_other_memories_does_not_matter(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed, "_MANY", 5)
    store.insert_memories([episode(f"deploy {word}", session_id="s") for word in ("alpha", "beta", "gamma", "delta")])
    before = found(store, "deploy alpha")
    store.insert_memories([episode(f"unrelated {place}", project_id="B") for place in range(20)])

    assert found(store, "deploy alpha") == before


def test_few_of_a_type_among_many_are_found(store: Any) -> None:
    store.insert_memories(
        [
            memgraph.SemanticMemory(content=f"fact {place}") if place % 8 == 7 else episode(f"noise {place}")
            for place in range(80)
        ]
    )
    retrieval = memgraph.MemoryRetrieval(store, config=memgraph.RetrievalConfig(candidates=1))

    assert "fact" in retrieval.search_memories("fact", limit=1)[0].memory.content


def test_a_vector_counts_by_its_direction(store: Any, embedder: Any) -> None:
    store.insert_memories([episode(f"noise {place}") for place in range(300)])
    store.insert_memory(episode("the queue is full"))
    for size in (1e-30, 1e-24, 1.0, 1e25, 3e37):
        vector = (embedder.embed_query("the queue is full").astype(np.float64) * size).astype(np.float32)

        first = memgraph.MemoryRetrieval(store).search_memories("", embedding=vector, limit=1)[0]

        assert first.memory.content == "the queue is full", size
        assert first.score == pytest.approx(0.47, abs=1e-3), size


def test_a_vector_alone_can_be_certain(store: Any, embedder: Any) -> None:
    text = " ".join(f"word{place}" for place in range(60))  # of a short text a cosine says little
    store.insert_memory(episode(text))
    query = {"task_description": "", "task_embedding": embedder.embed_query(text)}

    assert memgraph.MemoryRetrieval(store).retrieve(query).certainty == "high"


def test_equal_memories_are_in_the_order_of_their_ids(store: Any) -> None:
    store.insert_memories([episode("the queue is full" if place % 4 else f"noise {place}") for place in range(320)])
    for fusion in ("scores", "rrf"):
        retrieval = memgraph.MemoryRetrieval(store, config=memgraph.RetrievalConfig(fusion=fusion))

        equal = [scored.memory.id for scored in retrieval.search_memories("queue", limit=100)]

        assert equal == sorted(equal), fusion


@pytest.mark.parametrize(
    "text",
    [
        "set sep in the csv writer",
        "Who did Jan call?",
        "What did June say?",
        "Python 3 may be used",
        "May I use tabs?",
        "march on",
    ],
)
def test_words_that_resemble_months_name_no_time(text: str) -> None:
    assert spans_in(text, 20_000.0) == []


def test_a_contradiction_is_raised_to_a_share_and_no_further(store: Any) -> None:
    rule = store.insert_memory(memgraph.SemanticMemory(content="messages are carried by kafka", project_id="A"))
    said = store.insert_memory(episode("the queue is rabbit"))
    store.link(said.id, "CONTRADICTS", rule.id)
    store.link(said.id, "SUPPORTS", rule.id)

    why = found(store, "queue rabbit", relevance_weight=0.0)

    assert why["messages are carried by kafka"].score <= 0.95 * why["the queue is rabbit"].score + 1e-6


def test_the_explanation_names_the_edge(store: Any) -> None:
    rule = store.insert_memory(memgraph.SemanticMemory(content="disks fill up", project_id="A"))
    seen = store.insert_memory(episode("the queue stood still"))
    store.link(rule.id, "DERIVED_FROM", seen.id)

    assert [hop.relation for hop in found(store, "queue stood still")["disks fill up"].path] == ["DERIVED_FROM"]


def test_a_restated_single_source_is_left_out(store: Any) -> None:
    seen = store.insert_memory(episode("the queue of the till stood still"))
    rule = memgraph.SemanticMemory(
        content="Failed in 3 trials: the queue of the till stood still, on 1 February 2026", project_id="A"
    )
    store.link(store.insert_memory(rule).id, "DERIVED_FROM", seen.id)
    lesson = memgraph.SemanticMemory(content="restart the printer first", project_id="A")
    other = store.insert_memory(episode("the printer of the till stood still"))
    store.link(store.insert_memory(lesson).id, "DERIVED_FROM", other.id)

    contents = set(found(store, "till stood still"))

    assert seen.content not in contents
    assert contents == {rule.content, lesson.content, other.content}
