"""LangGraph: a `BaseStore` on a memgraph store. Needs the extra ``langgraph``.

Items are memories (`memgraph.items`), so what a graph stores is recalled through every other door, and what was stored elsewhere can be
read in the namespace ``("memgraph", type)``. `memgraph docs frameworks` lists the differences from LangGraph's own stores.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.facade import MemGraph
from memgraph.interfaces.refusals import needing
from memgraph.items import MEMORIES, Items, Put
from memgraph.items import Item as StoredItem
from memgraph.model.agent_input import UNNAMED

with needing("langgraph-checkpoint", extra="langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )


class MemGraphStore(BaseStore):
    """A LangGraph store on a memgraph store. Thread-safe; the asynchronous methods run in threads.

    Parameters
    ----------
    memory : MemGraph
        Stays open as long as this object is used.
    agent, justification : str, optional
        For whom items and memories are read and written, with its permissions from the settings.
    project : str, optional
        Separates items of different projects, and selects the memories that are read.
    domain : str, optional
        Domain of the items, which decides their privacy tier; without one they are public.
    fields : sequence of str
        Paths of the texts in a value that are recalled and searched; default: the whole value, written as text. ``index=`` of a put
        overrides it.
    ttl : TTLConfig, optional
        ``default_ttl`` in minutes, and ``refresh_on_read``.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: MemGraph,
        *,
        agent: str = UNNAMED,
        justification: str | None = None,
        project: str | None = None,
        domain: str | None = None,
        fields: Sequence[str] = ("$",),
        ttl: TTLConfig | None = None,
    ) -> None:
        self.items = Items(memory.store, agent=agent, justification=justification, project=project, domain=domain)
        self.ttl_config = ttl
        self._fields = tuple(fields)

    @classmethod
    @contextmanager
    def open(cls, home: str | Path | None = None, **options: Any) -> Iterator[MemGraphStore]:
        """Open the store at `home` for a ``with`` block; `options` are those of the constructor."""
        with MemGraph.open(home) as memory:
            yield cls(memory, **options)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; those that read see the state before those that write, which are one commit."""
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
        results: list[Result] = [self._read(op) for op in ops]
        if puts := [self._put(op) for op in ops if isinstance(op, PutOp)]:
            self.items.apply(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in a thread; see `batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete the items whose time to live has ended, and return their number. They are absent before that, too."""
        return self.items.sweep()

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InvalidInputError("must be an operation of langgraph.store.base", field="ops", value=op)

    def _get(self, op: GetOp) -> Item | None:
        namespace = tuple(op.namespace)
        if namespace[:1] == (MEMORIES,):
            found = self.items.memory(op.key)
            return None if found is None or found.namespace != namespace else Item(**_shown(found))
        item = self.items.get(namespace, op.key)
        if item is None:
            return None
        self._refresh(op.refresh_ttl, [item])
        return Item(**_shown(item))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        search = self.items.search_memories if prefix[:1] == (MEMORIES,) else self.items.search
        found = search(prefix, query=op.query, filter=op.filter, limit=op.limit, offset=op.offset)
        self._refresh(op.refresh_ttl, [one.item for one in found])
        return [SearchItem(**_shown(one.item), score=one.score) for one in found]

    def _refresh(self, is_wanted: bool, items: Sequence[StoredItem]) -> None:
        mortal = [item for item in items if item.ttl is not None]
        if is_wanted and mortal:
            self.items.refresh(mortal)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = [one for one in self.items.namespaces() if all(_fits(one, condition) for condition in conditions)]
        cut = sorted({one[: op.max_depth] for one in found}, key=".".join)
        return cut[op.offset : op.offset + op.limit]

    def _put(self, op: PutOp) -> Put:
        if not op.namespace:
            raise InvalidNamespaceError("Namespace cannot be empty.")
        if op.namespace[0] == MEMORIES:
            problem = (
                f"cannot be written to below {MEMORIES!r}, where the memories of other doors are read; use another name"
            )
            raise InvalidInputError(problem, field="namespace", value=op.namespace)
        texts = None if op.value is None else self._texts(op.value, self._fields if not op.index else op.index)
        return Put(tuple(op.namespace), op.key, op.value, texts=texts, is_indexed=op.index is not False, ttl=op.ttl)

    def _texts(self, value: Mapping[str, Any], fields: Sequence[str]) -> list[str] | None:
        """Return the texts at some paths; None for the whole value."""
        if "$" in fields:
            return None
        return [text for path in fields for text in get_text_at_path(value, tokenize_path(path))]


def _shown(item: StoredItem) -> dict[str, Any]:
    times = {name: datetime.fromisoformat(getattr(item, name)) for name in ("created_at", "updated_at")}
    return {"namespace": item.namespace, "key": item.key, "value": item.value, **times}


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
