"""Timelines of single memories, from the journal: when each was added, accessed and removed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from operator import attrgetter

from memgraph.fold.history import Change, History, Relevance
from memgraph.store import AgentMemoryStore
from memgraph.viz.history import read_history


@dataclass(frozen=True)
class Timeline:
    """One memory over time. Times are UTC, ISO 8601, milliseconds, of when it happened (see `memgraph.fold.history`).

    Attributes
    ----------
    added : str
        When what it describes happened; for a derived memory, when its latest source happened.
    relevances : tuple of Relevance
        Its relevance over time, in order.
    changes : tuple of (str, str, str or None)
        Its state changes in order: time, kind, and the other memory's id if there is one. Kinds: superseded,
        unsuperseded, contradicted, uncontradicted, suppressed, unsuppressed, archived, unarchived, invalidated, revalidated,
        deleted, undeleted, compressed (the other one was derived from it, or absorbed it), uncompressed.
    """

    id: str
    added: str
    relevances: tuple[Relevance, ...] = ()
    changes: tuple[tuple[str, str, str | None], ...] = ()


_MUTUAL = frozenset({"contradicted", "uncontradicted"})
"""Changes that apply to both memories."""


def timelines(store: AgentMemoryStore, ids: Collection[str], *, history: History | None = None) -> dict[str, Timeline]:
    """Return the timelines of these memories by id; unknown ids are left out. Costs one pass over the journal.

    Parameters
    ----------
    history : History, optional
        The history, if it was already read from this store with the details of these memories.
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
    """Return the memories that a change applies to, each with the other one."""
    ends = [(change.id, change.other)]
    if change.kind in _MUTUAL and change.other is not None:
        ends.append((change.other, change.id))
    return ends
