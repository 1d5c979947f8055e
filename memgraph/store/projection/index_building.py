"""Building of indexes: from all rows, or from an older index and the changes since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from memgraph.errors import GraphError
from memgraph.fold import Projection
from memgraph.fold.projection import digest_after
from memgraph.index.index import RELATION_CODE, Index, IndexOffset
from memgraph.journal.replay import Committed
from memgraph.model.events.erasure import MemoryPurged
from memgraph.model.events.memories import MemoryAdded, MemoryMerged, MemoryRevised
from memgraph.model.events.payload import Payload
from memgraph.model.events.recalls import AccessRecorded
from memgraph.model.events.reembedding import MemoryReembedded
from memgraph.ports import Change, GraphEngine, Key, Row

T = TypeVar("T")
_LINKLESS = (MemoryAdded, MemoryRevised, MemoryMerged, MemoryReembedded)
"""Events of a memory that do not change its links."""


def index_of(changes: Sequence[Change], projection: Projection) -> Index:
    """Return the index of a graph that contains only these changes."""
    index = Index()
    rows = sorted(
        (change.new for change in changes if change.table == "Memory" and change.new), key=lambda row: row["seq"]
    )
    links: list[tuple[str, Key]] = [(change.table, change.key) for change in changes if change.table in RELATION_CODE]
    index.build(rows, links)
    index.offset = offset_of(projection)
    return index


def index_from(engine: GraphEngine, projection: Projection) -> Index:
    """Return the index of a graph's whole content.

    Raises
    ------
    GraphError
        The graph's content does not match the projection's digest.
    """
    with engine.open():
        changes = [
            Change(table, key, None, row) for table in ("Memory", *RELATION_CODE) for key, row in engine.scan(table)
        ]
    if digest_after(0, changes) != projection.digest:
        raise GraphError("its memories and links do not match its digest")
    return index_of(changes, projection)


@dataclass(slots=True)
class Stale:
    """The memories that are out of date in an index.

    Attributes
    ----------
    used : dict
        All of them, in order.
    changed : set of str
        Those whose rows changed by more than their use.
    linked : set of str
        Those whose links may have changed.
    """

    used: dict[str, None] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    linked: set[str] = field(default_factory=set)

    def note(self, payload: Payload) -> None:
        """Record an event."""
        ids = payload.memory_ids()
        self.used.update(dict.fromkeys(ids))
        if not isinstance(payload, AccessRecorded):
            self.changed.update(ids)
            if not isinstance(payload, _LINKLESS):
                self.linked.update(ids)


def stale_after(commits: Iterable[Committed]) -> Stale | None:
    """Return which memories are out of date after commits; None after a purge: the index still has the words that are gone."""
    stale = Stale()
    for commit in commits:
        for event in commit.events:
            if isinstance(event.payload, MemoryPurged):
                return None
            stale.note(event.payload)
    return stale


def refetch(
    index: Index,
    stale: Stale,
    row_of: Callable[[str, str], Row | None],
    links_of: Callable[[str], Iterable[tuple[str, Key, Row]]],
) -> None:
    """Update memories of an index from the graph. Links, which cost most, are read only where they may have changed."""
    rows = {key: row_of("Memory", key) for key in stale.used}
    for memory_id, row in rows.items():
        if row is not None:
            index.put(row, None if memory_id in stale.changed else row)
            continue
        followers = [row_of("Memory", key) for key in index.followers(memory_id)]
        index.remove(memory_id)
        for follower in filter(None, followers):
            index.put(follower)
    index.refollow(row for row in rows.values() if row is not None)
    for memory_id, row in rows.items():
        if row is not None and memory_id in stale.linked:
            index.relink(memory_id, ((table, key) for table, key, _ in links_of(memory_id)))


def aside(make: Callable[[], T], wait: Callable[[], None]) -> T:
    """Make something while this thread waits for the engine, which works outside of the interpreter lock."""
    with ThreadPoolExecutor(1, "memgraph-index") as pool:
        made = pool.submit(make)
        wait()
        return made.result()


def offset_of(state: Projection) -> IndexOffset:
    """Return a projection's position in the journal."""
    return IndexOffset(state.seq, state.signature, state.timestamp, state.segment, state.offset)
