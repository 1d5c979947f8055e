"""The forgetting curve: relevance as a pure function of an anchor and the clock (Ebbinghaus; seed 0, design §4)."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic.alias_generators import to_camel

from memgraph.model.base import Model, Unit

ConfidenceLabel = Literal["clear", "recall", "vague", "none"]

LABEL_TEXT: dict[ConfidenceLabel, str] = {
    "clear": "I have a clear memory of this",
    "recall": "I recall something similar",
    "vague": "I vaguely remember",
    "none": "I don't think we've tried this before",
}


Rate = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Preset = Literal["relevance", "strength"]

WEEKLY = -log(0.95) / 7
"""Rate per day that corresponds to fading by 5 % a week (seed 2)."""
_PRESETS: dict[str, dict[str, float]] = {
    "relevance": {},
    "strength": {
        "decay_rate": WEEKLY,
        "knowledge_decay_rate": WEEKLY,
        "reinforcement_boost": 0.1,
        "confirmation_boost": 0.5,
        "max_relevance": 5.0,
    },
}


class ForgettingCurveConfig(Model):
    """How fast memories fade and what reinforces them."""

    preset: Preset = Field(
        default="relevance",
        description="Defaults of the other values: relevance, with a maximum of 1; or strength, which fades slowly, grows with "
        "each access and has a maximum of 5.",
    )
    """Default values: ``relevance`` (seed 0), in [0, 1]; ``strength`` (seed 2): everything fades by 5 % a week, a use adds 0.1 and a confirmation
    0.5, up to 5."""
    decay_rate: Rate = Field(default=0.05, description="Exponential decay rate of episodic memories, per day.")
    """Seed 0's rate."""
    knowledge_decay_rate: Rate = Field(
        default=WEEKLY, description="Exponential decay rate of other memories, per day (default: 5 % per week)."
    )
    """Seed 2's rate: 5 % a week, −ln 0.95 / 7."""
    deletion_threshold: Unit = Field(default=0.1, description="Relevance below which a memory may be collected.")
    reinforcement_boost: Unit = Field(default=0.2, description="Relevance that an access adds.")
    confirmation_boost: Annotated[float, Field(ge=0.0, le=5.0, allow_inf_nan=False)] = Field(
        default=0.0, description="Relevance that a confirmation adds; 0: half of the difference to 1."
    )
    """Added by a merged duplicate; 0: relevance becomes ``(old + 1) / 2`` (seed 0)."""
    max_relevance: Annotated[float, Field(gt=0.0, le=5.0, allow_inf_nan=False)] = Field(
        default=1.0, description="Maximum relevance."
    )

    def rate(self, memory_type: str) -> float:
        """Return the daily rate for a memory type."""
        return self.decay_rate if memory_type == "episodic" else self.knowledge_decay_rate

    def confirmed(self, relevance: float) -> float:
        """Return the relevance after a memory is confirmed by repetition."""
        if not self.confirmation_boost:
            return (relevance + 1.0) / 2.0
        return min(relevance + self.confirmation_boost, max(relevance, self.max_relevance))

    @model_validator(mode="before")
    @classmethod
    def _of_preset(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        preset = data.get("preset")
        values: Mapping[str, Any] = {}
        if isinstance(preset, str):
            values = _PRESETS.get(preset, {})  # the field's validation refuses other values
        return {**{name: value for name, value in values.items() if to_camel(name) not in data}, **data}


def decayed(anchor: float, days: float, *, rate: float, is_pinned: bool = False, floor: float = 0.0) -> float:
    """Relevance after `days` without reinforcement: ``max(floor, anchor · exp(−rate · days))``, pinned ⇒ 1.0.

    Decay does not compound: time does not move the anchor, so repeated evaluation gives the same result.
    """
    if is_pinned:
        return 1.0
    return max(floor, anchor * exp(-rate * max(0.0, days)))


def confidence_label(relevance: float) -> ConfidenceLabel:
    """Return the label of a relevance: clear from 0.8, recall from 0.5, vague from 0.2, none below (seed 0)."""
    if relevance >= 0.8:
        return "clear"
    if relevance >= 0.5:
        return "recall"
    return "vague" if relevance >= 0.2 else "none"
