"""Opposites: whether a text says the contrary of another one with words that are too common to be compared by themselves.

A state (on, off), an obligation (must, may), a limit (over, under), an amount (more, less) and an order (before, after, over, with)
are compared only where both texts have one of the pair. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from memgraph.text import lazy_re as re

Stems = frozenset[str]

_ON = r"\b(?:is|are|was|were|be|been|stay\w*|remain\w*|kept|turn\w*|switch\w*|set)(?: \w+){0,3}? on\b(?! (?:the|a|an|each|every|\w+day)\b)"
_OFF = r"\boff\b"
_AT_LEAST = r"\b(?:over|above|more than|greater than|at least|from)\b"
_AT_MOST = r"\b(?:under|below|less than|fewer than|at most|up to|within)\b"
_OF_A_NUMBER = r" (?=\S{0,3}\d)"


class _Pole(NamedTuple):
    """What a claim says, the contrary, and what evidence may say for it."""

    said: re.Pattern[str]
    contrary: re.Pattern[str]
    supporting: re.Pattern[str]


def _pole(said: str, contrary: str, supporting: str = r"(?!)") -> _Pole:
    return _Pole(re.compile(said), re.compile(contrary), re.compile(f"{said}|{supporting}"))


_POLES = (
    _pole(_ON, rf"{_OFF}|\bdisabl", r"\benabl|\bactiv"),
    _pole(_OFF, rf"{_ON}|\benabl", r"\bdisabl|\bdeactiv"),
    _pole(
        r"\b(?:must|shall|have to|has to|had to|required|mandatory)\b",
        r"\b(?:may|might|could|optional|optionally)\b",
        r"\b(?:needs?|needed|should|always|only|never|not|no)\b",
    ),
    _pole(
        r"\b(?:may|might|optional|optionally)\b",
        r"\b(?:must|shall|should|have to|has to|had to|required|mandatory)\b",
        r"\b(?:can|could|if|sometimes|allow\w*|possibl[ey])\b",
    ),
    _pole(_AT_LEAST + _OF_A_NUMBER, _AT_MOST + _OF_A_NUMBER),
    _pole(_AT_MOST + _OF_A_NUMBER, _AT_LEAST + _OF_A_NUMBER),
    _pole(r"\bmore\b", r"\b(?:less|fewer)\b", r"\b(?:increas|rais|add|longer|another)"),
    _pole(r"\bup\b", r"\bdown\b", r"\b(?:increas|rais)"),
)
_SENTENCE = re.compile(r"[.!?;]+(?:\s|$)|\n\s*\n")
_ORDER = re.compile(r"\b(before|after|over)\b")
_REPLACE = re.compile(r"\b(?:replac|exchang|substitut|swap)\w{0,4} (.{1,120}?) (with|by|for) (.{1,120})")
_FAILED = re.compile(
    r"\b(?:fail(?:s|ed|ure|ures|ing)?|crash\w{0,3}|broke|broken|breaks|timed out|error(?:s|ed)?|refused|rejected)\b"
)
_WORKED = re.compile(
    r"\b(?:fix\w{0,3}|pass(?:es|ed|ing)?|work(?:s|ed|ing)?|succe\w+|solv\w+|resolv\w+|mend\w*|repair\w*|avoid\w*|prevent\w*|green|recover\w*|"
    r"now|until|no longer|handl\w+|complet\w+|revert\w*|correct\w*)\b"
)
_SUCCESS = re.compile(r"\b(?:pass(?:es|ed)|works|worked|succeeded|succeeds|is green|was solved|was fixed|is fixed)\b")
_DENIED = re.compile(r"\b(?:not|no|never|without|none|nothing|cannot)\b")


def contrary(claim: str, evidence: str, stems_of: Callable[[str], Stems]) -> Iterator[str]:
    """Yield what a claim says of which its evidence says the contrary.

    Parameters
    ----------
    claim, evidence : str
        In comparable form: folded, contractions written out.
    stems_of : callable
        Returns the stems of a text's words, without function words.
    """
    for sentence in _SENTENCE.split(claim):
        poles = [(pole, said) for pole in _POLES if (said := pole.said.search(sentence))]
        for text in (evidence, _nearest(sentence, evidence, stems_of)) if poles else ():
            for pole, said in poles:
                if (found := pole.contrary.search(text)) and not pole.supporting.search(text):
                    yield f"its evidence says “{found[0].strip()}”, not “{said[0].strip()}”"
    ordered = list(_ordered(claim, stems_of))
    known = list(_ordered(evidence, stems_of)) if ordered else []
    for word, first, second in ordered:
        turned = [bool(first & others and second & one) for _, one, others in known]
        agrees = [bool(first & one and second & others) for _, one, others in known]
        if any(turned) and not any(same and not other for same, other in zip(agrees, turned, strict=True)):
            yield f"its evidence has the contrary order of “{word}”"


def _nearest(claim: str, evidence: str, stems_of: Callable[[str], Stems]) -> str:
    """Return the sentence of evidence with the most words of a claim: what another one allows does not count."""
    wanted = stems_of(claim)
    return max(_SENTENCE.split(evidence), key=lambda one: len(wanted & stems_of(one)))


def _ordered(text: str, stems_of: Callable[[str], Stems]) -> Iterator[tuple[str, Stems, Stems]]:
    """Yield pairs of what comes first or is preferred and what comes second, and of what is replaced and what replaces it."""
    for sentence in _SENTENCE.split(text):
        for found in _REPLACE.finditer(sentence):
            one, other = stems_of(found[1]), stems_of(found[3])
            pair = (other, one) if found[2] == "for" else (one, other)
            yield "replace", pair[0] - pair[1], pair[1] - pair[0]
        words = list(_ORDER.finditer(sentence))
        if len(words) != 1:
            continue  # which of several applies to what cannot be told
        (word,) = words
        left, right = sentence[: word.start()], sentence[word.end() :]
        if not stems_of(left):  # the clause comes first: “after the deploy, restart it”
            right, _, left = right.partition(",")
        one, other = stems_of(left), stems_of(right)
        pair = (other, one) if word[0] == "after" else (one, other)
        yield word[0], pair[0] - pair[1], pair[1] - pair[0]


def contradicts_outcome(outcome: str, text: str, evidence: str) -> bool:
    """Return whether a text reports only failure, with a positive outcome, or only success, with a negative one."""
    whole = f"{text} {evidence}"
    if _DENIED.search(whole):
        return False
    has_failed, has_worked = _FAILED.search(whole) is not None, _WORKED.search(whole) is not None
    return (outcome == "positive" and has_failed and not has_worked) or (
        outcome == "negative" and has_worked and not has_failed and _SUCCESS.search(text) is not None
    )
