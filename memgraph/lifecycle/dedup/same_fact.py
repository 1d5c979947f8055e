"""Same fact: whether two texts state one fact, so that one of them can stand for both.

Vectors hardly see a number, a name, a negation or the order of two objects, and shared words prove nothing: "reverse
the ids" and "don't reverse the ids" share all but one. So two texts state the same fact only if they are the same words
in the same order, apart from

- case, white space, punctuation and markup (`is_equal`);
- inflection, articles and contractions (`normal_form`), and a clause that stands first in one and last in the other;
- in statements of fact: whole sentences that one adds and that neither restrict nor revoke the rest.

Keeping two memories of one fact is a minor flaw; merging two facts loses one. Pure; linear in the texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from memgraph.index.analyser import analyse
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.text.negation import expanded
from memgraph.text.numbers import SUPERSCRIPT
from memgraph.text.sentences import split_sentences

Words = tuple[str, ...]

_KEPT = 1 << 14
"""Texts whose words are cached: one is compared with many."""
_BULLET = re.compile(r"^\s{0,40}(?:[-*+•]|#{1,6}|>{1,6})\s+(?!\d)", re.MULTILINE)
_EMPHASIS = (
    re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]{1,1000})(?<=[^\s*])\1(?![\w*])"),
    re.compile(r"(?<!\w)(_)(?=[^\s_])([^_]{1,1000})(?<=[^\s_])_(?!\w)"),
)
_LINK = re.compile(r"\[([^\]\n]{1,200})\]\(([^)\s]{1,400})\)")
_PIECE = re.compile(
    r"[!=<>]=+|[=-]>"
    r"|(?:[^\s,;:()\[\]{}\"“”„«»`…—–]|(?<=\d)[,:–](?=\d))+"
)
_NOT_A_WORD = re.compile(r"[-.!?'*_~]+$")
_RELATIVE = re.compile(r"\.\.[/\\]")
_MINUS = re.compile(r"(?<![^\s(\[=:])[–—−](?=\d)")
_NAMED_A = re.compile(r"(?<=[^\W_] )A(?=\s|[.,;:!?]|$)")
"""Within a sentence, a capital “A” is a name: “team A”."""
_POSSESSIVE = re.compile(r"'s$|(?<=s)'$")
_SILENT = frozenset({"a", "an", "the", "please"})
_RESTRICTS = re.compile(
    r"\b(?:not|never|no|none|nor|neither|without|cannot|unless|except|if|when|until|only|but|however|although|though|yet|instead|"
    r"wrong|false|incorrect|mistaken|outdated|old|former\w{0,2}|previous\w{0,2}|alone|merely|abandon\w{0,3}|disagree\w{0,3}|disput\w{1,3}|"
    r"doubt\w{0,3}|reject\w{0,3}|cancel\w{0,4}|withdr\w{1,5}|supersed\w{1,3}|stop\w{0,4}|ended|expired?|except\w{3,6}|appl(?:y|ies|ied)|"
    r"revert\w{0,3}|undo\w{0,3}|remov\w{1,4}|drop\w{0,4}|deprecat\w{1,4}|obsolete|replac\w{1,4}|now|since)\b|n['’]t\b|\d",
    re.IGNORECASE,
)
"""A sentence with one of these may restrict or revoke what another one says, or names a number of its own."""
_LONGEST_STEMMED = 40
"""Longer words are blobs, which the analyser truncates."""
_AGAIN = "again"
_MOST_ADDED = 2
"""Words, with "again" among them, by which a report of a repeated failure may exceed the first report."""
_VARIES = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?z?)?\b|\b\d\d:\d\d:\d\d\b|\b0x[0-9a-f]{1,40}\b",
    re.IGNORECASE,
)
"""What differs between two reports of one failure: when it happened, and addresses in memory."""


def is_equal(one: str, other: str) -> bool:
    """Return whether two texts differ in nothing but case, white space, punctuation, markup and compatibility forms (NFKC).

    Texts of signs alone are compared as they are.
    """
    words = plain_words(one)
    return words == plain_words(other) if words else one.strip() == other.strip()


@lru_cache(maxsize=_KEPT)
def plain_words(text: str) -> Words:
    """Return a text's words and operators, without case, punctuation and markup.

    Signs that are part of a word or an operator stay: ``-5``, ``--fast``, ``.env``, ``../a``, ``C++``, ``!=``, ``!done``; and the mark
    of a question at the end.
    """
    text = unicodedata.normalize("NFKC", _MINUS.sub("-", text.translate(SUPERSCRIPT))).casefold()
    text = text.replace("’", "'").replace("‘", "'")
    text = _LINK.sub(r"\1 \2", _BULLET.sub(" ", text))
    for emphasis in _EMPHASIS:
        text = emphasis.sub(r"\2", text)
    words = tuple(word for piece in _PIECE.findall(text) if (word := _trimmed(piece)))
    return (*words, "?") if words and text.rstrip().endswith("?") else words


def _trimmed(piece: str) -> str:
    if _NOT_A_WORD.match(piece):
        return ""
    piece = piece.lstrip("'?").rstrip(".!?'")
    return piece.lstrip(".") if piece.startswith("..") and not _RELATIVE.match(piece) else piece


@lru_cache(maxsize=_KEPT)
def normal_form(text: str) -> Words:
    """Return a text's words without articles, contractions and inflection. Negations, prepositions and auxiliaries stay: they carry meaning.

    “Do not …” at the beginning is “never …”: both forbid.
    """
    words = plain_words(_NAMED_A.sub("A_", expanded(text[: 2 * MAX_CONTENT_CHARS])))
    stems = tuple(_stem(word) for word in words if word not in _SILENT)
    return ("never", *stems[2:]) if stems[:2] == ("do", "not") else stems


def _stem(word: str) -> str:
    word = _POSSESSIVE.sub("", word)
    return (analyse(word) or [word])[0] if word.isascii() and word.isalpha() and len(word) <= _LONGEST_STEMMED else word


_OPENS_A_CLAUSE = frozenset(
    map(
        _stem,
        "in on at for after before when whenever if unless while until with without during within under since because by".split(),
    )
)


def states_the_same(one: str, other: str) -> bool:
    """Return whether two texts consist of the same words in the same order; a clause may stand first or last. Symmetric."""
    words, others = normal_form(one), normal_form(other)
    if not words:
        return is_equal(one, other)
    return len(words) == len(others) and others in same_statements(words)


def same_statements(words: Words) -> Iterator[Words]:
    """Yield the words of a statement in every order that states the same: as they are, and with a clause moved to the other end."""
    yield words
    opens = bool(words) and words[0] in _OPENS_A_CLAUSE
    for at in range(1, len(words) - 1):
        if words[at] in _OPENS_A_CLAUSE:  # the last clause comes first
            yield words[at:] + words[:at]
        if opens:  # the first clause comes last
            yield words[at + 1 :] + words[: at + 1]


def adds_to(longer: str, shorter: str) -> bool:
    """Return whether a text is another one with further sentences after it that neither restrict nor revoke it."""
    sentences = [sentence for sentence in split_sentences(longer, "claim") if normal_form(sentence)]
    wanted = normal_form(shorter)
    if len(wanted) < 3:  # too little to be a statement
        return False
    words: Words = ()
    for place, sentence in enumerate(sentences[:-1], start=1):
        words += normal_form(sentence)
        if words == wanted:
            added = sentences[place:]
            is_prose = all(len(normal_form(sentence)) > 1 for sentence in added)
            return is_prose and not any(map(_RESTRICTS.search, added))
        if len(words) > len(wanted):
            break
    return False


def repeats(later: str, earlier: str) -> bool:
    """Return whether a report says that the failure of another report happened again."""
    words, others = normal_form(later), normal_form(earlier)
    if _AGAIN not in words or not 0 < len(words) - len(others) <= _MOST_ADDED or len(others) < 2:
        return False
    left = iter(words)
    is_contained = all(word in left for word in others)
    added = set(words) - set(others)
    return is_contained and not any(_RESTRICTS.search(word) for word in added)


def without_occurrence(text: str) -> str:
    """Return a report of a failure without its date, time and memory addresses."""
    return _VARIES.sub("·", text)
