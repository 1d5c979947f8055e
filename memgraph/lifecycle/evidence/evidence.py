"""Evidence of learning: valid episodes by project and task, faded ones included, runs of tools, and the events that record the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.columns import TIERS, TRUST
from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.model.events.memories import MemoryRevised, MemoryUnlinked
from memgraph.model.events.payload import Payload, sparse
from memgraph.model.events.records import FADED
from memgraph.model.ids import natural_id
from memgraph.model.memory import MEMORY_TYPES, AgentMemory, id_of
from memgraph.model.timestamps import from_iso
from memgraph.ports import Row
from memgraph.store.commit.records import patch, record_of
from memgraph.store.deletions import Deleted
from memgraph.store.query import Reader
from memgraph.text.calendar import MONTHS, in_words

Scope = tuple[str | None, str | None]
"""A project and a task by name: lessons of one scope are never mixed with those of another."""
TimeIsUp = Callable[[], bool]

MOST_PER_SCOPE = 100_000
"""Of a scope with more memories, only the latest are read."""
LEAST_BUILDS = 3
"""Minimum number of builds before an observation is a pattern (design §5)."""
CONFIDENCE = {3: 0.7, 4: 0.8}
CONFIDENCE_AT_MOST = 0.9


def evidence_of(row: Row) -> frozenset[str]:
    """Return what an episode is evidence of: its builds; without any it counts as a build of its own."""
    builds = {*row.get("evidence_build_ids", ()), *filter(None, [row.get("build_id")])}
    return frozenset(builds) or frozenset([f"memory {row['id']}"])


def never() -> bool:
    """Return False: no time limit."""
    return False


def confidence_of(builds: int) -> float:
    """Return the confidence in something that was seen in this many builds, at least three."""
    return CONFIDENCE.get(builds, CONFIDENCE_AT_MOST)


def sources_of(index: Index, memory_id: str) -> set[str]:
    """Return the memories that a memory was derived from or quotes."""
    others, codes = index.links.get(index.slot(memory_id))
    return {index.ids.names[slot] for slot in others[codes == RELATION_CODE["DERIVED_FROM"]].tolist()}


def read_scope(reader: Reader, scope: Scope, types: Sequence[str]) -> list[Row]:
    """Return the rows of a scope's memories of these types in any state, in id order."""
    index = reader.index
    mask = index.memories() & np.isin(index.column("type"), [MEMORY_TYPES.index(kind) for kind in types])
    for kind, name in zip(("project", "task"), scope, strict=True):
        code = index.scopes.find(scope_name(kind, name)) if name is not None else -1
        mask &= index.column(kind) == code
    slots: NDArray[np.int64] = np.flatnonzero(mask)
    slots = slots[np.argsort(index.column("seq")[slots], kind="stable")][-MOST_PER_SCOPE:]
    return reader.rows(sorted(index.ids.names[slot] for slot in slots.tolist()))


def is_true(row: Row, now: str) -> bool:
    """Return whether a memory is evidence: neither forgotten nor invalid. Faded or superseded episodes still happened."""
    return not row.get("is_suppressed", False) and not row.get("invalid_at", "9999") <= now


def shared_context(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields that a derived memory inherits: the strictest tier, the lowest trust, a domain that all have."""
    domains = {row.get("domain") for row in rows}
    return {
        "domain": domains.pop() if len(domains) == 1 else None,
        "privacy_tier": max((row.get("privacy_tier", "public") for row in rows), key=TIERS.index),
        "trust_class": max((row.get("trust_class", "agent") for row in rows), key=TRUST.index),
    }


def strictness(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the strictest privacy tier and the lowest trust of some rows.

    A derived memory keeps its own values if they are stricter: it may repeat words of evidence that is gone, and
    a user may have set them on purpose. Only a user relaxes them.
    """
    return {name: value for name, value in shared_context(rows).items() if name != "domain"}


def may_quote(row: Row, rows: Sequence[Row]) -> bool:
    """Return whether a memory derived from some may repeat another one's words: its tier is no stricter, its trust no lower."""
    derived = shared_context(rows)
    is_open = TIERS.index(row.get("privacy_tier", "public")) <= TIERS.index(derived["privacy_tier"])
    return is_open and TRUST.index(row.get("trust_class", "agent")) <= TRUST.index(derived["trust_class"])


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return memories in the order of their events."""
    return sorted(rows, key=lambda row: (row.get("occurred_at", ""), row.get("seq", 0)))


_UNDATED_YEAR = "2000"


def dated(row: Row) -> str:
    """Return when it happened, in brackets; nothing of what nobody dated."""
    day = row.get("occurred_at", "")
    return f" ({in_words(day)})" if day[:4] > _UNDATED_YEAR else ""


def when(times: Sequence[str]) -> str:
    """Return the months from the first to the last; nothing for trials that nobody dated."""
    days = sorted(at[:7] for at in times if at)
    if not days or days[0][:4] <= _UNDATED_YEAR:
        return ""
    first, last = (f"{MONTHS[int(day[5:7]) - 1]} {day[:4]}" for day in (days[0], days[-1]))
    if first == last:
        return f", in {first}"
    return f", from {first.removesuffix(last[-5:])} to {last}"


def revised(before: AgentMemory, after: AgentMemory) -> MemoryRevised:
    """Return the event that changes a memory from one state to another."""
    now = after.updated_at or ""
    old = sparse(vars(record_of(before, now=now, max_relevance=float("inf"))))
    changed, cleared = patch(old, record_of(after, now=now, max_relevance=float("inf")))
    return MemoryRevised(id=id_of(before), changed=changed, cleared=cleared)


def revision(before: AgentMemory, after: AgentMemory) -> MemoryRevised | None:
    """Return the event that changes a memory from one state to another; None if only their time of update differs."""
    event = revised(before, after)
    is_same = not event.cleared and set(sparse(event.changed.model_dump())) <= {"updated_at"}  # type: ignore[attr-defined]
    return None if is_same else event


def unlinked(memory_id: str, source_ids: Sequence[str]) -> Iterator[Payload]:
    """Yield the events that remove a memory's links of derivation from some others."""
    for one in source_ids:
        yield MemoryUnlinked(source_id=memory_id, relation="DERIVED_FROM", target_id=one)
        yield MemoryUnlinked(source_id=one, relation="SUPPORTS", target_id=memory_id)


class Deletions:
    """Reads the journal on first use, once for all questions of the same kind in a run.

    Later deletions are not seen: once others have written, a run creates a new instance.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._reasons: dict[str, str | None] | None = None
        self._of: dict[str, list[Deleted]] = {}

    def deleted_by_user(self, gone: Iterable[str]) -> frozenset[str]:
        """Return which of some missing memories a user or agent deleted; the others were collected after they had faded."""
        gone = frozenset(gone)
        if not gone:
            return gone
        if self._reasons is None:
            self._reasons = self._reader.reasons_of_deletion()
        reasons = self._reasons
        return frozenset(one for one in gone if reasons.get(one) != FADED)

    def of(self, source: str) -> list[Deleted]:
        """Return the deleted memories of a source, in id order, with the reasons given."""
        if source not in self._of:
            self._of[source] = self._reader.deleted_of(source)
        return self._of[source]

    def rows(self, memory_ids: Iterable[str]) -> dict[str, Row]:
        """Return the last state of some deleted memories by id. Reads the journal each time if ids are given."""
        named = sorted(memory_ids)
        return {one.row["id"]: one.row for one in self._reader.deleted(named)} if named else {}


_TOOLS = frozenset({"ci log", "test report"})
"""Sources whose builds are runs of a project's tests."""
_APART = timedelta(seconds=60)
"""A run's log and its test report are written at most this long one after the other."""


class _Reading(NamedTuple):
    build: str
    source: str
    started_at: str
    completed_at: str


def is_of_a_tool(row: Row) -> bool:
    """Return whether an episode is from a run of a tool."""
    return row.get("source") in _TOOLS


def one_build_a_run(reader: Reader, rows: Sequence[Row]) -> list[Row]:
    """Return episodes so that each run of a tool counts as one build, however often it was read.

    A run is read twice as a log and as a test report at the same time, or as two copies of one of them.
    """
    known: dict[tuple[str, str | None], _Reading] = {}
    for row in rows:
        for build in _builds(row) if is_of_a_tool(row) else ():
            record = reader.record("Build", natural_id("build", build, project_id=row.get("project_id")))
            if record and record.get("started_at"):
                times = (record["started_at"], record.get("completed_at") or record["started_at"])
                known.setdefault((build, row.get("project_id")), _Reading(build, row["source"], *times))
    same = _same_runs(list(known.values()))
    return [
        _renamed(row, same) if is_of_a_tool(row) and not same.keys().isdisjoint(_builds(row)) else row for row in rows
    ]


def _builds(row: Row) -> list[str]:
    return list(dict.fromkeys([*row.get("evidence_build_ids", ()), *filter(None, [row.get("build_id")])]))


def _same_runs(readings: Sequence[_Reading]) -> dict[str, str]:
    """Return for each build that reads a run again the build that read it first."""
    same: dict[str, str] = {}
    firsts: list[_Reading] = []
    for one in sorted(readings, key=lambda reading: (reading.started_at, reading.build)):
        near = (first for first in firsts[-20:] if _is_same_run(first, one))
        if (first := next(near, None)) is not None:
            same[one.build] = first.build
        else:
            firsts.append(one)
    return same


def _is_same_run(first: _Reading, later: _Reading) -> bool:
    if first.source == later.source:
        is_dated = first.started_at != first.completed_at
        return is_dated and first[2:] == later[2:]
    return from_iso(later.started_at) <= from_iso(first.completed_at) + _APART


def _renamed(row: Row, same: dict[str, str]) -> Row:
    builds = list(dict.fromkeys(same.get(build, build) for build in row.get("evidence_build_ids", ())))
    return {**row, "evidence_build_ids": builds, "build_id": same.get(row.get("build_id", ""), row.get("build_id"))}
