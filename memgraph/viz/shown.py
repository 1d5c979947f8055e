"""Which memories pictures and exports show, of those that may be shown at all (see `memgraph.store.visibility`)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from memgraph.model.memory import StoredMemory
from memgraph.model.timestamps import epoch_days
from memgraph.store import AgentMemoryStore
from memgraph.store.visibility import shown
from memgraph.viz.periods import bounds


def shown_memories(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
) -> list[StoredMemory]:
    """Return the memories that may be shown, the most relevant first.

    Parameters
    ----------
    project_id : str, optional
        Of this project only.
    since, until : str, optional
        When what they tell happened, ISO 8601, both included; a date as `until` means its last moment.
    include : collection of str
        Of ``suppressed``, ``archived``, ``sensitive``, ``private``: what is shown besides.
    limit : int, optional
        At most so many.

    Raises
    ------
    InvalidInputError
        Something else is to be included, a time is none, `since` is after `until`, or the limit is negative.
    """
    with store.reader.frozen():
        ids = shown_ids(store, project_id=project_id, since=since, until=until, include=include, limit=limit)
        return store.reader.read(ids)


def shown_ids(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
) -> list[str]:
    """Return the ids of the memories that may be shown, without reading them; parameters as of `shown_memories`."""
    with store.reader.frozen():
        return store.reader.ranked_ids(_mask(store, project_id, bounds(since, until), include), limit=limit)


def _mask(
    store: AgentMemoryStore, project_id: str | None, period: tuple[str, str], include: Collection[str]
) -> NDArray[np.bool_]:
    mask = shown(store.reader, project_id=project_id, include=include)
    first, last = (epoch_days(time) for time in period)
    days = store.reader.index.column("occurred_days")
    return mask & (days >= first) & (days <= last)
