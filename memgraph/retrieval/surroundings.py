"""What stands around a memory: what came before and after it in its session."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memgraph.retrieval.search import Scores, Search, Slots


def around(search: Search, slots: Slots) -> Iterator[tuple[str, int, Scores, Slots]]:
    """Yield, for each step away from these slots, (column, distance, shares, neighbours).

    Shares, of the same length as the slots, are what a neighbour's score counts here: halved with each step, more for an answer
    from the question before it. A neighbour is −1 where there is none, or none that is admitted, and then the way ends.
    """
    config, session, asks = search.config, search.index.column("session"), search.index.column("asks")
    own = session[slots]
    for column in ("previous", "following"):
        step = np.where(own >= 0, slots, -1)
        for distance in range(config.neighbour_span):
            other = search.index.column(column)[step]
            reached = (step >= 0) & (other >= 0) & search.mask[other] & (session[other] == own)
            step = np.where(reached, other, -1)
            if not reached.any():
                break
            shares = np.full(len(slots), config.neighbour_decay**distance)
            if column == "previous" and distance == 0:
                shares[asks[step] & reached] *= config.answer_factor
            yield column, distance, shares, step
