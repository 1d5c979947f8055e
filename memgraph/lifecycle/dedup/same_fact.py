"""Same fact: whether two texts state one fact, so that one of them can stand for both.

Vectors hardly see a number, a name, a negation or the order of two objects, and shared words prove nothing: "reverse
the ids" and "don't reverse the ids" share all but one. So two texts state the same fact only if they are the same words
in the same order, apart from

- white space, punctuation, markup, and the case of words that are no code (`is_equal`);
- inflection, articles and contractions (`normal_form`), and a clause that stands first in one and last in the other;
- in statements of fact: whole sentences that one adds and that neither restrict nor revoke the rest.

Keeping two memories of one fact is a minor flaw; merging two facts loses one. Pure; linear in the texts.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from memgraph.index.analyser import analyse
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.text import lazy_re as re
from memgraph.text.sentences import split_sentences
from memgraph.text.words import expanded

Words = tuple[str, ...]

_KEPT = 1 << 14
"""Texts whose words are cached: one is compared with many."""
_SIGNS = str.maketrans({"’": "'", "‘": "'", "‐": "-", "‑": "-", "−": "-", "﹣": "-", "－": "-"})
_MINUS = re.compile(r"(?<!\S)[-–—]\s{0,4}(?=\.?\d)|(?<![\w\s)\]])[–—](?=\.?\d)")
"""A minus before a number, whichever dash it is written with. It may stand alone."""
_FOLDER = re.compile(r"(?<=\s)(\.(?=\s+\w)|\.\.)(?!\S)")
"""The current folder or the one above, which stand alone; a full stop ends a sentence."""
_BULLET = re.compile(r"^\s{0,40}(?:[-*+•]|#{1,6}|>{1,6})\s+(?![\s\d])", re.MULTILINE)
_EMPHASIS = (
    re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*]{1,1000})(?<=[^\s*])\1(?![\w*])"),
    re.compile(r"(?<!\w)(_)(?=[^\s_])([^_]{1,1000})(?<=[^\s_])_(?!\w)"),
)
_LINK = re.compile(r"\[([^\]\n]{1,200})\]\(([^)\s]{1,400})\)")
_PIECE = re.compile(
    r"[!=<>]=+|[=-]>"
    r"|(?:[^\s,;:()\[\]{}\"“”„«»`…—–]|(?<=\d)[,:–](?=\d))+"
)
_NOT_A_WORD = re.compile(r"[-.!'*_~]*[-!'*_~]$")
_CODE = re.compile(
    r"[/\\_$=@]|\w\.\w|^\.\w"  # paths, names of variables and files, assignments, annotations
    r"|^-{1,2}[^\W\d]"  # options: -v is not -V
    r"|^[^\W\dA-Z]\w*[A-Z]"  # camelCase, not Github
    r"|\d[^\W\d_]$"  # 5m is not 5M
)
"""A word in which case matters, because it is code."""
_QUESTION = "?"
_ARTICLE_OR_NAME = "A"
_POSSESSIVE = re.compile(r"'s$|(?<=s)'$")
_DERIVED = re.compile(r"[a-z]{3}([oe]r|ion|al|ity|ities|ment|ness|[ae]nce|is[mt]|ive|[ai]ble|ous)s?$")
"""The ending of a derived word, as opposed to an inflected one."""
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
    """Return whether two texts differ in nothing but white space, punctuation, markup, and the case of words that are no code.

    A question is not equal to a statement. Texts of signs alone are compared as they are.
    """
    words = plain_words(one)
    return words == plain_words(other) if words else one.strip() == other.strip()


@lru_cache(maxsize=_KEPT)
def plain_words(text: str) -> Words:
    """Return a text's words and operators in their canonical form: without markup and punctuation, in lower case unless they are code.

    Signs that are part of a word or an operator stay: ``-5``, ``--fast``, ``.env``, ``../hosts``, ``C++``, ``!=``, ``!done``. A
    question mark is a word. Composed and decomposed characters are equal (NFC); ``10²`` is not ``102``.
    """
    return tuple(map(_folded, _pieces(text)))


def _pieces(text: str) -> list[str]:
    """Return a text's words and operators as they are written."""
    text = unicodedata.normalize("NFC", text).translate(_SIGNS)
    text = _LINK.sub(r"\1 \2", _MINUS.sub("-", _BULLET.sub(" ", text)))
    for emphasis in _EMPHASIS:
        text = emphasis.sub(r"\2", text)
    return [word for piece in _PIECE.findall(_FOLDER.sub(r"\1/", text)) for word in _trimmed(piece)]


def _trimmed(piece: str) -> Iterator[str]:
    """Yield a piece without the punctuation around it, and its question mark."""
    word = piece.lstrip("'")
    bare = word.rstrip(".!?'")
    if bare.startswith("...") and not bare.lstrip(".").startswith(("/", "\\")):  # an ellipsis
        bare = bare.lstrip(".")
    if bare.endswith(("/", "\\")) and word.startswith(f"{bare}..."):  # ./... is a pattern
        bare = f"{bare}..."
    if bare and not _NOT_A_WORD.match(bare):
        yield bare
    if _QUESTION in word[len(bare) :]:
        yield _QUESTION


def _folded(word: str) -> str:
    return word if _CODE.search(word) else word.casefold()


@lru_cache(maxsize=_KEPT)
def normal_form(text: str) -> Words:
    """Return a text's words without articles, contractions and endings. Negations, prepositions and auxiliaries stay: they carry meaning."""
    return tuple(map(_stem, _without_articles(text)))


@lru_cache(maxsize=_KEPT)
def _fact_form(text: str) -> Words:
    """Return the normal form, in which words that are derived from one stem differ: an operator is no operation."""
    return tuple(f"{_stem(word)}{_derivation(word)}" for word in _without_articles(text))


def _without_articles(text: str) -> list[str]:
    """Return a text's words without articles; “do not …” at the beginning is “never …”: both forbid."""
    pieces = _pieces(expanded(text[: 2 * MAX_CONTENT_CHARS]))
    words = [
        word
        for place, piece in enumerate(pieces)
        if (word := _folded(piece)) not in _SILENT or (piece == _ARTICLE_OR_NAME and place)
    ]
    return ["never", *words[2:]] if words[:2] == ["do", "not"] else words


def _stem(word: str) -> str:
    word = _POSSESSIVE.sub("", word)
    is_plain = word.isascii() and word.isalpha() and word.islower() and len(word) <= _LONGEST_STEMMED
    return (analyse(word) or [word])[0] if is_plain else word


def _derivation(word: str) -> str:
    is_short = len(word) <= _LONGEST_STEMMED and _stem(word) not in _OPENS_A_CLAUSE
    found = _DERIVED.search(_POSSESSIVE.sub("", word)) if is_short else None
    return f"+{found[1].replace('ies', 'y')}" if found else ""


_OPENS_A_CLAUSE = frozenset(
    map(
        _stem,
        "in on at for after before when whenever if unless while until with without during within under since because by".split(),
    )
)


def states_the_same(one: str, other: str) -> bool:
    """Return whether two texts consist of the same words in the same order; a clause may stand first or last. Symmetric."""
    words, others = _fact_form(one), _fact_form(other)
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
    sentences = [sentence for sentence in split_sentences(longer, "claim") if _fact_form(sentence)]
    wanted = _fact_form(shorter)
    if len(wanted) < 3:  # too little to be a statement
        return False
    words: Words = ()
    for place, sentence in enumerate(sentences[:-1], start=1):
        words += _fact_form(sentence)
        if words == wanted:
            added = sentences[place:]
            is_prose = all(len(_fact_form(sentence)) > 1 for sentence in added)
            return is_prose and not any(map(_RESTRICTS.search, added))
        if len(words) > len(wanted):
            break
    return False


def repeats(later: str, earlier: str) -> bool:
    """Return whether a report says that the failure of another report happened again."""
    words, others = _fact_form(later), _fact_form(earlier)
    if _AGAIN not in words or not 0 < len(words) - len(others) <= _MOST_ADDED or len(others) < 2:
        return False
    left = iter(words)
    is_contained = all(word in left for word in others)
    added = set(words) - set(others)
    return is_contained and not any(_RESTRICTS.search(word) for word in added)


def without_occurrence(text: str) -> str:
    """Return a report of a failure without its date, time and memory addresses."""
    return _VARIES.sub("·", text)
