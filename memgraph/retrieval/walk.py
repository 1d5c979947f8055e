"""Walk: one additive hop from what was found to what belongs to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.config import RetrievalConfig
from memgraph.index.index import RELATION_CODE, Index
from memgraph.retrieval.rank import best

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]
_ABOUT = 2


def neighbours(index: Index, scores: Scores, mask: Mask, config: RetrievalConfig) -> Scores:
    """Return what each memory gains from the best of its NEXT neighbours, both ways, within its session."""
    gain = np.zeros(len(index))
    session = index.column("session")
    for column in ("previous", "following"):
        step = np.arange(len(index))
        for distance in range(config.neighbour_span):
            step = np.where(step >= 0, index.column(column)[step], -1)
            reached = (step >= 0) & (session >= 0)
            reached &= (session[step] == session) & mask[step]
            step = np.where(reached, step, -1)
            value = np.where(reached, scores[step], 0.0) * config.neighbour_decay**distance
            gain = np.maximum(gain, value)
    return np.where(mask, config.neighbour_weight * gain, 0.0)


def mentions(index: Index, scores: Scores, mask: Mask, config: RetrievalConfig) -> Scores:
    """Return what memories gain by being *about* an entity that one of the best seeds mentions."""
    gain = np.zeros(len(index))
    for seed in best(index, scores, mask & (scores > 0), config.mention_seeds):
        for entity in index.named.get(seed)[0].tolist():
            slots, weights = index.mentions.get(entity)
            about = slots[(weights == _ABOUT) & mask[slots] & (slots != seed)]
            gain[about] = np.maximum(gain[about], scores[seed])
    return config.mention_weight * gain


def hand_on(index: Index, scores: Scores, mask: Mask) -> tuple[Scores, Mask]:
    """Give the score of each superseded memory to the newest admitted one that replaces it, and drop the former.

    Without an admitted one the older memory stays: what replaced it may not be seen here.
    """
    successor = _successors(index, mask)
    if not successor:
        return scores, mask
    scores, kept = scores.copy(), mask.copy()
    newest_of = {old: _newest(old, successor, mask, index.column("seq")) for old in successor if mask[old]}
    for old, newest in newest_of.items():
        if newest != old:
            kept[old] = False
            scores[newest] = max(scores[newest], scores[old])
    return scores, kept


def _successors(index: Index, mask: Mask) -> dict[int, int]:
    """Return for each superseded slot its next newer one: of those that lead to an admitted one, the last recorded."""
    newer, older = index.links.pairs(RELATION_CODE["SUPERSEDES"])
    live = index.column("is_live")
    valid = (newer != older) & live[newer] & live[older]
    if not valid.any():
        return {}
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
    """Return the last admitted slot on the way from `old`; of a cycle the last recorded one, so that one stays."""
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
