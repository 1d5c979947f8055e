"""Patterns: which generalisations to create, update, replace and retire for the given experience. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memgraph.lifecycle.communities.lineage import Successor, are_kin, succession
from memgraph.lifecycle.communities.louvain import communities
from memgraph.lifecycle.communities.tag_overlap import LARGE_FROM, tag_weights
from memgraph.lifecycle.evidence.evidence import evidence_of, may_quote
from memgraph.lifecycle.evidence.experience import Experience, Generalisation
from memgraph.lifecycle.evidence.runs import is_of_a_tool
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.lifecycle.generalisation.extractive_text import by_centrality, has_lesson
from memgraph.lifecycle.generalisation.lessons import Statements, is_change, said_again, words_of
from memgraph.model.ids import canonical_name
from memgraph.ports import Row

LEAST_EVIDENCE = 3
"""Minimum number of builds for a pattern (seed 0)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A community of episodes that is, or becomes, one generalisation.

    Attributes
    ----------
    members, covered : list of Row
        Its episodes in force; these and the faded ones that it still covers. The most typical first.
    evidence : frozenset of str
        The builds in which it was seen; an episode without a build counts as one.
    same : Generalisation or None
        The generalisation that it continues.
    replaced : list of Generalisation
        Generalisations that were joined or split: it is a new one.
    solved : list of Row or None
        Trials that solved the task of its failed trials; None if these must not be quoted, or no task is named.
    against : list of Row
        Episodes that state the same with the opposite outcome.
    weights : mapping
        Weight of each tag in its scope.
    """

    experience: Experience
    members: list[Row]
    covered: list[Row]
    evidence: frozenset[str]
    same: Generalisation | None = None
    replaced: list[Generalisation] = field(default_factory=list)
    solved: Sequence[Row] | None = None
    against: Sequence[Row] = ()
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """What to do about one experience.

    Attributes
    ----------
    groups : list of list of Pattern
        Patterns that were one generalisation, or are one now, form a group and must be committed together.
    retired : list of Generalisation
        Generalisations that lost their evidence, or whose episodes share no lesson.
    latest : str
        Time of the latest episode.
    episodes, communities : int
        Number of episodes read; number of communities of at least two episodes.
    """

    groups: list[list[Pattern]] = field(default_factory=list)
    retired: list[Generalisation] = field(default_factory=list)
    latest: str = ""
    episodes: int = 0
    communities: int = 0


def plans(experiences: Sequence[Experience]) -> list[Plan]:
    """Return the plan for each; those of one scope share the weights of its tags and words."""
    by_scope: dict[object, list[Row]] = {}
    for experience in experiences:
        by_scope.setdefault(experience.scope, []).extend(experience.episodes)
    scopes = {scope: _Scope(rows) for scope, rows in by_scope.items()}
    return [_plan(experience, scopes[experience.scope]) for experience in experiences]


class _Scope:
    """What the episodes of a scope have in common, whatever their outcome."""

    def __init__(self, episodes: Sequence[Row]) -> None:
        self.episodes = episodes
        self.is_large = len(episodes) >= LARGE_FROM
        self.weights = tag_weights(map(_tags, episodes))
        self.statements = Statements(episodes, tag_weights(map(words_of, episodes)))


def _plan(experience: Experience, scope: _Scope) -> Plan:
    episodes, known = experience.episodes, experience.in_force
    place_of = {row["id"]: place for place, row in enumerate(episodes)}
    live = [frozenset(place_of[one] for one in one_known.live) for one_known in known]
    settled = [sorted(places) for places in live]
    plan = Plan(episodes=len(episodes))
    plan.latest = max((row.get("occurred_at", "") for row in episodes), default="")
    covered = frozenset[str]().union(*(one.live for one in known))
    found: list[list[int]] = []
    for members in _communities(episodes, scope, settled=settled):
        plan.communities += len(members) > 1
        found += _with_a_lesson(members, episodes, scope, covered)
    changes = [row for row in episodes if is_change(row)]
    found += [sorted(place_of[row["id"]] for row in rows) for rows in said_again(changes, covered)]
    besides = [
        one_known.evidence_besides([episodes[place] for place in sorted(places)])
        for one_known, places in zip(known, live, strict=True)
    ]
    seen = {
        place: frozenset().union(*(evidence_of(episodes[one]) for one in members))
        for place, members in enumerate(found)
    }
    kept = [
        place
        for place in seen
        if len(seen[place]) >= LEAST_EVIDENCE or _is_sustained(found[place], seen[place], live, besides)
    ]
    followed = succession([found[place] for place in kept], live)
    unstated: set[int] = set()
    for group in followed.groups:
        patterns = []
        for successor in group:
            place = kept[successor.community]
            evidence = seen[place].union(*(besides[one] for one in successor.of)) if len(group) == 1 else seen[place]
            rows = [episodes[one] for one in found[place]]
            if len(evidence) < LEAST_EVIDENCE or _is_put_away(experience, rows, evidence, successor):
                continue
            pattern = _pattern(experience, rows, evidence, successor, scope)
            if has_lesson(pattern.covered, experience.outcome, pattern.solved):
                patterns.append(pattern)
            else:
                unstated.update(successor.of)
        unstated.difference_update(one for pattern in patterns for one in _places(known, pattern))
        if patterns:
            plan.groups.append(patterns)
    for one, left in ((known[place], besides[place]) for place in followed.heirless):
        if not (one.live or one.lost) or one.row.get("is_pinned", False):  # pinned ones are left to the user
            continue
        if one.lost and len(left) >= LEAST_EVIDENCE and has_lesson(one.faded, experience.outcome):
            plan.groups.append([_pattern_of_faded(experience, one, left, scope)])  # composed again from the faded ones
        elif one.lost or len(left) < LEAST_EVIDENCE:
            plan.retired.append(one)
    plan.retired += [known[place] for place in sorted(unstated) if not known[place].row.get("is_pinned", False)]
    return plan


def _places(known: Sequence[Generalisation], pattern: Pattern) -> list[int]:
    own = {id(one) for one in (pattern.same, *pattern.replaced)}
    return [place for place, one in enumerate(known) if id(one) in own]


def _with_a_lesson(
    members: list[int], episodes: Sequence[Row], scope: _Scope, covered: frozenset[str]
) -> list[list[int]]:
    """Return the parts of a community whose episodes state the same; trials of one task are one part."""
    rows = {episodes[place]["id"]: place for place in members}
    if task_of(episodes[members[0]]) is not None:
        return [members]
    groups = scope.statements.same([episodes[place] for place in members], covered)
    return [sorted(rows[row["id"]] for row in group) for group in groups]


def _pattern_of_faded(experience: Experience, same: Generalisation, evidence: frozenset[str], scope: _Scope) -> Pattern:
    covered = by_centrality(same.faded, scope.weights)
    solved = _solved(experience, covered)
    return Pattern(experience, [], covered, evidence, same=same, solved=solved, weights=scope.weights)


def _communities(episodes: Sequence[Row], scope: _Scope, *, settled: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the communities: all trials of one named task, whatever their words, and otherwise episodes with shared tags.

    Changes of a history are left out, as their tags name files, and failures that a tool reported: the analysis of errors
    tells of these, with the runs that passed.
    """
    by_task: dict[str, list[int]] = {}
    others: list[int] = []
    for place, row in enumerate(episodes):
        task = task_of(row)
        if task is not None:
            by_task.setdefault(task, []).append(place)
        elif not is_change(row) and not is_of_a_tool(row):
            others.append(place)
    number = {place: one for one, place in enumerate(others)}
    kept = [[number[place] for place in places if place in number] for places in settled]
    tags = [_tags(episodes[place]) for place in others]
    found = communities(tags, scope.weights, is_large=scope.is_large, settled=list(filter(None, kept)))
    return sorted([*by_task.values(), *([others[one] for one in members] for members in found)])


def _pattern(
    experience: Experience, rows: list[Row], evidence: frozenset[str], successor: Successor, scope: _Scope
) -> Pattern:
    known = [experience.in_force[place] for place in successor.of]
    central = by_centrality(rows, scope.weights)
    same = known[0] if successor.is_same else None
    covered = by_centrality([*rows, *same.faded], scope.weights) if same and same.faded else central
    return Pattern(
        experience,
        central,
        covered,
        evidence,
        same=same,
        replaced=[] if same else known,
        solved=_solved(experience, covered),
        against=_against(experience, covered, scope),
        weights=scope.weights,
    )


def _against(experience: Experience, covered: Sequence[Row], scope: _Scope) -> list[Row]:
    """Return the episodes that state the same with the opposite outcome."""
    opposite = {"positive": "negative", "negative": "positive"}.get(experience.outcome)
    if opposite is None or is_change(covered[0]) or task_of(covered[0]) is not None:
        return []
    return [row for row in scope.statements.like(covered, opposite) if may_quote(row, covered)]


def _solved(experience: Experience, covered: Sequence[Row]) -> Sequence[Row] | None:
    """Return the trials that solved the failed trials' task; None if they must not be quoted, as “unsolved” would be wrong."""
    tasks = {task_of(row) for row in covered}
    task = tasks.pop() if len(tasks) == 1 else None
    if task is None or experience.outcome != "negative":
        return None
    solved = experience.solved.get(task, ())
    those = [
        row for row in solved if not row.get("is_suppressed") and "invalid_at" not in row and may_quote(row, covered)
    ]
    return those if those or not solved else None


def _is_sustained(
    members: list[int], seen: frozenset[str], live: list[frozenset[int]], besides: list[frozenset[str]]
) -> bool:
    """Return whether a community has enough evidence, including faded evidence kept by a related generalisation."""
    return any(
        kept and are_kin(len(places.intersection(members)), members, places) and len(seen | kept) >= LEAST_EVIDENCE
        for places, kept in zip(live, besides, strict=True)
    )


def _is_put_away(experience: Experience, rows: list[Row], evidence: frozenset[str], successor: Successor) -> bool:
    """Return whether somebody has hidden the generalisation of most of these episodes; new evidence restores faded ones only."""
    if successor.is_same:
        return False
    for known in experience.put_away:
        if sum(row["id"] in known.live for row in rows) * 2 > len(rows):
            has_new = evidence - set(known.row.get("evidence_build_ids", ())) - {f"memory {one}" for one in known.live}
            if known.blocks or not has_new:
                return True
    return False


def _tags(row: Row) -> list[str]:
    return [canonical_name(tag) for tag in row.get("tags", ())]
