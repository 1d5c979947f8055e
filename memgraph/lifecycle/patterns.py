"""Which generalisations an experience calls for: what is to be made, brought up, replaced and taken back. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memgraph.lifecycle.communities import communities
from memgraph.lifecycle.experience import Experience, Known, evidence_of
from memgraph.lifecycle.generalise import by_centrality
from memgraph.lifecycle.heirs import Heir, are_kin, succession
from memgraph.lifecycle.overlap import LARGE_FROM, tag_weights
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
    """

    experience: Experience
    members: list[Row]
    told: list[Row]
    evidence: frozenset[str]
    same: Known | None = None
    replaced: list[Known] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """What is to be done about one experience.

    Attributes
    ----------
    groups : list of list of Pattern
        Those that were one generalisation, or are one now, stand together: half of them would be a false account.
    retired : list of Known
        Generalisations whose evidence is no longer there.
    episodes, communities : int
        That were looked at; that they form, of two episodes or more.
    """

    groups: list[list[Pattern]] = field(default_factory=list)
    retired: list[Known] = field(default_factory=list)
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
    found = communities(tags, weights, is_large=is_large, settled=settled)
    plan = Plan(episodes=len(episodes), communities=sum(len(members) > 1 for members in found))
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
    for place in followed.heirless:
        is_left = known[place].live or known[place].withdrawn
        is_pinned = known[place].row.get("is_pinned", False)  # who pinned it decides
        if is_left and not is_pinned and len(besides[place]) < LEAST_EVIDENCE:
            plan.retired.append(known[place])
    return plan


def _pattern(
    experience: Experience, rows: list[Row], evidence: frozenset[str], heir: Heir, weights: Mapping[str, float]
) -> Pattern:
    known = [experience.in_force[place] for place in heir.of]
    central = by_centrality(rows, weights)
    if not heir.is_same:
        return Pattern(experience, central, central, evidence, replaced=known)
    same = known[0]
    told = by_centrality([*rows, *same.faded], weights) if same.faded else central
    return Pattern(experience, central, told, evidence, same=same)


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
