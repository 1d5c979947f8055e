"""Trials of a named task: which belong together, and what is told of them, the success included. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from memgraph.lifecycle.evidence.sentences import (
    concrete,
    in_general,
    is_advice,
    most_central,
    requests,
    sentences_of,
    without_numbers,
)
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.ports import Row
from memgraph.text.cutting import cut
from memgraph.text.sentences import ended, enumerated

_SOURCE = "trial"
_TRIAL = re.compile(r"(Failed trial|Solved after a failed trial|Solved): ")
_FAILED = "Failed trial"
_PART = re.compile(r"\s(Lesson|What it acted on|What was done|Last error|Result): ")
_ATTEMPT = re.compile(r":attempt-\d+$")
"""Several trials of one build are told apart so; they are at one task."""
_TOOLS = re.compile(r"(\w+(?:, \w+)*)(?: \(calls: \d+, failed: \d+\))?\.")
_LESSON_CHARS, _REQUEST_CHARS = 420, 180
_WORDS_OF_A_NAME, _LONGEST_NAME = 4, 80
_LEAST_TOOLS = 2
"""One tool that was called says nothing of the way that was gone."""
_FIRST_DAY = date(2000, 1, 1).toordinal()
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_MIDNIGHT = "T00:00:00.000Z"


def is_trial(content: str) -> bool:
    """Whether a text tells of a whole trial, and not only of something that happened in it."""
    return _TRIAL.match(content) is not None


def task_of(source: str | None, content: str, event_ids: Sequence[str], builds: Sequence[str]) -> str | None:
    """Return what names the task that a memory tells a trial of; None if it tells of none, or of several.

    The record's name for it, and what was to be done: another file may call another task the same. A user who is simulated
    asks for the same in other words each time, so in a conversation the name alone counts.
    """
    if source != _SOURCE or not is_trial(content):
        return None
    names = {_ATTEMPT.sub("", _within(event, builds)) for event in event_ids}
    if len(names) != 1:
        return None
    name = names.pop()
    about, told = told_in(content)
    return name if "What was done" in told else f"{name}\x1f{about}"


def task_of_row(row: Row) -> str | None:
    """Return `task_of` a row."""
    return task_of(
        row.get("source"), row["content"], row.get("source_event_ids", ()), row.get("evidence_build_ids", ())
    )


def _within(event: str, builds: Sequence[str]) -> str:
    """Return an event's name within its build."""
    return next((event[len(build) + 1 :] for build in builds if event.startswith(f"{build}/")), event)


def told_in(content: str) -> tuple[str, dict[str, str]]:
    """Return what a trial was at, and what is told of it, by name."""
    about, *parts = _PART.split(_TRIAL.sub("", content, count=1))
    return about.strip(), dict(zip(parts[::2], parts[1::2], strict=True))


def asked_and_learned(content: str) -> str:
    """Return what was asked in a trial and what was learned, without what was done."""
    about, told = told_in(content)
    return " ".join([about, *(text for text in told.values() if not _TOOLS.match(text))])


def of_trials(rows: Sequence[Row], seen: str, solved: Sequence[Row] | None) -> str:
    """Tell of one task's trials: which, what came of them, what stopped them, and what solved it or the lesson.

    Parameters
    ----------
    rows : sequence of Row
        Trials with the same end, the most typical first.
    seen : str
        How often, as `generalise.counted` says it.
    solved : sequence of Row or None
        Of failed trials those of the same task that solved it; None: there are some, and they must not be told.
    """
    lead = _TRIAL.match(rows[0]["content"])
    assert lead is not None  # noqa: S101 (they are trials)
    told = [told_in(row["content"]) for row in rows]
    name = told[0][0].rstrip(".")
    is_name = (
        len(name.split()) <= _WORDS_OF_A_NAME and len(name) <= _LONGEST_NAME and not name.endswith(("?", "!", "…"))
    )
    failed = len({build for row in rows for build in row.get("evidence_build_ids", ())})
    head = _head(lead[1], seen, f" of {name}" if is_name else "", solved, failed)
    asked = [] if is_name else requests(in_general(sentences_of(told[0][0])), room=_REQUEST_CHARS)
    found = [f"{head}: “{' '.join(asked)}”" if asked else f"{head}."]
    acted_on = _lesson([told_in(row["content"])[1].get("What it acted on", "") for row in solved or ()])
    acted_on = [one for one in acted_on if is_advice(one)] or acted_on
    label = "Lesson" if any("Lesson" in parts for _, parts in told) else "What it acted on"
    by_evidence = sorted(rows, key=lambda row: -len(row.get("evidence_build_ids", ())))
    said = _lesson([told_in(row["content"])[1].get(label, "") for row in by_evidence])
    happened = [one for one in said if not is_advice(one)]
    if is_name and len(said) > 1 and said[:1] == happened:
        found, said = [f"{head}: “{happened[0]}”"], said[1:]
    if acted_on and concrete(acted_on) == acted_on:
        found.append(f"The trial that solved it acted on this: “{' '.join(acted_on)}”")
    elif said:
        found.append(f"{'The lesson' if label == 'Lesson' else 'What was acted on'}: “{' '.join(said)}”")
    found += _called([parts for _, parts in told], [told_in(row["content"])[1] for row in solved or ()])
    errors = Counter(ended(without_numbers(parts["Last error"])) for _, parts in told if "Last error" in parts)
    found += [f"An error on the way: {error}" for error, _ in errors.most_common(1)]
    while len(" ".join(found)) > MAX_CONTENT_CHARS and len(found) > 1:
        found.pop()
    return cut(" ".join(found), MAX_CONTENT_CHARS)


def _head(lead: str, seen: str, of: str, solved: Sequence[Row] | None, failed: int) -> str:
    if lead != _FAILED:
        return f"Solved {seen}{of}{'' if lead == 'Solved' else ', after it had failed'}"
    if solved is None:
        return f"Failed {seen}{of}"
    return f"Failed {seen}{of}, solved in {_which(solved, failed)}" if solved else f"Never solved {seen}{of}"


def _which(solved: Sequence[Row], failed: int) -> str:
    """Return which trials solved it: the numbers of those that nobody dated, and whether others failed after them, else how many."""
    builds = {build for row in solved for build in row.get("evidence_build_ids", ())}
    numbers = sorted({number for row in solved if (number := _number(row)) is not None})
    if len(numbers) == max(len(builds), len(solved)):
        is_last = numbers[-1] >= failed + len(numbers) - 1
        return enumerated([f"the {_ORDINALS[number]}" for number in numbers]) + ("" if is_last else ", not in the last")
    many = max(len(builds), len(solved))
    return "another" if many == 1 else f"{many:,} others"


def _number(row: Row) -> int | None:
    """Return which trial an undated one is, from 0: trial n is day n after 2000-01-01; None for a date, or a high number."""
    at = row.get("occurred_at") or ""
    number = date.fromisoformat(at[:10]).toordinal() - _FIRST_DAY if at.endswith(_MIDNIGHT) else -1
    return number if 0 <= number < len(_ORDINALS) else None


def _lesson(texts: Sequence[str]) -> list[str]:
    """Return one sentence or two of the first lesson that names something, rather than of those that fit any task."""
    lessons = [in_general(sentences_of(text)) for text in texts if text]
    said = next((own for lesson in lessons if (own := concrete(lesson))), lessons[0] if lessons else [])
    return most_central(said, room=_LESSON_CHARS)


def _called(failed: Sequence[dict[str, str]], solved: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield which tools were called: by the trial that solved it, else by those that there are."""
    for parts, what in ((solved, "What the solved trial called"), (failed, "What was called")):
        if names := list(dict.fromkeys(name for one in parts for name in _tools(one))):
            if len(names) >= _LEAST_TOOLS:
                yield f"{what}: {enumerated([f'`{name}`' for name in names])}."
            return


def _tools(told: dict[str, str]) -> list[str]:
    tools = _TOOLS.match(told.get("What was done", ""))
    return tools[1].split(", ") if tools else []
