"""The history of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from memgraph.fold.history import History, history_of
from memgraph.journal.envelope import Event
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.store.projection.bulk import no_collections

_STEP = 500
"""Number of events after which progress is reported."""


def read_history(
    store: AgentMemoryStore, *, details_of: Collection[str] = (), progress: Progress | None = None
) -> History:
    """Return what a store's journal says happened, with relevance and links of some memories; costs one pass over it.

    Parameters
    ----------
    progress : callable, optional
        Called with the number of events read and of all events.
    """
    store.reader.settle()
    events = store.reader.events_after(0)
    with no_collections():
        return history_of(
            events if progress is None else _watched(events, store.reader.index.offset.seq, progress),
            details_of=details_of,
        )


def _watched(events: Iterable[Event], total: int, progress: Progress) -> Iterator[Event]:
    for done, event in enumerate(events):
        if done % _STEP == 0:
            progress(done, total)
        yield event
    progress(total, total)
