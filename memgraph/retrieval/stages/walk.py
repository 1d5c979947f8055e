"""Walk: one additive hop from what was found to what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from memgraph.index.index import RELATION_CODE
from memgraph.index.supersession import newest_of
from memgraph.retrieval.stages.rank import best
from memgraph.retrieval.stages.state import Counts, Gain, Search

_ABOUT = 2
_EVIDENCE = {RELATION_CODE[relation]: relation for relation in ("SUPPORTS", "DERIVED_FROM")}
_RESTS_ON = (RELATION_CODE["DERIVED_FROM"], -RELATION_CODE["SUPPORTS"])
_CONTRADICTS = RELATION_CODE["CONTRADICTS"]
_MOST_REACHED = 1_000
"""A name that more memories share tells them apart no more."""
_SAID_AGAIN = 0.9
Topics = frozenset[int]
Linked = tuple[int, int, int]
"""From which slot, to which, and the code of the relation."""


def sequence(search: Search) -> Counts:
    """NEXT, both ways: a memory gains from the best of what stands around it in its session; a question tells little itself.

    What answers is worth more than what asks: a text that ends in a question mark loses a share of its score, and the memory
    after it gains more.
    """
    slots, index, config = search.seeds, search.index, search.config
    asking = slots[index.column("asks")[slots] & (index.column("session")[slots] >= 0)]
    if len(asking):
        search.add("question", asking, -config.question_discount * search.scores[asking])
    gain, origin = np.zeros(len(slots)), np.full(len(slots), -1, dtype=np.int64)
    for near in search.beside:
        given = np.where(near.slots >= 0, search.scores[near.slots] * near.shares, 0.0)
        better = given > gain
        gain, origin = np.where(better, given, gain), np.where(better, near.slots, origin)
    gaining = gain > 0
    gained = int(np.count_nonzero(gaining))
    values = config.neighbour_weight * gain[gaining]
    search.add("neighbour", slots[gaining], values, origin[gaining], ["NEXT"] * gained)
    return {"gained": gained}


def naming(search: Search) -> Counts:
    """MENTIONS: from what one of the best seeds names to what is *about* it.

    Names are those that were annotated, under any of their aliases, and those that the text is found to hold: a name is often
    learned after the text that used it was written. A name that several memories are about says less of each: its gain is divided by
    the square root of their number; or of the number of texts that hold it, if it is one word: "run" is mostly no name.
    """
    seeds = _seeds(search, search.config.mention_seeds)
    gains = (Gain(slot, value, seed, "MENTIONS") for seed in seeds for slot, value in _named_by(search, seed))
    return {"seeds": len(seeds), "gained": search.hand("mention", gains)}


def _named_by(search: Search, seed: int) -> Iterator[tuple[int, float]]:
    index = search.index
    terms = [index.vocabulary.names[code] for code in index.sequences.get(seed).tolist()]
    annotated = index.named.get(seed)[0].tolist()
    things: dict[Topics, Sequence[str]] = {about(search, index.aliases.same(entity)): () for entity in annotated}
    things |= {slots: name for name, slots in index.naming.named_in(terms, lambda entities: about(search, entities))}
    score = search.config.mention_weight * float(search.scores[seed])
    for slots, name in things.items():
        if slots and seed not in slots:  # what a text is about itself leads nowhere
            gain = score / max(len(slots), holders(search, name)) ** 0.5
            yield from ((slot, gain) for slot in slots)


def about(search: Search, entities: Iterable[int]) -> Topics:
    """Return the admitted slots that are about one of these entities; none if they are too many."""
    index, mask = search.index, search.mask
    found: set[int] = set()
    for entity in entities:
        if entity in index.topics:
            slots, weights = index.mentions.get(entity)
            slots = slots[weights == _ABOUT]
            found.update(slots[mask[slots]].tolist())
    return frozenset(found) if len(found) <= _MOST_REACHED else frozenset()


def holders(search: Search, name: Sequence[str]) -> int:
    """Return how many admitted texts hold a name of one word; 1 for a longer one, which is seldom there by chance."""
    if len(name) != 1:
        return 1
    code = search.index.vocabulary.find(name[0])
    return int(np.count_nonzero(search.mask[search.index.postings.get(code)[0]])) if code >= 0 else 1


def links(search: Search) -> Counts:
    """From the best to what they rest on and what rests on them, to open contradictions, and to landmarks of their tags.

    A generalisation gains from its evidence (SUPPORTS, DERIVED_FROM) and the other way round, each divided by the square root of how
    many it rests on: of one that rests on twenty, no one says much. The other side of a contradiction
    is raised to almost the score of this one, so that both come together; where one supersedes the other, `succession` keeps one.
    """
    seeds = _seeds(search, search.config.link_seeds)
    linked = [
        (seed, other, code)
        for seed in seeds
        for other, code in zip(*(part.tolist() for part in search.index.links.get(seed)), strict=True)
        if search.mask[other]
    ]
    evidence = search.hand("evidence", _evidence(search, linked))
    opposed = search.hand("contradiction", _opposed(search, linked))  # after it: what is raised is the score so far
    landmarks = search.hand("landmark", _landmarks(search, seeds[: search.config.mention_seeds]))
    return {"evidence": evidence, "contradiction": opposed, "landmark": landmarks}


def _evidence(search: Search, linked: Iterable[Linked]) -> Iterator[Gain]:
    for seed, other, code in linked:
        if abs(code) in _EVIDENCE:
            resting = max(1, _rests_on(search, seed), _rests_on(search, other))
            value = search.config.evidence_weight * float(search.scores[seed]) / resting**0.5
            yield Gain(other, value, seed, _EVIDENCE[abs(code)])


def _opposed(search: Search, linked: Iterable[Linked]) -> Iterator[Gain]:
    for seed, other, code in linked:
        if abs(code) == _CONTRADICTS:
            value = search.config.contradiction_weight * float(search.scores[seed]) - float(search.scores[other])
            yield Gain(other, value, seed, "CONTRADICTS")


def opposed_among(search: Search, slots: Sequence[int]) -> list[tuple[int, int]]:
    """Return the pairs of some slots that contradict each other, each once."""
    found = set()
    for slot in slots:
        others, codes = search.index.links.get(slot)
        found |= {(min(slot, other), max(slot, other)) for other in others[np.abs(codes) == _CONTRADICTS].tolist()}
    return sorted(pair for pair in found if set(pair) <= set(slots))


def told_again_by(search: Search, slot: int) -> list[int]:
    """Return the memory that this one was distilled from alone and says again, with nine in ten of its terms; none if there is none."""
    index = search.index
    others, codes = index.links.get(slot)
    sources = others[codes == RELATION_CODE["DERIVED_FROM"]].tolist()
    if len(sources) != 1:
        return []
    terms, own = (set(index.sequences.get(one).tolist()) for one in (sources[0], slot))
    return sources if len(terms & own) >= _SAID_AGAIN * len(terms) else []


def _rests_on(search: Search, slot: int) -> int:
    """Return how many admitted memories this one rests on."""
    others, codes = search.index.links.get(slot)
    evidence = np.unique(others[np.isin(codes, _RESTS_ON)])
    return int(np.count_nonzero(search.mask[evidence]))


def _landmarks(search: Search, seeds: list[int]) -> Iterator[Gain]:
    """Yield what must not be forgotten and shares two tags with a seed, or its only one, in its project: a warning for the task."""
    index, weight = search.index, search.config.landmark_weight
    marks = search.mask & (index.column("floor") > 0)
    if not weight or not marks.any():
        return
    project = index.column("project")
    for seed in seeds:
        tags = index.tagged.get(seed)[0].tolist()
        shared = np.zeros(len(index), dtype=np.int32)
        for tag in tags:
            slots = index.tags.get(tag)[0]
            shared[slots[marks[slots]]] += 1
        reached = np.flatnonzero((shared >= min(2, len(tags))) & (shared > 0) & (project == project[seed]))
        for slot in reached.tolist():
            if slot != seed:
                value = weight * float(search.scores[seed]) * float(shared[slot]) / len(tags)
                yield Gain(slot, value, seed, "TAGGED")


def succession(search: Search) -> Counts:
    """SUPERSEDES: each superseded memory gives its score to the newest admitted one that replaces it, and leaves.

    Without an admitted one the older memory stays: what replaced it may not be seen here.
    """
    newest = newest_of(search.index, search.mask, search.slots)
    pairs = [(old, new) for old, new in newest.items() if old != new]
    handed = [
        Gain(new, float(search.scores[old] - search.scores[new]), old, "SUPERSEDES")
        for old, new in pairs
        if search.mask[old]
    ]
    for old, new in pairs:  # what is known of the old one is known of what replaced it
        search.coverage[new] = max(search.coverage[new], search.coverage[old])
        search.meaning[new] = max(search.meaning[new], search.meaning[old])
    gained = search.hand("succession", handed)
    if pairs:
        search.slots = np.setdiff1d(search.slots, [old for old, _ in pairs])
    return {"superseded": len(handed), "gained": gained}


def _seeds(search: Search, count: int) -> list[int]:
    found = best(search.index, search.scores, search.slots, count)
    return [slot for slot in found if search.scores[slot] > 0]
