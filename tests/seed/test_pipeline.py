"""KIMI-MEMORY-05, required tests 1 to 15 without 8 and 10 (compression and collection)."""

from __future__ import annotations

from math import ceil

import pytest

import memgraph
from memgraph.config import RetrievalBudget
from memgraph.model.relevance import ForgettingCurveConfig

LOW_ID = "00000000-0000-4000-8000-000000000001"
HIGH_ID = "ffffffff-ffff-4fff-bfff-ffffffffffff"


def query(description="zzyzx", vector=None, **fields):
    return memgraph.RetrievalQuery(
        task_description=description, task_embedding=vector, agent_name="MARS", project_id="shop", **fields
    )


def episode(content, vector=None, **fields):
    return memgraph.EpisodicMemory(content=content, embedding=vector, **{"project_id": "shop", **fields})


def contents(memories):
    return [memory.content for memory in memories]


@pytest.fixture
def wired(open_store, fake_embedder):
    """Wire a store, retrieval and commands over an embedder that knows these vectors."""

    def wire(vectors=None):
        embedder = fake_embedder(vectors)
        store = open_store(embedder=embedder)
        retrieval = memgraph.MemoryRetrieval(store, embedder)
        return store, retrieval, memgraph.MemoryCommands(store, embedder, retrieval), embedder

    return wire


def test_01_insert_memory_retrieve_it(wired, vector_at):
    store, retrieval, _, _ = wired(
        {
            "JWT refresh failed behind the proxy": vector_at(0.9),
            "Repair token refresh behind the proxy": vector_at(1.0),
            "The logo is green": vector_at(0.0, axis=2),
        }
    )
    memory = store.insert_memory(episode("JWT refresh failed behind the proxy", outcome="negative"))
    store.insert_memory(episode("The logo is green"))

    result = retrieval.retrieve(query("Repair token refresh behind the proxy", max_episodic=1))

    assert [found.id for found in result.memories] == [memory.id]
    assert "JWT refresh failed behind the proxy" in result.injected_prompt_prefix
    assert store.get_memory(memory.id).access_count == 1


def test_02_consolidate_build_retrieve_memory(wired, vector_at):
    from memgraph.testing import FakeExtractor

    lesson = "The proxy strips the authorization header"
    store, retrieval, _, embedder = wired({lesson: vector_at(0.9), "Why is the header gone?": vector_at(1.0)})
    store.insert_memory(episode("The logo is green", vector_at(0.0, axis=2)))
    extractor = FakeExtractor([{"type": "semantic", "content": lesson, "outcome": "negative", "confidence": 0.6}])
    log = {
        "buildId": "build-1",
        "projectId": "shop",
        "tasks": [],
        "buildOutcome": "failure",
        "startedAt": "2026-01-31T10:00:00Z",
        "completedAt": "2026-01-31T11:00:00Z",
    }

    outcome = memgraph.ConsolidationPipeline(store, embedder, extractor).consolidate(memgraph.BuildEventLog(**log))
    result = retrieval.retrieve(query("Why is the header gone?"))

    (found,) = [memory for memory in result.memories if memory.type == "semantic"]
    assert [found.id] == outcome.new_memory_ids
    assert f"• Semantic: {lesson}\n" in result.injected_prompt_prefix


def test_03_remember_command_creates_retrievable_memory(wired, vector_at):
    _, retrieval, commands, _ = wired({"Always use pnpm": vector_at(0.9), "Install packages": vector_at(1.0)})

    commands.remember("Always use pnpm")

    assert contents(retrieval.retrieve(query("Install packages")).memories) == ["Always use pnpm"]


def test_04_forget_command_prevents_retrieval(wired, vector_at):
    _, retrieval, commands, _ = wired(
        {"Always use pnpm": vector_at(0.9), "the pnpm rule": vector_at(1.0), "Install packages": vector_at(0.95)}
    )
    commands.remember("Always use pnpm")
    assert retrieval.retrieve(query("Install packages")).memories

    assert commands.forget("the pnpm rule").success

    result = retrieval.retrieve(query("Install packages"))
    assert result.memories == []
    assert result.injected_prompt_prefix == ""


def test_05_ask_returns_episodic_summary(wired, vector_at):
    store, _, commands, _ = wired({"Remember when tokens failed?": vector_at(1.0)})
    store.insert_memory(episode("JWT refresh failed", vector_at(0.9)))
    store.insert_memory(episode("Sessions replaced tokens", vector_at(0.8), relevance_score=0.6))

    result = commands.ask("Remember when tokens failed?")

    assert result.success
    for expected in ("JWT refresh failed", "Sessions replaced tokens", "I have a clear memory of this", "I recall something similar"):  # fmt: skip
        assert expected in result.message


def test_06_decay_reduces_retrieval_ranking_over_time(wired, vector_at, clock):
    store, retrieval, _, _ = wired()
    store.insert_memory(episode("an old note", vector_at(0.8), id=LOW_ID, relevance_score=0.9))  # wins a plain tie
    clock.advance(days=60)
    store.insert_memory(episode("a newer one", vector_at(0.8), id=HIGH_ID, relevance_score=0.9))

    assert contents(retrieval.retrieve(query(vector=vector_at(1.0))).memories) == ["a newer one", "an old note"]


def test_07_negative_memories_surface_preferentially(wired, vector_at):
    store, retrieval, _, _ = wired()
    store.insert_memory(episode("it went well", vector_at(0.8), id=LOW_ID, outcome="positive"))
    store.insert_memory(episode("it went awry", vector_at(0.8), id=HIGH_ID, outcome="negative"))

    assert contents(retrieval.retrieve(query(vector=vector_at(1.0))).memories) == ["it went awry", "it went well"]


def test_09_pinned_memories_persist_through_decay(wired, clock):
    store, retrieval, commands, _ = wired()
    commands.remember("Always use pnpm")
    fading = store.insert_memory(episode("Passing"))
    clock.advance(days=365)

    retrieval.apply_decay()

    (pinned,) = store.query_by_type("semantic")
    assert pinned.is_pinned
    assert pinned.relevance_score == 1.0
    assert store.get_memory(fading.id).relevance_score < 0.1


@pytest.mark.embedded
def test_11_export_and_import_round_trip(wired, open_store, embedder, clock):
    store, _, commands, _ = wired()
    commands.remember("Always use pnpm", ["tooling"])
    failed = store.insert_memory(episode("JWT failed", outcome="failure", tags=["auth"], relevance_score=0.7))
    store.insert_memory(memgraph.ProceduralMemory(content="Deploying", trigger_pattern="a release", steps=["a", "b"]))
    store.record_access(failed.id)
    clock.advance(days=3)

    fresh = open_store("fresh")
    result = memgraph.MemoryCommands(fresh, embedder).import_memories(commands.export_memories())

    assert result.data == {"imported": 3, "skipped": 0}
    assert {memory.id: memory for memory in fresh.get_all_memories()} == {
        memory.id: memory for memory in store.get_all_memories()
    }
    assert fresh.digest() == store.digest()


def test_12_memory_config_flows_to_the_store(open_store, embedder, vector_at, clock):
    budget = RetrievalBudget(episodic=2, semantic=1, procedural=0, max_tokens=100)
    curve = ForgettingCurveConfig(decay_rate=0.1, reinforcement_boost=0.05)
    store = open_store("configured", retrieval_budget=budget, forgetting_curve=curve)
    for n in range(4):
        for kind in (memgraph.EpisodicMemory, memgraph.SemanticMemory, memgraph.ProceduralMemory):
            store.insert_memory(kind(content=f"note {n}", embedding=vector_at(0.9), relevance_score=0.5))

    result = memgraph.MemoryRetrieval(store, embedder).retrieve(query(vector=vector_at(1.0)))

    assert sorted(memory.type for memory in result.memories) == ["episodic", "episodic", "semantic"]
    accessed = store.get_memory(next(memory.id for memory in result.memories if memory.type == "episodic"))
    assert accessed.relevance_score == pytest.approx(0.55)
    clock.advance(days=10)
    assert store.get_memory(accessed.id).relevance_score == pytest.approx(0.55 * 2.718281828459045**-1)


def test_12_the_seeds_config_document_loads_unchanged(tmp_path):
    config = memgraph.AgentMemoryConfig(
        home=tmp_path / "store",
        consolidationEnabled=True,
        retrievalBudget={"episodic": 5, "semantic": 3, "procedural": 2, "maxTokens": 800},
        forgettingCurve={"decayRate": 0.05, "deletionThreshold": 0.1, "reinforcementBoost": 0.2},
        compressionCycleInterval=10,
    )

    assert config == memgraph.AgentMemoryConfig(home=tmp_path / "store")


def test_13_barrel_export_exposes_all_key_types():
    for name in ("AgentMemoryStore", "ConsolidationPipeline", "MemoryRetrieval", "MemoryCommands"):
        assert isinstance(getattr(memgraph, name), type), name


def test_14_token_budget_enforced_across_retrieval(wired, vector_at):
    store, retrieval, _, _ = wired()
    for kind in (memgraph.EpisodicMemory, memgraph.SemanticMemory, memgraph.ProceduralMemory):
        for n in range(6):
            content = f"{n} " + "long " * 100
            store.insert_memory(kind(content=content, project_id="shop", embedding=vector_at(0.9)))

    result = retrieval.retrieve(query(vector=vector_at(1.0)))

    used = sum(ceil(len(memory.content) / 4) for memory in result.memories)
    assert result.total_tokens_used == used <= 800
    assert len(result.memories) == 800 // ceil(502 / 4)  # the type budgets alone would let 10 in


def test_15_empty_store_produces_valid_results(wired):
    store, retrieval, commands, _ = wired()

    result = retrieval.retrieve(query("anything"))

    assert (result.memories, result.injected_prompt_prefix, result.total_tokens_used) == ([], "", 0)
    assert retrieval.apply_decay().model_dump() == {"updated": 0, "below_threshold": 0}
    assert commands.list() == []
    assert commands.ask("anything").command == "ask"
    assert commands.stats().by_type == {"episodic": 0, "semantic": 0, "procedural": 0}
    assert commands.stats().avg_relevance == 0.0
    assert commands.export_memories().memories == []
    assert store.get_all_memories() == []
