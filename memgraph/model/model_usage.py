"""What asking a model costs, and how much of that one run may spend."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from memgraph.errors import BudgetSpentError
from memgraph.model.base import Count, Model


class ModelBudget(Model):
    """Limits on the use of a model server in one run (one ingestion of sources, or one consolidation of a log)."""

    calls: Count = Field(default=100, description="Maximum number of requests to a model server in one run.")
    tokens: Count = Field(default=200_000, description="Maximum number of prompt and completion tokens in one run.")
    seconds: float = Field(
        default=300.0,
        ge=0.0,
        allow_inf_nan=False,
        description="Maximum time spent waiting for models in one run, in seconds.",
    )


class ModelUsage(Model):
    """What a run has asked of models' servers.

    Attributes
    ----------
    calls, failures : int
        Requests, and how many of them failed.
    prompt_tokens, completion_tokens : int
        Read and written by the models, as they say themselves; estimated where they do not say.
    seconds : float
        Waited for them.
    spent : bool
        Whether the budget was used up and a call refused because of it.
    """

    calls: Count = 0
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    failures: Count = 0
    spent: bool = False

    def __add__(self, other: ModelUsage) -> ModelUsage:
        """Return both together."""
        return ModelUsage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
            failures=self.failures + other.failures,
            spent=self.spent or other.spent,
        )


@dataclass(slots=True)
class CallTokens:
    """The tokens of one call, to be filled in by whoever makes it."""

    prompt: int = 0
    completion: int = 0


class UsageMeter:
    """Counts what is asked of models in a run, against a budget. May be shared, and used from several threads.

    Whoever generates text asks `check` first and is refused once the budget is used up: the last call that is let through may
    overdraw it. Embedding is counted too but never refused: without its vector a memory is worth less.

    Parameters
    ----------
    budget : ModelBudget, optional
    """

    def __init__(self, budget: ModelBudget | None = None) -> None:
        self.budget = budget or ModelBudget()
        self._lock = threading.Lock()
        self._usage = self._of_stage = ModelUsage()

    @property
    def usage(self) -> ModelUsage:
        """What was used since the run began."""
        return self._usage

    @property
    def of_stage(self) -> ModelUsage:
        """What was used since the run's last stage began."""
        return self._of_stage

    def restart(self) -> None:
        """Begin a new run, and its first stage."""
        with self._lock:
            self._usage = self._of_stage = ModelUsage()

    def begin_stage(self) -> None:
        """Begin a new stage of the run, which goes on with what is left of the budget."""
        with self._lock:
            self._of_stage = ModelUsage()

    def check(self) -> None:
        """Refuse a call if the budget is used up.

        Raises
        ------
        BudgetSpentError
            It is; says of what.
        """
        used, budget = self._usage, self.budget
        for name, amount, most in (
            ("calls", used.calls, budget.calls),
            ("tokens", used.prompt_tokens + used.completion_tokens, budget.tokens),
            ("seconds", used.seconds, budget.seconds),
        ):
            if amount >= most:
                self._add(ModelUsage(spent=True))
                raise BudgetSpentError(name, most=most)

    @contextmanager
    def call(self) -> Iterator[CallTokens]:
        """Count one call around a block; one that raises has failed."""
        tokens, failures, started = CallTokens(), 1, time.monotonic()
        try:
            yield tokens
            failures = 0
        finally:
            used = ModelUsage(
                calls=1,
                prompt_tokens=tokens.prompt,
                completion_tokens=tokens.completion,
                seconds=time.monotonic() - started,
                failures=failures,
            )
            self._add(used)

    def _add(self, used: ModelUsage) -> None:
        with self._lock:
            self._usage += used
            self._of_stage += used
