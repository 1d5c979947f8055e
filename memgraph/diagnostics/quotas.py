"""Quota records: a limit because of which something was refused, at most once a minute for each quota of a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.records import Quota, QuotaRecord, quota_severity
from memgraph.diagnostics.reporting import report

BETWEEN_S = 60.0
"""A limit that is reached again and again would otherwise fill the files of records."""


class QuotaWatch:
    """Counts how often each limit was reached, and lets through one record in a while. Thread-safe.

    Parameters
    ----------
    timer : callable
        Returns seconds of a monotonic clock.
    """

    def __init__(self, *, between_s: float = BETWEEN_S, timer: Callable[[], float] = time.monotonic) -> None:
        self._between_s, self._timer = between_s, timer
        self._lock = threading.Lock()
        self._last: dict[tuple[str | None, Quota], tuple[float, int]] = {}

    def occasions(self, store_id: str | None, quota: Quota) -> int:
        """Note that a limit was reached; return how often since the last record, or 0 if there is to be none yet."""
        with self._lock:
            now = self._timer()
            before, waiting = self._last.get((store_id, quota), (None, 0))
            if before is not None and now - before < self._between_s:
                self._last[store_id, quota] = (before, waiting + 1)
                return 0
            self._last[store_id, quota] = (now, 0)
            return waiting + 1


_watch = QuotaWatch()


def report_quota(
    config: AgentMemoryConfig,
    quota: Quota,
    *,
    now: Callable[[], str],
    store_id: str | None,
    value: float,
    limit: float,
    unit: str,
    watch: QuotaWatch = _watch,
) -> None:
    """Report that a limit was reached, unless that was done within the last minute."""
    if not (occasions := watch.occasions(store_id, quota)):
        return
    severity = quota_severity(quota)

    def made() -> QuotaRecord:
        return QuotaRecord.parse(
            {
                "at": now(),
                "severity": severity,
                "store_id": store_id,
                "quota": quota,
                "value": float(value),
                "limit": float(limit),
                "unit": unit,
                "occasions": occasions,
            }
        )

    report(config, made, severity=severity)
