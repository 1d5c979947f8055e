"""What became of single memories: when each came, was used, and left, from the journal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from operator import attrgetter

from memgraph.fold.history.lives import Change, History
from memgraph.fold.history.relevance import Relevance
from memgraph.store import AgentMemoryStore
from memgraph.viz.history import read_history


@dataclass(frozen=True)
class Timeline:
    """One memory over time. Times are UTC, ISO 8601, milliseconds, of when it happened (see `memgraph.fold.history.reading`).

    Attributes
    ----------
    added : str
        When what it tells happened; of what was made of other memories, when the latest of these did.
    relevances : tuple of Relevance
        How relevant it was, in the order of time.
    changes : tuple of (str, str, str or None)
        Each way out and back in order: its time, its kind, the other memory's id where there is one. Kinds: superseded,
        unsuperseded, contradicted, uncontradicted, suppressed, unsuppressed, archived, unarchived, invalidated, revalidated,
        deleted, undeleted, compressed (the other one was made of it, or took it in), uncompressed.
    """

    id: str
    added: str
    relevances: tuple[Relevance, ...] = ()
    changes: tuple[tuple[str, str, str | None], ...] = ()


_MUTUAL = frozenset({"contradicted", "uncontradicted"})
"""Changes that are of both memories alike."""


def timelines(store: AgentMemoryStore, ids: Collection[str], *, history: History | None = None) -> dict[str, Timeline]:
    """Return what became of these memories, by id, without those that never were. Costs one pass over the journal.

    Parameters
    ----------
    history : History, optional
        What was read from this store already, with the details of these memories.
    """
    history = history or read_history(store, details_of=ids)
    wanted = frozenset(ids) & history.lives.keys()
    changes: dict[str, list[tuple[str, str, str | None]]] = {one: [] for one in wanted}
    for change in sorted(history.changes, key=attrgetter("at", "seq")):
        for one, other in _ends(change):
            if one in wanted:
                changes[one].append((change.at, change.kind, other))
    return {
        one: Timeline(one, life.at, history.relevances.get(one, ()), tuple(changes[one]))
        for one, life in history.lives.items()
        if one in wanted
    }


def _ends(change: Change) -> list[tuple[str, str | None]]:
    """Return whom a change is of, each with the other one."""
    ends = [(change.id, change.other)]
    if change.kind in _MUTUAL and change.other is not None:
        ends.append((change.other, change.id))
    return ends
