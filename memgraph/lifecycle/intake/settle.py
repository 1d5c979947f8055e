"""Settling: whether a memory is new, known, forgotten, or what the user decided against. The doors of intake ask it, and act on the answer.

A memory is *known* if one in force says the same and may stand for both: of equal type, project, task, domain, privacy tier, trust
class and outcome, and recalled in the same sessions. What is *forgotten* stays so: a suppressed memory is hidden from the search for
duplicates, so that a repetition would come back as a new, visible memory; it is left out instead. This mixes nothing, so type, privacy
tier and trust class are ignored, and shared knowledge that was forgotten is forgotten in every project. Decisions of the user stand
likewise: what repeats a memory that the user has replaced is left out. What is stored is then *compared* with copies of it that came in
through other doors, and with what it may contradict.

Call these under the writer lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from memgraph.extraction.secrets import redact_any
from memgraph.index.columns import OUTCOMES, TIERS, TRUST, columns_of_source
from memgraph.lifecycle.contradictions.search import find_contradictions_of
from memgraph.lifecycle.dedup.near_duplicates import (
    EQUAL,
    SAME_TEXT,
    equal_memories,
    match,
    merge_copies_of,
    merge_write,
    merged,
    of_scope,
)
from memgraph.lifecycle.dedup.same import is_equal, same
from memgraph.model.base import Model
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.events.payload import Actor
from memgraph.model.memory import MEMORY_TYPES, RECORD_SOURCES, AgentMemory, StoredMemory, Vector, id_of
from memgraph.model.results.learning import ContradictionResult
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import of_or_none, of_session
from memgraph.store.access.visibility import Permits, everything
from memgraph.store.commit.records import Write
from memgraph.store.query import Mask

T = TypeVar("T", bound=Model)
OBSERVATION_COSINE = 0.85
"""Minimum cosine of two observations, which agents word as whole statements (seed 2)."""
_ALIKE = (
    ("type", "type", MEMORY_TYPES),
    ("trust", "trust_class", TRUST),
    ("outcome", "outcome", OUTCOMES),
    ("tier", "privacy_tier", TIERS),
    ("project", "project_id", ()),
    ("task", "task_id", ()),
    ("domain", "domain", ()),
)
"""What is equal in two memories of which one may stand for the other: the column, the field, and the values that the column numbers."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What is known of a memory: ``decided`` if the user has replaced what it says, ``stored`` if a memory with its id is there already.

    `memory` says the same, as the pending commit leaves it: in force, forgotten, or replaced `by` another one.
    """

    state: Literal["new", "known", "forgotten", "decided", "stored"]
    memory: AgentMemory | None = None
    by: str | None = None

    @property
    def is_left_out(self) -> bool:
        """Whether the memory says again what the user does not want."""
        return self.state in ("forgotten", "decided")


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
        """Add a new memory, with the times that its commit will set, and return it as it was given. With a record nothing is compared."""
        times = ("created_at", "updated_at", "relevance_at", "occurred_at")
        dated = memory.model_copy(update={one: getattr(memory, one) or self.now for one in times})
        self._touched[id_of(memory)] = dated
        is_hidden = memory.is_suppressed or memory.archived_at or memory.invalid_at  # the extractor may have set it
        if not (is_hidden or memory.source in RECORD_SOURCES):
            self._kin[_kin_of(memory)].append(id_of(memory))
        return memory

    def merge(self, known: AgentMemory, memory: AgentMemory, *, takes_text: bool | None = None) -> Write:
        """Merge a memory into a known one; return what is to be written, with a vector if the text changes."""
        after = merged(known, memory, self.now, self._curve, takes_text=takes_text)
        self._touched[id_of(known)] = after
        return merge_write(known, memory, after)

    def state_of(self, memory: AgentMemory) -> AgentMemory:
        """Return a memory as the commit leaves it."""
        return self._touched.get(id_of(memory), memory)

    def holds(self, memory: AgentMemory) -> bool:
        """Return whether a memory with this one's id is stored, deleted ones included, or about to be."""
        return memory.id is not None and (memory.id in self._touched or self._index.slot(memory.id) >= 0)

    def match(self, memory: AgentMemory, threshold: float | None) -> tuple[float, AgentMemory | None]:
        """Return the nearest of the new memories that say the same, and its cosine, as `match` does for stored ones."""
        best: tuple[float, AgentMemory | None] = (-1.0, None)
        for one in (self._touched[key] for key in self._kin.get(_kin_of(memory), ()) if key not in self.replaced):
            if threshold is None or one.embedding is None or memory.embedding is None:
                if best[0] < EQUAL and is_equal(one.content, memory.content):
                    best = (EQUAL, one)
            elif (near := _cosine(one.embedding, memory.embedding)) >= max(threshold, best[0] + 1e-9) and same(
                one, memory
            ):
                best = (near, one)
        return best


def redacted(store: AgentMemoryStore, said: T) -> tuple[T, int]:
    """Return a text or log without its secrets, and their number: before anything is cut, since a truncated secret would not be recognised."""
    return redact_any(said) if store.config.redact_secrets else (said, 0)


def settle(
    store: AgentMemoryStore,
    memory: AgentMemory,
    *,
    threshold: float | None,
    pending: Pending | None = None,
    may: Permits = everything,
) -> Settled:
    """Return whether a memory is new, known, forgotten or decided against. A record is compared with nothing.

    The threshold is the least cosine of two memories with the same meaning; without one only equal texts are the same, and the known one may be
    more private. `pending` is what the same commit adds or merges; of the store those memories count that the writer may have.
    """
    reader, pending = store.reader, pending or Pending(store)
    if memory.id in reader.rejected():
        return Settled("forgotten")
    if memory.source not in RECORD_SOURCES:
        allowed = may(reader)
        comparable = _comparable(store, memory, threshold) & allowed
        comparable[[slot for one in pending.replaced if (slot := reader.index.slot(one)) >= 0]] = False
        stored, new = match(reader, memory, comparable, threshold=threshold), pending.match(memory, threshold)
        cosine, known = max(stored, new, key=lambda found: found[0])
        if (gone := _forgotten(store, memory, allowed, threshold, cosine)) is not None:
            return Settled("forgotten", gone)
        if known is not None:
            return Settled("known", pending.state_of(known))
        if (decided := _decided(store, memory, allowed, threshold)) is not None:
            return decided
    return Settled("stored" if pending.holds(memory) else "new")


def compared(
    store: AgentMemoryStore, ids: Sequence[str], *, actor: Actor = "system", may: Permits = everything
) -> tuple[dict[str, str], ContradictionResult]:
    """Merge new memories with their copies, and link them to what they contradict, among those that their writer may have.

    Returns for each that is gone the one that stays, and what the others contradict.
    """
    stays = merge_copies_of(store, ids, actor=actor, may=may)
    return stays, find_contradictions_of(store, [one for one in ids if one not in stays], actor=actor, may=may)


def _comparable(store: AgentMemoryStore, memory: AgentMemory, threshold: float | None) -> Mask:
    """Return the memories in force that may stand for one and for another that says the same."""
    reader = store.reader
    mask = reader.listed() & ~reader.superseded() & _recalled_with(store, memory)
    for column, name, values in _ALIKE:
        value = getattr(memory, name)
        if threshold is None and column in ("tier", "domain"):  # it is found, not mixed
            mask &= reader.index.column("tier") >= TIERS.index(memory.privacy_tier)
        elif values:
            mask &= reader.index.column(column) == values.index(value)
        else:
            mask &= of_scope(store, column, value)
    return mask


def _kin_of(memory: AgentMemory) -> tuple[object, ...]:
    """Return for new memories what `_comparable` compares in stored ones."""
    return (_session_of(memory), *(getattr(memory, name) for _, name, _ in _ALIKE))


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
    if memory.outcome != "unknown":  # an unknown outcome contradicts nothing
        mask &= np.isin(index.column("outcome"), [OUTCOMES.index(memory.outcome), OUTCOMES.index("unknown")])
    if not mask.any():
        return None
    said = reader.listed() & (index.column("trust") == TRUST.index("user"))
    said &= of_or_none(index, "project", memory.project_id)
    if equal_memories(reader, memory.content, said):  # the user said it again after it was forgotten
        return None
    nearness, gone = match(reader, memory, mask, threshold=threshold, loosely=True)
    return gone if nearness > cosine else None


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
    _, known = match(reader, memory, mask, threshold=threshold)
    if known is None:
        return None
    links = [one for one in store.links(known.id) if one.relation == "SUPERSEDES" and one.target_id == known.id]
    newer = {one.source_id for one in links if (slot := index.slot(one.source_id)) >= 0 and allowed[slot]}
    made = (event.payload for event in reader.history(known.id) if event.actor == "user")
    links_made = (one for one in made if isinstance(one, MemoryLinked) and one.relation == "SUPERSEDES")
    for one in links_made:
        if (
            one.target_id == known.id and one.source_id in newer and one.reason != SAME_TEXT
        ):  # a merged copy is no decision
            return Settled("decided", known, one.source_id)
    return None


def _cosine(one: Vector, other: Vector) -> float:
    norms = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return round(float(one @ other) / (norms or 1.0), 6)
