"""An attempt and its result: typed fields of an episode, from which `memgraph.text.attempts` renders its text."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from memgraph.model.base import MAX_ITEMS, Count, Name, Strict, Text

Worked = Literal["instead", "edit", "after", "again"]
"""How what had failed came to work: another command, an edit, another command before it, or another run of the same."""


class AttemptFields(BaseModel):
    """An attempt at something: a whole trial of a task (`asked`), or a step of a session or build (`tried`).

    Attributes
    ----------
    asked, tried : str or None
        The task, as it was asked: of a trial only. The command, task or edit that failed: commands in backticks, tasks in quotation marks.
    attempt, attempts : int or None
        The number of the attempt, as its source counts them, and how many there were.
    acted_on : str or None
        The earlier lesson that this attempt acted on.
    worked, worked_how : str or None
        What worked in the end, and in which way.
    explained : str or None
        The explanation given by the one who made the attempt.
    """

    asked: Text | None = None
    tried: Text | None = None
    attempt: Count | None = None
    attempts: Count | None = None
    lesson: Text | None = None
    acted_on: Text | None = None
    tools_called: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(default_factory=list)
    calls: Count | None = None
    failed_calls: Count | None = None
    worked: Text | None = None
    worked_how: Worked | None = None
    last_error: Text | None = None
    explained: Text | None = None
    result: Text | None = None


class Attempt(Strict, AttemptFields):
    """The same fields by themselves: what a rule found."""


ATTEMPT_FIELDS = frozenset(AttemptFields.model_fields)


def no_attempt() -> dict[str, object]:
    """Return the values of all fields where there was no attempt."""
    fields = AttemptFields.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields}
