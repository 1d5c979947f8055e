"""Floor: which candidates have evidence that they belong to the query. A recall returns those alone; a search marks the others.

The nearest memory of a store that knows nothing of a matter is still the nearest, so ranks and scaled scores say nothing
about it. Evidence does (`evidence.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np

from memgraph.embedding.onnx import MODEL_NAME
from memgraph.index.index import Index, newest_of
from memgraph.model.base import Floor
from memgraph.model.memory import MEMORY_TYPES, Vector
from memgraph.retrieval.stages.evidence import (
    GENERIC,
    USUAL_TERMS,
    cosines,
    deviations,
    evidence,
    has_cosine,
    is_year,
    names_a_matter,
)
from memgraph.retrieval.stages.rank import best
from memgraph.retrieval.stages.state import Counts, Gain, Scores, Search, Slots
from memgraph.retrieval.stages.walk import rests_on
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import pinned_constraints
from memgraph.store.query import Mask

AUTO = 0.7
"""The calibrated floor: see `tests/benchmarks/README.md` for the curve from which it was chosen."""
_AHEAD = 0.01
"""By how much a constraint is ahead of everything else, at least."""

_CALIBRATED_MEMORIES, _SMALLER, _MOST_SMALLER = 400, 0.25, 1.5
"""The best of a few unrelated memories is less similar than the best of hundreds, about by the logarithm of their number (extreme values),
and a few memories lack more of a task's words. So smaller stores need less."""
_LINE_SHARE = 0.3
"""What one line needs, as a share of what the best one needs: beside good evidence, weaker evidence counts."""
_LEADING = 5
"""Lines of each type that may open the store: as many as a recall returns by default. Of more, one would pass by chance."""
_OTHER_WORDS, _MOST_IN_OTHER_WORDS, _STANDING_OUT = 0.2, 3, 1.0
"""If no memory has a fifth of the words of a task that is not short, meaning alone speaks for them: then weaker evidence does not count, and
only the best few lines are kept, which must be more similar to the task than the store's memories on the average, by so many deviations."""
_BESIDE_BEST, _BESIDE_FEW, _FEW_LINES = 1.5, 0.3, 2
"""By how much less evidence (difference of the log-odds) than its best line a task's other lines may have: the first few, and those after them."""
_LEAST = 1e-9
_LINKS = frozenset({"MENTIONS", "SUPPORTS", "DERIVED_FROM", "CONTRADICTS", "SUPERSEDES", "TAGGED"})
_EVIDENCE = frozenset({"SUPPORTS", "DERIVED_FROM"})
_STATED = _EVIDENCE | {"CONTRADICTS", "SUPERSEDES"}
"""Links between memories themselves, not over something that both name: what is said of a memory is as worth telling."""
_MOST_SOURCES = 2
"""A generalisation of more sources must suffice by itself: one of them says little about what they have in common."""

_SAVED_COSINE, _SAVED_WITH_WORD = 0.28, 0.22
"""Bounds for saved facts: by the cosine alone, and with a shared word. They are absolute, and the cosine is not corrected for
length: a preference has few words, and in a store of a few every word is rare."""
_SAVED_STANDING_OUT, _SAVED_COSINE_WEIGHT, _SAVED_WORD_STANDING_OUT = 6.5, 10.0, 2.0
"""Among many other memories a saved fact must stand out: the standard deviations by which it exceeds them, and its cosine times the weight,
make this sum. With a shared word, so many standard deviations suffice."""
_SAVED_TERMS = 8


def floor_of(store: AgentMemoryStore, vector: Vector | None, asked: Floor | None = None) -> float | None:
    """Return the floor of a query with this vector, in [0, 1]; None if there is none.

    The calibrated one holds for words and for the packaged model's vectors. Cosines of other models have other scales: for
    them ``auto`` sets no floor, a number does.

    Parameters
    ----------
    asked : {"auto", "off"}, float or None
        None: the store's setting.
    """
    floor = store.config.retrieval_floor if asked is None else asked
    if floor == "auto":
        return AUTO if vector is None or store.vector_model.name == MODEL_NAME else None
    return None if floor == "off" else float(floor)


def judge(search: Search) -> Counts:
    """Set which candidates have evidence. Changes neither scores nor candidates."""
    if not (search.query_terms or search.dense_weight or search.text.strip()):
        search.floor = None  # an empty task gives no evidence to judge by
    floor = search.floor
    if search.scope.linked is None:  # a task's constraints do not hold in the tasks that are linked to it
        search.constraints = constraints_among(search.index, search.mask, search.scope.project_id)
    if floor is None:
        return {"constraints": len(search.constraints)}
    search.is_near = np.zeros(len(search.index), dtype=np.bool_)
    linked = np.empty(0, dtype=np.int64)
    if names_a_matter(search) or floor == 0.0:
        linked = _judge_lines(search, floor)
        search.matching = _matching_saved(search, floor)
        search.is_near[search.matching] = True
        search.knows = bool(search.is_near[search.slots].any())
    search.is_near[search.constraints] = True
    return {
        "near": int(np.count_nonzero(search.is_near[search.slots])),
        "saved": len(search.matching),
        "linked": len(linked),
        "constraints": len(search.constraints),
    }


def apply(search: Search) -> None:
    """Keep the candidates with evidence. Put constraints first, then the saved facts that match the query."""
    search.look_at(search.constraints)
    if search.floor is not None:
        search.slots = search.slots[search.is_near[search.slots]]
        _put_first(search, search.matching[~search.is_item(search.matching)])
    _put_first(search, search.constraints, by=_AHEAD)


def leading_lines(search: Search, slots: Sequence[int]) -> list[int]:
    """Return those of a recall's lines, best first, that are worth their place in a prompt.

    A question needs every piece of its answer, and keeps all lines. A task needs the few that bear on it: beside a line with much evidence, those with
    far less only distract. The first line stays, and so does what is there for another reason: constraints and matching saved facts.
    """
    if not search.floor or search.is_question:
        return _latest_first(search, list(slots))
    given = {*search.constraints.tolist(), *search.matching.tolist()}
    judged = [slot for slot in slots if slot not in given]
    inside = np.clip(search.evidence[np.array(judged, dtype=np.int64)], _LEAST, 1.0 - _LEAST)
    odds = dict(zip(judged, np.log(inside / (1.0 - inside)).tolist(), strict=True))
    highest, kept = max(odds.values(), default=0.0), judged[:1]
    for slot in judged[1:]:
        if odds[slot] >= highest - (_BESIDE_BEST if len(kept) < _FEW_LINES else _BESIDE_FEW):
            kept.append(slot)
    return _latest_first(search, [slot for slot in slots if slot in given or slot in kept])


def _latest_first(search: Search, lines: list[int]) -> list[int]:
    """Return the lines with the later of the first two records of one session before the earlier one, which it may have overturned."""
    session, occurred, is_record = (search.index.column(name) for name in ("session", "occurred_days", "is_record"))
    first, second = ([slot for slot in lines if is_record[slot]] + [-1, -1])[:2]
    if min(first, second) >= 0 <= session[first] == session[second] and occurred[first] < occurred[second]:
        search.hand("succession", [Gain(second, float(search.scores[first] - search.scores[second]), first, "NEXT")])
        turned = {first: second, second: first}
        return [turned.get(slot, slot) for slot in lines]
    return lines


def _put_first(search: Search, slots: Slots, *, by: float = 0.0) -> None:
    """Raise the scores of some candidates above all others, by more the nearer they are to the query."""
    if len(slots):
        highest = float(search.scores[search.slots].max())
        near = np.where(has_cosine(search, slots), np.maximum(0.0, cosines(search, slots)), search.evidence[slots])
        gains = highest - search.scores[slots] + near + by
        search.add("saved", slots, np.maximum(0.0, gains))


def _judge_lines(search: Search, floor: float) -> Slots:
    """Mark the candidates with evidence, and return those that have it by a link. Saved facts speak for themselves alone."""
    is_saved = search.index.column("is_saved")[search.slots]
    saved, slots = search.slots[is_saved], search.slots[~is_saved]
    origins = (added.origins for added in search.added if added.origins is not None)
    found = evidence(search, _united(_asked_for(search), *origins))
    for old, new in search.replaced.items():
        found[new] = max(found[new], found[old])
    search.evidence = found.copy()
    enough, line = _enough(search, floor), floor * _LINE_SHARE
    search.is_near[saved[found[saved] >= enough]] = True
    leading = _best_of_types(search, slots)
    knows = bool((found[leading] >= enough).any())
    if floor and len(search.terms) > USUAL_TERMS and float(search.coverage[leading].max(initial=0.0)) < _OTHER_WORDS:
        standing = _standing_out(search, leading[found[leading] >= enough], _STANDING_OUT)
        search.is_near[best(search.index, found, standing, _MOST_IN_OTHER_WORDS)] = True
        return _united()
    general = _is_general(search)
    _hand_on(search)
    linked = _linked(search, general, found, enough, line)
    if knows or len(linked):
        search.is_near[slots[found[slots] >= np.where(general[slots], enough, line)]] = True
        search.is_near[linked] = True
    return linked


def _best_of_types(search: Search, slots: Slots) -> Slots:
    """Return the best few of these slots of each type."""
    types = search.index.column("type")[slots]
    each = (best(search.index, search.scores, slots[types == code], _LEADING) for code in range(len(MEMORY_TYPES)))
    leading: Slots = _united(*(np.array(few, dtype=np.int64) for few in each))
    return leading


def _is_general(search: Search) -> Mask:
    """Tell which candidates rest on many sources: that one of them is the task's, or some of their words, says little."""
    general = np.zeros(len(search.index), dtype=np.bool_)
    distilled = search.slots[search.index.column("type")[search.slots] != MEMORY_TYPES.index("episodic")]
    general[distilled] = [rests_on(search, slot) > _MOST_SOURCES for slot in distilled.tolist()]
    return general


def _enough(search: Search, floor: float) -> float:
    """Return the evidence that suffices by itself: the floor, or less in a small store."""
    if not 0.0 < floor < 1.0:
        return floor
    less = _SMALLER * log(_CALIBRATED_MEMORIES / max(1, int(np.count_nonzero(search.mask))))
    return 1.0 / (1.0 + (1.0 - floor) / floor * exp(min(_MOST_SMALLER, max(0.0, less))))


def _linked(search: Search, general: Mask, found: Scores, enough: float, line: float) -> Slots:
    """Return the candidates reached over a link from one whose evidence suffices by itself.

    Neighbours in a session do not count as links: their words are in the coverage already. Nor is the link between a generalisation and one of its many
    sources, unless the source has evidence of its own, nor one to what is less similar to the query than the store's memories are on the
    average.
    """
    reached = []
    for added in search.added:
        if added.origins is None:
            continue
        suffices = [relation in _LINKS for relation in added.relations] & (found[added.origins] >= enough)
        of_many = [relation in _EVIDENCE for relation in added.relations] & (
            general[added.slots] | general[added.origins] & (found[added.slots] < line)
        )
        reached.append(added.slots[suffices & ~of_many])
    return _standing_out(search, np.intersect1d(_united(*reached), search.slots), 0.0)


def _hand_on(search: Search) -> None:
    """Give a memory the evidence of one that it supports, derives from, contradicts or supersedes, or the reverse."""
    for added in search.added:
        if added.origins is not None:
            stated = np.array([relation in _STATED for relation in added.relations], dtype=np.bool_)
            slots, origins = added.slots[stated], added.origins[stated]
            search.evidence[slots] = np.maximum(search.evidence[slots], search.evidence[origins])


def _standing_out(search: Search, slots: Slots, least: float) -> Slots:
    """Return those of these slots that are by so many deviations more similar to the query than the store's memories, and those without cosine."""
    standing = deviations(search, slots)
    kept: Slots = slots if standing is None else slots[(standing >= least) | ~has_cosine(search, slots)]
    return kept


def _asked_for(search: Search) -> Slots:
    """Return the candidates, and what they replace: the question may be in the words of that."""
    return _united(search.slots, np.fromiter(search.replaced, dtype=np.int64))


def _matching_saved(search: Search, floor: float) -> Slots:
    """Return the saved facts that match the query by themselves, or by what they replace, and so come first."""
    asked = _asked_for(search)
    saved: Slots = asked[search.index.column("is_saved")[asked]]
    if not len(saved):
        return saved
    shared = np.zeros(len(search.index), dtype=np.int32)
    for term in {one for one in search.query_terms if not is_year(one)} - GENERIC:
        code = search.index.vocabulary.find(term)
        if code >= 0:
            shared[search.index.postings.get(code)[0]] += 1
    shares_words = shared[saved] >= max(1.0, len(search.terms) / _SAVED_TERMS)
    scale, near = floor / AUTO, cosines(search, saved)
    by_words, by_meaning = near >= _SAVED_WITH_WORD * scale, near >= _SAVED_COSINE * scale
    standing = deviations(search, saved)
    if standing is not None:
        by_words &= standing >= _SAVED_WORD_STANDING_OUT * scale
        by_meaning &= standing + _SAVED_COSINE_WEIGHT * near >= _SAVED_STANDING_OUT * scale
    newest = np.array([search.replaced.get(slot, slot) for slot in saved.tolist()], dtype=np.int64)
    without = ~has_cosine(search, saved)
    if not search.is_covered:
        without &= search.is_near[newest]  # a word may be in every fact of its kind: without meaning, all must tell
    return _united(newest[shares_words & (by_words | without) | by_meaning])


def constraints_among(index: Index, mask: Mask, project_id: str | None) -> Slots:
    """Return the pinned memories with the tag ``constraint`` that hold for a project whatever is asked.

    They hold for every task; those of a project only for tasks of that project, and those of a task only in it. What comes from a tool, an
    import or a web page constrains nothing.

    Parameters
    ----------
    mask : ndarray, bool
        The memories that are admitted.
    """
    slots = pinned_constraints(index)
    holds = mask[slots]
    if project_id is None:
        holds &= index.column("project")[slots] == -1
    holding = _united(slots[holds])
    replaced = [old for old, new in newest_of(index, mask, holding).items() if old != new]
    return np.setdiff1d(holding, replaced)


def _united(*parts: Slots) -> Slots:
    """Return the slots of all parts, ascending, each once."""
    united: Slots = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts])).astype(np.int64)
    return united
