"""Finds the rows of the vector files that differ from what the events named. Only this module decides that."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import orjson

from memgraph.errors import StorageError
from memgraph.journal.segments import Line
from memgraph.journal.vectors.vector_file import VectorFile, vectors_named
from memgraph.model.events.memories import VectorsLost
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import EmbeddingSwitched, MemoryPurged
from memgraph.ports import Progress

_STEP = 1_000
"""Number of rows after which progress is reported."""


class DamagedRow(NamedTuple):
    """A row whose SHA-256 is not the one that an event named. `memory_id` is the last memory it was named for."""

    model: str
    row: int
    memory_id: str
    sha256: str
    problem: str


class _FileOf(Protocol):
    def __call__(self, model: str, dimension: int) -> VectorFile: ...


class NamedRows:
    """The expected content of each row of each vector file, by the events so far, except rows recorded as lost."""

    def __init__(self) -> None:
        self._dimensions: dict[str, int] = {}
        self._named: dict[str, dict[int, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
        self._lost: dict[str, set[int]] = defaultdict(set)

    @classmethod
    def of_lines(cls, lines: Iterable[Line]) -> NamedRows:
        """Collect the rows that a journal's lines name. The lines were verified before.

        Payloads are not validated again, because that takes ten times as long.
        """
        named = cls()
        for line in lines:
            event = orjson.loads(line.data)
            type_, content = event["head"]["type"], event["payload"] or {}
            if type_ == EmbeddingSwitched.TYPE:
                named._dimensions[content["model"]] = content["dimension"]
            elif type_ == VectorsLost.TYPE:
                named._lost[content["model"]].update(content["rows"])
            elif type_ == MemoryPurged.TYPE:
                named._purge((one["model"], one["rows"]) for one in content.get("vectors", ()))
            else:
                named._name(_vectors_in(content))
        return named

    def take(self, payload: Payload) -> None:
        """Add the rows of the next event."""
        if isinstance(payload, EmbeddingSwitched):
            self._dimensions[payload.model] = payload.dimension
        elif isinstance(payload, VectorsLost):
            self._lost[payload.model].update(payload.rows)
        elif isinstance(payload, MemoryPurged):
            self._purge((one.model, one.rows) for one in payload.vectors)
        else:
            self._name((memory_id, one.model, one.row, one.sha256) for memory_id, one in vectors_named(payload))

    def __len__(self) -> int:
        """Return the number of expected rows."""
        return sum(len(rows.keys() - self._lost[model]) for model, rows in self._named.items())

    def has(self, model: str, row: int, memory_id: str, sha256: str | None) -> bool:
        """Return whether an event has named this row for a memory."""
        return (memory_id, sha256) in self._named.get(model, {}).get(row, ())

    def is_used(self, model: str, row: int) -> bool:
        """Return whether an event named a row last, so that it is expected to hold a vector."""
        return row in self._named.get(model, {}) and row not in self._lost[model]

    def damaged(self, file_of: _FileOf, progress: Progress | None = None) -> Iterator[DamagedRow]:
        """Compare each row with its SHA-256, in the files' order: 600,000 rows of 384 components per second.

        Parameters
        ----------
        file_of : callable
            Returns a model's file, given its name and dimension.

        Raises
        ------
        StorageError
            A file exists and cannot be read.
        """
        done, total = 0, len(self)
        for model, rows in self._named.items():
            file = file_of(model, self._dimensions.get(model, 0))
            wanted = sorted(rows.keys() - self._lost[model])
            for row, data in _read(file, wanted):
                sha256 = hashlib.sha256(data).hexdigest()
                differing = [named for named in rows[row] if named[1] != sha256]
                if differing:
                    yield DamagedRow(model, row, *differing[-1], _problem(data, file.row_bytes))
                done += 1
                if progress and done % _STEP == 0:
                    progress(done, total)

    def _purge(self, vectors: Iterable[tuple[str, Sequence[int]]]) -> None:
        for model, rows in vectors:
            self._lost[model].update(rows)

    def _name(self, vectors: Iterable[tuple[str, str, int, str]]) -> None:
        for memory_id, model, row, sha256 in vectors:
            self._named[model][row].append((memory_id, sha256))
            self._lost[model].discard(row)


def holds(file: VectorFile, row: int, sha256: str) -> bool:
    """Return whether a row has the SHA-256 that an event named."""
    return hashlib.sha256(file.stored(row)).hexdigest() == sha256


def _vectors_in(content: Mapping[str, Any]) -> list[tuple[str, str, int, str]]:
    """Return (memory id, model, row, SHA-256) for each vector that a payload names, as the journal holds it."""
    if "vectors" in content:
        return [(one["id"], content["model"], one["row"], one["sha256"]) for one in content["vectors"]]
    if "vector" not in content:
        return []
    memory_id, vector = content.get("memory", content)["id"], content["vector"]
    return [(memory_id, vector["model"], vector["row"], vector["sha256"])]


def _read(file: VectorFile, rows: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Yield rows with their bytes: fewer if the file ends early, none if it is missing."""
    try:
        with file.path.open("rb", buffering=1 << 20) as stream:
            for row in rows:
                if stream.tell() != row * file.row_bytes:
                    stream.seek(row * file.row_bytes)
                yield row, stream.read(file.row_bytes)
    except FileNotFoundError:
        yield from ((row, b"") for row in rows)
    except OSError as error:
        raise StorageError(f"vectors cannot be read: {error.strerror}", path=file.path) from None


def _problem(data: bytes, row_bytes: int) -> str:
    if len(data) < row_bytes:
        return "missing"
    values = np.frombuffer(data, dtype="<f4")
    if not values.any():
        return "all zeros"
    return "differs" if np.isfinite(values).all() else "not finite"
