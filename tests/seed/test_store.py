"""KIMI-MEMORY-01, required tests 1 to 20, on a real embedded graph."""

from __future__ import annotations

from uuid import UUID, uuid4

import numpy as np
import pytest

import memgraph
from memgraph.errors import QueryError

pytestmark = pytest.mark.embedded

NOW = "2026-02-01T09:00:00.000Z"
NODES = ("Memory", "Project", "Build", "Agent", "Session", "Tag", "Entity")
EDGES = ("DERIVED_FROM", "SUPPORTS", "SUPERSEDES", "CONTRADICTS", "RELATED_TO", "NEXT", "TAGGED", "IN_PROJECT")


def columns(store, memory_id, *names):
    """Read columns of a memory's node: what the graph itself holds."""
    picked = ", ".join(f"m.{name} AS {name}" for name in names)
    (row,) = store.cypher(f"MATCH (m:Memory {{id: $id}}) RETURN {picked}", id=memory_id)
    return row


def contents(memories):
    return [memory.content for memory in memories]


def test_01_creates_database_and_tables_on_init(store, config):
    assert (config.home / "memgraph.db").is_file()
    for label in NODES:
        assert store.cypher(f"MATCH (n:{label}) RETURN count(n) AS n") == [{"n": 0}], label
    for relation in EDGES:
        assert store.cypher(f"MATCH ()-[r:{relation}]->() RETURN count(r) AS n") == [{"n": 0}], relation
    with pytest.raises(QueryError):
        store.cypher("MATCH (n:NoSuchTable) RETURN n.id")


def test_02_inserts_episodic_memory(store):
    inserted = store.insert_memory(
        memgraph.EpisodicMemory(
            content="Refresh tokens failed behind the proxy",
            outcome="negative",
            project_id="shop",
            build_id="build-7",
            agents_involved=["MARS", "VENUS"],
            tags=["auth", "jwt"],
            relevance_score=0.9,
            event_date="2026-01-05",
            location="auth/session.ts during auth sprint",
            decision="Use server sessions",
            alternatives_considered=["longer tokens", "no proxy"],
            source_event_ids=["event-1"],
        )
    )

    assert isinstance(inserted, memgraph.EpisodicMemory)
    assert inserted.id == str(UUID(inserted.id))
    assert (inserted.type, inserted.outcome) == ("episodic", "negative")
    assert (inserted.project_id, inserted.build_id) == ("shop", "build-7")
    assert inserted.agents_involved == ["MARS", "VENUS"]
    assert inserted.tags == ["auth", "jwt"]
    assert inserted.relevance_score == 0.9
    assert inserted.event_date == "2026-01-05T00:00:00.000Z"
    assert inserted.location == "auth/session.ts during auth sprint"
    assert inserted.decision == "Use server sessions"
    assert inserted.alternatives_considered == ["longer tokens", "no proxy"]
    assert inserted.source_event_ids == ["event-1"]
    assert (inserted.access_count, inserted.last_accessed_at) == (0, None)
    assert (inserted.is_pinned, inserted.is_suppressed) == (False, False)
    assert inserted.created_at == inserted.updated_at == NOW
    row = columns(store, inserted.id, "type", "location", "decision", "alternatives_considered")
    assert row == {
        "type": "episodic",
        "location": "auth/session.ts during auth sprint",
        "decision": "Use server sessions",
        "alternatives_considered": ["longer tokens", "no proxy"],
    }


def test_03_inserts_semantic_memory(store):
    evidence = [store.insert_memory(memgraph.EpisodicMemory(content=f"Failure {n}")).id for n in (1, 2)]

    inserted = store.insert_memory(
        memgraph.SemanticMemory(content="Short tokens fail here", confidence=0.7, supporting_memory_ids=evidence)
    )

    assert columns(store, inserted.id, "type", "confidence") == {"type": "semantic", "confidence": 0.7}
    read = store.get_memory(inserted.id)
    assert isinstance(read, memgraph.SemanticMemory)
    assert read.confidence == 0.7
    assert sorted(read.supporting_memory_ids) == sorted(evidence)
    query = "MATCH (e:Memory)-[:SUPPORTS]->(m:Memory {id: $id}) RETURN e.id AS id"
    assert sorted(row["id"] for row in store.cypher(query, id=inserted.id)) == sorted(evidence)


def test_04_inserts_procedural_memory(store):
    steps = ["stop the workers", "run the migration", "start the workers"]

    inserted = store.insert_memory(
        memgraph.ProceduralMemory(
            content="How to migrate", trigger_pattern="a schema changes", steps=steps, success_rate=0.75
        )
    )

    row = columns(store, inserted.id, "type", "trigger_pattern", "steps", "success_rate")
    expected = {"trigger_pattern": "a schema changes", "steps": steps, "success_rate": 0.75}
    assert row == {"type": "procedural", **expected}
    read = store.get_memory(inserted.id)
    assert isinstance(read, memgraph.ProceduralMemory)
    assert {name: getattr(read, name) for name in expected} == expected


def test_05_gets_memory_by_id(store):
    inserted = store.insert_memory(
        memgraph.EpisodicMemory(
            content="Line one\nLine two • with “quotes”, 日本語 and 🪐",
            tags=["a tag", "b"],
            location="src/a.py",
            event_date="2026-01-05T10:20:30.400Z",
        )
    )
    other = store.insert_memory(memgraph.EpisodicMemory(content="Something else"))

    assert store.get_memory(inserted.id) == inserted
    assert store.get_memory(other.id) == other
    assert store.get_memory(inserted.id) != other


def test_06_returns_none_for_non_existent_id(store):
    store.insert_memory(memgraph.EpisodicMemory(content="The only one"))

    assert store.get_memory("fake") is None
    assert store.get_memory(str(uuid4())) is None


def test_07_updates_memory_fields(store, open_store, clock):
    memory = store.insert_memory(memgraph.SemanticMemory(content="Before", tags=["old"], outcome="unknown"))
    clock.advance(days=1)

    updated = store.update_memory(
        memory.id, content="After", relevance_score=0.4, is_suppressed=True, tags=["new"], outcome="positive"
    )

    assert updated.updated_at == "2026-02-02T09:00:00.000Z"
    assert updated.created_at == NOW
    store.close()
    read = open_store().get_memory(memory.id)
    assert read == updated
    assert (read.content, read.tags, read.outcome, read.is_suppressed) == ("After", ["new"], "positive", True)
    assert read.relevance_score == pytest.approx(0.4)


def test_08_update_throws_for_non_existent_id(store):
    with pytest.raises(memgraph.NotFoundError):
        store.update_memory(str(uuid4()), relevance_score=0.5)


def test_09_deletes_memory(store, open_store):
    memory = store.insert_memory(memgraph.EpisodicMemory(content="Going"))
    kept = store.insert_memory(memgraph.EpisodicMemory(content="Staying"))

    assert store.delete_memory(memory.id) is True

    assert store.get_memory(memory.id) is None
    assert store.get_stats().total == 1
    store.close()
    reopened = open_store()
    assert reopened.get_memory(memory.id) is None
    assert contents(reopened.get_all_memories()) == [kept.content]


def test_10_delete_returns_false_for_non_existent_id(store):
    memory = store.insert_memory(memgraph.EpisodicMemory(content="Going"))
    store.delete_memory(memory.id)

    assert store.delete_memory(str(uuid4())) is False
    assert store.delete_memory(memory.id) is False


def test_11_queries_by_type(store):
    for n, relevance in enumerate((0.5, 0.9, 0.7)):
        store.insert_memory(memgraph.EpisodicMemory(content=f"episode {n}", relevance_score=relevance))
    for n in range(2):
        store.insert_memory(memgraph.SemanticMemory(content=f"knowledge {n}"))

    assert contents(store.query_by_type("episodic")) == ["episode 1", "episode 2", "episode 0"]
    assert sorted(contents(store.query_by_type("semantic"))) == ["knowledge 0", "knowledge 1"]
    assert store.query_by_type("procedural") == []


def test_12_excludes_suppressed_by_default(store):
    store.insert_memory(memgraph.EpisodicMemory(content="seen"))
    store.insert_memory(memgraph.EpisodicMemory(content="hidden", is_suppressed=True))

    assert contents(store.query_by_type("episodic")) == ["seen"]
    assert contents(store.get_all_memories()) == ["seen"]


def test_13_includes_suppressed_when_requested(store):
    store.insert_memory(memgraph.EpisodicMemory(content="seen"))
    store.insert_memory(memgraph.EpisodicMemory(content="hidden", is_suppressed=True))

    assert sorted(contents(store.query_by_type("episodic", include_suppressed=True))) == ["hidden", "seen"]
    assert sorted(contents(store.get_all_memories(include_suppressed=True))) == ["hidden", "seen"]


def test_14_queries_by_project(store):
    store.insert_memory(memgraph.EpisodicMemory(content="a, episode", project_id="A", relevance_score=0.5))
    store.insert_memory(memgraph.SemanticMemory(content="a, knowledge", project_id="A", relevance_score=0.8))
    store.insert_memory(memgraph.EpisodicMemory(content="b, episode", project_id="B"))
    store.insert_memory(memgraph.SemanticMemory(content="nobody's knowledge"))

    assert contents(store.query_by_project("A")) == ["a, knowledge", "a, episode"]
    assert contents(store.query_by_project("A", type="episodic")) == ["a, episode"]
    assert contents(store.query_by_project("A", limit=1)) == ["a, knowledge"]
    assert store.query_by_project("C") == []


def test_15_records_access_and_boosts_relevance(store, clock):
    memory = store.insert_memory(memgraph.EpisodicMemory(content="Read me", relevance_score=0.5))

    accessed = store.record_access(memory.id)

    assert (accessed.access_count, accessed.last_accessed_at) == (1, NOW)
    assert accessed.relevance_score == pytest.approx(0.7)
    assert store.get_memory(memory.id) == accessed
    clock.advance(days=10)
    again = store.record_access(memory.id)
    assert again.access_count == 2
    assert again.relevance_score == pytest.approx(0.7 * np.exp(-0.05 * 10) + 0.2)


def test_16_relevance_capped_at_1_after_boost(store):
    memory = store.insert_memory(memgraph.EpisodicMemory(content="Nearly there", relevance_score=0.95))

    assert store.record_access(memory.id).relevance_score == 1.0
    assert store.get_memory(memory.id).relevance_score == 1.0


def test_17_record_access_throws_for_non_existent_id(store):
    with pytest.raises(memgraph.NotFoundError):
        store.record_access(str(uuid4()))


def test_18_gets_stats_with_correct_counts(store):
    relevances = (1.0, 0.5, 0.9)
    for n, relevance in enumerate(relevances):
        store.insert_memory(memgraph.EpisodicMemory(content=f"episode {n}", relevance_score=relevance))
    store.insert_memory(memgraph.SemanticMemory(content="pinned", is_pinned=True))
    store.insert_memory(memgraph.SemanticMemory(content="hidden", is_suppressed=True, relevance_score=0.6))
    store.insert_memory(memgraph.ProceduralMemory(content="how", relevance_score=0.8))
    store.delete_memory(store.insert_memory(memgraph.ProceduralMemory(content="gone", relevance_score=0.1)).id)

    stats = store.get_stats()

    assert stats.total == 6
    assert stats.by_type == {"episodic": 3, "semantic": 2, "procedural": 1}
    assert stats.avg_relevance == pytest.approx((1.0 + 0.5 + 0.9 + 1.0 + 0.6 + 0.8) / 6)
    assert (stats.pinned_count, stats.suppressed_count) == (1, 1)
    assert stats.db_size_bytes > 0


def test_19_serializes_and_deserializes_embeddings(store, open_store):
    vector = np.random.default_rng(7).standard_normal(64).astype(np.float32) * np.float32(1e-3)
    vector[3], vector[4] = np.float32(1e-42), np.float32(-0.0)  # a subnormal and a signed zero are bits too
    memory = store.insert_memory(memgraph.EpisodicMemory(content="Given its vector", embedding=vector))
    computed = store.insert_memory(memgraph.EpisodicMemory(content="Embedded by the store"))
    assert computed.embedding is not None

    store.close()
    reopened = open_store()

    assert reopened.get_memory(memory.id).embedding.tobytes() == vector.tobytes()
    assert reopened.get_memory(computed.id).embedding.tobytes() == computed.embedding.tobytes()


def test_20_respects_limit_in_query_by_type(store):
    for n in range(10):
        store.insert_memory(memgraph.EpisodicMemory(content=f"episode {n}", relevance_score=n / 10))

    assert contents(store.query_by_type("episodic", limit=3)) == ["episode 9", "episode 8", "episode 7"]
    assert len(store.query_by_type("episodic")) == 10
