"""What holds in tasks, as candidates of a recall: a task's title, goal and values, decisions, constraints, actions, questions, events.

Items have no slots in the index. Those of the tasks that are asked about are put behind its slots for one search (`JoinedIndex`), so that
the same stages score them with the same statistics, and those of other tasks are not there to be scored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np

from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError
from memgraph.index.columns import AUTHORITIES
from memgraph.index.index import Index
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.memory import AgentMemory, StoredMemory, Vector
from memgraph.model.results.retrieval import Authority
from memgraph.ports import Embedder, Row
from memgraph.privacy import inferred
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.text.cutting import cut

_AUTHORITY: dict[str, Authority] = {
    "title": "snapshot",
    "goal": "snapshot",
    "state": "snapshot",
    "decision": "decision",
    "constraint": "constraint",
    "next_action": "next action",
    "open_question": "open question",
    "artifact": "event",
    "confirmation": "event",
}
"""Class of each kind of item that is recalled. A status and a link say nothing that a task could need to know."""
_WITH_VECTOR = 64
"""The newest so many items of a search are compared by their meaning too, older ones by their words: items have no stored vectors."""
_KEPT_VECTORS = 2_000
_KEPT_INDEXES = 8
_SOURCE = "task item"
_SCOPES = frozenset({"task_id", "project_id", "domain", "privacy_tier"})
"""Fields that are not indexed, because the scope's conditions on them are checked before: the codes of names are those of another index."""
_inferred = lru_cache(maxsize=1 << 15)(partial(inferred, None))
"""Tier and domain of an item's text: nobody gives an item one. More items than places would all be read anew each time."""


@dataclass(frozen=True)
class TaskItems:
    """The items of one search.

    Attributes
    ----------
    rows : list of dict
        One row for each item, in the form of a memory's.
    index : Index
        Their index: one slot for each, in this order.
    vectors : ndarray, shape (rows, d), float32, or None
        Zero where an item has none.
    """

    rows: list[Row] = field(default_factory=list)
    index: Index = field(default_factory=Index)
    vectors: Vector | None = None

    def memory(self, place: int, store: AgentMemoryStore) -> StoredMemory:
        """Return an item in the form of a memory of general knowledge, in which a recall returns it."""
        return AgentMemory.from_row(self.rows[place], now=store.now(), curve=store.config.forgetting_curve)

    def authority(self, place: int) -> Authority:
        """Return an item's class."""
        return AUTHORITIES[int(self.index.column("authority")[place])]


class ItemCache:
    """What searches of the same items share: their indexes, and the vectors of their texts, made when they are first needed.

    The last used 2,000 vectors and eight indexes are kept in memory. An item never changes: a new value has the number of another event.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._indexes: OrderedDict[tuple[tuple[str, int], ...], Index] = OrderedDict()

    def index_of(self, rows: Sequence[Row]) -> Index:
        """Return the index of some items; nobody may change it."""
        key = tuple((row["id"], row["seq"]) for row in rows)
        index = self._indexes.pop(key, None)
        if index is None:
            index = Index()
            index.build([{name: value for name, value in row.items() if name not in _SCOPES} for row in rows])
            index.column("authority")[:] = [AUTHORITIES.index(_AUTHORITY[row["category"]]) for row in rows]
            index.column("is_saved")[:] = True
        self._indexes[key] = index
        while len(self._indexes) > _KEPT_INDEXES:
            self._indexes.popitem(last=False)
        return index

    def vectors_of(self, texts: Sequence[str], embedder: Embedder) -> Vector:
        """Return the vectors of some texts, shape (n, d), float32; zero for one that cannot be embedded."""
        lacking = list(dict.fromkeys(one for one in texts if (embedder.name, one) not in self._known))
        for text, vector in zip(lacking, embed_each(embedder, lacking), strict=True):
            if isinstance(vector, EmbeddingError):
                vector = np.zeros(embedder.dimension, dtype=np.float32)  # noqa: PLW2901 - what stands for a failed one
            self._known[embedder.name, text] = vector
        for text in texts:
            self._known.move_to_end((embedder.name, text))
        found = np.stack([self._known[embedder.name, text] for text in texts])
        while len(self._known) > _KEPT_VECTORS:
            self._known.popitem(last=False)
        return found


def candidates(items: Iterable[Row], scope: Scope, cache: ItemCache, embedder: Embedder | None) -> TaskItems:
    """Return the items that a search may score, indexed.

    They are of their task's project, without session or agents, of the tier and domain that their text plainly concerns, and must pass the
    scope's conditions as such.

    Parameters
    ----------
    items : iterable of dict
        What holds in the tasks that are asked about, oldest first.
    embedder : Embedder or None
        None: the query has no vector to compare.
    """
    rows = [row for item in items if item["kind"] in _AUTHORITY and _is_admitted(row := _as_memory(item), scope)]
    if not rows:
        return TaskItems()
    index = cache.index_of(rows)
    if embedder is None:
        return TaskItems(rows, index)
    newest = rows[-_WITH_VECTOR:]
    try:
        found = cache.vectors_of([row["content"] for row in newest], embedder)
    except EmbeddingError:  # the query's notice says so, too
        return TaskItems(rows, index)
    without = np.zeros((len(rows) - len(newest), found.shape[1]), dtype=np.float32)
    return TaskItems(rows, index, np.concatenate([without, found]))


def _is_admitted(row: Row, scope: Scope) -> bool:
    return (
        scope.agents is None
        and (scope.project_id is None or row["project_id"] in (None, scope.project_id))
        and scope.among is None
        and (scope.types is None or "semantic" in scope.types)
        and (scope.privacy_tiers is None or row["privacy_tier"] in scope.privacy_tiers)
        and (scope.trust_classes is None or row["trust_class"] in scope.trust_classes)
        and (scope.access.is_owner or scope.access.may("search", row["privacy_tier"], row["domain"]))
    )


def _as_memory(item: Row) -> Row:
    text = _text(item)
    found = _inferred(text)
    return {
        "id": item["id"],
        "type": "semantic",
        "content": cut(text, MAX_CONTENT_CHARS),
        "privacy_tier": found.tier,
        "domain": found.domain,
        "category": item["kind"],
        "source": _SOURCE,
        "task_id": item["task_id"],
        "project_id": item["project_id"],
        "trust_class": "user" if item["actor"] == "user" else "agent",
        "relevance_anchor": 1.0,
        "floor": 1.0,
        "relevance_at": item["created_at"],
        "created_at": item["created_at"],
        "updated_at": item["created_at"],
        "occurred_at": item["created_at"],
        "seq": item["seq"],
    }


def _text(item: Row) -> str:
    kind, content, reason = item["kind"], item["content"], item.get("reason")
    if kind == "state":
        return f"{item.get('name', '')}: {content}"
    if not reason:
        return str(content)
    return f"{content} (reason: {reason})" if kind == "decision" else f"{reason}: {content}"
