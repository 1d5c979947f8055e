"""Reader of Reflexion on MBPP (JSON lines): a problem is a build, each attempt a task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.extraction.readers.documents import JsonSource, Part, part_of, reason, run_id
from memgraph.extraction.readers.source import (
    MAX_OUTPUT_CHARS,
    MAX_SAID_CHARS,
    SourceRecord,
    cleaned,
    named,
    one_line,
    undated,
)
from memgraph.extraction.readers.trials.trial_reader import AGENT, TrialReader, trial_fields, with_unread
from memgraph.model.build import BuildTask
from memgraph.text import lazy_re as re

_DOCSTRING = re.compile(r'("""|\'\'\')\s*(.{1,2000}?)\s*\1', re.DOTALL)
_MAX_ATTEMPTS = 1_000


class MbppReader(TrialReader):
    """Reads programming problems with a reflection after each failed attempt.

    There is one more attempt than reflections: each reflection is the lesson of the attempt before it and the reasoning
    of the one after it, and ``is_solved`` is the outcome of the last attempt. Attempt `k` counts as day `k`.

    Parameters
    ----------
    path : path-like
        JSON lines, or an array.
    project_id : str, optional
        Default: ``mbpp``.
    """

    kind = "mbpp"

    def count(self) -> int | None:
        """Return the number of problems, if the file consists of lines."""
        return JsonSource(self._path).count()

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per problem; see `Reader.records`."""
        return JsonSource(self._path).entries(cursor, self._built, noun="problem")

    def _built(self, data: Any, place: str) -> Part:
        problem = named(data.get("name") or data.get("task_id"), "") if isinstance(data, dict) else ""
        if not problem or not isinstance(data.get("is_solved"), bool):
            return Part(None, 1, f"{place}: not a problem with a name and is_solved")
        try:
            tasks = list(_attempts(problem, data))
            build_id = run_id(problem if problem.startswith("mbpp") else f"mbpp-{problem}", data)
        except (InvalidInputError, RecursionError) as error:
            return Part(None, 1, f"{place}: {reason(error)}")
        fields = trial_fields(build_id, self.project_id, tasks, first=0, last=len(tasks) - 1)
        part = part_of(place, {**fields, "build_outcome": tasks[-1].outcome})
        return with_unread(part, place, data, "reflections", "implementations", "test_feedback")


def _attempts(problem: str, data: dict[str, Any]) -> Iterator[BuildTask]:
    reflections = _texts(data.get("reflections"), MAX_SAID_CHARS)
    implementations = _texts(data.get("implementations"), MAX_OUTPUT_CHARS)
    feedback = _texts(data.get("test_feedback"), MAX_OUTPUT_CHARS)
    last = min(max(len(reflections), len(implementations) - 1), _MAX_ATTEMPTS)
    asked = _asked(problem, data.get("prompt"))
    for number in range(last + 1):
        is_solved = number == last and data["is_solved"]
        code = _at(implementations, number) or (
            cleaned(data.get("solution"), MAX_OUTPUT_CHARS) if number == last else ""
        )
        yield BuildTask(
            task_id=f"{problem}:attempt-{number}",
            agent_name=AGENT,
            description=asked,
            output=code if is_solved else _at(feedback, number) or code,
            outcome="success" if is_solved else "failure",
            reasoning=_at(reflections, number - 1) if number else "",
            lesson=_at(reflections, number) if not is_solved else "",
            occurred_at=undated(number),
            attempt=number,
            attempts=last + 1,
        )


def _asked(problem: str, prompt: object) -> str:
    text = cleaned(prompt, MAX_SAID_CHARS)
    match = _DOCSTRING.search(text)
    asked = one_line(match[2]) if match else one_line(text)
    return f"{problem}: {asked}" if asked else problem


def _texts(value: object, limit: int) -> list[str]:
    return [cleaned(text, limit) for text in value[:_MAX_ATTEMPTS]] if isinstance(value, list) else []


def _at(texts: list[str], number: int) -> str:
    return texts[number] if number < len(texts) else ""
