"""Consolidation beyond the seed's named tests: batches, grown logs, merging rules."""

import pytest

import memgraph
from memgraph.config import ConsolidationConfig
from memgraph.errors import EmbeddingError
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.lifecycle.intake.settle import Pending, settle
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
        config=ConsolidationConfig(**settings),
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


def test_a_log_without_tests_is_known_by_the_digest_that_earlier_releases_kept(store):
    task = {"task_id": "t1", "agent_name": "a", "description": "d", "outcome": "success"}
    pipeline(store, [], []).consolidate_all([log("b1", tasks=[task]), log("b2", tasks=[{**task, "test": "a::one"}])])
    digests = [row["log_sha256"] for row in store.reader.builds("shop")]
    assert "e4b56b8a4fc48b62cd24df50921402e26fa8773579cdcf93696423be97059562" in digests
    assert len({*digests}) == 2
    assert [(run["name"], run["passed"]) for run in store.reader.every_record("Run")] == [("b2", ["a::one"])]


def test_of_more_tests_than_are_kept_those_that_were_run_again_are_and_then_the_first_by_name(store):
    task = {"agent_name": "ci", "description": "A test", "outcome": "success"}
    tasks = [{**task, "task_id": f"t{one}", "test": f"a::{one}"} for one in reversed(range(1_000, 2_500))]
    failed = {**task, "task_id": "a::2400 (first run)", "test": "a::2400", "outcome": "failure"}
    two = {**task, "task_id": "in another package", "test": "a::1000", "outcome": "failure"}
    ran = log("b1", tasks=[failed, two, *tasks], source="test report", trust_class="tool")
    pipeline(store, []).consolidate(ran)
    (run,) = store.reader.every_record("Run")
    assert run["passed"] == ["a::2400", *(f"a::{one}" for one in range(1_001, 2_000))]
    assert [one["name"] for one in run["failed"]] == ["a::2400", "a::1000"]


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
def test_memories_of_another_task_are_no_duplicates(store, has_vector):
    vector = store.embedder.embed([TEXT])[0] if has_vector else None
    of_none, of_task = (
        memgraph.EpisodicMemory(id=new_id(), content=TEXT, embedding=vector, task_id=task) for task in (None, "t1")
    )
    pending = Pending(store)
    pending.add(of_none)
    again = of_none.model_copy(update={"id": new_id()})
    settled = [settle(store, one, threshold=0.9, pending=pending) for one in (of_task, again)]
    assert [(one.state, one.memory and one.memory.id) for one in settled] == [("new", None), ("known", of_none.id)]


@pytest.mark.parametrize(
    ("known", "said", "is_merged"),
    [
        ("Tokens failed", "Sessions were dropped at sign-in", True),
        ("Tokens failed", "Tokens failed because the proxy strips the header", True),
        ("The importer reads the rows twice", "Rows are duplicated when suppliers are loaded", True),
        ("Tokens failed", "Tokens never failed", False),
        ("The limit is 10 requests", "Requests are refused above 20", False),
    ],
)
def test_what_is_near_enough_is_merged_unless_it_is_seen_to_differ(store, vector_at, known, said, is_merged):
    store.insert_memory(episode(known, project_id="shop", embedding=vector_at(1.0)))
    result = pipeline(store, [episode(said, embedding=vector_at(0.85))]).consolidate(log())
    assert result.memories_deduplicated == is_merged


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


def test_a_repeated_log_writes_nothing_and_calls_no_model(store):
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
    consolidate = ConsolidationPipeline(store, extractor=extractor, config=ConsolidationConfig(max_duration_ms=0.001))
    assert not consolidate.consolidate(log()).complete
    assert consolidate.consolidate(log()).complete
    assert len(extractor.calls) == 1
    assert len(store.get_all_memories()) == 2
    consolidate.consolidate(log(session_id="s2"))
    assert len(extractor.calls) == 2


class Slow:
    """An embedder, and an extractor, on a clock of their own: so many seconds a text, and a log."""

    def __init__(self, inner, found=(), *, text_s=0.0, log_s=0.0):
        self.inner, self.found, self.text_s, self.log_s = inner, list(found), text_s, log_s
        self.name, self.dimension = inner.name, inner.dimension
        self.now_s, self.batches, self.extracted = 0.0, [], []

    def embed(self, texts):
        self.batches.append(list(texts))
        self.now_s += self.text_s * len(texts)
        return self.inner.embed(texts)

    def embed_query(self, text):
        return self.inner.embed_query(text)

    def extract(self, build_log):
        self.extracted.append(build_log.build_id)
        self.now_s += self.log_s
        memories = [episode(f"{build_log.build_id}: {said}") for said in self.found]
        return memgraph.ExtractionResult.from_memories(memories)

    def pipeline(self, store, seconds):
        config = ConsolidationConfig(max_duration_ms=seconds * 1000)
        return ConsolidationPipeline(store, self, self, config, timer=lambda: self.now_s)


FINDINGS = [f"{word} broke{n} because{n} of{n} it{n}" for n, word in enumerate("ABCDEFGHIJKL")]


def test_what_a_user_stated_is_kept_beyond_the_limit_of_memories(store):
    said = [
        {"timestamp": f"2026-01-01T00:{n:02}:00.000Z", "action": f"Never delete the {word} table."}
        for n, word in enumerate(["orders", "users", "carts", "prices", "stocks", "taxes", "refunds"])
    ]
    session = log(source="transcript", user_interventions=said)
    result = ConsolidationPipeline(store, config=ConsolidationConfig(max_memories_per_extraction=3)).consolidate(
        session
    )
    assert (len(result.new_memory_ids), result.memories_left_out) == (7, 0)


class TestATimeLimit:
    def test_it_stops_a_slow_embedder_and_the_rest_resumes(self, open_store, embedder):
        whole, cut = open_store("whole"), open_store("cut")
        expected = Slow(embedder, FINDINGS).pipeline(whole, 60).consolidate(log())
        slow = Slow(embedder, FINDINGS, text_s=10)

        first = slow.pipeline(cut, 35).consolidate(log())
        assert slow.now_s <= 35
        assert (first.complete, len(first.new_memory_ids), first.memories_left_out) == (False, 3, 4)
        assert first.duration_ms == 30_000
        assert {memory.content for memory in cut.get_all_memories()} == {f"b1: {said}" for said in FINDINGS[:3]}

        again = [slow.pipeline(cut, 35).consolidate(log()) for _ in range(3)]  # each as in a process of its own
        assert [(one.complete, len(one.new_memory_ids)) for one in again] == [(False, 3), (True, 2), (True, 0)]
        assert first.new_memory_ids + again[0].new_memory_ids + again[1].new_memory_ids == expected.new_memory_ids
        assert sorted(text for batch in slow.batches for text in batch) == sorted(
            f"b1: {said}" for said in FINDINGS[:8]
        )
        assert cut.digest() == whole.digest()

    def test_it_stops_between_logs_and_keeps_their_order(self, open_store, embedder):
        whole, cut = open_store("whole"), open_store("cut")
        logs = [log(f"b{n}") for n in range(4)]
        Slow(embedder, FINDINGS[:2]).pipeline(whole, 60).consolidate_all(logs)
        slow = Slow(embedder, FINDINGS[:2], text_s=1, log_s=10)
        pipeline = slow.pipeline(cut, 25)

        done = [one.complete for one in pipeline.consolidate_all(logs)]
        assert slow.extracted == ["b0", "b1", "b2"]
        assert done == [False, False, False, False]
        assert len(cut.get_all_memories()) == 1
        for _ in range(5):
            done = [one.complete for one in pipeline.consolidate_all(logs)]
        assert done == [True] * 4
        assert slow.extracted == ["b0", "b1", "b2", "b3"]  # each log once
        assert cut.digest() == whole.digest()

    def test_a_quick_embedder_is_asked_a_few_times(self, store, embedder):
        slow = Slow(embedder, FINDINGS[:8], text_s=0.001)
        pipeline = slow.pipeline(store, 60)
        assert pipeline.consolidate(log()).complete
        assert [len(batch) for batch in slow.batches] == [1, 2, 4, 1]

    def test_a_model_that_fails_is_not_asked_for_every_text(self, store, embedder):
        slow = Slow(embedder, FINDINGS[:8], text_s=50)

        def failing(texts):
            slow.batches.append(list(texts))
            slow.now_s += 50
            raise EmbeddingError("it does not answer")

        slow.embed = failing
        assert slow.pipeline(store, 60).consolidate(log()).complete
        assert len(slow.batches) == 2  # the text, and one that every model can embed
        assert len(store.get_all_memories()) == 8


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
def test_negations_and_other_names_are_no_duplicates(open_store, fake_embedder, vector_at, one, other):
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
