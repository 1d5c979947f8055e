"""Authority: verbatim turns count less, and of candidates whose scores are near ties the one of the higher class comes first (seed 4).

Near is not transitive, so no comparison of two candidates alone can order them. They are grouped instead: by descending score, a group is
its first candidate and those that are near to that one; within a group the classes decide. So the order is total, it depends on nothing
but the candidates, and none comes after one that is worse by more than the bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from memgraph.index.columns import AUTHORITIES, TRUST
from memgraph.index.index import RELATION_CODE
from memgraph.model.results.retrieval import Authority, Override, RetrievalConfig
from memgraph.retrieval.stages.state import DECIMALS, Counts, Scores, Search, Slots

_LEAST = 1e-6
"""Scores, as shares of the best one, that differ by no more are near."""
_TRANSCRIPT = AUTHORITIES.index("transcript")


class Candidate(NamedTuple):
    """A candidate of a search.

    Attributes
    ----------
    score : float
        As a share of the query's best score.
    authority : int
        Place of its class in `AUTHORITIES`: 0 is the highest.
    is_eligible : bool
        Whether it is related enough for its class to count.
    is_own : bool
        Whether it belongs to the task that is asked about: it comes before others of its class.
    """

    slot: int
    memory_id: str
    score: float
    authority: int
    is_eligible: bool = True
    is_own: bool = False

    @property
    def by_score(self) -> tuple[float, str]:
        """Its place by score and id alone."""
        return -self.score, self.memory_id

    @property
    def by_class(self) -> tuple[int, bool, float, str]:
        """Its place among near ties."""
        return self.authority if self.is_eligible else len(AUTHORITIES), not self.is_own, *self.by_score


def penalise(search: Search) -> Counts:
    """Reduce the scores of verbatim turns to their share."""
    slots = search.slots[search.index.column("authority")[search.slots] == _TRANSCRIPT]
    lost = np.maximum(0.0, search.scores[slots]) * (1.0 - search.config.transcript_factor)
    search.add("transcript", slots, -lost)
    return {"transcripts": len(slots)}


def yield_to_the_user(search: Search) -> Counts:
    """Lower what comes from a tool, an import or a web page below what the user said on the same matter.

    They are on the same matter if a link says that they contradict each other, or if the user's words contain every term of the query that
    the other contains, and at least half of the query, by the rarity of those of its terms that any memory contains: repeating the question
    gains nothing. Fewer shared terms, such as a name, do not make one matter, and a store of mixed sources would find less by them. What
    yields ends lower by more than a near tie, so that no class lifts it. Costs a comparison for each pair of different selections of terms.
    """
    trust = search.index.column("trust")[search.slots]
    users = search.slots[trust == TRUST.index("user")]
    outside = search.slots[trust > TRUST.index("agent")]
    if not len(users) or not len(outside):
        return {"yielded": 0}
    bounds = search.scores[users] - np.abs(search.scores[users]) * search.config.near_tie - 3 * _LEAST * _scale(search)
    least = _least_of_same_terms(search, users, outside, bounds)
    place_of = {slot: place for place, slot in enumerate(outside.tolist())}
    bound_of = dict(zip(users.tolist(), bounds.tolist(), strict=True))
    newer, older = search.index.links.pairs(RELATION_CODE["CONTRADICTS"])
    for one, other in (
        *zip(newer.tolist(), older.tolist(), strict=True),
        *zip(older.tolist(), newer.tolist(), strict=True),
    ):
        if one in bound_of and other in place_of:
            least[place_of[other]] = min(least[place_of[other]], bound_of[one])
    gains = np.minimum(0.0, least - search.scores[outside])
    yielding = gains < 0.0
    search.add("source", outside[yielding], gains[yielding])
    return {"yielded": int(np.count_nonzero(yielding))}


def _least_of_same_terms(search: Search, users: Slots, outside: Slots, bounds: Scores) -> Scores:
    """Return for each slot from outside the least of the bounds of the users' slots on the same matter by their terms; infinity for none."""
    found = [term for term in search.terms if len(term.slots)]
    said = np.zeros((len(search.index), len(found)), dtype=np.bool_)
    for place, term in enumerate(found):
        said[term.slots, place] = True
    theirs, their_selection = np.unique(said[outside], axis=0, return_inverse=True)
    rarity = np.array([term.idf for term in found])
    telling = 2.0 * (said[users] @ rarity) >= rarity.sum()
    least_of = np.full(len(theirs), np.inf)
    if telling.any():
        mine, my_selection = np.unique(said[users[telling]], axis=0, return_inverse=True)
        lowest = np.full(len(mine), np.inf)
        np.minimum.at(lowest, my_selection.ravel(), bounds[telling])
        for place, selection in enumerate(theirs):
            if selection.any():
                least_of[place] = lowest[mine[:, selection].all(axis=1)].min(initial=np.inf)
    least: Scores = least_of[their_selection.ravel()]
    return least


def best(search: Search, slots: Slots, count: int) -> list[int]:
    """Return the best of these slots, best first: by score, near ties by class, then those of the task asked about, then by id.

    Linear in the slots: only the best `count`, and near ties with the last of them, are sorted.
    """
    if not len(slots) or count < 1:
        return []
    scores = np.round(search.scores[slots], DECIMALS)
    if len(slots) > count:
        least = np.partition(scores, -count)[-count] - _scale(search) * max(_LEAST, search.config.near_tie)
        slots = slots[scores >= least]
    return [one.slot for one in in_order(candidates(search, slots), search.config)][:count]


def candidates(search: Search, slots: Slots) -> list[Candidate]:
    """Return these slots as candidates."""
    scale, index = _scale(search), search.index
    scores = np.round(search.scores[slots], DECIMALS) / scale
    eligible = search.is_near[slots] & (scores >= search.config.authority_floor)
    classes, is_own = index.column("authority")[slots], search.is_own(slots)
    ids = [index.ids.names[slot] for slot in slots]
    parts = (slots.tolist(), ids, scores.tolist(), classes.tolist(), eligible.tolist(), is_own.tolist())
    return [Candidate(*one) for one in zip(*parts, strict=True)]


def in_order(found: Iterable[Candidate], config: RetrievalConfig) -> list[Candidate]:
    """Return candidates in the order of a recall."""
    return [one for group in _groups(found, config) for one in sorted(group, key=lambda each: each.by_class)]


def is_near(higher: float, lower: float, config: RetrievalConfig) -> bool:
    """Return whether two scores, as shares of the query's best, are a near tie and neither dominates."""
    lead = higher - lower
    bound = max(_LEAST, config.near_tie * max(abs(higher), abs(lower)))
    return lead <= bound and (lead == 0.0 or lead < config.override_delta)


def overrides(found: Sequence[Candidate], config: RetrievalConfig) -> dict[int, list[Override]]:
    """Return by slot what each of a recall's results, best first, stands before although the other's score or class is higher."""
    told: dict[int, list[Override]] = {}
    for place, one in enumerate(found):
        for later in found[place + 1 :]:
            lead, reason = one.score - later.score, None
            if later.by_score < one.by_score and one.by_class[0] < later.by_class[0]:
                reason = "authority"
            elif later.is_eligible and later.authority < one.authority and lead >= config.override_delta > 0.0:
                reason = "dominance"
            if reason is not None:
                told.setdefault(one.slot, []).append(
                    Override.parse({"memory_id": later.memory_id, "reason": reason, "lead": round(lead, DECIMALS)})
                )
    return told


def authority_of(candidate: Candidate) -> Authority:
    """Return a candidate's class."""
    return AUTHORITIES[candidate.authority]


def _groups(found: Iterable[Candidate], config: RetrievalConfig) -> Iterator[list[Candidate]]:
    group: list[Candidate] = []
    for one in sorted(found, key=lambda each: each.by_score):
        if group and not is_near(group[0].score, one.score, config):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _scale(search: Search) -> float:
    """Return the query's best score, of which scores are shares; 1 if no candidate has a positive one."""
    highest = float(np.round(search.scores[search.slots].max(), DECIMALS)) if len(search.slots) else 0.0
    return highest if highest > 0.0 else 1.0
