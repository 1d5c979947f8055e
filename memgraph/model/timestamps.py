"""Times in memgraph's canonical form: UTC, ISO 8601, milliseconds, ``2026-02-19T08:30:00.000Z``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_PLAINLY_VALID = re.compile(
    r"[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z", re.ASCII
)
"""The canonical form with a day that every month has, so that no calendar check is needed."""
_DAY_S = 86_400.0


_NO_TIME = "must be a time in ISO 8601, such as 2026-01-05 or 2026-01-05T10:30:00Z"


def to_iso(value: object) -> str:
    """Return the canonical form of a datetime or an ISO 8601 string, or raise `ValueError`. A date alone means its first moment; without an offset, UTC."""
    if isinstance(value, str):
        if _PLAINLY_VALID.fullmatch(value):
            return value
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(_NO_TIME) from None
        if _CANONICAL.fullmatch(value):  # the pattern admits 30 February
            return value
        value = moment
    if not isinstance(value, datetime):
        raise ValueError("is not a time: give an aware datetime or an ISO 8601 string")
    aware = value if value.utcoffset() is not None else value.replace(tzinfo=UTC)
    try:
        utc = aware.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999 in UTC") from None
    return utc.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{utc.microsecond // 1000:03d}Z"


@lru_cache(maxsize=4_096)
def is_canonical(text: str) -> bool:
    """Return whether a text is a point in time in canonical form."""
    try:
        return _CANONICAL.fullmatch(text) is not None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def from_iso(text: str) -> datetime:
    """Parse the canonical form into an aware UTC datetime."""
    return datetime.fromisoformat(text)


@lru_cache(maxsize=4_096)
def epoch_days(text: str) -> float:
    """Return the days since 1970-01-01 as a float, for arithmetic on many times at once."""
    return from_iso(text).timestamp() / _DAY_S


def days_between(earlier: str, later: str) -> float:
    """Return the days from `earlier` to `later`, never negative (a clock set back counts as no time passed)."""
    return max(0.0, (from_iso(later) - from_iso(earlier)) / timedelta(days=1))


_MINUTES_A_DAY = 24 * 60
_UNITS = (
    ("year", 365 * _MINUTES_A_DAY),
    ("month", 30 * _MINUTES_A_DAY),
    ("day", _MINUTES_A_DAY),
    ("hour", 60),
    ("minute", 1),
)


def age(then: str, now: str) -> str:
    """Return the age of a canonical time in words: ``just now``, ``5 minutes ago``, … ``2 years ago`` (seed 0)."""
    minutes = int(days_between(then, now) * _MINUTES_A_DAY + 1e-9)
    for unit, size in _UNITS:
        if minutes >= size:
            count = minutes // size
            return f"{count} {unit}{'s' if count != 1 else ''} ago"
    return "just now"
