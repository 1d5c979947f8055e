"""Verification of claims: whether the words of a claim occur in the evidence that it names.

It compares words, not meanings: numbers and names must occur as they are, other words in any inflection, and a denied word only where
the evidence denies it, of the same subject: a passage is judged by the whole clauses of its source. Function words are free, except
those that say the contrary of the evidence (`opposites`). So a true claim in other words is refused, and a claim that rearranges the
words of its evidence can pass. Pure. Cost: at most the length of the source times the length of each passage.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from memgraph.extraction.verification.clauses import (
    MOST_CLAUSES,
    Clause,
    bare_clause,
    clauses_of,
    parts_of,
    plain_number,
    prepared,
    sentences_of,
    stems,
)
from memgraph.extraction.verification.conditions import dropped_conditions
from memgraph.extraction.verification.opposites import contrary
from memgraph.extraction.verification.reports import reported, undecided
from memgraph.extraction.verification.spelling import is_misspelt
from memgraph.extraction.verification.words import CAUSAL, CLAIMS_A_CAUSE, DERIVED, stem
from memgraph.model.ids import canonical_name
from memgraph.text import lazy_re as re

_LEAST_STEM = 4
_MOST_PATH_PARTS = 8

_EDGES = ".:!?'’=&\\-–—/"
_NUMBER = re.compile(r"(?<![A-Za-z_\d.])(?<!^[-+])(?<![=:,/][-+])[vV]?(\d+(?:[.,:]\d+)*)")
_QUANTITY = re.compile(r"(\d+(?:[.,:]\d+)*)([a-z%]{1,12})")
_LINE = re.compile(r"(?<=[^\W\d]):\d+(?:[-:]\d+)*$")
"""The line that a path ends with."""
_WORD = re.compile(r"\S+")
_LETTERS = re.compile(r"[^\W\d_]+")
_FRAME = re.compile(r"^\[\d{1,4}\]$", re.MULTILINE)
"""The numbers of the parts of an excerpt."""
_CUT_BEFORE = re.compile(r"[^\W\d_]['-]$|\d[.,:'-]$|[-+.]$")
_CUT_AFTER = re.compile(r"['-]\w|[.,:]\d|%")
_MOST_PLACES = 8
"""So many places of a passage in its source are considered."""
_FROM_TO = re.compile(r"\bfrom ([^\s,;]{1,80})(?: [^\W\d]{1,20}){0,2} to ([^\s,;]{1,80})")


class _Denial(NamedTuple):
    """What a clause of evidence denies, what it is about, and what else counts as denied: “exports: none” denies exports."""

    scope: frozenset[str]
    topic: frozenset[str]
    subjects: frozenset[str]
    included: frozenset[str]


class Evidence(NamedTuple):
    """The words, names and numbers of evidence, of clauses that state and of those that deny, what these deny, its text, and its sentences."""

    stated: frozenset[str]
    denied: frozenset[str]
    denials: tuple[_Denial, ...]
    text: str
    sentences: tuple[str, ...]

    def told_by(self, claim: str) -> Evidence:
        """Return the evidence with what it denies as stated where a claim denies it too: for a field that only names."""
        told = _told(list(_said(claim)), self)
        return self._replace(stated=self.stated.union(*(one.scope | one.included for one in told)))


class _Collected:
    """Collects the words of clauses, and what they deny."""

    def __init__(self) -> None:
        self._stated: set[str] = set()
        self._denied: set[str] = set()
        self._denials: list[_Denial] = []

    def add(self, clauses: Iterable[Clause]) -> None:
        before: list[Clause] = []  # of the same sentence
        for clause in clauses:
            if clause.begins_a_sentence:
                before = []
            if not clause.keys and not clause.is_denied:
                continue
            if not clause.is_denied:
                self._stated |= _forms(clause)
            else:
                denial = _denial(clause, before)
                self._denials.append(denial)
                self._denied |= _forms(clause) | denial.included
                if clause.failing:  # “it fails to read the file”: it fails, and it does not read the file
                    self._stated |= _forms(clause) - clause.failing
            before = [*before[1 - MOST_CLAUSES :], clause]

    def evidence(self, text: str, sentences: Iterable[str]) -> Evidence:
        """Return what was collected, with the text of the evidence and the sentences of its source."""
        known = tuple(dict.fromkeys(sentences))
        return Evidence(frozenset(self._stated), frozenset(self._denied), tuple(self._denials), text, known)


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
    clauses = list(_said(claim))
    if not any(clause.words or clause.names for clause in clauses):
        return ["it says nothing that evidence could support"]
    known = evidence if isinstance(evidence, Evidence) else _evidence(evidence)
    told = _told(clauses, known)
    found = [
        problem
        for clause in clauses
        for problem in (_of_denial(clause, known) if clause.is_denied else _of_statement(clause, known, told))
    ]
    said = _comparable(prepared(claim))
    causes = sorted(CLAIMS_A_CAUSE & _plain_words(said))
    if causes and CAUSAL.isdisjoint(_plain_words(known.text)):
        found.append(f"its evidence states no cause (“{causes[0]}”)")
    found += contrary(said, known.text, stems)
    found += undecided(said, known.text, stems)
    found += dropped_conditions(prepared(claim), known.sentences, stems)
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
    collected = _Collected()
    missing, said = [], []
    sentences: list[str] = []
    for part in parts:
        wanted = _comparable(prepared(part))
        places = text.places(wanted) if wanted else []
        for clauses, around in places:
            collected.add(clauses)
            sentences += around
        if places:
            said.append(wanted)
        else:
            missing.append(part)
    return collected.evidence(". ".join(said), sentences), missing


def mentioned(texts: Sequence[str], source: str) -> list[str]:
    """Return the texts of which a source has every word, name and number somewhere, stated or denied."""
    if not texts:
        return []
    known = _evidence([source])
    keys = known.stated | known.denied
    shown = ((text, bare_clause(text).shown) for text in texts)
    return [text for text, said in shown if all(_occurs(key, one, keys, known.text) for key, one in said.items())]


def _said(claim: str) -> Iterator[Clause]:
    """Yield the clauses of a claim, without words that only report it: “the user wants …”."""
    return clauses_of(reported(prepared(claim)))


def _of_statement(clause: Clause, known: Evidence, told: Sequence[_Denial]) -> Iterator[str]:
    """Yield what is wrong with a clause of a claim that states.

    What a denial of the evidence is about may be stated by itself only if the claim has that denial too.
    """
    if any(clause.keys <= denial.topic for denial in told):
        return
    for key, shown in clause.shown.items():
        if not _occurs(key, shown, known.stated, known.text):
            is_denied = _occurs(key, shown, known.denied)
            yield f"its evidence denies “{shown}”" if is_denied else f"“{shown}” is not in its evidence"


def _of_denial(clause: Clause, known: Evidence) -> Iterator[str]:
    """Yield what is wrong with a clause of a claim that denies."""
    if not known.denials:
        yield "its evidence denies nothing"
        return
    denied = frozenset[str]().union(*(one.scope | one.included for one in _denials_of(clause, known)))
    for key, shown in clause.shown.items():
        if not _occurs(key, shown, known.stated | known.denied, known.text):
            yield f"“{shown}” is not in its evidence"
        elif key in clause.scope and not _occurs(key, shown, denied, known.text):
            yield f"its evidence does not deny “{shown}”"


def _denials_of(clause: Clause, known: Evidence) -> list[_Denial]:
    """Return the denials of the evidence that deny something of what a clause denies, of the same subject."""
    shown = clause.shown
    return [
        denial
        for denial in known.denials
        if any(_occurs(key, shown[key], denial.scope) for key in clause.scope)
        and all(_occurs(key, shown[key], denial.subjects | denial.scope) for key in clause.subject)
    ]


def _told(clauses: Sequence[Clause], known: Evidence) -> list[_Denial]:
    """Return the denials of the evidence that a claim has too."""
    return [
        denial
        for clause in clauses
        if clause.is_denied and not any(_of_denial(clause, known))
        for denial in _denials_of(clause, known)
    ]


def _denial(clause: Clause, before: Sequence[Clause]) -> _Denial:
    """Return what a clause denies, after those before it in its sentence."""
    scope, topic = _forms(clause, clause.scope), _forms(clause, clause.topic)
    included, subjects = topic, topic
    if before and clause.is_elliptic:  # “use tabs, not spaces”: the verb is left out
        included = topic.union(list(before[-1].words)[:1], *map(_forms, _labels(before)))
    elif before and (clause.is_relative or clause.is_labelled):
        included = subjects = topic.union(*map(_forms, _labels([*before, clause]) or before[-1:]))
    if not topic:
        subjects = subjects.union(*map(_forms, before))
    return _Denial(scope, topic, subjects, included)


def _labels(clauses: Sequence[Clause]) -> list[Clause]:
    """Return the clauses before the last one that are labels of it: “shell: line 1: not found” has two."""
    found: list[Clause] = []
    for one, after in reversed(list(pairwise(clauses))):
        if not after.is_labelled:
            break
        found.append(one)
    return found


def _forms(clause: Clause, keys: frozenset[str] | None = None) -> frozenset[str]:
    """Return words, names and numbers of a clause, all that its names contain, and words as they are written."""
    chosen = clause.keys if keys is None else keys
    found = set(chosen)
    for key in chosen:
        if key in clause.names:
            found.update(_parts_of_name(clause.names[key]))
        else:
            found.add(f"name {clause.words[key]}")
    return frozenset(found)


def _occurs(key: str, shown: str, keys: frozenset[str], text: str = "") -> bool:
    """Return whether a word occurs in some form, or a name as it is, as the end of a path, or as a number in another name.

    A name may be written as an ordinary word is, and an ordinary word may be misspelt there.
    """
    if key in keys:
        return True
    kind, _, said = key.partition(" ")
    if kind == "name":
        return f"number {said}" in keys or _is_written(said, text)
    return (
        len(said) >= _LEAST_STEM
        and any(
            f"{key}{ending}" in keys
            or (said.endswith(ending) and len(said) - len(ending) >= _LEAST_STEM and key.removesuffix(ending) in keys)
            for ending in DERIVED
        )
    ) or _is_written(said, text) or any(is_misspelt(one.removeprefix("name "), shown) for one in keys if one.startswith("name "))  # fmt: skip


def _is_written(wanted: str, text: str) -> bool:
    """Return whether evidence has a word in a script without spaces, or a number and its unit with or without a space."""
    if (quantity := _QUANTITY.fullmatch(wanted)) is not None:
        return re.search(rf"(?<![\d.]){re.escape(quantity[1])} ?{re.escape(quantity[2])}(?!\w)", text) is not None
    return any(unicodedata.east_asian_width(char) in "WF" for char in wanted) and wanted in text


class _Source:
    """A text, its clauses, and its comparable form with the place of each word in both."""

    def __init__(self, text: str) -> None:
        text = prepared(text)
        self._text = _FRAME.sub(lambda frame: " " * len(frame[0]), text)
        self._parts = parts_of(self._text)
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

    def places(self, wanted: str) -> list[tuple[list[Clause], list[str]]]:
        """Return the clauses of a passage, and the whole sentences that it stands in, for each of its places."""
        found: list[tuple[list[Clause], list[str]]] = []
        ranges: set[tuple[int, int]] = set()
        place = self._whole.find(wanted)
        while place >= 0 and len(found) < _MOST_PLACES:
            end = place + len(wanted)
            if not self._is_cut(place) and not self._is_cut(end):
                start, stop = self._offset(place, is_end=False), self._offset(end - 1, is_end=True)
                first, last = (max(bisect_right(self._starts, at) - 1, 0) for at in (start, stop - 1))
                if (first, last) not in ranges:
                    ranges.add((first, last))
                    clauses = [part.within(self._text, start, stop) for part in self._parts[first : last + 1]]
                    found.append((clauses, sentences_of(self._text, self._parts, first, last)))
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


def _is_of_word(char: str) -> bool:
    """Return whether a character is part of a word that can be cut; scripts without spaces have none."""
    return (char.isalnum() or char == "_") and unicodedata.east_asian_width(char) not in "WF"


def _evidence(texts: Sequence[str]) -> Evidence:
    collected = _Collected()
    for text in texts:
        collected.add(clauses_of(prepared(text)))
    sentences = [one for text in texts for one in sentences_of(prepared(text))]
    return collected.evidence(_comparable(prepared(". ".join(texts))), sentences)


def _parts_of_name(text: str) -> Iterator[str]:
    """Yield the numbers and the words that a name contains, the path without its line, and the ends of a path."""
    if not text.endswith("%"):
        yield from (f"number {plain_number(number)}" for number in _NUMBER.findall(text))
    yield from (f"word {stem(word)}" for word in _LETTERS.findall(text.casefold()))
    path = text.casefold().replace("\\", "/")
    for name in dict.fromkeys((path, _LINE.sub("", path))):
        yield f"name {name}"
        for parts in range(1, 1 + min(name.count("/"), _MOST_PATH_PARTS)):
            yield f"name {'/'.join(name.rsplit('/', parts)[1:])}"


def _plain_words(text: str) -> set[str]:
    return set(_LETTERS.findall(text))


def _comparable(text: str) -> str:
    return canonical_name(text.replace("’", "'"))
