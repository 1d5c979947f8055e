"""Opposites: whether a text says the contrary of another one with words that are too common to be compared by themselves.

A state (on, off), an obligation (must, may), a limit (over, under), an amount (more, less) and an order (before, after, over, with)
are compared only where both texts have one of the pair. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from memgraph.extraction.verification.words import stem
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
_PAIRS = (
    "fast slow,quick slow,big small,large small,high low,long short,early late,new old,hot cold,warm cold,open closed,open shut,open close,"
    "full empty,good bad,better worse,best worst,right wrong,correct wrong,true false,valid broken,strong weak,hard easy,difficult easy,"
    "safe dangerous,cheap expensive,public private,local remote,sync async,allow forbid,allow prohibit,allow deny,permit forbid,accept reject,"
    "approve reject,enable disable,start stop,begin end,add remove,add delete,create delete,create remove,install remove,keep remove,"
    "keep delete,keep drop,include exclude,increase decrease,increase reduce,raise lower,grow shrink,gain lose,win lose,"
    "succeed fail,pass fail,work fail,success failure,fix break,lock unlock,show hide,push pull,send receive,upload download,"
    "upgrade downgrade,encrypt decrypt,first last,maximum minimum,max min,more less,most least,many few,always never,all none,always sometimes,"
    "left right,inside outside,internal external,positive negative,agree refuse,agree disagree,confirm refute,merge split"
)
_OPPOSITES: dict[str, set[str]] = {}
for _one, _other in (pair.split() for pair in _PAIRS.split(",")):
    _OPPOSITES.setdefault(stem(_one), set()).add(stem(_other))
    _OPPOSITES.setdefault(stem(_other), set()).add(stem(_one))
_PREFIXES = ("un", "dis", "in", "im", "ir", "il", "de", "non", "mis", "a")
_LEAST_BASE = 4
_LETTERS = re.compile(r"(?<![\w])[^\W\d_]+(?![\w])")
_SENTENCE = re.compile(r"[.!?;]+(?:\s|$)|\n\s*\n")
_ORDER = re.compile(r"\b(before|after|over)\b")
_CAUSE = re.compile(r"\b(because|since|due to|caused by|so that|therefore|thus|hence)\b|, (so)\b")
_SIDES = re.compile(r"\b(against|for) (.{1,80}?),? (?:and|but)(?: \w+)? (?!\1)(against|for) (.{1,80})")
_KINDS = {
    "after": "before",
    "since": "cause",
    "because": "cause",
    "due to": "cause",
    "caused by": "cause",
    "so": "cause",
    "so that": "cause",
} | dict.fromkeys(("therefore", "thus", "hence"), "cause")
_EFFECT_FIRST = frozenset({"because", "since", "due to", "caused by"})
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
    """Yield what a claim says of which the quoted evidence says the contrary.

    Parameters
    ----------
    claim, evidence : str
        In comparable form: folded, contractions written out.
    stems_of : callable
        Returns the stems of a text's words, without function words.
    """
    told = [(one, stems_of(one)) for one in dict.fromkeys(_SENTENCE.split(evidence))]
    whole = _words(evidence)
    for sentence in _SENTENCE.split(claim):
        wanted = stems_of(sentence)
        nearest, _ = max(told, key=lambda one: len(wanted & one[1]))  # what another sentence allows does not count
        poles = [(pole, said) for pole in _POLES if (said := pole.said.search(sentence))]
        for text in (evidence, nearest) if poles else ():
            for pole, said in poles:
                if (found := pole.contrary.search(text)) and not pole.supporting.search(text):
                    yield f"the quoted evidence says “{found[0].strip()}”, not “{said[0].strip()}”"
        yield from _opposed(_words(sentence), whole, _words(nearest))
    ordered = list(_ordered(claim, stems_of))
    known = list(_ordered(evidence, stems_of)) if ordered else []
    for word, first, second in ordered:
        alike = [(one, others) for other, one, others in known if _KINDS.get(other, other) == _KINDS.get(word, word)]
        turned = [bool(first & others and second & one) for one, others in alike]
        agrees = [bool(first & one and second & others) for one, others in alike]
        if any(turned) and not any(same and not other for same, other in zip(agrees, turned, strict=True)):
            yield f"the quoted evidence has the contrary order of “{word}”"


def _words(text: str) -> dict[str, str]:
    """Return the words of a text by their stems."""
    return {stem(word): word for word in _LETTERS.findall(text)}


def _opposed(said: dict[str, str], whole: dict[str, str], nearest: dict[str, str]) -> Iterator[str]:
    """Yield the words that evidence does not have, but has their opposite, as a whole or where it is nearest."""
    for known, opposites in ((whole, _by_affix), (whole, _by_list), (nearest, _by_list)):
        for root, word in said.items():
            if root not in known and (found := opposites(word) & known.keys() - {root}):
                yield f"the quoted evidence says “{known[min(found)]}”, not “{word}”"


def _by_list(word: str) -> set[str]:
    return _OPPOSITES.get(stem(word), set())


@lru_cache(maxsize=4_096)
def _by_affix(word: str) -> set[str]:
    """Return the stems of a word's opposites by a prefix or a suffix: locked and unlocked."""
    found: set[str] = set()
    bases = [word.removeprefix(prefix) for prefix in _PREFIXES if word.startswith(prefix)]
    found.update(stem(base) for base in bases if len(base) >= _LEAST_BASE)
    if len(word) >= _LEAST_BASE:
        found.update(stem(f"{prefix}{word}") for prefix in _PREFIXES)
    for ending, other in (("less", "ful"), ("ful", "less")):
        if word.endswith(ending):
            found.add(stem(word.removesuffix(ending) + other))
            found.add(stem(word.removesuffix(ending)))
    return found


def _ordered(text: str, stems_of: Callable[[str], Stems]) -> Iterator[tuple[str, Stems, Stems]]:
    """Yield pairs of what comes first or is preferred and what comes second, and of what is replaced and what replaces it."""
    for sentence in _SENTENCE.split(text):
        for found in _REPLACE.finditer(sentence):
            one, other = stems_of(found[1]), stems_of(found[3])
            pair = (other, one) if found[2] == "for" else (one, other)
            yield "replace", pair[0] - pair[1], pair[1] - pair[0]
        for found in _SIDES.finditer(sentence):
            sides = {found[1]: stems_of(found[2]), found[3]: stems_of(found[4])}
            yield "against", sides["against"], sides["for"]
        for marks in (_ORDER, _CAUSE):
            words = list(marks.finditer(sentence))
            if len(words) != 1:
                continue  # ambiguous: nothing says which denial applies to which word
            (word,) = words
            said = word[1] or word[2]
            left, right = sentence[: word.start()], sentence[word.end() :]
            if not stems_of(left):  # the clause comes first: “after the deploy, restart it”
                right, _, left = right.partition(",")
            one, other = stems_of(left), stems_of(right)
            pair = (other, one) if said == "after" or said in _EFFECT_FIRST else (one, other)
            yield said, pair[0] - pair[1], pair[1] - pair[0]


def contradicts_outcome(outcome: str, text: str, evidence: str) -> bool:
    """Return whether a text reports only failure, with a positive outcome, or only success, with a negative one."""
    whole = f"{text} {evidence}"
    if _DENIED.search(whole):
        return False
    has_failed, has_worked = _FAILED.search(whole) is not None, _WORKED.search(whole) is not None
    return (outcome == "positive" and has_failed and not has_worked) or (
        outcome == "negative" and has_worked and not has_failed and _SUCCESS.search(text) is not None
    )
