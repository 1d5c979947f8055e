"""Near-duplicates: memories that came in by different doors, or without vectors, and say the same become one (seeds 1, 3).

Of two the pinned one stays, else the one that was recorded first. It takes the longer text and unites sources and builds as a merge
at consolidation does, and supersedes the other, which keeps all that it was and counts again after `unsupersede`; a pair that
was parted so is not joined again. Nothing is confirmed by it: the one that stays has the higher relevance of the two.

Only memories of the same project, task, domain, speaker, privacy tier, trust class, type, outcome and end of validity are compared. Left
alone are parts of longer texts, what other phases of sleep make, and episodes without a build: each is evidence by itself, and
would count no more.

The next pair is always the one of the first memory, in the order just named, that has one, with what is nearest to it. So what
is done next follows from what the store holds, and a run that is stopped and run again ends as if it had not been stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index
from memgraph.lifecycle.evidence import TimeIsUp, never
from memgraph.lifecycle.experience import SOURCE as COMPRESSION
from memgraph.lifecycle.experience import changes_something
from memgraph.lifecycle.merge import merge_event, merged
from memgraph.lifecycle.near_group import Group, Near
from memgraph.lifecycle.procedures import SOURCE as PROCEDURES
from memgraph.lifecycle.sameness import says_the_same
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events import AccessRecorded, MemoryLinked, MemoryRevised
from memgraph.model.memory import MEMORY_TYPES, AgentMemory
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.sleep import MergeResult, phase_key
from memgraph.store import AgentMemoryStore
from memgraph.store.appending import Write, with_vector

PHASE = "near-duplicates"
REASON = "near-duplicate"
"""Why the memory that stays supersedes the other."""
_KIN = ("type", "project", "task", "tier", "trust", "outcome", "domain", "speaker")
_MADE_HERE = frozenset({COMPRESSION, PROCEDURES})
"""Sources of what other phases make of memories, and bring up themselves."""
_BESIDE_THE_POINT = frozenset({"floor", "archive_summary", "relevance_anchor", "relevance_at", "updated_at"})
_BATCH = 100
"""Merges in one commit."""
_ATTEMPTS = 3
_REREAD_FROM_EVENTS = 20_000

Mask = NDArray[np.bool_]
Slots = NDArray[np.int64]


class _Decision(NamedTuple):
    """One memory is to become part of another one."""

    kept_id: str
    gone_id: str
    near: Near


def merge_near_duplicates(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> MergeResult:
    """Merge memories that say the same, looking at what is new or has changed since this phase of sleep last came to its end.

    Deterministic, without a model. Run again when nothing has changed, it writes nothing.

    Parameters
    ----------
    is_time_up : callable, optional
        Asked every few hundred memories: once it says so, what was found is written, and the rest waits for the next run.

    Notes
    -----
    Memories with vectors are compared in blocks of matrix products within their group: all of them in a first run, later only
    what is new with the rest. The others are found by their rarest words.
    """
    result = MergeResult()
    for _ in range(_ATTEMPTS):
        run = _Run(store, is_time_up)
        done = run.go()
        result = MergeResult(
            looked_at=done.looked_at,
            merged=result.merged + done.merged,
            by_words=result.by_words + done.by_words,
            complete=done.complete,
        )
        if not run.was_overtaken:
            return result
    return result


class _Run:
    """One pass over the groups, as they were when it began; what others write meanwhile ends it."""

    def __init__(self, store: AgentMemoryStore, is_time_up: TimeIsUp) -> None:
        self._store = store
        self._is_time_up = is_time_up
        self._curve = store.config.forgetting_curve
        self._now = store.now()
        self.was_overtaken = False
        with store.reader.frozen(links=True):
            index = store.reader.index
            self._seq = index.offset.seq
            slots = np.flatnonzero(_mask(store))
            is_new = _is_new(store)[slots]
            self._contradicting = _linked(index, "CONTRADICTS")
            self._groups = [
                Group(store.reader, slots[members], is_new[members])
                for members in _kin(index, slots)
                if is_new[members].any()
            ]

    def go(self) -> MergeResult:
        merged_count = by_words = looked_at = 0
        for group in self._groups:
            if self._is_time_up():
                return MergeResult(looked_at=looked_at, merged=merged_count, by_words=by_words, complete=False)
            looked_at += len(group)
            waiting: list[_Decision] = []
            stopped = False
            for decision in self._decisions(group):
                waiting.append(decision)
                if len(waiting) < _BATCH:
                    continue
                if not self._commit(waiting):
                    return MergeResult(looked_at=looked_at, merged=merged_count, by_words=by_words, complete=False)
                merged_count += len(waiting)
                by_words += sum(one.near.is_by_words for one in waiting)
                waiting = []
            if waiting:
                if not self._commit(waiting):
                    return MergeResult(looked_at=looked_at, merged=merged_count, by_words=by_words, complete=False)
                merged_count += len(waiting)
                by_words += sum(one.near.is_by_words for one in waiting)
            if group.was_stopped or stopped:
                return MergeResult(looked_at=looked_at, merged=merged_count, by_words=by_words, complete=False)
        return MergeResult(looked_at=looked_at, merged=merged_count, by_words=by_words)
