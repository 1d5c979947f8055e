"""What the rules find in repeated trials: lessons, and what led to success after them."""

from __future__ import annotations

from typing import Any

from memgraph import BuildEventLog
from memgraph.extraction.rules.extractor import RuleExtractor

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


def test_a_lesson_is_kept_as_it_was_drawn() -> None:
    (memory,) = found(trial({"task_id": "env_1", "outcome": "failure", "lesson": LESSON})).values()
    assert memory.outcome == "negative"
    assert memory.content == (f"Failed trial: Look at the bowl under the lamp. Lesson: {LESSON}")


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
        "Failed trial: I want seat 4A! No, I never fly at night. What was wrong: Nothing was changed, which was not enough. "
        "Last error: Error: seat 4A is taken. What was done: book (calls: 1, failed: 1)."
    )
    # a customer's wishes are not rules of the project
    assert set(found(log)) == {"task-1:failure"}


def test_a_success_is_told_by_what_came_of_the_lesson() -> None:
    code = 'from typing import List\nimport re\n\ndef f(a):\n    """Look at the bowl.\n    Twice."""\n    # in order\n    return sorted(a)'
    task = {"task_id": "p", "outcome": "success", "reasoning": LESSON, "output": code}
    (memory,) = found(trial(task)).values()
    assert memory.content.endswith("Result: def f(a): return sorted(a)")
    long = "I looked at it in vain and went back. " * 3 + "I should have looked for the lamp. " * 12
    (memory,) = found(trial({**task, "reasoning": long})).values()
    assert len(memory.content) < 400  # the lesson is kept by itself: it is not told twice
    (memory,) = found(trial({**task, "reasoning": long, "output": ""})).values()
    assert len(memory.content) > 400


def test_a_trial_that_acts_on_a_lesson_and_fails_again_is_a_failure() -> None:
    task = {"task_id": "env_1", "outcome": "failure", "reasoning": LESSON, "output": "Gave no answer in 6 steps"}
    (memory,) = found(trial(task)).values()
    assert memory.outcome == "negative"
    assert memory.content.startswith(
        "Failed trial: Look at the bowl under the lamp. It failed again after this lesson: I went"
    )


def test_failures_at_one_task_are_one_failure_and_those_at_two_tasks_are_two() -> None:
    tasks = [
        {"task_id": "env_1", "outcome": "failure", "lesson": LESSON},
        {"task_id": "env_1", "outcome": "failure", "lesson": "I never opened the drawer. I must open it first."},
        {"task_id": "env_1", "outcome": "failure", "reasoning": LESSON},
    ]
    first = {memory.failure_fingerprint for task in tasks for memory in found(trial(task)).values()}
    assert len(first) == 1
    other = {"task_id": "env_2", "outcome": "failure", "lesson": LESSON, "description": "Look at bowl 2 under lamp 7"}
    another = {**other, "description": "Look at bowl 3 under lamp 7"}  # a number is all that tells them apart
    assert (
        len({memory.failure_fingerprint for task in (other, another) for memory in found(trial(task)).values()} | first)
        == 3
    )


def test_an_error_tells_a_failure_better_than_its_task_does() -> None:
    call = {"description": "book()", "command": "book()", "outcome": "failure", "output": "Error: seat 4A is taken"}
    logs = [
        trial({"task_id": name, "outcome": "failure", "description": f"Book for {name}"}, {"task_id": "c", **call})
        for name in ("ann", "bo")
    ]
    one, other = (found(log)[f"{name}:failure"] for log, name in zip(logs, ("ann", "bo"), strict=True))
    assert one.failure_fingerprint == other.failure_fingerprint is not None


def test_a_failed_conversation_without_a_call_is_a_failure() -> None:
    said = [{"timestamp": "2000-01-02T00:00:00Z", "action": "What is the sum of my balances?"}]
    memory = found(trial({"task_id": "task-1", "outcome": "failure"}, user_interventions=said))["task-1:failure"]
    assert memory.content == (
        "Failed trial: What is the sum of my balances? What was wrong: Nothing was changed, which was not enough. "
        "What was done: no tool was called."
    )
    assert found(trial({"task_id": "task-1", "outcome": "success"}, user_interventions=said)) == {}


def test_a_success_says_which_call_decided_it() -> None:
    said = [{"timestamp": "2000-01-02T00:00:00Z", "action": "Move my booking B7."}]
    look = {"description": "get_booking()", "command": "get_booking()", "outcome": "success"}
    cancel = {"description": "cancel_booking()", "command": "cancel_booking()", "outcome": "success"}
    whole = {"task_id": "task-1", "outcome": "success"}
    changed = trial(whole, {"task_id": "c0", **look}, {"task_id": "c1", **cancel}, user_interventions=said)
    assert found(changed)["task-1:solution"].content == (
        "Solved: Move my booking B7. What was done: get_booking, cancel_booking. "
        "What decided it: In the end, `cancel_booking` was called."
    )
    assert found(trial(whole, {"task_id": "c0", **look}, user_interventions=said)) == {}  # nothing was changed


def test_a_lesson_that_was_followed_by_another_failure_is_told_with_the_next() -> None:
    task = {"task_id": "env_1", "outcome": "failure", "reasoning": "I should open the drawer first.", "lesson": LESSON}
    (memory,) = found(trial(task)).values()
    assert (
        "It failed again after this lesson: I should open the drawer first. Lesson: I went to the kitchen."
        in memory.content
    )


SPECIFIC = "The total skips every row after the first empty one, because `load` stops at a blank line."


def test_of_a_long_lesson_the_last_sentences_are_kept_whole() -> None:
    rest = " ".join(f"I went to room number {number} of this house and found nothing in it." for number in range(1, 9))
    (memory,) = found(trial({"task_id": "env_1", "outcome": "failure", "lesson": f"{rest} {SPECIFIC}"})).values()
    assert memory.lesson.startswith("I went to room number")
    assert memory.lesson.endswith(SPECIFIC)
    assert len(memory.lesson) <= 440


def test_a_lesson_that_the_next_trial_followed_in_vain_is_no_cause() -> None:
    vain = SPECIFIC.replace("empty one", "empty row")
    tasks = [
        {"task_id": "p-0", "outcome": "failure", "lesson": SPECIFIC},
        {"task_id": "p-1", "outcome": "failure", "reasoning": SPECIFIC, "lesson": vain},
        {"task_id": "p-2", "outcome": "failure", "reasoning": vain, "lesson": "The sums should be added as decimals."},
        {"task_id": "p-3", "outcome": "success", "reasoning": "The sums should be added as decimals."},
    ]
    memories = found(trial(*tasks))
    assert {key: (memory.acted_on, memory.lesson) for key, memory in memories.items()} == {
        "p-1:failure": (SPECIFIC, None),
        "p-2:lesson": (vain, "The sums should be added as decimals."),
        "p-3:recovery": ("The sums should be added as decimals.", None),
    }


def test_the_text_of_a_task_is_no_error() -> None:
    code = (
        'def total():\n    """Return -1 if the file cannot be read.\n\n    An error is raised.\n    """\n    return 1'
    )
    assert found(trial({"task_id": "p-0", "outcome": "failure", "output": code})) == {}


def test_a_failed_conversation_says_which_change_was_wrong() -> None:
    said = [{"timestamp": "2000-01-02T00:00:00Z", "action": f"Move my booking B7. {'I would like a seat. ' * 20}"}]
    whole = {"task_id": "task-1", "outcome": "failure"}
    call = {"description": "x", "outcome": "success", "command": 'update_booking(id="B7", cabin="economy")'}
    content = found(trial(whole, {"task_id": "c1", **call}, user_interventions=said))["task-1:failure"].content
    assert content.startswith("Failed trial: Move my booking B7. I would like a seat.")
    assert "…" not in content  # whole sentences
    assert content.endswith(
        'What was wrong: It ended with `update_booking(id="B7", cabin="economy")`, which was wrong or not all that was needed. '
        "What was done: x (calls: 1, failed: 0)."
    )
