"""Retrieval records: when a ranking is first used in an open store, every hour of its use, and at the end; each recall only on request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.records import Ranking, RecallCounts, RetrievalRecord
from memgraph.diagnostics.reporting import report

HOUR_S = 3_600.0
MAX_RANKINGS = 16
"""Rankings of an open store that are reported. More are unlikely, except that each query may bring a floor of its own."""


class _Use:
    """What was counted of a ranking since its last record."""

    def __init__(self, reported_at: float) -> None:
        self.reported_at = reported_at
        self.counts: RecallCounts | None = None


class RecallWatch:
    """Counts an open store's recalls and reports them. Thread-safe.

    Parameters
    ----------
    now : callable
        Returns the time of a record.
    is_silent : bool
        Report nothing: recalls in views of a store are not among the uses of its memories either.
    timer : callable
        Returns seconds of a monotonic clock.
    """

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
            use.counts = one if use.counts is None else _sum(use.counts, one)
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
        def made() -> RetrievalRecord:
            return RetrievalRecord(
                at=self._now(),
                store_id=self._store_id,
                reason=reason,
                ranking=ranking,
                counts=counts,
                query_id=query_id,
            )

        report(self._config, made, severity="info")


def _sum(one: RecallCounts, other: RecallCounts) -> RecallCounts:
    return RecallCounts(
        recalls=one.recalls + other.recalls,
        empty=one.empty + other.empty,
        results=one.results + other.results,
        tokens=one.tokens + other.tokens,
        duration_ms=round(one.duration_ms + other.duration_ms, 3),
        longest_ms=max(one.longest_ms, other.longest_ms),
    )
