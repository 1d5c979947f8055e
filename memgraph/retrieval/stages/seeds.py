"""Seed: exact vectors and BM25 over the admitted memories, fused; the best become candidates."""

from __future__ import annotations

import numpy as np

from memgraph.model.memory import MEMORY_TYPES
from memgraph.retrieval.scope import Mask
from memgraph.retrieval.stages.neighbours import around
from memgraph.retrieval.stages.state import DECIMALS, Counts, Scores, Search, Slots, Term

_DENSE_EPSILON = 0.05
_TEXT_EPSILON_SHARE = 0.05
_RRF_K = 60
"""Cormack, Clarke and Büttcher 2009."""
_SURROUNDED = 100
_EXACT = 64
_MANY = 1_000
_COMMON, _AROUND = 0.9, 0.2
_SAMPLED = 8
_NO_SLOTS = np.empty(0, dtype=np.int32)


def by_meaning(search: Search) -> Counts:
    """Compare the query's vector with those of all admitted memories: exact cosines, corrected for length.

    A very short text ("Bye!") is near everything; its cosine counts ``1 − exp(−words / constant)``. What awaits its vector is
    found by its words. Costs one pass over the vectors.
    """
    if search.vector is None:
        return {"compared": 0}
    index, compared = search.index, search.mask & search.has_vector()
    count = int(np.count_nonzero(compared))
    if not count:
        return {"compared": 0}
    slots = slice(None) if count == len(index) else np.flatnonzero(compared)
    words = index.column("words")[slots]
    told = 1.0 - np.exp(-np.arange(int(words.max()) + 1) / search.config.length_constant_words)
    search.told = _spread(told[words], slots, len(index))
    corrected = search.cosines(search.vector, slots) * told[words]
    low, span = search.dense_range = _range(corrected, _DENSE_EPSILON)
    search.dense_weight = search.config.dense_weight
    scaled = (corrected - low) * (search.dense_weight / span)
    search.meaning, search.dense = _spread(corrected, slots, len(index)), _spread(scaled, slots, len(index))
    return {"compared": count}


def by_words(search: Search) -> Counts:
    """Okapi BM25 (Robertson and Zaragoza 2009, eq. 3.15) over the admitted memories.

    Document frequencies and lengths are those of the admitted memories alone, so nothing outside the scope can move an order.
    Of a thousand or more, a term that nine in ten hold says nothing. Costs the length of the query terms' postings.
    """
    index, mask, config = search.index, search.mask, search.config
    scores = search.text_score = np.zeros(len(index))
    count = int(np.count_nonzero(mask))
    if not count:
        return {"terms": 0, "matched": 0}
    lengths = index.column("terms")
    average = float(lengths.sum(where=mask)) / count or 1.0
    norms = config.k1 * (1.0 - config.b) + (config.k1 * config.b / average) * lengths
    for term in sorted(set(search.query_terms)):
        code = index.vocabulary.find(term)
        slots, occurrences = index.postings.get(code) if code >= 0 else (_NO_SLOTS, _NO_SLOTS)
        if count < len(index):
            kept = mask[slots]
            slots, occurrences = slots[kept], occurrences[kept]
        if count >= _MANY and len(slots) > _COMMON * count:
            continue
        idf = float(np.log1p((count - len(slots) + 0.5) / (len(slots) + 0.5)))
        weights = occurrences / (occurrences + norms[slots])
        weights *= idf * (config.k1 + 1.0)
        scores[slots] += weights
        search.terms.append(Term(idf, slots, weights))
    return {"terms": len(search.terms), "matched": int(np.count_nonzero(scores))}


def fuse(search: Search) -> Counts:
    """Add the two up, and choose the candidates: the best of each type, and what stands around the best in their sessions.

    Scores are scaled by their range over the admitted memories, a range below ε not being blown up to 1; or, where the setting
    asks for it, replaced by their reciprocal ranks. The text score of a candidate counts also what the memories around it say:
    of each term the most that it, or a neighbour for its share, gains by it, so that a question asked in one turn and answered in the
    next is found whole.
    """
    mask, named, dense, text = search.mask, search.scores, search.dense, search.text_score
    share = 1.0 - search.dense_weight
    epsilon = _TEXT_EPSILON_SHARE * sum(term.idf for term in search.terms)
    lowest = float(text.min(where=mask, initial=np.inf)) if mask.any() else 0.0
    highest = float(text.max(initial=lowest))
    span = _range(np.array([lowest, highest]), epsilon)[1]
    search.scores = text * (share / span)  # less the lowest, which moves no order
    search.scores += dense
    search.scores += named
    search.slots = _best_of_each_type(search)
    near = list(around(search, _top(search.scores[search.slots], search.slots, _SURROUNDED)))
    if near:
        search.look_at(np.concatenate([step.slots[step.slots >= 0] for step in near]))
    slots = search.seeds = search.slots
    search.beside = list(around(search, slots))

    text[slots] += _from_around(search)
    span = _range(np.array([lowest, highest, text[slots].max(initial=lowest)]), epsilon)[1]
    text -= lowest
    text *= share / span
    _compare_exactly(search, _top(named[slots] + dense[slots] + text[slots], slots, max(_EXACT, 2 * search.wanted)))
    if search.config.fusion == "rrf":
        meant, said = (1.0 - share) * _reciprocal_ranks(dense[slots]), share * _reciprocal_ranks(text[slots])
        dense[:], text[:] = 0.0, 0.0  # what is no candidate has no rank
        dense[slots], text[slots] = meant, said
    dense[slots], text[slots] = np.round(dense[slots], DECIMALS), np.round(text[slots], DECIMALS)
    search.scores = named + dense + text
    return {"candidates": len(slots)}


def _compare_exactly(search: Search, slots: Slots) -> None:
    """Compare the best few once more, by themselves: in a product of all rows, equal vectors may differ in the last places."""
    compared = slots[search.has_vector(slots)] if search.dense_weight else slots[:0]
    if search.vector is not None and len(compared):
        corrected = np.round(search.cosines(search.vector, compared) * search.told[compared], DECIMALS)
        low, span = search.dense_range
        search.meaning[compared] = corrected
        search.dense[compared] = (corrected - low) * (search.dense_weight / span)


def _from_around(search: Search) -> Scores:
    """Return what the candidates gain by terms that only their neighbours hold, and note how much of the query they cover.

    Of a thousand or more, a term that one in five hold is around everything: it is left out of both.
    """
    slots, weight = search.slots, search.config.context_weight
    telling = [
        term for term in search.terms if len(search.mask) < _MANY or len(term.slots) <= _AROUND * len(search.mask)
    ]
    beside = [(near.shares * weight, near.slots) for near in search.beside]
    gained, covered = np.zeros(len(slots)), np.zeros(len(slots))
    held = np.zeros(len(search.index) + 1)  # the last one is for −1: no neighbour
    for term in telling:
        held[term.slots] = term.weights
        own = most = held[slots]
        for shares, other in beside:
            most = np.maximum(most, held[other] * shares)
        held[term.slots] = 0.0
        gained += most - own
        covered += np.minimum(term.idf, most)
    search.coverage[slots] = covered / (sum(term.idf for term in telling) or 1.0)
    return gained


def _spread(values: Scores, slots: Slots | slice, count: int) -> Scores:
    """Return the values at their slots, and 0 elsewhere."""
    if isinstance(slots, slice):
        return values
    every = np.zeros(count)
    every[slots] = values
    return every


def _best_of_each_type(search: Search) -> Slots:
    """Return the best admitted slots of each type, ascending: as many as the setting says, or as are wanted."""
    types, most = search.index.column("type"), max(search.config.candidates, search.wanted)
    chosen = [_highest(search.scores, search.mask & (types == code), most) for code in range(len(MEMORY_TYPES))]
    return np.sort(np.concatenate(chosen))


def _highest(scores: Scores, mask: Mask, most: int) -> Slots:
    """Return the masked slots of the highest scores, `most` of them and what ties with the last; not in order.

    A bound from every eighth of them leaves few to be compared with one another: linear, and one pass over most.
    """
    count = int(np.count_nonzero(mask))
    if count <= most:
        return np.flatnonzero(mask)
    if count > _SAMPLED * most:
        sample, place = scores[::_SAMPLED][mask[::_SAMPLED]], 2 * most // _SAMPLED
        if len(sample) > place:
            above = mask & (scores >= -np.partition(-sample, place)[place])
            mask = above if np.count_nonzero(above) >= most else mask
    slots = np.flatnonzero(mask)
    return _top(scores[slots], slots, most)


def _top(values: Scores, slots: Slots, most: int) -> Slots:
    """Return those of these slots whose values are the highest, and what ties with the last; in the order given."""
    if len(slots) <= most:
        return slots
    kept: Slots = slots[values >= np.partition(values, -most)[-most]]
    return kept


def _range(values: Scores, epsilon: float) -> tuple[float, float]:
    """Return the lowest of the values and how far they spread, at least `epsilon`; rounded, and never 0."""
    if not len(values):
        return 0.0, 1.0
    low, high = round(float(values.min()), DECIMALS), round(float(values.max()), DECIMALS)
    return low, max(high - low, epsilon) or 1.0


def _reciprocal_ranks(values: Scores) -> Scores:
    """Scale to 1 for the first: ``(k + 1) / (k + rank)``; equal values share a rank, and 0 has none."""
    _, place = np.unique(-values, return_inverse=True)
    return np.where(values > 0, (_RRF_K + 1.0) / (_RRF_K + 1.0 + place), 0.0)
