"""Converts text to search terms, for memories and queries alike.

A term is lower-case, without accents, stemmed (English), and at most 64 characters long. What the analyser makes of

===========================  ==========================================================================
``The deploys failed``       ``deploy fail`` (function words and question words are dropped)
``getUserById``, ``user_id``  ``get user id getuserbyid``, ``user id userid`` (parts, and the whole joined)
``src/auth/login.py``        ``src auth login py``
``v1.2.3``, ``python3.11``   ``1.2.3 1.2``, ``python 3.11`` (the whole, and major.minor)
``HTTP 401``, ``E1234``      ``http 401``, ``e1234``
``Café``                     ``cafe``
``数据库``                   ``数据 据库`` (scripts written without spaces become pairs of characters)
===========================  ==========================================================================

Analysing terms again gives the same terms: for every text, ``set(analyse(" ".join(analyse(text))))`` equals ``set(analyse(text))``,
so terms can be shown, stored, and searched for again. Multiplicity and order are not kept by that second pass (``1.2.3``
yields ``1.2`` once more).
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from itertools import chain
from typing import Any

from snowballstemmer.english_stemmer import EnglishStemmer

ANALYSER_VERSION = 1
"""Incremented whenever the terms of some text change; indexes of another version are rebuilt."""

MAX_TERM_CHARS = 64
"""Longer terms are truncated: they are blobs or attacks, and the start identifies them well enough."""

STOPWORDS = frozenset(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself
    it its itself they them their theirs themselves
    what which who whom whose when where why how
    am is are was were be been being do does did done doing have has had having
    can could will would shall should may might must
    and or but if so than then because as while until
    of at by for with about into to from in on
    not no nor only just very too also there here both each any some such other
    """.split()
)
"""Function words and question words, without words that carry meaning in reports (down, off, up, out, over)."""

_CACHED_CHUNKS = 1 << 15
_CACHED_WORDS = 1 << 15

# Characters that folding removes: combining accents, optional Hebrew and Arabic vowel points, and invisible characters.
# Signs that are part of the spelling (Indic vowels, kana voicing) stay.
_REMOVED = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u00ad\u200b-\u200d\u2060\ufeff]+"
)
# Normalisation sorts a run of combining marks in quadratic time; no word has sixteen in a row.
_MARK_RUN = re.compile(r"[^\w\x00-\x7f]{16,}")

# Scripts written without spaces, as ranges: Thai, Lao, Tibetan, Myanmar, Khmer, kana, bopomofo, Hangul, Han.
_UNSPACED = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_INDIC = "\u0900-\u0963\u0966-\u0dff"  # Python's \w excludes their vowel signs
_WORD = rf"(?:[^\W_{_UNSPACED}{_INDIC}]+|[{_INDIC}]+)+"
_TOKEN = re.compile(
    rf"(?P<run>[{_UNSPACED}]+)"
    rf"|(?P<prefix>[^\W\d_{_UNSPACED}{_INDIC}]*)(?P<version>[0-9]+(?:\.[0-9]+)+)"
    rf"|(?P<identifier>{_WORD}(?:_+(?![0-9]+\.[0-9]){_WORD})*)"
)
# don't, isn't, …: dropped whole; Anna's, we'll: the ending is dropped. Bounded, so that no long run is scanned twice.
_CONTRACTION = re.compile(r"\b[a-z]{1,6}n['’]t\b|['’](?:s|re|ve|ll|d|m)\b", re.IGNORECASE)
_TIME = re.compile(r"(?<=[0-9])T(?=[0-9]{2}:)")  # 2026-01-05T10:00: the day is not part of a word
_HUMP = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z][^A-Z]*|[^A-Z]+")  # HTTP|Server, get|User, but APIs

# snowballstemmer.stemmer() would use PyStemmer if that is installed, which has another version of the algorithm.
_stemmer: Any = EnglishStemmer()  # type: ignore[no-untyped-call]
_stemmer_lock = threading.Lock()  # the stemmer holds the current word as state


def analyse(text: str) -> list[str]:
    """Return the search terms of any text, in its order, repeated as often as they occur: 1 to 64 characters each, without white space.

    Deterministic; never raises; linear in the text. The terms of the last 32,768 different pieces of text are cached.
    """
    chunks = text.split()
    if max(map(len, chunks), default=0) <= MAX_TERM_CHARS:
        return list(chain.from_iterable(map(_terms_of, chunks)))
    # a long piece is a blob: it will not recur and would only fill the cache
    of_each = (_terms_of(chunk) if len(chunk) <= MAX_TERM_CHARS else _split(chunk) for chunk in chunks)
    return list(chain.from_iterable(of_each))


@lru_cache(maxsize=_CACHED_CHUNKS)
def _terms_of(chunk: str) -> tuple[str, ...]:
    return tuple(_split(chunk))


def _split(chunk: str) -> list[str]:
    """Return the terms of a piece of text without white space."""
    if not chunk.isascii():
        chunk = _folded(chunk)
    if "'" in chunk or "’" in chunk:
        chunk = _CONTRACTION.sub(" ", chunk)
    if ":" in chunk:
        chunk = _TIME.sub(" ", chunk)
    found: list[str] = []
    for token in _TOKEN.finditer(chunk):
        if token["identifier"]:
            found += _words(token["identifier"])
        elif token["run"]:
            found += _pairs(token["run"])
        else:
            prefix = token["prefix"]
            if prefix and prefix not in "vV":
                found += _words(prefix)
            found += _versions(token["version"])
    return [term for term in found if term]


def _folded(chunk: str) -> str:
    """Remove accents and compatibility forms; signs that are part of the spelling stay, composed."""
    bare = _MARK_RUN.sub(" ", _REMOVED.sub("", chunk))
    return unicodedata.normalize("NFC", _REMOVED.sub("", unicodedata.normalize("NFKD", bare)))


def _words(identifier: str) -> list[str]:
    """Split at underscores and humps; an identifier of several parts is also one joined term."""
    if "_" not in identifier and (identifier.islower() or identifier.isupper() or identifier.isdigit()):
        return [_term(identifier[:MAX_TERM_CHARS])]
    parts = [hump for part in identifier.split("_") for hump in _HUMP.findall(part)]
    terms = [_term(part[:MAX_TERM_CHARS]) for part in parts]
    if len(parts) > 1:
        terms.append(_term("".join(parts)[:MAX_TERM_CHARS]))
    return terms


def _versions(version: str) -> list[str]:
    """Return 1.2.3 and 1.2, so that each spelling finds the other."""
    whole = version[:MAX_TERM_CHARS].rstrip(".")
    release = ".".join(whole.split(".", 2)[:2])
    return [whole] if release == whole else [whole, release]


def _pairs(run: str) -> list[str]:
    """Return the overlapping pairs of a run of characters, or a single character itself."""
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


@lru_cache(maxsize=_CACHED_WORDS)
def _term(word: str) -> str:
    """Return the term of one word, stemmed until nothing changes, so that a stem is its own stem; empty for a function word."""
    word = word.casefold()[:MAX_TERM_CHARS]
    if word in STOPWORDS:
        return ""
    if not (word.isascii() and word.isalpha()):
        return word
    stem = ""
    while stem != word:
        stem = word
        with _stemmer_lock:
            word = _stemmer.stemWord(stem)[:MAX_TERM_CHARS]
    return "" if word in STOPWORDS else word
