"""Sentences of a change's message: prose and list items, without code, quotations, trailers, links and tool output.

Messages are truncated first, and every pattern is applied to single lines or bounded texts: linear in the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

from memgraph.text import lazy_re as re
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
_LINK = re.compile(r"\s{0,12}<?https?://\S{1,300}\s*$")
_POINTS_AT = re.compile(r"\b(?:at|by|here|in|is|of|see|to|this|these|from|following|below|like|as):$", re.IGNORECASE)
"""Ends of sentences that a link completes."""
_FOOTNOTE = re.compile(r"\s?\[(?:\d{1,2}|skip [a-z]{2,12}|ci skip|(?:no|skip)[- ]\w{2,12})\](?!\()")
_CAPITAL_START = re.compile(r"[.!?]\s+[A-Z]")
_WIDE_ENDS = re.compile(r"(?<=\w\w[.!?])\s{2,}")
_LOWER_ENDS = re.compile(r"(?<=\w\w[.!?])\s+")
"""Ends of sentences in texts whose author writes no capitals."""
_LONG_SHA = re.compile(r"\b(?=[a-f]{0,40}\d)([0-9a-f]{10})[0-9a-f]{2,30}\b")
_OPEN_END = re.compile(
    r"\s(?:from|of|and|or|the|an?|see|than)\W*$|(?:ed|en|nt) (?:in|by|to|at|with)\W*$", re.IGNORECASE
)
"""Ends of sentences whose last part was a link or a reference."""
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
        Whether it is the first of its paragraph or list item.
    after_gap : bool
        Whether something was left out between the sentence before it and this one: code, or a sentence that code completes.
    section : int
        Number of its part of the message. A list item that a paragraph follows is the heading of a new part.
    gives_reasons : bool
        Whether it announces reasons, and lists them.
    """

    text: str
    is_item: bool
    begins: bool
    after_gap: bool = False
    section: int = 0
    gives_reasons: bool = False


def sentences_of(body: str) -> list[Sentence]:
    """Return the complete sentences of a message's body, in order; reasons given as a list are one sentence."""
    found: list[Sentence] = []
    announced = ""
    is_gap = False
    before: int | None = None  # where the sentences of a list item begin
    section = 0
    for is_item, block, is_after_code in _blocks(body):
        is_gap = is_gap or is_after_code
        if is_item and announced:
            reason = plain(" ".join(_complete(block)) or block).rstrip(" .;")
            if len(reason.split()) > 1 and len(announced) + len(reason) <= _MAX_REASONS_CHARS:
                announced = f"{announced}{' ' if announced.endswith(':') else '; '}{reason}"
            continue
        found += _announced(announced, section)
        announced = ""
        if before is not None and not is_item:
            section += 1
            found[before:] = [replace(one, section=section) for one in found[before:]]
        before = len(found) if is_item else None
        begins = True
        for part in _split(block):
            text = plain(part)
            if _is_complete(text):
                found.append(Sentence(text, is_item, begins, after_gap=is_gap, section=section))
                begins = is_gap = False
            elif not is_item and _REASONS.search(text[-200:]) and len(text) <= _MAX_SENTENCE_CHARS:
                announced = text
            else:
                is_gap = is_gap or is_item or len(text.split()) >= _LEAST_WORDS
    return found + _announced(announced, section)


def _announced(text: str, section: int) -> list[Sentence]:
    """Return the sentence of a list of reasons, if there were any."""
    if not text or text.endswith(":"):
        return []
    return [Sentence(text, False, begins=True, section=section, gives_reasons=True)]


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
    if _OPEN_END.search(text[-12:]):
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


def _blocks(body: str) -> Iterator[tuple[bool, str, bool]]:
    """Yield (whether it is a list item, text, whether code precedes it) of paragraphs and list items without what is not prose.

    A sentence that code completes is left out, with what continues it in lower case; a link that only proves it is left out alone.
    """
    held: list[str] = []
    ready: tuple[bool, str, bool] | None = None
    is_item = in_fence = after_code = is_gap = False
    for raw in [*_COMMENT.sub("", _whole(body, _MAX_BODY_CHARS)).splitlines(), ""]:
        line = _whole(raw, _MAX_LINE_CHARS).rstrip()
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
                ready = None if continues else (is_item, " ".join(held), is_gap)
                is_gap = continues
                after_code = False
            held, is_item = [], False
        if is_last:
            break
        if is_code:
            after_code = True
            is_link = _LINK.match(line) is not None
            is_gap = is_gap or not (is_link or _NOT_PROSE.match(line.strip()))
            if ready:
                text = (
                    ready[1].rstrip(":") if is_link and not _POINTS_AT.search(ready[1][-40:]) else _finished(ready[1])
                )
                ready = (ready[0], text, ready[2])
        elif item and not _NOT_PROSE.match(line[item.end() :]):
            held, is_item = [line[item.end() :]], True
        elif line and not item and not _RULER.match(line):
            held.append(line.strip())
    if ready:
        yield ready


def _whole(text: str, limit: int) -> str:
    """Return a text, or of a longer one the sentences that fit."""
    return text if len(text) <= limit else _finished(text[:limit])


def _finished(block: str) -> str:
    """Return a text up to the end of its last complete sentence."""
    if block.endswith((".", "!", ".)", ".`")):
        return block
    return block[: max(block.rfind(mark) for mark in (". ", "! ", "? ")) + 1]
