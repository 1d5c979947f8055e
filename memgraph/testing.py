"""Public fakes for memgraph's ports: deterministic, offline and quick, for tests of code that uses memgraph.

Each fake records its inputs in `calls`, so that a test can check whether, how often, and with what it was called.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar

import numpy as np
import orjson
from numpy.typing import ArrayLike, NDArray

from memgraph.errors import ClosedError, GraphError, InvalidInputError, QueryError
from memgraph.model.build import BuildEventLog, ExtractionResult
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import AgentMemory
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Annotation, Change, Key, Progress, Row, SigningKey

__all__ = [
    "FakeAnnotator",
    "FakeClock",
    "FakeEmbedder",
    "FakeExtractor",
    "FakeKeys",
    "FakeLanguageModel",
    "InMemoryEngine",
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


class InMemoryEngine:
    """Stores the graph's rows in dictionaries. A `GraphEngine` without a query language and without a file.

    Pass one as the `engine` of an `AgentMemoryStore`, which fills it from the journal: a new one each time a store is opened.
    """

    def __init__(self) -> None:
        self.calls: list[list[Change]] = []
        self.generation = self._depth = 0
        self._rows: dict[tuple[str, Key], Row] = {}
        self._state: Row | None = None
        self.is_held = self._is_closed = False

    def acquire_if_free(self) -> bool:
        """Return True: no other process has it."""
        return True

    @contextmanager
    def open(self) -> Iterator[InMemoryEngine]:
        """Hold the engine for a block of calls; nests."""
        if self._is_closed and not self.is_held:
            raise ClosedError("the engine is closed; create another")
        self.generation += not self.is_held
        self.is_held = True
        self._depth += 1
        try:
            yield self
        finally:
            self._depth -= 1

    def get(self, table: str, key: Key) -> Row | None:
        """Return one row by its primary key (an edge: by its ends)."""
        with self.open():
            return deepcopy(self._rows.get((table, key)))

    def edges(self, table: str, keys: Collection[Key]) -> dict[Key, Row]:
        """Return those of these edges that exist."""
        return {key: row for key in keys if (row := self.get(table, key)) is not None}

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every edge of a memory, in both directions."""
        with self.open():
            return [
                (t, k, deepcopy(row)) for (t, k), row in self._rows.items() if isinstance(k, tuple) and memory_id in k
            ]

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return up to a number of nodes that have an edge of a table to this one."""
        with self.open():
            found = [
                key[0] for name, key in self._rows if name == table and isinstance(key, tuple) and key[1] == target
            ]
            return found[:limit]

    def held(self, table: str, source: str, moment: int | str | None) -> list[Row]:
        """Return the nodes to which a node has edges of this table and that held at a moment."""
        with self.open():
            ends = {key[1] for name, key in self._rows if name == table and isinstance(key, tuple) and key[0] == source}
            rows = [row for (_, key), row in self._rows.items() if key in ends]
        since, until = ("created_at", "closed_at") if isinstance(moment, str) else ("seq", "closed_seq")
        if moment is None:
            return [deepcopy(row) for row in rows if until not in row]
        return [deepcopy(row) for row in rows if row[since] <= moment and not (until in row and row[until] <= moment)]

    def links_of(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every link of this memory to others, NEXT included, in both directions."""
        return [edge for edge in self.edges_at(memory_id) if edge[0] in {*EXPLICIT_RELATIONS, "NEXT"}]

    def scan(self, table: str) -> Iterator[tuple[Key, Row]]:
        """Iterate over all rows of a table."""
        with self.open():
            yield from [(key, deepcopy(row)) for (name, key), row in self._rows.items() if name == table]

    scan_columns = scan

    def columns(self, table: str, row: Row) -> Row:  # noqa: ARG002
        """Return the columns that `scan_columns` reads of a row: all of them."""
        return row

    def lost(self) -> list[str]:
        """Return the deviations from what was written: always none."""
        return []

    def count_rows(self) -> int:
        """Return the number of rows in all tables."""
        return len(self._rows)

    def size_bytes(self) -> int:
        """Return 0: it uses no disk space."""
        return 0

    def records(self) -> list[tuple[str, str]]:
        """Return the ids of all memories and their rows as JSON text."""
        return [(str(key), orjson.dumps(row).decode()) for key, row in self.scan("Memory")]

    def state(self) -> Row | None:
        """Return the projection's state row; None before the first write."""
        with self.open():
            return deepcopy(self._state)

    def apply(self, changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        """Write the changes and the state atomically; changes that do not fit the rows raise a `GraphError`."""
        self._write(dict(self._rows), changes, state)

    def rebuild(self, changes: Iterable[Change], state: Mapping[str, Any], *, progress: Progress | None = None) -> None:
        """Replace everything with these new rows and this state."""
        changes = list(changes)
        self._write({}, changes, state)
        if progress:
            progress(len(changes), len(changes))

    def cypher(
        self,
        query: str,  # noqa: ARG002
        params: Mapping[str, Any],  # noqa: ARG002
        *,
        gives_way: Callable[[], bool] | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Raise an error: dictionaries have no query language."""
        raise QueryError("the in-memory engine runs no Cypher; test queries against the real graph")

    def release(self) -> None:
        """Release it, unless an outer block holds it; the next call acquires it again."""
        self.is_held = self._depth > 0

    def close(self) -> None:
        """Close it permanently and drop its rows."""
        self.release()
        self._is_closed = True

    def _write(self, rows: dict[tuple[str, Key], Row], changes: Sequence[Change], state: Mapping[str, Any]) -> None:
        self.calls.append(list(changes))
        with self.open():
            for change in changes:
                place = (change.table, change.key)
                if (place in rows) != (change.old is not None):
                    raise GraphError(f"{place} is {'there already' if place in rows else 'not there'}")
                rows.pop(place, None)
                if change.new is not None:
                    rows[place] = deepcopy(change.new)
            nodes = {key for _, key in rows}
            if lacking := [end for _, key in rows if isinstance(key, tuple) for end in key if end not in nodes]:
                raise GraphError(f"an edge has no node {lacking[0]} at its end")
            self._rows, self._state = rows, deepcopy(dict(state))
