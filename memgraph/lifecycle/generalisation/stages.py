"""What a pattern was when its third build had told it, and what each later build made of it (design §5).

History that is read at once becomes the generalisations that it would have become as it happened: each holds from its third build
on, says what was known then, and grows. So a stage of a pattern has the episodes and the builds that were there by then, with the
words that the episodes had by then, which the journal knows where later builds gave them others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memgraph.fold.last_state import last_known
from memgraph.journal.envelope import Event
from memgraph.lifecycle.evidence.experience import evidence_of
from memgraph.lifecycle.generalisation.extractive_text import by_centrality
from memgraph.lifecycle.generalisation.patterns import LEAST_EVIDENCE, Pattern
from memgraph.model.events.memories import MemoryAdded, MemoryMerged
from memgraph.model.ids import natural_id
from memgraph.ports import Row
from memgraph.store.query import Reader

_EACH_UP_TO = 10
"""Up to so many builds each of them is a stage; then the twentieth, the fortieth and so on, and the latest."""

Times = dict[str, str]
"""When each piece of evidence happened: a build when it was completed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A pattern at a time.

    Attributes
    ----------
    at : str
        When the last of what it tells happened.
    came : dict of str to str
        When each of its episodes came, by id.
    is_latest : bool
        Whether it tells all that there is.
    """

    pattern: Pattern
    at: str
    came: Mapping[str, str]
    is_latest: bool = True


@dataclass(slots=True)
class _Growth:
    """A pattern, and what is known of its time.

    Attributes
    ----------
    evidence, solved : Times
        Of what its episodes are evidence of, and of the trials that solved its task.
    known : frozenset of str
        What the generalisation that goes on as it tells of already.
    since : str
        Up to when that one tells; empty for a new one.
    """

    pattern: Pattern
    evidence: Times
    solved: Times
    known: frozenset[str] = frozenset()
    since: str = ""

    def turns(self) -> list[str]:
        """Return when it had grown enough to be told again, ascending: from its third build on, or since it was told last."""
        times = sorted(self.evidence.values())
        if not self.pattern.same and len(times) < LEAST_EVIDENCE:
            return []  # what has faded is evidence, too, and nobody knows any more when it was
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
        """Return what was evidence by a time."""
        return frozenset(key for key, then in self.evidence.items() if then <= at)


def _step(many: int) -> int:
    """Return which step of growth so many builds are."""
    return many if many <= _EACH_UP_TO else _EACH_UP_TO + (many // _EACH_UP_TO).bit_length() - 1


def stages(reader: Reader, patterns: Sequence[Pattern]) -> list[list[Stage]]:
    """Return for each pattern what it was as it grew: the latest stage, which is the pattern itself, comes last.

    One that goes on as a generalisation has the stages since that was told last. One whose evidence is in part gone has but the
    latest: nobody knows any more what it was.

    Notes
    -----
    Costs one pass over the journal if episodes of several builds are among those that grew.
    """
    growths = [_growth(reader, pattern) for pattern in patterns]
    turns = [growth.turns() if _grows(growth.pattern) else [] for growth in growths]
    merged = {
        row["id"]
        for growth, moments in zip(growths, turns, strict=True)
        if len(moments) > 1
        for row in (*growth.pattern.members, *(growth.pattern.solved or ()))
        if len(row.get("evidence_build_ids", ())) > 1
    }
    histories = reader.histories(sorted(merged))
    return [_stages(growth, moments, histories) for growth, moments in zip(growths, turns, strict=True)]


def _grows(pattern: Pattern) -> bool:
    """Whether what it was before can be told: all of its evidence is there, in episodes in force."""
    same = pattern.same
    is_whole = same is None or not (same.lost or same.faded or same.collected or same.row.get("is_pinned", False))
    return is_whole and bool(pattern.members)


def _growth(reader: Reader, pattern: Pattern) -> _Growth:
    project = pattern.experience.scope[0]
    evidence = _times(reader, project, pattern.told)
    solved = _times(reader, project, pattern.solved or ())
    same = pattern.same
    if same is None:
        return _Growth(pattern, evidence, solved)
    known = {*same.row.get("evidence_build_ids", ()), *(f"memory {one}" for one in same.live)}
    return _Growth(pattern, evidence, solved, frozenset(known), same.row.get("occurred_at", ""))


def _times(reader: Reader, project: str | None, rows: Iterable[Row]) -> Times:
    """Return when what these episodes are evidence of happened."""
    times: Times = {}
    for row in rows:
        for key in evidence_of(row):
            build = reader.record("Build", natural_id("build", key, project_id=project)) or {}
            at: str = build.get("completed_at") or row.get("occurred_at", "")
            times[key] = min(at, times.get(key, at))
    return times


def _stages(growth: _Growth, turns: Sequence[str], histories: Mapping[str, Sequence[Event]]) -> list[Stage]:
    pattern = growth.pattern
    rows = [*pattern.members, *(pattern.solved or ())]
    came = {row["id"]: _came_at(row, histories.get(row["id"], ())) for row in rows}
    ends = [*growth.evidence.values(), *growth.solved.values()]
    latest = max(ends, default=growth.since)
    found: dict[str, Stage] = {}
    for turn in turns:
        at = max(
            turn, min(came[row["id"]] for row in pattern.members)
        )  # the first to be recorded may tell of a later build
        if at < latest:
            found[at] = Stage(_as_of(growth, at, came, histories), at, came, is_latest=False)
    return [*found.values(), Stage(pattern, latest, came)]


def _came_at(row: Row, history: Sequence[Event]) -> str:
    """Return when an episode came: its time may have become that of a later build, whose words it has."""
    added = (event for event in history if isinstance(event.payload, MemoryAdded))
    first = next(added, None)
    return first.occurred_at if first else str(row.get("occurred_at", ""))


def _as_of(growth: _Growth, at: str, came: Mapping[str, str], histories: Mapping[str, Sequence[Event]]) -> Pattern:
    """Return a pattern with the evidence, and in the words, of a time."""
    pattern = growth.pattern
    seen = growth.known | growth.seen_by(at)
    members = _rows_as_of(pattern.members, at, seen, came, histories)
    central = by_centrality(members, pattern.weights)
    solved = pattern.solved
    if solved:
        solved = _rows_as_of(solved, at, {key for key, then in growth.solved.items() if then <= at}, came, histories)
    return replace(pattern, members=central, told=central, evidence=seen & pattern.evidence, solved=solved)


def _rows_as_of(
    rows: Iterable[Row],
    at: str,
    seen: Iterable[str],
    came: Mapping[str, str],
    histories: Mapping[str, Sequence[Event]],
) -> list[Row]:
    """Return the episodes that were there by a time, without what builds said of them that had not been by then."""
    builds = frozenset(seen)
    there = [row for row in rows if came[row["id"]] <= at and not builds.isdisjoint(evidence_of(row))]
    return [row if evidence_of(row) <= builds else _told_by(builds, row, histories.get(row["id"], ())) for row in there]


def _told_by(builds: frozenset[str], row: Row, history: Sequence[Event]) -> Row:
    """Return an episode as it was when only some builds had told it."""
    events, told_by = [], frozenset[str]()
    for event in history:
        told_by = frozenset(event.content.get("changed", {}).get("evidence_build_ids", told_by))
        if not isinstance(event.payload, MemoryMerged) or told_by <= builds:
            events.append(event)
    known = last_known(events, row["id"])
    return known.row if known else row
