"""LlamaIndex: a memory block that recalls for the last message, and keeps those that leave the chat history. Needs the extra ``llama-index``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from pydantic import Field

from memgraph.facade import MemGraph
from memgraph.interfaces.operations import Caller, perform
from memgraph.interfaces.refusals import needing
from memgraph.items import Items, Put
from memgraph.model.results.retrieval import MAX_TASK_CHARS

with needing("llama-index-core", extra="llama-index"):
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock

ROOT = "llama_index"


class MemGraphBlock(BaseMemoryBlock[str]):
    """A block of LlamaIndex's memory: ``Memory.from_defaults(memory_blocks=[MemGraphBlock(memory=memory)])``.

    Attributes
    ----------
    memory : MemGraph
        Stays open as long as the block is used.
    caller : Caller
        For whom memories are read and stored, and in which project and session.
    domain : str, optional
        Domain of what is stored, which decides its privacy tier; without one it is public.
    also : callable, optional
        Returns up to five phrases for a message, in the words that past messages would have used; called in a thread.
    """

    name: str = "memgraph"
    memory: MemGraph = Field(exclude=True, repr=False)
    caller: Caller = Field(default_factory=Caller)
    domain: str | None = None
    also: Callable[[str], Sequence[str]] | None = Field(default=None, exclude=True, repr=False)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_block_kwargs: Any) -> str:
        if not (said := next((_text(one) for one in reversed(messages or []) if one.role == "user"), "")):
            return ""
        also = await asyncio.to_thread(self.also, said) if self.also else []
        given = {"task": said[:MAX_TASK_CHARS], "also": also}
        found = await asyncio.to_thread(perform, self.memory, self.caller, "recall", given)
        return str(found.data["formatted"]) if found.data["memories"] or found.data["rules"] else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        who = self.caller.model_dump(include={"agent", "justification", "project"})
        items = Items(self.memory.store, domain=self.domain, **who)
        kept = [self._put(one) for one in messages if one.role in {"user", "assistant"} and _text(one)]
        await asyncio.to_thread(items.apply, kept)

    def _put(self, message: ChatMessage) -> Put:
        session = message.additional_kwargs.get("session_id") or self.caller.session or "no session"
        role, text = message.role.value, _text(message)
        return Put((ROOT, self.name, session), str(uuid4()), {"role": role, "text": text}, [f"{role}: {text}"])


def _text(message: ChatMessage) -> str:
    return (message.content or "").strip()
