"""What repeated trials teach: what failed and which lesson was drawn, and which lesson then led to success."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memgraph.extraction.error_text import error_lines, task_fingerprint
from memgraph.extraction.readers.trials import changes_nothing
from memgraph.extraction.rules.findings import Finding
from memgraph.extraction.rules.subjects import content_words
from memgraph.extraction.statements import NAMES, sentences
from memgraph.model.base import MAX_NAME_CHARS
from memgraph.model.build import BuildEventLog, BuildTask
from memgraph.model.memory import ActionStep, Attempt
from memgraph.text import lazy_re as re
from memgraph.text.sentences import ended

_MAX_TASKS = 20_000
_MAX_ACTIONS = 40
_MAX_NAMES = 12
_MAX_LESSON_CHARS = 440
_MAX_PROVEN_CHARS = 200
_MAX_RESULT_CHARS = 200
_MAX_WHAT_CHARS = 480
_MAX_READ_CHARS = 4_000
_LESSON = frozenset(
    "should shouldn't not next will would instead need needed needs must avoid always never rather wrong mistake incorrect failed because didn't doesn't only stuck "
    "forgot missed assume assumed assumes assuming".split()
)
"""Words of what was wrong, or is to be done."""
_VAGUE = re.compile(
    r"\b(?:lead(?:s|ing)?|result(?:s|ing)?|caus(?:es?|ing)|produc(?:es?|ing)|return(?:s|ing)?)\b.{0,60}\b(?:incorrect|wrong|errors?|fail\w*|unexpected|inaccurate)\b|"
    r"\b(?:not|fails? to|failing to|isn't|doesn't)\s(?:\w+\s)?(?:properly|correctly|accurately|handl\w*|account\w*|consider\w*)\b|"
    r"\b(?:indentation|syntax|import|type) (?:error|statement)s?\b|\b(?:is|are) (?:flawed|incorrect|wrong|inefficient)\b|\b(?:needs?|should) (?:to )?be (?:improved|fixed|revised|adjusted)\b|\btest cases?\b|\bfailed tests?\b",
    re.IGNORECASE,
)
"""What says that something is wrong, and not what."""
_SAYS_NOTHING = frozenset(
    word.rstrip("s")
    for word in str.split(
        "implementation function code current incorrect correct correctly wrong error errors result results output test tests case cases failed failing fails properly "
        "because should there where have same different number handle handling account consider considering logic approach algorithm given provided problem statement cause causes causing lead leads leading resulting produce "
        "produces return returns returning value values calculate calculates calculating calculation condition conditions attempt solution expected issue issues some several possible"
    )
)
_LEAST_OWN_WORDS = 4
"""Words with which a sentence that only finds fault says what is wrong."""
_CONNECTED = frozenset(
    "instead additionally therefore however also furthermore moreover specifically so thus hence but unfortunately note".split()
) | {"as a result", "to fix this", "because of this", "due to this", "for this reason", "please note", "note that"}
_POINTS_BACK = frozenset("this that these those they such it".split())
_POINTS_AHEAD = frozenset("did didn't is was would seem seems help helps".split())
"""Words after "it" where that means nothing that was said before."""
_SAME_LESSON = 0.8
_RULE = frozenset(
    "cannot can't must only policy policies requires allowed possible permitted eligible refundable non-refundable nonrefundable modifiable".split()
)
"""Words of what an agent says of the rules that it follows."""
_NO_RULE = frozenset("i i'll i'd i'm me if once let please recommend suggest seems appears looks without".split())
_LEAST_RULE_WORDS = 5
_MAX_RULES = 2
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
        what = _shortened(asked or task.description)
        if (
            task.lesson
            and not _was_in_vain(task.lesson, in_vain)
            and (lesson := _lesson(task.lesson, of=task.description))
        ):
            yield _lesson_of(task, what, lesson)
        elif task.outcome == "success" and task.reasoning:
            yield _success_of(task, what)
        elif task.outcome == "success" and calls:
            yield from _solution_of(task, what, calls, [said.context for said in log.user_interventions])
        elif task.outcome != "success" and (
            calls or asked or _lesson(task.reasoning, of=task.description) or _errors_of(task)
        ):
            yield _failure_of(task, what, calls, [said.context for said in log.user_interventions])


def _was_in_vain(lesson: str, in_vain: Sequence[str]) -> bool:
    """Return whether a later trial, or an earlier one, acted on this lesson and failed again: that trial tells it."""
    words = set(content_words(lesson))
    return any(len(words & set(content_words(one))) >= _SAME_LESSON * max(len(words), 1) for one in in_vain)


def _errors_of(task: BuildTask) -> tuple[str, ...]:
    """Return the error that a trial ended with; the text of its task is none."""
    return tuple(error_lines(_PREAMBLE.sub(" ", task.output[-_MAX_READ_CHARS:]), limit=1))


def _lesson_of(task: BuildTask, what: str, lesson: str) -> Finding:
    followed = _lesson(task.reasoning, _MAX_PROVEN_CHARS, of=task.description)
    attempt = _attempt(task, what, lesson=lesson, acted_on=followed)
    reason = "a lesson was drawn from a failed trial"
    same = task_fingerprint(task.description)
    return Finding("lesson", 8.5, f"{task.task_id[:380]}:lesson", what, reason, task, attempt=attempt, fingerprint=same)


def _success_of(task: BuildTask, what: str) -> Finding:
    result = _cut(_PREAMBLE.sub(" ", task.output[:_MAX_READ_CHARS]), _MAX_RESULT_CHARS)
    # the lesson itself is kept as well: what is new is what came of it
    lesson = _lesson(task.reasoning, _MAX_PROVEN_CHARS if result else _MAX_LESSON_CHARS, of=task.description)
    attempt = _attempt(task, what, acted_on=lesson, result=result)
    reason = "a trial succeeded after a lesson"
    return Finding("recovery", 8.7, f"{task.task_id[:380]}:recovery", what, reason, task, attempt=attempt)


def _solution_of(task: BuildTask, what: str, calls: Sequence[BuildTask], answers: Sequence[str]) -> Iterator[Finding]:
    """Yield what decided a success: the rule that the agent stated, and the last call that changed something, if there was one."""
    rules = _stated_rules(task, answers)
    done = _changes(calls)
    if not rules:
        return
    decisive = f"`{_names(done[-1:])[0]}` was called" if done else "nothing was changed, which was right"
    attempt = _attempt(task, what, tools_called=_names(calls), explained=f"{' '.join(rules)} In the end, {decisive}.")
    key = f"{task.task_id[:380]}:solution"
    yield Finding("solution", 6.5, key, what, "a trial succeeded", task, attempt=attempt, actions=_actions(calls))


def _changes(calls: Sequence[BuildTask]) -> list[BuildTask]:
    """Return the calls that changed something."""
    return [call for call in calls if call.outcome == "success" and not changes_nothing(call.command)]


def _stated_rules(task: BuildTask, answers: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(rule for text in (*answers, task.output) for rule in _rules_in(text)))[:_MAX_RULES]


def _rules_in(answer: str) -> list[str]:
    """Return the sentences in which an agent says what is and what is not allowed."""
    return [
        f"{rule}{'' if rule.endswith(('.', '!')) else '.'}"
        for sentence in sentences(answer)
        if (rule := _opened(sentence))
        and not _RULE.isdisjoint(said := _said(rule))
        and _NO_RULE.isdisjoint(said)
        and not rule.endswith(("?", ":"))
        and len(rule.split()) > _LEAST_RULE_WORDS
    ]


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


def _failure_of(task: BuildTask, what: str, calls: Sequence[BuildTask], answers: Sequence[str]) -> Finding:
    """Return a failure from which nobody drew a lesson: what was asked, what was done, and what was wrong with it."""
    wrong = [call for call in calls if call.outcome == "failure"]
    errors = tuple(line for failed in (wrong[-1:] if calls else [task]) for line in _errors_of(failed))
    counts = {"calls": len(calls), "failed_calls": len(wrong)} if calls or answers else {}
    attempt = _attempt(
        task,
        what,
        acted_on=_lesson(task.reasoning, of=task.description),
        tools_called=_names(calls),
        last_error=errors[0] if errors else "",
        explained=_shortfall(task, calls, answers) if counts else "",
        **counts,
    )
    key, done = f"{task.task_id[:380]}:failure", _actions(calls)
    same = None if errors else task_fingerprint(task.description)
    reason = "a trial failed"
    return Finding(
        "failure", 8.0, key, what, reason, task, errors=errors, attempt=attempt, actions=done, fingerprint=same
    )


def _shortfall(task: BuildTask, calls: Sequence[BuildTask], answers: Sequence[str]) -> str:
    """Return what a failed trial had changed or refused when it ended: that was wrong, or not enough."""
    rules = " ".join(f"“{rule}”" for rule in _stated_rules(task, answers))
    if done := _changes(calls):
        held = f" The agent had stated: {rules}" if rules else ""
        name, _, _ = done[-1].command.partition("(")
        told = ", ".join(one for one in _arguments_of(done[-1].command) if len(one) <= _MAX_ARGUMENT_CHARS)
        return f"It ended with `{name}({told})`, which was wrong or not all that was needed.{held}"
    return f"Nothing was changed, which was not enough.{f' The agent had stated: {rules}' if rules else ''}"


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


def _shortened(text: str) -> str:
    """Return what was asked, in whole sentences; only the first is cut if it is too long."""
    said = _cut(text[:_MAX_READ_CHARS], _MAX_READ_CHARS)
    if len(said) > _MAX_WHAT_CHARS:
        end = max(said.rfind(mark, 0, _MAX_WHAT_CHARS) for mark in (". ", "! ", "? "))
        said = said[: end + 1] if end > 0 else _cut(said, _MAX_WHAT_CHARS)
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def _cut(text: str, limit: int) -> str:
    """Return a text in one line, cut between words."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: max(line.rfind(' ', 0, limit), 1)]} …"


def _lesson(text: str, limit: int = _MAX_LESSON_CHARS, *, of: str) -> str:
    """Return the sentences that say most of what was wrong and what is to be done, whole, in their order; empty if none says anything of its own.

    A sentence that refers to the one before it is kept together with it, or left out.
    """
    parts = sentences(text)
    known = _words(of[:_MAX_READ_CHARS]) | _SAYS_NOTHING
    own = [len(_words(part) - known) + 2 * len(set(NAMES.findall(part))) for part in parts]
    telling = [place for place, part in enumerate(parts) if not _LESSON.isdisjoint(_said(part))] or list(
        range(len(parts))
    )
    telling = [place for place in telling if own[place] >= _LEAST_OWN_WORDS or not _VAGUE.search(parts[place])]
    chosen: set[int] = set()
    # of equals the later one: what is to be done is said at the end
    for place in sorted(telling, key=lambda place: (own[place], place), reverse=True):
        wanted = {place} - chosen
        if _points_back(_opened(parts[place])) and place - 1 not in chosen:
            if not place or _points_back(parts[place - 1]):
                continue
            wanted.add(place - 1)
        if not chosen or sum(len(parts[one]) for one in chosen | wanted) <= limit:
            chosen |= wanted
    return " ".join(
        ended(parts[place] if place - 1 in chosen else _opened(parts[place]), ends=".!?", closing="")
        for place in sorted(chosen)
    )


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in content_words(text)}


def _said(text: str) -> list[str]:
    return [word.strip(".,:;!?()\"'“”") for word in text.casefold().replace("’", "'").split()]


def _points_back(sentence: str) -> bool:
    """Return whether a sentence begins with a word that means something that was said before it."""
    first, second = [*_said(sentence)[:2], "", ""][:2]
    return first in _POINTS_BACK and not (first == "it" and second in _POINTS_AHEAD)


def _opened(sentence: str) -> str:
    """Return a sentence without a connection to the one before it."""
    head, comma, rest = sentence.partition(", ")
    bare = rest if comma and head.casefold() in _CONNECTED else sentence
    return f"{bare[:1].upper()}{bare[1:]}"
