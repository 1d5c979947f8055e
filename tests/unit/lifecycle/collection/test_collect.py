"""Collection: what goes and in which order, floors, summaries, what a preview says, and a run that is stopped."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

import memgraph
from memgraph.lifecycle import collect as run
from memgraph.lifecycle import preview_collection
from memgraph.model.events.records import CollectionApplied
from memgraph.model.results.maintenance import CollectionPreview, CollectionResult

LONG = (
    "The refresh of the token failed with 401 because the proxy strips the header on a redirect. Reasoning: the gateway "
    "keeps cookies and drops the header when it upgrades the connection. Action: moved to cookies. Outcome: failure."
)


def episode(number: int, **fields: Any) -> dict[str, Any]:
    base = {"type": "episodic", "id": str(UUID(int=number)), "content": f"Try {number}", "project_id": "shop"}
    return {**base, "tags": ["auth", "jwt"], "outcome": "negative", "relevance_score": 0.05, **fields}


def archived(store: Any) -> list[str]:
    return sorted(memory.id for memory in store.list_memories(state="archived"))


def test_the_last_memory_of_a_failure_is_kept(store: Any) -> None:
    kept = [store.insert_memory(episode(number, relevance_score=number / 100)) for number in (3, 1, 2)]
    result = run(store)
    assert (result.archived, result.landmarks, result.negatives, result.landmark_share) == (2, 1, 1, 1.0)
    assert [memory.archived_at is None for memory in store.read_memories([one.id for one in kept])] == [
        True, False, False,
    ]  # fmt: skip


def test_of_a_merged_pair_the_superseded_memory_goes(store: Any) -> None:
    kept, replaced = store.insert_memory(episode(1, relevance_score=0.01)), store.insert_memory(episode(2))
    alone = store.insert_memory(episode(3, tags=["export"]))
    store.supersede(replaced.id, by=kept.id)
    store.supersede(alone.id, by=kept.id)
    result = run(store)
    assert archived(store) == [replaced.id, alone.id]
    assert (result.landmarks, store.get_memory(kept.id).floor) == (1, 0.1)


def test_only_listed_memories_count_as_landmarks_and_get_a_floor(store: Any) -> None:
    for number, out in enumerate((store.suppress, store.invalidate), start=1):
        store.insert_memory(episode(number, tags=[f"t{number}"], relevance_score=1.0))
        run(store)
        out(str(UUID(int=number)))
    listed = store.insert_memory(episode(3, relevance_score=1.0))
    result = run(store)
    assert (result.landmarks, result.negatives, result.landmark_share) == (1, 1, 1.0)
    assert [one.floor for one in store.read_memories([str(UUID(int=n)) for n in (1, 2)])] == [0.0, 0.0]
    assert store.get_memory(listed.id).floor == 0.1
    store.unsuppress(str(UUID(int=1)))
    assert run(store).floors_set == 1


def test_a_former_landmark_loses_its_floor_and_may_go(store: Any) -> None:
    first = store.insert_memory(episode(1))
    run(store)
    assert store.get_memory(first.id).floor == 0.1
    store.insert_memory(episode(2, relevance_score=1.0))
    result = run(store)
    assert (result.archived, result.floors_set) == (1, 1)  # now the second one is alone
    fresh = store.insert_memory(episode(3, relevance_score=1.0))
    assert (run(store).floors_cleared, store.get_memory(fresh.id).floor) == (1, 0.0)


def test_a_floor_set_by_the_user_is_kept(store: Any) -> None:
    kept = store.insert_memory(episode(1, outcome="positive", floor=0.3))
    low = store.insert_memory(episode(2, outcome="positive", floor=0.05))
    result = run(store)
    assert (result.archived, result.floors_cleared) == (1, 0)
    assert store.get_memory(kept.id) == kept
    assert store.get_memory(low.id).archived_at


def test_task_memories_are_collected_in_separate_commits(store: Any) -> None:
    for number in range(1, 7):
        task = {0: None, 1: "T1", 2: "T2"}[number % 3]
        store.insert_memory(episode(number, outcome="positive", **({"task_id": task} if task else {})))
    assert run(store).archived == 6
    assert len(archived(store)) == 6


class TestGeneralisations:
    def sources(self, store: Any, count: int = 3, **fields: Any) -> list[str]:
        episodes = [episode(number, tags=[f"t{number}"], outcome="neutral", **fields) for number in range(1, count + 1)]
        return [memory.id for memory in store.insert_memories(episodes)]

    def general(self, store: Any, sources: list[str], **fields: Any) -> Any:
        base = {"type": "semantic", "content": "Tokens fail behind the proxy", "project_id": "shop"}
        return store.insert_memory({**base, "relevance_score": 0.01, "supporting_memory_ids": sources, **fields})

    @pytest.mark.parametrize("setting", ["archive", "delete"])
    def test_the_last_trace_of_episodes_is_kept_and_evidence_is_archived(self, open_store: Any, setting: str) -> None:
        store = open_store(garbage_collection=setting)
        sources = self.sources(store)
        general = self.general(store, sources)
        result = run(store)
        assert (result.archived, result.deleted, result.last_traces) == (3, 0, 1)
        assert store.get_memory(general.id).supporting_memory_ids == sources
        assert run(store).last_traces == 1

    def test_a_generalisation_may_go_while_its_episodes_exist(self, store: Any) -> None:
        general = self.general(store, self.sources(store, relevance_score=0.5))
        assert (run(store).archived, archived(store)) == (1, [general.id])

    def test_superseded_or_single_source_memories_are_no_last_trace(self, store: Any) -> None:
        old = self.general(store, self.sources(store))
        newer = self.general(store, [], content="Tokens fail", relevance_score=1.0)
        store.supersede(old.id, by=newer.id)
        single = self.general(store, [str(UUID(int=3))], content="One saw it")
        assert run(store).archived == 5
        assert {old.id, single.id} <= set(archived(store))

    def test_one_episode_with_several_builds_makes_a_last_trace(self, store: Any) -> None:
        merged = store.insert_memory(episode(1, outcome="neutral", evidence_build_ids=["b1", "b2", "b3"]))
        self.general(store, [merged.id])
        result = run(store)
        assert (result.archived, result.last_traces) == (1, 1)


class TestSummaries:
    def test_episodes_are_summarised_after_30_days_without_access(self, store: Any, clock: Any) -> None:
        told = store.insert_memory(episode(1, content=LONG, relevance_score=1.0))
        used = store.insert_memory(episode(2, content=LONG, relevance_score=1.0))
        short = store.insert_memory(episode(3, relevance_score=1.0))
        known = store.insert_memory(episode(4, content=LONG, type="semantic", relevance_score=1.0))
        clock.advance(days=29)
        store.record_access(used.id)
        assert run(store).summarised == 0
        clock.advance(days=1)
        assert run(store).summarised == 1
        summary = store.get_memory(told.id).archive_summary
        assert summary.startswith("The refresh of the token failed")
        assert summary.endswith("Outcome: failure.")
        assert store.get_memory(told.id).content == LONG
        assert [store.get_memory(one.id).archive_summary for one in (used, short, known)] == [None] * 3
        assert run(store).summarised == 0

    def test_a_summary_is_cleared_with_its_text(self, store: Any, clock: Any) -> None:
        told = store.insert_memory(episode(1, content=LONG, relevance_score=1.0))
        clock.advance(days=30)
        run(store)
        assert store.update_memory(told.id, tags=["auth"]).archive_summary
        assert store.update_memory(told.id, content=f"Again. {LONG}").archive_summary is None
        assert run(store).summarised == 1

    def test_a_summary_survives_unarchiving(self, store: Any, clock: Any) -> None:
        told = store.insert_memory(episode(1, content=LONG, relevance_score=1.0))
        clock.advance(days=30)
        run(store)
        before = store.get_memory(told.id)
        store.archive(told.id, reason="old")
        back = store.unarchive(told.id)
        assert back == before.model_copy(update={"updated_at": back.updated_at})
        store.archive(told.id, summary="said by hand")
        assert store.unarchive(told.id).archive_summary is None


class TestPreview:
    def test_a_preview_writes_nothing_and_matches_the_run(self, store: Any, clock: Any) -> None:
        store.insert_memories([episode(number) for number in range(1, 5)])
        store.insert_memory(episode(9, content=LONG, relevance_score=1.0, tags=["a", "b"]))
        clock.advance(days=30)
        store.flush()
        digest, seq = store.digest(), store.verify()
        previewed = memgraph.MemGraph(store).maintenance.collect(preview=True)
        assert (store.digest(), store.verify()) == (digest, seq)
        assert isinstance(previewed, CollectionPreview)
        assert [one.id for one in previewed.memories] == previewed.memory_ids
        done = run(store)
        assert done == CollectionResult(**{name: getattr(previewed, name) for name in type(done).model_fields})
        assert (done.archived, done.summarised, done.floors_set) == (3, 1, 2)
        assert sorted(previewed.memory_ids) == archived(store)

    def test_of_an_empty_store(self, store: Any) -> None:
        previewed = preview_collection(store)
        assert (previewed.memory_ids, previewed.landmark_share) == ([], 0.0)
        assert run(store) == CollectionResult()


def test_a_pending_use_keeps_a_memory(store: Any) -> None:
    store.insert_memory(episode(1, outcome="neutral"))
    store.record_access(str(UUID(int=1)))
    assert run(store).archived == 0


def test_a_run_records_what_it_did(store: Any) -> None:
    store.insert_memories([episode(1), episode(2)])
    result = run(store)
    (said,) = [
        event.payload for event in store._journal.events_after(0) if isinstance(event.payload, CollectionApplied)
    ]
    assert {name: getattr(said, name) for name in ("archived", "landmarks", "negatives", "floors_set")} == {
        "archived": 1, "landmarks": 1, "negatives": 1, "floors_set": 1,
    }  # fmt: skip
    assert result.floors_set == 1


def test_progress_is_reported(store: Any) -> None:
    store.insert_memories([episode(number, outcome="neutral") for number in range(1, 4)])
    told: list[tuple[int, int]] = []
    memgraph.MemGraph(store).maintenance.collect(progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)
