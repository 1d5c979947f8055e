"""Items: JSON values under a namespace and a key, kept as memories, for frameworks that store by key.

An item is one memory, or the parts of one text where it is longer than a memory: each part is linked to the one before. The
``content`` of the parts is the item's text, which is recalled and searched; their ``pattern`` is its record, cut into pieces: one line
of JSON about the item, then its value as JSON. Because of the record in it, no item is merged with another memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np
import orjson

from memgraph.errors import InvalidInputError, PermissionDeniedError
from memgraph.index.columns import ITEM_SOURCE
from memgraph.lifecycle.run import vectors_of
from memgraph.logs import logger_of
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import MAX_NAME_CHARS, MAX_TEXT_CHARS, storable
from memgraph.model.ids import source_id, stored_form
from memgraph.model.link import REPLACED
from memgraph.model.memory import SemanticMemory
from memgraph.model.results.retrieval import ScoredMemory
from memgraph.model.timestamps import epoch_days, from_iso, to_iso
from memgraph.ports import Embedder, Row
from memgraph.privacy import Access, Operation, tier_of_domain
from memgraph.retrieval import MemoryRetrieval
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import visible
from memgraph.text.cutting import split_text

TAG = "namespace:"
"""Beginning of the tag with an item's namespace."""
EXPIRY = "its time to live has ended"
"""The ``invalidation_reason`` of an item that expires."""
MAX_PATH_CHARS = MAX_NAME_CHARS - len(TAG)

MEMORIES = "memgraph"
"""First label of the namespaces of memories that are no items."""
_SEEN = ("type", "outcome", "tags", "project_id", "session_id", "occurred_at", "confidence", "trust_class", "domain")

Namespace = tuple[str, ...]


class Item(NamedTuple):
    """A stored item. Times are ISO 8601, UTC."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: str
    updated_at: str
    memory_ids: list[str]
    """The memories that hold it, the first one first."""
    ttl: float | None = None
    """Minutes that it lives after it was put or last refreshed; None: it does not expire."""
    is_indexed: bool = True


class Found(NamedTuple):
    """An item that was found, with the score of its best part (None: nothing was asked); without evidence it is only the most similar."""

    item: Item
    score: float | None
    has_evidence: bool = True


class Put(NamedTuple):
    """A value to store under a key (None deletes) for `ttl` minutes; `texts`, by default the value's, are searched if it `is_indexed`."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    texts: Sequence[str] | None = None
    is_indexed: bool = True
    ttl: float | None = None


class Head(NamedTuple):
    """What the first line of a record says."""

    namespace: Namespace
    key: str
    parts: int
    put_at: str
    ttl: float | None
    is_indexed: bool


def part_id(namespace: Namespace, key: str, project: str | None, number: int = 0) -> str:
    """Return the id of an item's memory, or of a further part: equal places have equal ids."""
    place = orjson.dumps([ITEM_SOURCE, project or "", list(namespace), key]).decode()
    return source_id(place, number)


def path_of(namespace: Namespace, key: str) -> str:
    """Return an item's place for display."""
    return "/".join([*namespace, key])


def check_place(namespace: Namespace, key: str) -> None:
    """Reject a place that cannot be stored."""
    if not namespace or not all(isinstance(label, str) and label for label in namespace):
        raise InvalidInputError("must be texts, at least one", field="namespace", value=namespace)
    if not isinstance(key, str):
        raise InvalidInputError("must be a text", field="key", value=key)
    for field, text in (("namespace", "".join(namespace)), ("key", key)):
        try:
            storable(text)
        except ValueError as error:
            raise InvalidInputError(str(error), field=field, value=text) from None
    if len(path_of(namespace, key)) > MAX_PATH_CHARS:
        problem = f"may have at most {MAX_PATH_CHARS} characters together with the namespace"
        raise InvalidInputError(problem, field="key", value=key)


def dumped(value: Mapping[str, Any]) -> str:
    """Return a value as JSON."""
    if not isinstance(value, Mapping):
        raise InvalidInputError("must be a mapping, or None to delete", field="value", value=value)
    try:
        return orjson.dumps(dict(value)).decode()
    except TypeError as error:
        raise InvalidInputError(f"cannot be written as JSON: {error}", field="value", value=value) from None


def head_of(row: Row) -> Head | None:
    """Return what the record of an item's first memory says; None of any other memory."""
    if row.get("source") != ITEM_SOURCE or not (record := row.get("pattern", "")).startswith("{"):
        return None
    try:
        fields = orjson.loads(record.partition("\n")[0])
        return Head(**{**fields, "namespace": tuple(fields["namespace"])})
    except (orjson.JSONDecodeError, TypeError, KeyError):
        return None


def item_of(head: Head, rows: Sequence[Row]) -> Item | None:
    """Return the item that the rows of all its memories hold; None if one is missing or was changed."""
    if len(rows) != head.parts:
        return None
    record = "".join(row.get("pattern", "") for row in rows)
    try:
        value = orjson.loads(record.partition("\n")[2])
    except orjson.JSONDecodeError:
        return None
    ids = [row["id"] for row in rows]
    created = rows[0]["created_at"]
    return Item(head.namespace, head.key, value, created, max(created, head.put_at), ids, head.ttl, head.is_indexed)


def seen(row: Row) -> Item:
    """Return any memory as an item to read, in the namespace of its type."""
    value = {"text": row["content"], **{name: row[name] for name in _SEEN if row.get(name) not in (None, [])}}
    return Item((MEMORIES, row["type"]), row["id"], value, row["created_at"], row["updated_at"], [row["id"]])


MAX_PARTS = 50
"""Parts of an item's text that are recalled and searched: 40,000 characters. Its value is kept whole."""
_CARRIERS = frozenset({"text", "content", "data", "memory", "value", "page_content"})
"""Names of fields that say nothing about the text in them."""
_ENDS = ".!?…"
_NOT_SEARCHED = "it is not to be searched"
"""The ``archive_reason`` of what is kept for its value alone."""
_CHANGING = (
    "pattern", "title", "tags", "source", "privacy_tier", "domain", "invalid_at", "invalidation_reason", "archived_at",
    "archive_reason", "is_suppressed",
)  # fmt: skip
_MISSING = object()
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDER)
logger = logger_of(__name__)

Place = tuple[Namespace, str]


class Items:
    """The items of a store, or of one project in it, as an agent may have them. Thread-safe.

    An item is absent when it was deleted, when its time to live has ended, and when a user has forgotten or invalidated it. What sleep
    finds out about its text takes it out of recalls, but not from here.

    Projects have separate items. The domain of stored items decides their privacy tier; without one they are public. An agent that may not read
    or not store memories of the domain is refused with a `PermissionDeniedError`, which is recorded.
    """

    def __init__(
        self,
        store: AgentMemoryStore,
        *,
        agent: str = UNNAMED,
        justification: str | None = None,
        project: str | None = None,
        domain: str | None = None,
    ) -> None:
        self._store = store
        self._agent = agent
        self._justification = justification
        self._project = project
        self._domain = domain
        self._heads: dict[str, Place] = {}
        access = store.access_of(agent, justification)
        operations: tuple[Operation, ...] = ("read", "write")
        for operation in operations:
            store.auditing.check_asked(access, operation, domain=domain or "general")

    def get(self, namespace: Namespace, key: str) -> Item | None:
        """Return an item; None if there is none."""
        return self.get_each([(namespace, key)])[0]

    def get_each(self, places: Sequence[Place]) -> list[Item | None]:
        """Return the items at some places, in one consistent read."""
        with self._store.reader.frozen():
            ids = [part_id(*place, self._project) for place in places]
            found = {item.memory_ids[0]: item for item in self._items(dict.fromkeys(ids))}
        self._disclosed(found.values())
        return [found.get(one) for one in ids]

    def were_there(self, places: Sequence[Place]) -> list[bool]:
        """Return at which places an item is or was and is only hidden, such as a forgotten one; not at those where it was deleted."""
        ids = [part_id(*place, self._project) for place in places]
        there = {row["id"] for row in self._store.reader.rows(ids)}
        return [one in there for one in ids]

    def forget(self, namespace: Namespace, key: str) -> bool:
        """Hide an item from every door, until it is put again, and return whether it was there."""
        item = self.get(namespace, key)
        if item is not None:
            self._store.rewrite(change={one: {"is_suppressed": True} for one in item.memory_ids})
        return item is not None

    def put(self, namespace: Namespace, key: str, value: Mapping[str, Any] | None, **options: Any) -> None:
        """Store a value, or delete one (None); `options` are those of `Put`."""
        self.apply([Put(namespace, key, value, **options)])

    def apply(self, puts: Sequence[Put]) -> None:
        """Make changes in one commit, all or none, the last for each place; a changed item keeps its memories and their history."""
        last: dict[Place, Put] = {}
        for put in puts:
            check_place(put.namespace, put.key)
            last.pop((put.namespace, put.key), None)
            last[put.namespace, put.key] = put
        drafts = [self._draft(put) for put in last.values()]
        embedder = self._store.embedder
        self._embed(drafts, embedder)
        with self._store.exclusive():
            self._store.check_embedder(embedder)  # the store may have changed its model meanwhile
            add: list[SemanticMemory] = []
            change: dict[str, dict[str, Any]] = {}
            delete: list[str] = []
            for put, memories in zip(last.values(), drafts, strict=True):
                known = self._known(put)
                for row, memory in zip(known, memories, strict=False):
                    change[row["id"]] = changes(memory, row)
                add += memories[len(known) :]
                delete += [row["id"] for row in known[len(memories) :]]
            if add or change or delete:
                self._store.rewrite(add=add, change=change, delete=delete, reason="the item was deleted or shortened")

    def search(
        self,
        prefix: Namespace = (),
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[Found]:
        """Return the items under a namespace that meet a filter: those that match a query best, else those that were put last."""
        _check_search(filter, limit, offset)
        with self._store.reader.frozen():
            items = [item for item in self._under(prefix) if matches(item.value, filter)]
        items.sort(key=lambda item: item.updated_at, reverse=True)
        return self._best(query, items, limit, offset)

    def namespaces(self) -> list[Namespace]:
        """Return the namespaces that hold items, in the order of their labels."""
        with self._store.reader.frozen():
            return sorted({self._heads[one][0] for one in self._present()})

    def memory(self, memory_id: str) -> Item | None:
        """Return a memory that was stored otherwise as an item to read; None if the agent may not have it."""
        reader = self._store.reader
        with reader.frozen():
            row = next(iter(reader.rows([stored_form(memory_id)])), None)
            is_other = row is not None and row.get("source") != ITEM_SOURCE
            item = seen(row) if row and is_other and self._is_there([row["id"]])[0] else None
        self._disclosed([item] if item else [])
        return item

    def search_memories(
        self,
        prefix: Namespace,
        *,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[Found]:
        """Return memories that were stored otherwise as items to read: those that match a query best, else the newest first."""
        _check_search(filter, limit, offset)
        with self._store.reader.frozen():
            others = {one.key: one for one in self._others() if one.namespace[: len(prefix)] == tuple(prefix)}
        return self._best(query, [item for item in others.values() if matches(item.value, filter)], limit, offset)

    def refresh(self, items: Sequence[Item]) -> None:
        """Let the time to live of some items begin again."""
        change = {
            one: {"invalid_at": ends, "invalidation_reason": EXPIRY}
            for item in items
            if (ends := end_of(item.ttl, self._store.now())) is not None
            for one in item.memory_ids
        }
        if change:
            with self._store.exclusive():
                there = {row["id"]: row for row in self._store.reader.rows(list(change))}
                later = {one: new for one, new in change.items() if one in there and _expires(there[one])}
                if later:
                    self._store.rewrite(change=later)

    def sweep(self) -> int:
        """Delete the items whose time to live has ended, and return their number."""
        with self._store.exclusive():
            now = self._store.now()
            gone = [row for row in self._rows() if _expires(row) and row["invalid_at"] <= now]
            if gone:
                self._store.rewrite(delete=[row["id"] for row in gone], reason=EXPIRY)
        return sum(self._head(row) is not None for row in gone)

    def _disclosed(self, items: Iterable[Item]) -> None:
        """Record which sensitive items the agent got with its justification; searches by words record that themselves."""
        if (access := self._access).is_justified:
            ids = [item.memory_ids[0] for item in items]
            self._store.auditing.record_disclosure(access, "read", self._store.read_memories(ids))

    # -- reading; within a frozen block

    def _present(self) -> list[str]:
        """Return the ids of the first memories of the items that are there."""
        rows = self._rows(only_new=True)
        self._heads |= {row["id"]: (head.namespace, head.key) for row in rows if (head := self._head(row)) is not None}
        index = self._store.reader.index
        slots = {one: index.slot(one) for one in self._heads}
        ids = [one for one, slot in slots.items() if slot >= 0]
        return [one for one, is_in in zip(ids, self._is_there(ids), strict=True) if is_in]

    def _is_there(self, ids: Sequence[str]) -> list[bool]:
        """Return which of some memories, none of them deleted, the agent may have, and no user or clock has taken away."""
        reader = self._store.reader
        index = reader.index
        slots = np.array([index.slot(one) for one in ids], dtype=np.int64)
        if not len(slots):
            return []
        mask = (visible(reader, self._access, "read") & ~index.column("is_suppressed"))[slots]
        for place in np.flatnonzero(mask & (index.column("invalid_days")[slots] <= epoch_days(self._store.now()))):
            mask[place] = all(row.get("invalidation_reason") == REPLACED for row in reader.rows([ids[int(place)]]))
        return [bool(one) for one in mask]

    def _rows(self, *, only_new: bool = False) -> list[Row]:
        """Return the rows of the memories of all items; with `only_new` those whose place is not known yet."""
        reader = self._store.reader
        index = reader.index
        codes = [code for code, name in enumerate(index.tag_names.names) if name.startswith(TAG)]
        slots = np.unique(np.concatenate([index.tags.get(code)[0] for code in codes])) if codes else ()
        ids = [index.ids.names[slot] for slot in slots]
        return [
            row
            for row in reader.rows([one for one in ids if not only_new or one not in self._heads])
            if row.get("source") == ITEM_SOURCE and row.get("project_id") == self._project
        ]

    def _head(self, row: Row) -> Head | None:
        """Return what an item's first memory says; None of any other memory, whatever its text."""
        if (head := head_of(row)) is None:
            return None
        place = head.namespace, head.key
        is_first = self._heads.get(row["id"]) == place or row["id"] == part_id(*place, self._project)
        return head if is_first else None

    def _under(self, prefix: Namespace) -> Iterator[Item]:
        size = len(prefix)
        return self._items([one for one in self._present() if self._heads[one][0][:size] == tuple(prefix)])

    def _items(self, ids: Sequence[str] | Mapping[str, Any]) -> Iterator[Item]:
        """Yield the items whose first memories have these ids, where they are there."""
        reader = self._store.reader
        rows = {row["id"]: row for row in reader.rows(list(ids))}
        there = dict(zip(rows, self._is_there(list(rows)), strict=True))
        for one, row in rows.items():
            head = self._head(row)
            if head is None or not there[one]:
                continue
            others = [part_id(head.namespace, head.key, self._project, number) for number in range(1, head.parts)]
            item = item_of(head, [row, *(reader.rows(others) if others else ())])
            if item is None:
                logger.warning("an item is incomplete, and is left out: memory %s or a part of it was changed", one)
            else:
                yield item

    def _others(self) -> Iterator[Item]:
        """Yield the memories that a list shows and that are no items, newest first."""
        reader = self._store.reader
        mask = reader.listed() & visible(reader, self._access, "read")
        rows = reader.rows(reader.ranked_ids(mask, by="created"))
        for row in rows:
            is_of_project = row.get("project_id") in (None, self._project or row.get("project_id"))
            if row.get("source") != ITEM_SOURCE and is_of_project:
                yield seen(row)

    def _best(self, query: str | None, items: Sequence[Item], limit: int, offset: int) -> list[Found]:
        """Return those of some items that match a query best, else the first ones."""
        end = offset + limit
        if query and query.strip():
            return list(self._ranked(query, [item for item in items if item.is_indexed], end))[offset:end]
        self._disclosed(items[offset:end])
        return [Found(item, None) for item in items[offset:end]]

    def _ranked(self, query: str, items: Sequence[Item], most: int) -> Iterator[Found]:
        of_memory = {one: item for item in items for one in item.memory_ids}
        wanted, found = 2 * most, dict[str, ScoredMemory]()
        while of_memory and most:
            results = MemoryRetrieval(self._store).search_memories(
                query,
                limit=min(wanted, len(of_memory)),
                agent=self._agent,
                justification=self._justification,
                among=list(of_memory),
            )
            found = {}
            for one in results:
                found.setdefault(of_memory[one.memory.id].memory_ids[0], one)
            if len(found) >= most or len(results) < wanted:
                break
            wanted *= 4
        for first, best in found.items():
            yield Found(of_memory[first], best.score, best.has_evidence)

    # -- writing

    def _known(self, put: Put) -> list[Row]:
        """Return the rows of the memories that hold an item now; requires the lock."""
        reader = self._store.reader
        first = part_id(put.namespace, put.key, self._project)
        rows = reader.rows([first])
        if not rows:
            return []
        with reader.frozen():
            is_hidden = not visible(reader, self._access, "read")[reader.index.slot(first)]
        if is_hidden:
            problem = "the item belongs to a domain of which the agent may not have memories"
            raise PermissionDeniedError(problem, agent=self._agent)
        self._store.auditing.check_asked(self._access, "write", domain=rows[0].get("domain") or "general")
        while more := reader.rows([part_id(put.namespace, put.key, self._project, len(rows))]):
            rows += more
        return rows

    def _draft(self, put: Put) -> list[SemanticMemory]:
        """Return the memories that a put asks for, none for a deletion; secrets are redacted before the value is cut into pieces."""
        if put.value is None:
            return []
        now = self._store.now()
        value = self._redacted(put)
        path = path_of(put.namespace, put.key)
        texts = parts_of([text_of(orjson.loads(value), path)] if put.texts is None else put.texts, path)
        pieces = _pieces(put, value, len(texts), now)
        if self._store.without_secrets(pieces) != pieces:
            raise InvalidInputError("holds a secret that cannot be redacted", field="value")
        ids = [part_id(put.namespace, put.key, self._project, number) for number in range(max(len(texts), len(pieces)))]
        ends = end_of(put.ttl, now)
        common: dict[str, Any] = {
            "title": path,
            "tags": [f"{TAG}{'.'.join(put.namespace)}"],
            "source": ITEM_SOURCE,
            "reason": "an agent stored it under a key",
            "privacy_tier": tier_of_domain(self._domain),
            "domain": self._domain,
            "project_id": self._project,
            "invalid_at": ends,
            "invalidation_reason": EXPIRY if ends else None,
        }
        memories = []
        for number, memory_id in enumerate(ids):
            is_text = number < len(texts)
            is_searched = is_text and put.is_indexed
            memory = SemanticMemory(
                id=memory_id,
                previous_id=ids[number - 1] if number else None,
                content=texts[number] if is_text else f"{path}: part {number + 1} of its value",
                pattern=pieces[number] if number < len(pieces) else None,
                archived_at=None if is_searched else now,
                archive_reason=None if is_searched else _NOT_SEARCHED,
                **common,
            )
            memories.append(memory)
        return memories

    def _embed(self, drafts: Sequence[list[SemanticMemory]], embedder: Embedder) -> None:
        """Embed the texts of drafts that the store does not have yet, before any lock is taken."""
        ids = [str(memory.id) for draft in drafts for memory in draft]
        known = {row["id"]: row["content"] for row in self._store.reader.rows(ids)}
        new = [
            (draft, number, memory)
            for draft in drafts
            for number, memory in enumerate(draft)
            if known.get(str(memory.id)) != memory.content
        ]
        texts = [self._store.without_secrets(memory.content) for _, _, memory in new]
        for (draft, number, memory), vector in zip(new, vectors_of(embedder, texts), strict=True):
            draft[number] = memory.model_copy(update={"embedding": vector})

    def _redacted(self, put: Put) -> str:
        place = [*put.namespace, put.key]
        if self._store.without_secrets(place) != place:
            raise InvalidInputError("looks like a secret, which is not stored", field="key")
        value = dumped(put.value or {})
        if self._store.without_secrets(value) == value:
            return value
        cleaned = dumped(self._store.without_secrets(orjson.loads(value)))
        value = self._store.without_secrets(cleaned)
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError:
            raise InvalidInputError("holds a secret that cannot be redacted", field="value") from None
        return value

    @property
    def _access(self) -> Access:
        return self._store.access_of(self._agent, self._justification)


def _check_search(filter: Mapping[str, Any] | None, limit: int, offset: int) -> None:
    for name, wanted in (filter or {}).items():
        if isinstance(wanted, Mapping) and (unknown := [one for one in wanted if one not in OPERATORS]):
            problem = f"must be one of {', '.join(OPERATORS)}"
            raise InvalidInputError(problem, field=f"filter.{name}", value=unknown[0])
    for name, number in (("limit", limit), ("offset", offset)):
        if not isinstance(number, int) or number < 0:
            raise InvalidInputError("must be an integer of at least 0", field=name, value=number)


def _expires(row: Row) -> bool:
    return row.get("invalidation_reason") == EXPIRY and "invalid_at" in row


def matches(value: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    """Return whether a value meets all conditions.

    A name is that of a field, or a path of names with dots. A missing field counts as null, which is equal to null alone, and is
    neither greater nor less than anything, nor unequal to it. Numbers compare with numbers, texts with texts.
    """
    return all(_meets(_at(value, name), wanted) for name, wanted in (filter or {}).items())


def _at(value: Mapping[str, Any], name: str) -> Any:
    if name in value:
        return value[name]
    found: Any = value
    for part in name.split("."):
        found = found.get(part, _MISSING) if isinstance(found, Mapping) else _MISSING
    return None if found is _MISSING else found


def _meets(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return all(_compares(found, name, other) for name, other in wanted.items())
    return bool(found == wanted)


def _compares(found: Any, name: str, wanted: Any) -> bool:
    if name == "$eq":
        return bool(found == wanted)
    if name == "$ne":
        return found is not None and bool(found != wanted)
    numbers, texts = (all(isinstance(one, kind) for one in (found, wanted)) for kind in (int | float, str))
    return (numbers or texts) and _ORDER[name](found, wanted)


def changes(memory: SemanticMemory, row: Row) -> dict[str, Any]:
    """Return the new values of fields that make a stored memory equal to a draft. What was forgotten is back then."""
    found = {name: getattr(memory, name) for name in _CHANGING}
    if memory.archived_at and "archived_at" in row:
        found["archived_at"] = row["archived_at"]
    if memory.content != row["content"]:
        found["content"] = memory.content
        if memory.embedding is not None:
            found["embedding"] = memory.embedding
    return found


def end_of(ttl: float | None, now: str) -> str | None:
    """Return when a time to live of some minutes ends."""
    if ttl is None:
        return None
    try:
        return to_iso(from_iso(now) + timedelta(minutes=ttl))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError("must be a number of minutes", field="ttl", value=ttl) from None


def _pieces(put: Put, value: str, texts: int, now: str) -> list[str]:
    """Return the record of a put, cut into what one field can hold; its first line names the pieces' number, or that of the texts if there are more."""
    head = Head(put.namespace, put.key, texts, now, put.ttl, put.is_indexed)
    while True:
        whole = f"{orjson.dumps(head._asdict()).decode()}\n{value}"
        pieces = [whole[start : start + MAX_TEXT_CHARS] for start in range(0, len(whole), MAX_TEXT_CHARS)]
        if len(pieces) <= head.parts:
            return pieces
        head = head._replace(parts=len(pieces))


def text_of(value: Mapping[str, Any], path: str) -> str:
    """Return a value as text that can be understood by itself: a lone text, else its place and a sentence for each field with its names."""
    lines = list(_lines(value, ()))
    if len(lines) == 1 and lines[0] in _texts(value):
        return lines[0]
    return " ".join([f"{path}:", *(line if line[-1] in _ENDS else f"{line}." for line in lines)])


def _texts(value: Mapping[str, Any]) -> Iterator[str]:
    for part in value.values():
        if isinstance(part, str):
            yield part.strip()
        elif isinstance(part, Mapping):
            yield from _texts(part)


def _lines(value: Any, names: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _lines(part, names if name in _CARRIERS else (*names, str(name)))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if value and all(isinstance(one, str | int | float) for one in value):
            yield from _lines(", ".join(map(str, value)), names)
        else:
            for part in value:
                yield from _lines(part, names)
    elif value is not None and (said := str(value).strip()):
        yield f"{' '.join(names).replace('_', ' ')}: {said}" if names else said


def parts_of(texts: Sequence[str], path: str) -> list[str]:
    """Return the parts of some texts, each short enough for a memory; without any text, the item's place."""
    cleaned = (text.replace("\x00", " ") for text in texts)
    parts = [part for text in cleaned for part in split_text(text) if part.strip()]
    return parts[:MAX_PARTS] or [path]
