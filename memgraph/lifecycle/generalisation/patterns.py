"""Patterns: which generalisations to create, update, replace and retire for the given experience. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memgraph.lifecycle.communities.lineage import Successor, are_kin, succession
from memgraph.lifecycle.communities.louvain import communities
from memgraph.lifecycle.communities.tag_overlap import LARGE_FROM, tag_weights
from memgraph.lifecycle.evidence.evidence import may_quote
from memgraph.lifecycle.evidence.experience import Experience, Generalisation, evidence_of
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.lifecycle.generalisation.extractive_text import by_centrality
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
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """What to do about one experience.

    Attributes
    ----------
    groups : list of list of Pattern
        Patterns that were one generalisation, or are one now, form a group and must be committed together.
    retired : list of Generalisation
        Generalisations that lost their evidence.
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
    """Return the plan for each; those of one scope share its tag weights."""
    tags = [[_tags(row) for row in experience.episodes] for experience in experiences]
    by_scope: dict[object, list[list[str]]] = {}
    for experience, own in zip(experiences, tags, strict=True):
        by_scope.setdefault(experience.scope, []).extend(own)
    weights = {scope: tag_weights(own) for scope, own in by_scope.items()}
    return [
        _plan(experience, own, weights[experience.scope], is_large=len(by_scope[experience.scope]) >= LARGE_FROM)
        for experience, own in zip(experiences, tags, strict=True)
    ]


def _plan(experience: Experience, tags: list[list[str]], weights: dict[str, float], *, is_large: bool) -> Plan:
    episodes, known = experience.episodes, experience.in_force
    place_of = {row["id"]: place for place, row in enumerate(episodes)}
    live = [frozenset(place_of[one] for one in one_known.live) for one_known in known]
    settled = [sorted(places) for places in live]
    found = _communities(episodes, tags, weights, is_large=is_large, settled=settled)
    plan = Plan(episodes=len(episodes), communities=sum(len(members) > 1 for members in found))
    plan.latest = max((row.get("occurred_at", "") for row in episodes), default="")
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
    for group in followed.groups:
        patterns = []
        for successor in group:
            place = kept[successor.community]
            evidence = seen[place].union(*(besides[one] for one in successor.of)) if len(group) == 1 else seen[place]
            rows = [episodes[one] for one in found[place]]
            if len(evidence) >= LEAST_EVIDENCE and not _is_put_away(experience, rows, evidence, successor):
                patterns.append(_pattern(experience, rows, evidence, successor, weights))
        if patterns:
            plan.groups.append(patterns)
    for one, left in ((known[place], besides[place]) for place in followed.heirless):
        if not (one.live or one.lost) or one.row.get("is_pinned", False):  # pinned ones are left to the user
            continue
        if one.lost and one.faded and len(left) >= LEAST_EVIDENCE:  # composed again from the faded ones
            plan.groups.append([_pattern_of_faded(experience, one, left, weights)])
        elif one.lost or len(left) < LEAST_EVIDENCE:
            plan.retired.append(one)
    return plan


def _pattern_of_faded(
    experience: Experience, same: Generalisation, evidence: frozenset[str], weights: Mapping[str, float]
) -> Pattern:
    covered = by_centrality(same.faded, weights)
    return Pattern(experience, [], covered, evidence, same=same, solved=_solved(experience, covered), weights=weights)


def _communities(
    episodes: Sequence[Row],
    tags: Sequence[list[str]],
    weights: dict[str, float],
    *,
    is_large: bool,
    settled: Sequence[Sequence[int]],
) -> list[list[int]]:
    """Return the communities: all trials of one named task, whatever their words, and otherwise episodes with shared tags."""
    by_task: dict[str, list[int]] = {}
    others: list[int] = []
    for place, row in enumerate(episodes):
        task = task_of(row)
        (others if task is None else by_task.setdefault(task, [])).append(place)
    if not by_task:
        return communities(tags, weights, is_large=is_large, settled=settled)
    number = {place: one for one, place in enumerate(others)}
    kept = [[number[place] for place in places if place in number] for places in settled]
    found = communities([tags[place] for place in others], weights, is_large=is_large, settled=list(filter(None, kept)))
    return sorted([*by_task.values(), *([others[one] for one in members] for members in found)])


def _pattern(
    experience: Experience,
    rows: list[Row],
    evidence: frozenset[str],
    successor: Successor,
    weights: Mapping[str, float],
) -> Pattern:
    known = [experience.in_force[place] for place in successor.of]
    central = by_centrality(rows, weights)
    if not successor.is_same:
        solved = _solved(experience, central)
        return Pattern(experience, central, central, evidence, replaced=known, solved=solved, weights=weights)
    same = known[0]
    covered = by_centrality([*rows, *same.faded], weights) if same.faded else central
    return Pattern(
        experience, central, covered, evidence, same=same, solved=_solved(experience, covered), weights=weights
    )


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
