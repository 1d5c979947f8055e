"""Sentences of a change's message: prose and list items, without code, quotations, trailers, links and tool output.

Messages are truncated first, and every pattern is applied to single lines or bounded texts: linear in the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from memgraph.text.sentences import split_sentences

_MAX_BODY_CHARS = 8_000
_MAX_LINE_CHARS = 1_000
_MAX_SENTENCE_CHARS = 420
_MAX_REASONS_CHARS = 500
_LEAST_WORDS = 5

_MARKS = " \t*-•"
_DUNDER = re.compile(r"__\w+__")
"""A name such as ``__version__``, whose underscores are no emphasis."""
_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_END_OF_PROSE = re.compile(
    r"--HG--|updated-dependencies:|#? ?Conflicts:|(?:<details>)?<summary>|Squashed commit of|\W{0,2}rebased? ",
    re.IGNORECASE,
)
_RULER = re.compile(r"\s{0,8}(?:[-=_*~^]\s?){3,}$")
_ITEM = re.compile(r"(\s{0,12})(?:[-*•+]|\d{1,2}[.)]|\([a-z\d]\))\s{1,4}(?=\S)")
_CODE = re.compile(
    r"(?: {4}|\t)|[\w.@~/:-]{0,40}\$ |\s{0,4}(?:\$ |>>> |\.\.\. |>\s|\||#{1,6} |@@ |diff --git |Traceback |<!--)"
)
_REFERENCE = r"(?:(?:https?://\S{1,300})|(?:[\w.-]{1,40}/[\w.-]{1,60})?(?:#|GH-|gh-)\d{1,7}|[0-9a-f]{7,40}|(?:issue|PR|pull request|bug) ?#?\d{1,7})"
_NOT_PROSE = re.compile(
    rf"\W*(?:[A-Za-z][\w-]{{1,20}}(?: (?:to|from|also|in|part of|by|of|issue|issues|PR))?\s?:?\s+)?{_REFERENCE}(?:[\s,;&]+(?:and )?(?:\w{{3,10}} )?{_REFERENCE}){{0,20}}\W*$"
    r"|[A-Z][A-Za-z]{1,20}(?:-[A-Za-z]{1,20}){1,3}: "  # a trailer
    r"|(?:refs?|see|cc|thanks|closes?|fixe?s|related|ref|signed off|co-?authored|reported|reviewed|suggested|backport\w*|pr|issue|changelog|bug|ticket)\b\s?:"
    r"|\(?cherry[- ]picked|\d+ files? changed|\[pre-commit|for more information, see|this reverts commit|updates?:$|branch\s?: |user: |"
    r"-+ (?:original|forwarded) message|\[[ xX]\]",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"<!--[^>]{0,2000}-->")
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]\n]{1,200})\](?:\([^()\s]{1,300}\)|\[[^\[\]\n]{0,80}\])")
_BRACKETED_REFERENCE = re.compile(
    rf"\s*[\[(](?:(?:see|cf\.?|refs?|fixe?[sd]?|close[sd]?|part of|resolve[sd]?|PR|and|issue)?[\s:,]*{_REFERENCE}[\s,;]*){{1,6}}[)\]]",
    re.IGNORECASE,
)
_TRAILING_LINK = re.compile(
    r"(?:[\s.,;(]+(?:see|cf|via|ref)\b\.?(?: also)?:?\s*|\s*\(|(?<=[.!])\s+|(?<! at)(?<! in)(?<! by)(?<! is)(?<! of)(?<! to)(?<!here):\s+)<?https?://[^\s<>]{1,300}$",
    re.IGNORECASE,
)
_REASONS = re.compile(
    r"\b(?:reasons?|because|why|advantages?|benefits?|problems?|drawbacks?|causes?|motivations?)\b.{0,80}:$",
    re.IGNORECASE,
)
"""What announces a list of reasons."""
_FOOTNOTE = re.compile(r"\s?\[(?:\d{1,2}|skip [a-z]{2,12}|ci skip|(?:no|skip)[- ]\w{2,12})\](?!\()")
_CAPITAL_START = re.compile(r"[.!?]\s+[A-Z]")
_WIDE_ENDS = re.compile(r"(?<=\w\w[.!?])\s{2,}")
_LOWER_ENDS = re.compile(r"(?<=\w\w[.!?])\s+")
"""Ends of sentences in texts whose author writes no capitals."""
_LONG_SHA = re.compile(r"\b(?=[a-f]{0,40}\d)([0-9a-f]{10})[0-9a-f]{2,30}\b")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|resp|approx|no|fig|incl|ca)|^\w|\s[A-Za-z])\.$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a message, on one line.

    Attributes
    ----------
    text : str
    is_item : bool
        Whether it stands in a list.
    begins : bool
        Whether it begins its paragraph or list item.
    follows : bool
        Whether nothing was left out between the sentence before it in its paragraph and this one.
    gives_reasons : bool
        Whether it announces reasons, and lists them.
    """

    text: str
    is_item: bool
    begins: bool
    follows: bool = False
    gives_reasons: bool = False


def sentences_of(body: str) -> list[Sentence]:
    """Return the complete sentences of a message's body, in order; reasons given as a list are one sentence."""
    found: list[Sentence] = []
    announced = ""
    for is_item, block in _blocks(body):
        if is_item and announced:
            reason = plain(" ".join(_complete(block)) or block).rstrip(" .;")
            if len(reason.split()) > 1 and len(announced) + len(reason) <= _MAX_REASONS_CHARS:
                announced = f"{announced}{' ' if announced.endswith(':') else '; '}{reason}"
            continue
        found += _announced(announced)
        announced = ""
        follows = False
        for place, part in enumerate(_split(block)):
            text = plain(part)
            if _is_complete(text):
                found.append(Sentence(text, is_item, begins=not place, follows=follows))
                follows = True
            elif not is_item and _REASONS.search(text[-200:]) and len(text) <= _MAX_SENTENCE_CHARS:
                announced = text
            else:
                follows = follows and len(text.split()) < _LEAST_WORDS
    return found + _announced(announced)


def _announced(text: str) -> list[Sentence]:
    """Return the sentence of a list of reasons, if there were any."""
    return [] if not text or text.endswith(":") else [Sentence(text, False, begins=True, gives_reasons=True)]


def _complete(block: str) -> list[str]:
    return [text for part in _split(block) if (text := plain(part)) and _is_complete(text)]


def plain(text: str) -> str:
    """Return a text on one line, without links and bracketed references; commit ids are shortened."""
    text = _TRAILING_LINK.sub("", _MARKDOWN_LINK.sub(r"\1", " ".join(text.split())))
    text = _LONG_SHA.sub(r"\1", _FOOTNOTE.sub("", _BRACKETED_REFERENCE.sub("", text)))
    if text.startswith("(") and text.endswith((".)", "!)")) and text.count(")") == 1:
        text = text[1:-1]
    text = text.strip(_MARKS)
    begins, _, _ = text.partition(" ")
    _, _, ends = text.rpartition(" ")
    text = text if _DUNDER.search(begins) else text.lstrip("_" + _MARKS)
    return text if _DUNDER.search(ends) else text.rstrip("_" + _MARKS)


def _is_complete(text: str) -> bool:
    words = text.split()
    if len(words) < _LEAST_WORDS or len(text) > _MAX_SENTENCE_CHARS or text.endswith((":", ",", "…")):
        return False
    if text.count("(") != text.count(")") or text.count('"') % 2:
        return False
    return not _NOT_PROSE.match(text) and "://" not in text and text.count("`") % 2 == 0 and not text.endswith("?")


def _split(block: str) -> Iterator[str]:
    held = ""
    ends = _LOWER_ENDS if block[:1].islower() and not _CAPITAL_START.search(block) else _WIDE_ENDS
    for part in chain.from_iterable(ends.split(one) for one in split_sentences(block, "prose")):
        held = f"{held} {part}" if held else part
        if not _ABBREVIATION.search(held[-12:]):
            yield held
            held = ""
    if held:
        yield held


def _blocks(body: str) -> Iterator[tuple[bool, str]]:
    """Yield (whether it is a list item, text) of paragraphs and list items without what is not prose.

    A sentence that code or a link completes is left out, with what continues it in lower case.
    """
    held: list[str] = []
    ready: tuple[bool, str] | None = None
    is_item = in_fence = after_code = False
    for raw in [*_COMMENT.sub("", body[:_MAX_BODY_CHARS]).splitlines(), ""]:
        line = raw[:_MAX_LINE_CHARS].rstrip()
        is_fence = _FENCE.match(line) is not None
        is_last = _END_OF_PROSE.match(line) is not None
        item = None if in_fence or is_fence else _ITEM.match(line)
        is_code = in_fence or is_fence or (not item and not (is_item and held) and _CODE.match(line) is not None)
        is_code = is_code or _NOT_PROSE.match(line.strip()) is not None
        in_fence ^= is_fence
        if not line or is_code or item or is_last or _RULER.match(line):
            if held:
                if ready:
                    yield ready
                continues = after_code and not is_item and held[0][:1].islower()
                ready = None if continues else (is_item, " ".join(held))
                after_code = False
            held, is_item = [], False
        if is_last:
            break
        if is_code:
            after_code = True
            ready = (ready[0], _finished(ready[1])) if ready else None
        elif item and not _NOT_PROSE.match(line[item.end() :]):
            held, is_item = [line[item.end() :]], True
        elif line and not item and not _RULER.match(line):
            held.append(line.strip())
    if ready:
        yield ready


def _finished(block: str) -> str:
    """Return a text up to the end of its last complete sentence."""
    if block.endswith((".", "!", ".)", ".`")):
        return block
    return block[: max(block.rfind(mark) for mark in (". ", "! ", "? ")) + 1]
