"""Rules from feedback: repeated comments become one rule that says how to prevent what was criticised."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.lifecycle.feedback import Comment, grouped, learn_from_feedback
from memgraph.model.results.learning import FEEDBACK_SOURCE
from memgraph.retrieval.context.context import task_context
from tests.growth import assert_grows_linearly

SAID = ("too loud", "Too loud!", "too loud")


@pytest.fixture
def memory(store: Any) -> memgraph.MemGraph:
    return memgraph.MemGraph(store)


def book(memory: memgraph.MemGraph, number: int, outcome: str = "success", **fields: Any) -> str:
    saved = memory.save_episode(
        f"Dinner {number} for the team", "It was near", f"Booked bar {number}", outcome, project="food", **fields
    )
    return saved.episode_id


def criticised(memory: memgraph.MemGraph, clock: Any, comments: tuple[str, ...] = SAID) -> list[str]:
    ids = []
    for number, comment in enumerate(comments):
        clock.advance(days=1)
        ids.append(book(memory, number))
        memory.update_episode_with_feedback(ids[-1], "meh", comment=comment)
    return ids


def rules(memory: memgraph.MemGraph) -> list[Any]:
    return [one for one in memory.store.list_memories() if one.source == FEEDBACK_SOURCE]


def sleep(memory: memgraph.MemGraph) -> None:
    memory.maintenance.sleep(phases=["feedback"])


def test_repeated_comments_become_one_rule(memory: memgraph.MemGraph, clock: Any) -> None:
    ids = criticised(memory, clock)
    sleep(memory)

    (rule,) = rules(memory)
    assert rule.content == ("The user said the same of 3 episodes between 2026-02-02 and 2026-02-04: “too loud”.")
    assert (rule.incorrect_approach, rule.correct_approach) == (
        "Booked bar 2",
        "what the user said: “too loud”",
    )
    assert sorted(rule.supporting_memory_ids) == sorted(ids)
    assert (rule.confidence, rule.project_id, rule.embedding is not None) == (0.7, "food", True)
    digest = memory.store.digest()
    sleep(memory)
    assert memory.store.digest() == digest


def test_the_context_warns_with_its_prevention(memory: memgraph.MemGraph, clock: Any) -> None:
    criticised(memory, clock, ("Use the quiet room", "use the quiet room, please"))
    sleep(memory)
    context = task_context(memory.build_agent_context("Book the quiet room for the team", project="food"))

    assert "what the user said: “use the quiet room, please”" in {one.prevention for one in context.avoid_these}


def test_five_failures_with_the_same_advice_are_learned_from(memory: memgraph.MemGraph) -> None:
    for number in range(5):
        book(memory, number, "failure", user_feedback="Ask for the sandbox account first")
    sleep(memory)

    (rule,) = rules(memory)
    assert rule.content.startswith("The user said the same of 5 episodes on 2026-02-01: “Ask for the sandbox")
    assert (rule.correct_approach, rule.confidence) == ("what the user said: “Ask for the sandbox account first”", 0.9)


def test_a_rule_grows_and_is_retired_with_its_comments(memory: memgraph.MemGraph, clock: Any) -> None:
    ids = criticised(memory, clock, SAID[:2])
    sleep(memory)
    (rule,) = rules(memory)
    assert rule.confidence == 0.6
    more = criticised(memory, clock, SAID[2:])
    sleep(memory)
    (grown,) = rules(memory)
    assert (grown.id, sorted(grown.supporting_memory_ids)) == (rule.id, sorted([*ids, *more]))

    for one in (ids[0], more[0]):
        memory.store.invalidate(one)
    sleep(memory)
    assert rules(memory) == []
    retired = memory.store.get_memory(rule.id)
    assert retired is not None
    assert "loud" not in retired.content


@pytest.mark.parametrize("way", ["suppress", "invalidate", "archive", "delete_memory"])
def test_a_rule_that_was_put_away_is_not_made_again(memory: memgraph.MemGraph, clock: Any, way: str) -> None:
    criticised(memory, clock)
    sleep(memory)
    getattr(memory.store, way)(rules(memory)[0].id)
    criticised(memory, clock, ("too loud",))
    sleep(memory)
    assert rules(memory) == []


def test_single_or_different_comments_make_no_rule(memory: memgraph.MemGraph, clock: Any) -> None:
    criticised(memory, clock, ("too loud", "too far from the station", "the room was cold"))
    liked = book(memory, 9, user_feedback="too loud")  # of a success: an observation, no criticism
    memory.update_episode_with_feedback(liked, "like", comment="too loud")
    sleep(memory)
    assert rules(memory) == []


def test_projects_are_kept_apart(memory: memgraph.MemGraph) -> None:
    for project in ("food", "travel"):
        saved = memory.save_episode("a", "b", "c", "failure", project=project, user_feedback="too loud")
        assert saved.episode_id
    assert learn_from_feedback(memory.store).created == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("too loud", "The music was too loud", False),
        ("Please keep answers short", "keep the answer short!", True),
        ("use pnpm, not npm", "Use pnpm not npm.", True),
        ("never deploy on Fridays", "don't deploy on Fridays", True),
        ("it can't find the file", "it cannot find the file", True),
        ("before a release, run the tests", "run the tests before a release", True),
        ("use pnpm, not npm", "use npm, not pnpm", False),
        ("use npm", "use npm over pnpm", False),
        ("use npm over pnpm", "use pnpm over npm", False),
        ("use a list instead of a set", "use a set instead of a list", False),
        ("deploy on Fridays", "don't deploy on Fridays", False),
        ("avoid lunch on Friday with Ann", "prefer lunch on Friday with Ann", False),
        ("book the bar before the train", "book the train before the bar", False),
        ("replace the bar with the hotel", "replace the hotel with the bar", False),
        ("move it from Monday to Friday", "move it from Friday to Monday", False),
        ("too many comments in the text", "too few comments in the text", False),
        ("the answer is too long and dry", "the answer is too short and dry", False),
        ("book at least 5 seats at the bar", "book at most 5 seats at the bar", False),
        ("keep five seats for the guests", "keep nine seats for the guests", False),
        ("enable the strict mode of the parser", "disable the strict mode of the parser", False),
        ("Ann must review the bill", "Bob must review the bill", False),
        ("refuse to book a bar late", "book a bar late", False),
        ("do not always ask Ann first", "do not ask Ann first", False),
        ("run the tests again", "run the tests", False),
        ("deploy it only once", "deploy it", False),
        ("wait 5 s between calls", "wait 50 s between calls", False),
        ("wait 5 % longer", "wait 5 longer", False),
        ("use version 1.2 of it", "use version 1.3 of it", False),
        ("read config.py first", "read setup.py first", False),
        ("too loud", "too cold", False),
    ],
)
def test_whether_two_comments_mean_the_same(one: str, other: str, same: bool) -> None:
    for texts in ((one, other), (other, one)):
        comments = [Comment(text, {"id": text}) for text in texts]
        assert len(grouped(comments)) == (1 if same else 2)


def test_grouping_reads_each_comment_once() -> None:
    comments = [Comment(f"keep part {number // 2} in one file", {"id": str(number)}) for number in range(20_000)]
    assert_grows_linearly(lambda many: grouped(comments[:many]), len(comments))
    assert [len(group) for group in grouped(comments)] == [2] * 10_000
