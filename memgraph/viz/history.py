"""The history of a store."""

from __future__ import annotations

from collections.abc import Collection

from memgraph.fold.history.lives import History
from memgraph.fold.history.reading import history_of
from memgraph.store import AgentMemoryStore
from memgraph.store.projection.bulk import no_collections


def read_history(store: AgentMemoryStore, *, details_of: Collection[str] = ()) -> History:
    """Return what a store's journal says happened, with relevance and links of some memories; costs one pass over it."""
    store.reader.settle()
    with no_collections():
        return history_of(store.reader.events_after(0), details_of=details_of)
