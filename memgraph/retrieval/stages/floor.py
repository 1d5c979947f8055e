"""Floor: which candidates have evidence that they belong to the query. A recall returns those alone; a search marks the others.

The nearest memory of a store that knows nothing of a matter is still the nearest, so ranks and scaled scores say nothing
about it. Evidence does: it is a probability, made of parts that other memories do not scale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import exp, log

import numpy as np

from memgraph.embedding.onnx import MODEL_NAME
from memgraph.index.analyser import analyse
from memgraph.index.supersession import newest_of
from memgraph.model.base import Floor
from memgraph.model.memory import Vector
from memgraph.retrieval.stages.state import DECIMALS, Counts, Scores, Search, Slots
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Mask

AUTO = 0.72
"""The calibrated floor: see `tests/benchmarks/README.md` for the curve from which it was chosen."""
CONSTRAINT_TAG = "constraint"
_AHEAD = 0.01
"""By how much a constraint is ahead of everything else, at least."""

_WORDS, _MEANING, _UNKNOWN_NAMES, _NAMED, _TIME, _BIAS = 7.0, 9.9, -3.7, 0.9, 2.0, -5.1
_WORDS_ALONE, _NAMED_ALONE, _BIAS_ALONE = 8.6, 2.1, -3.0
"""Coefficients of two logistic regressions, with and without vectors. Fitted on the dev half of LoCoMo: evidence of a question
against what is found for it in another conversation."""
_CALIBRATED_MEMORIES, _SMALLER, _MOST_SMALLER = 400, 0.25, 1.5
"""The best of a few unrelated memories is less similar than the best of hundreds, about by the logarithm of their number (extreme values),
and a few memories lack more of a task's words. So smaller stores need less."""
_LINE_SHARE = 0.25
"""What one line needs, as a share of what the best one needs: beside good evidence, weaker evidence counts."""
_WORD_CONSTANT = 10.0
"""Milder than the ranking's length correction: a note of ten words may answer, "Bye!" may not."""
_USUAL_TERMS = 8
"""Of a longer task a memory covers a smaller share by chance and by right: the share grows with the root of its terms."""
_TIME_ALONE_TERMS = 3
_LINKS = frozenset({"MENTIONS", "SUPPORTS", "DERIVED_FROM", "CONTRADICTS", "SUPERSEDES", "TAGGED"})
_NAMING = frozenset({"speaker", "named", "tag", "trigger"})

_SAVED_COSINE, _SAVED_WITH_WORD = 0.25, 0.14
"""Bounds for saved facts: by the cosine alone, and with a shared word. They are absolute, and the cosine is not corrected for
length: a preference has few words, and in a store of a few every word is rare."""
_GENERIC = frozenset(analyse("""
    add answer ask change check code create do explain file find fix get give good help issue know let like line list look make
    need new one please problem project put question run set show start task tell thing time try update use want way work write
"""))  # fmt: skip
"""Words of most tasks: sharing one of them with a saved fact says nothing."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE_END = ".!?:;\n\"“”'(-•*#"


def floor_of(store: AgentMemoryStore, vector: Vector | None, asked: Floor | None = None) -> float | None:
    """Return the floor of a query with this vector, in [0, 1]; None if there is none.

    The calibrated one holds for words and for the packaged model's vectors. Cosines of other models have other scales: for
    them ``auto`` sets no floor, a number does.

    Parameters
    ----------
    asked : {"auto", "off"}, float or None
        None: the store's setting.
    """
    floor = store.config.retrieval_floor if asked is None else asked
    if floor == "auto":
        return AUTO if vector is None or store.vector_model.name == MODEL_NAME else None
    return None if floor == "off" else float(floor)


def judge(search: Search) -> Counts:
    """Set which candidates have evidence. Changes neither scores nor candidates."""
    if not (search.query_terms or search.dense_weight):
        search.floor = None  # a task that says nothing gives no evidence to judge by
    floor = search.floor
    search.constraints = _constraints(search)
    if floor is None:
        return {"constraints": len(search.constraints)}
    found, search.is_near = _evidence(search), np.zeros(len(search.index), dtype=np.bool_)
    enough = _enough(search, floor)
    linked = _linked(search, found, enough)
    known = bool((found[search.slots] >= enough).any()) or bool(len(linked))
    if known:
        search.is_near[search.slots] = found[search.slots] >= floor * _LINE_SHARE
        search.is_near[linked] = True
    search.matching = _matching_saved(search, floor)
    search.is_near[search.matching] = True
    search.knows = known or bool(len(search.matching))
    search.is_near[search.constraints] = True
    return {
        "near": int(np.count_nonzero(search.is_near[search.slots])),
        "saved": len(search.matching),
        "linked": len(linked),
        "constraints": len(search.constraints),
    }


def apply(search: Search) -> None:
    """Keep the candidates with evidence. Put constraints first, then the saved facts that match the query."""
    search.look_at(search.constraints)
    if search.floor is not None:
        search.slots = search.slots[search.is_near[search.slots]]
        _put_first(search, search.matching)
    _put_first(search, search.constraints, by=_AHEAD)


def _put_first(search: Search, slots: Slots, *, by: float = 0.0) -> None:
    """Raise the scores of some candidates above all others, by more the nearer they are to the query."""
    if len(slots):
        highest = float(search.scores[search.slots].max())
        gains = highest - search.scores[slots] + np.maximum(0.0, _cosines(search, slots)) + by
        search.add("saved", slots, np.maximum(0.0, gains))


def _enough(search: Search, floor: float) -> float:
    """Return the evidence that suffices by itself: the floor, or less in a small store."""
    if not 0.0 < floor < 1.0:
        return floor
    less = _SMALLER * log(_CALIBRATED_MEMORIES / max(1, int(np.count_nonzero(search.mask))))
    return 1.0 / (1.0 + (1.0 - floor) / floor * exp(min(_MOST_SMALLER, max(0.0, less))))


def _evidence(search: Search) -> Scores:
    """Return the probability that a memory belongs to the query, by the words, meaning, names and times that it shares with it."""
    slots = _united(search.slots, *(added.origins for added in search.added if added.origins is not None))
    terms = len(search.terms)
    words = np.minimum(1.0, search.coverage[slots] * max(1.0, terms / _USUAL_TERMS) ** 0.5)
    named, timed = (_gained(search, parts)[slots] for parts in (_NAMING, frozenset({"time"})))
    either = _UNKNOWN_NAMES * _unknown_names(search) + _TIME * timed * (1 + 2 * (terms <= _TIME_ALONE_TERMS))
    lengths = search.index.column("words")[slots]
    meant = np.maximum(0.0, _cosines(search, slots)) * (1.0 - np.exp(-lengths / _WORD_CONSTANT))
    by_words = _WORDS_ALONE * words + _NAMED_ALONE * named + _BIAS_ALONE
    by_both = _WORDS * (words if terms else meant) + _MEANING * meant + _NAMED * named + _BIAS
    sums = np.where(_has_cosine(search, slots), by_both, by_words) + either
    found = np.zeros(len(search.index))
    found[slots] = 1.0 / (1.0 + np.exp(-sums))
    return found


def _cosines(search: Search, slots: Slots) -> Scores:
    """Return these slots' cosines with the query, not corrected for length; 0 without a vector."""
    found = np.zeros(len(slots))
    if search.vector is not None:
        compared = _has_cosine(search, slots)
        if compared.any():
            found[compared] = np.round(search.cosines(search.vector, slots[compared]), DECIMALS)
    return found


def _has_cosine(search: Search, slots: Slots) -> Mask:
    return search.has_vector(slots) if search.dense_weight else np.zeros(len(slots), dtype=np.bool_)


def _gained(search: Search, parts: frozenset[str]) -> Mask:
    gained = np.zeros(len(search.index), dtype=np.bool_)
    for added in search.added:
        if added.part in parts:
            gained[added.slots] = True
    return gained


def _unknown_names(search: Search) -> float:
    """Return which share of the names in the query no admitted memory contains; 0 without names.

    A name is a word with a capital letter that begins no sentence.
    """
    known = [_is_known(search, terms) for word in _names(search.text) if (terms := analyse(word))]
    return known.count(False) / len(known) if known else 0.0


def _names(text: str) -> Iterable[str]:
    for match in _WORD.finditer(text):
        before = text[: match.start()].rstrip(" \t")
        if match.group()[0].isupper() and before and before[-1] not in _SENTENCE_END:
            yield match.group()


def _is_known(search: Search, terms: Iterable[str]) -> bool:
    index = search.index
    codes = [code for term in terms if (code := index.vocabulary.find(term)) >= 0]
    return any(search.mask[index.postings.get(code)[0]].any() for code in codes)


def _linked(search: Search, found: Scores, enough: float) -> Slots:
    """Return the candidates reached over a link from one whose evidence suffices by itself.

    Neighbours in a session are none: their words are in the coverage already.
    """
    reached = [
        added.slots[[relation in _LINKS for relation in added.relations] & (found[added.origins] >= enough)]
        for added in search.added
        if added.origins is not None
    ]
    linked = _united(*reached)
    among: Slots = linked[np.isin(linked, search.slots)]
    return among


def _matching_saved(search: Search, floor: float) -> Slots:
    """Return the saved facts that match the query by themselves, and so come first."""
    saved: Slots = search.slots[search.index.column("is_saved")[search.slots]]
    if not len(saved):
        return saved
    shared = np.zeros(len(search.index), dtype=np.int32)
    for term in set(search.query_terms) - _GENERIC:
        code = search.index.vocabulary.find(term)
        if code >= 0:
            shared[search.index.postings.get(code)[0]] += 1
    shares_words = shared[saved] >= max(1.0, len(search.terms) / _USUAL_TERMS)
    scale, cosines = floor / AUTO, _cosines(search, saved)
    by_words = shares_words & ((cosines >= _SAVED_WITH_WORD * scale) | ~_has_cosine(search, saved))
    matching: Slots = saved[by_words | (cosines >= _SAVED_COSINE * scale)]
    return matching


def _constraints(search: Search) -> Slots:
    """Return the pinned memories with the tag ``constraint`` that hold for the query whatever it says.

    They hold for every task; those of a project only for tasks of that project.
    """
    index = search.index
    code = index.tag_names.find(CONSTRAINT_TAG)
    slots = index.tags.get(code)[0] if code >= 0 else np.empty(0, dtype=np.int64)
    holds = search.mask[slots] & index.column("is_pinned")[slots]
    if search.scope.project_id is None:
        holds &= index.column("project")[slots] == -1
    holding = _united(slots[holds])
    replaced = [old for old, new in newest_of(index, search.mask, holding).items() if old != new]
    return np.setdiff1d(holding, replaced)


def _united(*parts: Slots) -> Slots:
    """Return the slots of all parts, ascending, each once."""
    united: Slots = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts])).astype(np.int64)
    return united
