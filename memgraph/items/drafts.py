"""Drafts: the memories that a put asks for, and how a stored item's memories change to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from memgraph.errors import InvalidInputError
from memgraph.index.columns import ITEM_SOURCE
from memgraph.items.item import EXPIRY, TAG, Head, Put, dumped, part_id, path_of, pieces_of
from memgraph.lifecycle.run.embedding import vectors_of
from memgraph.model.memory import SemanticMemory
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Embedder, Row
from memgraph.privacy.tiers import tier_of_domain
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import split_text

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


class Draft(NamedTuple):
    """A put, and the memories that it asks for; none for a deletion."""

    put: Put
    memories: list[SemanticMemory]


class Drafter:
    """Makes drafts for a store.

    Secrets are redacted in the value before it is cut into pieces, so that it stays readable.
    """

    def __init__(self, store: AgentMemoryStore, *, project: str | None, domain: str | None) -> None:
        self._store = store
        self._project = project
        self._domain = domain

    def draft(self, put: Put) -> Draft:
        """Return the draft of a put.

        Raises
        ------
        InvalidInputError
            The value or time to live cannot be stored.
        """
        if put.value is None:
            return Draft(put, [])
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
        return Draft(put, memories)

    def embed(self, drafts: Sequence[Draft], embedder: Embedder) -> None:
        """Embed the texts of drafts that the store does not have yet, before any lock is taken."""
        ids = [part_id(d.put.namespace, d.put.key, self._project, n) for d in drafts for n in range(len(d.memories))]
        known = {row["id"]: row["content"] for row in self._store.reader.rows(ids)}
        new = [
            (draft, number)
            for draft in drafts
            for number, memory in enumerate(draft.memories)
            if known.get(str(memory.id)) != memory.content
        ]
        texts = [self._store.without_secrets(draft.memories[number].content) for draft, number in new]
        for (draft, number), vector in zip(new, vectors_of(embedder, texts), strict=True):
            draft.memories[number] = draft.memories[number].model_copy(update={"embedding": vector})

    def _redacted(self, put: Put) -> str:
        """Return the value as JSON without secrets."""
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
    """Return when a time to live of some minutes ends.

    Raises
    ------
    InvalidInputError
    """
    if ttl is None:
        return None
    try:
        return to_iso(from_iso(now) + timedelta(minutes=ttl))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError("must be a number of minutes", field="ttl", value=ttl) from None


def _pieces(put: Put, value: str, texts: int, now: str) -> list[str]:
    """Return the record of a put in pieces; its first line names their number, or that of the texts if there are more."""
    head = Head(put.namespace, put.key, texts, now, put.ttl, put.is_indexed)
    while len(pieces := pieces_of(head, value)) > head.parts:
        head = head._replace(parts=len(pieces))
    return pieces


def text_of(value: Mapping[str, Any], path: str) -> str:
    """Return a value as text that can be understood by itself.

    A lone text stands for itself. Else the item's place comes first, then a sentence for each text, number and truth value, with the
    names of its fields.
    """
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
