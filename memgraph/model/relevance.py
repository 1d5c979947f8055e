"""The forgetting curve: relevance as a pure function of an anchor and the clock (Ebbinghaus; seed 0, design §4)."""

from __future__ import annotations

from math import exp, log
from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import Model, Unit

ConfidenceLabel = Literal["clear", "recall", "vague", "none"]

LABEL_TEXT: dict[ConfidenceLabel, str] = {
    "clear": "I have a clear memory of this",
    "recall": "I recall something similar",
    "vague": "I vaguely remember",
    "none": "I don't think we've tried this before",
}


Rate = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class ForgettingCurveConfig(Model):
    """How fast memories fade and what reinforces them.

    Attributes
    ----------
    decay_rate : float
        Episodic rate per day, not negative (seed 0: 0.05).
    knowledge_decay_rate : float
        Rate per day of semantic and procedural memories (seed 2: 5 % a week, −ln 0.95 / 7).
    deletion_threshold : float
        Below it a memory may be collected.
    reinforcement_boost : float
        Added to relevance by an access.
    max_relevance : float
        Ceiling of any relevance, in (0, 5].
    """

    decay_rate: Rate = Field(default=0.05, description="How fast memories of what happened fade, per day.")
    knowledge_decay_rate: Rate = Field(
        default=-log(0.95) / 7, description="How fast other memories fade, per day (the default: 5 % a week)."
    )
    deletion_threshold: Unit = Field(default=0.1, description="Below this relevance a memory may be collected.")
    reinforcement_boost: Unit = Field(default=0.2, description="What a use adds to relevance.")
    max_relevance: Annotated[float, Field(gt=0.0, le=5.0, allow_inf_nan=False)] = Field(
        default=1.0, description="No relevance goes beyond this."
    )

    def rate(self, memory_type: str) -> float:
        """Return the daily rate for a memory type."""
        return self.decay_rate if memory_type == "episodic" else self.knowledge_decay_rate


def decayed(anchor: float, days: float, *, rate: float, is_pinned: bool = False, floor: float = 0.0) -> float:
    """Relevance after `days` without reinforcement: ``max(floor, anchor · exp(−rate · days))``, pinned ⇒ 1.0.

    Nothing compounds: the anchor never moves by the passing of time, so asking twice gives one answer.
    """
    if is_pinned:
        return 1.0
    return max(floor, anchor * exp(-rate * max(0.0, days)))


def confidence_label(relevance: float) -> ConfidenceLabel:
    """Word for a relevance: clear from 0.8, recall from 0.5, vague from 0.2, none below (seed 0)."""
    if relevance >= 0.8:
        return "clear"
    if relevance >= 0.5:
        return "recall"
    return "vague" if relevance >= 0.2 else "none"
