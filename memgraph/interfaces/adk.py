"""Google ADK: a memory service on a memgraph store. Needs the extra ``adk``.

Each event with text is an item (`memgraph.items`) of its application and user, so adding a session again adds what is new. A search returns
what belongs to the user, and what was stored through other doors, as far as there is evidence that it belongs to the query.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from memgraph.errors import NotFoundError
from memgraph.facade import MemGraph
from memgraph.interfaces.refusals import needing
from memgraph.items import MEMORIES, Found, Items, Namespace, Put
from memgraph.model.timestamps import to_iso

with needing("google-adk", extra="adk"):
    from google.adk.events import Event
    from google.adk.memory import BaseMemoryService
    from google.adk.memory.base_memory_service import SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai.types import Content, Part

ROOT = "adk"
_NO_SESSION = "no session"
_STATED = "memories"


class MemGraphMemoryService(BaseMemoryService):
    """ADK's long-term memory: ``Runner(memory_service=MemGraphMemoryService(memory), …)``.

    Parameters
    ----------
    memory : MemGraph
        Stays open as long as the service is used.
    limit : int
        Most memories that a search returns.
    with_others : bool
        Whether a search also returns memories of other doors, which belong to no user.
    options : Any
        agent, justification, project and domain, as those of `memgraph.items.Items`.
    """

    def __init__(self, memory: MemGraph, *, limit: int = 10, with_others: bool = True, **options: Any) -> None:
        self._items = Items(memory.store, **options)
        self._limit = limit
        self._with_others = with_others

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the events of a session that are not stored yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,  # noqa: ARG002
    ) -> None:
        """Store events that are not stored yet. One that was deleted stays so."""
        namespace = (ROOT, app_name, user_id, session_id or _NO_SESSION)
        puts = [_event(namespace, one) for one in events if not one.partial and _text(one.content)]
        await asyncio.to_thread(self._add, puts)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,  # noqa: ARG002
    ) -> None:
        """Store what is stated about a user. One without an id is known by its text."""
        namespace = (ROOT, app_name, user_id, _STATED)
        puts = [
            _put(namespace, one.id or str(uuid5(NAMESPACE_URL, text)), text, one.author, one.timestamp)
            for one in memories
            if (text := _text(one.content))
        ]
        await asyncio.to_thread(self._items.apply, puts)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return what is known that belongs to a query, best first."""
        found = await asyncio.to_thread(self._search, (ROOT, app_name, user_id), query)
        return SearchMemoryResponse(memories=[_entry(one) for one in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget an entry of a user, for good: adding its session again does not bring it back.

        Raises
        ------
        NotFoundError
            The user has no such entry. Memories of other doors are not deleted here.
        """
        if memory_id is not None and not await asyncio.to_thread(self._forget, (ROOT, app_name, user_id), memory_id):
            raise NotFoundError("memory", memory_id, listed_by="search_memory")

    def _add(self, puts: Sequence[Put]) -> None:
        known = self._items.were_there([(put.namespace, put.key) for put in puts])
        self._items.apply([put for put, is_known in zip(puts, known, strict=True) if not is_known])

    def _search(self, prefix: Namespace, query: str) -> list[Found]:
        if not query.strip():
            return []
        found = self._items.search(prefix, query=query, limit=self._limit)
        if self._with_others:
            found += self._items.search_memories((MEMORIES,), query=query, limit=self._limit)
        near = [one for one in found if one.has_evidence]
        return sorted(near, key=lambda one: -(one.score or 0.0))[: self._limit]

    def _forget(self, prefix: Namespace, memory_id: str) -> bool:
        every = (one.item for one in self._items.search(prefix, limit=2**31))
        return any(self._items.forget(one.namespace, one.key) for one in every if one.memory_ids[0] == memory_id)


def _event(namespace: Namespace, event: Event) -> Put:
    said_at = to_iso(datetime.fromtimestamp(event.timestamp, UTC))
    return _put(namespace, event.id, _text(event.content), event.author, said_at)


def _put(namespace: Namespace, key: str, text: str, author: str | None, said_at: str | None) -> Put:
    value = {"text": text, "author": author, "timestamp": said_at}
    return Put(namespace, key, value, texts=[f"{author}: {text}" if author else text])


def _text(content: Content | None) -> str:
    """Return what a content says, without thoughts, calls of tools and files."""
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def _entry(found: Found) -> MemoryEntry:
    value, item = found.item.value, found.item
    return MemoryEntry(
        id=item.memory_ids[0],
        content=Content(role="user", parts=[Part(text=value["text"])]),
        author=value.get("author"),
        timestamp=value.get("timestamp") or value.get("occurred_at"),
        custom_metadata={"namespace": "/".join(item.namespace)},
    )
