"""Episodes: what counts as evidence, which scopes have changed since a run, and the run of a learner over those scopes.

A *scope* is a project and a task: episodes of a task are never mixed with those outside it, nor those of two projects. A run, complete or
stopped by its time limit, ends with an event that records how far it has read. The scopes that have waited longest come first, so the next
run continues there. After a kill, the next run finds the completed work in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memgraph.index.columns import TIERS, TRUST
from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.index.snapshot import is_gone
from memgraph.lifecycle.run import (
    MOST_EVENTS,
    Plan,
    TimeIsUp,
    View,
    Watch,
    account,
    added,
    carry_out,
    changes_after,
    last_run,
)
from memgraph.model.base import Model
from memgraph.model.events.memories import MemoryDerived, MemoryLinked, MemoryReembedded, MemoryUnlinked
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import AccessRecorded
from memgraph.model.ids import natural_id
from memgraph.model.memory import MEMORY_TYPES
from memgraph.model.timestamps import epoch_days, from_iso
from memgraph.ports import Embedder, Row
from memgraph.store import AgentMemoryStore
from memgraph.store.deletions import Deleted
from memgraph.store.query import Reader
from memgraph.text.calendar import MONTHS, in_words

Scope = tuple[str | None, str | None]
"""A project and a task by name."""
Deletions = Callable[[str], list[Deleted]]
"""Returns the deleted memories of a source, in id order. Reads the journal once for each source."""
R = TypeVar("R", bound=Model)

MOST_PER_SCOPE = 100_000
"""Of a scope with more memories, only the latest are read."""
LEAST_BUILDS = 3
"""Minimum number of builds before an observation is a pattern (design §5)."""
LESSON_TYPES = ("episodic", "semantic")
"""What lessons are made of, and what they are."""
COMPRESSION_SOURCE = "compression"
"""The `source` of generalisations made by compression."""
_USES = frozenset("floor archive_summary relevance_anchor relevance_at updated_at embedding_model embedded_at".split())
WATCH = Watch((AccessRecorded, MemoryReembedded), _USES)
"""Events that change more of a memory than its use."""
OWN_WATCH = Watch((*WATCH.ignored, MemoryDerived, MemoryLinked, MemoryUnlinked), _USES)
"""Of these, those that change the memory itself, not only what is linked with it."""
_MOST_REREAD = 1_000
"""Events that a run without result may read again the next time; it records that it has read more."""


def evidence_of(row: Row) -> frozenset[str]:
    """Return what an episode is evidence of: its builds; without any it counts as a build of its own."""
    builds = {*row.get("evidence_build_ids", ()), *filter(None, [row.get("build_id")])}
    return frozenset(builds) or frozenset([f"memory {row['id']}"])


def evidence_in(rows: Iterable[Row]) -> frozenset[str]:
    """Return what some episodes are evidence of together."""
    return frozenset[str]().union(*map(evidence_of, rows))


def ended_at(reader: Reader, build: str, project_id: str | None) -> str:
    """Return when a build was completed; empty if nobody says."""
    return str(_build(reader, build, project_id).get("completed_at") or "")


def _build(reader: Reader, name: str, project_id: str | None) -> Row:
    return reader.record("Build", natural_id("build", name, project_id=project_id)) or {}


def confidence_of(builds: int) -> float:
    """Return the confidence in something that was seen in this many builds, at least three."""
    return {3: 0.7, 4: 0.8}.get(builds, 0.9)


def linked_ids(index: Index, memory_id: str, relation: str, *, to_it: bool = False) -> set[str]:
    """Return the memories that a memory has a relation to, or that have it to this one."""
    others, codes = index.links.get(index.slot(memory_id))
    code = RELATION_CODE[relation]
    return {index.ids.names[slot] for slot in others[codes == (-code if to_it else code)].tolist()}


def read_scope(reader: Reader, scope: Scope, types: Sequence[str]) -> list[Row]:
    """Return the rows of a scope's memories of these types in any state, in id order."""
    index = reader.index
    mask = index.memories() & np.isin(index.column("type"), [MEMORY_TYPES.index(kind) for kind in types])
    for kind, name in zip(("project", "task"), scope, strict=True):
        code = index.scopes.find(scope_name(kind, name)) if name is not None else -1
        mask &= (index.column(kind) == code) & (code >= 0 or name is None)
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

    A derived memory keeps its own values if they are stricter: it may repeat words of what is gone. Only a user relaxes them.
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


def counted(evidence: frozenset[str], rows: Sequence[Row]) -> str:
    """Return how often something was seen, in words: "in 4 builds"; an episode without a build is an episode, and both together are cases."""
    unbuilt = sum(key.startswith("memory ") for key in evidence)
    unit = "builds" if not unbuilt else "episodes" if unbuilt == len(evidence) else "cases"
    if not unbuilt and all(is_trial(row) or row.get("source") == "trial" for row in rows):
        unit = "trials"
    return f"in {len(evidence):,} {unit}"


def is_trial(row: Mapping[str, Any]) -> bool:
    """Return whether an episode is a whole trial rather than an event within one."""
    return bool(row.get("asked"))


def task_of(row: Mapping[str, Any]) -> str | None:
    """Return the key of the task that an episode is a trial of; None if it is of none, or of several.

    It is the record's name of the task with its description, as another file may use the name for another task. Simulated users word
    the same request differently each time, so in a conversation only the name counts.
    """
    if row.get("source") != "trial" or not is_trial(row):
        return None
    builds = row.get("evidence_build_ids", ())
    own = (
        next((event[len(build) + 1 :] for build in builds if event.startswith(f"{build}/")), event)
        for event in row.get("source_event_ids", ())
    )
    # several trials of one build, all at the same task, are numbered
    names = {name.partition(":attempt-")[0] for name in own}
    if len(names) != 1:
        return None
    name = names.pop()
    is_of_calls = row.get("tools_called") or row.get("calls") is not None
    return name if is_of_calls else f"{name}\x1f{row['asked']}"


_TOOLS = frozenset({"ci log", "test report"})
"""Sources whose builds are runs of a project's tests."""
_APART = timedelta(seconds=60)
"""A run's log and its test report are written at most this long one after the other."""


class _Reading(NamedTuple):
    started_at: str
    build: str
    completed_at: str
    source: str

    def is_of(self, first: _Reading) -> bool:
        """Return whether it reads the run that was read before."""
        if first.source != self.source:
            return from_iso(self.started_at) <= from_iso(first.completed_at) + _APART
        times = (first.started_at, first.completed_at)
        return times[0] != times[1] and times == (self.started_at, self.completed_at)


def is_of_a_tool(row: Row) -> bool:
    """Return whether an episode is from a run of a tool."""
    return row.get("source") in _TOOLS


def one_build_a_run(reader: Reader, rows: Sequence[Row]) -> list[Row]:
    """Return a scope's episodes so that each run of a tool counts as one build, also where it was read as a log and as a report, or twice."""
    readings: dict[str, _Reading] = {}
    for row in filter(is_of_a_tool, rows):
        for name in evidence_of(row):
            if (build := _build(reader, name, row.get("project_id"))).get("started_at"):
                ended = build.get("completed_at") or build["started_at"]
                reading = _Reading(build["started_at"], name, ended, row["source"])
                readings.setdefault(name, reading)
    same: dict[str, str] = {}
    firsts: list[_Reading] = []
    for one in sorted(readings.values()):
        if (first := next((first for first in firsts[-20:] if one.is_of(first)), None)) is not None:
            same[one.build] = first.build
        else:
            firsts.append(one)
    return [_renamed(row, same) if is_of_a_tool(row) else row for row in rows] if same else list(rows)


def _renamed(row: Row, same: Mapping[str, str]) -> Row:
    """Return an episode with the builds that read its runs first."""
    builds = list(dict.fromkeys(same.get(build, build) for build in row.get("evidence_build_ids", ())))
    return {**row, "evidence_build_ids": builds, "build_id": same.get(row.get("build_id", ""), row.get("build_id"))}


def waiting(reader: Reader, run: Row, types: Sequence[str], *, now: str, until: int) -> Iterator[tuple[Scope, int]]:
    """Yield the scopes in which memories of these types have changed since a run (empty: all), each once.

    Each comes with the first event that it waits for, in the order of these: once some scopes are done, everything before the next one's
    event has been read. The journal is read on demand; events after `until` are left to the next run.
    """
    known: set[Scope] = set()
    since = run.get("seq", 0)
    kinds = [MEMORY_TYPES.index(kind) for kind in types]

    def new(found: Iterable[tuple[Scope | None, int]]) -> list[tuple[Scope, int]]:
        first: dict[Scope, int] = {}
        for scope, seq in found:
            if scope is not None and scope not in known:
                first[scope] = min(seq, first.get(scope, seq))
        known.update(first)
        return sorted(first.items(), key=lambda item: (item[1], item[0][0] or "", item[0][1] or ""))

    with reader.frozen():
        index = reader.index
        is_wanted = index.memories() & np.isin(index.column("type"), kinds)
        if since:  # what has ended by itself
            ends = index.column("invalid_days")
            is_wanted &= (ends > epoch_days(run["applied_at"])) & (ends <= epoch_days(now))
        slots, seqs = np.flatnonzero(is_wanted).tolist(), index.column("seq")
        found = new((_scope_of(index, slot), since + 1 if since else int(seqs[slot])) for slot in slots)
    yield from found
    for changes in changes_after(reader, since or until, WATCH.touched, until=until, most_events=MOST_EVENTS):
        with reader.frozen():
            found = new(_places(reader, changes.touched, kinds))
        yield from found


def _places(reader: Reader, touched: Mapping[str, int], kinds: Sequence[int]) -> Iterator[tuple[Scope | None, int]]:
    """Yield the scopes of memories of these types, and of deleted ones, with their events."""
    index = reader.index
    is_record, is_live, of_type = (index.column(name) for name in ("is_record", "is_live", "type"))
    slots = {one: index.ids.find(one) for one in touched}
    for one, slot in slots.items():
        if slot >= 0 and not is_record[slot] and (not is_live[slot] or of_type[slot] in kinds):
            yield _scope_of(index, slot), touched[one]
    gone = sorted(one for one, slot in slots.items() if slot < 0)
    for row, _ in reader.deleted(gone) if gone else ():
        if MEMORY_TYPES.index(row["type"]) in kinds:
            yield (row.get("project_id"), row.get("task_id")), touched[row["id"]]


def _scope_of(index: Index, slot: int) -> Scope | None:
    """Return the scope of a memory; None if its name is forgotten, as no live memory is left in it: then nothing is to be done there."""
    codes = {kind: int(index.column(kind)[slot]) for kind in ("project", "task")}
    names = {kind: index.scopes.names[code] for kind, code in codes.items() if code >= 0}
    if any(map(is_gone, names.values())):
        return None
    project, task = (names.get(kind, "").removeprefix(scope_name(kind, "")) or None for kind in ("project", "task"))
    return project, task


@dataclass(frozen=True, slots=True)
class IncrementalRun(Generic[R]):
    """One kind of learning, from each scope in which memories of its `types` have changed since the last run."""

    run_key: str
    types: Sequence[str]
    plan: Callable[[View, Scope, Deletions], Plan[R]]
    nothing: R
    """The result for no scope, to which those of the scopes are added."""
    conclude: Callable[[R, str, int], Payload] | None = None
    """Returns the event that ends the run from the result, its time and the last event read. Default: only sleep records progress."""

    def run(
        self, store: AgentMemoryStore, is_time_up: TimeIsUp, *, embedder: Embedder | None = None, is_due: bool = False
    ) -> R:
        """Learn from each scope that has changed, at least from one; once the time is up, the rest waits.

        A run that `is_due`, or has read many events, is concluded even if nothing has changed.
        """
        reader = store.reader
        with reader.frozen():
            began_at, now = reader.index.offset.seq, store.now()
            since = last_run(reader, self.run_key).get("seq", 0)
        total, own, is_first = self.nothing, set[int](), True
        deletions = cache(reader.deleted_of)

        def planned(scope: Scope, view: View) -> Plan[R]:
            with reader.frozen():
                is_alone = reader.index.offset.seq == began_at + len(own)  # otherwise others may have deleted something
                return self.plan(view, scope, deletions if is_alone else reader.deleted_of)

        def concluded(view: View, up_to: int | None = None) -> Plan[None]:
            """Read up to where it began, if others have changed memories since."""
            if up_to is None:
                others = (event for event in view.reader.events_after(began_at) if event.seq not in own)
                up_to = began_at if any(map(WATCH.touched, others)) else view.reader.index.offset.seq
            return Plan(None, [account(self.conclude(total, now, up_to))] if self.conclude else [])

        for scope, seq in waiting(reader, last_run(reader, self.run_key), self.types, now=now, until=began_at):
            if is_time_up() and not is_first:
                if self.conclude and seq - 1 > since:
                    carry_out(store, partial(concluded, up_to=seq - 1), attempts=1)
                return total.model_copy(update={"complete": False})
            made = carry_out(
                store, partial(planned, scope), embedder=embedder or store.embedder, rests_on=WATCH.touched
            )
            total, is_first = added(total, made.result), False
            own.update(made.seqs)
        if self.conclude and (is_due or not is_first or began_at - since > _MOST_REREAD):
            carry_out(store, concluded, attempts=1)
        return total
