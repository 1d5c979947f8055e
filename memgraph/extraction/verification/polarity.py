"""Polarity: whether a clause of a claim states what its evidence denies, or denies what it does not.

A clause is compared with the clauses of the evidence that have the most words of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from memgraph.extraction.verification.clauses import MOST_CLAUSES, Clause
from memgraph.extraction.verification.words import stem
from memgraph.text import lazy_re as re

Stems = frozenset[str]
_LETTERS = re.compile(r"[^\W\d_]+")


class Denial(NamedTuple):
    """What a clause of evidence denies.

    Attributes
    ----------
    included : frozenset of str
        What else counts as denied: of “exports: none”, exports.
    topic : frozenset of str
        What stands before it in its clause.
    subjects : frozenset of str
        Of what it is denied: the topic, or what stands before the clause in its sentence.
    verb : frozenset of str
        What it leaves out: of “use tabs, not spaces”, use.
    beside : frozenset of str
        What its sentence states.
    """

    scope: Stems
    included: Stems
    topic: Stems
    subjects: Stems
    verb: Stems
    beside: Stems

    @property
    def keys(self) -> Stems:
        """The words of its clause, and the verb that it leaves out."""
        return self.scope | self.included | self.topic | self.verb

    def meets(self, clause: Clause, quoted: Stems) -> bool:
        """Return whether a clause denies something of it, of the same subject."""
        has_subject = not self.subjects or (clause.subject & quoted) <= self.subjects | self.scope | self.verb
        return has_subject and not clause.core.isdisjoint(self.scope | self.included)


class Polarity:
    """What the clauses of evidence state and deny."""

    def __init__(self, passages: Iterable[Iterable[Clause]]) -> None:
        self.stated: list[Stems] = []
        self.denials: list[Denial] = []
        self._heads: set[str] = set()
        self._headed: list[tuple[str, Stems]] = []
        for clauses in passages:
            sentence: list[Clause] = []
            for clause in clauses:
                if clause.begins_a_sentence:
                    self._add(sentence)
                    sentence = []
                if clause.keys or clause.is_denied:
                    sentence.append(clause)
            self._add(sentence)
        self.stated = list(dict.fromkeys(self.stated))
        self.denials = list(dict.fromkeys(self.denials))
        self._headed = list(dict.fromkeys(self._headed))

    def _add(self, sentence: list[Clause]) -> None:
        stated = [_stated(clause) for clause in sentence]
        beside = frozenset[str]().union(*stated)
        self.stated += filter(None, stated)
        for at, clause in enumerate(sentence):
            if (head := clause.head) in clause.keys:
                self._heads.add(head)
                if not clause.is_denied and not clause.follows_a_label:
                    self._headed.append((head, stated[at]))
            if clause.is_denied:
                self.denials.append(_denial(clause, sentence[max(at - MOST_CLAUSES, 0) : at], beside))

    def problems(self, clauses: Sequence[Clause], quoted: Stems) -> Iterator[str]:
        """Yield what is wrong with the clauses of a claim; `quoted` are all words of the evidence."""
        other = self.without(clauses, quoted).denials
        for clause in clauses:
            if clause.keys:
                yield from self._of_denial(clause, quoted) if clause.is_denied else self._of_statement(clause, other)

    def without(self, clauses: Iterable[Clause], quoted: Stems) -> Polarity:
        """Return this without the denials that clauses have too: for a field that only names."""
        denied = [clause for clause in clauses if clause.is_denied]
        other = Polarity(())
        other.stated = self.stated
        other.denials = [one for one in self.denials if not any(one.meets(clause, quoted) for clause in denied)]
        return other

    def _of_statement(self, clause: Clause, other: Sequence[Denial]) -> Iterator[str]:
        """Yield what is wrong with a clause that states; `other` are the denials that the claim does not have too."""
        for keys in (clause.keys, *clause.conjuncts):
            most = max((len(keys & one) for one in self.stated), default=0)
            for one in self.denials:
                denied = keys & (one.scope | one.included)
                if not most and one in other:
                    denied = keys & one.keys
                alike = len(keys & (one.keys if denied.isdisjoint(one.scope) else one.keys | one.subjects))
                if denied and (alike > most or (alike == most and all(map(denied.isdisjoint, self.stated)))):
                    yield f"the quoted evidence denies {shown(clause, denied)}"
                    return
        yield from self._of_another(clause)

    def _of_another(self, clause: Clause) -> Iterator[str]:
        """Yield that the evidence says this of another subject: “Clay is fired. Porcelain is sold.” does not say that porcelain is fired."""
        head = clause.head if clause.head in clause.keys else ""
        others = clause.keys - {head}
        if len(others) < 2 or head not in self._heads or any(clause.keys <= one for one in self.stated):
            return
        said = [
            first
            for first, keys in self._headed
            if others <= keys and head not in keys and len(keys) == len(others) + 1
        ]
        if said and all(first not in clause.keys for first in said):
            of = said[0].partition(" ")[2]
            yield f"the quoted evidence says this of “{of}”, not of {shown(clause, {head})}"

    def _of_denial(self, clause: Clause, quoted: Stems) -> Iterator[str]:
        if not self.denials:
            yield f"the quoted evidence denies nothing: quote the passage that denies {shown(clause, clause.core)}"
            return
        met = [one for one in self.denials if one.meets(clause, quoted)]
        denied = frozenset[str]().union(*(one.scope | one.included | one.verb for one in met))
        contrasted = clause.core & frozenset[str]().union(*(one.beside for one in met)) - denied
        keys = clause.topic | clause.core
        most = max((len(keys & one) for one in self.stated if not one.isdisjoint(clause.core)), default=0)
        if not met or contrasted or most > max(len(keys & (one.keys | one.subjects)) for one in met):
            yield f"the quoted evidence does not deny {shown(clause, contrasted or clause.core)}"
            return
        beside = clause.topic - clause.subject - frozenset[str]().union(*self.stated)
        if any(beside & one.scope for one in self.denials if one not in met):
            yield f"the quoted evidence denies {shown(clause, beside)}"


def shown(clause: Clause, keys: Iterable[str]) -> str:
    """Return words of a clause as it has them, in quotation marks."""
    wanted = set(keys)
    return f"“{' '.join(written for key, written in clause.shown.items() if key in wanted)}”"


def forms(clause: Clause, keys: Stems | None = None) -> Stems:
    """Return words, names and numbers of a clause, and the words that its names contain."""
    chosen = clause.keys if keys is None else keys
    if not clause.names:
        return chosen
    names = (clause.names[key] for key in chosen if key in clause.names)
    parts = [
        part
        for name in names
        for part in (*_LETTERS.findall(name.casefold()), f"/{name.casefold().rpartition('/')[2]}")
    ]
    return chosen.union(f"name {part[1:]}" if part[0] == "/" else f"word {stem(part)}" for part in parts)


def _stated(clause: Clause) -> Stems:
    if not clause.is_denied:
        return forms(clause)
    return (
        forms(clause) - clause.failing if clause.failing else frozenset()
    )  # “it fails to read”: it fails, and does not read


def _denial(clause: Clause, before: list[Clause], beside: Stems) -> Denial:
    """Return what a clause denies, after those before it in its sentence."""
    scope, topic = forms(clause, clause.scope), forms(clause, clause.topic)
    included, subjects, verb = frozenset[str](), topic, frozenset[str]()
    if before and clause.is_elliptic:  # “use tabs, not spaces”: the verb is left out
        included = included.union(*map(forms, _labels(before)))
        verb = frozenset(list(before[-1].words)[:1])
    elif before and (clause.is_relative or clause.is_labelled):
        included = included.union(*map(forms, _labels([*before, clause]) or before[-1:]))
        subjects = topic | included
    if not topic:
        subjects = subjects.union(*map(forms, before))
    return Denial(scope, included, topic, subjects, verb, beside)


def _labels(clauses: list[Clause]) -> list[Clause]:
    """Return the clauses before the last one that are labels of it: “shell: line 1: not found” has two."""
    found: list[Clause] = []
    for one, after in reversed(list(pairwise(clauses))):
        if not after.is_labelled:
            break
        found.append(one)
    return found
