"""`forget` takes the memory that a text means: the one that holds it, before any that is merely near."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import memgraph

TEXTS = (
    "First fact about deploys",
    "Second fact about tests",
    "Third fact: the cache key has a version",
    "The third fact",
)


@pytest.fixture
def commands(open_store: Callable[..., Any], fake_embedder: Callable[..., Any], vector_at: Callable[..., Any]) -> Any:
    """Over memories whose vectors would mislead: the second is nearest to everything that is asked."""
    asked = ("Third fact", "third  FACT", "cache key", TEXTS[3])
    vectors = {text: vector_at(0.6, axis=number + 2) for number, text in enumerate(TEXTS)}
    vectors |= {text: vector_at(1.0) for text in asked} | {TEXTS[1]: vector_at(0.99)}
    commands = memgraph.MemoryCommands(open_store(embedder=fake_embedder(vectors)))
    for text in TEXTS:
        commands.remember(text)
    return commands


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("Third fact", TEXTS[2]),
        ("third  FACT", TEXTS[2]),
        ("cache key", TEXTS[2]),
        (TEXTS[3], TEXTS[3]),
    ],
)
def test_what_holds_the_text_is_meant(commands: Any, query: str, meant: str) -> None:
    result = commands.forget(query)
    assert commands.show(result.data["id"]).content == meant
    back = commands.unforget(query)
    assert back.data["id"] == result.data["id"]
