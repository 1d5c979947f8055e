"""Check of backups: whether the journal names one, how old it is, and how much was recorded since."""

from __future__ import annotations

import os

from memgraph.config import AgentMemoryConfig
from memgraph.health.report import Report
from memgraph.model.timestamps import days_between
from memgraph.store.maintenance.verification import LastBackup, Verification

_FEW_EVENTS = 1_000
"""A store with fewer events may do without a backup: somebody tries it out, or it has little to lose."""
_ADVICE = (
    "run `memgraph backup FILE`, best with a FILE on another disk; `memgraph docs operations` has a crontab for it"
)


def check_backups(found: Verification, config: AgentMemoryConfig, now: str, report: Report) -> None:
    """Warn if the last backup is too old and lacks events, or if a store that is neither young nor small has none."""
    limit, last = config.health.backup_days, found.backup
    if last is None:
        report.found["backup"] = {"at": None, "path": None, "present": None, "events_since": None}
        age = days_between(found.began_at, now) if found.began_at else 0.0
        if limit and age > limit and found.events >= _FEW_EVENTS:
            what = f"this store of {found.events:,} events was never backed up; its first event is {age:,.0f} days old"
            report.warning("backups", what, _ADVICE, value=age, limit=limit)
        report.passed("backups", limit=limit or None)
        return
    age = max(0.0, days_between(last.at, now))
    since = max(0, found.events - last.seq - 1)  # the event after its last one records the backup itself
    is_there = os.path.exists(last.path) if last.path else None  # noqa: PTH110 - it answers no where it may not look
    report.found["backup"] = {"at": last.at, "path": last.path, "present": is_there, "events_since": since}
    if limit and age > limit and since:
        report.warning("backups", _too_old(last, age, since), _ADVICE, value=age, limit=limit)
    report.passed("backups", value=age, limit=limit or None)


def _too_old(last: LastBackup, age: float, since: int) -> str:
    events = "1 event was" if since == 1 else f"{since:,} events were"
    file = last.path or "from which the store was restored"
    return f"the last backup, {file}, is {age:,.0f} days old ({last.at[:16]}), and {events} recorded since"
