"""Escaping of one line of untrusted text in Markdown: it forms no structure, whether within an item or at its beginning."""

from __future__ import annotations

import re

from memgraph.retrieval.context.task_labels import without_labels

_OPENS_A_BLOCK = re.compile(r"[#>*+\-=_~`<|\[]|\d+[.)]")
"""Start of a Markdown heading, quote, list, fence, rule, table, HTML or link definition at the beginning of a line or item."""
_TAG_OR_LINK = r"<(?=[A-Za-z/!?])|\["
_INLINE = re.compile(rf"(\\*)({_TAG_OR_LINK})")
"""Backslashes and inline Markdown for tags and link texts."""
_INLINE_OR_STRONG = re.compile(rf"(\\*)({_TAG_OR_LINK}|\*{{2,}}|(?<!\w)_{{2,}}|_{{2,}}(?!\w))")
"""The same and strong text."""
_BACKTICKS = re.compile("`+")
_LINKS = re.compile(r"\]\s*[(\[:]")


def inline(text: str, *, strong: bool = False, has_code: bool = False) -> str:
    """Return a text escaped so that it forms no tags or links in Markdown, and no label.

    Parameters
    ----------
    strong : bool
        It forms no strong text either, which costs the underscores of identifiers a backslash each: needed only where strong text is
        part of the structure.
    has_code : bool
        Leave code between backticks as it is: Markdown finds no structure in it. Only for a text before which its paragraph has no
        backtick; a text with a backtick that stands alone is escaped as a whole.
    """
    text = without_labels(text)
    spans = _code_spans(text) if has_code else []
    has_links = _LINKS.search(text) is not None

    def escaped(found: re.Match[str]) -> str:
        slashes, sign = found.groups()
        if sign == "[" and not has_links:
            return found.group()
        return slashes * 2 + "".join(f"\\{char}" for char in sign)

    signs = _INLINE_OR_STRONG if strong else _INLINE
    pieces, end = list[str](), 0
    for start, following in spans:
        pieces += [signs.sub(escaped, text[end:start]), text[start:following]]
        end = following
    return "".join([*pieces, signs.sub(escaped, text[end:])])


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Return the places of code between backticks; none if a backtick is escaped or has no other one."""
    if "\\`" in text:
        return []
    runs, spans = list(_BACKTICKS.finditer(text)), list[tuple[int, int]]()
    while runs:
        opening, *runs = runs
        closing = next((place for place, run in enumerate(runs) if len(run[0]) == len(opening[0])), None)
        if closing is None:
            return []
        spans.append((opening.start(), runs[closing].end()))
        runs = runs[closing + 1 :]
    return spans


def item(text: str) -> str:
    """Return a text escaped so that it begins no Markdown structure within its list item."""
    found = _OPENS_A_BLOCK.match(text)
    if not found:
        return text
    place = found.end() - 1  # for a number, the full stop
    return f"{text[:place]}\\{text[place:]}"
