"""Walk: one additive hop from the memories found to related ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from memgraph.index.index import RELATION_CODE, newest_of
from memgraph.retrieval.stages.rank import best
from memgraph.retrieval.stages.state import Counts, Gain, Search

_ABOUT = 2
_EVIDENCE = {RELATION_CODE[relation]: relation for relation in ("SUPPORTS", "DERIVED_FROM")}
_RESTS_ON = (RELATION_CODE["DERIVED_FROM"], -RELATION_CODE["SUPPORTS"])
_CONTRADICTS = RELATION_CODE["CONTRADICTS"]
_MOST_REACHED = 1_000
"""A name shared by more memories than this no longer distinguishes them."""
_SAID_AGAIN = 0.9
Topics = frozenset[int]
Linked = tuple[int, int, int]
"""Source slot, target slot, and the code of the relation."""


def sequence(search: Search) -> Counts:
    """NEXT, in both directions: a memory gains from its best neighbour in the session.

    Answers are worth more than questions: a text that ends in a question mark loses a share of its score, and the
    memory after it gains more.
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
    """MENTIONS: from the entities named by the best seeds to memories *about* them.

    Names are the annotated ones, under any of their aliases, and those found in the text: a name is often learned after
    the text that uses it was written. A name that several memories are about is less specific: its gain is divided by
    the square root of their number or, for a single word, of the number of texts that contain it: "run" is rarely a
    name. What a task itself names comes first, if a seed is about it: a hop raises what is counted of other things no higher than the
    memories about that, the best as many as there may be seeds.
    """
    seeds, scores = _seeds(search, search.config.mention_seeds), search.scores
    named = np.concatenate([added.slots for added in search.added if added.part == "named"] or [search.slots[:0]])
    is_asked = not search.is_question and bool(np.isin(seeds, named).any())
    first = best(search.index, scores, named, search.config.mention_seeds) if is_asked else []
    highest, counted = float(scores[first[-1]]) if first else np.inf, search.index.column("is_counted").copy()
    counted[named] = False
    gains = (
        Gain(slot, min(value, highest - float(scores[slot])) if counted[slot] else value, seed, "MENTIONS")
        for seed in seeds
        for slot, value in _named_by(search, seed)
    )
    return {"seeds": len(seeds), "gained": search.hand("mention", gains)}


def _named_by(search: Search, seed: int) -> Iterator[tuple[int, float]]:
    index = search.index
    terms = [index.vocabulary.names[code] for code in index.sequences.get(seed).tolist()]
    annotated = index.named.get(seed)[0].tolist()
    things: dict[Topics, Sequence[str]] = {about(search, index.aliases.same(entity)): () for entity in annotated}
    things |= {slots: name for name, slots in index.naming.named_in(terms, lambda entities: about(search, entities))}
    score = search.config.mention_weight * float(search.scores[seed])
    for slots, name in things.items():
        if slots and seed not in slots:  # a memory's own subject leads nowhere
            gain = score / max(len(slots), holders(search, name)) ** 0.5
            yield from ((slot, gain) for slot in slots)


def about(search: Search, entities: Iterable[int]) -> Topics:
    """Return the admitted slots about one of these entities; none if there are too many."""
    index, mask = search.index, search.mask
    found: set[int] = set()
    for entity in entities:
        if entity in index.topics:
            slots, weights = index.mentions.get(entity)
            slots = slots[weights == _ABOUT]
            found.update(slots[mask[slots]].tolist())
    return frozenset(found) if len(found) <= _MOST_REACHED else frozenset()


def holders(search: Search, name: Sequence[str]) -> int:
    """Return how many admitted texts contain a single-word name; 1 for a longer name, which rarely occurs by chance."""
    if len(name) != 1:
        return 1
    code = search.index.vocabulary.find(name[0])
    return int(np.count_nonzero(search.mask[search.index.postings.get(code)[0]])) if code >= 0 else 1


def links(search: Search) -> Counts:
    """From the best memories to their evidence and derivations, to open contradictions, and to landmarks with their tags.

    A generalisation gains from its evidence (SUPPORTS, DERIVED_FROM) and vice versa, each divided by the square root of
    the number of its sources: one of twenty says little about it. The other side of a contradiction is raised to almost
    the score of this one, so that both are returned; where one supersedes the other, `succession` keeps one.
    """
    seeds = _seeds(search, search.config.link_seeds)
    linked = [
        (seed, other, code)
        for seed in seeds
        for other, code in zip(*(part.tolist() for part in search.index.links.get(seed)), strict=True)
        if search.mask[other]
    ]
    evidence = search.hand("evidence", _evidence(search, linked))
    opposed = search.hand("contradiction", _opposed(search, linked))  # last, since it raises to the score so far
    landmarks = search.hand("landmark", _landmarks(search, seeds[: search.config.mention_seeds]))
    return {"evidence": evidence, "contradiction": opposed, "landmark": landmarks}


def _evidence(search: Search, linked: Iterable[Linked]) -> Iterator[Gain]:
    for seed, other, code in linked:
        if abs(code) in _EVIDENCE:
            resting = max(1, rests_on(search, seed), rests_on(search, other))
            value = search.config.evidence_weight * float(search.scores[seed]) / resting**0.5
            yield Gain(other, value, seed, _EVIDENCE[abs(code)])


def _opposed(search: Search, linked: Iterable[Linked]) -> Iterator[Gain]:
    for seed, other, code in linked:
        if abs(code) == _CONTRADICTS:
            value = search.config.contradiction_weight * float(search.scores[seed]) - float(search.scores[other])
            yield Gain(other, value, seed, "CONTRADICTS")


def opposed_among(search: Search, slots: Sequence[int]) -> list[tuple[int, int]]:
    """Return the contradicting pairs among some slots, each once."""
    found = set()
    for slot in slots:
        others, codes = search.index.links.get(slot)
        found |= {(min(slot, other), max(slot, other)) for other in others[np.abs(codes) == _CONTRADICTS].tolist()}
    return sorted(pair for pair in found if set(pair) <= set(slots))


def restated_sources(search: Search, slot: int) -> list[int]:
    """Return the only source of this memory, if it restates nine in ten of that source's terms; otherwise none."""
    index = search.index
    others, codes = index.links.get(slot)
    sources = others[codes == RELATION_CODE["DERIVED_FROM"]].tolist()
    if len(sources) != 1:
        return []
    terms, own = (set(index.sequences.get(one).tolist()) for one in (sources[0], slot))
    return sources if len(terms & own) >= _SAID_AGAIN * len(terms) else []


def rests_on(search: Search, slot: int) -> int:
    """Return the number of admitted memories that this one is derived from."""
    others, codes = search.index.links.get(slot)
    evidence = np.unique(others[np.isin(codes, _RESTS_ON)])
    return int(np.count_nonzero(search.mask[evidence]))


def _landmarks(search: Search, seeds: list[int]) -> Iterator[Gain]:
    """Yield landmarks of a seed's project that share two tags with it, or its only tag, as warnings for the task."""
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
    """SUPERSEDES: each superseded memory hands its score to the newest admitted one that replaces it, and is dropped.

    Without an admitted successor the older memory stays: its replacement may not be visible here.
    """
    newest = newest_of(search.index, search.mask, search.slots)
    pairs = [(old, new) for old, new in newest.items() if old != new]
    handed = [
        Gain(new, float(search.scores[old] - search.scores[new]), old, "SUPERSEDES")
        for old, new in pairs
        if search.mask[old]
    ]
    search.replaced = dict(pairs)
    for old, new in pairs:  # findings about the old one apply to its replacement
        search.coverage[new] = max(search.coverage[new], search.coverage[old])
        search.meaning[new] = max(search.meaning[new], search.meaning[old])
    gained = search.hand("succession", handed)
    if pairs:
        search.slots = np.setdiff1d(search.slots, [old for old, _ in pairs])
    return {"superseded": len(handed), "gained": gained}


def _seeds(search: Search, count: int) -> list[int]:
    found = best(search.index, search.scores, search.slots, count)
    return [slot for slot in found if search.scores[slot] > 0]
