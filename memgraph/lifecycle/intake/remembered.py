"""What the user asks to remember: stored, pinned, and compared at once with what is known.

A text that is known already is not stored again: it is pinned, and in force again if it was forgotten. What it
contradicts is replaced, as by an observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memgraph.index.columns import FACT_TAG, TIERS, TRUST
from memgraph.lifecycle.contradictions.search import described, find_contradictions_of
from memgraph.lifecycle.dedup.merge import united
from memgraph.lifecycle.dedup.near_duplicates import merge_copies_of
from memgraph.lifecycle.intake.settle import settle
from memgraph.lifecycle.run import vectors_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.payload import Actor
from memgraph.model.memory import AgentMemory, PrivacyTier, SemanticMemory, StoredMemory, id_of
from memgraph.privacy import OWNER, Access
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import Permits, readable
from memgraph.store.query import Mask, Reader
from memgraph.text.cutting import shortened, split_text

SOURCE = "remember"
_DONE = {"created": "Remembered", "known": "Already remembered", "restored": "Remembered again"}


@dataclass(frozen=True, slots=True)
class Remembered:
    """Result of `remember_text`.

    Attributes
    ----------
    memories : list of StoredMemory
        A memory for each part of the text, those that were known included.
    action : {"created", "known", "restored"}
        ``known``: nothing was added; ``restored``: what had been forgotten is in force again.
    replaced : list of str
        Memories that no longer hold because of it.
    event : int or None
        Of a known text, the event that changed its memories; None if nothing changed.
    notice : str or None
        What it replaces or contradicts.
    """

    memories: list[StoredMemory]
    action: Literal["created", "known", "restored"] = "created"
    replaced: list[str] = field(default_factory=list)
    event: int | None = None
    notice: str | None = None

    @property
    def message(self) -> str:
        """What was done, for a person."""
        count = len(self.memories)
        parts = f" in {count} parts" if count > 1 else ""
        shown = shortened(self.memories[0].content.strip())
        said = f"{_DONE[self.action]}{parts}: '{shown}' (pinned, will not decay)"
        return f"{said}; {self.notice}" if self.notice else said

    @property
    def data(self) -> dict[str, Any]:
        """The same for a program."""
        ids = [memory.id for memory in self.memories]
        return {"ids": ids, "action": self.action, "replaced": self.replaced, "event": self.event}


def remember_text(
    store: AgentMemoryStore,
    text: str,
    *,
    tags: Sequence[str],
    project_id: str | None,
    access: Access = OWNER,
    domain: str | None = None,
    tier: PrivacyTier | None = None,
) -> Remembered:
    """Store a text, without its secrets, as pinned memories; in linked parts if it is long.

    Parameters
    ----------
    access : Access
        Who saves it: the owner of the store, or an agent for the user, which is trusted as an agent. It is compared with what they may have.
    tier : str, optional
        The privacy tier. Default: that of the domain and of what the text concerns.
    """
    actor: Actor = "user" if access.is_owner else "agent"
    parts = [
        SemanticMemory(
            content=part,
            tags=list(tags),
            outcome="positive",
            is_pinned=True,
            trust_class=actor,
            project_id=project_id,
            reason="the user asked to remember it",
            source=SOURCE,
            domain=domain,
            **({} if tier is None else {"privacy_tier": tier}),
        )
        for part in (split_text(text) if len(text) > MAX_CONTENT_CHARS else [text.strip() or text])
    ]
    embedder = store.embedder
    vectors = vectors_of(embedder, [part.content for part in parts])
    ready = [part.model_copy(update={"embedding": vector}) for part, vector in zip(parts, vectors, strict=True)]
    with store.exclusive():
        store.check_embedder(embedder)
        return _settled(store, ready, actor, readable(access))


def _settled(store: AgentMemoryStore, parts: Sequence[SemanticMemory], actor: Actor, may: Permits) -> Remembered:
    """Store parts that are not known, and settle what follows from them; under the writer lock."""
    settled = [settle(store, part, threshold=None, may=_users).memory for part in parts] if actor == "user" else []
    known = [one for part, one in zip(parts, settled, strict=False) if one and _is_said_again(part, one)]
    if len(known) == len(parts):
        return _again(store, known, parts[0].tags)
    kept = store.insert_parts(parts, actor=actor)
    repeated = Counter(part.content for part in parts)
    ids = [memory.id for memory in kept]
    stays = merge_copies_of(store, [one.id for one in kept if repeated[one.content] == 1], actor=actor, may=may)
    result = find_contradictions_of(store, [one for one in ids if one not in stays], actor=actor, may=may)
    replaced = [
        link.target_id
        for one in (ids if result.replaced or result.superseded else ())
        for link in store.links(one)
        if link.relation == "SUPERSEDES" and link.source_id == one and link.target_id not in stays.values()
    ]
    memories = store.read_memories([stays.get(one, one) for one in ids])
    return Remembered(memories, replaced=replaced, notice=described(result))


def _users(reader: Reader) -> Mask:
    """Return what the user said, and has not replaced."""
    said: Mask = reader.index.column("trust") == TRUST.index("user")
    return said & ~reader.superseded()


def _is_said_again(part: SemanticMemory, known: AgentMemory) -> bool:
    """Return whether the user asked to remember the same before, at least as privately, and of this domain if one is named."""
    is_hidden = known.archived_at is not None or known.invalid_at is not None
    is_as_private = TIERS.index(known.privacy_tier) >= TIERS.index(part.privacy_tier)
    return known.source == SOURCE and not is_hidden and is_as_private and part.domain in (None, known.domain)


def _again(store: AgentMemoryStore, known: Sequence[AgentMemory], tags: Sequence[str]) -> Remembered:
    """Pin known memories, with these tags too, and restore them if they were forgotten. A fact that is said again as a rule is one."""
    result = store.curation.change(
        [id_of(memory) for memory in known],
        lambda memory, _row, _now: {
            "is_pinned": True,
            "is_suppressed": False,
            "tags": united([tag for tag in memory.tags if tag.casefold() != FACT_TAG], list(tags)),
        },
    )
    action: Literal["known", "restored"] = "restored" if any(one.is_suppressed for one in known) else "known"
    memories = store.read_memories([id_of(memory) for memory in known])
    return Remembered(memories, action, event=result.event)
