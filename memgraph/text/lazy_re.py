"""What the package uses of `re`, with patterns that are compiled at their first use.

The rules of extraction and of the lifecycle have some 600 patterns, and compiling them takes a quarter of a second. A command that only
recalls uses few of them: ``from memgraph.text import lazy_re as re``.
"""

from __future__ import annotations

import re
from re import DOTALL, IGNORECASE, MULTILINE, Match, Pattern, escape, findall, finditer, match, search, split, sub
from typing import Any, AnyStr, cast

__all__ = [
    "DOTALL",
    "IGNORECASE",
    "MULTILINE",
    "LazyPattern",
    "Match",
    "Pattern",
    "compile",
    "escape",
    "findall",
    "finditer",
    "match",
    "search",
    "split",
    "sub",
]


class LazyPattern:
    """A regular expression that behaves like the compiled pattern, and is compiled when one of its methods is first asked for."""

    def __init__(self, pattern: str | bytes, options: int) -> None:
        self.pattern = pattern
        self.options = options

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.options)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


_METHODS = "search match fullmatch finditer findall split sub subn flags groups groupindex".split()


def compile(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:  # noqa: A001 - as in `re`
    """Return a pattern that is compiled at its first use, which is also when a mistake in it shows."""
    return cast("re.Pattern[AnyStr]", LazyPattern(pattern, flags))
