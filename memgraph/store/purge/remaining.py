"""What a purge cannot remove: names in the heads of events, which are signed, and in events that the journal itself needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from memgraph.journal.envelope import Line
from memgraph.model.events.registry import NEVER_PURGED
from memgraph.model.results.maintenance import RemainingName
from memgraph.store.purge.records import strings_in

_HEAD = {"task_id": "id of a task", "key_id": "id of a key"}
_NO_WORD = re.compile(r"[\W_]+")


def remaining_names(lines: Iterable[Line], is_said: Callable[[str], bool]) -> list[RemainingName]:
    """Return the names that stay in the journal although they contain the words, in the order of their first events.

    Parameters
    ----------
    lines : iterable of Line
        All lines, purged ones included: their heads are left.
    is_said : callable
        Returns whether a text contains the words.
    """
    known: dict[str, bool] = {}
    found: dict[tuple[str, str], list[int]] = {}
    for line in lines:
        for what, name in _names(orjson.loads(line.head), orjson.loads(line.payload or b"{}")):
            if name not in known:
                known[name] = is_said(name) or is_said(_NO_WORD.sub(" ", name))
            if known[name]:
                found.setdefault((what, name), []).append(line.seq)
    return [
        RemainingName(what=what, name=name, event=seqs[0], events=len(seqs)) for (what, name), seqs in found.items()
    ]


def without_names(found: Iterable[RemainingName]) -> list[RemainingName]:
    """Return the places alone, for what is kept in the store's directory."""
    return [one.model_copy(update={"name": None}) for one in found]


def phrase_of(found: Iterable[RemainingName]) -> str:
    """Return what remains as a phrase."""
    return "; ".join(
        f"the {one.what} {one.name!r} in {one.events:,} {'event' if one.events == 1 else 'events'}, first event {one.event}"
        for one in found
    )


def _names(head: Mapping[str, Any], content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each name once that an event has in its head, or in a payload that is never removed, and what it is."""
    for field, what in _HEAD.items():
        if head[field]:
            yield what, head[field]
    if head["type"] in NEVER_PURGED:
        for text in dict.fromkeys(strings_in(content)):
            yield f"event {head['type']}", text
