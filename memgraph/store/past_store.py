"""A store as it was: see `memgraph.store.as_of`."""

from __future__ import annotations

from memgraph.config import AgentMemoryConfig
from memgraph.journal.excerpt import Excerpt
from memgraph.journal.journal import Journal
from memgraph.model.memory import AgentMemory
from memgraph.model.timestamps import from_iso
from memgraph.ports import Embedder, KeyProvider
from memgraph.store.as_of import Past
from memgraph.store.opening import open_projector
from memgraph.store.projector import Projector
from memgraph.store.store import AgentMemoryStore
from memgraph.store.views import Lease


class PastStore(AgentMemoryStore):
    """A store as it was at a moment: `AgentMemoryStore.at` makes it. Everything reads, and what writes raises `ReadOnlyError`.

    It stays as it is whatever is written meanwhile, and when the store it was made from is closed.

    Attributes
    ----------
    as_of : str
        The moment: ISO 8601, UTC. Its clock stands there.
    is_recorded : bool
        Whether it holds what had been recorded by then, rather than what had happened.
    """

    def __init__(
        self,
        journal: Excerpt,
        lease: Lease,
        past: Past,
        *,
        config: AgentMemoryConfig,
        embedder: Embedder,
    ) -> None:
        self.as_of = past.as_of
        self.is_recorded = past.recorded
        self._here = journal
        self._lease = lease
        super().__init__(config, embedder=embedder, clock=lambda: from_iso(past.as_of))

    def now(self) -> str:
        """Return the moment: here time stands still."""
        return self.as_of

    def record_access(self, id: str) -> AgentMemory:  # noqa: ARG002
        """Refuse: nothing is written."""
        self._here.refuse()

    def close(self) -> None:
        """Let go of everything. Closing twice is fine."""
        try:
            super().close()
        finally:
            self._lease.release()

    def _parts(self, keys: KeyProvider | None) -> tuple[Journal, Projector]:  # noqa: ARG002 - it is verified already
        return self._here, open_projector(self.config, self._here, self._lease.folder)
