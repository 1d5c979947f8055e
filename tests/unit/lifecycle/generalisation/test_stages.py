"""Generalisations of a history that is read at once: each holds from its third build on and grows, as if it had been lived through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memgraph.lifecycle.generalisation.compress import compress
from memgraph.model.events.memories import MemoryMerged, RecordPatch
from memgraph.model.events.records import FADED, BuildConsolidated
from memgraph.testing import FakeLanguageModel

Store = Any
TAGS = ["auth", "jwt"]


def day(number: int) -> str:
    return f"2024-{1 + number // 28:02}-{1 + number % 28:02}T00:00:00.000Z"


def learn(store: Store, *numbers: int) -> list[str]:
    """Keep an episode of each build, which happened on the day of its number."""
    episode = {"type": "episodic", "project_id": "shop", "outcome": "negative", "tags": TAGS}
    told = [
        {**episode, "content": f"Attempt {n} failed with E{n}.", "build_id": f"b{n}", "occurred_at": day(n)}
        for n in numbers
    ]
    return [one.id for one in store.insert_memories(told)]


def build(store: Store, number: int) -> BuildConsolidated:
    counted = {"log_sha256": "0" * 64, "task_count": 1, "complete": True, "extractor": "rules", "extracted": 0}
    times = {"started_at": day(number), "completed_at": day(number), "consolidated_at": store.now()}
    names = {"project_id": "shop", "build_id": f"b{number}", "outcome": "failure", "merged": 0}
    return BuildConsolidated.parse({**counted, **times, **names})


def run(store: Store, **given: Any) -> None:
    compress(store, embedder=store.embedder, **given)


def learned(store: Store) -> Any:
    (made,) = store.query_by_type("semantic")
    return made


def known_on(store: Store, number: int) -> tuple[int, int, float] | None:
    """Return how many builds, how many episodes and what confidence the generalisation had on a day; None if there was none."""
    with store.at(day(number)) as then:
        made = then.query_by_type("semantic")
        return (
            (len(made[0].evidence_build_ids), len(made[0].supporting_memory_ids), made[0].confidence) if made else None
        )


def revisions(store: Store) -> list[Any]:
    return [event for event in store.reader.history(learned(store).id) if event.type == "memory.revised"]


def test_a_generalisation_is_valid_from_the_third_build_and_grows(store: Store) -> None:
    learn(store, *range(5))
    run(store)
    assert [known_on(store, number) for number in (1, 3)] == [None, (4, 4, 0.8)]
    assert (learned(store).occurred_at, learned(store).confidence) == (day(4), 0.9)
    with store.at(day(2)) as then:
        assert len(learned(then).evidence_build_ids) == 3
        assert "in 3 builds" in learned(then).content
        assert "E3" not in learned(then).content
    digest = store.digest()
    store.rebuild()
    assert store.digest() == digest
    assert learned(store).embedding is not None


def test_a_stage_uses_the_episodes_words_of_its_time(store: Store) -> None:
    (one,) = learn(store, 0)
    store.commit("global", [build(store, 0)])
    for number in range(1, 4):
        builds = [f"b{n}" for n in range(number + 1)]
        said = RecordPatch(
            content=f"Attempt failed with E{number}, at length.", evidence_build_ids=builds, occurred_at=day(number)
        )
        store.commit("global", [MemoryMerged(id=one, changed=said), build(store, number)])
    run(store)
    with store.at(day(2)) as then:
        assert "E2" in learned(then).content
    assert "E3" in learned(store).content


def test_not_every_one_of_many_builds_is_a_stage(store: Store) -> None:
    learn(store, *range(45))
    run(store)
    assert [len(event.content["changed"]["evidence_build_ids"]) for event in revisions(store)] == [
        *range(4, 11), 20, 40, 45
    ]  # fmt: skip
    assert known_on(store, 29) == (20, 30, 0.9)  # linked it is with each from when it came


def test_what_is_recorded_first_may_have_happened_last(store: Store) -> None:
    learn(store, 4)
    learn(store, 0, 1, 2, 3)
    run(store)
    assert [known_on(store, number) for number in (1, 2)] == [None, (3, 3, 0.7)]


def test_a_stage_waits_for_the_episode_of_earlier_builds(store: Store) -> None:
    (one,) = learn(store, 4)
    for number in range(4):
        builds = ["b4", *(f"b{n}" for n in range(number + 1))]
        again = MemoryMerged(id=one, changed=RecordPatch(evidence_build_ids=builds))
        store.commit("global", [again, build(store, number)])
    run(store)
    assert [known_on(store, number) for number in (3, 4)] == [None, (5, 1, 0.9)]


def test_builds_imported_together_become_separate_stages(store: Store) -> None:
    learn(store, *range(3))
    run(store)
    learn(store, *range(3, 6))
    run(store)
    assert known_on(store, 4) == (5, 5, 0.9)
    assert [event.content["changed"]["occurred_at"] for event in revisions(store)] == [day(3), day(4), day(5)]


def test_with_partly_lost_evidence_only_the_latest_stage_is_written(store: Store) -> None:
    ids = learn(store, *range(4))
    run(store)
    store.suppress(ids[0])
    learn(store, 4, 5)
    run(store)
    assert known_on(store, 4) == (4, 5, 0.8)
    assert [event.content["changed"]["occurred_at"] for event in revisions(store)[1:]] == [day(5)]


def test_a_model_words_the_latest_stage(store: Store) -> None:
    learn(store, *range(5))
    model = FakeLanguageModel(json.dumps({"text": "Every attempt failed with an error of its own."}))
    run(store, model=model)
    assert len(model.calls) == 1
    assert learned(store).content == "Every attempt failed with an error of its own."
    with store.at(day(2)) as then:
        assert learned(then).content == learned(then).pattern


@pytest.mark.parametrize("is_withdrawn", [True, False], ids=["withdrawn", "divided"])
def test_it_ends_at_the_time_of_what_ended_it(store: Store, is_withdrawn: bool) -> None:
    ids = learn(store, 0, 1, 2)
    run(store)
    made = learned(store)
    if is_withdrawn:
        store.suppress(ids[0])
    else:
        for number, one in enumerate(ids):
            store.update_memory(one, tags=[f"topic {number}", f"area {number}"])
        learn(store, 9)
    run(store)
    assert store.get_memory(made.id).invalid_at == (store.now() if is_withdrawn else day(9))


def test_joining_with_faded_episodes_writes_only_the_latest_stage(store: Store) -> None:
    first, second = learn(store, 0, 1, 2), learn(store, 3, 4, 5)
    for one in second:
        store.update_memory(one, tags=["login", "oauth"])
    run(store)
    for one in (*first[:2], *second[:2]):
        store.archive(one, reason=FADED)
    for one in (first[2], second[2]):
        store.update_memory(one, tags=["auth", "jwt", "login", "oauth"])
    run(store)
    replaced = {one.id for one in store.list_memories(state="superseded")}
    (made,) = [one for one in store.query_by_type("semantic") if one.id not in replaced]
    assert (len(made.supporting_memory_ids), made.confidence) == (2, 0.9)
    assert len(store.reader.history(made.id)) == 4  # it came, with its links, and replaced two
