"""What the rules find in repeated trials: lessons, and what led to success after them."""

from __future__ import annotations

from typing import Any

from memgraph import BuildEventLog
from memgraph.extraction import RuleExtractor

LESSON = (
    "I went to the kitchen. I took the lamp from the desk. I should have looked for the lamp before I took the bowl. "
    "In the next trial, I will go to the desk first."
)


def trial(*tasks: dict[str, Any], **fields: Any) -> BuildEventLog:
    return BuildEventLog.parse(
        {
            "build_id": "trial-1",
            "project_id": "house",
            "source": "trial",
            "tasks": [
                {"agent_name": "agent", "description": "Look at the bowl under the lamp", **task} for task in tasks
            ],
            "build_outcome": "partial",
            "started_at": "2000-01-02T00:00:00Z",
            "completed_at": "2000-01-02T00:00:00Z",
            **fields,
        }
    )


def found(log: BuildEventLog) -> dict[str, Any]:
    return {one.key or "": one.memory for one in RuleExtractor().extract(log).candidates}


def test_a_lesson_is_kept_without_the_story_around_it() -> None:
    (memory,) = found(trial({"task_id": "env_1", "outcome": "failure", "lesson": LESSON})).values()
    assert memory.outcome == "negative"
    assert memory.content == (
        "Failed trial: Look at the bowl under the lamp. Lesson: I should have looked for the lamp before I took the bowl. "
        "In the next trial, I will go to the desk first."
    )


def test_a_success_says_which_lesson_it_acted_on() -> None:
    (memory,) = found(trial({"task_id": "env_1", "outcome": "success", "reasoning": LESSON})).values()
    assert memory.outcome == "positive"
    assert memory.content.startswith("Solved after a failed trial: Look at the bowl under the lamp. What it acted on:")
    assert "go to the desk first" in memory.content


def test_a_success_at_once_and_a_failure_without_a_word_teach_nothing() -> None:
    assert found(trial({"task_id": "env_1", "outcome": "success"}, {"task_id": "env_2", "outcome": "failure"})) == {}


def test_a_failed_conversation_tells_what_was_asked_done_and_wrong() -> None:
    call = {"description": 'book(seat="4A")', "command": 'book(seat="4A")'}
    said = [
        {"timestamp": "2000-01-02T00:00:00Z", "action": text}
        for text in ("I want seat 4A!", "No, I never fly at night.")
    ]
    log = trial(
        {"task_id": "task-1", "outcome": "failure", "output": "Reward 0. Have a nice day!"},
        {"task_id": "call-0", "outcome": "failure", "output": "Error: seat 4A is taken", **call},
        user_interventions=said,
    )
    memory = found(log)["task-1:failure"]
    assert memory.content == (
        "Failed trial: I want seat 4A! No, I never fly at night. What was done: book (calls: 1, failed: 1). "
        "Last error: Error: seat 4A is taken"
    )
    # a customer's wishes are not rules of the project
    assert set(found(log)) == {"task-1:failure", "call-0:failure"}
