"""Sleep: process experience in the background, phase by phase (seeds 1, 2, 3; design §4, §5).

The order matters. Invalid facts are retired first, so that nothing is derived from them; then copies and
near-duplicates are merged, so that they count once; then generalisations are made; repeated comments of
users become rules; generalisations are extended by the errors met; then procedures; then
contradictions are searched among all memories that exist by then; collection comes after the uses made of memories in
this run. Work orders come last, for what all of this left undecided.

Each phase consists of small, consistent commits, and records the run's progress at its end. A run interrupted by its
time limit, Ctrl-C or a kill is continued by the next one within a day, with the same final result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.journal.journal import ReplacedJournalError
from memgraph.lifecycle.collect import collect
from memgraph.lifecycle.contradictions.resolution import validate_facts
from memgraph.lifecycle.contradictions.search import find_contradictions
from memgraph.lifecycle.counting.kept import PHASE as COUNTING
from memgraph.lifecycle.counting.kept import count_records
from memgraph.lifecycle.dedup.near_duplicates import merge_copies, merge_near_duplicates
from memgraph.lifecycle.errors import analyse_errors
from memgraph.lifecycle.feedback import learn_from_feedback
from memgraph.lifecycle.lessons import compress
from memgraph.lifecycle.orders import FIRST, request_orders
from memgraph.lifecycle.orders import PHASE as WORK_ORDERS
from memgraph.lifecycle.procedures import learn_procedures
from memgraph.lifecycle.run import Plan, RunUsage, carry_out, counts_of, last_run, note, report_budget, reported
from memgraph.logs import logger_of
from memgraph.model.base import Model, Name, Seconds, checked
from memgraph.model.events.records import SLEEP, SleepAdvanced, SleepFailed
from memgraph.model.memory import MEMORY_TYPES
from memgraph.model.results.learning import PhaseReport, SleepReport
from memgraph.model.timestamps import days_between
from memgraph.ports import Judge, LanguageModel, Progress
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import shortened

logger = logger_of(__name__)

EPISODES_BETWEEN = 5
"""Number of new episodes that triggers an automatic sleep (seed 2)."""
AUTO_SECONDS = 3.0
"""Seconds after which an automatic sleep begins nothing new: the caller of the preceding write is waiting."""
_GONE_ON_WITH_DAYS = 1.0
_SHOWN_IDS = 100
_MOST_OF_ERROR = 300


class _TimeIsUpError(Exception):
    """Leaves a phase between two of its commits; never propagates out of `sleep`."""


@dataclass(frozen=True, slots=True)
class SleepContext:
    """What a phase is given; `on_portion` records how far one that works in portions has come, so that it is continued from there."""

    store: AgentMemoryStore
    until: float | None
    on_portion: Callable[[int], None] = lambda _seq: None
    judge: Judge | None = None

    def is_time_up(self) -> bool:
        """Return whether the time is up."""
        return self.until is not None and time.monotonic() >= self.until


class Phase(NamedTuple):
    """A phase: its name and its function, whose result says in a field `complete`, if it has one, whether it is done.

    It looks at nothing that the runs with the keys in `follows` have not seen.
    """

    name: str
    run: Callable[[SleepContext], Model]
    follows: Sequence[str] = ()


def _collect(context: SleepContext) -> Model:
    def between_batches(_done: int, _total: int | None) -> None:
        if context.is_time_up():
            raise _TimeIsUpError

    return collect(context.store, progress=between_batches)


def _find_contradictions(context: SleepContext) -> Model:
    left = None if context.until is None else max(0.0, context.until - time.monotonic())
    return find_contradictions(context.store, seconds=left, judge=context.judge)


PHASES: tuple[Phase, ...] = (
    Phase("temporal", lambda one: validate_facts(one.store, is_time_up=one.is_time_up)),
    Phase("copies", lambda one: merge_copies(one.store, is_time_up=one.is_time_up, on_portion=one.on_portion)),
    Phase(
        "near-duplicates",
        lambda one: merge_near_duplicates(one.store, is_time_up=one.is_time_up, on_portion=one.on_portion),
    ),
    Phase("compress", lambda one: compress(one.store, one.store.embedder)),
    Phase(COUNTING, lambda one: count_records(one.store, is_time_up=one.is_time_up)),
    Phase("feedback", lambda one: learn_from_feedback(one.store, is_time_up=one.is_time_up)),
    Phase("errors", lambda one: analyse_errors(one.store, is_time_up=one.is_time_up)),
    Phase("procedures", lambda one: learn_procedures(one.store, is_time_up=one.is_time_up)),
    Phase("contradictions", _find_contradictions),
    Phase("collect", _collect),
    Phase(WORK_ORDERS, lambda one: request_orders(one.store), follows=FIRST),
)


def sleep(
    store: AgentMemoryStore,
    *,
    phases: Sequence[str] = (),
    max_seconds: float | None = None,
    model: LanguageModel | None = None,
    judge: Judge | None = None,
    progress: Progress | None = None,
) -> SleepReport:
    """Run these phases, or continue a run that was interrupted within the last day, else begin one.

    Nothing new begins after `max_seconds`: the current step completes its commit, a compression all of its commits. The report counts
    the usage of the `model` that judges.
    """
    known = [phase.name for phase in PHASES]
    for name in (names := checked(list[Name], phases, "phases")):
        if name not in known:
            raise InvalidInputError(f"must be one of {', '.join(known)}", field="phases", value=name)
    chosen = [phase for phase in PHASES if phase.name in names]
    max_seconds = checked(Seconds | None, max_seconds, "max_seconds")
    with reported(store, "sleep") as notes:
        began = time.monotonic()
        carry_out(store, lambda _view: Plan(None), attempts=1)  # fail at once if the store is not writable
        store.complete_begun()
        store.check_graph()
        context = SleepContext(store, None if max_seconds is None else began + max_seconds, judge=judge)
        usage = RunUsage(lambda: (store.embedder, model))
        usage.restart()
        last, started_at = last_run(store.reader, SLEEP), store.now()
        left = [phase.name for phase in PHASES if phase.name in last.get("phases_left", ())]
        if left and days_between(last["started_at"], started_at) > _GONE_ON_WITH_DAYS:
            left = []
        elif left:
            started_at = last["started_at"]
        notes.resumed = bool(left) and not chosen
        todo = chosen or [phase for phase in PHASES if not left or phase.name in left]
        reports: list[PhaseReport] = []
        for number, phase in enumerate(todo):
            if progress:
                progress(number, len(todo))
            notes.phase, notes.left = phase.name, [other.name for other in todo[number:]]
            if context.is_time_up():
                break
            after = left if chosen else [other.name for other in todo[number + 1 :]]
            reports.append(_advance(context, phase, started_at, after, is_of_run=not chosen))
            notes.counts |= {f"{phase.name}.{name}": number for name, number in reports[-1].counts.items()}
            notes.changed += reports[-1].changed
            if not reports[-1].complete:
                break
            notes.phases.append(phase.name)
        notes.left = [phase.name for phase in todo[sum(report.complete for report in reports) :]]
        report = SleepReport(
            started_at=started_at,
            resumed=notes.resumed,
            phases=reports,
            left=notes.left,
            changed=sum(report.changed for report in reports),
            complete=not notes.left,
            seconds=round(time.monotonic() - began, 3),
            usage=usage.total(),
        )
    report_budget(store, report.usage)
    return report


def sleep_if_due(store: AgentMemoryStore, *, at_once: bool = False) -> SleepReport | None:
    """Sleep for a few seconds if ``sleep_trigger`` asks for it and it is due, or at once; None if not.

    A failure is only logged, since the preceding write has succeeded.
    """
    if store.config.sleep_trigger != "auto":
        return None
    try:
        if at_once or episodes_since(store) >= EPISODES_BETWEEN:
            return sleep(store, max_seconds=AUTO_SECONDS)
    except MemGraphError as error:
        logger.warning("automatic sleep failed: %s; run `memgraph sleep` to try again", error)
    return None


def episodes_since(store: AgentMemoryStore) -> int:
    """Return how many episodes were recorded since the store's last sleep."""
    with store.reader.frozen():
        index = store.reader.index
        slept = last_run(store.reader, SLEEP).get("seq", 0)
        is_episode = index.column("type") == MEMORY_TYPES.index("episodic")
        return int((index.memories() & is_episode & (index.column("seq") > slept)).sum())


def _advance(context: SleepContext, phase: Phase, started_at: str, after: list[str], *, is_of_run: bool) -> PhaseReport:
    """Run one phase, and record the run's progress."""
    store, began = context.store, time.monotonic()
    through_seq = store.reader.index.offset.seq
    again = [phase.name, *after] if is_of_run else after

    def advance(seq: int, *, left: list[str] = again, changed: int = 0, complete: bool = True) -> None:
        progress = {"phase": phase.name, "complete": complete, "through_seq": seq, "changed": changed, "left": left}
        note(store, lambda view: SleepAdvanced(started_at=started_at, advanced_at=view.now, **progress))

    result: Model | None = None
    try:
        try:
            result = phase.run(replace(context, on_portion=advance))
        except ReplacedJournalError:  # by a resealing: what the phase holds is of the journal before
            result = phase.run(replace(context, on_portion=advance))
        is_complete = bool(getattr(result, "complete", True))
    except _TimeIsUpError:
        is_complete = False
    except MemGraphError as error:
        said = shortened(error.loggable, _MOST_OF_ERROR)
        with suppress(MemGraphError):  # recorded if the store can be written
            note(
                store, lambda view: SleepFailed(started_at=started_at, phase=phase.name, error=said, failed_at=view.now)
            )
        raise
    written = (one for one in store.reader.events_after(through_seq) if one.actor == "system" != one.write_scope)
    changed = list(dict.fromkeys(memory_id for event in written for memory_id in event.payload.memory_ids()))
    looked = min([through_seq, *(last_run(store.reader, key).get("seq", 0) for key in phase.follows)])
    advance(looked, left=after if is_complete else again, changed=len(changed), complete=is_complete)
    return PhaseReport(
        name=phase.name,
        counts=counts_of(result) if result is not None else {},
        changed=len(changed),
        memory_ids=changed[:_SHOWN_IDS],
        seconds=round(time.monotonic() - began, 3),
        complete=is_complete,
    )
