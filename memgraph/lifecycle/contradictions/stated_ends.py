"""Stated ends of validity: “until 2026-03-31”, “expires on 31 March 2026”, “through the end of 2026”.

Precision comes before recall: a fact that is retired too early is lost to recall. So every sentence must state an end;
the end must be an unambiguous day, month or year (03/04/2026 is not); and it must lie after the fact was recorded: an
end before that is history and stays true. Past states (“was down until”) and beginnings (“not available until”) state
no end.
"""

from __future__ import annotations

from collections.abc import Iterator

from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re
from memgraph.text.calendar import MONTHS, month_of, span
from memgraph.text.sentences import split_sentences

_MONTH = "|".join([*MONTHS, "Sept", *(month[:3] for month in MONTHS)])
_DATE = (
    r"(?:the\s+)?(?:end\s+of\s+)?(?:"
    r"(?P<iso_year>\d{4})-(?P<iso_month>\d\d)-(?P<iso_day>\d\d)"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})\.?,?\s+(?P<year>\d{{4}})"
    rf"|(?P<month_first>{_MONTH})\.?\s+(?P<day_second>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year_last>\d{{4}})"
    rf"|(?P<month_alone>{_MONTH})\.?\s+(?P<year_of_month>\d{{4}})"
    r"|(?P<dotted_day>\d{1,2})\.(?P<dotted_month>\d{1,2})\.(?P<dotted_year>\d{4})"
    r"|(?P<year_alone>\d{4})(?=\s*(?:[.,;:!?)]|$))"
    r")(?![\w/.-]*\d)"
)
_FORMS = (
    ("iso_year", "iso_month", "iso_day"),
    ("year", "month", "day"),
    ("year_last", "month_first", "day_second"),
    ("year_of_month", "month_alone", None),
    ("dotted_year", "dotted_month", "dotted_day"),
    ("year_alone", None, None),
)
"""The groups that hold year, month and day."""
_END = re.compile(
    r"\b(?:until|till|up\s+to|through|no\s+later\s+than|valid\s+(?:to|thru)|(?:expires?|ends?)(?:\s+(?:on|in|with\s+the\s+end\s+of))?)\s+"
    + _DATE,
    re.IGNORECASE,
)
_SIGN = re.compile(r"\b(?:until|till|up\s+to|through|later\s+than|valid\s+(?:to|thru)|expires?|ends?)\b", re.IGNORECASE)
_PAST = re.compile(r"\b(?:was|were|had|did|been|used to)\b|\bsince\b", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|never|no(?!\s+later)|cannot|nor|neither|without)\b|n['’]t\b", re.IGNORECASE)


def stated_end(text: str, recorded_at: str) -> str | None:
    """Return the first moment at which a text no longer holds by its own words, or None if it states no end.

    The named day, month or year is the last one in which it holds, in UTC; of several the latest counts.

    Parameters
    ----------
    recorded_at : str
        When the text was recorded: canonical time.
    """
    if not _SIGN.search(text):
        return None
    ends = []
    for sentence in filter(None, (part.strip() for part in split_sentences(text, "end"))):
        found = [end for end in _ends(sentence) if end > recorded_at]
        if not found:
            return None
        ends.append(max(found))
    return max(ends, default=None)


def _ends(sentence: str) -> Iterator[str]:
    for match in _END.finditer(sentence):
        before = sentence[: match.start()]
        if _PAST.search(before) or _NOT.search(before):
            continue
        if (end := _after(match)) is not None:
            yield end


def _after(match: re.Match[str]) -> str | None:
    """Return the moment after the named day, month or year; None if there is no such date."""
    named = match.groupdict()
    year, month, day = next(
        (named[one], named[two] if two else None, named[three] if three else None)
        for one, two, three in _FORMS
        if named[one]
    )
    found = span(int(year), _month(month) if month else None, int(day) if day else None)
    return to_iso(found[1]) if found else None


def _month(named: str) -> int:
    return int(named) if named.isdecimal() else month_of(named)
