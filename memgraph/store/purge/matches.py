"""Where a memory has the words of a purge: a person who sees only the beginning of its text would not know why it is listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memgraph.journal.purge.carrying import CARRIES, STATES_MEMORY
from memgraph.ports import Row
from memgraph.store.purge.records import Record, strings_in
from memgraph.store.purge.selection import Says
from memgraph.text.cutting import preview

HISTORY = "history"


def shows(is_meant: Says, row: Row) -> bool:
    """Return whether the preview of a memory's text shows the words."""
    return is_meant(preview(row.get("content", "")))


def matched_in(records: Iterable[Record], is_meant: Says, rows: Mapping[str, Row]) -> dict[str, list[str]]:
    """Return the fields of memories that contain the words, or `HISTORY` where only an earlier version does. One pass over the journal.

    Parameters
    ----------
    rows : mapping
        The present or last rows of the memories, by id.

    Returns
    -------
    dict
        Memories that contain the words nowhere have an empty list.
    """

    def says(value: object, name: str = "") -> bool:
        return any(map(is_meant, strings_in(value, name)))

    found = {one: sorted(name for name, value in row.items() if says(value, name)) for one, row in rows.items()}
    waiting = {one for one, names in found.items() if not names}
    for record in records if waiting else ():
        if record.type not in STATES_MEMORY:
            continue
        for one in waiting.intersection(CARRIES[record.type](record.content)):
            if says(record.content):
                found[one] = [HISTORY]
    return found
