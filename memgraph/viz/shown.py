"""Selects the memories for charts, page and exports among those that may be shown (see `memgraph.store.access.visibility`)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from memgraph.model.timestamps import epoch_days
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import shown
from memgraph.viz.periods import bounds


def shown_ids(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
) -> list[str]:
    """Return the ids of the memories that may be shown, the most relevant first, without reading them.

    Parameters
    ----------
    project_id : str, optional
        Only memories of this project.
    since, until : str, optional
        Period in which what they describe happened, ISO 8601, both ends included; a date as `until` includes the whole day.
    include : collection of str
        States to include in addition: ``suppressed``, ``archived``, ``sensitive``, ``private``.
    limit : int, optional
        Maximum number of memories.

    Raises
    ------
    InvalidInputError
        An unknown state is included, a time is invalid, `since` is after `until`, or the limit is negative.
    """
    with store.reader.frozen():
        return store.reader.ranked_ids(_mask(store, project_id, bounds(since, until), include), limit=limit)


def _mask(
    store: AgentMemoryStore, project_id: str | None, period: tuple[str, str], include: Collection[str]
) -> NDArray[np.bool_]:
    mask = shown(store.reader, project_id=project_id, include=include)
    first, last = (epoch_days(time) for time in period)
    days = store.reader.index.column("occurred_days")
    return mask & (days >= first) & (days <= last)
