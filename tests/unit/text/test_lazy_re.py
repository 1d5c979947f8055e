"""Patterns that are compiled at their first use."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from memgraph.text import lazy_re
from tests.test_architecture import MODULES


def test_a_pattern_is_compiled_when_it_is_used_and_behaves_like_one_of_re() -> None:
    lazy, plain = (module.compile(r"(?P<n>a+)b", module.IGNORECASE) for module in (lazy_re, re))
    assert "search" not in vars(lazy)
    assert lazy.pattern == plain.pattern
    found = lazy.search("xAAb")
    assert found is not None
    assert found["n"] == "AA"
    assert "search" in vars(lazy)
    for name in ("flags", "groups", "groupindex"):
        assert getattr(lazy, name) == getattr(plain, name)
    assert lazy.sub("-", "abxab") == plain.sub("-", "abxab") == "-x-"
    assert lazy_re.compile(rb"\d").findall(b"a1b2") == [b"1", b"2"]
    with pytest.raises(AttributeError):
        _ = lazy.no_such_method
    with pytest.raises(re.error):
        lazy_re.compile("(").search("x")


@pytest.mark.parametrize("part", ["extraction", "lifecycle"])
def test_every_pattern_of_the_package_compiles(part: str) -> None:
    lazy = [
        value
        for name in MODULES
        if name.startswith(f"memgraph.{part}.")
        for value in vars(import_module(name)).values()
        if isinstance(value, lazy_re.LazyPattern)
    ]
    assert len(lazy) > 20
    for pattern in lazy:
        re.compile(pattern.pattern, pattern.options)
