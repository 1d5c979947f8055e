"""Selects the memories for a page of limited size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from memgraph.errors import InvalidInputError
from memgraph.index.index import RELATION_CODE, Index
from memgraph.store import AgentMemoryStore


def chosen_ids(store: AgentMemoryStore, ids: Sequence[str], limit: int | None) -> list[str]:
    """Return at most `limit` of these ids, which are sorted by relevance, in the same order.

    Half of them are the most relevant ones. Their sources come next, because conclusions outlast their evidence, and a page
    without the evidence would explain nothing. The most relevant of the others fill the rest.

    Parameters
    ----------
    ids : sequence of str
        Memories that may be chosen.

    Raises
    ------
    InvalidInputError
        The limit is negative.
    """
    if limit is not None and limit < 0:
        raise InvalidInputError("must be 0 or more", field="limit", value=limit)
    if limit is None or len(ids) <= limit:
        return list(ids)
    rank = {memory_id: place for place, memory_id in enumerate(ids)}
    chosen = dict.fromkeys(ids[: limit - limit // 2])
    index = store.reader.index
    evidence = (
        source
        for memory_id in list(chosen)
        for source in sorted(_sources(index, memory_id) & rank.keys(), key=rank.__getitem__)
    )
    for memory_id in chain(evidence, ids):
        if len(chosen) == limit:
            break
        chosen[memory_id] = None
    return sorted(chosen, key=rank.__getitem__)


def _sources(index: Index, memory_id: str) -> set[str]:
    """Return the sources of a memory and the memories that support it."""
    others, weights = index.links.get(index.slot(memory_id))
    meant = {RELATION_CODE["DERIVED_FROM"], -RELATION_CODE["SUPPORTS"]}
    return {
        index.ids.names[other]
        for other, weight in zip(others.tolist(), weights.tolist(), strict=True)
        if weight in meant
    }
