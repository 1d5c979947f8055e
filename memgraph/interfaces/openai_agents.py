"""OpenAI Agents: a session whose messages are memories too. Needs the extra ``openai-agents``."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from memgraph.facade import MemGraph
from memgraph.items import Item, Items, Put

ROOT = "openai_agents"


class MemGraphSession:
    """The history of a conversation: ``Runner.run(agent, prompt, session=MemGraphSession("s1", memory))``.

    Each item of the history is an item of the store (`memgraph.items`). What the user and the agent say is recalled through every door; calls of
    tools and their results are kept without being recalled. `options` are agent, justification, project and domain of `memgraph.items.Items`.
    """

    def __init__(self, session_id: str, memory: MemGraph, *, session_settings: Any = None, **options: Any) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._items = Items(memory.store, **options)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the history, or its last items, in their order."""
        most = limit if limit is not None else getattr(self.session_settings, "limit", None)
        found = await asyncio.to_thread(self._history)
        return [one.value["item"] for one in (found if most is None else found[max(0, len(found) - most) :])]

    async def add_items(self, items: list[Any]) -> None:
        """Add to the history."""
        now = time.time_ns()  # not a number counted on: two processes may add to a session
        await asyncio.to_thread(self._items.apply, [self._put(now + place, one) for place, one in enumerate(items)])

    async def pop_item(self) -> Any:
        """Remove the last item and return it; None if there is none."""
        await self._remove(last := (await asyncio.to_thread(self._history))[-1:])
        return last[0].value["item"] if last else None

    async def clear_session(self) -> None:
        """Remove the whole history."""
        await self._remove(await asyncio.to_thread(self._history))

    async def _remove(self, items: list[Item]) -> None:
        await asyncio.to_thread(self._items.apply, [Put(one.namespace, one.key, None) for one in items])

    def _history(self) -> list[Item]:
        found = self._items.search((ROOT, self.session_id), limit=2**31)
        return sorted((one.item for one in found), key=lambda item: item.key)

    def _put(self, number: int, item: Any) -> Put:
        said = item.get("content") if item.get("role") in {"user", "assistant"} else None
        parts = [said] if isinstance(said, str) else [str(one.get("text", "")) for one in said or []]
        texts = [f"{item['role']}: {text}"] if (text := "\n".join(parts).strip()) else []
        return Put((ROOT, self.session_id), f"{number:020d}", {"item": item}, texts, is_indexed=bool(texts))
