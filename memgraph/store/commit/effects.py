"""What the present operation may write: one that only reads leaves records of the reading, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memgraph.errors import ReadOnlyError
from memgraph.model.events.payload import Payload
from memgraph.model.events.recalls import AccessAudited, AccessRecorded, RetrievalRecorded

RECORDS_OF_READING: tuple[type[Payload], ...] = (AccessRecorded, RetrievalRecorded, AccessAudited)
_reads_only: ContextVar[bool] = ContextVar("reads_only", default=False)


@contextmanager
def reading_only() -> Iterator[None]:
    """Reject all that this thread writes in the block except `RECORDS_OF_READING`."""
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
            if not isinstance(payload, RECORDS_OF_READING):
                raise ReadOnlyError(
                    f"an operation that only reads was about to write {payload.TYPE}; nothing was written"
                )
