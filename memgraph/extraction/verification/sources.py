"""Sources: where the passages that are given as evidence stand in a text, and what stands around them. Pure."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from typing import NamedTuple

from memgraph.extraction.verification.clauses import Clause, parts_of, prepared, sentences_of
from memgraph.model.ids import canonical_name
from memgraph.text import lazy_re as re

_WORD = re.compile(r"\S+")
_FRAME = re.compile(r"^\[\d{1,4}\]$", re.MULTILINE)
"""The numbers of the records of an excerpt."""
_FIELD = re.compile(
    r"^(?:date|user_did|context|outcome|agent|task|command|reasoning|output|lesson|files):(?=\s)", re.MULTILINE
)
"""The names of the fields of a record: each begins a sentence."""
_TURN_OF_USER = re.compile(r"^\W{0,3}(?:the )?user\w*[ \t]*:", re.IGNORECASE | re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_CUT_BEFORE = re.compile(r"[^\W\d_]['-]$|\d[.,:'-]$|[-+.]$")
_CUT_AFTER = re.compile(r"['-]\w|[.,:]\d|%")
_MOST_PLACES = 8
"""So many places of a passage in its source are considered."""


class Place(NamedTuple):
    """A place of a passage: its clauses, the whole sentences that it stands in, its record, and whether the user has a turn there."""

    clauses: list[Clause]
    sentences: tuple[str, ...]
    record: str
    by_user: bool


class Source:
    """A text, its clauses and records, and its comparable form with the place of each word in both.

    A record is a numbered part of an excerpt; a text without numbers has its paragraphs as records.
    """

    def __init__(self, text: str) -> None:
        text = prepared(text)
        self.text = _FRAME.sub(lambda frame: " " * len(frame[0]), text)
        self._said = without_fields(self.text)
        limits = _FRAME if _FRAME.search(text) else _PARAGRAPH
        self._records = [0, *(found.end() for found in limits.finditer(text)), len(text)]
        self._parts = parts_of(self._said)
        self._starts = [part.start for part in self._parts]
        self._words: list[tuple[int, int, bool]] = []  # start, end, and whether the comparable form is as long
        self._places: list[int] = []
        forms: list[str] = []
        place = 0
        for word in _WORD.finditer(text):
            if form := canonical_name(word[0]):
                self._words.append((word.start(), word.end(), len(form) == len(word[0])))
                self._places.append(place)
                forms.append(form)
                place += len(form) + 1
        self._whole = " ".join(forms)

    def places(self, wanted: str) -> list[Place]:
        """Return the places of a passage in comparable form."""
        found: list[Place] = []
        ranges: set[tuple[int, int]] = set()
        place = self._whole.find(wanted) if wanted else -1
        while place >= 0 and len(found) < _MOST_PLACES:
            end = place + len(wanted)
            if not self._is_cut(place) and not self._is_cut(end):
                start, stop = self._offset(place, is_end=False), self._offset(end - 1, is_end=True)
                first, last = (max(bisect_right(self._starts, at) - 1, 0) for at in (start, stop - 1))
                if (first, last) not in ranges:
                    ranges.add((first, last))
                    clauses = [part.within(self._said, start, stop) for part in self._parts[first : last + 1]]
                    sentences = sentences_of(self._said, self._parts, first, last)
                    first, last = self._record(start, stop)
                    by_user = _TURN_OF_USER.search(self.text, first, last) is not None
                    found.append(Place(clauses, tuple(sentences), self._said[first:last], by_user))
            place = self._whole.find(wanted, place + 1)
        return found

    def _record(self, start: int, stop: int) -> tuple[int, int]:
        """Return where the record of a passage begins and ends."""
        first = self._records[bisect_right(self._records, start) - 1]
        last = bisect_right(self._records, stop - 1)
        return first, self._records[min(last, len(self._records) - 1)]

    def _is_cut(self, place: int) -> bool:
        """Return whether this place is inside of a word or a number."""
        before, after = self._whole[max(place - 2, 0) : place], self._whole[place : place + 2]
        if not before or not after:
            return False
        if _is_of_word(before[-1]) and _is_of_word(after[0]):
            return True
        if _is_of_word(after[0]) and (cut := _CUT_BEFORE.search(before)) is not None:
            return len(cut[0]) == 2 or after[0].isdecimal()
        return (
            _is_of_word(before[-1])
            and (cut := _CUT_AFTER.match(after)) is not None
            and (cut[0][0] in "'-" or before[-1].isdecimal())
        )

    def _offset(self, place: int, *, is_end: bool) -> int:
        """Return where a character of the comparable form stands in the text, or where it ends."""
        number = bisect_right(self._places, place) - 1
        start, end, is_as_long = self._words[number]
        if is_as_long:
            return start + place - self._places[number] + is_end
        return end if is_end else start


def without_fields(text: str) -> str:
    """Return a text of the same length in which the names of fields only end a sentence."""
    return _FIELD.sub(lambda field: "." + " " * (len(field[0]) - 1), text)


def _is_of_word(char: str) -> bool:
    """Return whether a character is part of a word that can be cut; scripts without spaces have none."""
    return (char.isalnum() or char == "_") and unicodedata.east_asian_width(char) not in "WF"
