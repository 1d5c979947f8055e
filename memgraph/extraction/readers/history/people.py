"""The people of a history: which spellings of an author are one person, and by which name the person is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from memgraph.model.ids import canonical_name
from memgraph.text import lazy_re as re

_MOST_NAMES = 4
"""An address that more names use is that of a team or a machine."""
_NOBODYS = re.compile(
    r"(?:^|[.+_-])no-?reply@|^[^@]*$|@[^.]*$|@(?:.*\.)?(?:example|invalid|local|localhost|localdomain|test)(?:\.(?:com|net|org))?$",
    re.IGNORECASE,
)
"""Addresses of nobody: without a domain, reserved (RFC 2606 and 6761), or that nobody reads."""
_NUMBERED = re.compile(r"^\d+\+(?=.*@users\.noreply\.)")
Spelling = tuple[str, str]
"""A name and an address, as a commit has them."""


def persons(spellings: Iterable[Spelling]) -> dict[Spelling, str]:
    """Return the name of the person that each spelling means.

    Two spellings are one person if they have the same address, or the same name of two words or more. The person's name
    is the first spelling of two words or more, else the first: so what is appended to a history changes it only for
    those who get a full name, prove to be one person, or share their address with many.

    Parameters
    ----------
    spellings : iterable of (str, str)
        The oldest first; by git's mailmap, if there is one.

    Notes
    -----
    Linear in the spellings (a union–find with path halving).
    """
    known = list(dict.fromkeys(spellings))
    names_of: dict[str, set[str]] = defaultdict(set)
    for name, address in known:
        names_of[_address(address)].add(canonical_name(name))
    parent = list(range(len(known)))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    first: dict[str, int] = {}
    for place, (name, address) in enumerate(known):
        mail, called = _address(address), canonical_name(name)
        keys = [f"@{mail}"] if mail and len(names_of[mail]) <= _MOST_NAMES else []
        for key in (*keys, *([called] if " " in called else [])):
            one, other = sorted((root(first.setdefault(key, place)), root(place)))
            parent[other] = one
    called_: dict[int, str] = {}
    for place, (name, _) in enumerate(known):
        one = root(place)
        if one not in called_ or (" " in name.strip() and " " not in called_[one].strip()):
            called_[one] = name
    return {spelling: called_[root(place)] for place, spelling in enumerate(known)}


def _address(address: str) -> str:
    """Return an address in the form in which it identifies a person; "" if it does not."""
    return "" if _NOBODYS.search(address) else _NUMBERED.sub("", address.strip().casefold())
