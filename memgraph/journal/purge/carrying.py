"""Which memories' content an event carries, by its type: what a purge of a memory removes from the journal.

Every type of event is listed. The functions take the payload as the journal holds it, in any version of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memgraph.model.events.tasks import HANDOFF_EVENTS, SESSION_EVENTS, TASK_EVENTS, PinPayload

Content = Mapping[str, Any]


def _of_record(content: Content) -> list[str]:
    return [content["memory"]["id"]]


def _of_id(content: Content) -> list[str]:
    return [content["id"]]


def _of_ends(content: Content) -> list[str]:
    return [content["source_id"], content["target_id"]]


def _of_subjects(content: Content) -> list[str]:
    return list(content.get("subject_ids", ()))


def _of_none(_content: Content) -> list[str]:
    return []


_TASKS = (*TASK_EVENTS, *SESSION_EVENTS, *HANDOFF_EVENTS)
CARRIES: dict[str, Callable[[Content], list[str]]] = {
    "memory.added": _of_record,
    "memory.undeleted": _of_record,
    "memory.revised": _of_id,
    "memory.merged": _of_id,
    "memory.deleted": _of_id,  # it states why
    "memory.linked": _of_ends,  # it states why
    "procedure.measured": _of_id,
    "distil.requested": _of_subjects,  # its excerpt quotes them
    # ids, times and counts; what else they hold is found by its words
    "memory.unlinked": _of_none,
    "memory.derived": _of_none,
    "memory.reembedded": _of_none,
    "memory.purged": _of_none,
    "access.recorded": _of_none,
    "access.audited": _of_none,
    "retrieval.recorded": _of_none,
    "outcome.recorded": _of_none,
    "build.consolidated": _of_none,
    "source.read": _of_none,
    "decay.applied": _of_none,
    "collection.applied": _of_none,
    "compression.applied": _of_none,
    "contradictions.sought": _of_none,
    "procedures.learned": _of_none,
    "errors.analysed": _of_none,
    "sleep.advanced": _of_none,
    "distil.answered": _of_none,
    "distil.attempted": _of_none,
    "distil.skipped": _of_none,
    "store.created": _of_none,
    "embedding.switched": _of_none,
    "journal.repaired": _of_none,
    "store.reset": _of_none,
    "backup.made": _of_none,
    "store.restored": _of_none,
    "store.migrated": _of_none,
    "archive.condensed": _of_none,
    "journal.cut": _of_none,
    "journal.resealed": _of_none,
    "key.rotated": _of_none,
    "sleep.failed": _of_none,
    "vectors.lost": _of_none,
    "commit.undone": _of_none,
    **{kind.TYPE: _of_id if issubclass(kind, PinPayload) else _of_none for kind in _TASKS},
}
"""The memories whose purge removes an event of this type. Texts that belong to no memory, such as a task's, are found by their words."""

STATES_MEMORY = frozenset({"memory.added", "memory.undeleted", "memory.revised", "memory.merged"})
"""Types that state fields of a memory."""
KEPT = frozenset(
    {
        "store.created",
        "store.reset",
        "backup.made",
        "store.restored",
        "archive.condensed",
        "journal.cut",
        "journal.resealed",
        "key.rotated",
        "embedding.switched",
        "memory.reembedded",
        "memory.purged",
        "vectors.lost",
    }
)
"""Types that hold no words, and that the journal itself needs: a purge never removes them."""
