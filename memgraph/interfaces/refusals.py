"""What a door says of an error, for people and programs outside Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memgraph.errors import (
    InvalidInputError,
    MemGraphError,
    MissingExtraError,
    NotFoundError,
    QueryError,
    SourceError,
)

_FRAMEWORKS = frozenset({"anthropic", "google", "langchain_core", "langgraph", "llama_index", "pydantic_ai"})
_ABOUT_WHAT_WAS_GIVEN = (InvalidInputError, NotFoundError, QueryError)
_ABSOLUTE = re.compile(r"(?<![\w./:-])(?:[A-Za-z]:)?[\\/](?:[^\s\\/'\":;,]+[\\/])*([^\s\\/'\":;,]+)")


@contextmanager
def one_source(path: Path) -> Iterator[None]:
    """Turn whatever fails in reading a source, except the store itself, into a `SourceError`: one source never stops the others."""
    try:
        yield
    except Exception as error:
        is_explained = isinstance(error, (MemGraphError, OSError))
        if is_explained and not isinstance(error, InvalidInputError):
            raise
        failed = f"an error in memgraph ({type(error).__name__}) kept it from being read; the next run tries it again"
        raise SourceError(message_of(error) if is_explained else failed, path=path) from error


@contextmanager
def needing(package: str, *, extra: str) -> Iterator[None]:
    """Import what a framework's adapter needs of that framework.

    Raises
    ------
    MissingExtraError
        The package is not installed; the message says how to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _FRAMEWORKS:
            raise
        raise MissingExtraError(f"Adapters of {extra}", package=package, extra=extra) from None


def remote_message_of(error: BaseException) -> str:
    """Return an error's message for somebody on another machine: as `message_of`, and without the directories of this one."""
    message = message_of(error)
    if isinstance(error, _ABOUT_WHAT_WAS_GIVEN):
        return message
    for path in filter(None, (getattr(error, "path", None), getattr(error, "filename", None))):
        message = message.replace(str(path), "a file of the store")
    return _ABSOLUTE.sub(r"\1", message)


def message_of(error: BaseException) -> str:
    """Return an error's message without the secrets of the value that was refused.

    The message of an error that nobody expected is left out: it may quote memories.
    """
    from memgraph.extraction.secrets import redact, redact_any

    if isinstance(error, OSError) and not isinstance(error, MemGraphError):
        where = f"{error.filename}: " if error.filename else ""
        return redact(f"{where}{error.strerror or error}").value
    if not isinstance(error, MemGraphError):
        return (
            f"failed unexpectedly ({type(error).__name__}): an error in memgraph. Go on without it; "
            "`memgraph doctor` examines the store"
        )
    if isinstance(error, InvalidInputError) and error.value is not None:  # redact first: the message shortens the value
        value = redact_any(error.value)
        if value.number:
            error = InvalidInputError(error.problem, field=error.field, value=value.value)
    return redact(str(error)).value
