"""Landmarks: memories that are never forgotten, because no other memory covers them (seed 0; design §4).

A memory is a landmark if it bears one of four landmark tags, or if it is negative and has no company: no other listed
memory of its project shares all, or at least two, of its tags. Superseded memories are neither landmarks for lack of
company nor company for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.index.columns import OUTCOMES
from memgraph.index.index import Index
from memgraph.lifecycle.dedup.near_duplicates import of_scope
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory
from memgraph.store import AgentMemoryStore

LANDMARK_TAGS = frozenset({"critical-failure", "data-loss", "security-incident", "user-escalation"})
LANDMARK_FLOOR = 0.1
"""Relevance floor of a landmark."""
_SHARED = 2
"""Memories that share this many tags are company for each other."""
_MOST_TAGS = 24
"""Only the rarest tags of a memory are compared, this many at most: it bounds the number of counted tag pairs."""

Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]


def is_landmark(store: AgentMemoryStore, memory: AgentMemory) -> bool:
    """Return whether a memory, stored or not, is a landmark among the listed ones. Costs one pass over the index."""
    tags = set(map(canonical_name, memory.tags))
    if tags & LANDMARK_TAGS:
        return True
    if memory.outcome != "negative":
        return False
    with store.reader.frozen():
        index = store.reader.index
        superseded = store.reader.superseded()
        listed = store.reader.listed() & ~superseded
        others = listed & of_scope(store, "project", memory.project_id)
        if memory.id is not None and (own := index.slot(memory.id)) >= 0:
            if not listed[own]:
                return False
            others[own] = False
        shared = np.zeros(len(index), dtype=np.int64)
        for code in filter(lambda code: code >= 0, map(index.tag_names.find, tags)):
            shared[index.tags.get(code)[0]] += 1
        return not bool((others & (shared >= min(len(tags), _SHARED))).any())


class Company:
    """Tell which memories have company: other listed memories of their project that share enough of their tags.

    Memories are counted per project, per tag and per pair of tags instead of being compared. So the cost is linear in a
    tag's frequency, and removing a memory costs no more than its own tags.

    Parameters
    ----------
    index : Index
    members : mask
        Memories that count as company.
    asking : mask
        Memories whose company may be queried.
    """

    def __init__(self, index: Index, members: Mask, asking: Mask) -> None:
        self._is_member = members.copy()
        slots, keys, needed = _traits(index, members | asking)
        _, keys = np.unique(keys, return_inverse=True)
        order = np.argsort(slots, kind="stable")
        self._slots, self._keys, self._needed = slots[order], keys.ravel()[order], needed[order]
        self._starts = np.searchsorted(self._slots, np.arange(len(index) + 1))
        self._counts = np.bincount(self._keys, weights=members[self._slots], minlength=1).astype(np.int64)

    def alone(self) -> Mask:
        """Return which of the slots that may be queried have no company."""
        with_others = self._needed & (self._counts[self._keys] > self._is_member[self._slots])
        mask: Mask = np.bincount(self._slots[with_others], minlength=len(self._is_member)) == 0
        return mask

    def is_alone(self, slot: int) -> bool:
        """Return whether one slot has no company."""
        part = slice(self._starts[slot], self._starts[slot + 1])
        counts = self._counts[self._keys[part][self._needed[part]]]
        return not bool((counts > self._is_member[slot]).any())

    def leave(self, slot: int) -> None:
        """Remove a slot from the counts."""
        if self._is_member[slot]:
            self._counts[self._keys[self._starts[slot] : self._starts[slot + 1]]] -= 1
            self._is_member[slot] = False


def by_tag(index: Index) -> Mask:
    """Return which slots bear a landmark tag."""
    mask = np.zeros(len(index), dtype=np.bool_)
    for code in filter(lambda code: code >= 0, map(index.tag_names.find, LANDMARK_TAGS)):
        mask[index.tags.get(code)[0]] = True
    return mask


def is_negative(index: Index) -> Mask:
    """Return which slots have a negative outcome."""
    mask: Mask = index.column("outcome") == OUTCOMES.index("negative")
    return mask


def _traits(index: Index, wanted: Mask) -> tuple[Codes, Codes, Mask]:
    """Return (slot, trait, whether company must share it) of the wanted slots, as three equally long arrays.

    Traits are a slot's project, its tags there, and the pairs of these tags. Company must share a pair of tags, the
    only tag if the memory has just one, or the project alone if it has none.
    """
    projects = index.column("project").astype(np.int64) + 1
    codes, slots = (part.astype(np.int64) for part in index.tags.pairs(1))
    kept = wanted[slots]
    codes, slots = codes[kept], slots[kept]
    scoped, codes = np.unique(projects[slots] * len(index.tag_names) + codes, return_inverse=True)
    codes = codes.ravel()
    order = np.lexsort((codes, slots))
    codes, slots = codes[order], slots[order]
    numbers = np.bincount(slots, minlength=len(index))
    everyone = np.flatnonzero(wanted)
    first_tag, first_pair = int(projects.max(initial=0)) + 1, int(projects.max(initial=0)) + 1 + len(scoped)
    parts = [
        (everyone, projects[everyone], numbers[everyone] == 0),
        (slots, first_tag + codes, numbers[slots] == 1),
    ]
    for owners, pairs in _pairs(codes, numbers, len(scoped)):
        parts.append((owners, first_pair + pairs, np.ones(len(owners), dtype=np.bool_)))
    slots, traits, needed = (np.concatenate(column) for column in zip(*parts, strict=True))
    return slots, traits, needed


def _pairs(codes: Codes, numbers: Codes, most: int) -> Iterator[tuple[Codes, Codes]]:
    """Yield (slots, their tag pairs), one item for each number of tags."""
    starts = np.concatenate([[0], np.cumsum(numbers)])
    frequency = np.bincount(codes, minlength=1)
    for number in np.unique(numbers[numbers >= _SHARED]).tolist():
        owners = np.flatnonzero(numbers == number)
        table = codes[starts[owners][:, None] + np.arange(number)]
        if number > _MOST_TAGS:
            rarest = np.argsort(frequency[table], axis=1, kind="stable")[:, :_MOST_TAGS]
            table = np.sort(np.take_along_axis(table, rarest, axis=1), axis=1)
        one, other = np.triu_indices(table.shape[1], 1)
        pairs: Any = table[:, one] * most + table[:, other]
        yield np.repeat(owners, len(one)), pairs.ravel()
