"""What is worth remembering in an agent's session, and in repeated trials.

Of a session these are the user's statements and facts of its runs: what failed and worked later, what kept failing, which commands work here,
how a task was solved. Runs are read from commands, outcomes, error messages and files alone; no sentence of the agent is, but where it explains is told
(`explanations`). What ended a failure is
another form of the command without what its error names, else the edits between it and the first success, else an addition, an installation or a
written file that the error names; where none is seen, nothing is said. Of trials it is what failed and which lesson was drawn, and which lesson then led to success.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from memgraph.extraction.error_text import (
    error_lines,
    failure_fingerprint,
    first_lines,
    normalised_error,
    task_fingerprint,
)
from memgraph.extraction.readers.trials import changes_nothing
from memgraph.extraction.rules.findings import MAX_SAID_CHARS, Finding, placed
from memgraph.extraction.rules.user import UserStatement, spoken, statements_in, what_is_left
from memgraph.extraction.statements import sentences, steps_in
from memgraph.model.base import MAX_NAME_CHARS
from memgraph.model.build import BuildEventLog, BuildTask, UserIntervention
from memgraph.model.memory import ActionStep, Attempt, Worked
from memgraph.text import lazy_re as re
from memgraph.text.attempts import step_text
from memgraph.text.cutting import cut, split_text, whole_sentences
from memgraph.text.sentences import ended, split_sentences
from memgraph.text.words import content_words

_MAX_TURNS = 20_000
_ASKED = "Asked: "
_REFUSED = "Refused: "
_APPROVES = re.compile(
    r"\W*(?:(?:the|your|this|that|it|its|it['’]s|that['’]s|plans?|i|we|you|me|us|all|of|is|am|can|may|looks?|sounds?|like|love|happy|what|want(?:ed)?|works?|job|idea|approach|very|so|really|just|and|then|now|please|pls|to|for|with|as|"
    r"absolutely|definitely|course|amazing|awesome|excellent|exactly|fantastic|great|good|nice|perfect|wonderful|cool|right|correct|lgtm|yes|yeah|yep|ok(?:ay)?|sure|fine|approved?|agreed?|thanks?|thank|much|"
    r"go|ahead|on|let['’]?s?|start|proceed|continue|implement(?:ing|ation)?|do|did|ship|planned|proposed|suggested|described)\b\W*)+",
    re.IGNORECASE,
)
"""Words with which a call is refused that only approve: whatever else is said tells how to do it."""
_TELLS_HOW = re.compile(
    r"\bhow (?:to|we)\b|\b(?:the|these|our) (?:steps|procedure|checklist|recipe)\b|\bin this order\b|\b(?:always|whenever|every time|each time)\b|\b(?:for|before|after) (?:each|every|any)\s|"
    r"^(?:to|when)\s[^.!?\n]{3,80}[,:]",
    re.IGNORECASE | re.MULTILINE,
)
"""What tells a way of doing something from a list of requests."""


def from_session(log: BuildEventLog) -> Iterator[Finding]:
    """Yield what is worth remembering in a session; see `RuleExtractor` for salience."""
    steps = steps_of(log.tasks)
    yield from _from_user(log)
    yield from failures(steps, _created(steps) if log.source == "trajectory" else frozenset())
    yield from repeated(steps)
    if log.build_outcome == "success":
        yield from solved(log, steps)


def _from_user(log: BuildEventLog) -> Iterator[Finding]:
    """Yield the user's statements that hold beyond the session, without those taken back later, and what the user refused with which words."""
    kept: list[tuple[str, UserIntervention, UserStatement]] = []
    latest = 0  # the number of statements of earlier messages than the one before
    for place, said in placed(log.user_interventions[:_MAX_TURNS]):
        if said.context.startswith(_ASKED):
            continue  # what was chosen of an offer holds for the work at hand; the turn is a record
        own = "\n".join(filter(None, spoken(said.action)))
        left = [what_is_left(own, one, is_latest=number >= latest) for number, (_, _, one) in enumerate(kept)]
        kept = [(where, by, one) for (where, by, _), one in zip(kept, left, strict=True) if one]
        latest = len(kept)
        if (steps := steps_in(said.action)) and _tells_how(said.action, own, steps):
            reason = "the user stated the steps"
            alone = said.model_copy(update={"context": ""})
            yield Finding("procedure", 9.2, f"{place}:procedure", own, reason, said=alone, steps=steps)
            continue
        stated = statements_in(said.action)
        kept += [(place, said, one) for one in stated]
        says_why = content_words(own) and not own.rstrip().endswith("?")
        if not stated and said.context.startswith(_REFUSED) and says_why and not _APPROVES.fullmatch(own):
            for part, text in enumerate(split_text(" ".join(said.action.split()), MAX_SAID_CHARS)):
                alone = said.model_copy(update={"action": text, "context": "" if part else said.context})
                key = f"{place}:correction{f'-{part + 1}' if part else ''}"
                yield Finding("correction", 9.4, key, text, "the user refused a call", said=alone)
    number: Counter[str] = Counter()
    for place, said, one in kept:
        key = f"{place}:{one.kind}"
        number[key] += 1
        key += f"-{number[key]}" if number[key] > 1 else ""
        reason = "the user gave an instruction" if one.kind == "instruction" else "the user stated a fact or a decision"
        told = said.model_copy(update={"action": one.text, "context": ""})
        yield Finding(one.kind, 9.3, key, one.text, reason, said=told)


def _tells_how(message: str, own: str, steps: tuple[str, ...]) -> bool:
    """Return whether the line of the first step or the one before it says that these are steps, all in the user's own words."""
    around = [line for line in message.partition(steps[0])[0].splitlines() if line.strip()][-2:]
    words = own.replace("\n", " ")
    is_own = all(" ".join(step.split()) in words for step in steps)
    return is_own and any(_TELLS_HOW.search(line) for line in (*around, steps[0]) if line.strip("-*• ") in words)


_MAX_STEPS = 20_000
_MAX_COMMAND_CHARS = 160
_MAX_PARSED_CHARS = 400
_MAX_LINE_CHARS = 100
_MAX_PROCEDURE_STEPS = 10
_MAX_FILES = 3
_MAX_ACTS = 2
_NEAR_STEPS = 40
"""Maximum number of steps between a failure and its success."""
_LEAST_EXPLAINED_CHARS = 40
"""Minimum characters of what explains: less is mostly an exclamation."""
_SIGN_WORDS = 3
_REPEATED = _LEAST_STEPS = 3
_EVERYWHERE = frozenset(
    str.split(
        "ls cd pwd cat head tail less more grep rg egrep find fd find_file search_dir search_file open goto scroll_up scroll_down file strings wc which "
        "type echo printf date whoami env printenv tree stat du df ps jq sed awk sleep true xxd hexdump history man help think submit exit exit_cost "
        "exit_forfeit git rm mkdir cp mv chmod kill pkill touch tee sort uniq cut tr"
    )
)
"""Programs that are the same in every project, and most of which only look around: their runs teach nothing."""
_PREPARE = frozenset({"cd", "source", ".", "export", "set"})
_RUNNERS = frozenset(str.split("sudo time env timeout uv poetry pipenv hatch rye pdm npx bundle exec run"))
_OPERATORS = frozenset({"&&", "||", "|", ";", "&"})
_HIDES = frozenset({"||", "|", ";", "&"})
"""Operators after which the exit code is that of another command."""
_INSTALLS = frozenset({"install", "add"})
_NAME = re.compile(r"[^\W\d_]{4,40}|\d{3,10}")


def explanations(tasks: Sequence[BuildTask]) -> set[str]:
    """Return the ids of the steps before which the agent explains: what it said last before an edit, or at once after a failure.

    The last sentence of a text announces the step; what stands before it explains, unless it is hardly a word.
    """
    found, said = set[str](), BuildTask(task_id="-", agent_name="-", description="-", outcome="success")
    for before, task in pairwise((said, *tasks)):
        *told, _ = split_sentences(task.reasoning.strip(), "claim")
        if len("".join(told)) >= _LEAST_EXPLAINED_CHARS and task.reasoning != said.reasoning:
            said = task
            found.update([task.task_id] if before.outcome == "failure" else ())
        if task.files_changed and said.reasoning:
            found.add(said.task_id)
    return found


@dataclass(frozen=True)
class Step:
    """One step of a session, with cached properties."""

    task: BuildTask
    place: int

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words and operators of the command's first line, and all that follows it as one more word."""
        text = self.task.command[:8_000].strip()
        line, _, rest = text.partition("\n")
        lexer = shlex.shlex(line[:_MAX_PARSED_CHARS], posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        try:
            words = list(lexer)
        except ValueError:  # an open quotation
            words = line[:_MAX_PARSED_CHARS].split()
        return (*words, *filter(None, [line[_MAX_PARSED_CHARS:] + rest]))

    @cached_property
    def essence(self) -> tuple[str, ...]:
        """What it runs: without directory, settings and options, and without programs after a pipe that only show some of the output."""
        parts: list[str] = []
        part: list[str] = []
        is_shown = False
        for word in (*self.words, ";"):
            if word not in _OPERATORS:
                part.append(word)
                continue
            if (kept := _bare(part)) and not (is_shown and kept[0] in _EVERYWHERE):
                parts += ["&&", *kept]
            part, is_shown = [], word == "|"
        return tuple(parts[1:])

    @property
    def edits(self) -> bool:
        """Whether it edits files."""
        return bool(self.task.files_changed)

    @property
    def creates(self) -> bool:
        """Whether it writes a whole file."""
        return self.edits and self.task.description[:10].partition(" ")[0].casefold() in {"write", "create"}

    @cached_property
    def runs(self) -> bool:
        """Whether it runs a program of the project, or writes a file by a command."""
        if self.edits or not self.essence:
            return False
        names = {word for before, word in zip(("&&", *self.essence), self.essence, strict=False) if before == "&&"}
        return not names <= _EVERYWHERE or _writes(self.words)

    @property
    def worked(self) -> bool:
        """Whether it succeeded."""
        return self.task.outcome == "success"

    @property
    def is_seen_to_work(self) -> bool:
        """Whether it succeeded, and a success whose exit code is that of another command prints no error."""
        return self.worked and (_HIDES.isdisjoint(self.words) or not error_lines(self.task.output, limit=1))

    @cached_property
    def errors(self) -> list[str]:
        """The lines that say what failed."""
        return error_lines(self.task.output) or first_lines(self.task.output)

    @property
    def shown(self) -> str:
        """The command as a memory shows it, in whatever directory it was run."""
        line = self.task.command.strip().partition("\n")[0][: _MAX_PARSED_CHARS * 20]
        while line.startswith("cd ") and "&&" in line:
            line = line.partition("&&")[2].strip()
        return f"`{short(line)}`"


def steps_of(tasks: Sequence[BuildTask]) -> list[Step]:
    """Return the steps of a session, in order."""
    return [Step(task, place) for place, task in enumerate(tasks[:_MAX_STEPS])]


def failures(steps: Sequence[Step], scratch: Set[str] = frozenset()) -> Iterator[Finding]:
    """Yield what failed and worked after an edit or in another form, and what failed several times with the same error and never worked.

    An error that strikes unrelated programs of a session is the machine's: it says nothing of them.

    Parameters
    ----------
    scratch : set of str
        Files whose edits mend nothing.
    """
    struck: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    failed: dict[tuple[str, ...], list[Step]] = {}
    for step in steps:
        if not step.runs:
            continue
        if step.task.outcome == "failure":
            failed.setdefault(step.essence, []).append(step)
            for sign in _signs(step):
                struck[sign].add(step.essence[0])
        elif step.essence in failed and step.is_seen_to_work and not _repeats(step, failed[step.essence][-1]):
            before = failed.pop(step.essence)
            if step.place - before[-1].place <= _NEAR_STEPS and (found := _recovered(steps, before, step, scratch)):
                yield found
    for before in failed.values():
        last = before[-1]
        if _times_same(before) > 1 and all(len(struck[sign]) == 1 for sign in _signs(last)):
            reason = "a step failed and never worked in the session"
            key = f"{last.task.task_id[:380]}:failure"
            errors, attempt = tuple(last.errors), _attempts_of(before)
            yield Finding("failure", 8.0, key, last.task.command, reason, last.task, errors=errors, attempt=attempt)


def _repeats(step: Step, failed: Step) -> bool:
    """Return whether a step prints the error with which another one failed, whatever its exit code."""
    told = failure_fingerprint(failed.errors[0]) if failed.errors else ""
    return told in (failure_fingerprint(line.strip()[:240]) for line in step.task.output.splitlines())


def _times_same(failed: Sequence[Step]) -> int:
    """Return how often a command failed with the error of its last failure; 0 if that has none."""
    prints = [failure_fingerprint(one.errors[0]) if one.errors else "" for one in failed]
    return prints.count(prints[-1]) if prints[-1] else 0


def _attempts_of(failed: Sequence[Step], worked_how: Worked | None = None, worked: str | None = None) -> Attempt:
    """Return how often exactly the last of these commands was run, with the last error, marked as such if there were others."""
    same = [one for one in failed if one.shown == failed[-1].shown]
    error = f"{'' if _times_same(same) == len(same) else 'at last: '}{failed[-1].errors[0]}"[:240]
    attempts = len(same) + (worked_how is not None)
    return Attempt(tried=failed[-1].shown, attempts=attempts, last_error=error, worked_how=worked_how, worked=worked)


def _signs(failed: Step) -> set[tuple[str, ...]]:
    """Return the words of an error, three by three: programs put their own names, and those of files, around what the system says."""
    words = normalised_error(next(iter(failed.errors), "")).split()
    return {
        tuple(words[place : place + _SIGN_WORDS])
        for place in range(max(len(words) - _SIGN_WORDS + 1, min(len(words), 1)))
    }


def _recovered(steps: Sequence[Step], failed: Sequence[Step], worked: Step, scratch: Set[str]) -> Finding | None:
    """Return that what failed worked after edits, or in another form; None where neither is seen, of a failure without an error, or in the wrong directory."""
    last = failed[-1]
    if not last.errors or "cd" in normalised_error(last.errors[0]).split()[:3]:
        return None
    named, known, now = _names(last.errors[0]), set(last.words), set(worked.words)

    def is_named(words: Set[str]) -> bool:
        return not named.isdisjoint(_names(" ".join(words)))

    between = steps[last.place + 1 : worked.place]
    edits, files = _edits(between, scratch)
    ran = [one for one in between if one.is_seen_to_work and (_writes(one.words) or _INSTALLS & {*one.words})]
    ran = [one for one in ran if is_named({*one.words} - known)]
    how: Worked = "edit"
    done = resolution = ", ".join(files[:_MAX_FILES])
    if is_named(known - now) or (not (files or ran) and is_named(now - known)):
        how, files = "instead", []
        done = resolution = "" if worked.shown.strip("`") in last.shown else worked.shown
    elif files:
        changed = " ".join(filter(None, map(changed_by, edits))) if len(edits) <= _MAX_ACTS else ""
        resolution = f"Edited {done}. {changed}".strip()
    elif ran:
        how, done = "after", ", then ".join(list(dict.fromkeys(one.shown for one in ran))[:_MAX_ACTS])
        resolution = done
    if not done:
        return None
    return Finding(
        "recovery",
        9.0,
        f"{worked.task.task_id[:380]}:recovery",
        worked.task.command,
        "what failed worked later in the session",
        worked.task.model_copy(update={"files_changed": files}),
        errors=(last.errors[0],),
        earlier=failed[0].task,
        attempt=_attempts_of(failed, worked_how=how, worked=done),
        resolution=resolution,
    )


def mended_text(recovery: Finding) -> str:
    """Return what a recovery tells, with the line that an edit changed."""
    assert recovery.attempt is not None  # noqa: S101 (asked of a recovery)
    _, _, changed = (recovery.resolution or "").partition(". ")
    is_edit = recovery.attempt.worked_how == "edit"
    return f"{step_text(recovery.attempt.model_dump())} {changed if is_edit else ''}".strip()


def _edits(steps: Sequence[Step], created: Set[str]) -> tuple[list[Step], list[str]]:
    """Return the edits that worked, and their files, without scratch files."""
    edits = [step for step in steps if step.worked and not {*step.task.files_changed} <= created]
    return edits, list(dict.fromkeys(file for step in edits for file in step.task.files_changed if file not in created))


def _created(steps: Sequence[Step]) -> set[str]:
    return {file for step in steps if step.creates for file in step.task.files_changed}


def repeated(steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield commands of one line that were run repeatedly and worked: how something is done in this project."""
    worked = [step for step in steps if step.runs and step.is_seen_to_work]
    counts = Counter(step.task.command.strip() for step in worked)
    for command, times in counts.most_common(5):
        if times < _REPEATED:
            return
        if "\n" in command or len(command.split()) < 2 or len(command) > _MAX_COMMAND_CHARS:
            continue
        last = next(step for step in reversed(worked) if step.task.command.strip() == command)
        named = last.task.description.partition(":")[2].strip()
        purpose = named if named and not command.startswith(named[:20]) else ""
        yield Finding(
            "procedure",
            6.5,
            f"command {failure_fingerprint(command)}:procedure",
            purpose or command,
            "a command was repeated and worked",
            last.task,
            told=f"Command that works here{f' ({purpose})' if purpose else ''}: `{command}`",
        )


def solved(log: BuildEventLog, steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield how the task of a session that ended well was solved: what was edited, and the steps that worked as its action log."""
    acted = [step for step in steps if step.is_seen_to_work and (step.edits or step.runs)]
    edits, files = _edits(acted, _created(steps))
    asked = sentences(log.build_summary.partition("\n")[0])
    lines = [f"edit {', '.join(step.task.files_changed[:2])}" if step.edits else step.shown for step in acted]
    lines = [line for before, line in zip(["", *lines], lines, strict=False) if line != before]
    if len(lines) < _LEAST_STEPS or len(edits) == len(acted) or not (asked and edits):
        return
    if len(lines) > _MAX_PROCEDURE_STEPS:
        lines = [*lines[:2], *lines[2 - _MAX_PROCEDURE_STEPS :]]
    goal = asked[0][:200]
    told = f"How “{goal}” was solved: edited {', '.join(files[-_MAX_FILES:])}. {changed_by(edits[-1])}".strip()
    actions = tuple(ActionStep(t=float(number), action=line) for number, line in enumerate(lines))
    reason = "a session ended well; these changes led there"
    key, task = "session:procedure", edits[-1].task
    yield Finding("procedure", 7.0, key, goal, reason, task, actions=actions, goal=goal, told=told)


def changed_by(edit: Step) -> str:
    """Return what an edit of one line replaced by what."""
    lines = edit.task.command.splitlines()[1:]
    before, after = ([line[2:].strip() for line in lines if line[:2] == sign] for sign in ("- ", "+ "))
    old, new = (
        [line for line in part if line and line not in other] for part, other in ((before, after), (after, before))
    )
    if len(old) > 1 or len(new) != 1 or any(len(line) > _MAX_LINE_CHARS for line in (*old, *new)):
        return ""
    file = edit.task.files_changed[0]
    return f"In {file}, `{old[0]}` became `{new[0]}`." if old else f"In {file}, `{new[0]}` was added."


def short(command: str) -> str:
    """Return a command as a memory shows it."""
    return cut(command, _MAX_COMMAND_CHARS, keep_space=True)


def _bare(part: Sequence[str]) -> list[str]:
    """Return the words of one command without settings before it, what runs it, its options and where its output goes."""
    words = list(part)
    while words and (
        words[0] in _RUNNERS
        or words[0][:1].isdigit()
        or (words[0].partition("=")[0].isidentifier() and "=" in words[0])
    ):
        del words[0]
    if not words or words[0] in _PREPARE:
        return []
    name = words[0].rsplit("/", 1)[-1]
    found = [name.rstrip("0123456789.") or name]
    for before, word in pairwise(words):
        if word.strip("<>&") == "":
            found = found[:-1] if len(found) > 1 and before.isdigit() else found
        elif before.strip("<>&") and not word.startswith("-"):
            found.append(word)
    return found


def _writes(words: Sequence[str]) -> bool:
    """Return whether a command writes a file: by its output, or in place."""
    into = {after for word, after in pairwise(words) if word in {">", ">>", "tee"}}
    return bool(into - {"/dev/null"}) or ("sed" in words and any(word.startswith("-i") for word in words))


def _names(text: str) -> set[str]:
    """Return the words of a text that may name something, also as parts of names, without the endings of plurals."""
    return {word.rstrip("s") for word in _NAME.findall(text[:4_000].replace("_", " ").casefold())} - {"error"}


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
    decisive = f"In the end, `{_tools_of(_changes(calls)[-1:])[0]}` was called."
    attempt = _attempt(task, what, tools_called=_tools_of(calls), explained=decisive)
    key = f"{task.task_id[:380]}:solution"
    return Finding("solution", 6.5, key, what, "a trial succeeded", task, attempt=attempt, actions=_actions(calls))


def _changes(calls: Sequence[BuildTask]) -> list[BuildTask]:
    """Return the calls that changed something."""
    return [call for call in calls if call.outcome == "success" and not changes_nothing(call.command)]


def _attempt(task: BuildTask, what: str, **told: Any) -> Attempt:
    known = {name: value for name, value in told.items() if value != ""}
    return Attempt(asked=what, attempt=task.attempt, attempts=task.attempts, **known)


def _tools_of(calls: Sequence[BuildTask]) -> list[str]:
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
        tools_called=_tools_of(calls),
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
