"""Authority: classes decide near ties, above a floor, and never against a score that dominates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memgraph
from memgraph.index.columns import AUTHORITIES
from memgraph.model.results.retrieval import RetrievalConfig
from memgraph.retrieval.stages.authority import Candidate, in_order, is_near, overrides

CONFIG = RetrievalConfig()
LONG = "Ann and Bob rotate the signing keys of the host because the auditors of the bank ask for it"
NOISE = ("The import", "The payment", "The search", "The report")
steps = st.sampled_from([0.0, 1e-7, 9e-7, 1.1e-6, 4e-5, 9.9e-5, 1.01e-4, 2e-4, 0.01, 0.04, 0.06])
scores = st.lists(steps, min_size=1, max_size=12).map(
    lambda gaps: [1.0 - sum(gaps[:place]) for place in range(len(gaps))]
)
configs = st.builds(
    RetrievalConfig,
    near_tie=st.sampled_from([0.0, 1e-4, 1e-3, 0.1]),
    override_delta=st.sampled_from([0.0, 5e-5, 1e-3, 0.05, 1.0]),
    authority_floor=st.sampled_from([0.0, 0.3, 0.95]),
)


@st.composite
def found(draw: Any) -> list[Candidate]:
    return [
        Candidate(
            place,
            f"m{place:02}",
            score,
            draw(st.integers(0, len(AUTHORITIES) - 1)),
            is_eligible=draw(st.booleans()),
            is_own=draw(st.booleans()),
        )
        for place, score in enumerate(draw(scores))
    ]


@given(found(), configs, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_in_which_candidates_are_given(
    given_: list[Candidate], config: RetrievalConfig, random: Any
) -> None:
    ordered, shuffled = in_order(given_, config), given_.copy()
    random.shuffle(shuffled)
    assert in_order(shuffled, config) == ordered
    assert in_order(ordered, config) == ordered
    assert sorted(ordered) == sorted(given_)


@given(found(), configs)
def test_none_is_displaced_by_one_that_is_worse_by_more_than_the_bound(
    given_: list[Candidate], config: RetrievalConfig
) -> None:
    ordered = in_order(given_, config)
    for place, one in enumerate(ordered):
        for later in ordered[place + 1 :]:
            if one.score < later.score:
                lead = later.score - one.score
                assert lead <= max(1e-6, config.near_tie * max(later.score, one.score))
                assert lead < config.override_delta, "a dominant candidate is never displaced"
                assert one.is_eligible or not later.is_eligible, "what is weakly related is not raised"
                assert one.by_class[:2] < later.by_class[:2]


@given(found(), configs)
def test_of_equal_scores_the_higher_class_comes_first(given_: list[Candidate], config: RetrievalConfig) -> None:
    equal = in_order((one._replace(score=0.5, is_eligible=True) for one in given_), config)
    assert equal == sorted(equal, key=lambda one: (one.authority, not one.is_own, one.memory_id))


@given(found(), configs)
def test_each_override_is_told(given_: list[Candidate], config: RetrievalConfig) -> None:
    ordered = in_order(given_, config)
    told = overrides(ordered, config)
    for place, one in enumerate(ordered):
        reasons = {over.memory_id: over.reason for over in told.get(one.slot, [])}
        for later in ordered[place + 1 :]:
            is_passed = later.score > one.score and one.by_class[0] < later.by_class[0]
            assert not is_passed or reasons[later.memory_id] == "authority"
        assert set(reasons) <= {later.memory_id for later in ordered[place + 1 :]}


def test_near_is_grouped_from_the_best_because_it_is_not_transitive() -> None:
    best, middle, last = (
        Candidate(0, "a", 1.0, AUTHORITIES.index("memory")),
        Candidate(1, "b", 0.99992, AUTHORITIES.index("decision")),
        Candidate(2, "c", 0.99984, AUTHORITIES.index("pin")),
    )
    assert is_near(best.score, middle.score, CONFIG)
    assert is_near(middle.score, last.score, CONFIG)
    assert not is_near(best.score, last.score, CONFIG)
    assert [one.memory_id for one in in_order([last, middle, best], CONFIG)] == ["b", "a", "c"]


def test_the_bound_is_relative_with_a_least_one() -> None:
    assert is_near(1.0, 0.9999, CONFIG)
    assert not is_near(1.0, 0.99989, CONFIG)
    assert not is_near(0.5, 0.4999, CONFIG), "a share of the higher score, not of one"
    assert is_near(0.001, 0.0009991, CONFIG), "1e-6 is near whatever the scores"


@pytest.mark.parametrize(("delta", "first"), [(1.0, "decision"), (0.0005, "memory")])
def test_a_lead_of_override_delta_is_dominant(delta: float, first: str) -> None:
    config = RetrievalConfig(near_tie=0.01, override_delta=delta)
    leading = Candidate(0, "a", 1.0, AUTHORITIES.index("memory"))
    other = Candidate(1, "b", 0.999, AUTHORITIES.index("decision"))
    ordered = in_order([other, leading], config)
    assert AUTHORITIES[ordered[0].authority] == first
    told = overrides(ordered, config)[ordered[0].slot]
    assert [(one.memory_id, one.reason, one.lead) for one in told] == (
        [("a", "authority", -0.001)] if first == "decision" else [("b", "dominance", 0.001)]
    )


def recalled(store: Any, **config: Any) -> Any:
    retrieval = memgraph.MemoryRetrieval(store, config=RetrievalConfig(**config))
    query = {"task_description": "rotate the signing keys", "session_id": "s1", "task_id": "t1", "floor": "off"}
    return retrieval.retrieve(query)


def test_durable_memory_stands_before_a_transcript_that_matches_better(store: Any) -> None:
    """Invariant 3 of seed 4: what was said counts less than what is known."""
    turn = memgraph.EpisodicMemory(content=f"{LONG}.", source="turn", session_id="s1", outcome="neutral")
    known = memgraph.EpisodicMemory(content=f"{LONG}, every month.", outcome="neutral")
    store.insert_memories([memgraph.EpisodicMemory(content=f"{one} is done", outcome="neutral") for one in NOISE])
    said, kept = (store.insert_memory(one).id for one in (turn, known))
    result = recalled(store)
    assert [one.id for one in result.memories][:2] == [kept, said]
    why = {one.memory_id: one for one in result.explanations}
    assert (why[said].authority, why[kept].authority) == ("transcript", "memory")
    full = why[said].score - why[said].transcript
    assert why[said].score == pytest.approx(0.85 * full, abs=1e-5)
    assert full > why[kept].score
    assert [one.id for one in recalled(store, transcript_factor=1.0).memories][:2] == [said, kept]


def test_a_transcript_factor_changes_no_order_among_transcripts(store: Any) -> None:
    texts = ("rotate the keys", "the signing keys of the host", "rotate the signing keys by hand", "keys")
    store.insert_memories(
        [memgraph.EpisodicMemory(content=one, source="turn", session_id="s1", outcome="neutral") for one in texts]
    )
    assert [one.id for one in recalled(store).memories] == [
        one.id for one in recalled(store, transcript_factor=1.0).memories
    ]


def test_classes_order_equal_texts_and_say_what_they_overrode(memory: Any) -> None:
    text = "rotate the signing keys"
    tasks = memory.tasks
    tasks.upsert("Keys", task_id="t1")
    saved = memory.store.insert_memory(memgraph.SemanticMemory(content=text, id="00000000-0000-4000-8000-000000000000"))
    turn = memory.store.insert_memory(
        memgraph.EpisodicMemory(content=text, source="turn", session_id="s1", task_id="t1", outcome="unknown")
    )
    made = [
        tasks.ask("t1", text).id,
        tasks.plan("t1", text).id,
        tasks.constrain("t1", text).id,
        tasks.decide("t1", text).id,
        tasks.add_artifact("t1", text).id,
    ]
    result = recalled(memory.store, max_task_items=9, transcript_factor=1.0, use_weight=0.0)
    ranked = sorted(result.explanations, key=lambda one: one.rank)  # without a floor the memories are grouped by type
    classes = [one.authority for one in ranked if one.memory_id in {*made, saved.id, turn.id}]
    assert classes == ["decision", "constraint", "next action", "open question", "event", "memory", "transcript"]
    first = ranked[0]
    assert saved.id in {over.memory_id for over in first.overrode if over.reason == "authority"}


def test_a_pin_stands_before_an_equal_saved_fact_and_a_forged_source_is_no_pin(memory: Any) -> None:
    text = "Rotate the signing keys"
    forged = memory.store.insert_memory(
        memgraph.SemanticMemory(id="00000000-0000-4000-8000-000000000001", content=text, source="pin", tags=["fact"])
    )
    saved = memory.store.insert_memory(
        memgraph.SemanticMemory(
            id="00000000-0000-4000-8000-000000000000",
            content=text,
            source="remember",
            is_pinned=True,
            tags=["fact"],
            outcome="positive",
        )
    )
    pin = memory.tasks.pins.upsert(text).pin
    result = recalled(memory.store)
    why = {one.memory_id: one for one in result.explanations}
    assert (why[pin.id].authority, why[saved.id].authority, why[forged.id].authority) == ("pin", "memory", "memory")
    assert result.memories[0].id == pin.id
    assert saved.id in {over.memory_id for over in why[pin.id].overrode}
