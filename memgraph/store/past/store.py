"""A store as it was: see `memgraph.store.past.as_of`."""
# ruff: noqa: ARG002 - what is refused looks at nothing that it is given

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from memgraph.config import AgentMemoryConfig
from memgraph.errors import InvalidInputError, StorageError
from memgraph.journal.envelope import Event
from memgraph.journal.excerpt import Excerpt
from memgraph.journal.journal import Journal
from memgraph.model.events.payload import Actor, WriteScope
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory
from memgraph.model.results.rows import Rows
from memgraph.model.timestamps import from_iso
from memgraph.ports import Embedder, KeyProvider, Progress
from memgraph.store.commit.append import Write
from memgraph.store.disclosure import Disclosures, disclosures
from memgraph.store.opening import open_projector
from memgraph.store.past.as_of import Past, When
from memgraph.store.past.views import Lease
from memgraph.store.projection.place import Place
from memgraph.store.projection.projector import Projector
from memgraph.store.store import AgentMemoryStore


class PastStore(AgentMemoryStore):
    """A store as it was at a moment: `AgentMemoryStore.at` makes it. Everything reads, and what writes raises `ReadOnlyError`.

    It stays as it is whatever is written meanwhile, and when the store it was made from is closed. What was hidden or deleted between
    its moment and its making is read as it was, but pictures and exports leave it out (see `memgraph.store.visibility`).

    Attributes
    ----------
    as_of : str
        The moment: ISO 8601, UTC. Its clock stands there.
    is_recorded : bool
        Whether it holds what had been recorded by then, rather than what had happened.
    """

    _tells_of_damage = False
    """A row that the store has recorded as lost may have been of use then, and nothing is to be repaired from here."""

    def __init__(
        self,
        journal: Excerpt,
        lease: Lease,
        past: Past,
        *,
        place: Place,
        config: AgentMemoryConfig,
        embedder: Embedder,
    ) -> None:
        self.as_of = past.as_of
        self.is_recorded = past.recorded
        self._here = journal
        self._lease = lease
        self._place = place
        super().__init__(config, embedder=embedder, clock=lambda: from_iso(past.as_of))
        self._reader.today = lambda: self._today

    def now(self) -> str:
        """Return the moment: here time stands still."""
        return self.as_of

    def cypher(self, query: str, /, **params: Any) -> Rows:
        """Run a reading Cypher query, as on any store.

        Raises
        ------
        StorageError
            Somebody has removed this view from the disk.
        """
        if not self._lease.is_there:
            problem = "this view of the past was removed while it was open; open it again"
            raise StorageError(problem, path=self._lease.folder)
        return super().cypher(query, **params)

    def at(self, when: When, *, recorded: bool = False, progress: Progress | None = None) -> PastStore:
        """Return the store as it was at an earlier moment of the same kind; later than this one means this one.

        Raises
        ------
        InvalidInputError
            As of a store; or `recorded` is not what it is here, for no view is of both kinds.
        """
        if recorded != self.is_recorded:
            problem = (
                f"must be {self.is_recorded}, as in this view; to change it, open another view from the store itself"
            )
            raise InvalidInputError(problem, field="recorded", value=recorded)
        return super().at(when, recorded=recorded, progress=progress)

    def insert_memories(
        self, memories: Sequence[AgentMemory | Mapping[str, Any]], *, annotate: bool = True
    ) -> list[AgentMemory]:
        """Refuse: nothing is written, not even nothing."""
        self._here.refuse()

    def insert_parts(self, memories: Sequence[AgentMemory]) -> list[AgentMemory]:
        """Refuse: nothing is written."""
        self._here.refuse()

    def import_memories(self, memories: Sequence[AgentMemory], links: Sequence[Link]) -> None:
        """Refuse: nothing is written."""
        self._here.refuse()

    def commit(
        self, write_scope: WriteScope, events: Sequence[Write], *, task_id: str | None = None, actor: Actor = "agent"
    ) -> list[Event]:
        """Refuse: nothing is written."""
        self._here.refuse()

    def record_access(self, id: str) -> AgentMemory:
        """Refuse: nothing is written."""
        self._here.refuse()

    def rebuild(self, progress: Progress | None = None) -> None:
        """Refuse: others may have this view open, too; one that is damaged is made anew when ``past`` is removed."""
        self._here.refuse()

    def compact(self) -> bool:
        """Refuse: others may have this view open, too."""
        self._here.refuse()

    def close(self) -> None:
        """Let go of everything. Closing twice is fine."""
        try:
            super().close()
        finally:
            self._lease.release()

    @cached_property
    def _today(self) -> Disclosures:
        """What may be shown of its memories at the journal's end; costs one pass over it."""
        return disclosures(self._here.every_event())

    def _parts(self, keys: KeyProvider | None) -> tuple[Journal, Projector]:  # verified already
        return self._here, open_projector(self.config, self._here, self._lease.folder)
