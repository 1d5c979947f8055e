"""Seed: exact vectors and BM25, fused by their scores over the admitted memories."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from memgraph.config import RetrievalConfig
from memgraph.index.analyser import analyse
from memgraph.index.index import Index

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]
_DENSE_EPSILON = 0.05
_TEXT_EPSILON_SHARE = 0.05
_DECIMALS = 6
"""Equal vectors may differ in the last place: rounded before they are scaled, they cannot change an order."""


def dense(cosines: Scores, words: NDArray[np.int32], config: RetrievalConfig) -> Scores:
    """Scale cosines to [0, 1] over the admitted memories, corrected for length.

    A very short text ("Bye!") is near everything; its cosine counts ``1 − exp(−words / constant)``.
    """
    corrected = cosines * (1.0 - np.exp(-words / config.length_constant_words))
    return scaled(np.round(corrected, _DECIMALS), _DENSE_EPSILON)


def text(index: Index, query: str, mask: Mask, config: RetrievalConfig) -> Scores:
    """Okapi BM25 (Robertson and Zaragoza 2009, eq. 3.15) over the admitted memories, scaled to [0, 1].

    Document frequencies and lengths are those of the admitted memories alone, so nothing outside the scope can move an order.
    Costs the length of the query terms' postings.
    """
    scores = np.zeros(len(index))
    count = int(mask.sum())
    if not count:
        return scores
    lengths = index.column("terms")
    average = float(lengths[mask].mean()) or 1.0
    idf_sum = 0.0
    for term in sorted(Counter(analyse(query))):
        code = index.vocabulary.find(term)
        slots, occurrences = index.postings.get(code) if code >= 0 else (np.empty(0, np.int32), np.empty(0, np.int32))
        kept = mask[slots]
        slots, frequency = slots[kept], occurrences[kept].astype(np.float64)
        idf = float(np.log1p((count - len(slots) + 0.5) / (len(slots) + 0.5)))
        idf_sum += idf
        norm = config.k1 * (1.0 - config.b + config.b * lengths[slots] / average)
        scores[slots] += idf * frequency * (config.k1 + 1.0) / (frequency + norm)
    result = np.zeros(len(index))
    result[mask] = scaled(np.round(scores[mask], _DECIMALS), _TEXT_EPSILON_SHARE * idf_sum)
    return result


def scaled(values: Scores, epsilon: float) -> Scores:
    """Min-max scale; a range below `epsilon` is not blown up to 1."""
    if not len(values):
        return values
    low = float(values.min())
    span = max(float(values.max()) - low, epsilon)
    return (values - low) / span if span else np.zeros(len(values))
