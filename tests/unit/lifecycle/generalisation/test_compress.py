"""What becomes of generalisations as experience grows, shifts, fades and is taken back, on a real embedded graph."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

import memgraph
from memgraph.lifecycle import episodes as incremental
from memgraph.lifecycle import reconcile as reconciling
from memgraph.lifecycle import run as runner
from memgraph.lifecycle.errors import analyse_errors
from memgraph.lifecycle.lessons import builds_since, compress
from memgraph.lifecycle.procedures import learn_procedures
from memgraph.lifecycle.run import last_run
from memgraph.model.events.memories import MemoryDeleted
from memgraph.model.events.records import COMPRESSION, FADED, BuildConsolidated, DecayApplied
from memgraph.model.events.registry import attempt_in
from memgraph.model.results.learning import CompressionResult
from memgraph.retrieval import MemoryRetrieval
from memgraph.store import query as reading

Store = Any


def episode(n: int, topic: str = "jwt", **fields: Any) -> dict[str, Any]:
    base = {"type": "episodic", "project_id": "shop", "outcome": "negative", "build_id": f"b{n}"}
    return {**base, "content": f"Attempt {n} at {topic} failed with E{n}.", "tags": ["auth", topic], **fields}


def run(store: Store, **given: Any) -> CompressionResult:
    return compress(store, embedder=store.embedder, **given)


def in_force(store: Store) -> list[Any]:
    superseded = {one.id for one in store.list_memories(state="superseded")}
    return [one for one in store.query_by_type("semantic") if one.id not in superseded]


def recalled(store: Store, task: str) -> list[str]:
    asked = {"task_description": task, "agent_name": "a", "project_id": "shop"}
    return [memory.content for memory in MemoryRetrieval(store).retrieve(asked).memories]


def shifted(moment: str, days: int) -> str:
    return (datetime.fromisoformat(moment) + timedelta(days=days)).isoformat()


def counting(called: Callable[..., Any], calls: list[str], name: str) -> Callable[..., Any]:
    def counted(*args: Any, **given: Any) -> Any:
        calls.append(name)
        return called(*args, **given)

    return counted


def counts(result: CompressionResult) -> tuple[int, int, int, int]:
    return result.compressed, result.updated, result.superseded, result.retired


def learn(store: Store, *numbers: int, topic: str = "jwt", **fields: Any) -> list[str]:
    return [one.id for one in store.insert_memories([episode(n, topic, **fields) for n in numbers])]


class TestAgain:
    def test_an_unchanged_store_is_not_written(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        run(store)
        before, events = store.digest(), store._journal.tail.seq
        assert counts(run(store)) == (0, 0, 0, 0)
        assert (store.digest(), store._journal.tail.seq) == (before, events)

    def test_uses_and_other_projects_change_nothing(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        store.record_access(ids[0])
        learn(store, 4, 5, 6, project_id="other")
        result = run(store)
        assert (counts(result), result.episodes) == ((1, 0, 0, 0), 3)

    def test_more_evidence_updates_it(self, store: Store) -> None:
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

    def test_a_single_memory_with_three_builds_is_a_pattern(self, store: Store) -> None:
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


class TestLessons:
    """Shared tags alone are no lesson."""

    def test_what_states_something_else_is_left_out(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        learn(store, 4, content="The login page was blank.", source="build log")
        run(store)
        assert [made.supporting_memory_ids for made in in_force(store)] == [sorted(ids)]

    def test_unlike_changes_of_one_file_are_none(self, store: Store) -> None:
        told = ["Quote the shell's variables", "Close the pool before the fork", "Wait for the slow console"]
        for n, content in enumerate(told):
            learn(store, n, content=content, source="git", git_commit=f"{n}" * 40, title="run.py", outcome="positive")
        assert counts(run(store)) == (0, 0, 0, 0)

    def test_the_opposite_is_counted(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        learn(store, 4, 5, outcome="positive")
        run(store)
        assert [made.content.split(". ")[-1] for made in in_force(store)] == ["It went well in 2 other builds."]

    def test_one_that_states_no_lesson_any_more_is_retired(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        for one, content in zip(ids, ("The page was blank", "A disk was full", "No host answered"), strict=True):
            store.update_memory(one, content=content, tags=["auth", f"area {one}"])
        assert counts(run(store)) == (0, 0, 0, 1)
        assert in_force(store) == []


class TestJoinedAndSplit:
    @pytest.fixture
    def two(self, store: Store) -> tuple[list[str], list[str], list[Any]]:
        """Return the episodes of two patterns of one project, and the generalisations."""
        one, other = learn(store, 1, 2, 3), learn(store, 4, 5, 6, topic="oauth", tags=["login", "oauth"])
        assert run(store).compressed == 2
        return one, other, in_force(store)

    def test_one_of_two_that_are_joined_goes_on_and_supersedes_the_other(self, store: Store, two: Any) -> None:
        one, other, old = two
        for memory_id in [*one, *other]:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        assert counts(run(store)) == (0, 1, 1, 0)
        (made,) = in_force(store)
        assert made.supporting_memory_ids == sorted([*one, *other])
        replaced = {link.target_id for link in store.links(made.id) if link.relation == "SUPERSEDES"}
        assert replaced | {made.id} == {known.id for known in old}
        assert counts(run(store)) == (0, 0, 0, 0)

    def test_one_that_is_split_goes_on_as_a_part_of_it_and_may_be_joined_again(self, store: Store, two: Any) -> None:
        one, other, _ = two
        for memory_id in [*one, *other]:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        run(store)
        for memory_id in other:
            store.update_memory(memory_id, tags=["mail", "smtp"])
        assert counts(run(store)) == (1, 1, 0, 0)
        assert sorted(tuple(made.supporting_memory_ids) for made in in_force(store)) == sorted(
            [tuple(sorted(one)), tuple(sorted(other))]
        )
        for memory_id in other:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        assert counts(run(store)) == (0, 1, 1, 0)
        assert [made.supporting_memory_ids for made in in_force(store)] == [sorted([*one, *other])]

    def test_an_episode_that_changes_communities_makes_no_new_one(self, store: Store, two: Any) -> None:
        one, _, old = two
        learn(store, 7)
        run(store)
        store.update_memory(one[0], tags=["login", "oauth"])
        assert counts(run(store)) == (0, 2, 0, 0)
        assert {made.id for made in in_force(store)} == {known.id for known in old}
        assert sorted(len(made.supporting_memory_ids) for made in in_force(store)) == [3, 4]


class TestGone:
    def test_faded_episodes_are_still_evidence(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3, 4)
        run(store)
        (made,) = in_force(store)
        for memory_id in ids[:3]:
            store.archive(memory_id, reason=FADED)
        assert counts(run(store)) == (0, 0, 0, 0)
        for n in (5, 6):
            learn(store, n)
            run(store)
            (after,) = in_force(store)
            assert (after.id, after.confidence, len(after.evidence_build_ids)) == (made.id, 0.9, n)
        for one in store.query_by_type("episodic"):
            store.archive(one.id, reason=FADED)
        run(store)
        assert [(made.id, made.content) for made in in_force(store)] == [(after.id, after.content)]

    def test_deleted_episodes_are_no_evidence(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3, 4)
        run(store)
        store.delete_memory(ids[0])
        assert counts(run(store)) == (0, 1, 0, 0)
        (made,) = in_force(store)
        assert (made.confidence, made.evidence_build_ids) == (0.7, ["b2", "b3", "b4"])
        assert not {"E1", "1"} & set(re.findall(r"\w+", made.content))
        assert counts(run(store)) == (0, 0, 0, 0)
        for memory_id in ids[1:]:
            store.delete_memory(memory_id)
        assert counts(run(store)) == (0, 0, 0, 1)
        assert in_force(store) == []
        assert not {"jwt", "auth"} & set(re.findall(r"\w+", store.get_memory(made.id).model_dump_json()))
        assert recalled(store, "attempt at jwt failed") == []
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest

    def test_the_journal_is_read_once_for_all_deletions(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        ids = [
            one for topic in ("jwt", "oauth", "smtp") for one in learn(store, 1, 2, 3, topic=topic, project_id=topic)
        ]
        run(store)
        for memory_id in ids:
            store.delete_memory(memory_id)
        reads: list[str] = []
        monkeypatch.setattr(reading, "deleted_of", counting(reading.deleted_of, reads, "deleted_of"))
        assert run(store).retired == 3
        assert reads == ["deleted_of"]

    @pytest.mark.parametrize("way", ["suppress", "invalidate"])
    def test_forgotten_or_invalid_episodes_are_no_evidence(self, store: Store, way: str) -> None:
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

    def test_restored_evidence_makes_it_again(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        store.suppress(ids[0])
        run(store)
        store.unsuppress(ids[0])
        assert counts(run(store)) == (1, 0, 0, 0)
        assert len(in_force(store)) == 1

    @pytest.mark.parametrize("way", ["suppress", "invalidate", "delete_memory"])
    def test_a_forgotten_or_deleted_generalisation_is_not_made_again(self, store: Store, way: str) -> None:
        learn(store, 1, 2, 3)
        run(store)
        getattr(store, way)(in_force(store)[0].id)
        assert counts(run(store)) == (0, 0, 0, 0)
        learn(store, 4, 5)
        assert counts(run(store)) == (0, 0, 0, 0)
        assert in_force(store) == []

    def test_a_deleted_one_returns_only_by_undelete(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        store.delete_memory(made.id)
        ids += learn(store, 4, 5)
        assert counts(run(store)) == (0, 0, 0, 0)
        store.undelete(made.id)
        assert counts(run(store)) == (0, 1, 0, 0)
        assert [(one.id, one.supporting_memory_ids) for one in in_force(store)] == [(made.id, sorted(ids))]

    def test_a_superseded_then_deleted_one_blocks_nothing(self, store: Store) -> None:
        one, other = learn(store, 1, 2, 3), learn(store, 4, 5, 6, topic="oauth", tags=["login", "oauth"])
        run(store)
        old = in_force(store)
        for memory_id in [*one, *other]:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        run(store)
        (joined,) = in_force(store)
        store.delete_memory(next(known.id for known in old if known.id != joined.id))
        for memory_id in other:
            store.update_memory(memory_id, tags=["mail", "smtp"])
        assert counts(run(store)) == (1, 1, 0, 0)

    def test_a_collected_one_returns_with_new_evidence(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        store.commit("global", [MemoryDeleted(id=made.id, reason=FADED)], actor="system")
        assert counts(run(store)) == (0, 0, 0, 0)
        learn(store, 4)
        assert counts(run(store)) == (1, 0, 0, 0)

    def test_a_faded_one_returns_with_new_evidence(self, store: Store) -> None:
        learn(store, 1, 2, 3)
        run(store)
        (before,) = in_force(store)
        store.archive(before.id, reason=FADED)
        store.insert_memory(episode(9, "smtp", tags=["mail"]))
        assert counts(run(store)) == (0, 0, 0, 0)
        learn(store, 4)
        assert counts(run(store)) == (0, 1, 0, 0)
        assert [(made.id, made.confidence) for made in in_force(store)] == [(before.id, 0.8)]


def test_a_generalisation_grows_by_all_that_is_new(store: Store) -> None:
    learn(store, *range(3))
    run(store)
    learn(store, *range(3, 46))
    assert counts(run(store)) == (0, 1, 0, 0)
    assert [len(made.supporting_memory_ids) for made in in_force(store)] == [46]
    digest = store.digest()
    store.rebuild()
    assert store.digest() == digest


class TestUntilWhen:
    def test_it_is_dated_by_all_its_evidence(self, store: Store) -> None:
        """A history that is read at once teaches what it teaches to its end, since its latest build."""
        days = [f"2024-01-0{n}T00:00:00.000Z" for n in range(1, 6)]
        for n, day in enumerate(days):
            learn(store, n, occurred_at=day)
        run(store)
        (made,) = in_force(store)
        assert (made.occurred_at, made.confidence, len(made.supporting_memory_ids)) == (days[-1], 0.9, 5)
        assert made.content.startswith("The same went wrong with `auth` and `jwt` in 5 builds, in January 2024")
        for day, many in ((days[3], 0), (days[4], 1)):
            with store.at(day) as then:
                assert len(then.query_by_type("semantic")) == many

    @pytest.mark.parametrize("is_withdrawn", [True, False], ids=["withdrawn", "divided"])
    def test_it_ends_at_the_time_of_what_ended_it(self, store: Store, is_withdrawn: bool) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        later = shifted(store.now(), -1)
        if is_withdrawn:
            store.suppress(ids[0])
        else:
            for number, one in enumerate(ids):
                store.update_memory(one, tags=[f"topic {number}", f"area {number}"], occurred_at="2024-01-01")
            learn(store, 9, "other", tags=["mail"], occurred_at=later)
        run(store)
        ended = store.get_memory(made.id).invalid_at
        assert ended == store.now() if is_withdrawn else ended[:19] == later[:19]

    def test_evidence_counts_until_it_becomes_invalid(self, store: Store, clock: Any) -> None:
        ids = learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        soon = shifted(store.now(), 2)
        store.update_memory(ids[0], invalid_at=soon)
        store.update_memory(made.id, invalid_at=shifted(store.now(), 4))
        for learned in (run, analyse_errors, learn_procedures):
            learned(store)
            before = store.digest(), store._journal.tail.seq
            learned(store)
            assert (store.digest(), store._journal.tail.seq) == before
        assert [one.id for one in in_force(store)] == [made.id]
        clock.advance(days=3)
        assert counts(run(store)) == (0, 0, 0, 1)


class TestHowOpenItIs:
    """A run makes what it made stricter, and never laxer."""

    @pytest.mark.parametrize("name", ["privacy_tier", "trust_class"])
    def test_a_stricter_tier_set_by_a_user_is_kept(self, store: Store, name: str) -> None:
        strict, lax = {"privacy_tier": ("private", "public"), "trust_class": ("web", "agent")}[name]
        learn(store, 1, 2, 3)
        run(store)
        (made,) = in_force(store)
        store.update_memory(made.id, **{name: strict})
        run(store)
        learn(store, 4)
        run(store)
        assert getattr(store.get_memory(made.id), name) == strict
        store.update_memory(made.id, **{name: lax})
        learn(store, 5)
        run(store)
        assert getattr(store.get_memory(made.id), name) == lax

    @pytest.mark.parametrize("way", ["suppress", "delete_memory"])
    @pytest.mark.parametrize("is_pinned", [True, False], ids=["pinned", "not"])
    def test_words_of_private_episodes_stay_private(self, store: Store, way: str, is_pinned: bool) -> None:
        learn(store, 1, 2, 3)
        (private,) = learn(store, 4, privacy_tier="private", trust_class="web")
        run(store)
        (made,) = in_force(store)
        store.update_memory(made.id, is_pinned=is_pinned)
        getattr(store, way)(private)
        run(store)
        (after,) = in_force(store)
        assert (after.privacy_tier, after.trust_class) == ("private", "web")
        assert (after.content == made.content) == is_pinned

    def test_its_replacement_is_as_strict(self, store: Store) -> None:
        ids = [*learn(store, 1, 2, 3), *learn(store, 4, 5, 6, topic="oauth", tags=["login", "oauth"])]
        run(store)
        store.update_memory(in_force(store)[0].id, privacy_tier="private")
        for memory_id in ids:
            store.update_memory(memory_id, tags=["auth", "jwt", "login", "oauth"])
        assert counts(run(store)) == (0, 1, 1, 0)
        assert [made.privacy_tier for made in in_force(store)] == ["private"]


class TestWhatItInherits:
    def test_the_strictest_tier_the_lowest_trust_and_what_they_share(self, store: Store) -> None:
        learn(store, 1, privacy_tier="private", title="auth/session.ts", files_involved=["auth/session.ts"])
        learn(store, 2, trust_class="web", title="auth/session.ts", agents_involved=["MARS"])
        learn(store, 3, trust_class="user", title="auth/session.ts", agents_involved=["VENUS"])
        run(store)
        (made,) = in_force(store)
        assert (made.privacy_tier, made.trust_class, made.title) == ("private", "web", "auth/session.ts")
        assert made.agents_involved == ["MARS", "VENUS"]
        assert made.content.startswith("The same went wrong with `session.ts` in 3 builds")

    def test_a_task_keeps_what_it_learned(self, store: Store) -> None:
        learn(store, 1, 2, 3, task_id="t1")
        learn(store, 4, 5)
        run(store)
        assert [(made.task_id, len(made.supporting_memory_ids)) for made in in_force(store)] == [("t1", 3)]

    def test_only_some_of_a_large_community_are_linked(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reconciling, "MOST_LINKED", 4)
        learn(store, *range(6))
        run(store)
        (made,) = in_force(store)
        assert (len(made.supporting_memory_ids), len(made.evidence_build_ids)) == (4, 6)
        learn(store, 6)
        assert counts(run(store)) == (0, 1, 0, 0)
        (after,) = in_force(store)
        assert (after.id, after.supporting_memory_ids) == (made.id, made.supporting_memory_ids)
        assert counts(run(store)) == (0, 0, 0, 0)


def test_the_build_count_triggers_compression(open_store: Callable[..., Store]) -> None:
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


def test_a_run_remembers_how_far_it_has_looked_while_others_write(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(store, 1, 2)
    carried_out = incremental.carry_out

    def beside(*args: Any, **given: Any) -> Any:
        monkeypatch.setattr(incremental, "carry_out", carried_out)
        store.insert_memory(episode(9, "smtp", project_id="elsewhere"))
        return carried_out(*args, **given)

    monkeypatch.setattr(incremental, "carry_out", beside)
    assert [run(store).episodes for _ in range(3)] == [2, 1, 0], "the second looks only at what others wrote"


def test_builds_that_are_consolidated_while_a_run_reads_wait_for_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def consolidate(*names: str) -> None:
        said = {
            "project_id": "shop",
            "log_sha256": "ef" * 32,
            "outcome": "partial",
            "task_count": 1,
            "extractor": "rules",
        }
        times = dict.fromkeys(("started_at", "completed_at", "consolidated_at"), store.now())
        given = {**said, **times, "complete": True, "extracted": 1, "merged": 0}
        store.commit("global", [BuildConsolidated.parse({**given, "build_id": name}) for name in names])

    learn(store, 1, 2)
    consolidate("b1", "b2")
    carried_out = incremental.carry_out

    def beside(*args: Any, **given: Any) -> Any:
        monkeypatch.setattr(incremental, "carry_out", carried_out)
        store.insert_memory(episode(9, "smtp", project_id="elsewhere"))
        consolidate("b9", "b10", "b10")
        return carried_out(*args, **given)

    monkeypatch.setattr(incremental, "carry_out", beside)
    assert (builds_since(store.reader), run(store).episodes, builds_since(store.reader)) == (2, 2, 2)
    digest = store.digest()
    store.rebuild()
    assert (store.digest(), builds_since(store.reader)) == (digest, 2)
    assert (run(store).episodes, builds_since(store.reader)) == (1, 0)


def test_a_run_that_finds_nothing_to_do_is_recorded_only_if_it_has_read_much(store: Store) -> None:
    learn(store, 1, 2, 3)
    run(store)

    def looked() -> int:
        return int(last_run(store.reader, COMPRESSION)["seq"])

    since = looked()
    for many, is_recorded in ((10, False), (1_000, True)):
        store.commit("system", [DecayApplied(applied_at=store.now(), updated=0, below_threshold=0)] * many)
        run(store)
        assert (looked() > since) == is_recorded


def test_concurrent_writes_are_included(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    learn(store, 1, 2, 3)
    embed = store.embedder.embed

    def beside(texts: Any) -> Any:
        monkeypatch.undo()
        learn(store, 4)
        return embed(texts)

    monkeypatch.setattr(store.embedder, "embed", beside)
    run(store)
    assert [len(made.supporting_memory_ids) for made in in_force(store)] == [4]


def test_after_a_kill_the_next_run_has_the_same_result(
    open_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_MOST_IN_A_COMMIT", 1)
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


class TestTrialsOfATask:
    """The trials of a named task belong together, and what is told of them includes that it was solved."""

    def trial(
        self, store: Store, task: str, number: int, content: str, outcome: str = "negative", **fields: Any
    ) -> str:
        build = f"{task}-trial-{number}"
        memory = {
            "type": "episodic",
            "project_id": "kitchen",
            "source": "trial",
            "content": content,
            "outcome": outcome,
            "tags": ["lesson" if outcome == "negative" else "recovery"],
            "build_id": build,
            "evidence_build_ids": [build],
            "source_event_ids": [f"{build}/{task}"],
            "occurred_at": f"2000-01-0{number + 1}T00:00:00.000Z",
            "attempt": number,
            **attempt_in(content),
            **fields,
        }
        return str(store.insert_memories([memory])[0].id)

    def failed(self, store: Store, number: int, task: str = "env_7", **fields: Any) -> str:
        lesson = f"I should have looked in cabinet {number} for the plate, and then cleaned it."
        return self.trial(store, task, number, f"Failed trial: Kitchen {task}. Lesson: {lesson}", **fields)

    def solved(self, store: Store, number: int, task: str = "env_7", **fields: Any) -> str:
        acted = "I should have opened the drawer before taking the plate."
        content = f"Solved after a failed trial: Kitchen {task}. What it acted on: {acted}"
        return self.trial(store, task, number, content, "positive", **fields)

    def test_a_later_success_is_quoted_until_it_is_forgotten(self, store: Store) -> None:
        failures = [self.failed(store, number) for number in range(3)]
        run(store)
        (before,) = in_force(store)
        assert before.content.startswith("Never solved in 3 trials of Kitchen env_7")
        success = self.solved(store, 3)
        assert counts(run(store)) == (0, 1, 0, 0)
        (after,) = in_force(store)
        assert after.id == before.id
        assert after.content == (
            "Failed in 3 trials of Kitchen env_7, solved in trial 4. The trial that solved it acted on this: “I should have "
            "opened the drawer before taking the plate.”"
        )
        assert (after.outcome, len(after.evidence_build_ids)) == ("negative", 3)
        # it tells of the success, so it is withheld as soon as that is forgotten
        assert set(after.supporting_memory_ids) == {*failures, success}
        assert counts(run(store)) == (0, 0, 0, 0)
        store.update_memory(success, is_suppressed=True)
        assert counts(run(store)) == (0, 1, 0, 0)
        (told,) = in_force(store)
        assert told.content.startswith("Failed in 3 trials of Kitchen env_7. The lesson")
        assert set(told.supporting_memory_ids) == set(failures)

    def test_a_less_public_success_is_not_quoted(self, store: Store) -> None:
        for number in range(3):
            self.failed(store, number)
        self.solved(store, 3, privacy_tier="private")
        run(store)
        (made,) = [one for one in in_force(store) if one.outcome == "negative"]
        assert (made.privacy_tier, made.content[:38]) == ("public", "Failed in 3 trials of Kitchen env_7. T")

    def test_tasks_are_not_mixed_whatever_words_they_share(self, store: Store) -> None:
        for task in ("env_1", "env_2"):
            for number in range(3):
                self.failed(store, number, task, tags=["lesson", "plate", "cabinet"])
        self.failed(store, 0, "env_3", tags=["lesson", "plate", "cabinet"])
        assert run(store).compressed == 2
        assert sorted(one.content.split(". ")[0] for one in in_force(store)) == [
            f"Never solved in 3 trials of Kitchen env_{task}" for task in (1, 2)
        ]

    def test_a_repeated_error_is_left_to_the_analysis_of_errors(self, store: Store) -> None:
        error = {"type": "KeyError", "message": "KeyError: 'aud'"}
        learn(store, 1, 2, errors_encountered=[error])
        (other,) = learn(store, 3, errors_encountered=[{"type": "E", "message": "No issuer"}])
        assert counts(run(store)) == (1, 0, 0, 0)  # together they state the same
        store.update_memory(other, errors_encountered=[error])
        run(store)
        assert in_force(store) == []
        assert analyse_errors(store).created == 1
        assert [one.source for one in in_force(store)] == ["error analysis"]

    def test_an_episode_that_becomes_a_success_leaves(self, store: Store) -> None:
        ids = learn(store, 1, 2, 3, 4)
        run(store)
        store.update_memory(ids[0], outcome="love")
        assert counts(run(store)) == (0, 1, 0, 0)
        assert [(len(one.evidence_build_ids), one.supporting_memory_ids) for one in in_force(store)] == [
            (3, sorted(ids[1:]))
        ]


@pytest.mark.parametrize("other", [{"project_id": "kiln"}, {"task_id": "map"}])
def test_a_scope_of_which_all_was_deleted_has_nothing_of_another_one(store: Store, other: dict[str, Any]) -> None:
    gone = store.insert_memories([episode(90 + number, "smtp", **{"project_id": None} | other) for number in range(2)])
    store.insert_memories([episode(number, project_id=None) for number in range(3)])
    run(store)
    [lesson] = in_force(store)
    for one in gone:
        store.delete_memory(one.id)
    store.rebuild()
    run(store)
    assert in_force(store) == [lesson]
