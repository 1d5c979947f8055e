"""Runs of tools: which builds are readings of one run, and which later runs passed. Pure, but for the builds' records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from memgraph.model.ids import natural_id
from memgraph.model.timestamps import from_iso
from memgraph.ports import Row
from memgraph.store.query import Reader

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


def passed_after(builds: Iterable[Row], failed: Sequence[Row], met_at: Sequence[str]) -> list[str]:
    """Return when runs of the tool that reported these failures passed, ascending, after the first of the times given."""
    agents = {agent for row in failed for agent in row.get("agents_involved", ())}
    first = min(met_at, default="9999")
    passed = (one for one in builds if one.get("outcome") == "success" and not agents.isdisjoint(one.get("agents", ())))
    return sorted(one["completed_at"] for one in passed if one.get("completed_at", "") > first)


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
