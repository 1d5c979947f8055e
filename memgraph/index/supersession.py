"""Supersession: a chain of memories that replace each other is represented by the newest visible one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index

Mask = NDArray[np.bool_]


def newest_of(index: Index, mask: Mask, slots: NDArray[np.int64] | None = None) -> dict[int, int]:
    """Return for each superseded slot, of all or some, the newest masked one that replaces it; a cycle's also represents itself.

    A slot without a masked replacement is not superseded. Takes a pass over the pairs for each step of the longest chain.
    """
    successor = _successors(index, mask, slots)
    seq = index.column("seq")
    return {old: _newest(old, successor, mask, seq) for old in successor}


def superseded(index: Index, mask: Mask) -> Mask:
    """Return which slots, masked or not, are superseded by a masked one."""
    found = np.zeros(len(index), dtype=np.bool_)
    found[[old for old, newest in newest_of(index, mask).items() if newest != old]] = True
    return found


def _successors(index: Index, mask: Mask, slots: NDArray[np.int64] | None) -> dict[int, int]:
    """Return for each superseded slot its next newer one: of those that lead to an admitted slot, the last recorded."""
    newer, older = index.links.pairs(RELATION_CODE["SUPERSEDES"])
    live = index.column("is_live")
    valid = (newer != older) & live[newer] & live[older]
    if not valid.any():
        return {}
    if slots is not None:
        valid &= _above(newer, older, slots, len(index))
    pairs = list(zip(newer[valid].tolist(), older[valid].tolist(), strict=True))
    replaces: dict[int, list[int]] = {}
    for new, old in pairs:
        replaces.setdefault(new, []).append(old)
    leads = {new for new in replaces if mask[new]}
    waiting = list(leads)
    while waiting:
        found = [old for old in replaces.get(waiting.pop(), ()) if old not in leads]
        leads.update(found)
        waiting += found
    seq = index.column("seq")
    successor: dict[int, int] = {}
    for new, old in pairs:
        if new in leads and (old not in successor or (seq[new], new) > (seq[successor[old]], successor[old])):
            successor[old] = new
    return successor


def _newest(old: int, successor: dict[int, int], mask: Mask, seq: NDArray[np.int64]) -> int:
    """Return the last admitted slot on the path from `old`; for a cycle the last recorded one, so that one remains."""
    path: dict[int, None] = {old: None}
    at = old
    while (following := successor.get(at)) is not None:
        if following in path:
            way = list(path)
            cycle = [slot for slot in way[way.index(following) :] if mask[slot]]
            if cycle:
                return max(cycle, key=lambda slot: (seq[slot], slot))
            break
        path[following] = None
        at = following
    return next(slot for slot in reversed(path) if mask[slot])


def _above(newer: NDArray[np.int32], older: NDArray[np.int32], slots: NDArray[np.int64], count: int) -> Mask:
    """Return which pairs lie on a path from one of these slots to newer ones."""
    reached = np.zeros(count, dtype=np.bool_)
    reached[slots] = True
    while True:
        found: Mask = reached[older]
        if reached[newer[found]].all():
            return found
        reached[newer[found]] = True
