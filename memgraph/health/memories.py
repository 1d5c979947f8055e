"""Checks of what a store holds: working memories, the size of long-term memory, sleep, near-duplicates, contradictions.

They read the rows that the journal's fold gives, neither graph nor index, so they say the same whatever these lack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from memgraph.config import AgentMemoryConfig
from memgraph.fold.tasks.sessions import WORKING
from memgraph.health.report import Report
from memgraph.index.analyser import analyse
from memgraph.index.index import RELATION_CODE, Index
from memgraph.index.supersession import superseded
from memgraph.lifecycle.contradictions.resolution import pairs_among
from memgraph.lifecycle.dedup.near_duplicates import PHASE, groups, linked, may_be_one, without_parts
from memgraph.lifecycle.dedup.thresholds import SLEEP_OVERLAP
from memgraph.lifecycle.dedup.word_index import WordIndex
from memgraph.lifecycle.sleep import EPISODES_BETWEEN
from memgraph.model.events.lifecycle import SLEEP, phase_key
from memgraph.model.memory import MEMORY_TYPES, AgentMemory, StoredMemory
from memgraph.model.timestamps import days_between, epoch_days
from memgraph.ports import Key, Row

Tables = Mapping[str, Mapping[Key, Row]]
Mask = NDArray[np.bool_]

_RESUMED_FOR_DAYS = 1.0
"""A sleep that was interrupted longer ago than this is not continued by the next one."""
_MOST_NEW = 1_000
_MOST_FOUND = 100
_MOST_JUDGED = 64
"""Bounds on the search for near-duplicates: the newest memories, the number found, and candidates for one memory."""


def check_memories(tables: Tables, config: AgentMemoryConfig, now: str, report: Report) -> None:
    """Run all checks of this module.

    Parameters
    ----------
    tables : mapping
        The rows at the journal's end, by table and key.
    """
    rows = sorted(tables.get("Memory", {}).values(), key=lambda row: row["seq"])
    index = Index()
    index.build(rows, ((table, key) for table in RELATION_CODE for key in tables.get(table, {})))
    by_id = {row["id"]: row for row in rows}
    in_force = _in_force(index, now)
    runs = tables.get("LifecycleRun", {})
    _working(tables.get(WORKING, {}), config, now, report)
    _long_term(index, by_id, in_force, config, report)
    _sleep(runs.get(SLEEP, {}), rows, config, now, report)
    since = runs.get(phase_key(PHASE), {}).get("seq", 0)
    _near_duplicates(index, by_id, in_force, since, config, now, report)
    _contradictions(index, in_force, config, report)


def _in_force(index: Index, now: str) -> Mask:
    """Return the slots that a listing shows and that no other listed memory supersedes."""
    mask: Mask = index.column("is_live") & ~index.column("is_archived") & ~index.column("is_suppressed")
    mask &= index.column("invalid_days") > epoch_days(now)
    return mask & ~superseded(index, mask)


def _working(rows: Mapping[Key, Row], config: AgentMemoryConfig, now: str, report: Report) -> None:
    days = config.working_memory_days
    stale = sum(days_between(row["updated_at"], now) > days for row in rows.values())
    what = f"{stale:,} working memories are older than {days:,} days, so they are void"
    advice = "`memgraph session prune` removes them"
    report.compare("working memory", stale, config.health.stale_working_memories, what, advice)


def _long_term(
    index: Index, by_id: Mapping[str, Row], in_force: Mask, config: AgentMemoryConfig, report: Report
) -> None:
    mask = in_force & (index.column("type") != MEMORY_TYPES.index("episodic"))
    size = sum(len(by_id[index.ids.names[slot]]["content"].encode()) for slot in np.flatnonzero(mask).tolist())
    limit = config.health.long_term_mb * 1e6
    what = f"facts and procedures take {size / 1e6:,.1f} MB, more than health.long_term_mb = {config.health.long_term_mb:g}"
    advice = "`memgraph sleep` merges and collects; `memgraph list` shows what to forget; or raise the limit"
    report.compare("long-term memory", size, limit or float("inf"), what, advice)


def _sleep(run: Row, rows: list[Row], config: AgentMemoryConfig, now: str, report: Report) -> None:
    again = "run `memgraph sleep`"
    if "failed_at" in run:
        what = f"the last sleep failed in its phase {run['failed_phase']} ({run['failed_at'][:16]}): {run['error']}"
        report.warning("sleep", what, f"{again} again")
    elif run.get("phases_left") and days_between(run["started_at"], now) > _RESUMED_FOR_DAYS:
        what = f"the sleep of {run['started_at'][:10]} was not completed; left: {', '.join(run['phases_left'])}"
        report.warning("sleep", what, again)
    waiting = [row["created_at"] for row in rows if row["type"] == "episodic" and row["seq"] > run.get("seq", 0)]
    limit = config.health.sleep_overdue_days
    if limit and len(waiting) >= EPISODES_BETWEEN:
        days = days_between(min(waiting), now)
        what = f"{len(waiting):,} episodes wait for a sleep, the first for {days:,.0f} days"
        if days > limit:
            report.warning("sleep", what, f"{again}, or set sleep_trigger to auto", value=days, limit=limit)
    report.passed("sleep", limit=limit or None)


def _near_duplicates(
    index: Index,
    by_id: Mapping[str, Row],
    in_force: Mask,
    since: int,
    config: AgentMemoryConfig,
    now: str,
    report: Report,
) -> None:
    slots = np.flatnonzero(without_parts(index, in_force))
    slots = slots[np.argsort(index.column("seq")[slots], kind="stable")]
    new = [slot for slot in slots.tolist() if index.column("seq")[slot] > since][-_MOST_NEW:]
    repeated = list(_repeated(index, by_id, slots, frozenset(new), config, now)) if new else []
    what = f"{len(repeated):,} memories repeat another one in other words or in the same"
    if len(repeated) == _MOST_FOUND:
        what = f"at least {what}"
    limit = config.health.near_duplicates
    report.compare("near-duplicates", len(repeated), limit, what, "`memgraph sleep` merges them")


def _repeated(
    index: Index,
    by_id: Mapping[str, Row],
    slots: NDArray[np.int64],
    new: frozenset[int],
    config: AgentMemoryConfig,
    now: str,
) -> Iterator[int]:
    """Yield new slots that say what an earlier one says: by their words, within the groups in which sleep compares."""
    opposed = linked(index, "CONTRADICTS")
    found = 0

    def memory(slot: int) -> StoredMemory:
        kept: StoredMemory = AgentMemory.from_row(by_id[index.ids.names[slot]], now=now, curve=config.forgetting_curve)
        return kept

    for places in groups(index, slots):
        members = slots[places].tolist()
        if new.isdisjoint(members):
            continue
        texts = [frozenset(analyse(by_id[index.ids.names[slot]]["content"])) for slot in members]
        words = WordIndex(texts, least=SLEEP_OVERLAP)
        for place, slot in enumerate(members):
            earlier = [members[one] for one, _ in words.like(place) if one < place] if slot in new else []
            if any(may_be_one(opposed, memory(one), memory(slot)) for one in earlier[:_MOST_JUDGED]):
                yield slot
                found += 1
                if found == _MOST_FOUND:
                    return


def _contradictions(index: Index, in_force: Mask, config: AgentMemoryConfig, report: Report) -> None:
    number = len(pairs_among(index, in_force))
    what = f"{number:,} contradictions are undecided"
    advice = "`memgraph contradictions` lists them; resolve or dismiss each"
    report.compare("contradictions", number, config.health.open_contradictions, what, advice)
