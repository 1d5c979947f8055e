"""`save_episode` and feedback on it: what is kept, what it reads like, what feedback changes."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.embedding import NoEmbedder

TOLD = {
    "situation": "Find a table for two in Lisbon",
    "reasoning": "The user named a budget",
    "action": "Proposed the cheapest place",
}
DAY = "2026-02-01"
GONE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def memory(store: Any) -> memgraph.MemGraph:
    return memgraph.MemGraph(store)


def saved(memory: memgraph.MemGraph, outcome: str = "success", **details: Any) -> memgraph.EpisodicMemory:
    return found(memory, memory.save_episode(**{**TOLD, "outcome": outcome, **details}).episode_id)


def found(memory: memgraph.MemGraph, memory_id: str | None) -> memgraph.EpisodicMemory:
    kept = memory.store.get_memory(memory_id or "")
    assert isinstance(kept, memgraph.EpisodicMemory)
    return kept


def events(memory: memgraph.MemGraph) -> int:
    memory.store.flush()
    return int(memory.store._journal.tail.seq)


@pytest.mark.parametrize(
    ("word", "outcome"),
    [("success", "positive"), ("failure", "negative"), ("partial", "neutral"), ("pending", "unknown")],
)
def test_an_episode_keeps_its_parts_and_composes_a_text(memory: memgraph.MemGraph, word: str, outcome: str) -> None:
    where = {"project": "trips", "session_id": "s", "build_id": "b", "mission_id": "m", "context": "dining"}
    kept = saved(memory, word, agent_name="dining", user_feedback="hm", tags=["lisbon"], **where)

    assert kept.content == (
        "Find a table for two in Lisbon. Reasoning: The user named a budget. Action: Proposed the cheapest place. "
        f"Outcome: {word}. User feedback: hm."
    )
    assert {name: getattr(kept, name) for name in TOLD} == TOLD
    assert (kept.outcome, kept.outcome_word, kept.user_feedback) == (outcome, word, "hm")
    assert (kept.agent_type, kept.agents_involved, kept.mission_id) == ("dining", ["dining"], "m")
    assert (kept.project_id, kept.session_id, kept.build_id, kept.domain) == ("trips", "s", "b", "dining")
    assert (kept.tags, kept.source) == (["lisbon"], "episode")


def test_episodes_follow_one_another_and_are_never_merged(memory: memgraph.MemGraph) -> None:
    first, second = saved(memory, project="trips"), saved(memory, project="trips")

    assert first.id != second.id
    assert second.previous_id == first.id


def test_a_tasks_episode_belongs_to_the_task(memory: memgraph.MemGraph) -> None:
    kept = saved(memory, task_id="T")

    assert memory.recall(TOLD["situation"]).memories == []
    assert [one.id for one in memory.recall(TOLD["situation"], task_id="T").memories] == [kept.id]
    assert memory.update_episode_with_feedback(kept.id, "like").outcome == "positive"


def test_every_part_appears_however_long(memory: memgraph.MemGraph) -> None:
    for long in (["situation"], ["reasoning", "action"], ["situation", "reasoning", "action"]):
        for feedback in (None, "f" * 5000):
            parts = TOLD | {name: f"{name} {'é🙂 ' * 2500}".strip()[:8000] for name in long}
            kept = saved(memory, "failure", **parts, user_feedback=feedback)

            assert 700 < len(kept.content) <= 800
            assert {name: getattr(kept, name) for name in parts} == parts
            assert all((text if name not in long else f"{name} é🙂") in kept.content for name, text in parts.items())
            assert "Outcome: failure." in kept.content


class TestFeedback:
    @pytest.mark.parametrize(
        ("word", "outcome", "told"),
        [("love", "positive", "success"), ("like", "positive", "success"), ("meh", "negative", "failure")],
    )
    def test_it_decides_the_outcome_and_keeps_the_word(
        self, memory: memgraph.MemGraph, word: str, outcome: str, told: str
    ) -> None:
        for before in ("success", "failure", "pending"):
            kept = saved(memory, before)
            after = memory.update_episode_with_feedback(kept.id, word)

            assert (after.outcome, after.outcome_word, after.user_feedback) == (outcome, word, f"{DAY} {word}")
            assert after.content.endswith(f"Outcome: {told}. User feedback: {word}.")
            assert after.embedding == pytest.approx(memory.store.embedder.embed([after.content])[0])
            assert after == found(memory, kept.id)

    def test_the_longest_comment_fits_behind_its_word(self, memory: memgraph.MemGraph) -> None:
        memory_id = saved(memory).id
        after = memory.update_episode_with_feedback(memory_id, "love", comment="x" * 7_983)
        assert len(after.user_feedback or "") == 8_000
        with pytest.raises(memgraph.InvalidInputError) as refused:
            memory.update_episode_with_feedback(memory_id, "meh", comment="x" * 7_984)
        assert refused.value.field == "comment"

    def test_said_again_it_writes_nothing(self, memory: memgraph.MemGraph) -> None:
        memory_id = saved(memory).id
        first = memory.update_episode_with_feedback(memory_id, "meh", comment="too loud")
        before = events(memory)

        for comment in (None, "too loud"):
            assert memory.update_episode_with_feedback(memory_id, "meh", comment=comment) == first
        assert events(memory) == before
        other = memory.update_episode_with_feedback(memory_id, "meh", comment="and too dear")
        assert other.user_feedback == f"{DAY} meh: too loud\n{DAY} meh: and too dear"
        assert other.content.endswith("User feedback: meh: too loud. meh: and too dear.")

    def test_what_was_said_before_is_kept_with_its_day(self, memory: memgraph.MemGraph, clock: Any) -> None:
        memory_id = saved(memory, user_feedback="they smiled").id
        for word, comment in (("love", None), ("meh", "too loud,\nafter all"), ("like", "it was fixed")):
            clock.advance(days=3 if word == "like" else 0)
            after = memory.update_episode_with_feedback(memory_id, word, comment=comment)

        assert after.user_feedback == (
            f"{DAY} they smiled\n{DAY} love\n{DAY} meh: too loud, after all\n2026-02-04 like: it was fixed"
        )
        assert (after.outcome, after.outcome_word) == ("positive", "like")
        assert after.content.endswith("User feedback: they smiled. love. meh: too loud, after all. like: it was fixed.")
        assert memory.update_episode_with_feedback(memory_id, "like", comment="it was fixed") == after

    def test_where_not_all_fits_the_newest_is_told(self, memory: memgraph.MemGraph) -> None:
        memory_id = saved(memory, user_feedback="x" * 8_000).id
        for comment in ("y" * 100, "z" * 50):
            after = memory.update_episode_with_feedback(memory_id, "meh", comment=comment)

        assert len(after.user_feedback or "") == 8_000
        assert (after.user_feedback or "").startswith("…xxx")
        assert (after.user_feedback or "").endswith(f"xxx\n{DAY} meh: {'y' * 100}\n{DAY} meh: {'z' * 50}")
        assert after.content.endswith(f"User feedback: meh: {'z' * 50}.")

    def test_love_and_like_bring_it_back_once_and_meh_leaves_it(self, memory: memgraph.MemGraph, clock: Any) -> None:
        memory_id = saved(memory).id
        clock.advance(days=30)
        faded = found(memory, memory_id).relevance_score

        def relevance_after(word: str) -> float:
            return memory.update_episode_with_feedback(memory_id, word).relevance_score

        assert relevance_after("meh") == pytest.approx(faded)
        assert relevance_after("love") == pytest.approx(faded + 0.2)
        assert relevance_after("like") == pytest.approx(faded + 0.2)
        assert relevance_after("love") == pytest.approx(faded + 0.2)
        assert relevance_after("meh") == pytest.approx(faded + 0.2)
        assert relevance_after("like") == pytest.approx(faded + 0.4)
        assert found(memory, memory_id).access_count == 0

    def test_relevance_stays_within_its_ceiling(self, memory: memgraph.MemGraph) -> None:
        kept = saved(memory)

        assert memory.update_episode_with_feedback(kept.id, "love").relevance_score == 1.0

    def test_a_text_that_somebody_worded_otherwise_stays(self, memory: memgraph.MemGraph) -> None:
        worded = memory.store.update_memory(saved(memory).id, content="The cheapest place was a mistake")
        plain = memory.store.insert_memory({"type": "episodic", "content": "The tests passed", "outcome": "success"})

        for one in (worded, plain):
            after = memory.update_episode_with_feedback(one.id, "meh", comment="no")
            assert (after.content, after.outcome) == (one.content, "negative")

    def test_it_works_without_vectors(self, open_store: Any) -> None:
        memory = memgraph.MemGraph(open_store(embedder=NoEmbedder()))
        after = memory.update_episode_with_feedback(saved(memory).id, "meh")

        assert "Outcome: failure." in after.content

    def test_what_cannot_be_is_refused(self, memory: memgraph.MemGraph) -> None:
        episode_id = saved(memory).id
        fact = memory.save_observation("Lisbon is hilly").memory_id or ""
        before = events(memory)

        with pytest.raises(memgraph.NotFoundError, match="no episode with id"):
            memory.update_episode_with_feedback(GONE, "like")
        with pytest.raises(memgraph.InvalidInputError, match="not an episode"):
            memory.update_episode_with_feedback(fact, "like")
        for wrong in ("LOVE", "", "great", None):
            with pytest.raises(memgraph.InvalidInputError, match="feedback"):
                memory.update_episode_with_feedback(episode_id, wrong)  # type: ignore[arg-type]
        with pytest.raises(memgraph.InvalidInputError, match="comment"):
            memory.update_episode_with_feedback(episode_id, "like", comment="\x00")
        assert events(memory) == before


REFUSED = [
    ("situation", ["", " "]),
    ("reasoning", ["a\x00", None]),
    ("action", ["x" * 8001]),
    ("outcome", ["love", "positive", None]),
    ("user_feedback", [5]),
    ("privacy_tier", ["none"]),
    ("occurred_at", ["soon"]),
    ("tags", [["a", ""]]),
    ("unheard", [1]),
]


def test_a_rejection_names_its_field_and_writes_nothing(memory: memgraph.MemGraph) -> None:
    before = events(memory)
    for field, values in REFUSED:
        for value in values:
            with pytest.raises(memgraph.InvalidInputError) as refused:
                memory.save_episode(**{**TOLD, "outcome": "success", field: value})
            named = "".join(f"_{char.lower()}" if char.isupper() else char for char in refused.value.field)
            assert named.startswith(field)  # camelCase is accepted, and named so
    assert events(memory) == before


def test_secrets_are_redacted_before_truncation(memory: memgraph.MemGraph) -> None:
    key = "ghp_" + "a1B2" * 9
    said = memory.save_episode(f"{'x ' * 380}{key}", "b", "c", "failure", user_feedback=f"stop using {key}")
    after = memory.update_episode_with_feedback(said.episode_id, "meh", comment=f"{'y' * 130} {key}")

    assert said.secrets_redacted == 2
    assert "ghp_" not in f"{after.content} {after.situation} {after.user_feedback}"


class TestInvalidate:
    def test_an_invalidated_episode_is_kept_but_not_recalled(self, memory: memgraph.MemGraph) -> None:
        memory_id = memory.save_observation("The office is in Lisbon").memory_id or ""
        gone = memory.invalidate_memory(memory_id, reason="they moved", invalid_at="2026-01-15")

        assert (gone.invalid_at, gone.invalidation_reason) == ("2026-01-15T00:00:00.000Z", "they moved")
        assert memory.search_memories("office in Lisbon") == []
        assert memory.store.get_memory(memory_id) == gone

    @pytest.mark.parametrize(
        ("wrong", "error"),
        [
            ({"reason": " "}, "reason"),
            ({"reason": "a", "invalid_at": "soon"}, "at"),
            ({"id": GONE, "reason": "a"}, GONE),
        ],
        ids=str,
    )
    def test_what_cannot_be_is_refused(self, memory: memgraph.MemGraph, wrong: dict[str, str], error: str) -> None:
        memory_id = memory.save_observation("The office is in Lisbon").memory_id or ""
        with pytest.raises(memgraph.MemGraphError, match=error):
            memory.invalidate_memory(wrong.pop("id", memory_id), **wrong)  # type: ignore[arg-type]
        assert len(memory.search_memories("office in Lisbon")) == 1
