"""Weak points: groups of changes that had to mend the same again and again. Pure.

A change that is recorded in a history happens once, so changes are generalised only if what they mend keeps coming back:
at least three of them name the same weakness. A cause that no single file has needs four; a thing needs one change that
says that it had worked before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, in_order
from memgraph.lifecycle.evidence.experience import evidence_of
from memgraph.lifecycle.generalisation.lessons import is_change, words_of
from memgraph.lifecycle.generalisation.weaknesses import Weakness, environments_in, leads_with, names_of, weaknesses_of
from memgraph.ports import Row
from memgraph.text.overlap import overlap

_RARE, _FEW = 0.03, 10
"""Share of a project's changes, and their number in a small one, that may name the same thing: what more name is a subject."""
_COPY = 0.75
"""Share of common words from which on two changes are one: a cherry-pick, or the same told in the release notes."""
_RETURNED = re.compile(
    r"\bregress(?:ed|es|ions?)\b(?! tests?)|\bre-?introduc\w{1,5}|\bbroken? (?:by|in|since)\b|\bcame back\b|\b(?:once|yet) again\b|"
    r"\brestor(?:e[sd]?|ing) (?:the )?(?:old|previous|former|original|support|compat\w{0,10}|behaviou?r)\b|\bstopped working\b",
    re.IGNORECASE,
)


def weak_points(changes: Sequence[Row], others: Iterable[Row] = ()) -> list[list[Row]]:
    """Return the changes that mended the same again and again, by weakness; each change belongs to one group.

    Parameters
    ----------
    others : iterable of Row
        Further episodes of the scope: what they report as removed is no weak point any more.
    """
    mended: dict[Weakness, list[Row]] = {}
    naming = Counter[str]()
    for row in in_order(changes):
        naming.update(names_of(row).keys())
        for weakness in weaknesses_of(row):
            mended.setdefault(weakness, []).append(row)
    gone = _removed(others)
    most = max(_FEW, _RARE * len(changes))
    known = {
        weakness: rows
        for weakness, rows in mended.items()
        if len(rows) >= LEAST_BUILDS
        and rows[-1]["occurred_at"] > gone.get(weakness.name, "")
        and not (weakness.kind == "thing" and naming[weakness.name] > most)
    }
    taken: set[str] = set()
    found: list[list[Row]] = []
    for weakness in sorted(known, key=lambda one: (_rank(one), -len(known[one]), one)):
        rows = _without_copies([row for row in known[weakness] if row["id"] not in taken])
        if is_weak_point(rows, weakness):
            taken.update(row["id"] for row in rows)
            found.append(rows)
    return found


def is_weak_point(rows: Sequence[Row], weakness: Weakness) -> bool:
    """Return whether these changes show that what they mend keeps coming back."""
    evidence = frozenset[str]().union(*map(evidence_of, rows))
    if weakness.kind == "thing" and came_back(rows, weakness) is None:
        return False
    if weakness.kind == "topic" and 3 * sum(leads_with(row, weakness) for row in rows) < 2 * len(rows):
        return False  # mentioned rather than mended
    return len(evidence) >= LEAST_BUILDS + (weakness.kind == "cause" and not weakness.file)


def weakness_of(rows: Sequence[Row]) -> Weakness | None:
    """Return the weakness that some changes show; None if there is none."""
    mended = [weaknesses_of(row) for row in rows]
    common = set(mended[0]).intersection(*mended[1:])
    return min((one for one in common if is_weak_point(rows, one)), key=lambda one: (_rank(one), one), default=None)


def came_back(rows: Sequence[Row], weakness: Weakness) -> Row | None:
    """Return the last of some changes that says that what they mend had worked before; None if it is the first."""
    later = reversed(in_order(rows)[1:])
    return next((row for row in later if any(map(says_it_returned, weaknesses_of(row).get(weakness, ())))), None)


def says_it_returned(sentence: str) -> bool:
    """Return whether a sentence says that what it names had worked before, and broke."""
    return _RETURNED.search(sentence) is not None


def _rank(weakness: Weakness) -> int:
    """Return the place of a weakness in the order in which changes are assigned: the narrower, the earlier."""
    if weakness.kind == "cause":
        return 0 if weakness.file else 5
    return {"thing": 1, "topic": 2, "release": 3, "environment": 4}[weakness.kind]


def _removed(rows: Iterable[Row]) -> dict[str, str]:
    """Return when each thing, and the support of each environment, was last reported as removed."""
    gone: dict[str, str] = {}
    for row in in_order([*rows]):
        if is_change(row) and "removal" in row.get("tags", ()):
            at = str(row["occurred_at"])
            gone.update(dict.fromkeys(names_of(row), at))
            if "support" in row["content"].casefold():
                gone.update(dict.fromkeys(environments_in(row["content"]), at))
    return gone


def _without_copies(rows: Collection[Row]) -> list[Row]:
    """Return changes without those that repeat an earlier one."""
    kept: list[Row] = []
    for row in rows:
        if not any(_is_copy(row, other) for other in kept):
            kept.append(row)
    return kept


def _is_copy(row: Row, other: Row) -> bool:
    one, two = row.get("title"), other.get("title")
    may_be = one == two or not (one and two)
    return may_be and overlap(words_of(row), words_of(other), of_smaller=True) >= _COPY
