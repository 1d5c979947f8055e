"""Structured questions to a language model; an invalid reply is asked for once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from memgraph.errors import ProviderError
from memgraph.ports import LanguageModel

_MAX_PROBLEM_CHARS = 300
_MAX_REPEATED_CHARS = 2_000

_T = TypeVar("_T")


def answer(
    model: LanguageModel,
    messages: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    read: Callable[[Any], _T],
) -> _T:
    """Return the model's reply, as converted by `read`.

    Parameters
    ----------
    read : callable
        Takes the reply, parsed as JSON, and raises a `ValueError` that describes what is wrong with it. The model is
        then asked once more, with that description.

    Raises
    ------
    ProviderError
        The model fails, or both replies are invalid.
    BudgetSpentError
        The budget is spent.
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
