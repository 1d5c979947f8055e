"""Undated trials: their logs give only their order, and memgraph dates trial n to day n after 2000-01-01, UTC."""

from __future__ import annotations

from datetime import date

_FIRST_DAY = date(2000, 1, 1).toordinal()
_MOST_TRIALS = 1_000
_DATE_CHARS = 10
_MIDNIGHT = "T00:00:00.000Z"


def is_undated(at: str) -> bool:
    """Return whether a time or a day represents a trial number: the first moment of one of the first thousand days."""
    return at[_DATE_CHARS:] in ("", _MIDNIGHT) and 0 <= trial_of(at) < _MOST_TRIALS


def trial_of(at: str) -> int:
    """Return the trial number that a time or a day represents."""
    return date.fromisoformat(at[:_DATE_CHARS]).toordinal() - _FIRST_DAY
