"""Methods of the store that its parts carry out."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def delegated(part: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that delegates to a part of the open store, with the same signature and docstring."""

    @wraps(method)
    def carried_out(store: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store._check_open()  # noqa: SLF001 - a method of the store
        return method(getattr(store, part), *args, **kwargs)

    return carried_out
