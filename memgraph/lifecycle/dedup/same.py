"""Same: whether two memories say one thing, so that one of them can stand for both; and which facts differ between two texts.

Vectors hardly see a number, a name, a negation or the order of two objects: "reverse the ids" and "don't reverse the ids" are nearly
one vector. So texts are compared as words in a normal form: apart from white space, punctuation, markup and the case of words that are
no code (`is_equal`), and from inflection, articles, contractions, and a clause that stands first in one and last in the other
(`states_the_same`). Two memories that are near each other are not the same where they are *seen* to differ:

- each names what the other does not: a number, a version, a name, a path, a word of code; or one alone denies;
- they are the same words in another order: "Ann reviews what Bob writes";
- they share half of their words, and each has others in their place: "the key lies in the vault", "… in the safe";
- one says more, and what it adds restricts or revokes the rest, or names something.

Otherwise their vectors decide: two texts that share no word may be the same. Two commits are two events, so that they are the same
only if they state the same in equal words. Keeping two memories of one fact is a minor flaw; merging two facts loses one.
Pure; linear in the texts.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from memgraph.extraction.error_text import TIME
from memgraph.index.analyser import analyse
from memgraph.index.columns import ITEM_SOURCE, PIN_SOURCE
from memgraph.lifecycle.episodes import task_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.ids import canonical_name
from memgraph.model.link import in_order
from memgraph.model.memory import AgentMemory, StoredMemory
from memgraph.text import lazy_re as re
from memgraph.text.sentences import split_sentences
from memgraph.text.words import expanded

Words = tuple[str, ...]

_KEPT = 1 << 14
"""Texts whose words are cached: one is compared with many."""
_SIGNS = str.maketrans({"’": "'", "‘": "'"} | dict.fromkeys("‐‑−﹣－–", "-"))
_MINUS = re.compile(r"(?<!\S)[-‐‑−﹣－]\s{1,4}(?=\.?\d)")
"""A minus that stands apart from its number; a dash in prose is none."""
_BULLET = re.compile(r"^\s{0,40}(?:[-*+•]|#{1,6}|>{1,6})\s+(?![\s\d])", re.MULTILINE)
_EMPHASIS = re.compile(
    r"(?<![\w*/\"'`])(\*{1,3}|_)(?=[^\s_])((?:(?!\1)[^*]){1,1000})(?<=[^\s_])\1(?![\w*/\"`]|\.\w|'(?!s\b))"
)
_FOLDER = re.compile(r"(?<=\s)(\.(?=\s+\w)|\.\.)(?!\S)")
"""The current folder or the one above, which stand alone; a full stop ends a sentence."""
_PIECE = re.compile(
    r"[!=<>]=+|[=-]>"
    r"|(?:[^\s,;:()\[\]{}\"“”„«»`…—]|(?<=\d)[,:](?=\d))+"
)
_SIGNS_ALONE = "-.!'_"
_CODE = re.compile(
    r"[/\\_$=@*<>]|^[+~]$|\w\.\w|^\.\w"  # paths, names of variables and files, operators, annotations
    r"|^-{1,2}[^\W\d]"  # options: -v is not -V
    r"|^[^\W\dA-Z]\w*[A-Z]"  # camelCase, not Github
    r"|\d[^\W\d_]$"  # 5m is not 5M
)
"""A word in which case matters, because it is code."""
_QUESTION = "?"
_ARTICLE_OR_NAME = "A"
_DERIVED = re.compile(r"[a-z]{3}([oe]r|ion|al|ity|ities|ment|ness|[ae]nce|is[mt]|ive|[ai]ble|ous)s?$")
"""The ending of a derived word, as opposed to an inflected one."""
_SILENT = frozenset({"a", "an", "the", "please"})
_LONGEST_STEMMED = 40
"""Longer words are blobs, which the analyser truncates."""
_PLACES = frozenset(("staging", "production", "development"))
DENIES = r"not|never|no|none|nor|neither|without|cannot|hardly|avoid\w{0,3}|refus\w{1,3}|stop\w{0,4}"
_DENIAL = re.compile(rf"(?:{DENIES})$", re.IGNORECASE)


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
    return tuple(map(folded, pieces(text)))


def pieces(text: str) -> list[str]:
    """Return a text's words and operators as they are written."""
    text = _BULLET.sub(" ", _MINUS.sub("-", unicodedata.normalize("NFC", text)).translate(_SIGNS))
    text = _EMPHASIS.sub(r"\2", _EMPHASIS.sub(r"\2", text))
    return [word for piece in _PIECE.findall(_FOLDER.sub(r"\1/", text)) for word in _trimmed(piece)]


def _trimmed(piece: str) -> Iterator[str]:
    """Yield a piece without the punctuation around it, and its question mark."""
    word = piece.lstrip("'")
    bare = word.rstrip(".!?'")
    if bare.startswith("...") and not bare.lstrip(".").startswith(("/", "\\")):  # an ellipsis
        bare = bare.lstrip(".")
    if bare.endswith(("/", "\\")) and word.startswith(f"{bare}..."):  # ./... is a pattern
        bare = f"{bare}..."
    if bare.strip(_SIGNS_ALONE) or bare.endswith("."):
        yield bare
    if _QUESTION in word[len(bare) :]:
        yield _QUESTION


def folded(word: str) -> str:
    """Return a word in lower case, unless it is code."""
    return word if _CODE.search(word) else word.casefold()


@lru_cache(maxsize=_KEPT)
def fact_form(text: str) -> Words:
    """Return a text's words without articles, contractions and inflection. Negations, prepositions and auxiliaries stay: they carry meaning."""
    return tuple(map(fact_word, words_of(text)))


def words_of(text: str) -> list[str]:
    """Return a text's words without articles; “do not …” at the beginning is “never …”: both forbid."""
    found = pieces(expanded(text[: 2 * MAX_CONTENT_CHARS]))
    words = [
        word
        for place, piece in enumerate(found)
        if (word := folded(piece)) not in _SILENT or (piece == _ARTICLE_OR_NAME and place)
    ]
    return ["never", *words[2:]] if words[:2] == ["do", "not"] else words


def fact_word(word: str) -> str:
    """Return a word without inflection. Words that are derived from one stem differ: an operator is no operation."""
    word = word[:-1] if word.endswith("s'") else word.removesuffix("'s")
    if not (word.isascii() and word.isalpha() and word.islower() and len(word) <= _LONGEST_STEMMED):
        return word
    stem, found = (analyse(word) or [word])[0], _DERIVED.search(word)
    return f"{stem}+{found[1].replace('ies', 'y')}" if found and word not in _OPENS_A_CLAUSE else stem


_OPENS_A_CLAUSE = frozenset(
    form
    for word in "in on at for after before when whenever if unless while until with without during within under since because by to from of".split()
    for form in (word, *analyse(word))
)


def states_the_same(one: str, other: str) -> bool:
    """Return whether two texts consist of the same words in the same order; a clause may stand first or last. Symmetric."""
    words, others = fact_form(one), fact_form(other)
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


class Difference(NamedTuple):
    """What each of two texts says beyond the other: its words, those of them that name something; and whether one alone denies."""

    own: list[str]
    its: list[str]
    own_names: set[str]
    its_names: set[str]
    is_denied: bool

    @property
    def is_seen(self) -> bool:
        """Whether they differ in a fact: each names what the other does not, or one alone denies."""
        return self.is_denied or bool(self.own_names and self.its_names)

    @property
    def is_condition(self) -> bool:
        """Whether one adds a condition or a relation, other than a cause."""
        return not (_OPENS_A_CLAUSE - {"because"}).isdisjoint([*self.own, *self.its])


def is_denial(word: str) -> bool:
    """Return whether a word denies."""
    return _DENIAL.match(word) is not None


def difference(one: str, other: str) -> Difference:
    """Return which facts differ between two texts."""
    own, its = _beyond(one, other), _beyond(other, one)
    is_denied = any(map(is_denial, own)) != any(map(is_denial, its))
    return Difference(own, its, names_of(own, one), names_of(its, other), is_denied)


def names_of(words: Iterable[str], text: str) -> set[str]:
    """Return those of a text's words that name something: numbers with their units, code, names in capitals, and where software runs."""
    return {word for word in words if word in _named_in(text) or _CODE.search(word)}


def _beyond(one: str, other: str) -> list[str]:
    theirs, found = Counter(fact_form(other)), []
    for word, form in zip(words_of(one), fact_form(one), strict=True):
        if theirs[form]:
            theirs[form] -= 1
        else:
            found.append(word)
    return found


@lru_cache(maxsize=_KEPT)
def _named_in(text: str) -> frozenset[str]:
    found: set[str] = set(_PLACES)
    for sentence in split_sentences(text[: 2 * MAX_CONTENT_CHARS], "claim"):
        words = pieces(sentence)
        for place, word in enumerate(words):
            is_unit = place > 0 and words[place - 1][-1:].isdigit()
            is_capital = place > 0 and word[:1].isupper() and (len(word) == 1 or bool(analyse(word)))
            if is_unit or is_capital or any(map(str.isdigit, word)):
                found.add(folded(word))
    return frozenset(found)


# --- memories ---

RESTRICTS = re.compile(
    rf"\b(?:{DENIES}|unless|except|if|when|until|only|but|however|although|though|yet|instead|"
    r"wrong|false|incorrect|mistaken|outdated|old|former\w{0,2}|previous\w{0,2}|alone|merely|abandon\w{0,3}|disagree\w{0,3}|disput\w{1,3}|"
    r"doubt\w{0,3}|reject\w{0,3}|cancel\w{0,4}|withdr\w{1,5}|supersed\w{1,3}|ended|expired?|except\w{3,6}|appl(?:y|ies|ied)|"
    r"revert\w{0,3}|undo\w{0,3}|remov\w{1,4}|drop\w{0,4}|deprecat\w{1,4}|obsolete|replac\w{1,4}|now|since)\b|\?",
    re.IGNORECASE,
)
"""A word that restricts or revokes what the text says without it."""
_FRAME = 0.5
"""Texts that share this much of their words are one frame: what each has in it is a value of its own."""
_ADDRESS = re.compile(r"(?i)\b0x[0-9a-f]{1,40}\b")
_STRUCTURE = (
    "steps", "trigger_pattern", "pattern", "category", "conditions", "correct_approach", "incorrect_approach",
)  # fmt: skip
"""Structured fields that a merge would separate from their text."""


def same(one: AgentMemory, other: AgentMemory, *, loosely: bool = False) -> bool:
    """Return whether one of two memories that are near each other can stand for both. Symmetric.

    Loosely: whether one only repeats the other, with whatever words in an equal frame, and whatever structured fields.
    """
    if not loosely and any(
        (getattr(one, name, None) or None) != (getattr(other, name, None) or None) for name in _STRUCTURE
    ):
        return False
    if PIN_SOURCE in (one.source, other.source) or not may_be_about_the_same(one, other):
        return False
    if task_of(vars(one)) != task_of(vars(other)):
        return False
    text, other_text = one.content, other.content
    if one.failure_fingerprint is not None and one.failure_fingerprint == other.failure_fingerprint:
        text, other_text = (
            _ADDRESS.sub("·", TIME.sub("·", one)) for one in (text, other_text)
        )  # what two reports differ in
    if states_the_same(text, other_text):
        return True
    are_commits = all(getattr(memory, "git_commit", None) for memory in (one, other))
    return not (are_commits or _are_apart(text, other_text, loosely=loosely))


def may_be_about_the_same(one: AgentMemory, other: AgentMemory) -> bool:
    """Return whether their subjects are the same, where both name one. Values under two keys are about two things."""
    if one.source == other.source == ITEM_SOURCE:
        return False
    about, others = (
        {(entity.kind, canonical_name(entity.name)) for entity in memory.entities if entity.about}
        for memory in (one, other)
    )
    return not about or not others or bool(about & others)


def _are_apart(one: str, other: str, *, loosely: bool) -> bool:
    """Return whether two texts that do not state the same are seen to differ."""
    form, its_form, found = fact_form(one), fact_form(other), difference(one, other)
    if not form or not its_form or not (found.own or found.its):
        return True  # signs alone, or the same words in another order
    if found.is_seen:
        return True
    if found.own and found.its:
        content = max(_content(words_of(one)), _content(words_of(other)))
        return not loosely and _content(words_of(one)) - _content(found.own) >= _FRAME * content
    longer, shorter, text = (form, its_form, one) if found.own else (its_form, form, other)
    left = iter(longer)
    if not all(word in left for word in shorter) or found.own_names or found.its_names:
        return True
    is_restricted = any(map(RESTRICTS.search, [*found.own, *found.its]))
    return is_restricted or (found.is_condition and not _begins_with(text, shorter))


def _content(words: Iterable[str]) -> int:
    return sum(1 for word in words if analyse(word))


def _begins_with(text: str, words: Words) -> bool:
    """Return whether the first sentences of a text state another one: what follows elaborates it."""
    begun = accumulate(fact_form(sentence) for sentence in split_sentences(text, "claim"))
    return any(so_far == words for so_far in begun)


def stands_for_both(one: StoredMemory, other: StoredMemory) -> StoredMemory:
    """Return which of two memories that say the same stands for both: the one that says more, of equals the newer wording."""
    words, others = fact_form(one.content), fact_form(other.content)
    if len(words) != len(others):
        return one if len(words) > len(others) else other
    return one if is_equal(one.content, other.content) else in_order(one, other)[1]
