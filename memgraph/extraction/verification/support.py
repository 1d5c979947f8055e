"""Verification of claims: whether the evidence that a claim names says it, in these words or in others.

Exact items (numbers, names, paths, options, quoted text) must stand in the evidence or in its record. Ordinary words may be those of the
whole source, and a few may be new, as a paraphrase needs them; but half of a sentence's words must be in the evidence, none may be the
opposite of one there (`opposites`), and what is stated or denied is compared with the clause of the evidence that says most of it
(`polarity`). Function words and words of telling are free. Words are compared, not meanings: a claim that rearranges the words of its
evidence can pass. Pure. Cost: at most the length of the source times the length of each passage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memgraph.extraction.verification.clauses import Clause, bare_clause, clauses_of, prepared, stems
from memgraph.extraction.verification.conditions import dropped_conditions
from memgraph.extraction.verification.exact import plain, stands_in
from memgraph.extraction.verification.opposites import contrary
from memgraph.extraction.verification.polarity import Polarity, forms
from memgraph.extraction.verification.reasons import unstated_reasons
from memgraph.extraction.verification.sources import Source, without_fields
from memgraph.extraction.verification.words import stem
from memgraph.model.ids import canonical_name
from memgraph.text import lazy_re as re

_DECIDED = r"decid\w+|agreed|chose"
_COMMITTED = re.compile(rf"\b(?:{_DECIDED})\b")
_OPEN = re.compile(r"\?|\b(?:maybe|perhaps|might|could|consider\w*|suggest\w*|propos\w+|should we|let us see)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")
_LEAST_LETTERS = 6
SAYS_NOTHING = "it says nothing that evidence could support"
_WORDS_FOR_A_NEW_ONE = 5
"""So many words of a sentence allow one that the source does not have."""
_LEAST_WORDS = 4
"""Of so many words of a sentence, half must be quoted."""
_MOST_MISSPELT = 20
_NUMBER = re.compile(r"[-+]?\d[\d.,:]*\W?")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d")
_EDGES = ".:!?'’=&\\-–—/"
_LETTERS = re.compile(r"[^\W\d_]+")
_FROM_TO = re.compile(r"\bfrom ([^\s,;]{1,80})(?: [^\W\d]{1,20}){0,2} to ([^\s,;]{1,80})")
_USER = re.compile(r"\b(?:the )?users?(?:'s?)?(?![\w-])", re.IGNORECASE)
_TEAM = re.compile(r"\b(?:the )?team\b", re.IGNORECASE)
_WE = re.compile(r"\b(?:we|us|our)\b")
_QUOTED = re.compile(r"[“\"]([^“”\"\n]{1,400})[”\"]")
_BEGINS = re.compile(r"(?:^|[.!?:;]\s+|\n)[^\w\n]{0,4}(\w+)")


@dataclass(frozen=True)
class Evidence:
    """What is quoted of a source, and what stands around it.

    Attributes
    ----------
    text, around : str
        What is quoted, and the records that it stands in, in comparable form.
    quoted, near, known : frozenset of str
        The words, names and numbers of what is quoted, of its records, and the words of the whole source.
    written : frozenset of str
        The words of the source as it has them.
    sentences : tuple
        The whole sentences of each passage.
    by_user : bool
        Whether a turn of the user is in one of the records.
    """

    text: str
    around: str
    quoted: frozenset[str]
    near: frozenset[str]
    told: str
    numbers: frozenset[str]
    known: frozenset[str]
    written: frozenset[str]
    polarity: Polarity
    sentences: tuple[tuple[str, ...], ...]
    by_user: bool

    def told_by(self, claim: str) -> Evidence:
        """Return the evidence without what a claim denies too: for a field that only names."""
        return replace(self, polarity=self.polarity.without(clauses_of(prepared(claim)), self.quoted))

    def has(self, key: str, written: str) -> bool:
        """Return whether an exact item stands in the records of the evidence, or a number in its sentences."""
        keys, text = (self.numbers, self.told) if _NUMBER.fullmatch(written) else (self.near, self.around)
        items = (key.partition(" ")[2], canonical_name(written))
        return key in keys or any(stands_in(plain(item), text) for item in items)

    def is_proper(self, word: str) -> bool:
        """Return whether the source has a word only as a name: with a capital."""
        return word in self.written and word.casefold() not in self.written


def unsupported(claim: str, evidence: Evidence | Sequence[str]) -> list[str]:
    """Return what a claim says that its evidence does not, in words as the claim has them.

    Parameters
    ----------
    evidence : Evidence or sequence of str
        Parts of a source (`evidence_in`), or texts that are each quoted as a whole.

    Returns
    -------
    list of str
        Descriptions, each once; empty if the claim is supported. A claim without any word of its own is not.
    """
    known = evidence if isinstance(evidence, Evidence) else evidence_in("\n\n".join(evidence), evidence)[0]
    text = without_fields(prepared(claim))
    if known.by_user:
        text = _USER.sub(" ", text)
    if _WE.search(known.text) is not None:
        text = _TEAM.sub(" ", text)
    clauses = list(clauses_of(text))
    if not any(clause.words or clause.names for clause in clauses):
        return [SAYS_NOTHING]
    found = [*_unsaid(text, clauses, known), *_misquoted(claim, known)]
    found += known.polarity.problems(clauses, known.quoted)
    said, sentences = _comparable(text), [one for some in known.sentences for one in some]
    found += unstated_reasons(said, known.text, known.sentences, stems)
    found += contrary(said, known.text, stems)
    found += undecided(said, known.text, stems)
    found += dropped_conditions(text, sentences, stems)
    for ends in _FROM_TO.findall(said):
        old, new = (end.strip(_EDGES) for end in ends)
        if -1 < known.text.rfind(new) < known.text.find(old):
            found.append(f"the quoted evidence does not lead from “{old}” to “{new}”")
    return list(dict.fromkeys(found))


def _unsaid(text: str, clauses: Sequence[Clause], known: Evidence) -> Iterator[str]:
    """Yield the exact items and the words of a claim that its evidence does not have."""
    initial = set(_BEGINS.findall(text))
    for sentence in _sentences(clauses):
        new: list[str] = []
        quoted = total = 0
        for key, written in sentence.items():
            kind = key.partition(" ")[0]
            is_exact = kind == "name" or (
                written[:1].isupper() and (written not in initial or known.is_proper(written))
            )
            total += 1
            quoted += key in known.quoted
            if is_exact:
                if known.has(key, written):
                    quoted += key not in known.quoted
                else:
                    yield f"“{written}” is not in the quoted evidence: quote the passage that has it"
            elif canonical_name(written) in _USERS and key not in known.near:
                yield f"“{written}” is not in the quoted evidence: quote the turn of the user, or say who said it"
            elif key not in known.known and not stands_in(written.casefold(), known.around):
                if len(new) < _MOST_MISSPELT and any(is_misspelt(one, written) for one in known.written):
                    quoted += 1
                else:
                    new.append(written)
        if len(new) > total // _WORDS_FOR_A_NEW_ONE:
            for word in new:
                yield f"“{word}” is not in the source: say it in its words"
        elif 2 * quoted < total >= _LEAST_WORDS:
            yield "the quoted evidence has less than half of the words of a sentence: quote the passages that say it"


def _misquoted(claim: str, known: Evidence) -> Iterator[str]:
    """Yield the quotations of a claim that its evidence does not have word for word."""
    for quotation in _QUOTED.findall(prepared(claim)):
        wanted = _comparable(quotation).strip(" .,:;!?")
        if " " in wanted and wanted not in known.around:
            yield f"“{quotation}” is not in the quoted evidence word for word: quote it as it is"


_USERS = frozenset({"user", "users"})


def _sentences(clauses: Iterable[Clause]) -> list[dict[str, str]]:
    """Return the words, names and numbers of each sentence of a claim."""
    found: list[dict[str, str]] = []
    for clause in clauses:
        if clause.begins_a_sentence or not found:
            found.append({})
        found[-1].update(clause.shown)
    return found


def evidence_in(source: str, parts: Iterable[str]) -> tuple[Evidence, list[str]]:
    """Return what parts of a source say there, and those that are not in it, ignoring case and white space.

    A part that cuts a word or a number of the source is not in it. A part counts with its own words, and is a denial where the clauses
    are that it stands in.
    """
    text = Source(source)
    missing: list[str] = []
    said: list[str] = []
    passages: list[list[Clause]] = []
    sentences: list[tuple[str, ...]] = []
    records: list[str] = []
    by_user = False
    for part in parts:
        wanted = _comparable(prepared(part))
        places = text.places(wanted)
        (said if places else missing).append(wanted if places else part)
        for place in places:
            passages.append(place.clauses)
            sentences.append(place.sentences)
            records.append(place.record)
            by_user = by_user or place.by_user
    around = "\n".join(dict.fromkeys(records))
    whole = _DAY.sub(" ", " . ".join(one for some in dict.fromkeys(sentences) for one in some))
    written = frozenset(_LETTERS.findall(text.text))
    evidence = Evidence(
        text=". ".join(said),
        around=plain(_comparable(around)),
        quoted=frozenset[str]().union(*(forms(clause) for one in passages for clause in one)),
        near=forms(bare_clause(around)),
        told=plain(_comparable(whole)),
        numbers=forms(bare_clause(whole)),
        known=frozenset(f"word {stem(word)}" for word in {one.casefold() for one in written}),
        written=written,
        polarity=Polarity(passages),
        sentences=tuple(dict.fromkeys(sentences)),
        by_user=by_user,
    )
    return evidence, missing


def mentioned(texts: Sequence[str], source: str) -> list[str]:
    """Return the texts of which a source has every word, name and number somewhere, stated or denied."""
    if not texts:
        return []
    known, _ = evidence_in(source, [])
    around = plain(_comparable(prepared(source)))
    keys = forms(bare_clause(around)) | known.known
    shown = ((text, bare_clause(text).shown) for text in texts)
    return [
        text
        for text, said in shown
        if all(key in keys or stands_in(plain(canonical_name(one)), around) for key, one in said.items())
    ]


def _comparable(text: str) -> str:
    return canonical_name(text.replace("’", "'"))


def is_misspelt(word: str, right: str) -> bool:
    """Return whether an ordinary word is another one of at least six letters with one letter more, one less, or two swapped.

    The first letter must agree, and the last one unless two are swapped: “asynchronous”, “unloaded” and “imports” are other words than
    “synchronous”, “loaded” and “import”. So is one with another letter in its place: “parsed” and “passed”.
    """
    if not all(len(one) >= _LEAST_LETTERS and one.isalpha() and one.islower() for one in (word, right)):
        return False
    if word == right or word[0] != right[0] or abs(len(word) - len(right)) > 1:
        return False
    if len(word) == len(right):
        places = [at for at, (one, other) in enumerate(zip(word, right, strict=True)) if one != other]
        return len(places) == 2 and places[1] == places[0] + 1 and word[places[0]] + word[places[1]] == right[places[1]] + right[places[0]]  # fmt: skip
    longer, shorter = sorted((word, right), key=len, reverse=True)
    return longer[-1] == shorter[-1] and any(
        longer[:at] + longer[at + 1 :] == shorter for at in range(1, len(longer) - 1)
    )


def undecided(claim: str, evidence: str, stems_of: Callable[[str], frozenset[str]]) -> Iterator[str]:
    """Yield that a claim says that something was decided which its evidence only asks or proposes.

    Parameters
    ----------
    claim, evidence : str
        In comparable form: folded, contractions written out.
    stems_of : callable
        Returns the stems of a text's words, without function words.
    """
    said = _COMMITTED.search(claim)
    if said is None or _COMMITTED.search(evidence) is not None:
        return
    wanted = stems_of(claim)
    nearest = max(_SENTENCE.split(evidence), key=lambda one: len(wanted & stems_of(one)))
    if _OPEN.search(nearest) is not None:
        yield f"the quoted evidence asks or proposes it, and does not say “{said[0]}”"
