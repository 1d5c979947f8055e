"""The examination of a store, open or not: one set of checks for `MemGraph.health` and ``memgraph doctor``.

Nothing is repaired, brought up to date or created. Damage for which opening would send a security record has one here, too. It costs a
verification and a fold of the whole journal: for 10,000 memories about four seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.security import report_finding
from memgraph.errors import ReadOnlyError
from memgraph.health.memories import check_memories
from memgraph.health.places import (
    check_disk_space,
    check_locks,
    check_model,
    check_modes,
    check_settings,
    check_size,
    check_store,
)
from memgraph.health.report import Report
from memgraph.health.storage import SAMPLE, check_inspection, check_journal, check_projections, check_tail, extent
from memgraph.journal.closed.files import FileState, states_in
from memgraph.model.results.maintenance import Health
from memgraph.model.timestamps import days_between, to_iso
from memgraph.store import AgentMemoryStore
from memgraph.store.maintenance.verification import LastBackup, Verification
from memgraph.store.projection.bulk import no_collections
from memgraph.store.store import PastStore

_FEW_EVENTS = 1_000
"""A store with fewer events may do without a backup: somebody tries it out, or it has little to lose."""
_ADVICE = (
    "run `memgraph backup FILE`, best with a FILE on another disk; `memgraph docs operations` has a crontab for it"
)


@no_collections()
def examine_home(home: str | None) -> Report:
    """Examine the store in a directory, by its files."""
    from memgraph.embedding import default_embedder

    report = Report()
    config = check_settings(home, report)
    before = _segments(config)
    store_id = check_store(config, report)
    condition = None
    if store_id is not None:
        condition = check_journal(config, store_id, report)
        check_locks(config.home, report)
        found = check_projections(config, store_id, condition, report)
        check_modes(config, store_id, report)
        check_size(config, report)
        if found is not None:
            now = to_iso(datetime.now(UTC))
            check_backups(found, config, now, report)
            check_memories(found.rows, config, now, report)
        else:
            report.unseen.append("the memories and backups, because the journal cannot be read")
    check_disk_space(config.home, report)
    check_model(default_embedder(config), condition.named if condition else None, report)
    if _segments(config) == before:  # else another process has replaced files, such as by a purge, while they were read
        _tell(report, config, store_id, lambda: to_iso(datetime.now(UTC)))
    return report


@no_collections()
def health_of(store: AgentMemoryStore) -> Health:
    """Examine an open store. Its key and its journal's head were verified when it was opened.

    Raises
    ------
    ReadOnlyError
        It is a view: of the past, or of an agent.
    """
    if isinstance(store, PastStore):
        raise ReadOnlyError("a view has no health of its own; ask the store itself")
    config, report = store.config, Report()
    check_store(config, report)
    report.found["graph"] = {}
    found = check_inspection(lambda: store.inspection(sample=SAMPLE), config, report)
    check_modes(config, store.store_id, report)
    check_size(config, report)
    check_disk_space(config.home, report)
    check_model(store.embedder, None, report)
    if found is not None:
        check_tail(found.torn_events, found.torn_bytes, extent(config.home / "journal")[1], report)
        check_backups(found, config, store.now(), report)
        check_memories(found.rows, config, store.now(), report)
    _tell(report, config, store.store_id, store.now)
    return report.health()


def _segments(config: AgentMemoryConfig) -> list[FileState] | None:
    """Return what identifies the journal's files; None if its folder cannot be read."""
    try:
        return states_in(config.home / "journal")
    except OSError:
        return None


def _tell(report: Report, config: AgentMemoryConfig, store_id: str | None, now: Callable[[], str]) -> None:
    for error in report.refusals:
        report_finding(config, error, now=now, store_id=store_id)


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
