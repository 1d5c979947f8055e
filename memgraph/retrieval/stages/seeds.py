"""Seed: which memories are admitted; exact vector search and BM25 over these, fused; the best become candidates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memgraph.index.index import newest_of
from memgraph.model.memory import MEMORY_TYPES
from memgraph.retrieval.stages.evidence import is_year
from memgraph.retrieval.stages.state import DECIMALS, Beside, Counts, Scores, Search, Slots, Term
from memgraph.store.query import Mask

_DENSE_EPSILON = 0.05
_TEXT_EPSILON_SHARE = 0.05
_RRF_K = 60
"""Constant of reciprocal rank fusion: Cormack, Clarke and Büttcher 2009."""
_SURROUNDED = 100
_EXACT = 64
_MANY = 1_000
_COMMON, _AROUND = 0.9, 0.2
_WORDS_ALONE = 0.55 / 0.45
"""What the words of a memory that awaits its vector weigh, as a multiple of the vectors' weight: a task would not find it otherwise."""
_SAMPLED = 8
_NO_SLOTS = np.empty(0, dtype=np.int32)


def admit(search: Search) -> Counts:
    """Set the mask of slots that may be scored: those in force, and those that ended since one of these replaces them.

    People ask with the words of what they know, which may be outdated: it hands its score on (`walk.succession`).
    """
    search.mask = search.visible()
    ended = np.flatnonzero(search.mask & (search.index.column("invalid_days") <= search.now_days))
    if len(ended):
        search.mask[ended] = False
        replaced = newest_of(search.index, search.mask, ended).keys() & set(ended.tolist())
        search.mask[list(replaced)] = True
    return {"admitted": int(np.count_nonzero(search.mask))}


def by_meaning(search: Search) -> Counts:
    """Compare the query's vector with those of all admitted memories: cosines, corrected for length; exact for the most similar.

    A very short text ("Bye!") is similar to everything, so its cosine c is multiplied by f + (1 − f) c² with f = ``1 − exp(−words / constant)``:
    one that says what was asked is not similar by chance.
    A memory without a vector is found by its words. Costs one pass over the vectors.
    """
    if search.vector is None:
        return {"compared": 0}
    index, compared = search.index, search.mask & search.has_vector()
    count = int(np.count_nonzero(compared))
    if not count:
        return {"compared": 0}
    slots = slice(None) if count == len(index) else np.flatnonzero(compared)
    words = index.column("words")[slots]
    cosines = search.cosines(search.vector, slots, only_near=True)
    by_length = (1.0 - np.exp(-np.arange(int(words.max()) + 1) / search.config.length_constant_words))[words]
    factor = by_length + (1.0 - by_length) * np.where(words > 0, np.clip(cosines, 0.0, 1.0) ** 2, 0.0)
    search.length_factor = _spread(factor, slots, len(index))
    corrected = cosines * factor
    low, span = search.dense_range = _range(corrected, _DENSE_EPSILON)
    search.dense_weight = search.config.dense_weight or 0.0
    scaled = (corrected - low) * (search.dense_weight / span)
    search.meaning, search.dense = _spread(corrected, slots, len(index)), _spread(scaled, slots, len(index))
    return {"compared": count}


def by_words(search: Search) -> Counts:
    """Okapi BM25 (Robertson and Zaragoza 2009, eq. 3.15) over the admitted memories.

    Document frequencies and lengths are those of the admitted memories alone, so nothing outside the scope affects the
    order. Among a thousand or more, a term in nine out of ten is ignored. Costs the length of the query terms'
    postings.
    """
    index, mask, config = search.index, search.mask, search.config
    scores = search.text_score = np.zeros(len(index))
    count = int(np.count_nonzero(mask))
    if not count:
        return {"terms": 0, "matched": 0}
    lengths = index.column("terms")
    average = float(lengths.sum(where=mask)) / count or 1.0
    norms = config.k1 * (1.0 - config.b) + (config.k1 * config.b / average) * lengths
    for term in sorted(set(search.searched_terms)):
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
        search.terms.append(Term(term, idf, slots, weights))
    return {"terms": len(search.terms), "matched": int(np.count_nonzero(scores))}


def fuse(search: Search) -> Counts:
    """Combine both scores, and select the candidates: the best of each type, and neighbours of the best in their sessions.

    Scores are scaled by their range over the admitted memories, but a range below ε is not stretched to 1; if
    configured, they are replaced by reciprocal ranks instead. The text score of a candidate includes its neighbours'
    terms: for each term the maximum of its own gain and its neighbours' shares, so that a question in one turn and its
    answer in the next are found together.
    """
    mask, named, dense, text = search.mask, search.scores, search.dense, search.text_score
    by_words = 1.0 - search.dense_weight
    share = np.where(search.length_factor > 0, by_words, max(by_words, min(1.0, _WORDS_ALONE * search.dense_weight)))
    epsilon = _TEXT_EPSILON_SHARE * sum(term.idf for term in search.terms)
    lowest = float(text.min(where=mask, initial=np.inf)) if mask.any() else 0.0
    highest = float(text.max(initial=lowest))
    span = _range(np.array([lowest, highest]), epsilon)[1]
    search.scores = text * (share / span)  # a constant offset does not change the order
    search.scores += dense
    search.scores += named
    search.slots = _best_of_each_type(search)
    near = list(_around(search, _top(search.scores[search.slots], search.slots, _SURROUNDED)))
    if near:
        search.look_at(np.concatenate([step.slots[step.slots >= 0] for step in near]))
    slots = search.seeds = search.slots
    search.beside = list(_around(search, slots))

    text[slots] += _from_around(search)
    span = _range(np.array([lowest, highest, text[slots].max(initial=lowest)]), epsilon)[1]
    text -= lowest
    text *= share / span
    _compare_exactly(search, _top(named[slots] + dense[slots] + text[slots], slots, max(_EXACT, 2 * search.wanted)))
    if search.config.fusion == "rrf":
        meant = (1.0 - share[slots]) * _reciprocal_ranks(dense[slots])
        said = share[slots] * _reciprocal_ranks(text[slots])
        dense[:], text[:] = 0.0, 0.0  # slots that are not candidates have no rank
        dense[slots], text[slots] = meant, said
    dense[slots], text[slots] = np.round(dense[slots], DECIMALS), np.round(text[slots], DECIMALS)
    search.scores = named + dense + text
    return {"candidates": len(slots)}


def _compare_exactly(search: Search, slots: Slots) -> None:
    """Recompute the best few cosines separately: equal vectors may differ in the last digits of a full matrix product."""
    compared = slots[search.has_vector(slots)] if search.dense_weight else slots[:0]
    if search.vector is not None and len(compared):
        corrected = np.round(search.cosines(search.vector, compared) * search.length_factor[compared], DECIMALS)
        low, span = search.dense_range
        search.meaning[compared] = corrected
        search.dense[compared] = (corrected - low) * (search.dense_weight / span)


def _from_around(search: Search) -> Scores:
    """Return the candidates' gains from terms that only their neighbours contain, and set their coverage of the query.

    Among a thousand or more admitted memories, a term in one out of five is near everything: it is left out of both.
    """
    slots, weight = search.slots, search.config.context_weight
    count = int(np.count_nonzero(search.mask))
    telling = [term for term in search.terms if count < _MANY or len(term.slots) <= _AROUND * count]
    if not search.is_covered:  # words alone decide, and all dates of a year have this one
        telling = [term for term in telling if not is_year(term.name)]
    beside = [(near.shares * weight, near.slots) for near in search.beside]
    gained, covered = np.zeros(len(slots)), np.zeros(len(slots))
    held = np.zeros(len(search.index) + 1)  # the last element is for −1: no neighbour
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


def _around(search: Search, slots: Slots) -> Iterator[Beside]:
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


def _spread(values: Scores, slots: Slots | slice, count: int) -> Scores:
    """Return an array with the values at their slots, and 0 elsewhere."""
    if isinstance(slots, slice):
        return values
    every = np.zeros(count)
    every[slots] = values
    return every


def _best_of_each_type(search: Search) -> Slots:
    """Return the best admitted slots of each type, ascending: the configured or the requested number."""
    types, most = search.index.column("type"), max(search.config.candidates, search.wanted)
    chosen = [_highest(search.scores, search.mask & (types == code), most) for code in range(len(MEMORY_TYPES))]
    return np.sort(np.concatenate(chosen))


def _highest(scores: Scores, mask: Mask, most: int) -> Slots:
    """Return the masked slots with the `most` highest scores, and ties with the last; unordered.

    A bound computed from every eighth slot leaves few to compare: linear, mostly a single pass.
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
    """Return the slots with the highest values, and ties with the last, in the given order."""
    if len(slots) <= most:
        return slots
    kept: Slots = slots[values >= np.partition(values, -most)[-most]]
    return kept


def _range(values: Scores, epsilon: float) -> tuple[float, float]:
    """Return the minimum and range of the values, the range at least `epsilon`; rounded, and never 0."""
    if not len(values):
        return 0.0, 1.0
    low, high = round(float(values.min()), DECIMALS), round(float(values.max()), DECIMALS)
    return low, max(high - low, epsilon) or 1.0


def _reciprocal_ranks(values: Scores) -> Scores:
    """Return ``(k + 1) / (k + rank)``, which is 1 for the first; equal values share a rank, and the value 0 has none."""
    _, place = np.unique(-values, return_inverse=True)
    return np.where(values > 0, (_RRF_K + 1.0) / (_RRF_K + 1.0 + place), 0.0)
