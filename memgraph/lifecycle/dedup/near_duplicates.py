"""Near-duplicates: which memories are near others or equal to them, and the merging of those that say the same (seeds 1, 3).

*Near-duplicates* are near each other, by their vectors or by the words that they share, and say the same (`same`): only memories of
equal project, task, domain, speaker, privacy tier, trust class, type, outcome and end of validity are compared. *Copies* have equal
texts (`is_equal`); they may differ in type, trust and source, since what the user asked to remember, an agent observed and a history
says in equal words is one fact. Excluded are parts of longer texts, the results of other sleep phases, and episodes without a build:
each of those is evidence by itself, and would no longer count as such.

Pairs are united, the nearest first (union-find); one text stands for each union: the pinned one, or the one that says most, the newer of
two that say as much. Two unions become one if these texts are near and say the same, so that no chain of small differences joins two
facts, and a union is never compared again. Of its memories the pinned one stays, then the one that is trusted most, then the later one,
dated by its source, and of copies the first one. It takes the text of the union, unless it is pinned, and the sources and builds of
all. It supersedes the others, which are kept unchanged and count again after `unsupersede`; a pair that was separated so is not merged
again. A merge confirms nothing: the result has the higher relevance and confidence, but nothing from a memory that is trusted less.

New memories are processed in portions, in the order in which they were written, each portion against everything before it; so a
portion depends on the store's content alone, and an interrupted run continues after its last complete portion.

Call what finds memories while the store is frozen: under the writer lock, or within ``with store.reader.frozen():``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.index.columns import TRUST
from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.lifecycle.dedup.same import is_equal, same, stands_for_both
from memgraph.lifecycle.reconcile import linked_to, revised
from memgraph.lifecycle.run import (
    MOST_EVENTS,
    Changes,
    Commit,
    Plan,
    TimeIsUp,
    View,
    Watch,
    added,
    carry_out,
    changes_after,
    commits_by_task,
    last_run,
    never,
)
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.memories import MemoryMerged
from memgraph.model.events.payload import Actor
from memgraph.model.events.records import AccessRecorded, phase_key
from memgraph.model.ids import canonical_name
from memgraph.model.link import moment
from memgraph.model.memory import (
    COMMIT_FIELDS,
    MAX_CUES,
    MEMORY_TYPES,
    AgentMemory,
    StoredMemory,
    Vector,
    id_of,
    no_attempt,
)
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.results.learning import MADE_FROM_OTHERS, CopiesResult, MergeResult
from memgraph.model.similarity import cosine_similarity
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import Permits, everything
from memgraph.store.commit.records import Write, with_vector
from memgraph.store.query import Mask, Reader
from memgraph.text.words import overlap

Slots = NDArray[np.int64]
LOOKED_AT = 16
"""Of the memories that are near one, this many are compared with it."""
EQUAL = 1.0
"""Counts as the cosine of two equal texts, one of which has no vector."""

# --- finding ---

_LOOSE_WORDS = 3
"""Words by which two equal texts may differ when they are counted by white space: dashes and bullets stand alone or not."""
_BLOCK, _FEW, _RAREST = 8_192, 8, 6
_MOST_HOLDERS = 2_000
"""Of the memories with a term, this many are looked at, the last ones."""


def of_scope(store: AgentMemoryStore, kind: str, name: str | None) -> Mask:
    """Return which memories have exactly this project, task or domain; for None, those without one."""
    index = store.reader.index
    code = -1 if name is None else index.scopes.find(scope_name(kind, name))
    mask: Mask = (index.column(kind) == code) & (name is None or code >= 0)
    return mask


def match(
    reader: Reader, memory: AgentMemory, mask: Mask, *, threshold: float | None, loosely: bool = False
) -> tuple[float, StoredMemory | None]:
    """Return the nearest masked memory that says the same (`same`), and its cosine; (−1, None) if there is none.

    Without a threshold, and where one of the two has no vector, equal texts say the same. Equal texts come first.
    """
    if memory.embedding is not None and threshold is not None:
        near = near_to(reader, memory.embedding, mask, threshold)
        if len(near) > 1:
            crowd = np.zeros(len(reader.index), dtype=np.bool_)
            crowd[[reader.index.slot(one) for one in near]] = True
            equal = {one.id for one in equal_memories(reader, memory.content, crowd)}
            near = dict(sorted(near.items(), key=lambda item: item[0] not in equal))
        for one in [*near][:LOOKED_AT]:
            if (found := reader.get(one)) is not None and same(found, memory, loosely=loosely):
                return near[one], found
        mask = mask & ~reader.has_vector()
    found = next(iter(equal_memories(reader, memory.content, mask)), None)
    return (EQUAL, found) if found is not None else (-1.0, None)


def near_to(reader: Reader, vector: Vector, mask: Mask, threshold: float) -> dict[str, float]:
    """Return the masked memories whose vectors reach a cosine with this one, each with it: the nearest first, ties in id order."""
    slots = np.flatnonzero(mask & reader.has_vector())
    cosines = np.round(reader.cosines(vector, slots), 6) if len(slots) else np.empty(0)
    fit, names = cosines >= threshold, reader.index.ids.names
    found = zip((names[slot] for slot in slots[fit].tolist()), cosines[fit].tolist(), strict=True)
    return dict(sorted(found, key=lambda item: (-item[1], item[0])))


def equal_memories(reader: Reader, text: str, mask: Mask) -> list[StoredMemory]:
    """Return the masked memories with an equal text (`is_equal`), in id order; a text of signs alone equals none.

    Costs the length of the postings of the text's terms.
    """
    if not mask.any():
        return []
    index, words = reader.index, len(text.split())
    mask = mask & (np.abs(index.column("words") - words) <= _LOOSE_WORDS + words // 4)
    terms = set(analyse(canonical_name(text)))
    for term in terms:  # a text's terms are among those of every text that equals it, however it is written
        code = index.vocabulary.find(term)
        holds = np.zeros(len(index), dtype=np.bool_)
        holds[index.postings.get(code)[0] if code >= 0 else []] = True
        mask &= holds
    slots = np.flatnonzero(mask).tolist() if terms else ()
    memories = reader.read(sorted(index.ids.names[slot] for slot in slots))
    return [memory for memory in memories if is_equal(memory.content, text)]


def near(
    reader: Reader, slots: Sequence[int], others: Slots, *, cosine: float, share: float, of_smaller: bool
) -> dict[int, dict[int, float]]:
    """Return for each memory the nearest of some others, and how near: their cosine or, where one has no vector, the share of common terms.

    The share is that of the smaller text, or of both. For n memories and m others of dimension d it costs O(n · m · d), and by words the
    length of the postings of a text's rarest terms.
    """
    found: dict[int, dict[int, float]] = {slot: {} for slot in slots}
    if not slots:
        return found
    places = np.array(list(slots), dtype=np.int64)
    own, has_vector = places[reader.has_vector(places)].tolist(), reader.has_vector(others)
    for block, cosines in _cosines(reader, own, others[has_vector]):
        for row, at in zip(*(there.tolist() for there in np.nonzero(cosines >= cosine)), strict=True):
            found[own[row]][int(block[at])] = float(cosines[row, at])
    lacking, with_vector = others[~has_vector], set(own)
    for slot in slots:
        unseen = lacking if slot in with_vector else others
        by_words = sharing(reader.index, slot, unseen, share=share, of_smaller=of_smaller, most=LOOKED_AT)
        ordered = sorted((found[slot] | by_words).items(), key=lambda item: (-item[1], item[0]))
        found[slot] = dict([item for item in ordered if item[0] != slot][:LOOKED_AT])
    return found


def _cosines(reader: Reader, slots: Sequence[int], others: Slots) -> Iterator[tuple[Slots, NDArray[Any]]]:
    """Yield blocks of others with their cosines to some memories, shape (slots, others): of a few by a search, of many by products."""
    if not slots or not len(others):
        return
    vectors = reader.vectors(np.array(slots))
    if len(slots) <= _FEW:
        yield others, np.round(np.array([reader.cosines(one, others, only_near=True) for one in vectors]), 6)
        return
    for start in range(0, len(others), _BLOCK):
        block = others[start : start + _BLOCK]
        yield block, np.round((_units(vectors) @ _units(reader.vectors(block)).T).astype(np.float64), 6)


def _units(vectors: NDArray[np.float32]) -> NDArray[Any]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms == 0, np.float32(1), norms)


def sharing(index: Index, slot: int, others: Slots, *, share: float, of_smaller: bool, most: int) -> dict[int, float]:
    """Return those that have one of a memory's rarest terms and share enough of their terms with it, and how much.

    Texts of which two thirds of all terms are common have one of the rarest third in common (prefix filter: Chaudhuri, Ganti, Kaushik 2006;
    Bayardo, Ma, Srikant 2007).
    """
    own = set(index.sequences.get(slot).tolist())
    if not len(others) or not own:
        return {}
    shared_terms = (held for code in own if len(held := index.postings.get(code)[0]) > 1)
    rarest = sorted(shared_terms, key=len)[: max(_RAREST, len(own) // 3 + 1)]
    holders, shared = np.unique(
        np.concatenate([np.empty(0, np.int64), *(held[-_MOST_HOLDERS:] for held in rarest)]), return_counts=True
    )
    fit = np.isin(holders, others) & (holders != slot)
    first = holders[fit][np.argsort(-shared[fit], kind="stable")][: 4 * most].tolist()
    alike = {other: overlap(own, set(index.sequences.get(other).tolist()), of_smaller=of_smaller) for other in first}
    return {other: round(found, 6) for other, found in alike.items() if found >= share}


# --- merging ---

M = TypeVar("M", bound=AgentMemory)
_DESCRIBES_TEXT = (
    "title", "reason", "occurred_at", "event_date", "location", "decision", "alternatives_considered", "files_involved",
    "git_commit", "entities", *sorted(COMMIT_FIELDS),
)  # fmt: skip
"""Fields that describe the text: they are taken from the same memory as the text."""
SAME_TEXT, NEAR_DUPLICATE = "same text", "near-duplicate"
"""Reasons of the SUPERSEDES link from the memory that stays to the one that was merged into it."""


def merged(
    existing: M, candidate: AgentMemory, now: str, curve: ForgettingCurveConfig, *, takes_text: bool | None = None
) -> M:
    """Return the memory that results from merging a duplicate into it (design §5, seed 0).

    The longer text wins (unless `takes_text` says which), with the fields that describe it, unless the existing memory is pinned; sources and
    builds are united; relevance becomes the curve's current value (``(old + 1) / 2``, or its increment), confidence ``(old + 2·new) / 3``.
    """
    if takes_text is None:
        takes_text = len(candidate.content) > len(existing.content) and not existing.is_pinned
    relevance = curve.confirmed(existing.relevance_score)
    update: dict[str, object] = {
        "source_event_ids": united(existing.source_event_ids, candidate.source_event_ids),
        "evidence_build_ids": united(existing.evidence_build_ids, candidate.evidence_build_ids),
        "cues": united(existing.cues, candidate.cues)[:MAX_CUES],
        "relevance_score": relevance,
        "relevance_anchor": relevance,
        "relevance_at": now,
        "confidence": round((existing.confidence + 2.0 * candidate.confidence) / 3.0, 6),
        "updated_at": now,
    }
    if takes_text:
        described = {name: getattr(candidate, name, None) for name in _DESCRIBES_TEXT}
        update |= {name: value for name, value in described.items() if value}
        # the fields of the attempt go with the text that was rendered from them
        own = {**no_attempt(), "is_solved": None}
        update |= {name: getattr(candidate, name, nothing) for name, nothing in own.items() if hasattr(existing, name)}
        update |= {"content": candidate.content, "embedding": candidate.embedding, "archive_summary": None}
    return existing.model_copy(update=update)


def joined(
    kept: StoredMemory, other: StoredMemory, now: str, curve: ForgettingCurveConfig, *, takes_text: bool
) -> StoredMemory:
    """Return the result of merging two stored memories: as at consolidation, but without confirming anything.

    A source that is trusted less adds neither confidence nor relevance, one that is trusted otherwise no tags and cues.
    """
    after = merged(kept, other, now, curve, takes_text=takes_text)
    is_trusted = TRUST.index(other.trust_class) <= TRUST.index(kept.trust_class)
    higher = other if is_trusted and not kept.is_pinned and other.relevance_score > kept.relevance_score else kept
    is_equal = other.trust_class == kept.trust_class
    sources = [*(one for one in after.source_event_ids if one != other.id), other.id]
    return after.model_copy(
        update={
            "relevance_score": higher.relevance_score,
            "relevance_anchor": higher.relevance_anchor,
            "relevance_at": higher.relevance_at,
            "confidence": max(kept.confidence, other.confidence) if is_trusted else kept.confidence,
            "source_event_ids": sources[-MAX_ITEMS:],
            "tags": united(kept.tags, other.tags) if is_equal else kept.tags,
            "cues": after.cues if is_equal else kept.cues,
        }
    )


def merge_write(existing: AgentMemory, candidate: AgentMemory, after: AgentMemory, *, is_stored: bool = False) -> Write:
    """Return the event by which a memory takes up a duplicate, with its new vector; it keeps a text that is stored nowhere else."""
    is_lost = not is_stored and candidate.content not in (existing.content, after.content)
    revision = revised(existing, after)
    event = MemoryMerged(
        id=id_of(existing),
        candidate_id=candidate.id,
        candidate_content=candidate.content if is_lost else None,
        changed=revision.changed,
        cleared=revision.cleared,
    )
    return with_vector(event, after.embedding if after.content != existing.content else None)


def united(first: list[str], second: list[str]) -> list[str]:
    """Return the union of two lists; the newest entries stay if it exceeds what a memory can hold."""
    return list(dict.fromkeys([*first, *second]))[-MAX_ITEMS:]


# --- merging in sleep ---

PHASE, COPIES = "near-duplicates", "copies"
SLEEP_COSINE = 0.9
"""Minimum cosine: the strictest, because here each memory is compared with all of its group, whatever their sources."""
SLEEP_OVERLAP = 0.7
"""Texts without vectors are compared if they share at least this fraction of their terms (seed 1)."""
_GROUP_COLUMNS = ("type", "project", "task", "tier", "trust", "outcome", "domain", "speaker")
_COPY_COLUMNS = ("project", "task", "tier", "domain")
_PORTION = 500
_WATCH = Watch(
    (AccessRecorded,), frozenset({"floor", "archive_summary", "relevance_anchor", "relevance_at", "updated_at"})
)
"""Events that can change which memories say the same."""

R = TypeVar("R", MergeResult, CopiesResult)


def merge_near_duplicates(
    store: AgentMemoryStore, *, is_time_up: TimeIsUp = never, on_portion: Callable[[int], None] | None = None
) -> MergeResult:
    """Merge memories that say the same, comparing those that are new or changed since this sleep phase last completed. Idempotent.

    Before each portion but the first, `is_time_up` may leave the rest to the next run; after each but the last, `on_portion` gets the last
    journal event covered, so that the caller can record the progress and a later run can continue from there.
    """
    return _in_portions(store, PHASE, MergeResult(), _near_duplicates, is_time_up, on_portion)


def merge_copies(
    store: AgentMemoryStore, *, is_time_up: TimeIsUp = never, on_portion: Callable[[int], None] | None = None
) -> CopiesResult:
    """Merge the copies among memories that are new or changed; parameters as for `merge_near_duplicates`. Idempotent."""
    return _in_portions(
        store, COPIES, CopiesResult(), lambda view, portion: _copies(view, portion.touched), is_time_up, on_portion
    )


def merge_copies_of(
    store: AgentMemoryStore, memory_ids: Iterable[str], *, actor: Actor = "system", may: Permits = everything
) -> dict[str, str]:
    """Merge the copies of memories that `actor` just wrote, among those that it may have; return for each that is gone the one that stays."""
    ids, stays = list(memory_ids), dict[str, str]()
    if ids:
        carry_out(store, partial(_copies, ids=ids, stays=stays, may=may), attempts=1, actor=actor)
    return {one: stays[one] for one in ids if one in stays}


def copies_of(store: AgentMemoryStore, memory_id: str) -> list[str]:
    """Return the copies that were merged into a memory: they would be in force again without it."""
    found, waiting = {memory_id: None}, [memory_id]
    while waiting:
        one = waiting.pop()
        links = (link for link in store.links(one) if link.relation == "SUPERSEDES" and link.source_id == one)
        new = [link.target_id for link in links if link.reason == SAME_TEXT and link.target_id not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return [*found][1:]


def _in_portions(
    store: AgentMemoryStore,
    phase: str,
    total: R,
    plan: Callable[..., Plan[R]],
    is_time_up: TimeIsUp,
    on_portion: Callable[[int], None] | None,
) -> R:
    since, until = last_run(store.reader, phase_key(phase)).get("seq", 0), store.reader.index.offset.seq
    portions = changes_after(
        store.reader, since, _WATCH.touched, until=until, most_memories=_PORTION, most_events=MOST_EVENTS
    )
    for number, portion in enumerate(portions):
        if number and is_time_up():
            return total.model_copy(update={"complete": False})
        total = added(total, carry_out(store, partial(plan, portion=portion), rests_on=_WATCH.touched).result)
        if on_portion and not portion.is_last:
            on_portion(portion.through_seq)
    return total


class Near(NamedTuple):
    """Two near memories: ids, and their similarity: the share of common terms if `is_by_words`, else the cosine."""

    score: float
    one: str
    other: str
    is_by_words: bool = False


@dataclass(slots=True, eq=False)
class _Union:
    """Memories that become one: the one that stays, and the one whose text stands for all.

    `others` are merged into it, each with the pair that united them; `known` are the ids of all, and of what was merged into them before.
    """

    kept: StoredMemory
    text: StoredMemory
    known: set[str]
    others: list[tuple[StoredMemory, Near]] = field(default_factory=list)

    @classmethod
    def of(cls, memory: StoredMemory) -> _Union:
        return cls(memory, memory, {memory.id, *memory.source_event_ids})

    @property
    def ids(self) -> set[str]:
        return {self.kept.id, *(one.id for one, _ in self.others)}

    def fits(self, other: _Union, opposed: Mapping[str, set[str]]) -> bool:
        """Return whether another union may become one with this one."""
        if not self.known.isdisjoint(other.ids) or not other.known.isdisjoint(self.ids):
            return False  # some were merged before, and were separated
        if any(other.known & opposed[one] for one in self.known & opposed.keys()):
            return False  # they, or memories merged into them, contradict each other
        both = (self.kept, other.kept)
        if all(one.is_pinned for one in both) and not is_equal(*(one.content for one in both)):
            return False
        every = [one for union in (self, other) for one in (union.kept, *(gone for gone, _ in union.others))]
        outcomes = {one.outcome for one in every}
        if len(outcomes) > 1 and "negative" in outcomes:
            return False  # a failure is the same only as a failure
        if len({one.speaker for one in every} - {None}) > 1:
            return False  # what two speakers say in equal words are two statements
        return _are_near(self.text, other.text) and same(self.text, other.text)

    def take(self, other: _Union, near: Near) -> None:
        """Unite with another union, whose memories are gone."""
        self.text = self.kept if self.kept.is_pinned else stands_for_both(self.text, other.text)
        self.known |= other.known
        self.others += [(other.kept, near), *other.others]


def may_be_one(opposed: Mapping[str, set[str]], kept: StoredMemory, other: StoredMemory) -> bool:
    """Return whether one of two nearby memories may be merged into the other; `opposed` are the contradicting ones of each."""
    return _is_mergeable(kept) and _is_mergeable(other) and _Union.of(kept).fits(_Union.of(other), opposed)


def _are_near(one: StoredMemory, other: StoredMemory) -> bool:
    if is_equal(one.content, other.content):
        return True
    if one.embedding is not None and other.embedding is not None:
        return round(cosine_similarity(one.embedding, other.embedding), 6) >= SLEEP_COSINE
    return overlap(set(analyse(one.content)), set(analyse(other.content))) >= SLEEP_OVERLAP


def _is_mergeable(memory: StoredMemory) -> bool:
    is_evidence = memory.type == "episodic" and not memory.evidence_build_ids
    return memory.source not in MADE_FROM_OTHERS and not is_evidence


def _united(reader: Reader, pairs: Iterable[Near]) -> list[_Union]:
    """Return the unions of at least two memories. The nearest pairs come first."""
    with reader.frozen():
        opposed = linked(reader.index, "CONTRADICTS")
    ordered = sorted(pairs, key=lambda pair: (-pair.score, pair.one, pair.other))
    ids = dict.fromkeys(one for pair in ordered for one in (pair.one, pair.other))
    unions = {one.id: _Union.of(one) for one in reader.read([*ids]) if _is_mergeable(one)}
    for pair in ordered:
        one, other = unions.get(pair.one), unions.get(pair.other)
        if one and other and one is not other:
            are_copies = is_equal(one.text.content, other.text.content)
            first, second = (unions[kept.id] for kept in _ranked([one.kept, other.kept], are_copies=are_copies))
            if first.fits(second, opposed):
                first.take(second, pair)
                unions |= dict.fromkeys(second.ids, first)
    return [one for one in dict.fromkeys(unions.values()) if one.others]


def _ranked(memories: Iterable[StoredMemory], *, are_copies: bool) -> list[StoredMemory]:
    """Return memories, first the one that stays."""
    by_date = sorted(memories, key=moment, reverse=not are_copies)
    return sorted(by_date, key=lambda one: (not one.is_pinned, TRUST.index(one.trust_class)))


def _commits(view: View, unions: Sequence[_Union], reason: str) -> list[Commit]:
    """Return the merges into the memories that stay: a union is committed as a whole, so that an interrupted run comes to the same ones."""
    merges = list[tuple[str | None, list[Write]]]()
    for union in unions:
        kept, writes = union.kept, list[Write]()
        for other, pair in union.others:
            after = joined(kept, other, view.now, view.config.forgetting_curve, takes_text=other is union.text)
            link = linked_to(kept.id, "SUPERSEDES", other.id, reason, view.now).model_copy(update={"score": pair.score})
            writes += [merge_write(kept, other, after, is_stored=True), link]
            kept = after
        merges.append((kept.task_id, writes))
    return commits_by_task(merges)


def _copies(
    view: View, ids: Iterable[str], stays: dict[str, str] | None = None, may: Permits = everything
) -> Plan[CopiesResult]:
    """Plan the merges of copies; `stays` receives for each memory that is gone the one that stays."""
    reader, pairs, looked_at = view.reader, set[Near](), 0
    with reader.frozen():
        index, there = reader.index, without_parts(reader.index, in_force(reader)) & may(reader)
        for slot in (slot for one in ids if (slot := index.slot(one)) >= 0 and there[slot]):
            looked_at += 1
            mask = there.copy()
            for name in _COPY_COLUMNS:
                mask &= index.column(name) == index.column(name)[slot]
            speaker = index.column("speaker")
            if speaker[slot] >= 0:  # what two speakers say in equal words are two statements
                mask &= (speaker == speaker[slot]) | (speaker < 0)
            mask[slot] = False
            for memory in reader.read([index.ids.names[slot]]) if mask.any() else ():
                first, *rest = _ranked([memory, *equal_memories(reader, memory.content, mask)], are_copies=True)
                pairs |= {Near(1.0, first.id, other.id) for other in rest}  # the rest may have been separated from it
    unions = _united(reader, pairs)
    gone = {one.id: union.kept.id for union in unions for one, _ in union.others}
    if stays is not None:
        stays |= gone
    return Plan(CopiesResult(looked_at=looked_at, merged=len(gone)), _commits(view, unions, SAME_TEXT))


def _near_duplicates(view: View, portion: Changes) -> Plan[MergeResult]:
    """Plan the merges of a portion with everything recorded up to its end."""
    reader, pairs, looked_at = view.reader, list[Near](), 0
    with reader.frozen():
        index, has_vector = reader.index, reader.has_vector()
        there = without_parts(index, in_force(reader))
        if not portion.is_last:
            there &= index.column("seq") <= portion.through_seq
        slots, is_new, names = np.flatnonzero(there), _is_new(index, portion.touched), index.ids.names
        for members in (slots[places] for places in groups(index, slots)):
            new = members[is_new[members]].tolist()
            looked_at += len(new)
            found = near(reader, new, members, cosine=SLEEP_COSINE, share=SLEEP_OVERLAP, of_smaller=False)
            for slot, other, score in ((slot, *item) for slot, others in found.items() for item in others.items()):
                one, its = sorted((names[slot], names[other]))
                pairs.append(Near(score, one, its, not (has_vector[slot] and has_vector[other])))
    unions = _united(reader, pairs)
    merged = [pair for union in unions for _, pair in union.others]
    result = MergeResult(looked_at=looked_at, merged=len(merged), by_words=sum(pair.is_by_words for pair in merged))
    return Plan(result, _commits(view, unions, NEAR_DUPLICATE))


def in_force(reader: Reader) -> Mask:
    """Return the memories in force, without those told in one session only: they decide nothing beyond it."""
    mask: Mask = reader.listed() & ~reader.superseded() & ~reader.index.column("is_session_bound")
    return mask


def without_parts(index: Index, mask: Mask) -> Mask:
    """Return a mask without parts of longer texts, which hold part of a meaning."""
    is_part = (index.column("previous") >= 0) | (index.column("following") >= 0)
    whole: Mask = mask & ~(is_part & (index.column("type") != MEMORY_TYPES.index("episodic")))
    return whole


def groups(index: Index, slots: Slots) -> Iterator[Slots]:
    """Yield groups of at least two places among the slots that may be compared with each other."""
    if not len(slots):
        return
    ends = np.unique(index.column("invalid_days")[slots], return_inverse=True)[1].ravel()
    columns = [index.column(name)[slots].astype(np.int64) for name in _GROUP_COLUMNS]
    codes = np.unique(np.stack([*columns, ends], axis=1), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(codes, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if len(places) > 1:
            yield places


def linked(index: Index, relation: str) -> dict[str, set[str]]:
    """Return the ids at the other end of each memory's links of this kind, in either direction."""
    sources, targets = index.links.pairs(RELATION_CODE[relation])
    found: dict[str, set[str]] = {}
    for one, other in zip(sources.tolist(), targets.tolist(), strict=True):
        for mine, its in ((one, other), (other, one)):
            found.setdefault(index.ids.names[mine], set()).add(index.ids.names[its])
    return found


def _is_new(index: Index, touched: Iterable[str]) -> Mask:
    """Return which slots are new, have changed, or were superseded by such a memory."""
    mask = np.zeros(len(index), dtype=np.bool_)
    mask[[slot for one in touched if (slot := index.slot(one)) >= 0]] = True
    newer, older = index.links.pairs(RELATION_CODE["SUPERSEDES"])
    mask[older[mask[newer]]] = True
    return mask
