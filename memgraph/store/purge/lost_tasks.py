"""Tasks that a purge removes: those whose registration is among the events that it removes."""

from __future__ import annotations

from collections.abc import Iterable

from memgraph.fold.tasks import OPENINGS
from memgraph.model.events.registry import PAYLOADS
from memgraph.model.events.tasks import TaskCreated, TaskPayload, TitleSet
from memgraph.model.results.maintenance import LostTask
from memgraph.store.purge.records import Record

_OF_TASK = frozenset(name for (name, _), kind in PAYLOADS.items() if issubclass(kind, TaskPayload))
"""Types that state something of a task. A pin is of its memory, which stays."""


def lost_tasks(records: Iterable[Record], seqs: set[int]) -> tuple[list[LostTask], set[int]]:
    """Return the tasks whose every registration is among these events, and all events that state something of them.

    Without its registration a task is not known, so nobody could see what the journal still said of it.
    """
    titles: dict[str, str] = {}
    registered: dict[str, bool] = {}
    events: dict[str, set[int]] = {}
    items: dict[str, int] = {}
    for record in records:
        if record.task_id is None or record.type not in _OF_TASK:
            continue
        events.setdefault(record.task_id, set()).add(record.seq)
        if record.type in (TaskCreated.TYPE, TitleSet.TYPE):
            titles[record.task_id] = record.content["title"]
        if record.type == TaskCreated.TYPE:
            registered[record.task_id] = registered.get(record.task_id, False) or record.seq not in seqs
        items[record.task_id] = items.get(record.task_id, 0) + (record.type in OPENINGS)
    gone = [task_id for task_id, is_left in registered.items() if not is_left]
    found = [LostTask(id=one, title=titles[one], items=items[one]) for one in gone]
    return found, set().union(*(events[one] for one in gone))
