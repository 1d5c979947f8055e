"""Models that a store uses: which one embeds, the server of another, the cost of calls and the budget of one run."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from memgraph.errors import BudgetSpentError
from memgraph.model.base import Address, Count, Model, Name, Text

_OLLAMA_MODEL = re.compile(r"ollama:[\w.:/@-]{1,200}")


def _known_model(name: str) -> str:
    if name in {"minilm", "none"} or _OLLAMA_MODEL.fullmatch(name):
        return name
    raise ValueError("must be minilm, none or ollama:NAME, such as ollama:nomic-embed-text")


EmbeddingModel = Annotated[Name, AfterValidator(_known_model)]
"""The name of an embedding model, as in the setting ``embedding_model``."""


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


class ChatServer(Model):
    """An OpenAI-compatible server and its model. Its key is no setting: it comes from the environment."""

    base_url: Address = Field(
        default="", description="Address of the OpenAI-compatible server, such as http://127.0.0.1:8000/v1."
    )
    model: Text = Field(default="", description="The model that extracts memories, by its name on that server.")
    timeout_s: float = Field(
        default=60.0, gt=0.0, allow_inf_nan=False, description="Timeout of a request to that server, in seconds."
    )
    context_tokens: int = Field(
        default=8192,
        ge=2048,
        le=1_048_576,
        description="Context length of the model in tokens, prompt and answer together; longer logs are shortened to fit.",
    )


class ModelUsage(Model):
    """The model calls of a run."""

    calls: Count = 0
    prompt_tokens: Count = 0
    """Tokens that the models read, as reported by them, else estimated."""
    completion_tokens: Count = 0
    """Tokens that the models wrote, as reported by them, else estimated."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """Time spent waiting for models."""
    failures: Count = 0
    spent: bool = False
    """Whether a call was refused because the budget was used up."""
    models: list[str] = Field(default_factory=list)
    """The models that were called, with their servers, such as ``ollama/llama3.2``."""

    def __add__(self, other: ModelUsage) -> ModelUsage:
        """Return the sum of both."""
        return ModelUsage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
            failures=self.failures + other.failures,
            spent=self.spent or other.spent,
            models=list(dict.fromkeys([*self.models, *other.models])),
        )


@dataclass(slots=True)
class CallTokens:
    """The tokens of one call, set by the caller."""

    prompt: int = 0
    completion: int = 0


class UsageMeter:
    """Counts the model calls of a run against a budget; `check` raises once it is used up. Embedding is never refused. Thread-safe."""

    def __init__(self, budget: ModelBudget | None = None) -> None:
        self.budget = budget or ModelBudget()
        self._lock = threading.Lock()
        self._usage = self._of_stage = ModelUsage()

    @property
    def usage(self) -> ModelUsage:
        """Usage since the run began."""
        return self._usage

    @property
    def of_stage(self) -> ModelUsage:
        """Usage since the run's last stage began."""
        return self._of_stage

    def restart(self) -> None:
        """Begin a new run, and its first stage."""
        with self._lock:
            self._usage = self._of_stage = ModelUsage()

    def begin_stage(self) -> None:
        """Begin a new stage of the run, with the rest of the budget."""
        with self._lock:
            self._of_stage = ModelUsage()

    def check(self) -> None:
        """Raise a `BudgetSpentError` that names the limit if the budget is used up."""
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
    def call(self, model: str) -> Iterator[CallTokens]:
        """Count the block as one call of a model; a block that raises counts as failed."""
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
                models=[model],
            )
            self._add(used)

    def _add(self, used: ModelUsage) -> None:
        with self._lock:
            self._usage += used
            self._of_stage += used
