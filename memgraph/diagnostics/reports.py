"""What is reported: what concerns the trust in a journal, limits that were reached, runs of the lifecycle, recalls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.delivery import HOUR_S, Repeats, report
from memgraph.diagnostics.records import (
    LifecycleRecord,
    Quota,
    QuotaRecord,
    Ranking,
    RecallCounts,
    RetrievalRecord,
    SecurityReason,
    SecurityRecord,
    quota_severity,
    security_severity,
    token_of,
)
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, PayloadError, UnknownEventError

_MAX_KEYS = 100
_Finding = tuple[str | int | None, ...]
_reported = Repeats()
"""What this process has reported: where the records go, the store, the reason and the place."""


def reason_of(error: JournalError) -> SecurityReason:
    """Return the reason of the record of an error."""
    if isinstance(error, KeyMissingError):
        return "boot_key"
    if isinstance(error, PayloadError | UnknownEventError):
        return "schema"
    if isinstance(error, DamagedJournalError) and error.concerns_signature:
        return "signature"
    if isinstance(error, DamagedJournalError) and error.concerns_envelope:
        return "envelope"
    return "journal"


def report_security(
    config: AgentMemoryConfig,
    reason: SecurityReason,
    *,
    now: Callable[[], str],
    store_id: str | None,
    error: JournalError | None = None,
) -> None:
    """Report something that concerns a store's trust, and where the error says it is."""
    if error is not None:
        _reported.note(_finding(config, reason, store_id, error))
    place = error if isinstance(error, DamagedJournalError) else None
    key_ids = error.key_ids[:_MAX_KEYS] if isinstance(error, KeyMissingError) else []
    report(
        config,
        SecurityRecord,
        severity=security_severity(reason, config.security_mode),
        now=now,
        store_id=store_id,
        reason=reason,
        mode=config.security_mode,
        key_ids=[*map(token_of, key_ids)],
        segment=token_of(Path(place.path).name) if place else None,
        seq=place.seq if place else None,
    )


def report_finding(
    config: AgentMemoryConfig,
    error: JournalError,
    *,
    now: Callable[[], str],
    store_id: str | None,
    repeats: Repeats = _reported,
) -> None:
    """Report an error that an examination, an opening or an open store has met, unless this process has reported it within the last hour."""
    if repeats.note(_finding(config, reason_of(error), store_id, error)):
        report_security(config, reason_of(error), now=now, store_id=store_id, error=error)


def _finding(config: AgentMemoryConfig, reason: str, store_id: str | None, error: JournalError) -> _Finding:
    keys = error.key_ids if isinstance(error, KeyMissingError) else []
    place = (str(error.path), error.seq) if isinstance(error, DamagedJournalError) else ()
    what = type(error).__name__
    return (config.diagnostics_file, config.alert_webhook, store_id, reason, what, *keys, *place)


BETWEEN_S = 60.0
"""A limit that is reached again and again would otherwise fill the files of records."""
_reached = Repeats(between_s=BETWEEN_S)


def report_quota(
    config: AgentMemoryConfig,
    quota: Quota,
    *,
    now: Callable[[], str],
    store_id: str | None,
    value: float,
    limit: float,
    unit: str,
    repeats: Repeats = _reached,
) -> None:
    """Report that a limit was reached, unless that was done within the last minute."""
    if occasions := repeats.note((store_id, quota)):
        said = {"quota": quota, "value": float(value), "limit": float(limit), "unit": unit, "occasions": occasions}
        report(config, QuotaRecord, severity=quota_severity(quota), now=now, store_id=store_id, **said)


_is_within: ContextVar[bool] = ContextVar("memgraph_lifecycle_run", default=False)


@dataclass(slots=True)
class RunNotes:
    """What a run says of itself, for its record: a part of another run (`is_step`) has none; `phase` is the one that is running."""

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
    """Report a block as a run of the lifecycle; a run within another one, such as a step of a sleep, is part of that one."""
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
        report(
            config,
            LifecycleRecord,
            severity="error" if has_failed else "info",
            now=now,
            store_id=store_id,
            run=run,
            outcome="failed" if has_failed else "interrupted" if is_stopped or notes.left else "complete",
            phases=notes.phases,
            left=notes.left,
            phase=notes.phase if error is not None else None,
            error=type(error).__name__ if has_failed else None,
            counts={name: number for name, number in notes.counts.items() if number},
            changed=notes.changed,
            resumed=notes.resumed,
            duration_s=round(max(0.0, timer() - began), 3),
        )


MAX_RANKINGS = 16
"""Rankings of an open store that are reported. More are unlikely, except that each query may bring a floor of its own."""


@dataclass(slots=True)
class _Use:
    """What was counted of a ranking since its last record."""

    reported_at: float
    counts: RecallCounts | None = None


class RecallWatch:
    """Counts an open store's recalls and reports them, unless it is silent: recalls in views are no uses of memories. Thread-safe."""

    def __init__(
        self,
        config: AgentMemoryConfig,
        store_id: str,
        now: Callable[[], str],
        *,
        is_silent: bool = False,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._store_id, self._is_silent = config, store_id, is_silent
        self._now, self._timer = now, timer
        self._lock = threading.Lock()
        self._used: dict[Ranking, _Use] = {}

    def note(self, ranking: Ranking, *, query_id: str, results: int, tokens: int, duration_ms: float) -> None:
        """Count a recall, and report what is due."""
        if self._is_silent:
            return
        one = RecallCounts(
            recalls=1,
            empty=int(not results),
            results=results,
            tokens=tokens,
            duration_ms=round(duration_ms, 3),
            longest_ms=round(duration_ms, 3),
        )
        with self._lock:
            use = self._used.get(ranking)
            if use is None and len(self._used) < MAX_RANKINGS:
                use = self._used[ranking] = _Use(self._timer())
                self._report_ranking(ranking, "begun")
            if self._config.diagnostics_recalls == "all":
                self._report_ranking(ranking, "recall", one, query_id)
            if use is None:
                return
            use.counts = one if use.counts is None else use.counts + one
            if self._timer() - use.reported_at >= HOUR_S:
                self._report_ranking(ranking, "hour", use.counts)
                use.counts, use.reported_at = None, self._timer()

    def close(self) -> None:
        """Report what was counted since the last records. Idempotent."""
        with self._lock:
            for ranking, use in self._used.items():
                if use.counts is not None:
                    self._report_ranking(ranking, "ended", use.counts)
            self._used = {}

    def _report_ranking(
        self, ranking: Ranking, reason: str, counts: RecallCounts | None = None, query_id: str | None = None
    ) -> None:
        said = {"reason": reason, "ranking": ranking, "counts": counts, "query_id": query_id}
        report(self._config, RetrievalRecord, severity="info", now=self._now, store_id=self._store_id, **said)
