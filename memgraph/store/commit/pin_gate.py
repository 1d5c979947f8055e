"""Rejects what would change a pin without an explicit edit or removal, whichever door it comes through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memgraph.errors import InvalidInputError, NotFoundError, ScopeError
from memgraph.fold.tasks import PIN, REMOVAL, is_pin
from memgraph.model.events.links import MemoryLinked
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryMerged, MemoryRevised
from memgraph.model.events.payload import Payload
from memgraph.model.events.tasks import (
    PinAdded,
    PinEdited,
    PinPayload,
    PinRemoveCancelled,
    PinRemoved,
    PinRemoveRequested,
)
from memgraph.ports import Row
from memgraph.store.commit.task_gate import check_writable, known_task

Rows = Callable[[str, str], Row | None]
PROTECTED = frozenset(
    (
        "content title is_pinned is_suppressed archived_at invalid_at valid_at project_id task_id session_id source "
        "privacy_tier domain trust_class"
    ).split()
)
"""Fields of a pin's memory that decide what it says, and whether, where and by whom it is recalled."""


def check_pins(task_id: str | None, payloads: Sequence[Payload], rows: Rows) -> None:
    """Check the events of one commit.

    Raises
    ------
    InvalidInputError
        A pin would change, leave recall or be deleted, and no event of the commit edits or removes it; or its task is archived or closed.
    NotFoundError
        A memory that is to be edited or removed as a pin is none.
    ScopeError
        An event of a pin is committed in another write scope than that of the pin.
    """
    pins = [payload for payload in payloads if isinstance(payload, PinPayload)]
    if pins:
        _check_events(task_id, payloads, pins, rows)
    explicit = {payload.id for payload in pins if isinstance(payload, PinEdited | PinRemoved)}
    for memory_id, what in _changed(payloads):
        if memory_id not in explicit and is_pin(row := rows(PIN, memory_id)):
            lost = isinstance(what, MemoryMerged | MemoryRevised) and _loses_its_tag(what, row or {}, rows)
            if lost or not isinstance(what, MemoryMerged | MemoryRevised) or not _fields(what).isdisjoint(PROTECTED):
                problem = (
                    "is a pin, which only `memgraph pins edit` changes; `memgraph pins remove` or `memgraph forget --pins` "
                    "removes it"
                )
                raise InvalidInputError(problem, field="id", value=memory_id)


def _check_events(task_id: str | None, payloads: Sequence[Payload], pins: Sequence[PinPayload], rows: Rows) -> None:
    new = {payload.memory.id: payload.memory for payload in payloads if isinstance(payload, MemoryAdded)}
    if task_id is not None and any(not isinstance(payload, PinRemoveCancelled) for payload in pins):
        check_writable(task_id, known_task(rows, task_id)["status"])  # who cancels a removal keeps the pin as it is
    for payload in pins:
        if isinstance(payload, PinAdded):
            if payload.id not in new or not new[payload.id].is_pinned:
                raise InvalidInputError("must be a pinned memory of the same commit", field="id", value=payload.id)
            continue
        row = rows(PIN, payload.id)
        if row is None or not is_pin(row):
            raise NotFoundError("pin", payload.id, listed_by="memgraph pins")
        if row.get("task_id") != task_id:
            problem = f"pin {payload.id} belongs to task {row.get('task_id')!r}, the commit to {task_id!r}"
            raise ScopeError(f"{problem}: one commit has one write scope")
        request_id = None if isinstance(payload, PinRemoveRequested) else getattr(payload, "request_id", None)
        request = rows(REMOVAL, request_id) if request_id is not None else None
        if request_id is not None and (
            request is None or request["pin_id"] != payload.id or request["state"] != "open"
        ):
            raise NotFoundError("open request to remove the pin", request_id, listed_by="memgraph pins")


def _changed(payloads: Sequence[Payload]) -> Iterator[tuple[str, Payload]]:
    """Yield the memories that events change or replace."""
    for payload in payloads:
        if isinstance(payload, MemoryRevised | MemoryMerged | MemoryDeleted):
            yield payload.id, payload
        elif isinstance(payload, MemoryLinked) and payload.relation == "SUPERSEDES":
            yield payload.target_id, payload


def _fields(revision: MemoryRevised | MemoryMerged) -> set[str]:
    return {*revision.changed.model_fields_set, *revision.cleared}  # type: ignore[attr-defined]


def _loses_its_tag(revision: MemoryRevised | MemoryMerged, pin: Row, rows: Rows) -> bool:
    """Return whether a revision takes the tag from a constraint by which recall finds it."""
    if "tags" not in _fields(revision):
        return False
    tags = {tag.casefold() for tag in revision.row_after(rows("Memory", revision.id) or {}).get("tags", ())}
    return pin["kind"] not in tags
