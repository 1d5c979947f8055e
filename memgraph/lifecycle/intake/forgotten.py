"""Forgotten content stays forgotten: a build log or observation that repeats it does not restore it.

A suppressed memory is hidden from deduplication, so a repetition would be added as a new, visible memory, and would
come back with the next build. It is therefore left out, like the text of a duplicate that is merged into a memory in
force, and the result says so. Unlike a merge this mixes nothing, so privacy tier, trust class and type are ignored;
shared knowledge that was forgotten is forgotten in every project.
"""

from __future__ import annotations

import numpy as np

from memgraph.index.columns import OUTCOMES, TRUST
from memgraph.lifecycle.dedup.duplicates import told_with
from memgraph.lifecycle.dedup.equal_text import differ, equal_memories
from memgraph.model.memory import AgentMemory
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import of_or_none
from memgraph.store.access.visibility import Permits, everything

_MOST_READ = 20


def is_forgotten(
    store: AgentMemoryStore, memory: AgentMemory, *, threshold: float, alike: float, may: Permits = everything
) -> bool:
    """Return whether a memory repeats forgotten content rather than content in force.

    Parameters
    ----------
    threshold : float
        Minimum cosine of two memories with the same meaning.
    alike : float
        Cosine with the matching memory in force, −1 for none: the nearer match decides; ties go to the one in force.
    may : callable
        Which memories count: those that the writer may have.
    """
    index = store.reader.index
    mask = store.reader.listed(state="suppressed") & may(store.reader)
    mask &= told_with(store, memory) | ~index.column("is_session_bound")
    if mask.any() and _is_in_force(store, memory):
        return False
    mask &= of_or_none(index, "project", memory.project_id) & of_or_none(index, "task", memory.task_id)
    outcome, unknown = index.column("outcome"), OUTCOMES.index("unknown")
    if memory.outcome != "unknown":  # an unknown outcome contradicts nothing
        mask &= (outcome == OUTCOMES.index(memory.outcome)) | (outcome == unknown)
    if not mask.any():
        return False
    if memory.embedding is not None:
        with_vector = mask & store.reader.has_vector()
        cosines = np.round(store.reader.cosines(memory.embedding, np.flatnonzero(with_vector)), 6)
        slots = np.flatnonzero(with_vector)
        near = [place for place in np.argsort(-cosines, kind="stable")[:_MOST_READ] if cosines[place] >= threshold]
        nearer = [index.ids.names[slots[place]] for place in near if cosines[place] > alike]
        if any(not differ(memory, known) for known in store.read_memories(nearer)):
            return True
        mask &= ~with_vector
    return alike < 1.0 and bool(equal_memories(store.reader, memory.content, mask))


def _is_in_force(store: AgentMemoryStore, memory: AgentMemory) -> bool:
    """Return whether the user said the same again after it was forgotten."""
    index = store.reader.index
    mask = store.reader.listed() & (index.column("trust") == TRUST.index("user"))
    mask &= of_or_none(index, "project", memory.project_id)
    return bool(equal_memories(store.reader, memory.content, mask))
