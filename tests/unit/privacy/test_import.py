"""An import gives memories the tier that every other write door would give them."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph


@pytest.fixture
def memory(store: Any) -> Any:
    return memgraph.MemGraph(store)


def document(*memories: dict[str, Any]) -> dict[str, Any]:
    given = [{"type": "semantic", **one} for one in memories]
    return {
        "version": "1.0.0",
        "exportedAt": "2026-01-01T00:00:00.000Z",
        "totalMemories": len(given),
        "memories": given,
    }


def test_an_export_without_tiers_gets_those_of_its_domains_and_texts(memory: Any) -> None:
    result = memory.commands.import_memories(
        document(
            {"content": "I take insulin every morning"},
            {"content": "Called the clinic", "domain": "health"},
            {"content": "The build runs at night"},
            {"content": "I take aspirin and have asthma", "privacyTier": "public"},
        )
    )
    kept = {one.content: (one.privacy_tier, one.domain) for one in memory.store.every_memory()}
    assert kept == {
        "I take insulin every morning": ("private", "health"),
        "Called the clinic": ("private", "health"),
        "The build runs at night": ("public", None),
        "I take aspirin and have asthma": ("public", None),
    }
    assert "2 are not public because of their domain or text" in result.message
    assert all(one.memory.privacy_tier == "public" for one in memory.search_memories("insulin clinic", limit=10))
