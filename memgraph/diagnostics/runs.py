"""Lifecycle records: one for each run of the lifecycle, also if it fails or is interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.records import LifecycleRecord, Severity
from memgraph.diagnostics.reporting import report

_is_within: ContextVar[bool] = ContextVar("memgraph_lifecycle_run", default=False)


@dataclass(slots=True)
class RunNotes:
    """What a run says of itself, for its record.

    Attributes
    ----------
    is_step : bool
        The run is a part of another one, and has no record.
    phase : str or None
        The phase that is running.
    """

    is_step: bool = False
    phases: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    phase: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    changed: int = 0
    resumed: bool = False


@contextmanager
def reported_run(
    config: AgentMemoryConfig,
    run: str,
    *,
    now: Callable[[], str],
    store_id: str,
    timer: Callable[[], float] = time.monotonic,
) -> Iterator[RunNotes]:
    """Report a block as a run of the lifecycle; a run within another one, such as a step of a sleep, is part of that one.

    Parameters
    ----------
    timer : callable
        Returns seconds of a monotonic clock.
    """
    notes, began = RunNotes(is_step=_is_within.get()), timer()
    if notes.is_step:
        yield notes
        return
    token = _is_within.set(True)
    error: BaseException | None = None
    try:
        yield notes
    except BaseException as raised:
        error = raised
        raise
    finally:
        _is_within.reset(token)
        is_stopped = error is not None and not isinstance(error, Exception)  # Ctrl-C
        has_failed = error is not None and not is_stopped
        outcome = "failed" if has_failed else "interrupted" if is_stopped or notes.left else "complete"
        severity: Severity = "error" if has_failed else "info"

        def made() -> LifecycleRecord:
            return LifecycleRecord.parse(
                {
                    "at": now(),
                    "severity": severity,
                    "store_id": store_id,
                    "run": run,
                    "outcome": outcome,
                    "phases": notes.phases,
                    "left": notes.left,
                    "phase": notes.phase if error is not None else None,
                    "error": type(error).__name__ if has_failed else None,
                    "counts": {name: number for name, number in notes.counts.items() if number},
                    "changed": notes.changed,
                    "resumed": notes.resumed,
                    "duration_s": round(max(0.0, timer() - began), 3),
                }
            )

        report(config, made, severity=severity)
