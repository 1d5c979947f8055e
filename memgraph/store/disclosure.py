"""Disclosure state of memories at the end of a journal, computed in one pass over its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from memgraph.journal.envelope import Event
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryMerged, MemoryRevised, MemoryUndeleted
from memgraph.model.ids import canonical_name
from memgraph.model.memory import PrivacyTier


class Disclosure(NamedTuple):
    """A memory's privacy tier, whether it is suppressed, its tags, and its domain."""

    tier: PrivacyTier = "public"
    is_suppressed: bool = False
    tags: frozenset[str] = frozenset()
    domain: str | None = None


Disclosures = Mapping[str, Disclosure]


def disclosures(events: Iterable[Event]) -> Disclosures:
    """Return the disclosure of each memory after these events, by id, without deleted ones."""
    found: dict[str, Disclosure] = {}
    for event in events:
        payload = event.payload
        if isinstance(payload, MemoryAdded | MemoryUndeleted):
            found[payload.memory.id] = _after(Disclosure(), event.content["memory"], ())
        elif isinstance(payload, MemoryDeleted):
            found.pop(payload.id, None)
        elif isinstance(payload, MemoryRevised | MemoryMerged) and payload.id in found:
            content = event.content
            found[payload.id] = _after(found[payload.id], content.get("changed", {}), content.get("cleared", ()))
    return found


def _after(before: Disclosure, changed: Mapping[str, Any], cleared: Iterable[str]) -> Disclosure:
    """Return a memory's disclosure after a change of some fields."""
    cleared = frozenset(cleared)
    tags = frozenset() if "tags" in cleared else before.tags
    return Disclosure(
        changed.get("privacy_tier", "public" if "privacy_tier" in cleared else before.tier),
        bool(changed.get("is_suppressed", before.is_suppressed and "is_suppressed" not in cleared)),
        frozenset(map(canonical_name, changed["tags"])) if "tags" in changed else tags,
        changed.get("domain", None if "domain" in cleared else before.domain),
    )
