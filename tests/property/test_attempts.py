"""What the rules of version 1 told of an attempt as a sentence, the upcaster reads back as it was."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from memgraph.model.events.memories import MemoryAdded, MemoryRevised
from memgraph.model.events.payload import sparse
from memgraph.model.events.registry import UPCASTERS, attempt_in, trials_in
from memgraph.model.memory import Attempt
from memgraph.text.attempts import failed_task_text, quoted_lesson, recovered_task_text, step_text, trial_text

words = (
    st.text("abcdeÄß数 (_'-)", min_size=1, max_size=30)
    .map(lambda text: " ".join(text.split()).strip("()"))
    .filter(str.strip)
)
sentences = st.lists(words, min_size=1, max_size=3).map(
    lambda parts: "".join(f"{part.strip()}. " for part in parts).strip()
)
maybe = st.none() | sentences
commands = st.text("abc /-_.'\"=", min_size=1, max_size=20).map(lambda text: f"`{text.strip() or 'a'}`")
files = st.lists(st.sampled_from(["a.py", "src/b.ts", "c d.md"]), min_size=1, max_size=3).map(", ".join)
counts = st.integers(0, 40)
names = st.lists(st.text("abc_xyz", min_size=1, max_size=8), min_size=1, max_size=4, unique=True)
calls = st.just({"calls": 0, "failed_calls": 0}) | st.builds(
    lambda tools, total, failed: {"tools_called": tools, "calls": total + 1, "failed_calls": failed},
    names,
    counts,
    counts,
)
solutions = st.builds(lambda tools: {"tools_called": tools}, names)
remedies = (
    st.builds(lambda text: {"worked_how": "instead", "worked": text}, commands)
    | st.builds(lambda text: {"worked_how": "edit", "worked": text}, files)
    | st.builds(lambda text: {"worked_how": "after", "worked": text}, commands)
    | st.just({"worked_how": "again"})
)


def attempt(**fields: Any) -> dict[str, Any]:
    """Return the fields as the journal holds them."""
    return sparse(Attempt(**fields).model_dump())


@given(
    sentences,
    st.builds(lambda lesson: {"lesson": lesson}, sentences)
    | st.builds(lambda acted, error, done: {"acted_on": acted, "last_error": error, **done}, maybe, maybe, calls)
    | st.builds(lambda acted, error: {"acted_on": acted, "last_error": error}, maybe, maybe),
)
def test_a_failed_trial(asked: str, told: dict[str, Any]) -> None:
    fields = attempt(asked=asked, **told)
    text = trial_text(fields, is_solved=False).replace(
        "It failed again after this lesson: ", "What it acted on: "
    )  # as version 1
    assert attempt_in(text) == fields


@given(sentences, st.builds(lambda acted, result: {"acted_on": acted, "result": result}, sentences, maybe) | solutions)
def test_a_trial_that_solved_its_task(asked: str, told: dict[str, Any]) -> None:
    fields = attempt(asked=asked, **told)
    assert attempt_in(trial_text(fields, is_solved=True)) == fields


@given(commands | files.map(lambda names: f"An edit of {names}"), st.integers(1, 30), words, maybe, remedies)
def test_a_step_that_failed_and_worked_later(
    tried: str, failures: int, error: str, explained: str | None, remedy: dict[str, Any]
) -> None:
    fields = attempt(tried=tried, attempts=failures + 1, last_error=error, explained=explained, **remedy)
    assert attempt_in(step_text(fields)) == fields


@given(commands, st.integers(1, 30), sentences, maybe)
def test_a_step_that_stayed_wrong(tried: str, failures: int, error: str, explained: str | None) -> None:
    fields = attempt(tried=tried, attempts=failures, last_error=error, explained=explained)
    assert attempt_in(step_text(fields), [error]) == fields  # of several sentences the errors say which is the error's


@given(words.map(lambda text: f"“{text}”"), words.filter(lambda text: not text.endswith(")")), words, words)
def test_a_task_of_a_build(tried: str, place: str, error: str, worked: str) -> None:
    fields = attempt(tried=tried, last_error=error)
    assert attempt_in(failed_task_text(fields, agent="MARS", place=place), [error]) == fields
    fields = attempt(tried=tried, last_error=error, worked=worked)
    assert attempt_in(recovered_task_text(fields, agent="MARS"), [error]) == fields


marks = st.sampled_from(
    "Failed trial: |Solved: |Solved after a failed trial: | Lesson: | What it acted on: | What was done: | (calls: 1, failed: 9)."
    "| Last error: | Result: |`make`| failed| failed 99999999999 times| (|: |); what worked: `|`.|); it worked after | had been edited."
    "|An edit of | failed at “|”| had failed with | What worked: |Never solved in 3 trials| of | The lesson: “|, solved in |no tool was called."
    "|What led to success in “|”: 1. |The same task failed in | One that went well acted on this: |, | ".split("|")
)


@given(
    st.lists(marks | words, min_size=1, max_size=12).map("".join).filter(str.strip),
    st.sampled_from(["episodic", "semantic"]),
)
def test_whatever_an_old_text_says_it_can_be_read(text: str, kind: str) -> None:
    times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), "2000-01-03T00:00:00.000Z")
    memory = {"id": str(UUID(int=7, version=4)), "type": kind, "content": text[:800], "source": "trial", **times}
    upcast = UPCASTERS["memory.added", 1]({"memory": memory})
    assert sparse(MemoryAdded.parse(upcast).model_dump(exclude_defaults=True))["memory"] == upcast["memory"]
    changed = UPCASTERS["memory.revised", 1]({"id": memory["id"], "changed": {"content": text[:800]}})
    MemoryRevised.parse(changed)


@given(sentences)
def test_other_texts_tell_of_no_attempt(text: str) -> None:
    assert attempt_in(text) == {}
    assert trials_in(text) == {}


@given(st.sampled_from(["Kitchen 7", "mbpp_901_knots", "ALFWorld env_1"]), sentences)
def test_trials_of_one_task(task: str, lesson: str) -> None:
    quoted = f"“I was stuck.” {quoted_lesson(lesson)} An error on the way: no sink."
    assert trials_in(f"Never solved in 1,203 trials of {task}: {quoted}") == {"asked": task, "lesson": lesson}
    solved = {"asked": task, "is_solved": True}
    assert trials_in(f"Failed in 3 trials of {task}, solved in the fourth. What was acted on: “{lesson}”") == solved
    assert trials_in(f"Failed in 3 trials of {task}, solved in another: {quoted}") == {**solved, "lesson": lesson}
    told = "The same task failed in 3 trials (Kitchen). One that went well acted on this: "
    assert trials_in(told + lesson) == {"is_solved": True}
