"""The message of a refusal, for people and programs outside Python."""

from __future__ import annotations

from memgraph.errors import InvalidInputError, MemGraphError


def message_of(error: MemGraphError) -> str:
    """Return an error's message without the secrets of the value that was refused."""
    from memgraph.extraction.secrets import redact, redact_any

    if isinstance(error, InvalidInputError) and error.value is not None:  # redact first: the message shortens the value
        value = redact_any(error.value)
        if value.number:
            error = InvalidInputError(error.problem, field=error.field, value=value.value)
    return redact(str(error)).value
