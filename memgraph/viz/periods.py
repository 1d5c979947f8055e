"""Time buckets in UTC: days, weeks, months, years and decades."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

from memgraph.errors import InvalidInputError
from memgraph.model.timestamps import to_iso
from memgraph.store.past import moment_of

Bucket = Literal["day", "week", "month", "year", "decade"]

DAYS_OF: dict[Bucket, float] = {"day": 1, "week": 7, "month": 30.4375, "year": 365.25, "decade": 3652.5}
"""Average length of each bucket in days."""
BUCKETS = tuple(DAYS_OF)
MOST_BUCKETS = 10_000
"""Maximum number of buckets: more are unreadable, and usually the result of a wrong date."""
_UP_TO_DAYS: dict[Bucket, float] = {"day": 62, "week": 2 * 365, "month": 50 * 365.25, "year": 500 * 365.25}
"""The longest span in days shown with each bucket; longer ones use decades."""
_DATE_CHARS = 10
_FIRST, _LAST = "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"


def bounds(since: str | None, until: str | None) -> tuple[str, str]:
    """Return the first and the last time of a period in memgraph's format.

    A date alone means the start of the day as `since` and its end as `until`, as in `MemGraph.at`.
    """
    first = _FIRST if since is None else _time(since, "since")
    last = _LAST if until is None else moment_of(until, field="until")
    if first > last:
        raise InvalidInputError(f"is after until ({until})", field="since", value=since)
    return first, last


def bucket_between(first: str, last: str) -> Bucket:
    """Return the bucket for a span: days up to two months, weeks to two years, months to fifty, years to 500, otherwise decades."""
    days = (_day(last) - _day(first)).days
    return next((bucket for bucket, most in _UP_TO_DAYS.items() if days <= most), "decade")


def check_span(first: str, last: str, bucket: Bucket) -> None:
    """Refuse a span of more than `MOST_BUCKETS` buckets."""
    days = (_day(last) - _day(first)).days
    if days / DAYS_OF[bucket] > MOST_BUCKETS:
        problem = (
            f"is too fine: there would be more than {MOST_BUCKETS:,} from {first[:_DATE_CHARS]} to {last[:_DATE_CHARS]}; "
            "use a larger bucket, or a shorter span with since and until (--since, --until)"
        )
        raise InvalidInputError(problem, field="bucket", value=bucket)


def checked_bucket(bucket: str | None) -> Bucket | None:
    """Refuse an unknown bucket."""
    if bucket is None:
        return None
    for known in BUCKETS:
        if bucket == known:
            return known
    raise InvalidInputError(f"must be one of {', '.join(BUCKETS)}", field="bucket", value=bucket)


def start_of(at: str, bucket: Bucket) -> str:
    """Return the date on which a time's bucket starts: the Monday of a week, the first day of the others."""
    return _start(at[:_DATE_CHARS], bucket)


def starts(first: str, last: str, bucket: Bucket) -> Iterator[str]:
    """Iterate over the start dates of the buckets from one time to a later one."""
    at, end = start_of(first, bucket), start_of(last, bucket)
    while at <= end:
        yield at
        if (following := after(at, bucket)) <= at:
            return
        at = following


def after(start: str, bucket: Bucket) -> str:
    """Return the start date of the next bucket; at the end of the calendar, the same date."""
    day = date.fromisoformat(start)
    try:
        if bucket == "decade":
            return date(day.year - day.year % 10 + 10, 1, 1).isoformat()
        if bucket == "year":
            return date(day.year + 1, 1, 1).isoformat()
        if bucket == "month":
            return date(day.year + day.month // 12, day.month % 12 + 1, 1).isoformat()
        return (day + timedelta(days=7 if bucket == "week" else 1)).isoformat()
    except (OverflowError, ValueError):
        return start


@lru_cache(maxsize=65_536)
def _start(day: str, bucket: Bucket) -> str:
    if bucket == "day":
        return day
    if bucket == "month":
        return f"{day[:7]}-01"
    if bucket in ("year", "decade"):
        start = f"{day[:4]}-01-01" if bucket == "year" else f"{day[:3]}0-01-01"
        return max(start, _FIRST[:_DATE_CHARS])
    at = date.fromisoformat(day)
    return (at - timedelta(days=min(at.weekday(), at.toordinal() - 1))).isoformat()


def _day(at: str) -> date:
    return date.fromisoformat(at[:_DATE_CHARS])


def _time(given: str, field: str) -> str:
    try:
        return to_iso(given)
    except ValueError:
        problem = "is not a date: give a date such as 2024-06-01, or an ISO 8601 time"
        raise InvalidInputError(problem, field=field, value=given) from None
