"""Same: whether two memories that are near each other say one thing, so that one of them can stand for both.

Vectors hardly see a number, a name, a negation or the order of two objects: "reverse the ids" and "don't reverse the ids" are nearly
one vector. So two texts are not the same where they are *seen* to differ (`same`):

- each names what the other does not: a number, a version, a name, a path, a word of code; or one alone denies;
- they are the same words in another order: "Ann reviews what Bob writes";
- they share most of their words, and each has others in their place: "the key lies in the vault", "… in the safe";
- one says more, and what it adds restricts or revokes the rest, or names something.

Otherwise their vectors decide: two texts that share no word may be the same. Two commits are two events, so that they are the same
only in equal words: apart from white space, punctuation, markup and the case of words that are no code (`is_equal`), from inflection,
articles and contractions, and from a clause that stands first in one and last in the other (`states_the_same`).

Keeping two memories of one fact is a minor flaw; merging two facts loses one. Pure; linear in the texts.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from memgraph.index.analyser import analyse
from memgraph.index.columns import PIN_SOURCE
from memgraph.lifecycle.contradictions.conflict import may_be_about_the_same
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.link import in_order
from memgraph.model.memory import AgentMemory, StoredMemory
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
_DENIES = r"not|never|no|none|nor|neither|without|cannot|hardly|avoid\w{0,3}|refus\w{1,3}|stop\w{0,4}"
_DENIAL = re.compile(rf"(?:{_DENIES})$", re.IGNORECASE)
_RESTRICTS = re.compile(
    rf"\b(?:{_DENIES}|unless|except|if|when|until|only|but|however|although|though|yet|instead|"
    r"wrong|false|incorrect|mistaken|outdated|old|former\w{0,2}|previous\w{0,2}|alone|merely|abandon\w{0,3}|disagree\w{0,3}|disput\w{1,3}|"
    r"doubt\w{0,3}|reject\w{0,3}|cancel\w{0,4}|withdr\w{1,5}|supersed\w{1,3}|ended|expired?|except\w{3,6}|appl(?:y|ies|ied)|"
    r"revert\w{0,3}|undo\w{0,3}|remov\w{1,4}|drop\w{0,4}|deprecat\w{1,4}|obsolete|replac\w{1,4}|now|since)\b|\?",
    re.IGNORECASE,
)
"""A word that restricts or revokes what the text says without it."""
_CONDITIONS = frozenset("in on at for after before whenever while with during within under to from of by".split())
"""A word that begins a condition of the sentence in which it stands."""
_PLACES = frozenset(("staging", "production", "development"))
_FRAME = 0.6
"""Texts that share this much of their words are one frame: what each has in it is a value of its own."""
_LONGEST_STEMMED = 40
"""Longer words are blobs, which the analyser truncates."""
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


_STRUCTURE = (
    "steps", "trigger_pattern", "pattern", "category", "conditions", "correct_approach", "incorrect_approach",
)  # fmt: skip
"""Structured fields that a merge would separate from their text."""


def same(one: AgentMemory, other: AgentMemory) -> bool:
    """Return whether one of two memories that are near each other can stand for both. Symmetric."""
    if any((getattr(one, name, None) or None) != (getattr(other, name, None) or None) for name in _STRUCTURE):
        return False
    return not differ(one, other, commits=True, frames=True)


def differ(one: AgentMemory, other: AgentMemory, *, commits: bool = False, frames: bool = False) -> bool:
    """Return whether two memories are seen to say different things. Symmetric.

    Parameters
    ----------
    commits, frames : bool
        Whether two commits that are worded differently, and two texts with other words in an equal frame, differ, too.
    """
    if PIN_SOURCE in (one.source, other.source):
        return True
    if task_of(vars(one)) != task_of(vars(other)) or not may_be_about_the_same(one, other):
        return True
    text, other_text = one.content, other.content
    if one.failure_fingerprint is not None and one.failure_fingerprint == other.failure_fingerprint:
        text, other_text = _VARIES.sub("·", text), _VARIES.sub("·", other_text)
    if states_the_same(text, other_text):
        return False
    if commits and all(getattr(memory, "git_commit", None) for memory in (one, other)):
        return True
    return _are_apart(text, other_text, frames=frames)


def _are_apart(one: str, other: str, *, frames: bool) -> bool:
    """Return whether two texts that do not state the same are seen to differ."""
    own, its = _beyond(one, other), _beyond(other, one)
    words, others = _fact_form(one), _fact_form(other)
    if not words or not others or not (own or its):
        return True  # signs alone, or the same words in another order
    if _names(own, one) and _names(its, other):
        return True
    if any(map(_DENIAL.match, own)) != any(map(_DENIAL.match, its)):
        return True
    if own and its:
        longest = max(len(_content(_without_articles(text))) for text in (one, other))
        shared = len(_content(_without_articles(one))) - len(_content(own))
        return frames and shared >= _FRAME * longest
    longer, shorter, added = (one, other, own) if own else (other, one, its)
    left = iter(_fact_form(longer))
    if not all(word in left for word in _fact_form(shorter)):
        return True
    is_restricted = any(map(_RESTRICTS.search, added)) or bool(_names(added, longer))
    return is_restricted or (not _CONDITIONS.isdisjoint(added) and not _begins_with(longer, shorter))


def _beyond(one: str, other: str) -> list[str]:
    """Return the words of a text that another one does not have, as often as it has more of them."""
    theirs, found = Counter(_fact_form(other)), []
    for word, form in zip(_without_articles(one), _fact_form(one), strict=True):
        if theirs[form]:
            theirs[form] -= 1
        else:
            found.append(word)
    return found


def _content(words: Sequence[str]) -> list[str]:
    return [word for word in words if analyse(word)]


def _names(words: Sequence[str], text: str) -> set[str]:
    """Return those of a text's words that name something: numbers with their units, code, and names in capitals."""
    named = _named_in(text)
    return {word for word in words if word in named or _CODE.search(word)}


@lru_cache(maxsize=_KEPT)
def _named_in(text: str) -> frozenset[str]:
    found: set[str] = set(_PLACES)
    for sentence in split_sentences(text[: 2 * MAX_CONTENT_CHARS], "claim"):
        pieces = _pieces(sentence)
        for place, piece in enumerate(pieces):
            is_unit = place > 0 and pieces[place - 1][-1:].isdigit()
            is_capital = place > 0 and piece[:1].isupper() and (len(piece) == 1 or bool(analyse(piece)))
            if is_unit or is_capital or any(map(str.isdigit, piece)):
                found.add(_folded(piece))
    return frozenset(found)


def _begins_with(longer: str, shorter: str) -> bool:
    """Return whether the first sentences of a text state another one: what follows elaborates it."""
    words: Words = ()
    for sentence in split_sentences(longer, "claim"):
        words += _fact_form(sentence)
        if words == _fact_form(shorter):
            return True
    return False


def stands_for_both(one: StoredMemory, other: StoredMemory) -> StoredMemory:
    """Return which of two memories that say the same stands for both.

    It is the one that says more; if both say as much, the newer one where its wording differs, and the first one where
    the texts are equal.
    """
    words, others = normal_form(one.content), normal_form(other.content)
    if len(words) != len(others):
        return one if len(words) > len(others) else other
    return one if is_equal(one.content, other.content) else in_order(one, other)[1]
