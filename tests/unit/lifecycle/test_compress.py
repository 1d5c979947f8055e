"""What becomes of generalisations as experience grows, shifts, fades and is taken back, on a real embedded graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

import memgraph
from memgraph.lifecycle import compress as compressing
from memgraph.lifecycle.collect import ARCHIVE_REASON
from memgraph.lifecycle.compress import compress
from memgraph.model.events import MemoryDeleted
from memgraph.testing import FakeLanguageModel

Store = Any


def episode(n: int, topic: str = "jwt", **fields: Any) -> dict[str, Any]:
    base = {"type": "episodic", "project_id": "shop", "outcome": "negative", "build_id": f"b{n}"}
    return {**base, "content": f"Attempt {n} at {topic} failed with E{n}.", "tags": ["auth", topic], **fields}


def run(store: Store, **given: Any) -> memgraph.CompressionResult:
    return compress(store, embedder=store.embedder, **given)


def in_force(store: Store) -> list[Any]:
    superseded = {one.id for one in store.list_memories(state="superseded")}
    return [one for one in store.query_by_type("semantic") if one.id not in superseded]


def counts(result: memgraph.CompressionResult) -> tuple[int, int, int, int]:
    return result.compressed, result.updated, result.superseded, result.retired


def learn(store: Store, *numbers: int, topic: str = "jwt", **fields: Any) -> list[str]:
    return [one.id for one in store.insert_memories([episode(n, topic, **fields) for n in numbers])]


class TestAgain:
    def test_unchanged_nothing_is_written(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        run(store)
        before, events = store.digest(), store._journal.tail.chain.seq
        assert counts(run(store)) == (0, 0, 0, 0)
        assert (store.digest(), store._journal.tail.chain.seq) == (before, events)

    def test_uses_and_other_projects_leave_it_alone(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        store.record_access(ids[0])
        learn(store, 4, 5, 6, project_id="other")
        result = run(store)
        assert (counts(result), result.episodes) == ((1, 0, 0, 0), 3)

    def test_grown_it_is_brought_up(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        (before,) = in_force(store)
        ids += learn(store, 4, 5)
        assert counts(run(store)) == (0, 1, 0, 0)
        (after,) = in_force(store)
        assert after.id == before.id
        assert (before.confidence, after.confidence) == (0.7, 0.9)
        assert after.supporting_memory_ids == sorted(ids)
        assert after.evidence_build_ids == ["b1", "b2", "b3", "b4", "b5"]
        assert "in 5 builds" in after.content
        assert {link.relation for link in store.links(ids[4])} == {"NEXT", "DERIVED_FROM", "SUPPORTS"}

    def test_a_memory_of_three_builds_is_a_pattern_alone_and_grows_by_merging(self, store: Store) -> None:
        (one,) = learn(store, 1, evidence_build_ids=["b1", "b2", "b3"])
        run(store)
        store.update_memory(one, evidence_build_ids=["b1", "b2", "b3", "b4"])
        assert counts(run(store)) == (0, 1, 0, 0)
        assert [found.confidence for found in in_force(store)] == [0.8]

    def test_pinned_text_is_kept(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        store.update_memory(made.id, content="Use sessions instead of tokens", is_pinned=True)
        learn(store, 4)
        run(store)
        assert [(one.content, one.confidence) for one in in_force(store)] == [("Use sessions instead of tokens", 0.8)]


class TestJoinedAndSplit:
    @pytest.fixture
    def two(self, store: Store) -> tuple[list[str], list[str], list[Any]]:
        """Return the episodes of two patterns of one project, and the generalisations."""
        one, other = learn(store, 1, 2, 3), learn(store, 4, 5, 6, topic="oauth", tags=["login", "oauth"])
        assert run(store).compressed == 2
        return one, other, in_force(store)

    def test_joined_a_new_one_supersedes_both(self, store: Store, two: Any) -> None:
        one, other, old = two
        for memory_id in [*one, *other]:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        assert counts(run(store)) == (1, 0, 2, 0)
        (made,) = in_force(store)
        assert made.supporting_memory_ids == sorted([*one, *other])
        replaced = [link.target_id for link in store.links(made.id) if link.relation == "SUPERSEDES"]
        assert sorted(replaced) == sorted(known.id for known in old)

    def test_split_new_ones_supersede_it_and_may_join_again(self, store: Store, two: Any) -> None:
        one, other, _ = two
        for memory_id in [*one, *other]:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        run(store)
        (joined,) = in_force(store)
        for memory_id in other:
            store.update_memory(memory_id, tags=["mail", "smtp"])
        assert counts(run(store)) == (2, 0, 1, 0)
        assert sorted(tuple(made.supporting_memory_ids) for made in in_force(store)) == sorted(
            [tuple(sorted(one)), tuple(sorted(other))]
        )
        for memory_id in other:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        assert counts(run(store)) == (1, 0, 2, 0)
        assert [made.supporting_memory_ids for made in in_force(store)] == [sorted([*one, *other])]
        assert joined.id not in {made.id for made in in_force(store)}

    def test_an_episode_that_changes_sides_makes_no_new_one(self, store: Store, two: Any) -> None:
        one, _, old = two
        learn(store, 7)
        run(store)
        store.update_memory(one[0], tags=["login", "oauth"])
        assert counts(run(store)) == (0, 2, 0, 0)
        assert {made.id for made in in_force(store)} == {known.id for known in old}
        assert sorted(len(made.supporting_memory_ids) for made in in_force(store)) == [3, 4]


class TestGone:
    @pytest.mark.parametrize("way", ["archive", "delete_memory"])
    def test_what_faded_is_evidence_still(self, store: Store, way: str) -> None:
        ids = learn(store, 1, 2, 3, 4)
        run(store)
        (made,) = in_force(store)
        for memory_id in ids[:3]:
            getattr(store, way)(memory_id)
        assert counts(run(store)) == (0, 0, 0, 0)
        learn(store, 5)
        run(store)
        (after,) = in_force(store)
        assert (after.id, after.confidence) == (made.id, 0.9)
        for one in store.query_by_type("episodic"):
            getattr(store, way)(one.id)
        run(store)
        assert [(made.id, made.content) for made in in_force(store)] == [(after.id, after.content)]

    @pytest.mark.parametrize("way", ["suppress", "invalidate"])
    def test_what_is_forgotten_or_untrue_is_evidence_no_more(self, store: Store, way: str) -> None:
        ids = learn(store, 1, 2, 3, 4)
        run(store)
        getattr(store, way)(ids[0])
        assert counts(run(store)) == (0, 1, 0, 0)
        (made,) = in_force(store)
        assert (made.confidence, made.supporting_memory_ids) == (0.7, sorted(ids[1:]))
        assert "Attempt 1 " not in made.content
        getattr(store, way)(ids[1])
        assert counts(run(store)) == (0, 0, 0, 1)
        assert in_force(store) == []
        assert "b1" not in store.get_memory(made.id).evidence_build_ids

    def test_evidence_that_comes_back_makes_it_anew(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        store.suppress(ids[0])
        run(store)
        store.unsuppress(ids[0])
        assert counts(run(store)) == (1, 0, 0, 0)
        assert len(in_force(store)) == 1

    @pytest.mark.parametrize("way", ["suppress", "invalidate", "delete_memory"])
    def test_a_generalisation_that_was_forgotten_or_deleted_stays_so(self, store: Store, way: str) -> None:
        learn(store, 1, 2, 3)
        run(store)
        getattr(store, way)(in_force(store)[0].id)
        assert counts(run(store)) == (0, 0, 0, 0)
        learn(store, 4, 5)
        assert counts(run(store)) == (0, 0, 0, 0)
        assert in_force(store) == []

    def test_deleted_it_comes_back_only_when_it_is_asked_back(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        store.delete_memory(made.id)
        ids += learn(store, 4, 5)
        assert counts(run(store)) == (0, 0, 0, 0)
        store.undelete(made.id)
        assert counts(run(store)) == (0, 1, 0, 0)
        assert [(one.id, one.supporting_memory_ids) for one in in_force(store)] == [(made.id, sorted(ids))]

    def test_one_that_was_replaced_and_then_deleted_forbids_nothing(self, store: Store) -> None:
        one, other = learn(store, 1, 2, 3), learn(store, 4, 5, 6, topic="oauth", tags=["login", "oauth"])
        run(store)
        old = in_force(store)
        for memory_id in [*one, *other]:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        run(store)
        for known in old:
            store.delete_memory(known.id)
        for memory_id in other:
            store.update_memory(memory_id, tags=["mail", "smtp"])
        assert counts(run(store)) == (2, 0, 1, 0)

    def test_one_that_was_collected_comes_back_with_new_evidence(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        store.commit("global", [MemoryDeleted(id=made.id, reason=ARCHIVE_REASON)], actor="system")
        assert counts(run(store)) == (0, 0, 0, 0)
        learn(store, 4)
        assert counts(run(store)) == (1, 0, 0, 0)

    def test_one_that_faded_comes_back_with_new_evidence(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        run(store)
        store.archive(in_force(store)[0].id)
        store.insert_memory(episode(9, "smtp", tags=["mail"]))
        assert counts(run(store)) == (0, 0, 0, 0)
        learn(store, 4)
        assert counts(run(store)) == (1, 0, 0, 0)
        assert [made.confidence for made in in_force(store)] == [0.8]


def test_links_and_builds_are_not_looked_up_one_by_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(store, *range(3))
    run(store)
    learn(store, *range(3, 46))
    engine, looked_up = store._projector.engine, []
    get = engine.get
    monkeypatch.setattr(engine, "get", lambda table, key: looked_up.append(table) or get(table, key))
    assert counts(run(store)) == (0, 1, 0, 0)
    assert [len(made.supporting_memory_ids) for made in in_force(store)] == [46]
    assert not {"DERIVED_FROM", "SUPPORTS", "FROM_BUILD"} & set(looked_up)
    digest = store.digest()
    store.rebuild()
    assert store.digest() == digest


class TestWhatItInherits:
    def test_the_strictest_tier_the_lowest_trust_and_what_they_share(self, store: Store) -> None:
        learn(store, 1, privacy_tier="private", title="auth/session.ts", files_involved=["auth/session.ts"])
        learn(store, 2, trust_class="web", title="auth/session.ts", agents_involved=["MARS"])
        learn(store, 3, trust_class="user", title="auth/session.ts", agents_involved=["VENUS"])
        run(store)
        (made,) = in_force(store)
        assert (made.privacy_tier, made.trust_class, made.title) == ("private", "web", "auth/session.ts")
        assert made.agents_involved == ["MARS", "VENUS"]
        assert made.content.startswith("Work on `session.ts` went wrong in 3 builds")

    def test_a_task_keeps_what_it_learned(self, store: Store) -> None:
        learn(store, 1, 2, 3, task_id="t1")
        learn(store, 4, 5)
        run(store)
        assert [(made.task_id, len(made.supporting_memory_ids)) for made in in_force(store)] == [("t1", 3)]

    def test_of_a_large_community_some_are_linked(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compressing, "MOST_LINKED", 4)
        learn(store, *range(6))
        run(store)
        (made,) = in_force(store)
        assert (len(made.supporting_memory_ids), len(made.evidence_build_ids)) == (4, 6)
        learn(store, 6)
        assert counts(run(store)) == (0, 1, 0, 0)
        (after,) = in_force(store)
        assert (after.id, after.supporting_memory_ids) == (made.id, made.supporting_memory_ids)
        assert counts(run(store)) == (0, 0, 0, 0)


class TestWording:
    GOOD = "Tokens failed in 3 builds; every attempt at jwt ended in an error."

    def test_a_model_words_it_once(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        model = FakeLanguageModel(json.dumps({"text": self.GOOD}))
        assert run(store, model=model).notice is None
        (made,) = in_force(store)
        assert made.content == self.GOOD
        learn(store, 4, project_id="other")
        store.update_memory(made.supporting_memory_ids[0], title=None, location="x")
        run(store, model=model)
        assert [one.content for one in in_force(store)] == [self.GOOD]
        assert len(model.calls) == 1

    @pytest.mark.parametrize(
        "text", ["", "x" * 801, "Use `redis_cache.py` instead of tokens, as in 3 builds.", "See PR-991 for all of it."]
    )
    def test_what_it_makes_up_is_not_kept(self, store: Store, text: str) -> None:
        learn(store, 1, 2, 3)
        result = run(store, model=FakeLanguageModel(json.dumps({"text": text})))
        (made,) = in_force(store)
        assert made.content == made.pattern
        assert "own words served" in result.notice


def test_a_build_count_sets_it_off(open_store: Callable[..., Store]) -> None:
    from memgraph.testing import FakeExtractor

    store = open_store(compression_cycle_interval=3)
    found = [
        [
            {
                "type": "episodic",
                "content": f"Attempt {n}: {'token mail cache proxy'.split()[n]} broke",
                "outcome": "failure",
                "tags": ["auth", "jwt"],
            }
        ]
        for n in range(4)
    ]
    pipeline = memgraph.ConsolidationPipeline(
        store, extractor=FakeExtractor([memgraph.ExtractionResult.from_memories(one) for one in found])
    )
    made = [
        pipeline.consolidate(
            {
                "build_id": f"b{n}",
                "project_id": "shop",
                "build_outcome": "failure",
                "started_at": "2026-01-01",
                "completed_at": "2026-01-02",
            }
        ).memories_compressed
        for n in range(4)
    ]
    assert made == [0, 0, 1, 0]


def test_what_was_written_meanwhile_is_in_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(store, 1, 2, 3)
    planned = compressing.plans

    def beside(experiences: Any) -> Any:
        monkeypatch.setattr(compressing, "plans", planned)
        learn(store, 4)
        return planned(experiences)

    monkeypatch.setattr(compressing, "plans", beside)
    run(store)
    assert [len(made.supporting_memory_ids) for made in in_force(store)] == [4]


def test_killed_between_commits_the_next_run_ends_the_same(
    open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressing, "_BATCH_ROWS", 1)
    digests = []
    for commits in (None, 1, 3):
        store = open_store(f"store {commits}")
        ids = iter(str(UUID(int=n + (4 << 76) + (8 << 60))) for n in range(9))
        store.insert_memories(
            [
                episode(n, topic, id=next(ids), tags=[topic, f"{topic}2"])
                for topic in ("jwt", "oauth", "smtp")
                for n in range(3)
            ]
        )
        if commits:
            with monkeypatch.context() as patched:
                patched.setattr(store, "commit", dying(store.commit, after=commits))
                with pytest.raises(KeyboardInterrupt):
                    run(store)
        run(store)
        assert len(in_force(store)) == 3
        digests.append(store.digest())
    store.rebuild()
    assert {*digests, store.digest()} == {digests[0]}


def dying(commit: Callable[..., Any], *, after: int) -> Callable[..., Any]:
    left = iter(range(after))

    def dies(*args: Any, **given: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return commit(*args, **given)

    return dies
