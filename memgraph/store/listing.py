"""Reading memories by id and as lists; lists leave out hidden and withheld memories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memgraph.model.base import Name, checked
from memgraph.model.link import Link
from memgraph.model.memory import MemoryType, PrivacyTier, StoredMemory, TrustClass
from memgraph.model.results.listing import MemoryStats
from memgraph.store.access.hidden_sources import withheld
from memgraph.store.access.scope import concerning
from memgraph.store.query import Reader


class Listings:
    """Reads memories and links: one, several, all, or those in a list."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.check: Callable[..., None] = lambda **_asked: None
        """Called with the `tiers` and the `domain` that a list is restricted to; raises if whoever asks can have nothing of them."""

    def get_memory(self, id: str) -> StoredMemory | None:
        """Return a memory unless it is deleted."""
        return self._reader.get(id)

    def read_memories(self, memory_ids: Sequence[str]) -> list[StoredMemory]:
        """Return these memories in this order, without deleted ones."""
        return self._reader.read(checked(list[str], memory_ids, "memory_ids"))

    def query_by_type(
        self, type: MemoryType, *, limit: int = 50, include_suppressed: bool = False
    ) -> list[StoredMemory]:
        """Return listed memories of a type, most relevant first."""
        return self.list_memories(type=type, limit=limit, include_suppressed=include_suppressed)

    def query_by_project(
        self, project_id: str, *, type: MemoryType | None = None, limit: int = 50
    ) -> list[StoredMemory]:
        """Return listed memories of a project, most relevant first."""
        return self.list_memories(type=type, project_id=project_id, limit=limit)

    def list_memories(
        self,
        *,
        type: MemoryType | None = None,
        project_id: str | None = None,
        include_suppressed: bool = False,
        state: str | None = None,
        limit: int | None = None,
        by: str = "relevance",
        session: str | None = None,
        task_id: str | None = None,
        agents: Sequence[str] | None = None,
        privacy_tiers: Sequence[PrivacyTier] | None = None,
        trust_classes: Sequence[TrustClass] | None = None,
        domain: str | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[StoredMemory]:
        """Return memories that are not archived or invalidated and, by default, neither suppressed nor derived from such.

        Parameters
        ----------
        include_suppressed : bool
            Include forgotten memories, and those that sleep derived from memories forgotten or made less public since.
        state : {"suppressed", "archived", "invalidated", "superseded"}, optional
            Return only memories in this state, whatever their other states.
        by : {"relevance", "created", "accessed"}
            Sort order, highest or newest first; ties in id order.
        session, task_id, agents, privacy_tiers, trust_classes, domain : optional
            Return only memories of exactly this session, task or domain, with one of these agents, tiers or trust classes.
        ids : sequence of str, optional
            Return only memories among these.
        """
        self.check(
            tiers=checked(list[PrivacyTier] | None, privacy_tiers, "privacy_tiers"),
            domain=checked(Name | None, domain, "domain"),
        )
        with self._reader.frozen():
            mask = self._reader.listed(
                type=type, project_id=project_id, include_suppressed=include_suppressed, state=state
            )
            if state is None and not include_suppressed and (telltale := withheld(self._reader)) is not None:
                mask &= ~telltale
            mask &= concerning(
                self._reader.index,
                session=checked(Name | None, session, "session"),
                task_id=checked(Name | None, task_id, "task_id"),
                agents=checked(list[Name] | None, agents, "agents"),
                privacy_tiers=privacy_tiers,
                trust_classes=checked(list[TrustClass] | None, trust_classes, "trust_classes"),
                domain=domain,
                ids=checked(list[str] | None, ids, "ids"),
            )
            return self._reader.read(self._reader.ranked_ids(mask, by=by, limit=limit))

    def get_all_memories(self, *, include_suppressed: bool = False) -> list[StoredMemory]:
        """Return all listed memories, most relevant first."""
        return self.list_memories(include_suppressed=include_suppressed)

    def every_memory(self) -> Iterator[StoredMemory]:
        """Iterate over all memories that are not deleted, in any state, in the order of recording."""
        return self._reader.every()

    def links(self, id: str) -> list[Link]:
        """Return the links of a memory, in both directions, NEXT included."""
        return self._reader.links(id)

    def every_link(self) -> list[Link]:
        """Return all links except NEXT, in a fixed order."""
        return self._reader.every_link()

    def get_stats(self) -> MemoryStats:
        """Count memories that are neither archived nor deleted."""
        return self._reader.stats()
