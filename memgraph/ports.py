"""Protocols for the parts that can be replaced. Each has a public fake in `memgraph.testing` and one contract test for all implementations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memgraph.model.build import BuildEventLog, ExtractionResult
from memgraph.model.memory import AgentMemory, Entity
from memgraph.model.model_usage import UsageMeter

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


Judgement = Literal["contradicts", "replaces", "compatible", "unsure"]
"""What two statements are to each other: not both true; the later is what the earlier became; both true; or nobody can tell."""


@runtime_checkable
class Judge(Protocol):
    """Judges whether two statements of one project exclude each other; or raises a `ProviderError`."""

    def judge(self, one: str, other: str) -> Judgement:
        """Return what they are to each other; `other` was stated later."""
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
