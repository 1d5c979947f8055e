"""Takes the texts of deleted memories out of events.

Ids, types, outcomes, times, states, projects and builds stay. So charts, counts and views of the past are what they were, the state after all
events is the same, and sleep knows what it must not learn again. Texts go, and with them tags, titles, names of people, files and sources, and
the reasons of links, deletions and archiving.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memgraph.journal.envelope import Event
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryLinked,
    MemoryReembedded,
    MemoryUndeleted,
    Revision,
)
from memgraph.model.events.records import FADED
from memgraph.model.events.store import REMOVED_TEXT
from memgraph.model.ids import stored_form
from memgraph.model.memory import Role, fields_with
from memgraph.model.results.learning import LAPSED, LAPSED_PROPOSAL, MADE_BY_SLEEP, PROPOSED, REJECTED

_KEPT = fields_with(Role.WORDLESS)
_KEPT_TAGS = frozenset({"lesson"})
"""Tags that charts count by; they are memgraph's own words."""
_KEPT_REASONS = frozenset({FADED, PROPOSED, REJECTED, LAPSED, LAPSED_PROPOSAL})
"""Reasons by which sleep knows whether a user or agent decided on a memory; memgraph's own words, too."""
_OF_A_REVISION = frozenset({"changed", "cleared", "vector", "candidate_content"})
IsGone = Callable[[str], bool]


def reduced(event: Event, is_gone: IsGone) -> dict[str, Any] | None:
    """Return the payload of an event without the words of some memories, in the present version of its type; None if it has none.

    Parameters
    ----------
    is_gone : callable
        Returns whether the words of a memory are to be removed, given its id.
    """
    payload, content = event.payload, event.content
    if isinstance(payload, MemoryAdded | MemoryUndeleted):
        if not is_gone(payload.memory.id):
            return None
        rest = {name: value for name, value in content.items() if name not in ("memory", "vector")}
        left: dict[str, Any] = {**rest, "memory": {**_record(content["memory"]), "content": REMOVED_TEXT}}
    elif isinstance(payload, Revision):
        if not is_gone(payload.id):
            return None
        changed, cleared = _revision(content)
        rest = {name: value for name, value in content.items() if name not in _OF_A_REVISION}
        left = {**rest, "changed": changed, "cleared": cleared}
    elif isinstance(payload, MemoryDeleted):
        if not is_gone(payload.id) or (payload.reason is None or payload.reason in _KEPT_REASONS):
            return None
        left = {"id": payload.id}
    elif isinstance(payload, MemoryLinked):
        if payload.reason is None or not any(map(is_gone, payload.memory_ids())):
            return None
        left = {name: value for name, value in content.items() if name != "reason"}
    elif isinstance(payload, MemoryReembedded):
        left = {**content, "vectors": [one for one in content.get("vectors", ()) if not is_gone(one["id"])]}
    else:
        return None
    made = type(payload).parse(left).dump()
    return None if made == content else made


def has_words(content: Mapping[str, Any]) -> bool:
    """Return whether the payload of an event that states a memory, or a change of one, has words, or the place of their vector."""
    if "vector" in content or "candidate_content" in content:
        return True
    if "memory" in content:
        memory: dict[str, Any] = content["memory"]
        return {**_record(memory), "content": REMOVED_TEXT} != memory
    changed: dict[str, Any] = content.get("changed", {})
    return _revision(content)[0] != changed


def _record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a memory that stay."""
    kept = {name: value for name, value in row.items() if name in _KEPT}
    if tags := [tag for tag in row.get("tags", ()) if tag in _KEPT_TAGS]:
        kept["tags"] = tags
    if row.get("source") in MADE_BY_SLEEP:
        kept["source"] = row["source"]
    if row.get("archive_reason") in _KEPT_REASONS:
        kept["archive_reason"] = row["archive_reason"]
    ids = [one for one in row.get("source_event_ids", ()) if stored_form(one) == one]
    if ids:  # of memories; the others are names of sources
        kept["source_event_ids"] = ids
    return kept


def _revision(content: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what stays of a revision: the fields that it sets, and those that it clears, among them all whose words go.

    So it changes the same fields as before, on which the times of events depend, and no earlier value comes back.
    """
    fields, cleared = content.get("changed", {}), content.get("cleared", [])
    kept = _record(fields)
    if "content" in fields:
        kept["content"] = REMOVED_TEXT
    return kept, [*cleared, *sorted(fields.keys() - kept.keys() - set(cleared))]
