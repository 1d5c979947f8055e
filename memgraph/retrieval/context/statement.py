"""A memory's content as whole sentences for display: without the debris of commit messages and lists. Pure.

The content itself stays as it was recorded; only what an agent reads is shortened, and only if a sentence is left.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.text.safe import visible_line
from memgraph.text.sentences import ended, split_sentences
from memgraph.text.words import expanded

_TRAILER = re.compile(
    r"^[ \t]*(?:[A-Z][a-z]{1,20}(?:-[a-z]{1,20}){0,2}-[Bb]y|Change-Id|PR-URL|Reviewed-on|git-svn-id|Cc)[ \t]*:.*$",
    re.MULTILINE,
)
"""A line of metadata at the end of a commit message."""
_SIGNATURE = re.compile(
    r"\s*\b[A-Z][a-z]{1,20}(?:-[a-z]{1,20}){0,2}-[Bb]y: [^<>\n]{0,80}<[^<>\s]{1,200}@[^<>\s]{1,200}>"
)
"""The same within a line: only with an e-mail address is it certain."""
_MERGE = re.compile(
    r"^\s*Merge (?:pull request #\d+ from \S+|(?:remote-tracking )?branch '[^'\n]{1,200}'"
    r"(?: of \S+)?(?: into \S+)?)(?:\s+|$)"
)
_REFERENCE = re.compile(r"\s*\((?:[\w.-]+/[\w.-]+)?#\d+\)|(?:\s\(\)){1,9}(?=\s*(?:$|[.;]))")
"""The number of an issue or pull request alone in brackets, or the brackets that it left behind."""
_BULLET = re.compile(r"^[ \t]*[-*•+][ \t]+(?=\S)", re.MULTILINE)
_TYPE = re.compile(
    r"^(?:fix|bugfix|feat|feature|chore|docs|refactor|perf|tests?|build|ci|style)(?:\((?P<scope>[^()\n]{1,40})\))?:\s+",
    re.IGNORECASE,
)
"""The type of a conventional commit. Not `revert`, whose sentence says the contrary without it, and not a breaking one."""
_STRONG = re.compile(r"(?<![\w*])\*\*(?=\S)([^*\n]{1,400})(?<=\S)\*\*(?![\w*])")
_FINAL = ".!?…:;。！？"
_CLOSING = "”\"'`)"
_LEAST_WORDS = 2
_WORD = re.compile(r"\w+")
_ARTICLES = frozenset({"a", "an", "the"})
_TERMS = re.compile(r"\w+|[^\w\s.,;:\"'`“”‘’*_]")


class Statement(NamedTuple):
    """Whole sentences on one visible line, and the place that they concern, such as a file."""

    text: str
    place: str | None = None


def statement(content: str, location: str | None = None) -> Statement:
    """Return the whole sentences of a memory's content, and its location if that stands behind them in brackets, as earlier releases wrote it.

    Removed are trailers, merge lines, issue numbers alone in brackets, bullets, the type of a conventional commit, marks of
    strong text, and a last sentence that was truncated. If no sentence would be left, the content stays as it is.
    """
    text = content
    for debris in (_TRAILER, _SIGNATURE, _MERGE, _REFERENCE):
        text = _unless_empty(debris.sub("", text), text)
    text = _STRONG.sub(r"\1", _without_bullets(text)).strip()
    scope = None
    if (found := _TYPE.match(text)) and _is_sentence(text[found.end() :]):
        text, scope = text[found.end() :], visible_line(found["scope"] or "") or None
    line = visible_line(text) or visible_line(content)
    place = visible_line(location or "")
    if place and line.endswith(f" ({place})"):
        line, scope = line.removesuffix(f" ({place})"), place
    return Statement(full_stop(_whole(line, is_full=len(content) >= MAX_CONTENT_CHARS)), scope)


def full_stop(line: str) -> str:
    """Return a line with a full stop, unless it has an end."""
    return ended(line, ends=_FINAL, closing=_CLOSING) if line else line


def sentence_keys(text: str) -> frozenset[str]:
    """Return the sentences of a text in a form that is equal for sentences of the same words and signs in the same order.

    Case, punctuation and articles do not count; negations are written out.
    """
    keys = (key_of(part) for part in split_sentences(text, "part"))
    return frozenset(key for key in keys if key)


def key_of(text: str) -> str:
    """Return the words and signs of a text, separated by spaces."""
    terms = _TERMS.findall(expanded(text).casefold().rstrip(f"{_FINAL}{_CLOSING} "))
    return " ".join(term for term in terms if term not in _ARTICLES)


def _whole(line: str, *, is_full: bool) -> str:
    """Return a line without a last sentence that was truncated, unless it is the only one."""
    bare = line.rstrip(_CLOSING)
    is_cut = bare.endswith("…") or (is_full and not bare.endswith(tuple(_FINAL)))
    parts = split_sentences(line, "part") if is_cut else []
    return " ".join(parts[:-1]) if len(parts) > 1 else line


def _without_bullets(text: str) -> str:
    """Return a text without bullets at the beginnings of its lines; an item ends in a full stop then."""
    if not _BULLET.search(text):
        return text
    lines = [line.strip() for line in text.splitlines()]
    plain = [_BULLET.sub("", line) for line in lines]
    are_items = [*(line != bare for line, bare in zip(lines, plain, strict=True)), False]
    ends = [
        ended(bare, ends=f"{_FINAL},", closing=_CLOSING)
        if bare and (are_items[place] or are_items[place + 1])
        else bare
        for place, bare in enumerate(plain)
    ]
    return "\n".join(ends)


def _unless_empty(shorter: str, text: str) -> str:
    return shorter if _is_sentence(shorter) else text


def _is_sentence(text: str) -> bool:
    return len(_WORD.findall(text)) >= _LEAST_WORDS
