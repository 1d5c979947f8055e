"""Turns: what a message was taken for, what was decided, what is asked, and the settings of that."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from memgraph.model.base import MAX_COUNT, MAX_ITEMS, Count, Model, Name, Strict, Text, Timestamp, Unit
from memgraph.model.ids import MemoryId

Guidance = Literal["minimal", "supportive"]
NudgeKind = Literal["conflict", "ambiguity", "topic_switch"]
Decision = Literal[
    "nothing_inferred", "same_task", "switched", "autoswitch_off", "low_confidence", "ambiguous", "guarded"
]
Language = Literal["de", "en", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "sv", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
_Number = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class TurnSettings(Model):
    """What a turn may decide by itself. Whether a session may switch tasks is no setting: its user decides that for each session."""

    switch_confidence: Unit = Field(
        default=0.75, description="Confidence from which a turn may switch the task of a session with autoswitch."
    )
    max_switches_back: Count = Field(
        default=3,
        description="Number of switches straight back to the task that was left, each within ten minutes, that hold autoswitch back.",
    )
    max_mismatches: Count = Field(
        default=3,
        description="Number of turns in a row whose message seems to belong to another task that hold autoswitch back.",
    )
    confirmation_languages: list[Language] = Field(
        default_factory=lambda: list(LANGUAGES), description="Languages in which short messages such as “yes” confirm."
    )
    confirmations: list[Name] = Field(default_factory=list, description="Further messages that confirm.")


class TaskMatch(Strict):
    """A task that a message may belong to, and how sure that is, from 0 to 1."""

    task_id: Name
    title: Name
    confidence: Unit


class NudgeOption(Strict):
    """An answer to a question.

    Attributes
    ----------
    key : str
        What to type: ``1``, ``2``, ….
    command : str or None
        The command that does it; None: nothing is to be run.
    """

    key: Name
    label: Text
    command: Text | None = None


class Nudge(Strict):
    """A question to the user. Nothing happens unless one of its commands is run.

    Attributes
    ----------
    kind : {"conflict", "ambiguity", "topic_switch"}
        The message asks for what a constraint forbids; it matches several tasks; it matches another task than the current one.
    about : list of str
        Ids of the constraint or memory, or of the tasks.
    """

    kind: NudgeKind
    question: Text
    options: Annotated[list[NudgeOption], Field(min_length=2, max_length=MAX_ITEMS)]
    about: list[Name]


class TurnCounters(Strict):
    """The counters that hold autoswitch back when they reach their limits (settings ``turns``)."""

    switches_back: _Number
    max_switches_back: _Number
    mismatches: _Number
    max_mismatches: _Number


class TurnConfirmation(Strict):
    """A confirmation that was committed as ``USER_CONFIRMED``.

    Attributes
    ----------
    confirmed : str or None
        What was confirmed, if that is known.
    seq : int
        The event.
    """

    task_id: Name
    message: Text
    confirmed: Text | None = None
    seq: Annotated[int, Field(ge=1)]


class TurnControl(Strict):
    """What a turn decided: the turn-control record of seed 4. Other versions and unknown fields are refused.

    Attributes
    ----------
    version : int
        Of this record: 1.
    seq : int
        The journal's last event when the turn was over: the state that the record is about.
    inferred_task, confidence : str or None, float
        The task that the message seems to belong to; from 0 to 1.
    ambiguous : list of TaskMatch
        The tasks that match about equally well, the best first; empty if one stands out.
    active_task, resolved_task : str or None
        The current task before the turn and after it. They differ only if the decision is ``switched``.
    autoswitch : bool
        Whether the session's user allowed it to switch.
    guidance : {"minimal", "supportive"}
        How much the session asks.
    decision : str
        Why the task was switched, or was not.
    """

    version: Literal[1]
    session_id: Name
    turn_id: MemoryId
    seq: Annotated[int, Field(ge=0)]
    at: Timestamp
    inferred_task: Name | None = None
    confidence: Unit
    ambiguous: list[TaskMatch] = Field(default_factory=list)
    active_task: Name | None = None
    resolved_task: Name | None = None
    autoswitch: bool
    guidance: Guidance
    decision: Decision
    nudge: Nudge | None = None
    counters: TurnCounters
    confirmations: list[TurnConfirmation] = Field(default_factory=list)
