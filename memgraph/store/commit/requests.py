"""The present request: whether it only reads, and the names of its commits.

By these a client that lost the answer can learn whether its request was carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from uuid import UUID, uuid5

from memgraph.errors import ReadOnlyError
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import EmbeddingSwitched

_reads_only: ContextVar[bool] = ContextVar("reads_only", default=False)
_MOST_COMMITS = 256
"""Commits of one request that are looked for. A request that made more has made one of the first."""
_names: ContextVar[Iterator[str] | None] = ContextVar("commit_ids", default=None)


@contextmanager
def reading_only() -> Iterator[None]:
    """Reject all that this thread writes in the block except records of reading."""
    token = _reads_only.set(True)
    try:
        yield
    finally:
        _reads_only.reset(token)


def check_effect(payloads: Iterable[Payload]) -> None:
    """Reject what an operation that only reads must not write."""
    if _reads_only.get():
        for payload in payloads:
            if not payload.POLICY.is_of_reading:
                raise ReadOnlyError(
                    f"an operation that only reads was about to write {payload.TYPE}; nothing was written"
                )


def next_commit_id() -> str | None:
    """Return the id of the next commit of the present request; None outside a request: the journal then draws one."""
    names = _names.get()
    return None if names is None else next(names)


class Requests:
    """Names the commits of requests, and finds them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def seq(self) -> int:
        """Number of the last event that this process has seen: a new request's commits come later."""
        return self._journal.tail.seq

    @contextmanager
    def naming(self, request_id: str) -> Iterator[None]:
        """Derive the ids of the commits that this thread makes in the block from the id of a request, a UUID used for it alone."""
        token = _names.set(_commit_ids(request_id))
        try:
            yield
        finally:
            _names.reset(token)

    def made_by(self, request_id: str, *, after: int) -> list[Event]:
        """Return the events of a request's commits, in order, but for records of reading and of the embedding in use. Reads the events after `after`."""
        names = _commit_ids(request_id)
        wanted = {next(names) for _ in range(_MOST_COMMITS)}
        events = (one for one in self._journal.events_after(after) if one.commit_id in wanted)
        return [
            one
            for one in events
            if not (one.payload.POLICY.is_of_reading or isinstance(one.payload, EmbeddingSwitched))
        ]


def _commit_ids(request_id: str) -> Iterator[str]:
    space = UUID(request_id)
    return (str(uuid5(space, str(number))) for number in count())
