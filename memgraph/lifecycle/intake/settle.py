"""Settling: whether a memory is new, known, forgotten, or what the user decided against. The doors of intake ask it, and act on the answer.

A memory is *known* if one in force says the same and may stand for both: of equal type, project, task, domain, privacy tier, trust
class and outcome, and recalled in the same sessions. What is *forgotten* stays so: a suppressed memory is hidden from the search for
duplicates, so that a repetition would come back as a new, visible memory; it is left out instead. This mixes nothing, so type, privacy
tier and trust class are ignored, and shared knowledge that was forgotten is forgotten in every project. Decisions of the user stand
likewise: what repeats a memory that the user has replaced is left out.

Call these under the writer lock.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np

from memgraph.index.columns import OUTCOMES, TIERS, TRUST, columns_of_source
from memgraph.lifecycle.dedup.duplicates import equal_memories, nearest, of_scope
from memgraph.lifecycle.dedup.facts import is_equal
from memgraph.lifecycle.dedup.merge import SAME_TEXT, merge_event, merged
from memgraph.lifecycle.dedup.same import differ, same
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.memory import AgentMemory, StoredMemory, Vector, id_of
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import of_or_none, of_session
from memgraph.store.access.visibility import Permits, everything
from memgraph.store.commit.records import Write, with_vector
from memgraph.store.query import Mask

OBSERVATION_COSINE = 0.85
"""Minimum cosine of two observations, which agents word as whole statements (seed 2)."""
_MOST_READ = 20
_EQUAL = 1.0
"""Counts as the cosine of two equal texts, one of which has no vector."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What is known of a memory.

    Attributes
    ----------
    state : {"new", "known", "forgotten", "decided", "stored"}
        ``decided``: the user has replaced what it says; ``stored``: a memory with its id is there already.
    memory : AgentMemory or None
        The one that says the same, as the pending commit leaves it: in force, forgotten or replaced. None if it is new, or was deleted.
    by : str or None
        Of a replaced one, the memory by which the user replaced it.
    """

    state: Literal["new", "known", "forgotten", "decided", "stored"]
    memory: AgentMemory | None = None
    by: str | None = None


class Pending:
    """Memories added or merged in the pending commit: its own memories are compared with each other, too."""

    def __init__(self, store: AgentMemoryStore) -> None:
        self.now = store.now()
        self._index, self._curve = store.reader.index, store.config.forgetting_curve
        self._touched: dict[str, AgentMemory] = {}
        self._kin: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
        self.replaced: set[str] = set()
        """Ids of the memories that the commit supersedes: nothing is merged into them."""

    def add(self, memory: AgentMemory) -> AgentMemory:
        """Add a new memory, with the times that its commit will set, and return it as it was given."""
        times = ("created_at", "updated_at", "relevance_at", "occurred_at")
        self._touched[id_of(memory)] = memory.model_copy(
            update={one: getattr(memory, one) or self.now for one in times}
        )
        if not (memory.is_suppressed or memory.archived_at or memory.invalid_at):  # the extractor may have set it
            self._kin[_kin_of(memory)].append(id_of(memory))
        return memory

    def keep(self, record: AgentMemory) -> AgentMemory:
        """Add a record, with which no other memory is compared, and return it."""
        self._touched[id_of(record)] = record
        return record

    def merge(self, known: AgentMemory, memory: AgentMemory, *, takes_text: bool | None = None) -> Write:
        """Merge a memory into a known one; return what is to be written, with a vector if the text changes."""
        after = merged(known, memory, self.now, self._curve, takes_text=takes_text)
        self._touched[id_of(known)] = after
        event = merge_event(known, after, candidate=memory, now=self.now)
        return with_vector(event, after.embedding if after.content != known.content else None)

    def state_of(self, memory: AgentMemory) -> AgentMemory:
        """Return a memory as the commit leaves it."""
        return self._touched.get(id_of(memory), memory)

    def holds(self, memory: AgentMemory) -> bool:
        """Return whether a memory with this one's id is stored, deleted ones included, or about to be."""
        return id_of(memory) in self._touched or self._index.slot(id_of(memory)) >= 0

    def match(self, memory: AgentMemory, threshold: float | None) -> tuple[float, AgentMemory | None]:
        """Return the nearest of the new memories that say the same, and its cosine; (−1, None) if there is none."""
        kin = [self._touched[key] for key in self._kin.get(_kin_of(memory), ()) if key not in self.replaced]
        vectors = [one.embedding for one in kin if one.embedding is not None]
        if memory.embedding is not None and vectors and threshold is not None:
            units = np.stack([_unit(vector) for vector in vectors])
            cosines = np.round(units @ _unit(memory.embedding), 6).tolist()
            found = zip(cosines, (one for one in kin if one.embedding is not None), strict=True)
            for cosine, one in sorted(found, key=lambda pair: (-pair[0], pair[1].id)):
                if cosine >= threshold and same(one, memory):
                    return cosine, one
        compared = (one for one in kin if one.embedding is None or memory.embedding is None)
        equal = next((one for one in compared if is_equal(one.content, memory.content)), None)
        return (_EQUAL, equal) if equal else (-1.0, None)


def settle(
    store: AgentMemoryStore,
    memory: AgentMemory,
    *,
    threshold: float | None,
    pending: Pending | None = None,
    may: Permits = everything,
) -> Settled:
    """Return whether a memory is new, known, forgotten or decided against.

    Parameters
    ----------
    threshold : float or None
        Minimum cosine of two memories with the same meaning. None: only equal texts are the same, and the known one may be more private.
    pending : Pending, optional
        What the same commit adds or merges.
    may : callable
        Which memories count: those that the writer may have.
    """
    reader = store.reader
    allowed = may(reader)
    known: AgentMemory | None
    comparable = _comparable(store, memory, threshold) & allowed
    if pending is not None:
        comparable[[slot for one in pending.replaced if (slot := reader.index.slot(one)) >= 0]] = False
    cosine, known = _match(store, memory, comparable, threshold)
    if pending is not None:
        cosine, known = max((cosine, known), pending.match(memory, threshold), key=lambda pair: pair[0])
        known = pending.state_of(known) if known else None
    if memory.id in reader.rejected():
        return Settled("forgotten")
    if (gone := _forgotten(store, memory, allowed, threshold, cosine)) is not None:
        return Settled("forgotten", gone)
    if known is not None:
        return Settled("known", known)
    if (decided := _decided(store, memory, allowed, threshold)) is not None:
        return decided
    return Settled("stored" if pending is not None and pending.holds(memory) else "new")


def _match(
    store: AgentMemoryStore, memory: AgentMemory, mask: Mask, threshold: float | None
) -> tuple[float, StoredMemory | None]:
    """Return the masked memory that says the same, and its cosine; (−1, None) if there is none. Where one of two has no vector, equal texts are the same."""
    if memory.embedding is not None and threshold is not None:
        cosine, found = nearest(store, memory.embedding, mask, threshold=threshold, of=memory)
        if found is not None:
            return cosine, found
        mask = mask & ~store.reader.has_vector()
    found = next(iter(equal_memories(store.reader, memory.content, mask)), None)
    return (_EQUAL, found) if found is not None else (-1.0, None)


def _comparable(store: AgentMemoryStore, memory: AgentMemory, threshold: float | None) -> Mask:
    """Return the memories in force that may stand for one and for another that says the same."""
    index, tier = store.reader.index, TIERS.index(memory.privacy_tier)
    mask = store.reader.listed(type=memory.type) & ~store.reader.superseded() & _recalled_with(store, memory)
    mask &= of_scope(store, "project", memory.project_id) & of_scope(store, "task", memory.task_id)
    mask &= index.column("trust") == TRUST.index(memory.trust_class)
    mask &= index.column("outcome") == OUTCOMES.index(memory.outcome)
    if threshold is None:  # it is found, not mixed
        mask &= index.column("tier") >= tier
    else:
        mask &= (index.column("tier") == tier) & of_scope(store, "domain", memory.domain)
    return mask


def _kin_of(memory: AgentMemory) -> tuple[object, ...]:
    """Return for new memories what `_comparable` compares in stored ones."""
    fields = ("type", "project_id", "task_id", "domain", "privacy_tier", "trust_class", "outcome")
    return (_session_of(memory), *(getattr(memory, name) for name in fields))


def _session_of(memory: AgentMemory) -> str | None:
    """Return the session in which alone a memory is recalled, None if there is no such."""
    source = {"source": memory.source, "session_id": memory.session_id}
    return memory.session_id if columns_of_source(source)["is_session_bound"] else None


def _recalled_with(store: AgentMemoryStore, memory: AgentMemory) -> Mask:
    """Return which memories are recalled where this one is: those of its session alone, or those that every session recalls."""
    bound: Mask = store.reader.index.column("is_session_bound")
    session = _session_of(memory)
    return ~bound if session is None else bound & of_session(store.reader.index, session)


def _forgotten(
    store: AgentMemoryStore, memory: AgentMemory, allowed: Mask, threshold: float | None, cosine: float
) -> StoredMemory | None:
    """Return the forgotten memory that one repeats, if that is nearer than the one in force; ties go to the latter."""
    reader, index = store.reader, store.reader.index
    mask = reader.listed(state="suppressed") & allowed
    mask &= _recalled_with(store, memory) | ~index.column("is_session_bound")
    mask &= of_or_none(index, "project", memory.project_id) & of_or_none(index, "task", memory.task_id)
    outcome, unknown = index.column("outcome"), OUTCOMES.index("unknown")
    if memory.outcome != "unknown":  # an unknown outcome contradicts nothing
        mask &= (outcome == OUTCOMES.index(memory.outcome)) | (outcome == unknown)
    if not mask.any():
        return None
    said = reader.listed() & (index.column("trust") == TRUST.index("user"))
    said &= of_or_none(index, "project", memory.project_id)
    if equal_memories(reader, memory.content, said):  # the user said it again after it was forgotten
        return None
    if memory.embedding is not None and threshold is not None:
        slots = np.flatnonzero(mask & reader.has_vector())
        cosines = np.round(reader.cosines(memory.embedding, slots), 6)
        near = [place for place in np.argsort(-cosines, kind="stable")[:_MOST_READ] if cosines[place] >= threshold]
        nearer = store.read_memories([index.ids.names[slots[place]] for place in near if cosines[place] > cosine])
        if (found := next((one for one in nearer if not differ(memory, one)), None)) is not None:
            return found
        mask &= ~reader.has_vector()
    return next(iter(equal_memories(reader, memory.content, mask)), None) if cosine < _EQUAL else None


def _decided(store: AgentMemoryStore, memory: AgentMemory, allowed: Mask, threshold: float | None) -> Settled | None:
    """Return the memory that one says again and that by which the user replaced it; None if there is no such decision.

    Of what the writer may not have nothing is named. Reads the journal, if there is a superseded memory of the same meaning.
    """
    if memory.trust_class == "user":
        return None
    reader, index = store.reader, store.reader.index
    mask = allowed & reader.superseded() & index.memories() & _recalled_with(store, memory)
    mask &= ~index.column("is_suppressed") & ~index.column("is_archived")
    mask &= of_scope(store, "project", memory.project_id) & of_scope(store, "task", memory.task_id)
    known = _match(store, memory, mask, threshold)[1] if mask.any() else None
    if known is None:
        return None
    links = [one for one in store.links(known.id) if one.relation == "SUPERSEDES" and one.target_id == known.id]
    newer = {one.source_id for one in links if (slot := index.slot(one.source_id)) >= 0 and allowed[slot]}
    made = (event.payload for event in reader.history(known.id) if event.actor == "user")
    links_made = (one for one in made if isinstance(one, MemoryLinked) and one.relation == "SUPERSEDES")
    decisions = (
        one for one in links_made if one.reason != SAME_TEXT
    )  # a copy that became one with another is no decision
    by = next((one.source_id for one in decisions if one.target_id == known.id and one.source_id in newer), None)
    return Settled("decided", known, by) if by else None


def _unit(vector: Vector) -> Vector:
    unit: Vector = vector / (float(np.linalg.norm(vector)) or 1.0)
    return unit
