"""Claims: sentences in a normal form in which two statements about one thing can be compared word by word.

`The port is now 8080.`, `Set the port to 8080` and `port = 8080` are one claim: ``port = 8080``. Negation, condition
and what is to be replaced (*instead* of what) are kept apart from its words. A sentence that is not understood is kept
as its own words, so that different things are never taken for equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from memgraph.index.analyser import STOPWORDS, analyse
from memgraph.index.columns import QUESTION_MARKS
from memgraph.text import lazy_re as re
from memgraph.text.sentences import split_sentences

IS = "="
"""Stands for every phrase that gives something a value."""
_MAX_SENTENCES = 6
_MAX_WORDS = 48
_LABEL = re.compile(
    r"(?:Fix|Decision|Change|Removal|Safeguard|Note|Rule|Preference|Fact|Instruction by the user|The user said):\s+"
)
_WHEN_AND_WHERE = re.compile(r"On \d{4}-\d\d-\d\d in [^\s,]{1,100}, ")
_CONDITION = (
    r"when|whenever|if|unless|except|until|while|during|after|before|in|on|for|at|within|only|but|where|outside"
)
_LEAD = re.compile(rf"(?:{_CONDITION})\b[^,]{{1,80}},\s+", re.IGNORECASE)
_TAIL = re.compile(r",\s|\s[–—-]\s|:\s|\s\(|\s(?:because|since|so that|as of|which|due to)\s", re.IGNORECASE)
_CONDITIONAL_TAIL = re.compile(rf"[\s,–—:-]*(?:\(|(?:{_CONDITION}|not)\b)", re.IGNORECASE)
_REJECTED = re.compile(
    r"(?:,?\s+(?:instead of|rather than|and not|in favou?r over)|,\s+not)\s+((?:[^\s,.;]+\s+){0,2}?[^\s,.;]+)"
    r"(?=\s+(?:for|in|when|to|as|on|at|with|because|if)\b|[,.;]|$)",
    re.IGNORECASE,
)
_OVER = re.compile(r"(?<=\bprefer)(s?\s+(?:\S+\s+){1,3}?)over\s+(\S+)", re.IGNORECASE)
_GLUED = re.compile(r"^([\w.-]{1,80})={1,2}(?=[\w\"'])")
_OLD_VALUE = re.compile(r"\s+from\s+\S{1,60}(?=\s+to\s+\S)", re.IGNORECASE)
_PLACE = re.compile(r"\s*\([\w./ -]{1,120}\)\.?$")
_WORD = re.compile(r"->|=>|[^\s,;“”\"`()\[\]{}]+")
_TRIMMED = ".!?:'‘’*…"
_ANY_MORE = re.compile(r",?\s*\b(?:any ?more|from now on|going forward)\b", re.IGNORECASE)
_DENIES = frozenset({"not", "never", "no", "cannot", "avoid", "avoids", "stop", "stopped", "nobody", "nothing"})
_ASSIGNS = frozenset(
    {"is", "are", "was", "were", "be", "equals", "becomes", "became", "remains", "stays", "->", "=>", "=", "=="}
)
_SILENT = frozenset(
    "a an the now currently actually already please just still always generally usually do does did done has have had been being "
    "will would should must shall longer any".split()
)  # fmt: skip
_CHANGES = frozenset(
    analyse(
        "set change raise lower bump upgrade downgrade increase decrease reduce switch move migrate update pin limit default rename assign"
    )
)
_RULE = re.compile(
    r"\b(?:always|never|must|only|should|shall|instead|rather than|prefers?|do not|don['’]t|not)\b", re.IGNORECASE
)


class Word(NamedTuple):
    """A word in its normal form, and as it was written."""

    norm: str
    text: str


class Claim(NamedTuple):
    """The content of one sentence.

    Attributes
    ----------
    words : tuple of Word
        Without articles, auxiliaries and negations; every phrase that gives something a value is `IS`.
    norms : tuple of str
        The words in their normal form.
    is_denied : bool
        Whether the sentence is negated.
    condition : str
        The stated condition; claims under different conditions are not compared.
    rest : str
        Additional text: the place, the reason, an aside.
    rejected : str
        What is no longer to be used, where the sentence names a replacement.
    is_change : bool
        Whether it reports a changed value rather than a current one.
    is_rule : bool
        Whether it states a rule or a preference.
    """

    words: tuple[Word, ...]
    norms: tuple[str, ...]
    is_denied: bool
    condition: str
    rest: str
    rejected: str
    is_change: bool
    is_rule: bool


@lru_cache(maxsize=1 << 12)
def claims_of(text: str) -> tuple[Claim, ...]:
    """Return the claims of a text's first sentences; questions claim nothing. Linear in the text."""
    sentences = split_sentences(text, "claim")[:_MAX_SENTENCES]
    found = (_claim(sentence) for sentence in sentences if not sentence.rstrip().endswith(QUESTION_MARKS))
    return tuple(claim for claim in found if claim.words)


def bare(text: str) -> str:
    """Return a text's first sentence without a leading label or date and without a file name at its end."""
    text = _LABEL.sub("", _WHEN_AND_WHERE.sub("", text.strip(), count=1), count=1)
    return _PLACE.sub("", split_sentences(text, "claim")[0]).rstrip(".")


def says_something(norm: str) -> bool:
    """Return whether a word is more than a sign or a function word."""
    return norm not in STOPWORDS and norm != IS and any(sign.isalnum() for sign in norm)


def _claim(sentence: str) -> Claim:
    sentence = _LABEL.sub("", _WHEN_AND_WHERE.sub("", sentence.strip(), count=1), count=1)
    sentence = _GLUED.sub(r"\1 = ", _OVER.sub(r"\1instead of \2", sentence))
    condition = rest = ""
    if lead := _LEAD.match(sentence):
        condition, sentence = lead.group(), sentence[lead.end() :]
    is_rule = _RULE.search(sentence) is not None
    rejected = _REJECTED.search(sentence)
    if rejected:
        sentence = sentence[: rejected.start()] + sentence[rejected.end() :]
    sentence = _ANY_MORE.sub("", _OLD_VALUE.sub("", sentence))
    if (tail := _TAIL.search(sentence)) and tail.start() > 0:
        if tail.group().strip() == ":":  # "port: 8080" gives a value
            sentence = f"{sentence[: tail.start()]} = {sentence[tail.end() :]}"
        else:
            rest, sentence = sentence[tail.start() :], sentence[: tail.start()]
            condition += rest if _CONDITIONAL_TAIL.match(rest) else ""
    words, is_denied = _read(_WORD.findall(sentence)[:_MAX_WORDS])
    words, is_change = _assigned(words)
    return Claim(
        words=tuple(words),
        norms=tuple(word.norm for word in words),
        is_denied=is_denied,
        condition=" ".join(analyse(condition)),
        rest=" ".join(analyse(rest)),
        rejected=" ".join(analyse(rejected.group(1))) if rejected else "",
        is_change=is_change,
        is_rule=is_rule,
    )


def _read(tokens: list[str]) -> tuple[list[Word], bool]:
    """Return the words of a sentence, and whether an odd number of negations was removed."""
    words: list[Word] = []
    is_denied = False
    for token in tokens:
        for part in _parts(token.strip(_TRIMMED)):
            if part.casefold() in _DENIES:
                is_denied = not is_denied
            elif (norm := _norm(part)) and not (norm == IS and words and words[-1].norm == IS):
                words.append(Word(norm, part))
    return words, is_denied


def _parts(token: str) -> Iterator[str]:
    """Split ``isn't`` into ``is`` and ``not``; ``won't`` and ``can't`` are negations as they are."""
    if re.search(r"n['’]t$", token, re.IGNORECASE):
        yield token[:-3]
        yield "not"
    elif token:
        yield token


@lru_cache(maxsize=1 << 14)
def _norm(word: str) -> str:
    lowered = word.casefold()
    if lowered in _SILENT:
        return ""
    if lowered in _ASSIGNS:
        return IS
    if lowered.isalpha():
        return "".join(analyse(lowered)[:1]) or lowered
    return lowered


def _assigned(words: list[Word]) -> tuple[list[Word], bool]:
    """Turn ``set X to Y``, ``X is set to Y`` and ``X defaults to Y`` into ``X = Y``; return whether it was a change, too."""
    places = [at for at, word in enumerate(words) if word.norm in ("to", "at") and 0 < at < len(words) - 1]
    if not places:
        return words, False
    if words[0].norm in _CHANGES:
        to = places[-1]
        return [*words[1:to], Word(IS, words[to].text), *words[to + 1 :]], True
    for to in places:
        if words[to].norm == "to" and words[to - 1].norm in _CHANGES:
            start = to - 2 if to > 1 and words[to - 2].norm == IS else to - 1
            return [*words[:start], Word(IS, words[to].text), *words[to + 1 :]], False
    return words, False
