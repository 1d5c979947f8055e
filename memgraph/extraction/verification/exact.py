"""Exact items: whether a text has a number, name, path or option as it is, by itself or as a part of a longer one. Pure."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from memgraph.text import lazy_re as re

_NUMBER = re.compile(r"[-+]?v?(\d[\d.,:]*)([a-z%]{0,12})")
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")


def plain(text: str) -> str:
    """Return a text in comparable form with paths and numbers written in one way."""
    return _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text.replace("\\", "/"))


def stands_in(item: str, text: str) -> bool:
    """Return whether a text has an item: “ada/kiln” is in “https://git.example.org/ada/kiln/issues”, but 3.3 is not in 3.3.5.

    Both are in plain form (`plain`). A number may have a space before its unit; scripts without spaces have no limits of words.
    """
    if any(unicodedata.east_asian_width(char) in "WF" for char in item):
        return item in text
    return _pattern(item).search(f" {text}") is not None


@lru_cache(maxsize=4_096)
def _pattern(item: str) -> re.Pattern[str]:
    if (number := _NUMBER.fullmatch(item)) is not None:
        sign = re.escape(item[0]) if item[0] in "+-" else ""
        value, unit = re.escape(number[1]), re.escape(number[2])
        start = r"(?<!\w)(?<!\d[.,:])" if sign else r"(?<![\w.])(?<!\d[.,:])(?<![\s(=:,/][-+])"
        limit = "" if unit == "%" else r"(?![\w%>])(?![.,:]\d)"
        version = "v" if "v" in item[:2] and "." not in item else "v?"
        return re.compile(f"{start}{sign}{version}{value}{' ?' if unit else ''}{unit}{limit}")
    start = r"(?<![\w-])" if item.startswith("-") else r"(?<!\w)(?<!\w-)" if item[0].isalnum() or item[0] == "_" else ""
    return re.compile(rf"{start}{re.escape(item)}(?![\w]|-\w|\.(?!git\b)\w)")
