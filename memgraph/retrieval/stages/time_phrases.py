"""Time phrases: the times named in a query, as spans of days."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from memgraph.text.calendar import MONTHS, month_of, span

_MONTH = "|".join([*MONTHS, *(f"{month[:3]}\\.?" for month in MONTHS if month != "May")])
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_NAMED = re.compile(
    rf"\b(?:(?P<before>in|of|during|since|until|till|by|before|after|last|this|early|late|mid)\s+)?(?:{_DAY}\s+(?:of\s+)?)?(?P<month>{_MONTH})(?:\s+(?P<day_after>[0-3]?\d)(?:st|nd|rd|th)?\b(?!:))?(?:,?\s+(?:of\s+)?{_YEAR})?\b",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?\b")
_YEAR_ALONE = re.compile(rf"\b(?:in|during|of|since|year)\s+{_YEAR}\b(?![-.]\d)", re.IGNORECASE)
_AGO = re.compile(
    r"\b(?P<count>\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten)\s+(?P<unit>day|week|month|year)s?\s+ago\b",
    re.IGNORECASE,
)
_LAST = re.compile(r"\b(?P<which>this|last|past|previous)\s+(?P<unit>week|month|year)\b", re.IGNORECASE)
_DAYS = {"today": 0, "tonight": 0, "yesterday": 1}
_DAY_WORD = re.compile(rf"\b({'|'.join(_DAYS)})\b", re.IGNORECASE)
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LENGTH_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_MOST_SPANS = 8
_MOST_CHARS = 8_000


class Span(NamedTuple):
    """From the start of one day to the end of another, in days since 1970-01-01 (UTC)."""

    start_days: float
    end_days: float


def spans_in(text: str, now_days: float) -> list[Span]:
    """Return the times named in a text, at most eight: dates, months, years, "yesterday", "last week", "two months ago".

    A month without a year is the latest one of that name that has begun; without a day as well, it must be written out
    and follow a word such as "in", since June may be a person and may a verb. Invalid dates ("31 February") are
    ignored. Linear in the text.
    """
    text = text[:_MOST_CHARS]
    now = datetime.fromtimestamp(now_days * 86_400, UTC)
    found = [_named(match, now) for match in _NAMED.finditer(text)]
    found += [
        _span(int(match["year"]), _number(match["month"]), _number(match["day"])) for match in _ISO.finditer(text)
    ]
    found += [_span(int(match["year"]), None, None) for match in _YEAR_ALONE.finditer(text)]
    today = datetime(now.year, now.month, now.day, tzinfo=UTC)
    found += [_around(today - timedelta(days=_DAYS[match[1].lower()]), 1) for match in _DAY_WORD.finditer(text)]
    for match in _AGO.finditer(text):
        length = _LENGTH_DAYS[match["unit"].lower()]
        middle = int(now_days) - _count(match["count"].lower()) * length
        found.append(Span(float(middle - length // 2), float(middle + length // 2 + 1)))
    for match in _LAST.finditer(text):
        found.append(_period(match["which"].lower(), match["unit"].lower(), today))
    return list(dict.fromkeys(span for span in found if span is not None))[:_MOST_SPANS]


def _named(match: re.Match[str], now: datetime) -> Span | None:
    """Return the span of a named month; without a day it must be written out and follow a word such as "in"."""
    day, year = _number(match["day"] or match["day_after"]), _number(match["year"])
    name = match["month"].lower().rstrip(".")
    month = month_of(name)
    if year is None and (match["month"][0].islower() if day else not (match["before"] and name.capitalize() in MONTHS)):
        return None
    if year is None:
        year = now.year if month <= now.month else now.year - 1
    return _span(year, month, day)


def _span(year: int, month: int | None, day: int | None) -> Span | None:
    found = span(year, month, day)
    return Span(*(at.timestamp() / 86_400 for at in found)) if found else None


def _period(which: str, unit: str, today: datetime) -> Span | None:
    if unit == "week":
        start, length = today - timedelta(days=today.weekday()), 7
        return _around(start if which == "this" else start - timedelta(days=7), length)
    if unit == "month":
        before = today.replace(day=1) - timedelta(days=1)
        return _span(today.year, today.month, None) if which == "this" else _span(before.year, before.month, None)
    return _span(today.year if which == "this" else today.year - 1, None, None)


def _around(start: datetime, length: int) -> Span:
    days = start.timestamp() / 86_400
    return Span(days, days + length)


def _number(text: str | None) -> int | None:
    return int(text or 0) or None


def _count(word: str) -> int:
    return int(word) if word.isdigit() else 1 if word in {"a", "an"} else _NUMBERS.index(word) + 1
