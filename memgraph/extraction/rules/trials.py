"""What repeated trials teach: what failed and which lesson was drawn, and which lesson then led to success."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memgraph.extraction.error_text import error_lines, task_fingerprint
from memgraph.extraction.readers.trials import changes_nothing
from memgraph.extraction.rules.findings import Finding
from memgraph.extraction.statements import sentences
from memgraph.model.base import MAX_NAME_CHARS
from memgraph.model.build import BuildEventLog, BuildTask
from memgraph.model.memory import ActionStep, Attempt
from memgraph.text import lazy_re as re
from memgraph.text.cutting import cut, whole_sentences
from memgraph.text.sentences import ended
from memgraph.text.words import content_words

_MAX_TASKS = 20_000
_MAX_ACTIONS = 40
_MAX_NAMES = 12
_MAX_LESSON_CHARS = 440
_MAX_PROVEN_CHARS = 200
_MAX_RESULT_CHARS = 200
_MAX_WHAT_CHARS = 480
_MAX_READ_CHARS = 4_000
_SAME_LESSON = 0.8
_MAX_ARGUMENT_CHARS = 40
_PREAMBLE = re.compile(
    r'("""|\'\'\')(?:(?!\1).){0,4000}\1|^(?:(?:from [\w.]{1,80} )?import [^\n]{1,200}|[ \t]{0,40}#[^\n]{0,400})$',
    re.DOTALL | re.MULTILINE,
)
"""Of code: what repeats the task, what every solution begins with, and comments, which in one line would swallow what follows."""


def from_trial(log: BuildEventLog) -> Iterator[Finding]:
    """Yield lessons, and successes that acted on one; of a trial with tool calls also what these teach.

    A trial that fails although it acted on a lesson is a failure, too, also where no new lesson was drawn from it.
    """
    calls = [task for task in log.tasks[:_MAX_TASKS] if task.command]
    asked = " ".join(said.action for said in log.user_interventions[:4])
    in_vain = [task.reasoning for task in log.tasks[:_MAX_TASKS] if task.reasoning and task.outcome != "success"]
    for task in log.tasks[:_MAX_TASKS]:
        if task.command:
            continue
        what = ended(
            whole_sentences(" ".join((asked or task.description)[:_MAX_READ_CHARS].split()), _MAX_WHAT_CHARS),
            ends=".!?…",
            closing="",
        )
        if task.lesson and not _was_in_vain(task.lesson, in_vain) and (lesson := _ending(task.lesson)):
            yield _lesson_of(task, what, lesson)
        elif task.outcome == "success" and task.reasoning:
            yield _success_of(task, what)
        elif task.outcome == "success" and _changes(calls):
            yield _solution_of(task, what, calls)
        elif task.outcome != "success" and (calls or asked or task.reasoning.strip() or _errors_of(task)):
            yield _failure_of(task, what, calls, is_conversation=bool(calls or log.user_interventions))


def _was_in_vain(lesson: str, in_vain: Sequence[str]) -> bool:
    """Return whether a later trial, or an earlier one, acted on this lesson and failed again: that trial tells it."""
    words = set(content_words(lesson))
    return any(len(words & set(content_words(one))) >= _SAME_LESSON * max(len(words), 1) for one in in_vain)


def _errors_of(task: BuildTask) -> tuple[str, ...]:
    """Return the error that a trial ended with; the text of its task is none."""
    return tuple(error_lines(_PREAMBLE.sub(" ", task.output[-_MAX_READ_CHARS:]), limit=1))


def _lesson_of(task: BuildTask, what: str, lesson: str) -> Finding:
    followed = _ending(task.reasoning, _MAX_PROVEN_CHARS)
    attempt = _attempt(task, what, lesson=lesson, acted_on=followed)
    reason = "a lesson was drawn from a failed trial"
    same = task_fingerprint(task.description)
    return Finding("lesson", 8.5, f"{task.task_id[:380]}:lesson", what, reason, task, attempt=attempt, fingerprint=same)


def _success_of(task: BuildTask, what: str) -> Finding:
    result = cut(" ".join(_PREAMBLE.sub(" ", task.output[:_MAX_READ_CHARS]).split()), _MAX_RESULT_CHARS)
    # the lesson itself is kept as well: what is new is what came of it
    lesson = _ending(task.reasoning, _MAX_PROVEN_CHARS if result else _MAX_LESSON_CHARS)
    attempt = _attempt(task, what, acted_on=lesson, result=result)
    reason = "a trial succeeded after a lesson"
    return Finding("recovery", 8.7, f"{task.task_id[:380]}:recovery", what, reason, task, attempt=attempt)


def _solution_of(task: BuildTask, what: str, calls: Sequence[BuildTask]) -> Finding:
    """Return which tools a success called, and which call changed something last."""
    decisive = f"In the end, `{_names(_changes(calls)[-1:])[0]}` was called."
    attempt = _attempt(task, what, tools_called=_names(calls), explained=decisive)
    key = f"{task.task_id[:380]}:solution"
    return Finding("solution", 6.5, key, what, "a trial succeeded", task, attempt=attempt, actions=_actions(calls))


def _changes(calls: Sequence[BuildTask]) -> list[BuildTask]:
    """Return the calls that changed something."""
    return [call for call in calls if call.outcome == "success" and not changes_nothing(call.command)]


def _attempt(task: BuildTask, what: str, **told: Any) -> Attempt:
    known = {name: value for name, value in told.items() if value != ""}
    return Attempt(asked=what, attempt=task.attempt, attempts=task.attempts, **known)


def _names(calls: Sequence[BuildTask]) -> list[str]:
    names = (call.description.split("(", 1)[0].strip()[:MAX_NAME_CHARS] for call in calls)
    return list(dict.fromkeys(filter(None, names)))[:_MAX_NAMES]


def _actions(calls: Sequence[BuildTask]) -> tuple[ActionStep, ...]:
    """Return which tools were called, in order; the same one several times in a row is one step."""
    steps: list[ActionStep] = []
    for call in calls:
        name = call.description.split("(", 1)[0].strip()[:200]
        error = next(iter(error_lines(call.output, limit=1)), None) if call.outcome == "failure" else None
        if steps and steps[-1].action == name:
            steps[-1] = steps[-1].model_copy(update={"error": error})  # the last of them counts
        else:
            steps.append(ActionStep(t=float(len(steps)), action=name, error=error))
    return tuple(steps[:_MAX_ACTIONS])


def _failure_of(task: BuildTask, what: str, calls: Sequence[BuildTask], *, is_conversation: bool) -> Finding:
    """Return a failure from which nobody drew a lesson: what was asked, what was done, and what was wrong with it."""
    wrong = [call for call in calls if call.outcome == "failure"]
    errors = tuple(line for failed in (wrong[-1:] if calls else [task]) for line in _errors_of(failed))
    counts = {"calls": len(calls), "failed_calls": len(wrong)} if is_conversation else {}
    attempt = _attempt(
        task,
        what,
        acted_on=_ending(task.reasoning),
        tools_called=_names(calls),
        last_error=errors[0] if errors else "",
        explained=_shortfall(calls) if counts else "",
        **counts,
    )
    key, done = f"{task.task_id[:380]}:failure", _actions(calls)
    same = None if errors else task_fingerprint(task.description)
    reason = "a trial failed"
    return Finding(
        "failure", 8.0, key, what, reason, task, errors=errors, attempt=attempt, actions=done, fingerprint=same
    )


def _shortfall(calls: Sequence[BuildTask]) -> str:
    """Return what a failed trial had changed when it ended: that was wrong, or not enough."""
    if not (done := _changes(calls)):
        return "Nothing was changed, which was not enough."
    name, _, _ = done[-1].command.partition("(")
    told = ", ".join(one for one in _arguments_of(done[-1].command) if len(one) <= _MAX_ARGUMENT_CHARS)
    return f"It ended with `{name}({told})`, which was wrong or not all that was needed."


def _arguments_of(call: str) -> list[str]:
    """Return the arguments of a call, each as it is written."""
    depth, start, found = 0, 0, []
    inside = call[:8_000].partition("(")[2].removesuffix(")")
    for place, sign in enumerate(inside):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append(inside[start:place].strip())
            start = place + 1
    return [*found, inside[start:].strip()]


def _ending(text: str, limit: int = _MAX_LESSON_CHARS) -> str:
    """Return the last sentences of a lesson that fit: what was wrong and what is to be done stand behind what happened."""
    parts = [ended(part, ends=".!?", closing="") for part in sentences(text)]
    while len(parts) > 1 and len(" ".join(parts)) > limit:
        del parts[0]
    return " ".join(parts)
