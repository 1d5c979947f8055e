"""Neighbours of a memory: those before and after it in its session."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memgraph.retrieval.stages.state import Beside, Search, Slots


def around(search: Search, slots: Slots) -> Iterator[Beside]:
    """Yield the neighbours of these slots, step by step, first those before and then those after them.

    A neighbour's share is halved with each step; an answer gets a larger share of the question right before it.
    """
    config, session, asks = search.config, search.index.column("session"), search.index.column("asks")
    own = session[slots]
    if not (own >= 0).any():
        return
    for column in ("previous", "following"):
        step = np.where(own >= 0, slots, -1)
        for distance in range(config.neighbour_span):
            other = search.index.column(column)[step]
            reached = (step >= 0) & (other >= 0) & search.mask[other] & (session[other] == own)
            if not reached.any():
                break
            step = np.where(reached, other, -1)
            shares = np.full(len(slots), config.neighbour_decay**distance)
            if column == "previous" and distance == 0:
                shares[asks[step] & reached] *= config.answer_factor
            yield Beside(shares, step)
