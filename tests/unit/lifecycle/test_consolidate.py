"""Consolidation beyond the seed's named tests: batches, grown logs, merging rules."""

import pytest

import memgraph
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.lifecycle.batch import Batch
from memgraph.model.ids import new_id
from memgraph.testing import FakeExtractor

TEXT = "The login test failed because the token had expired"


def log(build="b1", **fields):
    return memgraph.BuildEventLog(
        build_id=build,
        project_id="shop",
        build_outcome="failure",
        started_at="2026-01-01T00:00:00Z",
        completed_at="2026-01-01T01:00:00Z",
        **fields,
    )


def episode(content, **fields):
    return {"type": "episodic", "content": content, "outcome": "negative", **fields}


def pipeline(store, *found, **settings):
    return ConsolidationPipeline(
        store,
        extractor=FakeExtractor([memgraph.ExtractionResult.from_memories(list(memories)) for memories in found]),
        config=memgraph.ConsolidationConfig(**settings),
    )


def test_a_duplicate_within_one_batch_merges_into_the_new_memory_and_verifies(store):
    results = pipeline(store, [episode(TEXT, source_event_ids=["t1"])], [episode(TEXT, source_event_ids=["t2"])])
    first, second = results.consolidate_all([log("b1"), log("b2")])

    (memory,) = store.get_all_memories()
    assert first.new_memory_ids == [memory.id]
    assert (second.new_memory_ids, second.memories_deduplicated) == ([], 1)
    assert memory.source_event_ids == ["t1", "t2"]
    assert memory.evidence_build_ids == ["b1", "b2"]
    assert memory.embedding_model == store.embedder.name
    assert store.verify() > 0


def test_a_longer_duplicate_brings_its_text_and_its_vector(store, embedder):
    consolidate = pipeline(store, [episode(TEXT)], [episode(TEXT + " again")])
    consolidate.consolidate_all([log("b1"), log("b2")])

    (memory,) = store.get_all_memories()
    assert memory.content == TEXT + " again"
    assert memory.embedding == pytest.approx(embedder.embed([memory.content])[0])
    assert store.verify() > 0


@pytest.mark.parametrize(
    "other",
    [
        {"outcome": "positive"},
        {"privacy_tier": "private"},
        {"trust_class": "web"},
        {"project_id": "other"},
        {"type": "semantic"},
    ],
)
def test_only_memories_of_the_same_kind_are_duplicates(store, other):
    pipeline(store, [episode(TEXT)], [episode(TEXT, **other) | other]).consolidate_all([log("b1"), log("b2")])

    assert len(store.get_all_memories()) == 2


@pytest.mark.parametrize("has_vector", [True, False])
def test_nor_are_those_of_another_task(embedder, has_vector):
    vector = embedder.embed([TEXT])[0] if has_vector else None
    of_none, of_task = (
        memgraph.EpisodicMemory(id=new_id(), content=TEXT, embedding=vector, task_id=task) for task in (None, "t1")
    )
    batch = Batch("2026-02-01T09:00:00.000Z")
    batch.add(of_none)
    again = of_none.model_copy(update={"id": new_id()})
    assert [batch.nearest(one, 0.9)[1] or batch.equal(one) for one in (of_task, again)] == [
        None,
        batch.touched[of_none.id],
    ]


def test_a_pinned_text_is_never_rewritten(store):
    pinned = store.insert_memory(episode(TEXT, project_id="shop", is_pinned=True))
    pipeline(store, [episode(TEXT + " again")]).consolidate(log())

    (memory,) = store.get_all_memories()
    assert memory.id == pinned.id
    assert memory.content == TEXT
    assert memory.evidence_build_ids == ["b1"]


def test_confidence_and_relevance_of_a_merge(store, clock):
    store.insert_memory(episode(TEXT, project_id="shop", confidence=0.4, relevance_score=0.6))
    pipeline(store, [episode(TEXT, confidence=0.7)]).consolidate(log())

    (memory,) = store.get_all_memories()
    assert memory.confidence == pytest.approx((0.4 + 2 * 0.7) / 3)
    assert memory.relevance_score == pytest.approx(0.8)


def test_the_same_log_twice_writes_nothing_and_asks_nobody(store):
    extractor = FakeExtractor([episode(TEXT)])
    consolidate = ConsolidationPipeline(store, extractor=extractor)
    consolidate.consolidate(log())
    events, digest = store.verify(), store.digest()

    again = consolidate.consolidate(log())

    assert again.memories_extracted == 0
    assert (store.verify(), store.digest()) == (events, digest)
    assert len(extractor.calls) == 1


def test_a_grown_log_adds_its_growth_only(store):
    consolidate = pipeline(store, [episode(TEXT)], [episode(TEXT), episode("The cache was cold and slow")])
    consolidate.consolidate(log())
    grown = consolidate.consolidate(log(build_summary="more happened"))

    assert grown.memories_deduplicated == 0
    assert len(grown.new_memory_ids) == 1
    assert len(store.get_all_memories()) == 2


def test_a_deleted_memory_does_not_come_back_with_its_log(store):
    consolidate = pipeline(store, [episode(TEXT)], [episode(TEXT)])
    (memory_id,) = consolidate.consolidate(log()).new_memory_ids
    store.delete_memory(memory_id)

    consolidate.consolidate(log(build_summary="more happened"))

    assert store.get_all_memories() == []


def test_a_superseded_memory_takes_no_duplicates(store):
    old, new = (store.insert_memory(episode(text, project_id="shop")) for text in (TEXT, "Tokens are fine now"))
    store.link(new.id, "SUPERSEDES", old.id)

    pipeline(store, [episode(TEXT)]).consolidate(log())

    assert store.get_memory(old.id).evidence_build_ids == []
    assert len(store.get_all_memories()) == 3


def test_every_memory_says_why_it_was_made(store):
    pipeline(store, [episode(TEXT), episode("The cache was cold", reason="a task failed")]).consolidate(log())

    assert {memory.reason for memory in store.get_all_memories()} == {"a task failed", "proposed by the extractor"}


def test_a_log_that_ran_out_of_time_is_not_extracted_again(store):
    extractor = FakeExtractor([memgraph.ExtractionResult.from_memories([episode(TEXT), episode("Another failure")])])
    consolidate = ConsolidationPipeline(
        store, extractor=extractor, config=memgraph.ConsolidationConfig(max_duration_ms=0.001)
    )
    assert not consolidate.consolidate(log()).complete
    assert consolidate.consolidate(log()).complete
    assert len(extractor.calls) == 1
    assert len(store.get_all_memories()) == 2
    consolidate.consolidate(log(session_id="s2"))
    assert len(extractor.calls) == 2


def test_consolidation_can_be_switched_off(open_store):
    with open_store(consolidation_enabled=False) as store:
        result = pipeline(store, [episode(TEXT)]).consolidate(log())

        assert result.memories_extracted == 0
        assert "consolidation_enabled" in result.notice
        assert store.get_all_memories() == []


NEAR_BUT_OTHER = (
    ("The user prefers window seats on long flights", "The user does not prefer window seats on long flights"),
    ("Reading shop/cart.py failed: no such file", "Reading shop/user.py failed: no such file"),
    ("Trial env_8 failed: the lamp was not lit", "Trial env_31 failed: the lamp was not lit"),
)


@pytest.mark.parametrize(("one", "other"), NEAR_BUT_OTHER)
def test_what_denies_it_or_names_something_else_is_no_duplicate(open_store, fake_embedder, vector_at, one, other):
    vectors = {one: vector_at(1.0), other: vector_at(0.97)}
    store = open_store("near", embedder=fake_embedder(vectors))
    for place, text in enumerate((one, other)):
        store_one(store, text, place)
    assert sorted(memory.content for memory in store.every_memory()) == sorted((one, other))

    in_one_batch = open_store("batch", embedder=fake_embedder(vectors))
    store_one(in_one_batch, one, 0, other)
    assert len(list(in_one_batch.every_memory())) == 2


def store_one(store, text, place, *more):
    """Consolidate texts as they are, in one build."""
    from memgraph import ConsolidationPipeline
    from memgraph.model.build import ExtractionResult

    class Given:
        def extract(self, _log):
            return ExtractionResult.from_memories([{"type": "semantic", "content": said} for said in (text, *more)])

    build = {
        "build_id": f"b{place}",
        "project_id": "p",
        "build_outcome": "success",
        "started_at": "2026-01-01T00:00:00Z",
        "completed_at": "2026-01-01T01:00:00Z",
    }
    ConsolidationPipeline(store, extractor=Given()).consolidate(build)
