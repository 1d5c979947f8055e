"""Trials of a named task: which belong together, and the text that summarises them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memgraph.extraction.error_text import failure_fingerprint
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.ports import Row
from memgraph.text import lazy_re as re
from memgraph.text.attempts import quoted_lesson
from memgraph.text.cutting import whole_sentences
from memgraph.text.sentences import ended, enumerated

_SOURCE = "trial"
_ATTEMPT = re.compile(r":attempt-\d+$")
"""Distinguishes several trials of one build, all at the same task."""
_LESSON_CHARS, _REQUEST_CHARS = 420, 180
_WORDS_OF_A_NAME, _LONGEST_NAME = 4, 80
_LEAST_TOOLS = 2
"""A single called tool does not describe an approach."""


class Trials(NamedTuple):
    """The summary of the trials of one task.

    Attributes
    ----------
    text : str
        Empty if nothing can be learned from them: no reason for their result is recorded, and all had the same result.
    asked : str or None
        The name of the task.
    lesson : str or None
        The lesson that the text quotes.
    is_solved : bool or None
        True where the trials failed and another one solved the task.
    """

    text: str
    asked: str | None
    lesson: str | None
    is_solved: bool | None


def is_trial(row: Mapping[str, Any]) -> bool:
    """Return whether an episode is a whole trial rather than an event within one."""
    return bool(row.get("asked"))


def task_of(row: Mapping[str, Any]) -> str | None:
    """Return the key of the task that an episode is a trial of; None if it is of none, or of several.

    The key combines the record's name of the task with its description, because another file may use the same name for another
    task. Simulated users word the same request differently each time, so in a conversation only the name counts.
    """
    if row.get("source") != _SOURCE or not is_trial(row):
        return None
    builds = row.get("evidence_build_ids", ())
    names = {_ATTEMPT.sub("", _within(event, builds)) for event in row.get("source_event_ids", ())}
    if len(names) != 1:
        return None
    name = names.pop()
    is_of_calls = row.get("tools_called") or row.get("calls") is not None
    return name if is_of_calls else f"{name}\x1f{row['asked']}"


def _within(event: str, builds: Sequence[str]) -> str:
    """Return an event's name within its build."""
    return next((event[len(build) + 1 :] for build in builds if event.startswith(f"{build}/")), event)


def asked_and_learned(row: Row) -> str:
    """Return what was asked in a trial and what was learned, without what was done."""
    return " ".join(row[name] for name in ("asked", "lesson", "acted_on", "last_error", "result") if row.get(name))


def of_trials(rows: Sequence[Row], seen: str, solved: Sequence[Row] | None) -> Trials:
    """Summarise the trials of one task: their outcome, what stopped them, and what solved it or the lesson.

    Parameters
    ----------
    rows : sequence of Row
        Trials with the same end, the most typical first.
    seen : str
        How often, as `extractive_text.counted` says it.
    solved : sequence of Row or None
        Of failed trials those of the same task that solved it; None: there are some, but they must not be quoted.
    """
    asked_for: str = rows[0]["asked"]
    name = asked_for.rstrip(".")
    is_unsolved = _is_failed(rows[0]) and solved is not None and not solved
    is_name = (
        len(name.split()) <= _WORDS_OF_A_NAME and len(name) <= _LONGEST_NAME and not name.endswith(("?", "!", "…"))
    )
    failed = len({build for row in rows for build in row.get("evidence_build_ids", ())})
    head = _head(rows[0], seen, f" of {name}" if is_name else "", solved)
    found = [f"{head}." if is_name else f"{head}: “{_short(asked_for, _REQUEST_CHARS)}”"]
    acted_on = _first(solved or (), "acted_on")
    part = "lesson" if any(row.get("lesson") for row in rows) else "acted_on"
    by_evidence = sorted(rows, key=lambda row: -len(row.get("evidence_build_ids", ())))
    said = _first(by_evidence, part)
    lesson = said if part == "lesson" and not acted_on else ""
    if acted_on:
        found.append(f"The trial that solved it acted on this: “{acted_on}”")
    elif said:
        found.append(quoted_lesson(said) if lesson else f"What was acted on: “{said}”")
        if is_unsolved and len(by_evidence) + failed > 2:
            found.append("No trial has succeeded with it so far.")
    decided = "" if acted_on else _first(solved or (), "explained")
    if decided:
        found.append(f"What decided the trial that solved it: “{decided}”")
    called, is_decisive = _called(rows, solved or ())
    found += called
    error, met = _common_error(rows)
    if error:
        of_all = met == _many(rows)
        found.append(f"{'Their last error' if of_all else f'The last error of {met:,} of them'} was: {error}")
    if not (said or acted_on or decided or error or is_decisive):
        return Trials("", None, None, None)
    while len(" ".join(found)) > MAX_CONTENT_CHARS and len(found) > 1:
        found.pop()
    text = whole_sentences(" ".join(found), MAX_CONTENT_CHARS)
    is_told = bool(lesson) and quoted_lesson(lesson) in text
    is_solved = True if _is_failed(rows[0]) and solved else None
    return Trials(text, name if is_name else None, lesson if is_told else None, is_solved)


def _is_failed(row: Row) -> bool:
    return bool(row.get("outcome") == "negative")


def _head(trial: Row, seen: str, of: str, solved: Sequence[Row] | None) -> str:
    if not _is_failed(trial):
        return f"Solved {seen}{of}{', after it had failed' if trial.get('acted_on') else ''}"
    if solved is None:
        return f"Failed {seen}{of}"
    return f"Failed {seen}{of}, solved in {_which(solved)}" if solved else f"Never solved {seen}{of}"


def _which(solved: Sequence[Row]) -> str:
    """Return which trials solved the task: their numbers, where the source counts them, else how many."""
    many, numbers = _many(solved), sorted({row["attempt"] + 1 for row in solved if row.get("attempt") is not None})
    if len(numbers) == many:
        return f"trial{'s' if many > 1 else ''} {enumerated(list(map(str, numbers)))}"
    return "another" if many == 1 else f"{many:,} others"


def _first(rows: Sequence[Row], name: str) -> str:
    """Return what the first of some trials that has it says in a field, in whole sentences."""
    return next((_short(row[name], _LESSON_CHARS) for row in rows if row.get(name)), "")


def _short(text: str, limit: int) -> str:
    return whole_sentences(ended(" ".join(text.split())), limit)


def _called(failed: Sequence[Row], solved: Sequence[Row]) -> tuple[list[str], bool]:
    """Return which tools the trial that solved it called, and whether no failed one called some of them."""
    others = {name for one in failed for name in one.get("tools_called", ())}
    names = list(dict.fromkeys(name for one in solved for name in one.get("tools_called", ())))
    if len(names) < _LEAST_TOOLS:
        return [], False
    own = [name for name in names if name not in others] if others else []
    is_decisive = 0 < len(own) < len(names)
    alone = f"; no failed one called {_enumerated(own)}" if is_decisive else ""
    return [f"What the solved trial called: {_enumerated(names)}{alone}."], is_decisive


def _common_error(rows: Sequence[Row]) -> tuple[str | None, int]:
    """Return the error that was the last one of at least two thirds of the trials, and of how many."""
    errors, texts = Counter[str](), dict[str, str]()
    for row in rows:
        if said := row.get("last_error"):
            errors[failure_fingerprint(said)] += _many([row])
            texts[failure_fingerprint(said)] = ended(said)
    same, met = next(iter(errors.most_common(1)), ("", 0))
    error = texts.get(same)
    return (error, met) if met >= min(2, len(rows)) and 3 * met >= 2 * _many(rows) else (None, 0)


def _many(rows: Sequence[Row]) -> int:
    """Return how many trials some episodes tell of."""
    return sum(max(1, len(row.get("evidence_build_ids", ()))) for row in rows)


def _enumerated(names: Sequence[str]) -> str:
    return enumerated([f"`{name}`" for name in names])
