"""Insertion of memories: one, many at once, the parts of a text, an import; several changes in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.model.base import checked, checked_list
from memgraph.model.events.memories import MemoryDeleted
from memgraph.model.events.payload import Actor
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, StoredMemory
from memgraph.store.commit.writer import Writer
from memgraph.store.projection.batches import Batches
from memgraph.store.projection.bulk import BULK_FROM


class Insertions:
    """Adds memories to a store."""

    def __init__(self, writer: Writer, batches: Batches) -> None:
        self._writer = writer
        self._batches = batches

    def insert_memory(self, memory: AgentMemory | Mapping[str, Any]) -> StoredMemory:
        """Add a memory. A given id is kept; without an embedding the content is embedded.

        Raises
        ------
        InvalidInputError
            A field is invalid; nothing is stored.
        DuplicateIdError
            The id exists already.
        """
        return self.insert_memories([memory])[0]

    def insert_memories(
        self, memories: Sequence[AgentMemory | Mapping[str, Any]], *, annotate: bool = True
    ) -> list[StoredMemory]:
        """Add memories in one commit, all or none. They share one write scope.

        Parameters
        ----------
        annotate : bool
            Extract entities, predecessors and fingerprints; False stores the memories exactly as given (an import).
        """
        if isinstance(memories, str | Mapping) or not isinstance(memories, Iterable):
            raise InvalidInputError("must be a list of memories", field="memories", value=memories)
        memories = list(memories)
        with self._batches.batch() if len(memories) >= BULK_FROM else nullcontext():
            return self._writer.insert(memories, annotate=annotate)

    def insert_parts(self, memories: Sequence[AgentMemory], *, actor: Actor = "agent") -> list[StoredMemory]:
        """Add the parts of one text in one commit, each linked to the preceding part."""
        return self._writer.insert(checked_list(AgentMemory, memories, "memories"), parts=True, actor=actor)

    def rewrite(
        self,
        *,
        add: Sequence[AgentMemory] = (),
        change: Mapping[str, Mapping[str, Any]] | None = None,
        delete: Sequence[str] = (),
        reason: str | None = None,
        actor: Actor = "agent",
    ) -> None:
        """Add, change and delete memories without a task in one commit, all or none.

        Parameters
        ----------
        change : mapping, optional
            By id the new values of fields, as `update_memory` takes them. A given ``embedding`` is that of the new content.
        reason : str, optional
            Why memories are deleted.

        Raises
        ------
        NotFoundError
            A memory to change does not exist.
        InvalidInputError, DuplicateIdError
            As for `insert_memory` and `update_memory`.
        """
        with self._writer.exclusive():
            changed = checked(Mapping[str, Mapping[str, Any]], change or {}, "change")
            changes = [self._writer.revision(one, updates) for one, updates in changed.items()]
            deletions = [MemoryDeleted(id=one, reason=reason) for one in checked_list(str, delete, "delete")]
            writes = [*checked_list(AgentMemory, add, "add"), *changes, *deletions]
            self._writer.commit("global", writes, actor=actor)

    def import_memories(self, memories: Sequence[AgentMemory], links: Sequence[Link]) -> None:
        """Add memories as given, and their links, in one commit per write scope. One without a privacy tier gets that of its domain and text.

        Raises
        ------
        NotFoundError
            A link's end is neither among the memories nor in the store; nothing is stored.
        """
        memories, links = checked_list(AgentMemory, memories, "memories"), checked_list(Link, links, "links")
        with self._batches.batch():
            self._writer.restore(memories, links)
