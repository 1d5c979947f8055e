"""Public fakes for memgraph's ports: deterministic, offline and quick, for tests of code that uses memgraph.

Each fake records its inputs in `calls`, so that a test can check whether, how often, and with what it was called.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memgraph.errors import InvalidInputError
from memgraph.model.build import BuildEventLog, ExtractionResult
from memgraph.model.memory import AgentMemory
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Annotation, Judgement, SigningKey

__all__ = [
    "FakeAnnotator",
    "FakeClock",
    "FakeEmbedder",
    "FakeExtractor",
    "FakeJudge",
    "FakeKeys",
    "FakeLanguageModel",
]


_T = TypeVar("_T")

_WORD = re.compile(r"\w+")


class FakeEmbedder:
    """Embeds texts as bags of words: those that share words are similar. An `Embedder`.

    Every lower-cased word adds one to a component chosen by its hash; the sum is L2-normalised. So the cosine of two
    texts is positive if they share a word, higher the more they share, and zero if they share none, unless words
    collide in a component (a larger `dimension` makes this rarer). No word hashes to the first component, which texts
    without words have. Deterministic across processes and machines.

    Parameters
    ----------
    dimension : int, default 64
        Length of the vectors, at least 2.
    name : str, default "fake"
        The model's name; use another one to simulate another model.
    vectors : mapping of str to array_like, optional
        Vectors of particular texts, shape (dimension,), where a test needs an exact similarity. They are normalised to
        unit length.

    Raises
    ------
    InvalidInputError
        `dimension` is below 2, or one of `vectors` is zero, not finite, or of the wrong length.
    """

    def __init__(
        self, dimension: int = 64, name: str = "fake", *, vectors: Mapping[str, ArrayLike] | None = None
    ) -> None:
        if dimension < 2:
            raise InvalidInputError(problem="must be at least 2", field="dimension", value=dimension)
        self.name = name
        self.dimension = dimension
        self.calls: list[list[str]] = []
        self._vectors = {text: self._given(text, vector) for text, vector in (vectors or {}).items()}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, shape (n, dimension), float32, L2-normalised, in their order."""
        self.calls.append(list(texts))
        return np.array([self._vector(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, shape (dimension,), float32, L2-normalised: the same as for any text."""
        self.calls.append([text])
        return self._vector(text)

    def _vector(self, text: str) -> NDArray[np.float32]:
        if text in self._vectors:
            return self._vectors[text].copy()
        counts = np.zeros(self.dimension)
        for word in _WORD.findall(text.lower()):
            digest = hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
            counts[1 + int.from_bytes(digest, "big") % (self.dimension - 1)] += 1
        if not counts.any():
            counts[0] = 1
        return _unit(counts)

    def _given(self, text: str, vector: ArrayLike) -> NDArray[np.float32]:
        values = np.asarray(vector, dtype=np.float64)
        if values.shape != (self.dimension,) or not values.any() or not np.isfinite(values).all():
            raise InvalidInputError(
                f"must be {self.dimension} finite numbers, not all zero", field=f"vectors.{text}", value=vector
            )
        already_unit = abs(float(np.linalg.norm(values)) - 1.0) < 1e-6  # then kept bit for bit
        return values.astype(np.float32) if already_unit else _unit(values)


class FakeClock:
    """Returns the time that it is set to. A `Clock`.

    Parameters
    ----------
    start : str or datetime, default "2026-01-01T00:00:00.000Z"
        ISO 8601 or a datetime; UTC unless it has an offset. Kept to the millisecond, like all times in memgraph.

    Examples
    --------
    >>> clock = FakeClock()
    >>> clock.advance(days=1, seconds=30)
    >>> clock().isoformat()
    '2026-01-02T00:00:30+00:00'
    """

    def __init__(self, start: str | datetime = "2026-01-01T00:00:00.000Z") -> None:
        self.set(start)

    def __call__(self) -> datetime:
        """Return the time as an aware UTC datetime."""
        return self._now

    def set(self, moment: str | datetime) -> None:
        """Set the time, forwards or backwards. Raise `ValueError` for what is not a time."""
        self._now = from_iso(to_iso(moment))

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, milliseconds: float = 0
    ) -> None:
        """Advance the time by the sum of these units; negative ones move it back."""
        self.set(
            self._now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        )


class FakeExtractor:
    """Returns prepared results for build logs. An `Extractor`.

    Parameters
    ----------
    found : ExtractionResult, or sequence of mapping, or sequence of (ExtractionResult or Exception), optional
        One result for every call; or memories as mappings, combined into one result; or several results, used in turn,
        the last one from then on. An exception among them is raised at its turn. Default: no memories.
    """

    def __init__(
        self,
        found: ExtractionResult | Sequence[Mapping[str, Any]] | Sequence[ExtractionResult | Exception] = (),
    ) -> None:
        self.calls: list[BuildEventLog] = []
        self._results: list[ExtractionResult | Exception]
        if isinstance(found, ExtractionResult):
            self._results = [found]
        else:
            memories = [item for item in found if isinstance(item, Mapping)]
            results = [item for item in found if not isinstance(item, Mapping)]
            if memories and results:
                raise InvalidInputError(problem="give memories or results, not both", field="found", value=found)
            self._results = results or [ExtractionResult.from_memories(memories, extractor="fake")]

    def extract(self, build_log: BuildEventLog) -> ExtractionResult:
        """Return the next result, or raise the exception in its place."""
        self.calls.append(build_log)
        return _in_turn(self._results, len(self.calls))


class FakeAnnotator:
    """Returns the same annotation, an empty one by default, for every memory. An `Annotator`."""

    def __init__(self, annotation: Annotation | None = None) -> None:
        self.annotation = annotation or Annotation()
        self.calls: list[AgentMemory] = []

    def annotate(self, memory: AgentMemory) -> Annotation:
        """Return the annotation."""
        self.calls.append(memory)
        return self.annotation


class FakeJudge:
    """Says of every pair of statements what it was told to say. A `Judge`.

    Parameters
    ----------
    said : Judgement, or sequence of (Judgement or Exception), default "unsure"
        Used in turn, the last one from then on. An exception is raised at its turn.
    """

    def __init__(self, said: Judgement | Sequence[Judgement | Exception] = "unsure") -> None:
        self._said: list[Judgement | Exception] = [said] if isinstance(said, str) else list(said)
        self.calls: list[tuple[str, str]] = []

    def judge(self, one: str, other: str) -> Judgement:
        """Return the next judgement, or raise the exception in its place."""
        self.calls.append((one, other))
        return _in_turn(self._said, len(self.calls))


class FakeKeys:
    """Keeps signing keys in memory. A `KeyProvider` whose secrets are not secret.

    A store's key derives from its id, so equal runs produce equal signatures. Remove one from `created` to simulate its loss.
    """

    def __init__(self) -> None:
        self.created: dict[str, SigningKey] = {}
        self.calls: list[str] = []

    def key(self, store_id: str) -> SigningKey | None:
        """Return the store's key, or None if none was created."""
        self.calls.append(store_id)
        return self.created.get(store_id)

    def create(self, store_id: str) -> SigningKey:
        """Return the store's key (32 bytes), and create it if necessary."""
        self.calls.append(store_id)
        if store_id not in self.created:
            secret = hashlib.blake2b(store_id.encode(), digest_size=32, person=b"memgraph-fake").digest()
            self.created[store_id] = SigningKey(key_id=f"fake-{hashlib.sha256(secret).hexdigest()[:16]}", secret=secret)
        return self.created[store_id]


class FakeLanguageModel:
    """Returns prepared replies. A `LanguageModel`.

    Parameters
    ----------
    replies : str, or sequence of (str or Exception), default "{}"
        Used in turn, the last one from then on. An exception is raised at its turn.
    """

    def __init__(self, replies: str | Sequence[str | Exception] = "{}") -> None:
        self._replies: list[str | Exception] = [replies] if isinstance(replies, str) else list(replies)
        if not self._replies:
            raise InvalidInputError(problem="give at least one reply", field="replies", value=replies)
        self.calls: list[tuple[list[dict[str, str]], dict[str, Any] | None]] = []

    def complete(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> str:
        """Return the next reply, or raise the exception in its place."""
        self.calls.append(([dict(message) for message in messages], None if schema is None else dict(schema)))
        return _in_turn(self._replies, len(self.calls))


def _unit(values: NDArray[np.float64]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = (values / np.linalg.norm(values)).astype(np.float32)
    return unit


def _in_turn(items: Sequence[_T | Exception], call: int) -> _T:
    item = items[min(call, len(items)) - 1]
    if isinstance(item, Exception):
        raise item
    return item
