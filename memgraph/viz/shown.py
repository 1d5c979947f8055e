"""Which memories pictures and exports show: one rule for all of them.

What is suppressed, archived, private or sensitive is left out unless it is named: a picture is made to be passed on.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import InvalidInputError
from memgraph.index.columns import TIERS
from memgraph.index.index import scope_name
from memgraph.model.memory import AgentMemory
from memgraph.model.timestamps import epoch_days
from memgraph.store import AgentMemoryStore
from memgraph.viz.periods import bounds

INCLUDABLE = ("suppressed", "archived", "sensitive", "private")
"""What is shown only if it is named; "public" may be named, too, and is shown anyway."""


def shown_memories(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
) -> list[AgentMemory]:
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
    return store.reader.ranked_ids(_mask(store, project_id, bounds(since, until), include), limit=limit)


def count_shown(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
) -> int:
    """Return how many memories may be shown, without reading them; parameters as of `shown_memories`."""
    return int(_mask(store, project_id, bounds(since, until), include).sum())


def _mask(
    store: AgentMemoryStore, project_id: str | None, period: tuple[str, str], include: Collection[str]
) -> NDArray[np.bool_]:
    include = {include} if isinstance(include, str) else set(include)
    if unknown := sorted(include - {*INCLUDABLE, "public"}):
        raise InvalidInputError(f"may name {', '.join(INCLUDABLE)}", field="include", value=unknown[0])
    index = store.reader.index
    mask: NDArray[np.bool_] = index.column("is_live").copy()
    for state in ("suppressed", "archived"):
        if state not in include:
            mask &= ~index.column(f"is_{state}")
    mask &= np.isin(index.column("tier"), [TIERS.index(tier) for tier in TIERS if tier == "public" or tier in include])
    if project_id is not None:
        code = index.scopes.find(scope_name("project", project_id))
        mask &= (index.column("project") == code) & (code >= 0)
    first, last = (epoch_days(time) for time in period)
    days = index.column("occurred_days")
    return mask & (days >= first) & (days <= last)
