"""Lessons of an agent's session: failures and their remedies, insights, and the steps that led to success.

A session is a sequence of steps, most of which only look around. Only steps that act are assessed: run, edit, submit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memgraph.extraction.error_text import error_lines, failure_fingerprint
from memgraph.extraction.rules.findings import Finding
from memgraph.extraction.rules.subjects import content_words
from memgraph.extraction.statements import find_decision, is_objection, is_standing_rule, sentences, steps_in
from memgraph.model.attempts import Attempt
from memgraph.model.build import BuildEventLog, BuildTask
from memgraph.model.memory import ActionStep
from memgraph.text.cutting import cut
from memgraph.text.sentences import ended

_MAX_STEPS = 20_000
_NEAR_STEPS = 40
"""Maximum number of steps between a failure and its remedy."""
_MAX_INSIGHTS = 3
_MAX_PROCEDURE_STEPS = 10
_REPEATED = 3
_TELLING_WORDS = 3
"""Minimum number of content words in an objection; a shorter one does not say what it objects to."""
_MAX_TOLD_CHARS = 340
_MAX_COMMAND_CHARS = 160
_SAME_COMMAND_OVERLAP = 0.5

_PREPARATION = re.compile(
    r"^(?:\s{0,4}(?:cd\s[^&;|\n]{1,200}(?:&&|;)|[A-Z_][A-Z0-9_]{0,40}=\S{0,200}\s|sudo\s|time\s|env\s|(?:uv|poetry|pipenv|hatch|rye|pdm)\srun\s))+"
)
_LOOKS = frozenset(
    str.split(
        "ls cd pwd cat head tail less more grep rg egrep find fd find_file search_dir search_file open goto scroll_up scroll_down file strings "
        "wc which type echo printf date whoami env printenv tree stat du df ps read glob grep_search todowrite todoread task websearch webfetch "
        "ls_dir view history man help think exit_plan_mode toolsearch askuserquestion jq sed awk sleep true decompile disassemble xxd hexdump"
    )
)
_EDITS = frozenset(
    str.split(
        "edit write multiedit notebookedit insert str_replace str_replace_editor apply_patch create append replace"
    )
)
_GIT_LOOKS = frozenset(str.split("status diff log show branch blame ls-files rev-parse remote stash"))
_ENDS = frozenset({"submit", "exit", "exit_cost", "exit_forfeit"})
_CALL = re.compile(r"\w{1,80}\(")
_WORD = re.compile(r"[\w./:=@-]+")
_PLANS = re.compile(
    r"^(?:ok(?:ay)?,?\s+|great[,!]?\s+|good[,!]?\s+|so,?\s+)?(?:now,?\s+|next,?\s+|first,?\s+|then,?\s+|finally,?\s+)?(?:let'?s?(?:\s+us)?|lets|"
    r"i(?:'ll| will| need| should| am going| want| can now|'m going)|we(?:'ll| will| need| should| can now| are going)|now|next|first|the next step|"
    r"(?:before|after) \w+ing|using it|calling|proceed)\b",
    re.IGNORECASE,
)
_INSIGHTS = (
    re.compile(r"\b(?:root cause|turns out|turned out|the (?:real )?(?:issue|problem|bug|cause|reason|culprit|fix|solution|key) (?:is|was|lies)|because|due to)\b", re.IGNORECASE),
    re.compile(r"\b(?:means that|meaning that|which means|this means|implies|proves?|it works because|can actually|the (?:vulnerability|weakness) is)\b", re.IGNORECASE),
    re.compile(r"\b(?:assumptions? (?:are|is|was|were) (?:valid|right|correct|wrong)|as we thought|contrary to|surprisingly|in reality)\b", re.IGNORECASE),
    re.compile(r"\b(?:does(?:n't| not) work|didn't work|did not work|unreasonable|not supported|must (?:be|have|not)|should not be|is required|only works|needs? to be|timed out)\b", re.IGNORECASE),
)  # fmt: skip
"""Phrases for causes, consequences and contrasts; a success is visible without the agent's statement."""
_DOUBTS = re.compile(
    r"\b(?:maybe|perhaps|might|could be|possibl[ey]|probably|i think|not sure|let me|let's|we will|i will|try|seems? like)\b",
    re.IGNORECASE,
)
_ECHO = re.compile(
    r"^(?:the (?:file|script|code|edit|output|command) (?:has been|was|is)\s+(?:\w+ly )?(?:created|updated|removed|added|written|saved|opened))\b",
    re.IGNORECASE,
)

_JOINED = re.compile(r"(?<=[a-z)`'\"])[.!?](?=[A-Z][a-z]{1,20}[ ,])")
_PURPOSE = re.compile(
    r"\bto ((?:see|check|reproduce|replicate|make sure|ensure|verify|test|fix|find|modify|handle|print|retrieve|recover|get|revert|use|include|allow|"
    r"prevent|avoid|support|round|change|replace|remove|update|add) [^\n.;!]{4,80}?)(?=[,.;!\n]|$)"
)
_DONE = re.compile(r"\b(?:updated|modified|changed|rewritten|fixed|edited) to ([^\n.;!]{4,160}?)(?=[,.;!\n]|$)")


@dataclass(frozen=True)
class _Step:
    """One step, with cached properties."""

    task: BuildTask
    place: int

    @cached_property
    def command(self) -> str:
        """The command's first line without its preparation; without a command, the step's name."""
        text = self.task.command or self.task.description
        return _PREPARATION.sub("", text[:4_000].strip()).split("\n", 1)[0].strip()[:200]

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self.command.casefold()))

    @cached_property
    def program(self) -> str:
        """The program run: the command's or tool's name; for ``git`` and ``npm`` with its subcommand."""
        if _CALL.match(self.command):
            return self.command.split("(", 1)[0].casefold()
        if not self.task.command and ":" in self.task.description[:40]:
            return self.task.description.split(":", 1)[0].strip().casefold()
        words = self.command.split()
        name = words[0].rsplit("/", 1)[-1].casefold() if words else ""
        return (
            f"{name} {words[1].casefold()}"
            if name in {"git", "npm", "cargo", "go", "docker", "make"} and len(words) > 1
            else name
        )

    @property
    def can_be_repeated(self) -> bool:
        """Whether it is a complete command; a tool call has the arguments of one case."""
        whole = _PREPARATION.sub("", self.task.command[:4_000].strip())
        return whole == self.command and not _CALL.match(whole)

    @property
    def edits(self) -> bool:
        return self.program.split(" ")[0] in _EDITS

    @property
    def looks(self) -> bool:
        """Whether it only looks around, so that its outcome says little."""
        name, _, verb = self.program.partition(" ")
        return not name or name in _LOOKS or (name == "git" and verb in _GIT_LOOKS)

    @property
    def runs(self) -> bool:
        return not self.looks and not self.edits and self.program not in _ENDS


def from_session(log: BuildEventLog) -> Iterator[Finding]:
    """Yield what is worth remembering in a session; see `RuleExtractor` for salience."""
    steps = [_Step(task, place) for place, task in enumerate(log.tasks[:_MAX_STEPS])]
    yield from _from_user(log)
    yield from _failures(steps)
    yield from _insights(steps)
    yield from _repeated(steps)
    if log.build_outcome == "success":
        yield from _way(log, steps)


def _failures(steps: Sequence[_Step]) -> Iterator[Finding]:
    """Yield each failure once, with its remedy or as unresolved."""
    told: set[int] = set()
    for step in steps:
        if step.task.outcome != "failure" or step.place in told or step.looks:
            continue
        remedy = _remedy(steps, step)
        alike = [
            other
            for other in steps[step.place : remedy.place if remedy else step.place + _NEAR_STEPS]
            if other.task.outcome == "failure" and _is_same(step, other)
        ]
        told |= {other.place for other in alike}
        yield _recovered(steps, alike, remedy) if remedy else _stayed(steps, alike[-1], len(alike))


def _remedy(steps: Sequence[_Step], failed: _Step) -> _Step | None:
    near = steps[failed.place + 1 : failed.place + 1 + _NEAR_STEPS]
    return next((step for step in near if step.task.outcome == "success" and _is_same(failed, step)), None)


def _is_same(one: _Step, other: _Step) -> bool:
    """Return whether two steps attempt the same: the same edit tool on the same file, or the same program on similar arguments."""
    if one.program != other.program:
        return False
    if one.edits:
        files = set(one.task.files_changed), set(other.task.files_changed)
        return not (files[0] and files[1]) or not files[0].isdisjoint(files[1])
    either = len(one.words | other.words)
    return bool(either) and len(one.words & other.words) / either >= _SAME_COMMAND_OVERLAP


def _recovered(steps: Sequence[_Step], failed: Sequence[_Step], remedy: _Step) -> Finding:
    first, times = failed[0], len(failed)
    errors = error_lines(failed[-1].task.output)
    said = errors[0] if errors else _last_line(failed[-1].task.output) or "no error was shown"
    between = steps[first.place + 1 : remedy.place]
    files = list(dict.fromkeys(file for step in between if step.edits for file in step.task.files_changed))
    done = [step.command for step in between if (step.edits or step.runs) and step.task.outcome == "success"]
    what = f"An edit{_of_files(remedy.task)}" if remedy.edits else f"`{_short(first.command)}`"
    told: dict[str, Any] = {"tried": what, "attempts": times + 1, "last_error": said[:200]}
    if different := _different(failed[-1].task, remedy.task):
        told |= {"worked_how": "instead", "worked": f"`{different}`"}
    elif files:
        told |= {"worked_how": "edit", "worked": ", ".join(files[:3])}
    else:
        told |= {"worked_how": "after", "worked": f"`{_short(done[-1])}`"} if done else {"worked_how": "again"}
    why = _gist(failed[-1].task.output, _reasoning_after(steps, failed[-1]), remedy.task.reasoning)
    return Finding(
        "recovery",
        9.0 if first.runs else 7.5,
        f"{remedy.task.task_id[:380]}:recovery",
        remedy.command,
        "what failed worked later in the session",
        remedy.task,
        errors=tuple(errors),
        earlier=first.task,
        attempt=Attempt(**told, explained=why or None),
    )


def _different(failed: BuildTask, worked: BuildTask) -> str:
    """Return how the working command differs from the failed one: all of it if it is short, else the new parts."""
    before, after = (" ".join(task.command[:8_000].split()) for task in (failed, worked))
    if before == after:
        return ""
    if len(after) <= _MAX_COMMAND_CHARS:
        return after
    between = ", " if _CALL.match(after) else " "
    known = set(before.split(between))
    return _short(f"… {between.join(part for part in after.split(between) if part not in known)} …")


def _stayed(steps: Sequence[_Step], step: _Step, times: int) -> Finding:
    errors = error_lines(step.task.output)
    said = errors[0] if errors else _last_line(step.task.output) or "no error was shown"
    why = _gist(step.task.output, _reasoning_after(steps, step))
    return Finding(
        "failure",
        8.0 if step.runs or times > 1 else 5.0,
        f"{step.task.task_id[:380]}:failure",
        step.command,
        "a step failed and never worked in the session",
        step.task,
        errors=tuple(errors) or (said[:240],),
        attempt=Attempt(
            tried=f"`{_short(step.command)}`", attempts=times, last_error=said[:240], explained=why or None
        ),
    )


def _insights(steps: Sequence[_Step]) -> Iterator[Finding]:
    """Yield the agent's insights: the most informative statements of the session."""
    found: list[tuple[int, _Step, list[str]]] = []
    for step in steps:
        telling = [
            (sum(cue.search(sentence) is not None for cue in _INSIGHTS), sentence)
            for sentence in _sentences(step.task.reasoning)
            if not _PLANS.match(sentence) and not _ECHO.match(sentence)
        ]
        sure = [(score - bool(_DOUBTS.search(sentence)), sentence) for score, sentence in telling]
        kept = [sentence for score, sentence in sure if score > 0]
        if kept:
            found.append((sum(score for score, _ in sure if score > 0), step, kept))
    found.sort(key=lambda entry: -entry[0])
    for score, step, kept in found[:_MAX_INSIGHTS]:
        if score < 2:
            continue
        decision = next((one for sentence in kept if (one := find_decision(sentence)) and one.alternatives), None)
        yield Finding(
            "insight",
            5.0 + min(score, 4) / 2,
            f"{step.task.task_id[:380]}:insight",
            kept[0],
            "the agent said what it had found out",
            step.task,
            decision=decision,
            told=f"After `{_short(steps[step.place - 1].command)}`: {_joined(kept)}" if step.place else _joined(kept),
        )


def _repeated(steps: Sequence[_Step]) -> Iterator[Finding]:
    """Yield commands that were run repeatedly and worked: established practice in this project."""
    worked = [step for step in steps if step.runs and step.can_be_repeated and step.task.outcome == "success"]
    counts = Counter(step.command for step in worked)
    for command, times in counts.most_common(5):
        if times < _REPEATED:
            return
        last = next(step for step in reversed(worked) if step.command == command)
        named = last.task.description.split(":", 1)[-1].strip()
        purpose = named if named and named != command and not named.startswith(command[:20]) else command
        yield Finding(
            "procedure",
            6.5,
            f"command {failure_fingerprint(command)}:procedure",
            purpose,
            "a command was repeated and worked",
            last.task,
            told=f"How to: {purpose}. Steps: 1. run `{command}`",
        )


def _way(log: BuildEventLog, steps: Sequence[_Step]) -> Iterator[Finding]:
    """Yield the steps to success: commands and edits, without steps that only looked, failed or were undone."""
    worked: list[_Step] = []
    for step in steps:
        if step.task.outcome != "success" or step.looks:
            continue
        if worked and (step.command == worked[-1].command or (step.edits and _is_same(step, worked[-1]))):
            continue
        worked.append(step)
    if len(worked) < 3 or not any(step.edits for step in worked) or not any(step.runs for step in worked):
        return
    if len(worked) > _MAX_PROCEDURE_STEPS:
        worked = [*worked[:2], *worked[2 - _MAX_PROCEDURE_STEPS :]]
    asked = sentences(log.build_summary.split("\n", 1)[0])
    goal = asked[0] if asked else log.build_id
    lines = tuple(_described(step, _reasoning_after(steps, step)) for step in worked)
    numbered = "; ".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
    last = worked[-1].task
    yield Finding(
        "procedure",
        7.0,
        "session:procedure",
        goal,
        "a session ended well; these steps led there",
        last,
        actions=tuple(ActionStep(t=float(number), action=line) for number, line in enumerate(lines)),
        goal=goal[:200],
        told=f"What led to success in “{goal[:200]}”: {numbered}",
    )


def _described(step: _Step, then: str) -> str:
    """Describe a step, with its purpose if the agent stated one, before or (`then`) after it."""
    said = _DONE.sub("", step.task.reasoning[:2_000])  # the result of the preceding step
    purpose = (_DONE.search(then[:600]) if step.edits else None) or _PURPOSE.search(said)
    files = ", ".join(step.task.files_changed[:2])
    what = (
        f"{step.program} {files}"
        if step.edits and files
        else f"`{step.program if step.program in _ENDS else _short(step.command)}`"
    )
    return f"{what} ({purpose[1].strip()})" if purpose else what


def _from_user(log: BuildEventLog) -> Iterator[Finding]:
    """Yield the user's statements that hold beyond the session: rules and objections, not requests."""
    at: Counter[str] = Counter()
    for number, said in enumerate(log.user_interventions[:_MAX_STEPS]):
        place = f"user@{said.timestamp}" + (f"#{at[said.timestamp]}" if at[said.timestamp] else "")
        at[said.timestamp] += 1
        if len(said.action) > 4_000:
            continue  # pasted text
        if steps := steps_in(said.action):
            reason = "the user stated the steps"
            yield Finding("procedure", 9.2, f"{place}:procedure", said.action, reason, said=said, steps=steps)
        elif number and is_objection(said.action) and len(content_words(said.action)) >= _TELLING_WORDS:
            decision = find_decision(said.action)
            yield Finding("correction", 9.4, f"{place}:correction", said.action, "the user corrected", said=said, decision=decision)  # fmt: skip
        elif is_standing_rule(said.action):
            ruling = [sentence for sentence in sentences(said.action) if is_standing_rule(sentence)]
            if ruling:
                rule = said.model_copy(update={"action": " ".join(ruling)[:600], "context": ""})
                yield Finding("instruction", 9.3, f"{place}:instruction", rule.action, "the user gave an instruction", said=rule)  # fmt: skip


def _short(command: str) -> str:
    return cut(command, _MAX_COMMAND_CHARS, keep_space=True)


def _sentences(said: str) -> list[str]:
    """Split an agent's text into sentences; where lines were joined, a full stop has no space after it."""
    return sentences(_JOINED.sub(r"\g<0> ", said[:6_000]))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text[-4_000:].splitlines() if line.strip()]
    return lines[-1][:240] if lines else ""


def _reasoning_after(steps: Sequence[_Step], step: _Step) -> str:
    """Return the agent's next statement: its interpretation of the outcome."""
    return steps[step.place + 1].task.reasoning if step.place + 1 < len(steps) else ""


def _of_files(task: BuildTask) -> str:
    return f" of {', '.join(task.files_changed[:2])}" if task.files_changed else ""


def _gist(known: str, *texts: str) -> str:
    """Return the agent's statements about it, without plans and without repetitions of the output."""
    said = [
        sentence
        for text in dict.fromkeys(texts)
        for sentence in _sentences(text)
        if not _PLANS.match(sentence) and not _ECHO.match(sentence) and sentence not in known
    ]
    return _joined(list(dict.fromkeys(said)))


def _joined(parts: Sequence[str]) -> str:
    chosen: list[str] = []
    for part in parts:
        if chosen and sum(map(len, chosen)) + len(part) > _MAX_TOLD_CHARS:
            break
        chosen.append(ended(part, ends=".!?", closing=""))
    return " ".join(chosen)
