"""Which generalisations an experience calls for: what is to be made, brought up, replaced and taken back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memgraph.lifecycle.communities.lineage import Heir, are_kin, succession
from memgraph.lifecycle.communities.louvain import communities
from memgraph.lifecycle.communities.tag_overlap import LARGE_FROM, tag_weights
from memgraph.lifecycle.evidence.evidence import may_tell
from memgraph.lifecycle.evidence.experience import Experience, Known, evidence_of
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.lifecycle.generalisation.extractive_text import by_centrality
from memgraph.model.ids import canonical_name
from memgraph.ports import Row

LEAST_EVIDENCE = 3
"""Builds in which something was seen, before it is a pattern (seed 0)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A community of episodes that is, or becomes, one generalisation.

    Attributes
    ----------
    members, told : list of Row
        Its episodes in force; these and those that faded, which it tells of still. The most typical first.
    evidence : frozenset of str
        The builds that it was seen in; an episode without a build is one.
    same : Known or None
        The generalisation that it goes on as.
    replaced : list of Known
        Those that were joined or split: it is a new one.
    solved : list of Row or None
        Of a task's failed trials those that solved it; None where these must not be told, or nothing names the task.
    weights : mapping
        What the tags of its scope weigh.
    """

    experience: Experience
    members: list[Row]
    told: list[Row]
    evidence: frozenset[str]
    same: Known | None = None
    replaced: list[Known] = field(default_factory=list)
    solved: Sequence[Row] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """What is to be done about one experience.

    Attributes
    ----------
    groups : list of list of Pattern
        Those that were one generalisation, or are one now, stand together: half of them would be a false account.
    retired : list of Known
        Generalisations whose evidence is no longer there.
    latest : str
        When the latest of the episodes happened.
    episodes, communities : int
        That were looked at; that they form, of two episodes or more.
    """

    groups: list[list[Pattern]] = field(default_factory=list)
    retired: list[Known] = field(default_factory=list)
    latest: str = ""
    episodes: int = 0
    communities: int = 0


def plans(experiences: Sequence[Experience]) -> list[Plan]:
    """Return what is to be done about each; those of one scope share what their tags weigh."""
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
        for heir in group:
            place = kept[heir.community]
            evidence = seen[place].union(*(besides[one] for one in heir.of)) if len(group) == 1 else seen[place]
            rows = [episodes[one] for one in found[place]]
            if len(evidence) >= LEAST_EVIDENCE and not _is_put_away(experience, rows, evidence, heir):
                patterns.append(_pattern(experience, rows, evidence, heir, weights))
        if patterns:
            plan.groups.append(patterns)
    for one, left in ((known[place], besides[place]) for place in followed.heirless):
        if not (one.live or one.lost) or one.row.get("is_pinned", False):  # who pinned it decides
            continue
        if one.lost and one.faded and len(left) >= LEAST_EVIDENCE:  # told anew, by those that faded
            plan.groups.append([_pattern_of_faded(experience, one, left, weights)])
        elif one.lost or len(left) < LEAST_EVIDENCE:
            plan.retired.append(one)
    return plan


def _pattern_of_faded(
    experience: Experience, same: Known, evidence: frozenset[str], weights: Mapping[str, float]
) -> Pattern:
    told = by_centrality(same.faded, weights)
    return Pattern(experience, [], told, evidence, same=same, solved=_solved(experience, told), weights=weights)


def _communities(
    episodes: Sequence[Row],
    tags: Sequence[list[str]],
    weights: dict[str, float],
    *,
    is_large: bool,
    settled: Sequence[Sequence[int]],
) -> list[list[int]]:
    """Return what belongs together: the trials of one named task, whatever words tell of them, and else what shares tags."""
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
    experience: Experience, rows: list[Row], evidence: frozenset[str], heir: Heir, weights: Mapping[str, float]
) -> Pattern:
    known = [experience.in_force[place] for place in heir.of]
    central = by_centrality(rows, weights)
    if not heir.is_same:
        solved = _solved(experience, central)
        return Pattern(experience, central, central, evidence, replaced=known, solved=solved, weights=weights)
    same = known[0]
    told = by_centrality([*rows, *same.faded], weights) if same.faded else central
    return Pattern(experience, central, told, evidence, same=same, solved=_solved(experience, told), weights=weights)


def _solved(experience: Experience, told: Sequence[Row]) -> Sequence[Row] | None:
    """Return which trials solved the task of failed ones; None where they must not be told: one cannot say it was never solved."""
    tasks = {task_of(row) for row in told}
    task = tasks.pop() if len(tasks) == 1 else None
    if task is None or experience.outcome != "negative":
        return None
    solved = experience.solved.get(task, ())
    those = [row for row in solved if not row.get("is_suppressed") and "invalid_at" not in row and may_tell(row, told)]
    return those if those or not solved else None


def _is_sustained(
    members: list[int], seen: frozenset[str], live: list[frozenset[int]], besides: list[frozenset[str]]
) -> bool:
    """Whether a community has enough evidence together with what a generalisation that is kin of it keeps of episodes that faded."""
    return any(
        kept and are_kin(len(places.intersection(members)), members, places) and len(seen | kept) >= LEAST_EVIDENCE
        for places, kept in zip(live, besides, strict=True)
    )


def _is_put_away(experience: Experience, rows: list[Row], evidence: frozenset[str], heir: Heir) -> bool:
    """Whether somebody has put the generalisation of most of these episodes away; new evidence brings back what only faded."""
    if heir.is_same:
        return False
    for known in experience.put_away:
        if sum(row["id"] in known.live for row in rows) * 2 > len(rows):
            has_new = evidence - set(known.row.get("evidence_build_ids", ())) - {f"memory {one}" for one in known.live}
            if known.blocks or not has_new:
                return True
    return False


def _tags(row: Row) -> list[str]:
    return [canonical_name(tag) for tag in row.get("tags", ())]
