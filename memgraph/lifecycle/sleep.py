"""Sleep: what is done with experience when nobody waits for it, phase by phase (seeds 1, 2, 3; design §4, §5).

The order has reasons. What is no longer true goes first, so that nothing is made of it; then what says the same becomes one, so
that it counts as one; then generalisations, which the errors met tell what to avoid; then procedures; then contradictions, between
all that there is by then; collection comes last, for what others made use of in this run.

Each phase is made of small commits that each leave a true account, and says at its end how far the run has come. A run that was
stopped, by the clock, by Ctrl-C or by a kill, is gone on with where it stopped, at least within a day; it ends as if it had not been stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.lifecycle.collection.collect import collect
from memgraph.lifecycle.contradictions.search import find_contradictions
from memgraph.lifecycle.contradictions.temporal import validate_facts
from memgraph.lifecycle.dedup.near_duplicates import merge_near_duplicates
from memgraph.lifecycle.errors.antipatterns import analyse_errors
from memgraph.lifecycle.generalisation.compress import compress
from memgraph.lifecycle.procedures.learning import learn_procedures
from memgraph.lifecycle.run.usage import RunUsage
from memgraph.logs import logger_of
from memgraph.model.base import Model, Name, Seconds, checked
from memgraph.model.events.lifecycle import SLEEP, SleepAdvanced
from memgraph.model.memory import MEMORY_TYPES
from memgraph.model.results.sleep import PhaseReport, SleepReport
from memgraph.model.timestamps import days_between
from memgraph.ports import LanguageModel, Progress
from memgraph.store import AgentMemoryStore

logger = logger_of(__name__)

EPISODES_BETWEEN = 5
"""So many new episodes are enough for a sleep of its own accord (seed 2)."""
AUTO_SECONDS = 3.0
"""A sleep of its own accord begins nothing after so long: somebody waits for the write that it follows."""
_GONE_ON_WITH_DAYS = 1.0
_SHOWN_IDS = 100


class _TimeIsUpError(Exception):
    """Leaves a phase between two of its commits; never leaves `sleep`."""


def _nobody_asks(_seq: int) -> None:
    """Note nothing."""


@dataclass(frozen=True, slots=True)
class Night:
    """What a phase works with.

    Attributes
    ----------
    looked_through : callable
        Notes up to which event a phase has come that is done in portions: if it is stopped, it goes on from there.
    """

    store: AgentMemoryStore
    model: LanguageModel | None
    until: float | None
    looked_through: Callable[[int], None] = _nobody_asks

    def is_over(self) -> bool:
        """Tell whether the time is up."""
        return self.until is not None and time.monotonic() >= self.until

    @property
    def seconds_left(self) -> float | None:
        """Return how long it still is; None: as long as it takes."""
        return None if self.until is None else max(0.0, self.until - time.monotonic())


class Phase(NamedTuple):
    """A phase: its name, and what does it, which returns what it did; what has a field `complete` says whether that was all."""

    name: str
    run: Callable[[Night], Model]


def _collect(night: Night) -> Model:
    def between_batches(_done: int, _total: int | None) -> None:
        if night.is_over():
            raise _TimeIsUpError

    return collect(night.store, progress=between_batches)


def _merge(night: Night) -> Model:
    return merge_near_duplicates(night.store, is_time_up=night.is_over, looked_through=night.looked_through)


def _compress(night: Night) -> Model:
    store = night.store
    return compress(store, embedder=store.embedder, model=night.model, is_time_up=night.is_over)


PHASES: tuple[Phase, ...] = (
    Phase("temporal", lambda night: validate_facts(night.store, is_time_up=night.is_over)),
    Phase("near-duplicates", _merge),
    Phase("compress", _compress),
    Phase("errors", lambda night: analyse_errors(night.store, is_time_up=night.is_over)),
    Phase("procedures", lambda night: learn_procedures(night.store, is_time_up=night.is_over)),
    Phase("contradictions", lambda night: find_contradictions(night.store, seconds=night.seconds_left)),
    Phase("collect", _collect),
)


def sleep(
    store: AgentMemoryStore,
    *,
    phases: Sequence[str] = (),
    max_seconds: float | None = None,
    model: LanguageModel | None = None,
    progress: Progress | None = None,
) -> SleepReport:
    """Let a store sleep: go on with the run that was stopped within the last day, else begin one.

    Parameters
    ----------
    phases : sequence of str, optional
        Names of `PHASES`: these alone are done, in their order there; a run that was stopped stays as it is.
    max_seconds : float, optional
        After so long nothing more is begun: what is under way comes to its next commit; a compression comes to its end, but asks
        no model any more. Default: as long as it takes.
    model : LanguageModel, optional
        Words generalisations; no phase needs one.
    progress : callable, optional
        Is told how many phases are done, and of how many.

    Raises
    ------
    InvalidInputError
        There is no such phase, or the time is no number of seconds.
    ModelMismatchError
        The store has changed its embedding model meanwhile; what was done is kept, and the next sleep goes on.
    """
    chosen = _chosen(checked(list[Name], phases, "phases"))
    max_seconds = checked(Seconds | None, max_seconds, "max_seconds")
    with store.batch():
        report = _slept(store, chosen, max_seconds, model, progress)
    if report.complete:
        store.compact()
    return report


def _slept(
    store: AgentMemoryStore,
    chosen: Sequence[Phase],
    max_seconds: float | None,
    model: LanguageModel | None,
    progress: Progress | None,
) -> SleepReport:
    began = time.monotonic()
    with store.exclusive():
        pass  # a store that cannot be written is refused at once, not at the first phase that would write
    store.check_graph()
    night = Night(store, model, None if max_seconds is None else began + max_seconds)
    usage = RunUsage(lambda: (store.embedder, model))
    usage.restart()
    started_at, left = _unfinished(store)
    is_gone_on_with = bool(left) and not chosen
    if not left:
        started_at = store.now()
    todo = chosen or [phase for phase in PHASES if not left or phase.name in left]
    reports: list[PhaseReport] = []
    for number, phase in enumerate(todo):
        if progress:
            progress(number, len(todo))
        if night.is_over():
            break
        after = left if chosen else [other.name for other in todo[number + 1 :]]
        reports.append(_advance(night, phase, started_at, after, is_of_run=not chosen))
        if not reports[-1].complete:
            break
    undone = [phase.name for phase in todo[sum(report.complete for report in reports) :]]
    return SleepReport(
        started_at=started_at,
        resumed=is_gone_on_with,
        phases=reports,
        left=undone,
        changed=sum(report.changed for report in reports),
        complete=not undone,
        seconds=round(time.monotonic() - began, 3),
        usage=usage.total(),
    )


def sleep_if_due(store: AgentMemoryStore, *, at_once: bool = False) -> SleepReport | None:
    """Sleep for a few seconds if the setting ``sleep_trigger`` asks for it and it is time; None if not.

    Its failure is logged and nothing more: what it follows has been written.

    Parameters
    ----------
    at_once : bool
        It is time now (the user was not content), and not only after five new episodes.
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
    """Return how many episodes were recorded since the store last slept."""
    with store.reader.frozen(links=True):
        index = store.reader.index
        slept = (store.reader.record("LifecycleRun", SLEEP) or {}).get("seq", 0)
        is_episode = index.column("type") == MEMORY_TYPES.index("episodic")
        return int((index.column("is_live") & is_episode & (index.column("seq") > slept)).sum())


def _chosen(names: Sequence[str]) -> list[Phase]:
    known = {phase.name: phase for phase in PHASES}
    for name in names:
        if name not in known:
            raise InvalidInputError(f"must be one of {', '.join(known)}", field="phases", value=name)
    return [phase for phase in PHASES if phase.name in names]


def _unfinished(store: AgentMemoryStore) -> tuple[str, list[str]]:
    """Return when a run began that was stopped not long ago, and which phases are left of it; none if there is none."""
    row = store.reader.record("LifecycleRun", SLEEP) or {}
    left = [phase.name for phase in PHASES if phase.name in row.get("phases_left", ())]
    if not left or days_between(row["started_at"], store.now()) > _GONE_ON_WITH_DAYS:
        return "", []
    return row["started_at"], left


def _advance(night: Night, phase: Phase, started_at: str, after: list[str], *, is_of_run: bool) -> PhaseReport:
    """Do one phase, and record how far the run has come."""
    store, began = night.store, time.monotonic()
    through_seq = store.reader.index.offset.seq
    result: Model | None = None

    again = [phase.name, *after] if is_of_run else after

    def looked_through(seq: int) -> None:
        note(seq, left=again)

    def note(seq: int, *, left: list[str], changed: int = 0, complete: bool = True) -> None:
        with store.exclusive():
            event = SleepAdvanced(
                started_at=started_at,
                advanced_at=store.now(),
                phase=phase.name,
                complete=complete,
                through_seq=seq,
                changed=changed,
                left=left,
            )
            store.commit("system", [event], actor="system")

    try:
        result = phase.run(replace(night, looked_through=looked_through))
        is_complete = bool(getattr(result, "complete", True))
    except _TimeIsUpError:
        is_complete = False
    changed = _changed_since(store, through_seq)
    note(through_seq, left=after if is_complete else again, changed=len(changed), complete=is_complete)
    return PhaseReport(
        name=phase.name,
        counts=_counts(result) if result is not None else {},
        changed=len(changed),
        memory_ids=changed[:_SHOWN_IDS],
        seconds=round(time.monotonic() - began, 3),
        complete=is_complete,
        notice=getattr(result, "notice", None),
    )


def _changed_since(store: AgentMemoryStore, seq: int) -> list[str]:
    """Return the memories that the lifecycle changed, made or linked after an event, in that order, each once."""
    return list(
        dict.fromkeys(
            one
            for event in store.reader.events_after(seq)
            if event.actor == "system" and event.write_scope != "system"
            for one in event.payload.memory_ids()
        )
    )


def _counts(result: Model) -> dict[str, int]:
    values = {name: getattr(result, name) for name in type(result).model_fields}
    return {name: value for name, value in values.items() if type(value) is int}
