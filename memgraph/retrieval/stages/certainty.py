"""Certainty: whether the store knows anything about the query. It removes no results: the floor does."""

from __future__ import annotations

from math import exp

import numpy as np

from memgraph.model.results.retrieval import Certainty
from memgraph.retrieval.stages.evidence import names_a_matter
from memgraph.retrieval.stages.state import Search

LOW = 0.2
_BOUNDS: tuple[tuple[float, Certainty], ...] = ((0.8, "high"), (0.5, "medium"), (LOW, "low"))
_WITH_VECTORS = 13.0, 0.37
_WORDS_ALONE = 7.0, 0.47
"""Slope and midpoint of the logistic curve: fitted on the dev half of LoCoMo, with name-masked questions asked of their
own and of another conversation (`tests/benchmarks/README.md`)."""


def certainty_of(search: Search) -> float:
    """Return the probability, in [0, 1], that the store remembers something about the query.

    A memory's evidence is its cosine (corrected for length) and the share of the query's words, weighted by rarity,
    that it and its neighbours contain: the mean of the two, for the best candidate. Neither is scaled by other
    memories, so the best result of a store that knows nothing still has a low value. It is 0 for a query that names no matter;
    of one that the model does not cover only the words count.
    """
    slots = search.slots
    if not len(slots) or not names_a_matter(search):
        return 0.0
    known = search.coverage[slots]
    slope, middle = _WORDS_ALONE
    if search.dense_weight and search.is_covered:
        meant = np.maximum(0.0, search.meaning[slots])
        known = (known + meant) / 2.0 if search.terms else meant
        slope, middle = _WITH_VECTORS
    return round(1.0 / (1.0 + exp(-slope * (float(known.max()) - middle))), 6)


def certainty_word(score: float) -> Certainty:
    """Return the label of a certainty: high ≥ 0.8, medium ≥ 0.5, low ≥ 0.2, else none."""
    return next((word for bound, word in _BOUNDS if score >= bound), "none")
