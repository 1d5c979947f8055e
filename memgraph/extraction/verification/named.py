"""Days and names: whether a source states them."""

from __future__ import annotations

from memgraph.model.ids import canonical_name
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re
from memgraph.text.calendar import in_words

_TIME = re.compile(r"T(\d\d:\d\d)")
_MIDNIGHT = "00:00"
_ROLES = frozenset(
    "user agent assistant reviewer developer maintainer author team customer operator admin tester bot ci".split()
)
_INTRODUCED = re.compile(
    r"(?:(?<!\w)(?:by|agent|user|author|reviewer|assistant|agent_name|asks?|asked|tells?|told)\W{1,4}|@)$",
    re.IGNORECASE,
)


def is_named(name: str, source: str) -> bool:
    """Return whether a source names an agent or person.

    It does if the name stands there by itself, and is a role (“the user”), is capitalised or has a digit or sign there, or follows a
    word that introduces one (“by anna”): a verb of the source is nobody's name.
    """
    wanted = " ".join(name.replace("’", "'").split())
    if not wanted:
        return False
    pattern = r"\s+".join(map(re.escape, wanted.split(" ")))
    text = source.replace("’", "'")
    for found in re.finditer(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE):
        as_written = found[0]
        if any(not char.islower() and not char.isspace() for char in as_written):
            return True
        if canonical_name(as_written).removeprefix("the ") in _ROLES or _is_introduced(text, found.start()):
            return True
    return False


def _is_introduced(text: str, place: int) -> bool:
    return _INTRODUCED.search(text[max(place - 20, 0) : place]) is not None


def is_dated(date: str, source: str) -> bool:
    """Return whether a source states an ISO day: 2026-01-05, 5 January 2026, January 5, 2026, Jan 5 2026.

    Of a time other than midnight, it must also state the hour and minute.
    """
    try:
        day = to_iso(date)[:10]
    except ValueError:
        return False
    time = _TIME.search(date.upper().replace(" ", "T"))
    if time is not None and time[1] != _MIDNIGHT and re.search(rf"(?<!\d){time[1]}(?!\d)", source) is None:
        return False
    number, month, year = in_words(day).split()
    text = canonical_name(source).replace(",", "")
    months = (month, month[:3])
    forms = [f"{first} {second} {year}" for name in months for first, second in ((number, name), (name, number))]
    return any(re.search(rf"(?<!\d){form.casefold()}(?!\d)", text) for form in (day, *forms))
