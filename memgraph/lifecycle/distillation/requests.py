"""Making work orders: the most valuable subjects that were not asked about before, within the budget of the day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from math import ceil

from memgraph.fold.records import WORK_ORDER
from memgraph.journal.envelope import Event
from memgraph.lifecycle.distillation.subjects import (
    QUESTIONS,
    Subject,
    communities_without_lesson,
    counted_places,
    returned_failures,
    undecided_contradictions,
)
from memgraph.lifecycle.evidence.experience import WATCH, Experience, changed_scopes, read_experience
from memgraph.lifecycle.run.changes import changes_after, last_run
from memgraph.lifecycle.run.reporting import report_orders
from memgraph.lifecycle.run.runner import Commit, Plan, View, carry_out
from memgraph.model.events.records import DistilRequested, phase_key
from memgraph.model.results.learning import OrdersResult, WorkOrder
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore

PHASE = "work-orders"
"""Name of the phase of sleep that makes them."""

_SHARE_OF_SESSIONS = 0.5
_SHARE_OF_WAITING = 0.25
"""What waits for another day takes at most so much of its budget: the rest of the sessions' share is left to those of that day."""
FIRST_PARTS = 4
"""Orders of one session that are made on one day, if others wait for the budget."""
_DAYS_AHEAD = 14
_MOST_COMPARED = 2_000
"""Of more changed memories only the latest are compared with others."""


def request_orders(store: AgentMemoryStore) -> OrdersResult:
    """Make work orders for what the store leaves undecided.

    That is failures that returned, contradictions, communities without a lesson, and the fixes of files that draw many.
    Only scopes that have changed since the phase's last run are searched, or all if the budget was used up on its day.
    """
    return report_orders(store, carry_out(store, _planned, rests_on=_matters).result)


def request_sessions(store: AgentMemoryStore, subjects: Sequence[Subject]) -> OrdersResult:
    """Make work orders for sessions, of at most half the budget of the day: the rest is left to what sleep finds.

    What is too much for today is due on one of the next 14 days.
    """
    if not subjects:
        return OrdersResult()
    plan = partial(_planned_sessions, subjects=subjects)
    return report_orders(store, carry_out(store, plan, rests_on=_matters).result)


def _matters(event: Event) -> bool:
    """Return whether an event may change which orders are made."""
    return isinstance(event.payload, DistilRequested) or bool(WATCH.touched(event))


def _planned(view: View) -> Plan[OrdersResult]:
    known = view.reader.every_record(WORK_ORDER)
    if not (left := _budget_left(view, known)):
        return Plan(OrdersResult())
    with view.reader.frozen():
        experiences, has_lessons = _changed_experience(view)
        doubted = list(undecided_contradictions(view.reader, _changed_memories(view)))
        counted = list(counted_places(view.reader))
    subjects = [*returned_failures(view.reader, experiences), *doubted, *counted]
    if has_lessons:
        subjects += communities_without_lesson(experiences)
    ranked = _ranked(subjects, known)
    return _plan([(one, view.now) for one in ranked[:left]], candidates=len(ranked))


def _planned_sessions(view: View, subjects: Sequence[Subject]) -> Plan[OrdersResult]:
    known = view.reader.every_record(WORK_ORDER)
    ranked = _ranked(subjects, known)
    made = Counter(row.get("build_id") for row in known if row["requested_at"][:10] == view.now[:10])
    today: list[Subject] = []
    waiting: list[Subject] = []
    left = _budget_left(view, known, _SHARE_OF_SESSIONS)
    for one in ranked:
        is_due = len(today) < left and made[one.build_id] < FIRST_PARTS
        (today if is_due else waiting).append(one)
        made[one.build_id] += is_due
    days = [
        to_iso((from_iso(view.now) + timedelta(days=ahead)).date().isoformat()) for ahead in range(1, _DAYS_AHEAD + 1)
    ]
    places = [day for day in days for _ in range(_budget_left(view, known, _SHARE_OF_WAITING, day))]
    due = [*((one, view.now) for one in today), *zip(waiting, places, strict=False)]
    return _plan(due, candidates=len(ranked))


def _ranked(subjects: Iterable[Subject], known: Sequence[Row]) -> list[Subject]:
    new = {one.id: one for one in subjects if not _is_known(one, known)}
    return sorted(new.values(), key=lambda one: (-one.value, one.id))


def _plan(due: Sequence[tuple[Subject, str]], *, candidates: int) -> Plan[OrdersResult]:
    events = [_event(one, at) for one, at in due]
    commits = [Commit(events, is_account=True)] if events else []
    return Plan(OrdersResult(candidates=candidates, requested=len(events)), commits)


def _changed_memories(view: View) -> list[str]:
    """Return the latest memories that changed since the phase's last run."""
    changes = next(changes_after(view.reader, _last(view).get("seq", 0), WATCH.touched))
    return list(changes.touched)[-_MOST_COMPARED:]


def _changed_experience(view: View) -> tuple[list[Experience], bool]:
    """Return the episodes of the scopes to search, and whether compression has seen all of them."""
    reader = view.reader
    scopes = changed_scopes(reader, view.now, _last(view))
    return read_experience(reader, scopes, view.now), scopes.isdisjoint(changed_scopes(reader, view.now))


def _last(view: View) -> Row:
    """Return the last run of the phase; empty if it used up the budget of its day: then all is searched again."""
    run = last_run(view.reader, phase_key(PHASE))
    known = view.reader.every_record(WORK_ORDER)
    is_spent = run and _orders_of_day(known, run["applied_at"]) >= view.config.distil_orders_a_day
    return {} if is_spent else run


def _budget_left(view: View, known: Sequence[Row], share: float = 1.0, day: str = "") -> int:
    return max(0, ceil(view.config.distil_orders_a_day * share) - _orders_of_day(known, day or view.now))


def _orders_of_day(known: Iterable[Row], moment: str) -> int:
    return sum(row["requested_at"][:10] == moment[:10] for row in known)


def _is_known(subject: Subject, known: Iterable[Row]) -> bool:
    """Return whether it, or most of what it is about, was asked about before: then a new answer would change little."""
    ids = set(subject.subject_ids)
    return any(
        row["id"] == subject.id
        or (row["kind"] == subject.kind and 2 * len(ids.intersection(row.get("subject_ids", ()))) > len(ids))
        for row in known
    )


def order_for(subject: Subject) -> WorkOrder:
    """Return a subject as the work order that it would become."""
    return WorkOrder.parse(_event(subject, subject.source_at).model_dump())


def _event(subject: Subject, now: str) -> DistilRequested:
    return DistilRequested(
        id=subject.id,
        kind=subject.kind,
        question=QUESTIONS[subject.kind],
        excerpt=subject.excerpt,
        project_id=subject.project_id,
        task_id=subject.task_id,
        build_id=subject.build_id,
        subject_ids=subject.subject_ids,
        source_event_ids=subject.source_event_ids,
        trust_class=subject.trust_class,
        value=subject.value,
        source_at=subject.source_at,
        requested_at=now,
    )
