"""The documents of a question set as memories, and the systems that are asked for them."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.text.cutting import split_text

Doc = Mapping[str, Any]
Search = Callable[[str, int], Sequence[int]]
"""From a query and how many are wanted to the places of the best parts, best first."""

_DATES = (
    "%I:%M %p on %d %B, %Y",
    "%H:%M on %d %B, %Y",
    "%d %B, %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%Y/%m/%d (%a) %H:%M",
    "%Y/%m/%d",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A document, or a part of one that is longer than a memory.

    Attributes
    ----------
    text : str
        As given, at most as long as a memory.
    date : str or None
        As given.
    occurred_at : datetime or None
        The date, if it is one.
    """

    doc_id: str
    text: str
    title: str | None = None
    speaker: str | None = None
    session: str | None = None
    date: str | None = None
    occurred_at: datetime | None = None

    @property
    def told(self) -> str:
        """The text with its date and its title, for systems that keep nothing but a text."""
        title = None if self.title is None or self.text.startswith(self.title) else self.title
        return "\n".join(line for line in (self.date, title, self.text) if line)


def parts_of(docs: Sequence[Doc]) -> list[Part]:
    """Return the documents as parts, in their order."""
    return [part for doc in docs for part in _parts(doc)]


def moment(date: object) -> datetime | None:
    """Return when a date was, UTC; None for what is none."""
    text = str(date or "").strip()
    found = next((at for at in (_iso(text), *(_parsed(text, form) for form in _DATES)) if at), None)
    try:
        return found.astimezone(UTC) if found else None
    except OverflowError:
        return None


class System(ABC):
    """What the harness asks: documents in, ids of documents out.

    A store is filled once for the same documents, whether the harness gives them by `prepare` or only with a question.
    """

    def __init__(self) -> None:
        self._filled: dict[str, _Filled] = {}
        self._by_object: dict[int, tuple[Sequence[Doc], _Filled]] = {}

    def prepare(self, docs: Sequence[Doc]) -> None:
        """Fill a store with documents, in their order."""
        self._store_of(docs)

    def __call__(self, docs: Sequence[Doc], query: str, k: int) -> list[str]:
        """Return the ids of the best documents, best first, each once."""
        store = self._store_of(docs)
        spare = min(k, len(store.doc_ids) - len(docs))  # several parts of one document may be found
        places = store.search(query, k + spare)
        return list(dict.fromkeys(store.doc_ids[place] for place in places))[:k]

    @abstractmethod
    def fill(self, parts: Sequence[Part]) -> Search:
        """Fill a new store, and return how it is searched."""

    def close(self) -> None:
        """Let go of everything that was filled."""
        self._filled.clear()
        self._by_object.clear()

    def search_of(self, docs: Sequence[Doc]) -> Search:
        """Return how the store of documents is searched; fill it if need be."""
        return self._store_of(docs).search

    def _store_of(self, docs: Sequence[Doc]) -> _Filled:
        held = self._by_object.get(id(docs))
        if held is not None and held[0] is docs:
            return held[1]
        key = _digest(docs)
        if key not in self._filled:
            parts = parts_of(docs)
            self._filled[key] = _Filled([part.doc_id for part in parts], self.fill(parts))
        self._by_object[id(docs)] = docs, self._filled[key]  # held, so that no other object gets its id
        return self._filled[key]


@dataclass(frozen=True, slots=True)
class _Filled:
    """A filled store: which document each part is of, and how it is searched."""

    doc_ids: list[str]
    search: Search


def _parts(doc: Doc) -> list[Part]:
    text = str(doc["text"])
    title, speaker, session, date = (_line(doc.get(name)) for name in ("title", "speaker", "session", "date"))
    texts = split_text(text) if len(text) > MAX_CONTENT_CHARS else [text]
    return [
        Part(str(doc["id"]), one if one.strip() else title or "-", title, speaker, session, date, moment(date))
        for one in texts or [""]
    ]


def _line(value: object) -> str | None:
    """Return a field as one line of text; None for nothing."""
    return " ".join(str(value).split()) or None if value is not None else None


def _iso(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    except ValueError:
        return None


def _digest(docs: Sequence[Doc]) -> str:
    kept = [[doc.get(name) for name in ("id", "text", "title", "speaker", "session", "date")] for doc in docs]
    return hashlib.sha256(json.dumps(kept, default=str).encode()).hexdigest()
