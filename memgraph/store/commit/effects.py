"""What the present operation may write: one that only reads leaves records of the reading, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memgraph.errors import ReadOnlyError
from memgraph.model.events.payload import Payload

_reads_only: ContextVar[bool] = ContextVar("reads_only", default=False)


@contextmanager
def reading_only() -> Iterator[None]:
    """Reject all that this thread writes in the block except records of reading."""
    token = _reads_only.set(True)
    try:
        yield
    finally:
        _reads_only.reset(token)


def check_effect(payloads: Iterable[Payload]) -> None:
    """Reject what an operation that only reads must not write.

    Raises
    ------
    ReadOnlyError
        Names the first such event. Nothing is written.
    """
    if _reads_only.get():
        for payload in payloads:
            if not payload.POLICY.is_of_reading:
                raise ReadOnlyError(
                    f"an operation that only reads was about to write {payload.TYPE}; nothing was written"
                )
