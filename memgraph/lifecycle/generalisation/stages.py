"""Stages of a pattern: its state at its third build, and after each later build (design §5).

A history imported at once yields the generalisations that it would have yielded live: each is valid from its third
build on, says what was known then, and grows. So a stage has the episodes and builds of its time, in the words that the
episodes had then; the journal holds the earlier words where later builds changed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memgraph.fold.fold import last_known
from memgraph.journal.envelope import Event
from memgraph.lifecycle.evidence.evidence import evidence_of
from memgraph.lifecycle.generalisation.extractive_text import by_centrality
from memgraph.lifecycle.generalisation.patterns import LEAST_EVIDENCE, Pattern
from memgraph.model.events.memories import MemoryAdded, MemoryMerged
from memgraph.model.ids import natural_id
from memgraph.ports import Row
from memgraph.store.query import Reader

_EACH_UP_TO = 10
"""Up to this many builds each one is a stage; then the twentieth, the fortieth and so on, and the latest."""

Times = dict[str, str]
"""The time of each piece of evidence; for a build, when it was completed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A pattern at a point in time.

    Attributes
    ----------
    at : str
        Time of its latest evidence.
    times : tuple of str
        Times of all its evidence, ascending: a merged episode has the time of one of its builds only.
    came : dict of str to str
        Time of arrival of each of its episodes, by id.
    is_latest : bool
        Whether it is the current state.
    """

    pattern: Pattern
    at: str
    times: tuple[str, ...]
    came: Mapping[str, str]
    is_latest: bool = True


@dataclass(slots=True)
class _Growth:
    """A pattern with the times of its evidence.

    Attributes
    ----------
    evidence, solved : Times
        Times of its episodes' evidence, and of the trials that solved its task.
    known : frozenset of str
        Evidence that the continued generalisation covers already.
    since : str
        Time up to which that generalisation is current; empty for a new one.
    """

    pattern: Pattern
    evidence: Times
    solved: Times
    known: frozenset[str] = frozenset()
    since: str = ""

    def stage_times(self) -> list[str]:
        """Return the times at which it had grown enough for a new stage, ascending: from its third or last covered build on."""
        times = sorted(self.evidence.values())
        if not self.pattern.same and len(times) < LEAST_EVIDENCE:
            return []  # faded evidence counts, too, but its times are lost
        begins = self.since if self.pattern.same else times[LEAST_EVIDENCE - 1]
        fresh = [at for key, at in self.evidence.items() if key not in self.known]
        moments = sorted({at for at in [*fresh, *self.solved.values()] if at > begins})
        if not self.pattern.same:
            moments = [begins, *moments]
        many = [len(self.known | self.seen_by(at)) + sum(one <= at for one in self.solved.values()) for at in moments]
        steps = [_step(number) for number in many]
        before = _step(len(self.known)) if self.pattern.same else 0
        return [at for at, step, last in zip(moments, steps, [before, *steps], strict=False) if step != last]

    def seen_by(self, at: str) -> frozenset[str]:
        """Return the evidence that existed at a time."""
        return frozenset(key for key, then in self.evidence.items() if then <= at)

    def times(self, at: str) -> tuple[str, ...]:
        """Return the times of the evidence that existed at a time, ascending."""
        return tuple(sorted(then for then in self.evidence.values() if then <= at))


def _step(many: int) -> int:
    """Return the growth step for a number of builds."""
    return many if many <= _EACH_UP_TO else _EACH_UP_TO + (many // _EACH_UP_TO).bit_length() - 1


def stages(reader: Reader, patterns: Sequence[Pattern]) -> list[list[Stage]]:
    """Return the stages of each pattern; the latest one, which is the pattern itself, comes last.

    A pattern that continues a generalisation has the stages since its last update. A pattern that has lost part of its
    evidence has only the latest stage: its former states are unknown.

    Notes
    -----
    Costs one pass over the journal if any of the grown episodes has several builds.
    """
    growths = [_growth(reader, pattern) for pattern in patterns]
    stage_times = [growth.stage_times() if _grows(growth.pattern) else [] for growth in growths]
    merged = {
        row["id"]
        for growth, moments in zip(growths, stage_times, strict=True)
        if len(moments) > 1
        for row in (*growth.pattern.members, *(growth.pattern.solved or ()))
        if len(row.get("evidence_build_ids", ())) > 1
    }
    histories = reader.histories(sorted(merged))
    return [_stages(growth, moments, histories) for growth, moments in zip(growths, stage_times, strict=True)]


def _grows(pattern: Pattern) -> bool:
    """Return whether its former states are known: all of its evidence is in episodes in force."""
    same = pattern.same
    is_whole = same is None or not (same.lost or same.faded or same.collected or same.row.get("is_pinned", False))
    return is_whole and bool(pattern.members)


def _growth(reader: Reader, pattern: Pattern) -> _Growth:
    project = pattern.experience.scope[0]
    faded = [{"evidence_build_ids": [key]} for key in sorted(pattern.evidence) if not key.startswith("memory ")]
    evidence = _times(reader, project, [*pattern.covered, *faded])
    solved = _times(reader, project, pattern.solved or ())
    same = pattern.same
    if same is None:
        return _Growth(pattern, evidence, solved)
    known = {*same.row.get("evidence_build_ids", ()), *(f"memory {one}" for one in same.live)}
    return _Growth(pattern, evidence, solved, frozenset(known), same.row.get("occurred_at", ""))


def _times(reader: Reader, project: str | None, rows: Iterable[Row]) -> Times:
    """Return the times of these episodes' evidence."""
    times: Times = {}
    for row in rows:
        for key in evidence_of(row):
            build = reader.record("Build", natural_id("build", key, project_id=project)) or {}
            at: str = build.get("completed_at") or row.get("occurred_at", "")
            if at:
                times[key] = min(at, times.get(key, at))
    return times


def _stages(growth: _Growth, stage_times: Sequence[str], histories: Mapping[str, Sequence[Event]]) -> list[Stage]:
    pattern = growth.pattern
    rows = [*pattern.members, *(pattern.solved or ())]
    came = {row["id"]: _came_at(row, histories.get(row["id"], ())) for row in rows}
    ends = [*growth.evidence.values(), *growth.solved.values()]
    latest = max(ends, default=growth.since)
    found: dict[str, Stage] = {}
    for stage_at in stage_times:
        at = max(
            stage_at, min(came[row["id"]] for row in pattern.members)
        )  # the first one recorded may describe a later build
        if at < latest:
            found[at] = Stage(_as_of(growth, at, came, histories), at, growth.times(at), came, is_latest=False)
    return [*found.values(), Stage(pattern, latest, growth.times(latest), came)]


def _came_at(row: Row, history: Sequence[Event]) -> str:
    """Return when an episode arrived: its own time may be that of a later build that changed its words."""
    first = next((event for event in history if isinstance(event.payload, MemoryAdded)), None)
    return first.occurred_at if first else str(row.get("occurred_at", ""))


def _as_of(growth: _Growth, at: str, came: Mapping[str, str], histories: Mapping[str, Sequence[Event]]) -> Pattern:
    """Return a pattern with the evidence and the words of a point in time."""
    pattern = growth.pattern
    seen = growth.known | growth.seen_by(at)
    members = _rows_as_of(pattern.members, at, seen, came, histories)
    central = by_centrality(members, pattern.weights)
    solved = pattern.solved
    if solved:
        solved = _rows_as_of(solved, at, {key for key, then in growth.solved.items() if then <= at}, came, histories)
    against = [row for row in pattern.against if row.get("occurred_at", "") <= at]
    evidence = seen & pattern.evidence
    return replace(pattern, members=central, covered=central, evidence=evidence, solved=solved, against=against)


def _rows_as_of(
    rows: Iterable[Row],
    at: str,
    seen: Iterable[str],
    came: Mapping[str, str],
    histories: Mapping[str, Sequence[Event]],
) -> list[Row]:
    """Return the episodes that existed at a time, without what later builds added to them."""
    builds = frozenset(seen)
    there = [row for row in rows if came[row["id"]] <= at and not builds.isdisjoint(evidence_of(row))]
    return [
        row if evidence_of(row) <= builds else _as_reported_by(builds, row, histories.get(row["id"], ()))
        for row in there
    ]


def _as_reported_by(builds: frozenset[str], row: Row, history: Sequence[Event]) -> Row:
    """Return an episode as it was when only some of its builds had reported it."""
    events, told_by = [], frozenset[str]()
    for event in history:
        told_by = frozenset(event.content.get("changed", {}).get("evidence_build_ids", told_by))
        if not isinstance(event.payload, MemoryMerged) or told_by <= builds:
            events.append(event)
    known = last_known(events, row["id"])
    return known.row if known else row
