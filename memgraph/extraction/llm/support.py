"""Verification of claims: whether the words of a claim occur in the evidence that it names.

It compares words, not meanings: numbers and names must occur as they are, other words in any inflection, and a denied word only where
the evidence denies it: a passage is judged by the whole clauses of its source. Function words are free, except those that say the
contrary of the evidence (`opposites`). So a true claim in other words is refused, and a claim that rearranges the words of its
evidence can pass. Pure. Cost: at most the length of the source times the length of each passage.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memgraph.extraction.llm.opposites import contrary
from memgraph.extraction.llm.words import (
    CAUSAL,
    CLAIMS_A_CAUSE,
    DERIVED,
    FUNCTION_WORDS,
    INTERJECTION,
    NEGATIONS,
    NUMBERS,
    stem,
)
from memgraph.model.ids import canonical_name
from memgraph.text.negation import expanded
from memgraph.text.numbers import SUPERSCRIPT

_LEAST_STEM = 4
_MOST_PATH_PARTS = 8

_SEPARATORS = re.compile(r"[\s()\[\]{}<>\"“”„«»‘`;|*]+|,(?!\d)|(?<!\d),|(?<=\s)[-–—]+(?=\s)|…")
_EDGES = ".:!?'’=&\\-–—/"
_PERCENT = re.compile(r"(?<=\d)\s?(?:%|per ?cent\b)", re.IGNORECASE)
_IN_ORDER_TO = re.compile(r"\bin order to\b", re.IGNORECASE)
_FAILS_TO = re.compile(
    r"\b(?:fail(?:s|ed|ing)?|unable|refus(?:e|es|ed|ing)|forgets?|forgot|impossible) to ([^\W\d_]+)", re.IGNORECASE
)
"""What it governs is denied, whatever the rest of the clause says."""
_DIGIT_OR_SIGN = re.compile(r"[\d_./\\:=@#+~$%]|(?<=[a-z])[A-Z]")
_NUMBER = re.compile(r"(?<![A-Za-z_\d.])(?<!^[-+])(?<![=:,/][-+])[vV]?(\d+(?:[.,:]\d+)*)")
_QUANTITY = re.compile(r"(\d+(?:[.,:]\d+)*)([a-z%]{1,12})")
_WORD = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W\d_]+")
_IN_PLACE_OF = re.compile(r"\b(?:instead\s+of|rather\s+than)\b", re.IGNORECASE)
_SIGN = re.compile(r"[^\w]*?([-+])\.?\d")
_OPERATOR = re.compile(r"(?<![=!<>])[=!<>]==?(?![=>])|(?<=\s)[<>](?=\s)|[≠≤≥]")
_FRAME = re.compile(r"^\[\d{1,4}\]$", re.MULTILINE)
"""The numbers of the parts of an excerpt."""
_CUT_BEFORE = re.compile(r"[^\W\d_]['-]$|\d[.,:'-]$|[-+.]$")
_CUT_AFTER = re.compile(r"['-]\w|[.,:]\d|%")
_MOST_PLACES = 8
"""So many places of a passage in its source are considered."""
_CLAUSE = re.compile(
    r"[.!?;:]+(?=\s|$)|,(?=\s)|\n\s*(?=\n|[-*•#>]|\d{1,3}[.)]|(?-i:[A-Z]))|\s[-–—]+\s|[()]"
    r"|(?<!\bnot)(?<!\bnever)\s(?=(?:but|because|so|if|when|unless|while|although|though|since|until|then|without)\s)"
    r"|\sand\s(?=(?:must|should|is|are|was|were|do|does|did|can|cannot|will|would|has|have|it|they|we|you|i|this|that|never|not|no|always)\s)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;]|\n\s*\n")
_FROM_TO = re.compile(r"\bfrom ([^\s,;]{1,80})(?: [^\W\d]{1,20}){0,2} to ([^\s,;]{1,80})")


class _Clause(NamedTuple):
    """A clause: whether it denies, its words by their stems, its names and numbers, and what it says that something fails to do."""

    is_denied: bool
    words: dict[str, str]
    names: dict[str, str]
    failing: frozenset[str]


class _Part(NamedTuple):
    """Where a clause stands in a text, and whether it denies."""

    start: int
    end: int
    is_denied: bool


class Evidence(NamedTuple):
    """The words, names and numbers of evidence, of clauses that state and of those that deny, and its text."""

    stated: frozenset[str]
    denied: frozenset[str]
    text: str


def unsupported(claim: str, evidence: Evidence | Sequence[str]) -> list[str]:
    """Return what a claim says that its evidence does not: words, names and numbers as the claim has them, and denials.

    Parameters
    ----------
    evidence : Evidence or sequence of str
        Parts of a source (`evidence_in`), or texts that are each judged by themselves.

    Returns
    -------
    list of str
        Descriptions, each once; empty if the claim is supported. A claim without any word of its own is not.
    """
    clauses = list(_clauses(claim))
    if not any(clause.words or clause.names for clause in clauses):
        return ["it says nothing that evidence could support"]
    known = evidence if isinstance(evidence, Evidence) else _evidence(evidence)
    found = [problem for clause in clauses for problem in _of_clause(clause, known)]
    said = _comparable(_prepared(claim))
    causes = sorted(CLAIMS_A_CAUSE & _plain_words(said))
    if causes and CAUSAL.isdisjoint(_plain_words(known.text)):
        found.append(f"its evidence states no cause (“{causes[0]}”)")
    found += contrary(said, known.text, _stems)
    for ends in _FROM_TO.findall(said):
        old, new = (end.strip(_EDGES) for end in ends)
        if -1 < known.text.rfind(new) < known.text.find(old):
            found.append(f"its evidence does not lead from “{old}” to “{new}”")
    return list(dict.fromkeys(found))


def evidence_in(source: str, parts: Iterable[str]) -> tuple[Evidence, list[str]]:
    """Return what parts of a source say there, and those that are not in it, ignoring case and white space.

    A part that cuts a word or a number of the source is not in it. A part counts with its own words, and is a denial where the clauses
    are that it stands in.
    """
    text = _Source(source)
    stated: set[str] = set()
    denied: set[str] = set()
    missing, said = [], []
    for part in parts:
        wanted = _comparable(_prepared(part))
        places = text.places(wanted) if wanted else []
        for clauses in places:
            _collect(clauses, stated, denied)
        if places:
            said.append(wanted)
        else:
            missing.append(part)
    return Evidence(frozenset(stated), frozenset(denied), ". ".join(said)), missing


def mentioned(texts: Sequence[str], source: str) -> list[str]:
    """Return the texts of which a source has every word, name and number somewhere, stated or denied."""
    known = _evidence([source]) if texts else Evidence(frozenset(), frozenset(), "")
    keys = known.stated | known.denied
    return [text for text in texts if all(_occurs(key, keys) or _is_written(key, known.text) for key in _stems(text))]


def _of_clause(clause: _Clause, known: Evidence) -> Iterator[str]:
    """Yield what is wrong with one clause of a claim."""
    if clause.is_denied and not known.denied:
        yield "its evidence denies nothing"
        return
    for key, shown in [*clause.words.items(), *clause.names.items()]:
        is_denied = clause.is_denied != (key in clause.failing)
        same, other = (known.denied, known.stated) if is_denied else (known.stated, known.denied)
        if _occurs(key, same):
            continue
        if not _occurs(key, other):
            if not _is_written(key, known.text):
                yield f"“{shown}” is not in its evidence"
        else:
            yield f"its evidence {'does not deny' if is_denied else 'denies'} “{shown}”"


def _occurs(key: str, keys: frozenset[str]) -> bool:
    """Return whether a word occurs in some form, or a name as it is, as the end of a path, or as a number in another name."""
    if key in keys:
        return True
    kind, _, text = key.partition(" ")
    if kind == "name":
        return f"number {text}" in keys
    return len(text) >= _LEAST_STEM and any(
        f"{key}{ending}" in keys
        or (text.endswith(ending) and len(text) - len(ending) >= _LEAST_STEM and key.removesuffix(ending) in keys)
        for ending in DERIVED
    )


def _is_written(key: str, text: str) -> bool:
    """Return whether evidence has a word in a script without spaces, or a number and its unit with or without a space."""
    wanted = key.partition(" ")[2]
    if (quantity := _QUANTITY.fullmatch(wanted)) is not None:
        return re.search(rf"(?<![\d.]){re.escape(quantity[1])} ?{re.escape(quantity[2])}(?!\w)", text) is not None
    return any(unicodedata.east_asian_width(char) in "WF" for char in wanted) and wanted in text


class _Source:
    """A text, its clauses, and its comparable form with the place of each word in both."""

    def __init__(self, text: str) -> None:
        text = _prepared(text)
        self._text = _FRAME.sub(lambda frame: " " * len(frame[0]), text)
        self._parts = _parts(self._text)
        self._starts = [part.start for part in self._parts]
        self._words: list[tuple[int, int, bool]] = []  # start, end, and whether the comparable form is as long
        self._places: list[int] = []
        forms: list[str] = []
        place = 0
        for word in _WORD.finditer(text):
            if form := canonical_name(word[0]):
                self._words.append((word.start(), word.end(), len(form) == len(word[0])))
                self._places.append(place)
                forms.append(form)
                place += len(form) + 1
        self._whole = " ".join(forms)

    def places(self, wanted: str) -> list[list[_Clause]]:
        """Return the clauses of a passage, for each of its places."""
        found: list[list[_Clause]] = []
        ranges: set[tuple[int, int]] = set()
        place = self._whole.find(wanted)
        while place >= 0 and len(found) < _MOST_PLACES:
            end = place + len(wanted)
            if not self._is_cut(place) and not self._is_cut(end):
                start, stop = self._offset(place, is_end=False), self._offset(end - 1, is_end=True)
                first, last = (max(bisect_right(self._starts, at) - 1, 0) for at in (start, stop - 1))
                if (first, last) not in ranges:
                    ranges.add((first, last))
                    found.append([self._within(part, start, stop) for part in self._parts[first : last + 1]])
            place = self._whole.find(wanted, place + 1)
        return found

    def _is_cut(self, place: int) -> bool:
        """Return whether this place is inside of a word or a number."""
        before, after = self._whole[max(place - 2, 0) : place], self._whole[place : place + 2]
        if not before or not after:
            return False
        if _is_of_word(before[-1]) and _is_of_word(after[0]):
            return True
        if _is_of_word(after[0]) and (cut := _CUT_BEFORE.search(before)) is not None:
            return len(cut[0]) == 2 or after[0].isdecimal()
        return (
            _is_of_word(before[-1])
            and (cut := _CUT_AFTER.match(after)) is not None
            and (cut[0][0] in "'-" or before[-1].isdecimal())
        )

    def _offset(self, place: int, *, is_end: bool) -> int:
        """Return where a character of the comparable form stands in the text, or where it ends."""
        number = bisect_right(self._places, place) - 1
        start, end, is_as_long = self._words[number]
        if is_as_long:
            return start + place - self._places[number] + is_end
        return end if is_end else start

    def _within(self, part: _Part, start: int, stop: int) -> _Clause:
        said = _clause(self._text[max(part.start, start) : min(part.end, stop)])
        return said._replace(is_denied=part.is_denied)


def _is_of_word(char: str) -> bool:
    """Return whether a character is part of a word that can be cut; scripts without spaces have none."""
    return (char.isalnum() or char == "_") and unicodedata.east_asian_width(char) not in "WF"


def _evidence(texts: Sequence[str]) -> Evidence:
    stated: set[str] = set()
    denied: set[str] = set()
    for text in texts:
        _collect(_clauses(text), stated, denied)
    return Evidence(frozenset(stated), frozenset(denied), _comparable(_prepared(". ".join(texts))))


def _collect(clauses: Iterable[_Clause], stated: set[str], denied: set[str]) -> None:
    before: dict[str, str] = {}
    for clause in clauses:
        into, other = (denied, stated) if clause.is_denied else (stated, denied)
        for text in clause.names.values():
            into.update(_parts_of_name(text))
        into.update(clause.words.keys() - clause.failing, clause.names)
        if clause.failing:  # “it fails to read the file”: it fails, and it does not read the file
            other.update(clause.words, clause.names)
        if clause.is_denied and before:  # “use tabs, not spaces”: the verb is left out
            into.update(list(before)[:1])
        before = clause.words


def _parts_of_name(text: str) -> Iterator[str]:
    """Yield the numbers and the words that a name contains, and the ends of a path."""
    if not text.endswith("%"):
        yield from (f"number {_plain_number(number)}" for number in _NUMBER.findall(text))
    yield from (f"word {stem(word)}" for word in _LETTERS.findall(text.casefold()))
    path = text.casefold().replace("\\", "/")
    for parts in range(1, 1 + min(path.count("/"), _MOST_PATH_PARTS)):
        yield f"name {'/'.join(path.rsplit('/', parts)[1:])}"


def _prepared(text: str) -> str:
    text = expanded(text.replace("’", "'").replace("−", "-").translate(SUPERSCRIPT))
    return _IN_ORDER_TO.sub("to", _PERCENT.sub("%", _IN_PLACE_OF.sub("without", text)))


def _clauses(text: str) -> Iterator[_Clause]:
    text = _prepared(text)
    for part in _parts(text):
        clause = _clause(text[part.start : part.end])._replace(is_denied=part.is_denied)
        if clause.words or clause.names or clause.is_denied:
            yield clause


def _parts(text: str) -> list[_Part]:
    """Return where the clauses of a text stand. “Do not, in general, …”: a denial alone denies the rest of its sentence, but “no, …” does not."""
    found: list[_Part] = []
    start, is_carried = 0, False
    for cut in [*_CLAUSE.finditer(text), None]:
        end = len(text) if cut is None else cut.start()
        clause = _clause(text[start:end])
        found.append(_Part(start, end, clause.is_denied != is_carried))
        is_bare = clause.is_denied and not clause.words and not clause.names
        if is_bare and text[start:end].strip().casefold() != INTERJECTION:
            is_carried = not is_carried
        if cut is not None:
            is_carried = is_carried and _SENTENCE_END.search(cut[0]) is None
            start = cut.end()
    return found


def _clause(text: str) -> _Clause:
    words: dict[str, str] = {}
    names: dict[str, str] = {f"name {operator}": operator for operator in _OPERATOR.findall(text)}
    denials = 0
    failing = frozenset(f"word {stem(verb.casefold())}" for verb in _FAILS_TO.findall(text))
    for token in _tokens(text):
        folded = unicodedata.normalize("NFKC", token).casefold()
        if folded in NEGATIONS:
            denials += 1
        elif folded in NUMBERS:
            names[f"name {NUMBERS[folded]}"] = token
        elif folded in FUNCTION_WORDS:
            continue
        elif _DIGIT_OR_SIGN.search(token) or token.startswith("--"):
            names[f"name {_plain_number(folded)}"] = token
        else:
            for word in folded.split("-"):
                if word and word not in FUNCTION_WORDS:
                    words[f"word {stem(word)}"] = word
    return _Clause(denials % 2 == 1, words, names, failing & words.keys())


def _tokens(text: str) -> Iterator[str]:
    for raw in _SEPARATORS.split(text):
        token = raw.rstrip(_EDGES)
        token = token if token.startswith("--") else token.lstrip(_EDGES.replace("/", "@"))
        token = token[:-2] if token.casefold().endswith("'s") else token
        if token[:1].isdecimal() and (signed := _SIGN.match(raw)) is not None:
            token = signed[1] + token
        if token:
            yield token


def _plain_number(text: str) -> str:
    """Return a number without separators of thousands; any other text unchanged."""
    return text.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text


def _stems(text: str) -> frozenset[str]:
    clause = _clause(text)
    return frozenset((*clause.words, *clause.names))


def _plain_words(text: str) -> set[str]:
    return set(_LETTERS.findall(text))


def _comparable(text: str) -> str:
    return canonical_name(text.replace("’", "'"))
