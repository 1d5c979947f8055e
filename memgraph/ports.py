"""Protocols for the parts that can be replaced. Each has a public fake in `memgraph.testing` and one contract test for all implementations."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memgraph.model.build import BuildEventLog, ExtractionResult
from memgraph.model.memory import AgentMemory, Entity
from memgraph.model.model_usage import UsageMeter
from memgraph.model.results.rows import Rows

Clock = Callable[[], datetime]
"""Returns the current time as an aware UTC datetime."""

Progress = Callable[[int, int | None], None]
"""Called with (done, total or None) during long work."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors, or raises an `EmbeddingError`. Vectors from models of different names are never compared.

    A `dimension` of 0 means that it deliberately makes none and refuses every text.
    """

    @property
    def name(self) -> str:
        """Name of the model."""
        ...

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of the texts, shape (n, dimension), float32, L2-normalised, in their order."""
        ...

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, shape (dimension,), float32, L2-normalised."""
        ...


@runtime_checkable
class Extractor(Protocol):
    """Finds memories in a build log."""

    def extract(self, build_log: BuildEventLog) -> ExtractionResult:
        """Return the memories it proposes, most salient first."""
        ...


@dataclass(frozen=True, slots=True)
class Annotation:
    """What an annotator found in a memory.

    `tags` are used only if the memory has none, `entities` only if `lacks_entities`.
    """

    entities: tuple[Entity, ...] = ()
    tags: tuple[str, ...] = ()
    failure_fingerprint: str | None = None


_HASH = re.compile(r"[0-9a-f]{7,40}")


def is_known_to_the_source(kind: str, name: str) -> bool:
    """Return whether an entity is one that a memory's source knows, although its text need not name it: an issue or a release."""
    return kind == "issue" or is_release(kind, name)


def is_release(kind: str, name: str) -> bool:
    """Return whether an entity is a release, which names a commit."""
    return kind == "commit" and _HASH.fullmatch(name) is None


def lacks_entities(memory: AgentMemory) -> bool:
    """Return whether a memory brings no entities but those that its source knows."""
    return all(is_known_to_the_source(entity.kind, entity.name) for entity in memory.entities)


@runtime_checkable
class Annotator(Protocol):
    """Finds entities, tags and a failure fingerprint in a memory. Deterministic."""

    def annotate(self, memory: AgentMemory) -> Annotation:
        """Return what was found."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens that a text takes in a prompt."""

    def __call__(self, text: str) -> int:
        """Return the number of tokens."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    """Completes a conversation, as JSON that matches `schema` if one is given; or raises a `ProviderError`."""

    def complete(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> str:
        """Return the reply's text."""
        ...


class ModelReply(NamedTuple):
    """A reply and the number of tokens that the model read and wrote; None if it did not report them."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None


@runtime_checkable
class CountingLanguageModel(LanguageModel, Protocol):
    """A language model that reports the tokens of each reply."""

    def complete(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> str:
        """Return the text of `reply`."""
        return self.reply(messages, schema).text

    def reply(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> ModelReply:
        """Return the reply with its token counts."""
        ...


@runtime_checkable
class Metered(Protocol):
    """An embedder or extractor that counts its requests to models' servers."""

    @property
    def meter(self) -> UsageMeter:
        """The counts of this run. Several objects may share one meter."""
        ...


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A secret and its public name. The secret is never shown or logged."""

    key_id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"SigningKey(key_id={self.key_id!r})"


@runtime_checkable
class KeyProvider(Protocol):
    """Provides the key that signs a store's journal."""

    def key(self, store_id: str) -> SigningKey | None:
        """Return the store's key, or None if there is none."""
        ...

    def create(self, store_id: str) -> SigningKey:
        """Return the key of a store whose journal is still empty, creating one if necessary."""
        ...


@runtime_checkable
class RotatingKeyProvider(KeyProvider, Protocol):
    """Provides earlier keys, too, so that keys can be rotated."""

    def find(self, store_id: str, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None. A provider has no keys whose ids have an unknown form."""
        ...


Key = str | tuple[str, str]
Row = dict[str, Any]
"""A row holds only fields that are set: neither None nor empty lists. Times are canonical strings."""


class Change(NamedTuple):
    """One changed row: `old` is None for an inserted row, `new` is None for a deleted one. An edge's key is (source, target)."""

    table: str
    key: Key
    old: Row | None
    new: Row | None


class GraphEngine(Protocol):
    """Stores rows of nodes and edges; each call is atomic. Every engine error is raised as a `GraphError`.

    A read returns what was written or raises a `GraphError`: memories' rows and the state row carry codes that are checked.
    """

    @property
    def generation(self) -> int:
        """Counts how often the engine was acquired. If two readings are equal, no other process has used it between them."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether this process holds the engine now."""
        ...

    def acquire_if_free(self) -> bool:
        """Acquire the engine for the calls that follow, unless another process has it; return whether this process has. Never waits."""
        ...

    def open(self) -> AbstractContextManager[Any]:
        """Hold the engine open for a block of calls. Can be nested. The engine may stay open a little longer than the block."""
        ...

    def get(self, table: str, key: Key) -> Row | None:
        """Return one row by its primary key."""
        ...

    def edges(self, table: str, keys: Collection[Key]) -> dict[Key, Row]:
        """Return those of these edges that exist, by key."""
        ...

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return (table, key, row) of every edge at a memory, in both directions."""
        ...

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return at most `limit` keys of nodes with an edge of this table to the target, in no particular order."""
        ...

    def held(self, table: str, source: str, moment: int | str | None) -> list[Row]:
        """Return the nodes to which a node has edges of this table and that held at a moment, in no particular order.

        They have the columns `seq` and `closed_seq` (events), `created_at` and `closed_at` (times): each holds from the first until just
        before the second.

        Parameters
        ----------
        moment : int, str or None
            The number of an event, a canonical time, or None: now.
        """
        ...

    def links_of(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return (table, key, row) of every edge between this memory and another, in both directions."""
        ...

    def scan(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table, in no particular order."""
        ...

    def records(self) -> Iterable[tuple[str, str]]:
        """Return the ids of all memories and their rows as JSON text, in a third of the time that `scan` takes."""
        ...

    def scan_columns(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table as a query sees them, for verification against `columns`."""
        ...

    def columns(self, table: str, row: Row) -> Row:
        """Return a row as a query should see it."""
        ...

    def lost(self) -> list[str]:
        """Compare, at low cost, what is stored with what was written; return a description of each difference."""
        ...

    def count_rows(self) -> int:
        """Return the number of rows in all tables, as counted when they were written."""
        ...

    def size_bytes(self) -> int:
        """Return how many bytes the engine takes on the disk."""
        ...

    def apply(self, changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        """Write the changes and replace the projection's state row, in one transaction."""
        ...

    def state(self) -> Row | None:
        """Return the projection's state row; None if the engine was never written."""
        ...

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace all rows and the state with these."""
        ...

    def cypher(
        self, query: str, params: Mapping[str, Any], *, gives_way: Callable[[], bool] | None = None
    ) -> Rows | Callable[[], Rows]:
        """Run a user's read-only query and return its rows; refuse anything else.

        A caller that can release the engine before the query is done passes `gives_way`, which returns whether a thread waits for
        the engine. A long query may then return a function instead of rows. Called after the release, that function runs the query
        on the data that the engine held when the query was made.
        """
        ...

    def release(self) -> None:
        """Release the underlying files for other processes; the next call acquires them again."""
        ...

    def close(self) -> None:
        """Close the underlying files for good."""
        ...
