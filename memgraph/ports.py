"""Protocols at memgraph's seams. Each has a public fake in `memgraph.testing` and one contract test for all its kinds."""

from __future__ import annotations

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
"""Told (done, total or None) during long work."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors, or fails with an `EmbeddingError`.

    Attributes
    ----------
    name : str
        Names the model; vectors of different names are never compared.
    dimension : int
        Length of its vectors; 0 if it makes none, on purpose: then every text is refused.
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
        """Return what it proposes to remember, most salient first."""
        ...


@dataclass(frozen=True, slots=True)
class Annotation:
    """What an annotator found in a memory: `tags` are used only where none were given."""

    entities: tuple[Entity, ...] = ()
    tags: tuple[str, ...] = ()
    failure_fingerprint: str | None = None


@runtime_checkable
class Annotator(Protocol):
    """Finds entities, tags and a failure fingerprint in a memory. Deterministic."""

    def annotate(self, memory: AgentMemory) -> Annotation:
        """Return what it found."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """Counts the tokens that a text takes in a prompt."""

    def __call__(self, text: str) -> int:
        """Return the number of tokens."""
        ...


@runtime_checkable
class LanguageModel(Protocol):
    """Completes a conversation, as JSON that fits `schema` where one is given; or fails with a `ProviderError`."""

    def complete(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> str:
        """Return the reply's text."""
        ...


class ModelReply(NamedTuple):
    """A reply, and the tokens that the model read and wrote; None: it did not say."""

    text: str
    prompt_tokens: int | None
    completion_tokens: int | None


@runtime_checkable
class CountingLanguageModel(LanguageModel, Protocol):
    """A language model that knows what a reply cost."""

    def reply(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> ModelReply:
        """Return the reply with its tokens."""
        ...


@runtime_checkable
class Metered(Protocol):
    """An embedder or extractor that asks models' servers and counts that."""

    @property
    def meter(self) -> UsageMeter:
        """The counts of this run; several may share one."""
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
    """Knows the key that a store's journal is signed with."""

    def key(self, store_id: str) -> SigningKey | None:
        """Return the store's key, or None if there is none."""
        ...

    def create(self, store_id: str) -> SigningKey:
        """Return a key for a store whose journal is still empty, making one if need be."""
        ...


Key = str | tuple[str, str]
Row = dict[str, Any]
"""A row holds only what is set: neither None nor empty lists. Times are canonical strings."""


class Change(NamedTuple):
    """One changed row: `old` None means it is new, `new` None that it goes. An edge's key is (source, target)."""

    table: str
    key: Key
    old: Row | None
    new: Row | None


class GraphEngine(Protocol):
    """Keeps rows of nodes and edges, all or nothing per call. Every engine error arrives as a `GraphError`.

    What it reads is what was written, or a `GraphError`: memories' rows and its state carry codes that are checked.
    """

    @property
    def generation(self) -> int:
        """Counts how often the engine was taken: between equal numbers no other process has had it."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether this process has it now."""
        ...

    def open(self) -> AbstractContextManager[Any]:
        """Hold the engine open for a block of calls; nests; what holds it may keep it open a little longer."""
        ...

    def get(self, table: str, key: Key) -> Row | None:
        """Return one row by its primary key."""
        ...

    def edges(self, table: str, keys: Collection[Key]) -> dict[Key, Row]:
        """Return those of these edges that are there, by key: for many at once."""
        ...

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return (table, key, row) of every edge at a memory, both ways."""
        ...

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return at most `limit` keys of nodes that have an edge of a table to this one, in no particular order."""
        ...

    def links_of(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return (table, key, row) of every edge between memories at this one, both ways."""
        ...

    def scan(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table, in no particular order."""
        ...

    def records(self) -> Iterable[tuple[str, str]]:
        """Return the ids of all memories and their rows as JSON text: in a third of the time that `scan` takes."""
        ...

    def scan_columns(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over what a query sees of all rows of a table, for verification; `columns` says what it should be."""
        ...

    def columns(self, table: str, row: Row) -> Row:
        """Return what a query should see of a row."""
        ...

    def lost(self) -> list[str]:
        """Compare what is stored with what was written, cheaply, and return in words what differs; empty: nothing."""
        ...

    def count_rows(self) -> int:
        """Return how many rows all tables have, as far as was written."""
        ...

    def size_bytes(self) -> int:
        """Return how much room it takes on the disk."""
        ...

    def apply(self, changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        """Write the changes and replace the projection's state row, in one transaction."""
        ...

    def state(self) -> Row | None:
        """Return the projection's state row; None for an engine that was never written."""
        ...

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace everything with these new rows and this state."""
        ...

    def cypher(
        self, query: str, params: Mapping[str, Any], *, gives_way: Callable[[], bool] | None = None
    ) -> Rows | Callable[[], Rows]:
        """Run a reading query from outside and return its rows; anything else is refused.

        A caller that can release the engine before the query is done passes `gives_way`, which tells whether a thread waits for the
        engine. A long query may then return a function instead of rows: called after the release, it runs the query on what the
        engine held when it was asked.
        """
        ...

    def release(self) -> None:
        """Give the underlying files up for other processes; the next call takes them again."""
        ...

    def close(self) -> None:
        """Give the underlying files up for good."""
        ...
