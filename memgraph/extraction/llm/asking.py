"""Structured questions to a language model within a budget; an invalid reply is asked for once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from memgraph.errors import ProviderError
from memgraph.model.model_usage import UsageMeter
from memgraph.ports import CountingLanguageModel, LanguageModel, ModelReply, TokenCounter

_MAX_PROBLEM_CHARS = 300
_MAX_REPEATED_CHARS = 2_000

_T = TypeVar("_T")


def answer(
    model: LanguageModel,
    messages: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    read: Callable[[Any], _T],
) -> _T:
    """Return the model's reply, parsed as JSON and converted by `read`, which raises a `ValueError` that describes what is wrong with it.

    The model is then asked once more, with that description; a second invalid reply is a `ProviderError`.
    """
    reply = model.complete(messages, schema)
    try:
        return read(_parsed(reply))
    except ValueError as error:
        problem = _one_line(error)
    again = [
        *messages,
        {"role": "assistant", "content": reply[:_MAX_REPEATED_CHARS]},
        {"role": "user", "content": f"That cannot be used: {problem}. Reply again, with JSON that fits the schema and nothing else."},
    ]  # fmt: skip
    try:
        return read(_parsed(model.complete(again, schema)))
    except ValueError as error:
        said = f"{name_of(model)} returned two unusable answers"
        raise ProviderError(said, model=name_of(model), server_says=_one_line(error)) from error


def name_of(model: LanguageModel) -> str:
    """Return a model's name, if it has one."""
    return str(getattr(model, "name", "the model"))


def _parsed(reply: str) -> Any:
    try:
        return orjson.loads(reply)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None


def _one_line(error: ValueError) -> str:
    return " ".join(str(error).split())[:_MAX_PROBLEM_CHARS]


def cautious_tokens(text: str) -> int:
    """Return a cautious estimate of a text's tokens: one per three bytes, because logs and code are dense."""
    return -(-len(text.encode("utf-8", "replace")) // 3)


class Budgeted:
    """Calls a language model, counts its tokens (or estimates what it does not count), and stops when the budget is spent."""

    def __init__(
        self, model: LanguageModel, *, meter: UsageMeter | None = None, counter: TokenCounter = cautious_tokens
    ) -> None:
        self._model = model
        self.meter = meter or UsageMeter()
        self._counter = counter

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(getattr(self._model, "name", type(self._model).__name__))

    def complete(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> str:
        """Return the reply's text. A failed call counts as a call."""
        self.meter.check()
        with self.meter.call(self.name) as tokens:
            if isinstance(self._model, CountingLanguageModel):
                reply = self._model.reply(messages, schema)
            else:
                reply = ModelReply(self._model.complete(messages, schema), None, None)
            prompt, completion = reply.prompt_tokens, reply.completion_tokens
            tokens.prompt = sum(self._counter(one["content"]) for one in messages) if prompt is None else prompt
            tokens.completion = self._counter(reply.text) if completion is None else completion
        return reply.text
