"""Days, weeks and months, UTC: which one a time belongs to, and which are between two times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal

from memgraph.errors import InvalidInputError
from memgraph.model.timestamps import to_iso

Bucket = Literal["day", "week", "month"]

BUCKETS: tuple[Bucket, ...] = ("day", "week", "month")
_MOST_DAYS = 62
_MOST_WEEKS = 104
_DATE_CHARS = 10
_FIRST, _LAST = "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"


def bounds(since: str | None, until: str | None) -> tuple[str, str]:
    """Return the first and the last time of a period, as memgraph writes times.

    A date alone means, as `since`, its first moment, and as `until`, its last.

    Raises
    ------
    InvalidInputError
        One of them is no time, or `since` is after `until`.
    """
    first = _FIRST if since is None else _time(since, "since")
    last = _LAST if until is None else _time(until, "until")
    if until is not None and len(until.strip()) == _DATE_CHARS:
        last = f"{last[:_DATE_CHARS]}T23:59:59.999Z"
    if first > last:
        raise InvalidInputError(f"is after until ({until})", field="since", value=since)
    return first, last


def bucket_between(first: str, last: str) -> Bucket:
    """Return what is shown of a span: days up to two months, weeks up to two years, else months."""
    days = (_day(last) - _day(first)).days
    if days <= _MOST_DAYS:
        return "day"
    return "week" if days <= 7 * _MOST_WEEKS else "month"


def checked_bucket(bucket: str | None) -> Bucket | None:
    """Return a bucket that was asked for.

    Raises
    ------
    InvalidInputError
        There is no such bucket.
    """
    if bucket is None:
        return None
    for known in BUCKETS:
        if bucket == known:
            return known
    raise InvalidInputError(f"must be one of {', '.join(BUCKETS)}", field="bucket", value=bucket)


def start_of(at: str, bucket: Bucket) -> str:
    """Return the date on which the bucket of a time begins: a week on its Monday, a month on its first day."""
    return _start(at[:_DATE_CHARS], bucket)


def starts(first: str, last: str, bucket: Bucket) -> Iterator[str]:
    """Iterate over the buckets from that of one time to that of a later one, as the dates on which they begin."""
    at, end = start_of(first, bucket), start_of(last, bucket)
    while at <= end:
        yield at
        if (following := after(at, bucket)) <= at:
            return
        at = following


def after(start: str, bucket: Bucket) -> str:
    """Return the date on which the bucket after this one begins; at the end of the calendar the same one."""
    day = date.fromisoformat(start)
    try:
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
    at = date.fromisoformat(day)
    return (at - timedelta(days=min(at.weekday(), at.toordinal() - 1))).isoformat()


def _day(at: str) -> date:
    return date.fromisoformat(at[:_DATE_CHARS])


def _time(given: str, field: str) -> str:
    try:
        return to_iso(given)
    except ValueError:
        raise InvalidInputError("is not an ISO 8601 time or date", field=field, value=given) from None
