"""What becomes of contradictions: which are open, which the newer memory decides by itself, and what the user says of them.

A contradiction is **open** while both sides are in force: neither forgotten, archived, no longer valid nor superseded. So it is
closed by `supersede`, by `invalidate` on one side, by forgetting one; and open again when that is taken back.

To be decided is to be *superseded*, not to be invalidated: the older memory hands its score at recall to the newer one, stays in
lists, and counts again by itself should the newer one be forgotten or prove wrong. When it ceased to be true nobody has said.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.index.columns import TRUST
from memgraph.index.index import RELATION_CODE
from memgraph.lifecycle.contradictions.conflict import NOTED, Conflict, conflict_of
from memgraph.model.base import Name, checked
from memgraph.model.chronology import in_order, since
from memgraph.model.events.links import MemoryLinked, MemoryUnlinked
from memgraph.model.events.payload import Payload
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory
from memgraph.model.results.contradictions import Contradiction
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore

_SURE_REVERSAL = 0.75
"""What was taken away is a part of what was added, or the other way round, where they share less of their words."""
NO_CONFLICT = "they do not contradict each other"


def is_decided(conflict: Conflict, older: AgentMemory, newer: AgentMemory, *, is_confirmed: bool, now: str) -> bool:
    """Whether the newer memory replaces the older one without anybody being asked.

    It does if it is later, its source is trusted at least as much, and it is confirmed: the user said it, it was of use in
    a recall that ended well, or its confidence is above the older one's: of two that are told alike, later is not truer. What is
    pinned gives way to the user's word alone. Which of two outcomes will come again, nothing decides but the user.

    Parameters
    ----------
    is_confirmed : bool
        The newer one was used since, and that ended well, or it was told again.
    """
    if conflict.kind == "reversal" and conflict.score < _SURE_REVERSAL:
        return False
    if conflict.kind == "outcome" or not since(older) < since(newer) <= now:
        return False
    if TRUST.index(newer.trust_class) > TRUST.index(older.trust_class):
        return False
    if newer.trust_class == "user":
        return True
    if older.is_pinned:
        return False
    if is_confirmed:
        return True
    return newer.confidence > older.confidence


def open_contradictions(store: AgentMemoryStore, *, project_id: str | None = None) -> list[Contradiction]:
    """Return the contradictions whose sides are both in force, the surest first, ties in id order.

    Parameters
    ----------
    project_id : str, optional
        Those of this project's memories. None: of all.
    """
    project_id = checked(Name | None, project_id, "project")
    with store.reader.frozen(links=True):
        shown = store.reader.listed(project_id=project_id) & ~store.reader.superseded()
        return _in_order_of_score(_contradiction(store, ends) for ends in _among(store, shown))


def decided_contradictions(store: AgentMemoryStore, *, project_id: str | None = None) -> list[Contradiction]:
    """Return the contradictions in which one of two listed memories replaces the other, in the same order."""
    project_id = checked(Name | None, project_id, "project")
    with store.reader.frozen(links=True):
        pairs = _among(store, store.reader.listed(project_id=project_id))
        return _in_order_of_score(_contradiction(store, ends) for ends in pairs if _is_replaced(store, ends))


def _among(store: AgentMemoryStore, shown: NDArray[np.bool_]) -> list[tuple[str, str]]:
    """Return the ends of the CONTRADICTS between masked memories."""
    index = store.reader.index
    sources, targets = index.links.pairs(RELATION_CODE["CONTRADICTS"])
    both = np.flatnonzero(shown[sources] & shown[targets])
    return sorted({(index.ids.names[sources[at]], index.ids.names[targets[at]]) for at in both})


def _in_order_of_score(found: Iterable[Contradiction]) -> list[Contradiction]:
    return sorted(found, key=lambda one: (-(one.score or 0.0), one.newer.id or "", one.older.id or ""))


def _is_replaced(store: AgentMemoryStore, ends: tuple[str, str]) -> bool:
    """Whether one of two memories supersedes the other."""
    return any(store.reader.record("SUPERSEDES", pair) is not None for pair in (ends, ends[::-1]))


def _contradiction(store: AgentMemoryStore, ends: tuple[str, str]) -> Contradiction:
    row: Row = store.reader.record("CONTRADICTS", ends) or {}
    older, newer = in_order(*store.read_memories(ends))
    score, reason = row.get("score"), row.get("reason")
    if reason in NOTED.values() and (conflict := conflict_of(older, newer)) is not None:
        reason = conflict.reason
    return Contradiction(
        newer=newer,
        older=older,
        score=score if score is not None and 0.0 <= score <= 1.0 else None,
        reason=reason,
        found_at=row.get("created_at"),
    )


def resolve_contradiction(
    store: AgentMemoryStore, one_id: str, other_id: str, *, keep: str, reason: str | None = None
) -> Link:
    """Decide a contradiction: the memory that is kept supersedes the other one. `unsupersede` takes it back.

    One that was decided the other way round is turned round.

    Raises
    ------
    NotFoundError
        A memory is missing.
    InvalidInputError
        They do not contradict each other, or the one to keep is neither.
    """
    with store.exclusive():
        ends = _linked(store, one_id, other_id)
        kept = store.find_id(keep)
        if kept not in ends:
            raise InvalidInputError("must be one of the two memories", field="keep", value=keep)
        gone = ends[1] if kept == ends[0] else ends[0]
        found = store.reader.record("CONTRADICTS", ends) or {}
        store.unsupersede(kept, by=gone)
        return store.supersede(gone, by=kept, reason=reason or found.get("reason"), score=found.get("score"))


def dismiss_contradiction(store: AgentMemoryStore, one_id: str, other_id: str, *, reason: str | None = None) -> Link:
    """Say that two memories do not contradict each other after all: neither replaces the other, and they are not proposed again.

    What stands for that is a RELATED_TO between them, with the reason: memories whose relation is known are never compared.
    To ``link`` them as CONTRADICTS takes it back; to ``unlink`` the RELATED_TO lets them be compared anew when one changes.

    Raises
    ------
    NotFoundError
        A memory is missing.
    InvalidInputError
        They are not linked as a contradiction.
    """
    with store.exclusive():
        source, target = _linked(store, one_id, other_id)
        said = MemoryLinked(
            source_id=source,
            relation="RELATED_TO",
            target_id=target,
            reason=reason or NO_CONFLICT,
            created_at=store.now(),
        )
        events: list[Payload] = [
            MemoryUnlinked(source_id=ends[0], relation=relation, target_id=ends[1])
            for relation in ("CONTRADICTS", "SUPERSEDES")
            for ends in ((source, target), (target, source))
            if store.reader.record(relation, ends) is not None
        ]
        (memory,) = store.read_memories([source])
        task_id = memory.task_id
        store.commit("task" if task_id else "global", [*events, said], task_id=task_id, actor="user")
        return Link.parse(said.model_dump())


def _linked(store: AgentMemoryStore, one_id: str, other_id: str) -> tuple[str, str]:
    """Return the ends of the CONTRADICTS between two memories, its source first."""
    one, other = store.find_id(one_id), store.find_id(other_id)
    for ends in ((one, other), (other, one)):
        if store.reader.record("CONTRADICTS", ends) is not None:
            return ends
    for memory_id in (one, other):
        if not store.read_memories([memory_id]):
            raise NotFoundError("memory", memory_id)
    raise InvalidInputError(
        f"does not contradict {one}; `memgraph contradictions list` shows what does", field="memory", value=other
    )
