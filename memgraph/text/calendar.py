"""Months by name, and the days that a date in words means."""

from __future__ import annotations

from calendar import isleap, monthrange
from datetime import UTC, date, datetime, timedelta

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_SHORT = tuple(month[:3].casefold() for month in MONTHS)


def month_of(name: str) -> int:
    """Return the number of a month by its name or a short form of it, in whatever case; ValueError: there is none."""
    return _SHORT.index(name.casefold()[:3]) + 1


def in_words(day: str) -> str:
    """Return the day of an ISO date or time as 5 January 2026."""
    at = date.fromisoformat(day[:10])
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"


def span(year: int, month: int | None = None, day: int | None = None) -> tuple[datetime, datetime] | None:
    """Return when a year, month or day begins and when the next one does, UTC; None if there is no such day."""
    try:
        start = datetime(year, 1 if month is None else month, 1 if day is None else day, tzinfo=UTC)
        length = 365 + isleap(year) if month is None else monthrange(year, month)[1]
        return start, start + timedelta(days=length if day is None else 1)
    except (ValueError, OverflowError):
        return None
