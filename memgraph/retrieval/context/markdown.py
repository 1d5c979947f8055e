"""Escaping of one line of untrusted text in Markdown: it forms no structure, whether within an item or at its beginning."""

from __future__ import annotations

import re

_OPENS_A_BLOCK = re.compile(r"[#>*+\-=_~`<|\[]|\d+[.)]")
"""Start of a Markdown heading, quote, list, fence, rule, table, HTML or link definition at the beginning of a line or item."""
_TAG_OR_LINK = r"<(?=[A-Za-z/!?])|\["
_INLINE = re.compile(rf"(\\*)({_TAG_OR_LINK})")
"""Backslashes and inline Markdown for tags and link texts."""
_INLINE_OR_STRONG = re.compile(rf"(\\*)({_TAG_OR_LINK}|\*{{2,}}|(?<!\w)_{{2,}}|_{{2,}}(?!\w))")
"""The same and strong text."""
_LINKS = re.compile(r"\]\s*[(\[:]")


def inline(text: str, *, strong: bool = False) -> str:
    """Return a text escaped so that it forms no tags or links in Markdown.

    With `strong` it forms no strong text either, which costs the underscores of identifiers a backslash each: needed only where strong
    text is part of the structure.
    """
    has_links = _LINKS.search(text) is not None

    def escaped(found: re.Match[str]) -> str:
        slashes, sign = found.groups()
        if sign == "[" and not has_links:
            return found.group()
        return slashes * 2 + "".join(f"\\{char}" for char in sign)

    return (_INLINE_OR_STRONG if strong else _INLINE).sub(escaped, text)


def item(text: str) -> str:
    """Return a text escaped so that it begins no Markdown structure within its list item."""
    found = _OPENS_A_BLOCK.match(text)
    if not found:
        return text
    place = found.end() - 1  # for a number, the full stop
    return f"{text[:place]}\\{text[place:]}"
