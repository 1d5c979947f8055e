"""Merging a duplicate into a memory."""

from __future__ import annotations

from typing import TypeVar

from memgraph.index.columns import TRUST
from memgraph.lifecycle.reconcile import revised
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.memories import MemoryLinked, MemoryMerged
from memgraph.model.memory import COMMIT_FIELDS, MAX_CUES, AgentMemory, StoredMemory, id_of, no_attempt
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.store.commit.records import Write, with_vector

_DESCRIBES_TEXT = (
    "title", "reason", "occurred_at", "event_date", "location", "decision", "alternatives_considered", "files_involved",
    "git_commit", "entities", *sorted(COMMIT_FIELDS),
)  # fmt: skip
"""Fields that describe the text: they are taken from the same memory as the text."""
SAME_TEXT, NEAR_DUPLICATE = "same text", "near-duplicate"
"""Reasons of the SUPERSEDES link from the memory that stays to the one that was merged into it."""

M = TypeVar("M", bound=AgentMemory)


def merged(
    existing: M, candidate: AgentMemory, now: str, curve: ForgettingCurveConfig, *, takes_text: bool | None = None
) -> M:
    """Return the memory that results from merging a duplicate into it (design §5, seed 0).

    The longer text wins (unless `takes_text` says which), with the fields that describe it, unless the existing memory is pinned; sources and
    builds are united; relevance becomes the curve's current value (``(old + 1) / 2``, or its increment), confidence ``(old + 2·new) / 3``.
    """
    if takes_text is None:
        takes_text = len(candidate.content) > len(existing.content) and not existing.is_pinned
    relevance = curve.confirmed(existing.relevance_score)
    update: dict[str, object] = {
        "source_event_ids": united(existing.source_event_ids, candidate.source_event_ids),
        "evidence_build_ids": united(existing.evidence_build_ids, candidate.evidence_build_ids),
        "cues": united(existing.cues, candidate.cues)[:MAX_CUES],
        "relevance_score": relevance,
        "relevance_anchor": relevance,
        "relevance_at": now,
        "confidence": round((existing.confidence + 2.0 * candidate.confidence) / 3.0, 6),
        "updated_at": now,
    }
    if takes_text:
        described = {name: getattr(candidate, name, None) for name in _DESCRIBES_TEXT}
        update |= {name: value for name, value in described.items() if value}
        # the fields of the attempt go with the text that was rendered from them
        own = {**no_attempt(), "is_solved": None}
        update |= {name: getattr(candidate, name, nothing) for name, nothing in own.items() if hasattr(existing, name)}
        update |= {"content": candidate.content, "embedding": candidate.embedding, "archive_summary": None}
    return existing.model_copy(update=update)


def joined(
    kept: StoredMemory, other: StoredMemory, now: str, curve: ForgettingCurveConfig, *, takes_text: bool
) -> StoredMemory:
    """Return the result of merging two stored memories: as at consolidation, but without confirming anything.

    A source that is trusted less adds neither confidence nor relevance, one that is trusted otherwise no tags and cues.
    """
    after = merged(kept, other, now, curve, takes_text=takes_text)
    is_trusted = TRUST.index(other.trust_class) <= TRUST.index(kept.trust_class)
    higher = other if is_trusted and not kept.is_pinned and other.relevance_score > kept.relevance_score else kept
    is_equal = other.trust_class == kept.trust_class
    sources = [*(one for one in after.source_event_ids if one != other.id), other.id]
    return after.model_copy(
        update={
            "relevance_score": higher.relevance_score,
            "relevance_anchor": higher.relevance_anchor,
            "relevance_at": higher.relevance_at,
            "confidence": max(kept.confidence, other.confidence) if is_trusted else kept.confidence,
            "source_event_ids": sources[-MAX_ITEMS:],
            "tags": united(kept.tags, other.tags) if is_equal else kept.tags,
            "cues": after.cues if is_equal else kept.cues,
        }
    )


def merge_writes(
    before: StoredMemory, gone: StoredMemory, after: StoredMemory, *, score: float, reason: str, now: str
) -> list[Write]:
    """Return the events that merge a stored memory into another one, which supersedes it."""
    ends = {"source_id": before.id, "relation": "SUPERSEDES", "target_id": gone.id}
    return [
        merge_write(before, gone, after, is_stored=True),
        MemoryLinked(**ends, score=score, reason=reason, created_at=now),
    ]


def merge_write(existing: AgentMemory, candidate: AgentMemory, after: AgentMemory, *, is_stored: bool = False) -> Write:
    """Return the event by which a memory takes up a duplicate, with its new vector; it keeps a text that is stored nowhere else."""
    is_lost = not is_stored and candidate.content not in (existing.content, after.content)
    revision = revised(existing, after)
    event = MemoryMerged(
        id=id_of(existing),
        candidate_id=candidate.id,
        candidate_content=candidate.content if is_lost else None,
        changed=revision.changed,
        cleared=revision.cleared,
    )
    return with_vector(event, after.embedding if after.content != existing.content else None)


def united(first: list[str], second: list[str]) -> list[str]:
    """Return the union of two lists; the newest entries stay if it exceeds what a memory can hold."""
    return list(dict.fromkeys([*first, *second]))[-MAX_ITEMS:]
