"""Reading memories by id and as lists, for the owner or as an agent may have them; lists leave out hidden and withheld memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.model.base import Name, checked
from memgraph.model.ids import MIN_ID_CHARS, stored_form
from memgraph.model.memory import (
    MemoryType,
    PrivacyTier,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
    TrustClass,
)
from memgraph.model.results.curation import MemoryStats
from memgraph.privacy import OWNER, Access
from memgraph.store.access.auditing import Auditing
from memgraph.store.access.scope import Scope, concerning, of_or_none
from memgraph.store.access.visibility import everything, visible
from memgraph.store.query import Mask, Reader

_SHOWN_IDS = 5


@dataclass(eq=False)
class Listings:
    """Reads memories: one, several, counts, or those in a list. An agent gets what it may have, without ids of other memories."""

    _reader: Reader
    _access: Access = OWNER
    _on_read: Callable[[Sequence[StoredMemory]], None] = lambda _memories: None
    check: Callable[..., None] = lambda **_asked: None
    """Called with the `tiers` and the `domain` that a list is restricted to; raises if whoever asks can have nothing of them."""

    def get_memory(self, id: str) -> StoredMemory | None:
        """Return a memory unless it is deleted."""
        return next(iter(self.read_memories([stored_form(checked(str, id, "id"))])), None)

    def read_memories(self, memory_ids: Sequence[str]) -> list[StoredMemory]:
        """Return these memories in this order, without deleted ones."""
        ids = checked(list[str], memory_ids, "memory_ids")
        return self._reader.read(ids) if self._access.is_owner else self._read(ids)

    def ids_from(self, beginning: str) -> list[str]:
        """Return the ids with this prefix; one pass over all."""
        with self._reader.frozen():
            may, slot = self._mask(), self._reader.index.slot
            return [one for one in self._reader.ids_from(beginning) if may[slot(one)]]

    def _read(self, memory_ids: Sequence[str]) -> list[StoredMemory]:
        with self._reader.frozen():
            may, slot = self._mask(), self._reader.index.slot
            there = [one for one in memory_ids if (place := slot(one)) >= 0 and may[place]]
            found = [self._without_others(one, may) for one in self._reader.read(there)]
        self._on_read(found)
        return found

    def _mask(self, *, all_states: bool = True) -> Mask:
        """Return which slots whoever reads may have. The owner may have, of all states, what is withheld, too."""
        if self._access.is_owner and all_states:
            return everything(self._reader)
        return visible(self._reader, self._access, "read")

    def _without_others(self, memory: StoredMemory, may: Mask) -> StoredMemory:
        """Return a memory without the ids of memories that an agent may not have."""
        if self._access.is_owner:
            return memory
        index = self._reader.index

        def is_hidden(one: str, *, unless_gone: bool = False) -> bool:
            place = index.slot(one)
            return not may[place] if place >= 0 else not unless_gone

        fewer: dict[str, object] = {}
        if memory.previous_id is not None and is_hidden(memory.previous_id):
            fewer["previous_id"] = None
        if isinstance(memory, StoredSemanticMemory | StoredProceduralMemory):
            fewer["supporting_memory_ids"] = [one for one in memory.supporting_memory_ids if not is_hidden(one)]
        events = memory.source_event_ids  # of a source's records, which no memory has, and of memories
        fewer["source_event_ids"] = [one for one in events if not is_hidden(one, unless_gone=True)]
        return memory.model_copy(update=fewer)

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
            mask, may = self._shown(
                type=type,
                project_id=project_id,
                include_suppressed=include_suppressed,
                state=state,
                session=checked(Name | None, session, "session"),
                task_id=checked(Name | None, task_id, "task_id"),
                agents=checked(list[Name] | None, agents, "agents"),
                privacy_tiers=privacy_tiers,
                trust_classes=checked(list[TrustClass] | None, trust_classes, "trust_classes"),
                domain=domain,
                ids=checked(list[str] | None, ids, "ids"),
            )
            found = self._reader.read(self._reader.ranked_ids(mask, by=by, limit=limit))
            found = [self._without_others(one, may) for one in found]
        self._on_read(found)
        return found

    def count_listed(self, /, **asked: Any) -> int:
        """Return how many memories `list_memories` returns for these arguments without a limit."""
        with self._reader.frozen():
            return int(self._shown(**asked)[0].sum())

    def _shown(
        self,
        *,
        type: MemoryType | None = None,
        project_id: str | None = None,
        include_suppressed: bool = False,
        state: str | None = None,
        **only: Any,
    ) -> tuple[Mask, Mask]:
        """Return which slots a list shows, and which of all slots whoever reads may have."""
        may = self._mask(all_states=state is not None or include_suppressed)
        listed = self._reader.listed(
            type=type, project_id=project_id, include_suppressed=include_suppressed, state=state
        )
        return listed & may & concerning(self._reader.index, **only), may

    def page(
        self,
        *,
        type: MemoryType | None = None,
        project_id: str | None = None,
        session: str | None = None,
        task_id: str | None = None,
        offset: int = 0,
        limit: int,
    ) -> tuple[list[StoredMemory], bool]:
        """Return listed memories by relevance from an offset on, as a recall in this task and session may give, and whether there are more."""
        end, scope = offset + limit, Scope(self._access, asking_session=session, task_id=task_id)
        with self._reader.frozen():
            may = self._mask(all_states=False)
            listed = self._reader.listed(type=type, project_id=project_id)
            ids = self._reader.ranked_ids(
                listed & visible(self._reader, self._access, "read", scope=scope), limit=end + 1
            )
            found = [self._without_others(one, may) for one in self._reader.read(ids[offset:end])]
        self._on_read(found)
        return found, len(ids) > end

    def get_all_memories(self, *, include_suppressed: bool = False) -> list[StoredMemory]:
        """Return all listed memories, most relevant first."""
        return self.list_memories(include_suppressed=include_suppressed)

    def get_stats(self, *, only_project: str | None = None) -> MemoryStats:
        """Count memories that are neither archived nor deleted; with `only_project`, those of this project and of none."""
        with self._reader.frozen():
            mask = self._mask()
            if only_project is not None:
                mask = mask & of_or_none(self._reader.index, "project", only_project)
            return self._reader.stats(mask)


def only_id(
    beginning: str,
    ids_from: Callable[[str], Sequence[str]],
    *,
    kind: str = "memory",
    field: str = "id",
    listed_by: str = "memgraph list",
) -> str:
    """Return the id with this prefix: a complete id unchanged, otherwise the only match of `ids_from`; refuse one that is too short or ambiguous."""
    given = checked(str, beginning, field).strip().lower()
    if whole := stored_form(given):
        return whole
    if len(given) < MIN_ID_CHARS:
        problem = f"must be an id, or at least its first {MIN_ID_CHARS} characters"
        raise InvalidInputError(problem, field=field, value=beginning)
    found = sorted(ids_from(given))
    if not found:
        raise NotFoundError(kind, beginning, listed_by=listed_by)
    if len(found) > 1:
        shown = ", ".join(found[:_SHOWN_IDS]) + (", …" if len(found) > _SHOWN_IDS else "")
        raise InvalidInputError(
            f"matches {len(found)} ids ({shown}); give more characters", field=field, value=beginning
        )
    return found[0]


def listings_for(reader: Reader, access: Access, auditing: Auditing) -> Listings:
    """Return what an agent may read of a store; sensitive memories that it gets are recorded. Unlike a view of the store it costs nothing."""
    disclosed = partial(auditing.record_disclosure, access, "read")
    return Listings(reader, access, disclosed, partial(auditing.check_asked, access, "read"))
