"""Chooses and labels the ticks of a time axis."""

from __future__ import annotations

from datetime import date, timedelta

_SHOWN_BY_DAY = 100
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 6000, 12_000, 36_000)


def ticks_between(first: date, last: date, most: int) -> tuple[list[date], list[str], str]:
    """Return tick dates between two dates, their labels, and the year if the labels omit it.

    Parameters
    ----------
    most : int
        Maximum number of ticks, plus one.
    """
    span = (last - first).days
    if span <= _SHOWN_BY_DAY:
        step = next(step for step in (1, 2, 7, 14, 28) if span < step * most)
        ticks = [first + timedelta(days=number) for number in range(0, span + 1, step)]
        years = f"{first.year}" if first.year == last.year else f"{first.year} and {last.year}"
        return ticks, [f"{day:%b} {day.day}" for day in ticks], f" of {years}"
    months = range(12 * first.year + first.month - (first.day == 1), 12 * last.year + last.month)
    step = next(step for step in _MONTHS if len(months) <= step * most)
    ticks = [date(month // 12, month % 12 + 1, 1) for month in months if month % step == 0]
    return ticks, [f"{day:%Y}" if step % 12 == 0 else f"{day:%b %Y}" for day in ticks], " "
