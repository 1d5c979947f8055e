"""What people and agents are told about an error, in every door."""

from __future__ import annotations

from memgraph.errors import InvalidInputError, MemGraphError


def message_of(error: MemGraphError | OSError) -> str:
    """Return an error's message without the secrets of the value that was refused."""
    from memgraph.extraction.secrets import redact, redact_any

    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return redact(f"{where}{error.strerror or error}").value
    if isinstance(error, InvalidInputError) and error.value is not None:  # redact first: the message shortens the value
        value = redact_any(error.value)
        if value.number:
            error = InvalidInputError(error.problem, field=error.field, value=value.value)
    return redact(str(error)).value
