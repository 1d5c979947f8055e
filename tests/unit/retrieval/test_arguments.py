"""Arguments of the wrong kind: an error that names them, from every door."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.model.relevance import ForgettingCurveConfig

SEARCHES: list[tuple[str, Any]] = [
    ("text", None),
    ("text", 7),
    ("limit", "5"),
    ("limit", -1),
    ("limit", 2.5),
    ("limit", None),
    ("agents", "bob"),
    ("privacy_tiers", "public"),
    ("privacy_tiers", ["secret"]),
    ("trust_classes", ["anybody"]),
    ("project_id", 7),
    ("task_id", ""),
    ("domain", 7),
]


def refused(field: str, call: Any) -> None:
    with pytest.raises(memgraph.InvalidInputError) as caught:
        call()
    assert caught.value.field.split(".")[0] == field
    assert field in str(caught.value)


@pytest.mark.parametrize(("field", "value"), SEARCHES)
def test_a_search_names_what_it_refuses(store: Any, embedder: Any, field: str, value: Any) -> None:
    retrieval = memgraph.MemoryRetrieval(store, embedder)

    refused(field, lambda: retrieval.search_memories(**{"text": "x", field: value}))


@pytest.mark.parametrize(("field", "value"), [("max_episodic", -1), ("agents", "bob"), ("privacy_tiers", ["secret"])])
def test_a_retrieval_names_what_it_refuses(store: Any, embedder: Any, field: str, value: Any) -> None:
    retrieval = memgraph.MemoryRetrieval(store, embedder)

    refused(field, lambda: retrieval.retrieve({"task_description": "x", field: value}))


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("query", lambda commands: commands.ask(None)),
        ("query", lambda commands: commands.forget(7)),
        ("text", lambda commands: commands.remember(None)),
        ("tags", lambda commands: commands.remember("x", tags="abc")),
        ("tags", lambda commands: commands.remember("x", tags=["fine", 7])),
        ("type", lambda commands: commands.list(type="episode")),
        ("limit", lambda commands: commands.list(limit=-1)),
        ("limit", lambda commands: commands.list(limit="5")),
        ("project", lambda commands: commands.list(project=7)),
        ("sort_by", lambda commands: commands.list(sort_by="colour")),
        ("id", lambda commands: commands.show(None)),
        ("iso_timestamp", lambda commands: commands.format_age(None)),
    ],
)
def test_a_command_names_what_it_refuses(store: Any, embedder: Any, field: str, call: Any) -> None:
    refused(field, lambda: call(memgraph.MemoryCommands(store, embedder)))


def test_a_reading_of_the_curve_names_what_it_refuses(store: Any, embedder: Any) -> None:
    retrieval = memgraph.MemoryRetrieval(store, embedder)

    refused("days", lambda: retrieval.calculate_decayed_relevance(1.0, None, False))  # type: ignore[arg-type]
    refused("relevance", lambda: retrieval.get_confidence_label(float("nan")))
    refused("label", lambda: retrieval.get_confidence_text("sure"))


def test_the_threshold_of_decay_is_the_one_given(store: Any, embedder: Any) -> None:
    store.insert_memory({"type": "episodic", "content": "x", "relevance_score": 0.5})
    strict = ForgettingCurveConfig(deletion_threshold=0.9)

    assert memgraph.MemoryRetrieval(store, embedder, forgetting=strict).apply_decay().below_threshold == 1
    assert memgraph.MemoryRetrieval(store, embedder).apply_decay().below_threshold == 0


def test_ask_leaves_out_task_memories(store: Any, embedder: Any) -> None:
    store.insert_memory({"type": "episodic", "content": "Working on the parser", "task_id": "t1"})
    kept = store.insert_memory({"type": "episodic", "content": "The parser was released"})

    assert memgraph.MemoryCommands(store, embedder).ask("parser").data["ids"] == [kept.id]
