"""What the views read of a store: its history, and which memories may be shown (see `memgraph.store.access.visibility`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from memgraph.fold.history import History, history_of
from memgraph.journal.envelope import Event
from memgraph.model.timestamps import epoch_days
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import shown
from memgraph.store.rows import no_collections
from memgraph.viz.periods import bounds

_STEP = 500
"""Number of events after which progress is reported."""


def read_history(
    store: AgentMemoryStore, *, details_of: Collection[str] = (), progress: Progress | None = None
) -> History:
    """Return what a store's journal says happened, with relevance and links of some memories; costs one pass over it."""
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


def shown_ids(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
) -> list[str]:
    """Return the ids of at most `limit` memories that may be shown, the most relevant first, without reading them.

    What they describe happened from `since` to `until` (ISO 8601; a date as `until` includes the whole day). `include` names states to
    show in addition: ``suppressed``, ``archived``, ``sensitive``, ``private``.
    """
    first, last = (epoch_days(time) for time in bounds(since, until))
    with store.reader.frozen():
        mask = shown(store.reader, project_id=project_id, include=include)
        days = store.reader.index.column("occurred_days")
        return store.reader.ranked_ids(mask & (days >= first) & (days <= last), limit=limit)
