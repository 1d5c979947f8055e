"""Weak points: groups of changes that had to mend the same kind of fault again and again. Pure.

A change that is recorded in a history happens once, so changes are generalised only if the faults that they mend keep coming
back: at least three of them within ten years have the same weakness.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, in_order
from memgraph.lifecycle.evidence.experience import evidence_of
from memgraph.lifecycle.generalisation.lessons import is_change, words_of
from memgraph.lifecycle.generalisation.weaknesses import Weakness, environments_in, says_why, weaknesses_of
from memgraph.ports import Row
from memgraph.text.words import overlap

_MOST_YEARS = 10
"""What is older than this before the last change is left out."""
_COPY = 0.75
"""Share of common words from which on two changes are one: a cherry-pick, or the same told in the release notes."""


def weak_points(changes: Sequence[Row], others: Iterable[Row] = ()) -> list[list[Row]]:
    """Return the changes that mended the same again and again, by weakness; each change belongs to one group.

    Parameters
    ----------
    others : iterable of Row
        Further episodes of the scope: an environment whose support they report as removed is no weak point any more.
    """
    mended: dict[Weakness, list[Row]] = {}
    for row in in_order(changes):
        for weakness in weaknesses_of(row):
            mended.setdefault(weakness, []).append(row)
    gone = _removed(others)
    known = {
        weakness: rows for weakness, rows in mended.items() if rows[-1]["occurred_at"] > gone.get(weakness.name, "")
    }
    taken: set[str] = set()
    found: list[list[Row]] = []
    for weakness in sorted(known, key=lambda one: (_rank(one), -len(known[one]), one)):
        rows = _recent(_without_copies([row for row in known[weakness] if row["id"] not in taken]))
        if is_weak_point(rows, weakness):
            taken.update(row["id"] for row in rows)
            found.append(rows)
    return found


def is_weak_point(rows: Sequence[Row], weakness: Weakness) -> bool:
    """Return whether these changes show that what they mend keeps coming back, and say why.

    Faults of one cause in one file are alike: one account suffices. Those of an environment have only the place in common, so most must say
    what differs there.
    """
    is_seen = len(rows) >= LEAST_BUILDS and len(frozenset[str]().union(*map(evidence_of, rows))) >= LEAST_BUILDS
    stated = sum(says_why(weaknesses_of(row)[weakness]) for row in rows)
    return is_seen and (stated * 2 > len(rows) if weakness.kind == "environment" else stated > 0)


def weakness_of(rows: Sequence[Row]) -> Weakness | None:
    """Return the weakness that some changes show; None if there is none."""
    mended = [weaknesses_of(row) for row in rows]
    common = set(mended[0]).intersection(*mended[1:])
    return min((one for one in common if is_weak_point(rows, one)), key=lambda one: (_rank(one), one), default=None)


def _rank(weakness: Weakness) -> int:
    """Return the place of a weakness in the order in which changes are assigned: the narrower, the earlier."""
    return int(weakness.kind == "environment")


def _removed(rows: Iterable[Row]) -> dict[str, str]:
    """Return when the support of each environment was last reported as removed."""
    gone: dict[str, str] = {}
    for row in in_order([*rows]):
        if is_change(row) and "removal" in row.get("tags", ()) and "support" in row["content"].casefold():
            gone.update(dict.fromkeys(environments_in(row["content"]), str(row["occurred_at"])))
    return gone


def _recent(rows: Sequence[Row]) -> list[Row]:
    """Return changes, which are in order, without those that are much older than the last."""
    last = rows[-1]["occurred_at"] if rows else ""
    return [row for row in rows if row["occurred_at"] >= f"{int(last[:4]) - _MOST_YEARS:04}{last[4:]}"]


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
