"""What an author says of a change: the prose of a message, and how much of it there is."""

from __future__ import annotations

from collections.abc import Iterator

from memgraph.extraction.readers.commits import without_markup
from memgraph.text import lazy_re as re

_MAX_CHARS = 16_000
_FENCED = re.compile(r"^ {0,8}(```|~~~)[^`\n]*$.*?(?:^ {0,8}\1|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?: {4}|\t|\s{0,3}(?:[>|$#]|diff --git |Traceback ))")
_ITEM = re.compile(r"\s{0,12}(?:[-*+•]|\d{1,2}[.)])\s")
_WORD = re.compile(r"(?<![^\s(])[^\W\d_][^\W\d_'’]{0,30}(?=[\s.,;:!?)]|$)")

LEAST_WORDS = 25
"""Words of prose with which a message explains its change.

Of the messages of 13 histories that two readers judged (`tests/benchmarks/quality/commits.md`), length told those that state a cause, a
decision, a rule or a limit from the others nearly as well as a trained head did by their words and vectors.
"""


def prose_of(body: str) -> tuple[str, int]:
    """Return a body without code, quotations and tables, on one line, and its number of plain words outside of lists."""
    told: list[str] = []
    words = 0
    for is_item, line in _lines(without_markup(_FENCED.sub("", body[:_MAX_CHARS]))):
        told.append(line)
        words += 0 if is_item else len(_WORD.findall(line))
    return " ".join(" ".join(told).split()), words


def _lines(text: str) -> Iterator[tuple[bool, str]]:
    """Yield (whether it belongs to a list, line) of what is prose."""
    in_item = False
    for line in text.splitlines():
        if _ITEM.match(line):
            in_item = True
            yield True, line
        elif not line.strip():
            in_item = False
        else:
            in_item = in_item and line[:1].isspace()
            if in_item or not _CODE.match(line):
                yield in_item, line
