"""Names of months, and the time spans of dates."""

from __future__ import annotations

from calendar import isleap, monthrange
from datetime import UTC, date, datetime, timedelta

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_SHORT = tuple(month[:3].casefold() for month in MONTHS)


def month_of(name: str) -> int:
    """Return the number of a month by its name or abbreviation, ignoring case; raise ValueError if there is none."""
    return _SHORT.index(name.casefold()[:3]) + 1


def in_words(day: str) -> str:
    """Return the day of an ISO date or time in words, such as 5 January 2026."""
    at = date.fromisoformat(day[:10])
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"


def span(year: int, month: int | None = None, day: int | None = None) -> tuple[datetime, datetime] | None:
    """Return the start of a year, month or day, and of the next one, in UTC; None if the date does not exist."""
    try:
        start = datetime(year, 1 if month is None else month, 1 if day is None else day, tzinfo=UTC)
        length = 365 + isleap(year) if month is None else monthrange(year, month)[1]
        return start, start + timedelta(days=length if day is None else 1)
    except (ValueError, OverflowError):
        return None
