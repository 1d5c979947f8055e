"""Findings of the rules, and the memories composed of them: one or two self-contained sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memgraph.extraction.components import components_of, main_file
from memgraph.extraction.error_text import error_type, failure_fingerprint
from memgraph.extraction.readers.commits import without_markup
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.build import BuildEventLog, BuildTask, UserIntervention, event_id
from memgraph.model.memory import (
    ActionStep,
    AgentMemory,
    Attempt,
    EncounteredError,
    Entity,
    EpisodicMemory,
    Outcome,
    ProceduralMemory,
    SemanticMemory,
)
from memgraph.text import lazy_re as re
from memgraph.text.attempts import (
    LEADS,
    failed_task_text,
    recovered_task_text,
    sentence,
    step_text,
    trial_text,
)
from memgraph.text.cutting import whole_sentences
from memgraph.text.words import words_of

MAX_FILES = 20
MAX_SAID_CHARS = 500
"""Maximum characters of the user's words in one memory, which may quote a context too."""
_MAX_TAGS = 6
_MAX_WHY_CHARS = 360
_OUTCOME: dict[str, Outcome] = {
    "failure": "negative",
    "lesson": "negative",
    "correction": "negative",
    "partial": "neutral",
    "instruction": "unknown",
    "statement": "unknown",
    "intervention": "unknown",
    "procedure": "positive",
}
_SOLVED = frozenset({"recovery", "solution"})
_MAX_ISSUES = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth remembering: what was done or said in a part of the log, and why it is kept."""

    kind: str
    salience: float
    key: str
    text: str
    reason: str
    task: BuildTask | None = None
    errors: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    said: UserIntervention | None = None
    earlier: BuildTask | None = None
    """The failed task that a recovery mends."""
    attempt: Attempt | None = None
    """What was tried and what came of it: the memory's text is rendered from it."""
    told: str = ""
    """The memory's text, where the rule that found it has composed another."""
    goal: str | None = None
    actions: tuple[ActionStep, ...] = ()
    fingerprint: str | None = None
    """The failure's, if it has no error."""
    resolution: str | None = None
    """What ended the failure: what was changed, run or decided, never what had failed."""


def composed(finding: Finding, log: BuildEventLog) -> AgentMemory:
    """Return the memory of a finding; `reason` says why it was made, `source_event_ids` name its origin."""
    task, is_git = finding.task, log.source == "git"
    event = task.task_id if task else finding.key.rsplit(":", 1)[0]
    files = task.files_changed[:MAX_FILES] if task else []
    when = finding.said.timestamp if finding.said else (task and task.occurred_at) or log.completed_at
    issues = list(dict.fromkeys((*task.closes, *task.mentions))) if task and is_git else []
    fields = origin(log, event, when) | {
        "outcome": _OUTCOME.get(finding.kind, "positive"),
        "agents_involved": list(dict.fromkeys(one.agent_name for one in (task, finding.earlier) if one)),
        "tags": _tags(finding),
        "entities": [Entity(name=f"#{number}", kind="issue") for number in issues[:_MAX_ISSUES]],
        "title": _title(finding),
        "reason": finding.reason,
    }
    if fields["outcome"] == "negative" and (finding.fingerprint or finding.errors):
        fields["failure_fingerprint"] = finding.fingerprint or failure_fingerprint(finding.errors[0])
    attempt = _attempt(finding)
    fields["content"] = whole_sentences(_one_line(_content(finding, log, attempt)), MAX_CONTENT_CHARS)
    if finding.steps:
        return ProceduralMemory(**fields, trigger_pattern=_one_line(finding.text)[:400], steps=list(finding.steps))
    if finding.kind == "instruction":
        return SemanticMemory(**fields, category="instruction", pattern=_one_line(finding.text)[:2_000])
    return EpisodicMemory(
        **fields,
        **(attempt.model_dump(exclude_none=True) if attempt else {}),
        event_date=when,
        goal=finding.goal,
        location=_where(finding)[:400] or None,
        files_involved=files,
        action_log=list(finding.actions),
        git_commit=task.task_id if task and is_git else None,
        errors_encountered=[
            EncounteredError(type=error_type(error) or "error", message=error, resolution=_resolution(finding, attempt))
            for error in finding.errors
        ],
        user_feedback=_one_line(finding.text)[:2_000] if finding.said else None,
    )


def origin(log: BuildEventLog, event: str, when: str) -> dict[str, Any]:
    """Return the fields that say where and when a memory of an event of a build comes from."""
    return {
        "occurred_at": when,
        "project_id": log.project_id,
        "build_id": log.build_id,
        "source_event_ids": [event_id(log.build_id, event)],
        "evidence_build_ids": [log.build_id],
        "session_id": log.session_id,
        "source": log.source,
        "trust_class": log.trust_class,
    }


def _resolution(finding: Finding, attempt: Attempt | None) -> str | None:
    """Return what ended a failure; of a build's task, what worked."""
    if finding.kind != "recovery":
        return None
    of_a_task = attempt.worked if attempt and not finding.attempt else None
    return _one_line(finding.resolution or of_a_task or "")[:400] or None


def _attempt(finding: Finding) -> Attempt | None:
    """Return the attempt that a finding describes; for a build's task only if it failed, or succeeded after a failure."""
    task = finding.task
    if finding.attempt or finding.told or finding.said or finding.steps or task is None:
        return finding.attempt
    tried = quoted_task(finding.text)
    if finding.kind == "failure":
        return Attempt(tried=tried, last_error=" / ".join(finding.errors) or _gist(task.output) or None)
    if finding.kind == "recovery" and finding.earlier:
        return Attempt(tried=tried, last_error=next(iter(finding.errors), None), worked=_what_worked(finding, task))
    return None


def quoted_task(text: str) -> str:
    """Return what a build's task was, as an attempt at it quotes it."""
    return f"“{_one_line(text)[:250]}”"


def _what_worked(finding: Finding, task: BuildTask) -> str | None:
    """Return what a task says that worked: its lesson and reasons, or its output, or its name if that is new; and a command that is no part of the failed one."""
    assert finding.earlier is not None  # noqa: S101 (asked of a recovery)
    said = [whole_sentences(_one_line(one), _MAX_WHY_CHARS) for one in (task.lesson, task.reasoning) if one.strip()]
    said = said or [_gist(task.output)]
    command, failed = " ".join(task.command.split()), " ".join(finding.earlier.command.split())
    said += [f"`{command}`"] if command and command not in failed and len(command) <= _MAX_WHY_CHARS else []
    name = _one_line(finding.text)[:250]
    told = " ".join(sentence(one) for one in said if one)
    return told or (name if _folded(name) not in _folded(finding.earlier.description) else None)


def _content(finding: Finding, log: BuildEventLog, attempt: Attempt | None) -> str:
    task, text = finding.task, _one_line(finding.text)
    if finding.told:
        return finding.told
    if finding.attempt:
        fields = finding.attempt.model_dump()
        return trial_text(fields, is_solved=finding.kind in _SOLVED) if fields["asked"] else step_text(fields)
    if finding.said:
        return _said(finding)
    if finding.steps:
        return f"{sentence(f'How to: {text}')} Steps: {_numbered(finding.steps)}"
    if task is None:
        return sentence(f"Build {log.build_id} of {log.project_id}: {text}")
    where = _where(finding)
    if attempt and finding.earlier:
        return recovered_task_text(attempt.model_dump(), agent=finding.earlier.agent_name)
    if attempt:
        return failed_task_text(attempt.model_dump(), agent=task.agent_name, place=where)
    lead = f"{LEADS[finding.kind]}: " if finding.kind in LEADS else ""
    return f"{sentence(lead + text)} {_gist(task.output)}".strip()


def _said(finding: Finding) -> str:
    assert finding.said is not None  # noqa: S101 (asked for what was said)
    action, context = _one_line(finding.said.action), _one_line(finding.said.context)
    if finding.steps:
        return f"The user stated the steps{f' for {context[:200]}' if context else ''}: {_numbered(finding.steps)}"
    first = sentence(f"{LEADS.get(finding.kind, LEADS['intervention'])}: {action[:MAX_SAID_CHARS]}")
    return f"{first} {sentence(f'Context: {context}')}" if context else first


def _numbered(steps: Sequence[str]) -> str:
    return "; ".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))


def placed(interventions: Sequence[UserIntervention]) -> Iterator[tuple[str, UserIntervention]]:
    """Yield what the user said, with its place in the log, which is unique."""
    at: Counter[str] = Counter()
    for said in interventions:
        yield f"user@{said.timestamp}" + (f"#{at[said.timestamp]}" if at[said.timestamp] else ""), said
        at[said.timestamp] += 1


def _gist(output: str) -> str:
    """Return the sentences of a task's prose that fit."""
    return _one_line(whole_sentences(prose_of(output)[0], _MAX_WHY_CHARS))


def _where(finding: Finding) -> str:
    """Return the place in words: the main file, a few files, or the component and the number of files."""
    files = finding.task.files_changed if finding.task else []
    main = main_file(files, finding.text)
    if main:
        others = [file for file in files if file != main]
        return ", ".join([main, *others]) if len(others) < 2 else f"{main} and {len(others)} other files"
    names = components_of(files, limit=2)
    extent = f" ({len(files)} files)" if files else ""
    return f"{', '.join(names)}{extent}" if names else f"{len(files)} files" if files else ""


def _title(finding: Finding) -> str | None:
    files = finding.task.files_changed if finding.task else []
    names = [main_file(files, finding.text), *components_of(files, limit=1)]
    return next((name[:400] for name in names if name), None)


def _tags(finding: Finding) -> list[str]:
    error = (error_type(finding.errors[0]) or "").casefold() if finding.errors else ""
    files = finding.task.files_changed if finding.task else []
    tags = [finding.kind, error, "user" if finding.said else "", *components_of(files)]
    return list(dict.fromkeys(filter(None, tags)))[:_MAX_TAGS]


def _one_line(text: str) -> str:
    return " ".join(text[:4_000].split())


def _folded(text: str) -> str:
    return " ".join(words_of(text))


LEFT_OUT = "[…]"
"""What stands for a block that a colon announces."""
_BLOCK = "\x00"
_ENDS = (".", "!", "?", ")", "]", ":")
_MAX_CHARS = 16_000
_FENCED = re.compile(r"^ {0,8}(```|~~~)[^`\n]*$.*?(?:^ {0,8}\1|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?: {4}|\t|\s{0,3}(?:[>|$#]|diff --git |Traceback ))")
ITEM = re.compile(r"\s{0,12}(?:[-*+•]|\d{1,2}[.)])\s")
_WORD = re.compile(r"(?<![^\s(])[^\W\d_][^\W\d_'’]{0,30}(?=[\s.,;:!?)]|$)")

LEAST_WORDS = 25
"""Words of prose with which a message explains its change.

Of the messages of 13 histories that two readers judged (`tests/benchmarks/quality/commits.md`), length told those that state a cause, a
decision, a rule or a limit from the others nearly as well as a trained head did by their words and vectors.
"""


def prose_of(body: str) -> tuple[str, int]:
    """Return a body without code, quotations and tables, a line for each paragraph and item, and its number of plain words outside of lists."""
    told: list[str] = []
    words, gap = 0, ""
    for is_item, line in _lines(without_markup(_FENCED.sub(_BLOCK, body[:_MAX_CHARS]))):
        is_ended = bool(told) and told[-1].endswith(_ENDS)  # else the sentence goes on after a block
        if line.startswith(_BLOCK):
            told += [f" {LEFT_OUT}"] if told and told[-1].endswith(":") else []
            gap = gap if is_ended else " "
        elif not line.strip():
            gap = gap or "\n"
        else:
            goes_on = line[:2].isspace() and not is_ended
            told.append(("\n" if ITEM.match(line) else " " if goes_on else gap or " ") + _one_line(line))
            words, gap = words + (0 if is_item else len(_WORD.findall(line))), ""
    return "".join(told).strip(), words


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """Yield (whether it belongs to a list, line) of what is prose, with empty lines, and `_BLOCK` for what is not prose."""
    in_item = False
    for line in text.splitlines():
        if ITEM.match(line):
            in_item = True
            yield True, line
        elif line.startswith(_BLOCK):
            yield in_item, line
        elif not line.strip():
            in_item = False
            yield False, line
        else:
            in_item = in_item and line[:1].isspace()
            yield in_item, line if in_item or not _CODE.match(line) else _BLOCK
