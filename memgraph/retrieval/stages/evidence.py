"""Evidence: the probability that a memory belongs to the query, made of parts that other memories do not scale."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from memgraph.index.analyser import analyse
from memgraph.retrieval.stages.state import DECIMALS, Scores, Search, Slots
from memgraph.store.query import Mask

_WORDS, _MEANING, _UNKNOWN_NAMES, _NAMED, _TIME, _BIAS = 5.9, 10.6, -3.2, 0.5, 1.6, -4.9
_WORDS_ALONE, _UNKNOWN_ALONE, _NAMED_ALONE, _TIME_ALONE, _BIAS_ALONE = 7.8, -3.7, 1.6, 0.8, -2.7
"""Coefficients of two logistic regressions, with and without vectors: see `tests/benchmarks/README.md` for the data."""
USUAL_TERMS = 5
"""Words of a task count by their amount, as a share of a task of this many terms: of a longer one a memory contains a smaller share by
chance and by right, and a name is a smaller part of what it asks. Phrases say the same in other words, and make no task longer."""
_WORD_CONSTANT = 10.0
"""Milder than the ranking's length correction: a note of ten words may answer, "Bye!" may not."""
_TIME_ALONE_TERMS = 3
_NAMING = frozenset({"speaker", "named", "tag", "trigger"})
_FEW = 50
"""Of fewer memories the spread of the cosines says little."""
GENERIC = frozenset(analyse("""
    add answer ask change check code continue create do explain file find fix get give go good help issue know let like line list look
    make need new next ok okay one please problem proceed project put question run set show start stop task tell thank thing time try update
    use want way work write yes
"""))  # fmt: skip
"""Words of most tasks: sharing one of them says nothing, and a task of nothing else names no matter."""

_ID_DIGITS = 3
"""A number of so many digits is an id; a shorter one is a choice or an amount."""
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE_END = ".!?:;\n\"“”'(-•*#"


def names_a_matter(search: Search) -> bool:
    """Tell whether the query says what it is about: "1", "y", "2025" and "fix it" do not, "#48213" does. One that is a vector alone does."""
    telling = (term for term in search.query_terms if term not in GENERIC)
    return (
        any(len(term) >= _ID_DIGITS and not is_year(term) if term.isdigit() else len(term) > 1 for term in telling)
        or not search.text.strip()
    )


def is_year(term: str) -> bool:
    """Tell whether a term is a year: the date of every memory has one, so it is no word in common."""
    return _YEAR.fullmatch(term) is not None


def evidence(search: Search, slots: Slots) -> Scores:
    """Return the probability that a memory belongs to the query, by the words, meaning, names and times that it shares with it.

    One element per slot of the index; 0 for slots that are not given.
    """
    terms = len(search.terms) / max(1, len(search.phrases))
    words = np.minimum(1.0, search.coverage[slots] * max(1.0, terms / USUAL_TERMS))
    named, timed = (_gained(search, parts)[slots] for parts in (_NAMING, frozenset({"time"})))
    weight = 3 if terms <= _TIME_ALONE_TERMS else 1
    unknown = _unknown_names(search) * min(1.0, USUAL_TERMS / max(1, terms))
    lengths = search.index.column("words")[slots]
    constant = min(_WORD_CONSTANT, search.config.length_constant_words)
    meant = np.maximum(0.0, cosines(search, slots)) * (1.0 - np.exp(-lengths / constant))
    by_words = (
        _WORDS_ALONE * words
        + _UNKNOWN_ALONE * unknown
        + _NAMED_ALONE * named
        + _TIME_ALONE * weight * timed
        + _BIAS_ALONE
    )
    by_both = _WORDS * (words if terms else meant) + _MEANING * meant + _UNKNOWN_NAMES * unknown + _NAMED * named
    sums = np.where(has_cosine(search, slots), by_both + _TIME * weight * timed + _BIAS, by_words)
    found = np.zeros(len(search.index))
    found[slots] = 1.0 / (1.0 + np.exp(-sums))
    return found


def cosines(search: Search, slots: Slots) -> Scores:
    """Return these slots' cosines with the query, not corrected for length; 0 where there is none to go by."""
    found = np.zeros(len(slots))
    if search.vector is not None:
        compared = has_cosine(search, slots)
        if compared.any():
            found[compared] = np.round(search.cosines(search.vector, slots[compared]), DECIMALS)
    return found


def has_cosine(search: Search, slots: Slots) -> Mask:
    """Return which slots have a cosine that says something: both texts have a vector, and the model covers the query."""
    compared = search.dense_weight > 0 and search.is_covered
    return search.has_vector(slots) if compared else np.zeros(len(slots), dtype=np.bool_)


def deviations(search: Search, slots: Slots) -> Scores | None:
    """Return by how many standard deviations these slots' cosines exceed the mean of the admitted memories; None for few memories.

    Saved facts are not among those: how many of them there are says nothing about the others.
    """
    others = search.mask & (search.length_factor > 0) & ~search.index.column("is_saved")
    if np.count_nonzero(others) < _FEW:
        return None
    compared = search.meaning[others] / search.length_factor[others]
    deviation = max(float(compared.std()), 10.0**-DECIMALS)
    standing: Scores = np.round((cosines(search, slots) - float(compared.mean())) / deviation, DECIMALS)
    return standing


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
    asked = search.text.removeprefix("\n".join(search.phrases))  # names in phrases are guesses
    known = [_is_known(search, terms) for word in _names(asked) if (terms := analyse(word))]
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
