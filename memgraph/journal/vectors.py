"""Vectors: float32 rows in the database, by model and place; the arrays that are searched are a cache of them, in a file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from memgraph.disk.files import make_private_folder, write_all, write_private
from memgraph.disk.seal import Seal
from memgraph.errors import MemGraphError, StorageError
from memgraph.journal.envelope import Line
from memgraph.journal.sql import Database
from memgraph.logs import logger_of
from memgraph.model.events.memories import MemoryReembedded, VectorRef, VectorsLost
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import EmbeddingSwitched, MemoryPurged
from memgraph.model.memory import Vector
from memgraph.ports import Progress

logger = logger_of(__name__)

Matrix = NDArray[np.float32]
_STEP = 1_000
"""Number of rows after which progress is reported."""
_TIMEOUT_S = 10.0
_ROOM_ROWS = 256


@dataclass(frozen=True, slots=True)
class NamedVectors:
    """What the events so far state about vectors."""

    model: str | None = None
    """The store's embedding model; None until the first vector."""
    dimension: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    """Number of rows in use by model, which is the row of the next vector."""
    dimensions: dict[str, int] = field(default_factory=dict)
    """Dimensions of the store's earlier models."""

    def after(self, payload: Payload) -> NamedVectors:
        """Return the state after one more event."""
        if isinstance(payload, EmbeddingSwitched):
            before = {} if self.model is None else {self.model: self.dimension}
            return NamedVectors(payload.model, payload.dimension, self.rows, {**self.dimensions, **before})
        named = vectors_named(payload)
        if not named:
            return self
        rows = dict(self.rows)
        for _, vector in named:
            rows[vector.model] = max(rows.get(vector.model, 0), vector.row + 1)
        return replace(self, rows=rows)

    def dimension_of(self, model: str) -> int | None:
        """Return the dimension of a model that is, or was, the store's; else None."""
        return self.dimension if model == self.model else self.dimensions.get(model)


class Vectors:
    """The rows of one model: little-endian float32 in the database, and a memory map of them under ``cache/``, with room for more.

    A missing row counts as damaged, and is all zeros in the map. `epoch` is incremented if rows that `rows` returned before may have changed.
    """

    def __init__(
        self, database: Database, folder: Path, model: str, dimension: int, seal: Callable[[str], Seal]
    ) -> None:
        self._database = database
        self.model = model
        self.dimension = dimension
        self.path = folder / f"{file_name(model)}.f32"
        self._seal = seal
        self._map: Matrix = np.empty((0, dimension), dtype=np.float32)
        self._count = 0
        self._file_id = (0, 0)
        self._in_file = 0  # rows of the map that the file holds
        self._sealed = 0
        self.epoch = 0

    @property
    def row_bytes(self) -> int:
        """Size of a row in bytes."""
        return 4 * self.dimension

    def write(self, first_row: int, vectors: Matrix) -> list[str]:
        """Write rows of shape (n, dimension) from `first_row`, in the transaction that is open, and return the SHA-256 of each."""
        data = np.ascontiguousarray(vectors, dtype="<f4")
        self.restore(dict(enumerate(data, start=first_row)))
        return [row_sha256(row) for row in data]

    def restore(self, vectors: Mapping[int, Vector]) -> None:
        """Write rows, given by number. A cache that has one of them, from a history that was given up, goes."""
        if vectors and min(vectors) < max(self._count, self._stated()[0]):
            self.forget()
        with self._database.writing(_TIMEOUT_S) as tx:
            values = (
                (self._database.tenant, self.model, row, np.ascontiguousarray(vector, dtype="<f4").tobytes())
                for row, vector in vectors.items()
            )
            tx.many("put_vector", values)

    def remove(self, rows: Iterable[int]) -> None:
        """Remove rows, and the cache, which holds them too."""
        with self._database.writing(_TIMEOUT_S) as tx:
            tx.many("remove_vector", ((self._database.tenant, self.model, row) for row in rows))
        self.forget()

    def stored(self, row: int) -> bytes:
        """Return a row's bytes as they are stored; none if it is missing."""
        with self._database.reading() as tx:
            found = tx.one("vector", self._database.tenant, self.model, row)
        return _bytes(found[0]) if found else b""

    def holds(self, row: int, sha256: str) -> bool:
        """Return whether a row has the SHA-256 that an event named."""
        return hashlib.sha256(self.stored(row)).hexdigest() == sha256

    def rows(self, count: int) -> Matrix:
        """Return the first `count` rows as a read-only memory map of shape (count, dimension), float32; costs the rows added since the last call."""
        found = self._stat()
        file_id = (found.st_dev, found.st_ino) if found else (0, 0)
        if file_id != self._file_id or (found is not None and found.st_size < self._in_file * self.row_bytes):
            if self._count:
                self.epoch += 1
            self._map = self._trusted()
            self._count = self._in_file = len(self._map)
            self._file_id = file_id
        if self._count < count:
            self._extend(count)
        return self._map[:count]

    def blocks(self, first: int, end: int) -> Iterator[bytes]:
        """Iterate over the bytes of rows, as they are stored, a row at a time; missing ones are zeros."""
        for start in range(first, end, _STEP):
            stop = min(end, start + _STEP)
            with self._database.reading() as tx:
                found = dict(tx.rows("vectors_from", self._database.tenant, self.model, start, stop))
            yield from (_bytes(found.get(row)).ljust(self.row_bytes, b"\0") for row in range(start, stop))

    def save(self) -> None:
        """State how much of the cache may be trusted at the next opening: what is still in the table. Only saves time, so a failure is logged."""
        first, count = self._sealed, self._count
        if count in (first, 0) or count != self._in_file:
            return
        try:
            if (self._map[first:count].view(np.uint32) != self._read(first, count).view(np.uint32)).any():
                self.forget()
                return
            code = self._seal(self._purpose).code(np.ascontiguousarray(self._map[:count]).data.cast("B"))
            write_private(self._note, orjson.dumps({"rows": count, "code": code}))
            self._sealed = count
        except MemGraphError as error:
            logger.warning("%s", error.loggable)

    def forget(self) -> None:
        """Remove the cache: it may hold rows that were removed."""
        for path in (self._note, self.path):
            with suppress(FileNotFoundError):
                path.unlink()
        self._map, self._count, self._in_file, self._sealed = self._mapped(0), 0, 0, 0
        self.epoch += 1

    @property
    def _note(self) -> Path:
        return self.path.with_suffix(".json")

    @property
    def _purpose(self) -> str:
        return f"vectors\x1f{self.model}\x1f{self.dimension}"

    def _stat(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except OSError:
            return None

    def _stated(self) -> tuple[int, str]:
        """Return for how many rows of the cache there is a code, and the code."""
        try:
            stated = orjson.loads(self._note.read_bytes())
            return int(stated["rows"]), str(stated["code"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0, ""

    def _trusted(self) -> Matrix:
        """Return the rows of the cache for which its code vouches."""
        self._sealed = 0
        count, code = self._stated()
        try:
            rows = self._mapped(count)
            if count and self._seal(self._purpose).fits(code, rows.data.cast("B")):
                self._sealed = count
                return rows
        except (OSError, ValueError):
            pass
        return self._mapped(0)

    def _mapped(self, count: int, file: IO[bytes] | None = None) -> Matrix:
        if not count:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.asarray(np.memmap(file or self.path, dtype="<f4", mode="r", shape=(count, self.dimension)))

    def _extend(self, count: int) -> None:
        with suppress(StorageError):
            make_private_folder(self.path.parent)
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # two that make room must not shorten it for each other
                found = os.fstat(descriptor)
                file_id = (found.st_dev, found.st_ino)
                if self._count and file_id != self._file_id:  # removed since it was looked at
                    self._map, self._count, self._in_file, self._sealed = self._mapped(0), 0, 0, 0
                    self.epoch += 1
                first = min(self._count, self._in_file)
                os.lseek(descriptor, first * self.row_bytes, os.SEEK_SET)
                write_all(descriptor, self._read(first, count).tobytes())
                room = found.st_size // self.row_bytes
                if room < count:
                    room = count + max(_ROOM_ROWS, count // 4)
                    os.ftruncate(descriptor, room * self.row_bytes)
                if len(self._map) < count or first < self._count:
                    with os.fdopen(descriptor, "rb", closefd=False) as file:  # the path may lead to another file by now
                        self._map = self._mapped(room, file)
                self._file_id, self._in_file = file_id, count
            finally:
                with suppress(OSError):
                    fcntl.flock(descriptor, fcntl.LOCK_UN)  # the map has the file open and would keep the lock
                os.close(descriptor)
        except OSError:  # the cache cannot be written: the rows stay in memory
            self._map = np.concatenate([self._map[: self._count], self._read(self._count, count)])
        self._count = count

    def _read(self, first: int, end: int) -> Matrix:
        """Return rows of the table; a missing one, or one of another size, is zeros."""
        fresh = np.zeros((end - first, self.dimension), dtype="<f4")
        with self._database.reading() as tx:
            for place, value in tx.rows("vectors_from", self._database.tenant, self.model, first, end):
                if len(_bytes(value)) == self.row_bytes:
                    fresh[place - first] = np.frombuffer(value, dtype="<f4")
        return fresh


def _bytes(value: object) -> bytes:
    """Return a stored vector; nothing if the row holds something else."""
    return value if isinstance(value, bytes) else b""


class MadeRow(NamedTuple):
    """A row that no event names yet: its memory, the HMAC of the text, and the location of the vector."""

    memory_id: str
    text: str
    row: int
    sha256: str


class MadeVectors:
    """Vectors of a model that the store is about to change to, before an event names them, from `first_row` on; a later run resumes."""

    def __init__(self, database: Database, vectors: Vectors, first_row: int) -> None:
        self._database = database
        self._vectors = vectors
        with database.reading() as tx:
            found = [MadeRow(*row) for row in tx.rows("made_vectors", database.tenant, vectors.model)]
        self._rows = {
            row.memory_id: row
            for row in found
            if isinstance(row.row, int) and row.row >= first_row and vectors.holds(row.row, row.sha256)
        }
        self._next_row = max([first_row - 1, *(row.row for row in self._rows.values())]) + 1

    def row(self, memory_id: str, text: str) -> MadeRow | None:
        """Return the row computed for a memory's text, which is given as its HMAC; None if there is none for this text."""
        made = self._rows.get(memory_id)
        return made if made is not None and made.text == text else None

    def add(self, texts: Sequence[tuple[str, str]], vectors: Matrix) -> None:
        """Store vectors of shape (n, dimension), each with its memory's id and the HMAC of its text. They are durable when the call returns."""
        with self._database.writing(_TIMEOUT_S) as tx:
            hashes = self._vectors.write(self._next_row, vectors)
            rows = [
                MadeRow(memory_id, text, row, sha256)
                for row, ((memory_id, text), sha256) in enumerate(zip(texts, hashes, strict=True), self._next_row)
            ]
            tx.many("put_made_vector", ((self._database.tenant, self._vectors.model, *row) for row in rows))
        self._rows |= {row.memory_id: row for row in rows}
        self._next_row += len(rows)

    def forget(self) -> None:
        """Remove the list, because events name the rows now."""
        with self._database.writing(_TIMEOUT_S) as tx:
            tx.run("remove_made_vectors", self._database.tenant, self._vectors.model)


class DamagedRow(NamedTuple):
    """A row whose SHA-256 is not the one that an event named. `memory_id` is the last memory it was named for."""

    model: str
    row: int
    memory_id: str
    sha256: str
    problem: str


class NamedRows:
    """The expected content of each row of each model, by the events so far, except rows recorded as lost."""

    def __init__(self) -> None:
        self._dimensions: dict[str, int] = {}
        self._named: dict[str, dict[int, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
        self._lost: dict[str, set[int]] = defaultdict(set)

    @classmethod
    def of_lines(cls, lines: Iterable[Line]) -> NamedRows:
        """Collect the rows that a journal's lines name, which were verified before."""
        named = cls()
        for line in lines:
            named.take(line.type, orjson.loads(line.payload or b"{}"))
        return named

    def take(self, type_: str, content: Mapping[str, Any]) -> None:
        """Add the rows of the next event, by its payload as the journal holds it: validating it again would take ten times as long."""
        if type_ == EmbeddingSwitched.TYPE:
            self._dimensions[content["model"]] = content["dimension"]
        elif type_ == VectorsLost.TYPE:
            self._lost[content["model"]].update(content["rows"])
        elif type_ == MemoryPurged.TYPE:
            for one in content.get("vectors", ()):
                self._lost[one["model"]].update(one["rows"])
        else:
            for memory_id, model, row, sha256 in _vectors_in(content):
                self._named[model][row].append((memory_id, sha256))
                self._lost[model].discard(row)

    def __len__(self) -> int:
        return sum(len(rows.keys() - self._lost[model]) for model, rows in self._named.items())

    def has(self, model: str, row: int, memory_id: str, sha256: str | None) -> bool:
        """Return whether an event has named this row for a memory."""
        return (memory_id, sha256) in self._named.get(model, {}).get(row, ())

    def is_used(self, model: str, row: int) -> bool:
        """Return whether an event named a row last, so that it is expected to hold a vector."""
        return row in self._named.get(model, {}) and row not in self._lost[model]

    def damaged(
        self, vectors_of: Callable[[str, int], Vectors], progress: Progress | None = None
    ) -> Iterator[DamagedRow]:
        """Compare each row with its SHA-256, in order; `vectors_of` returns the vectors of a model, given its name and dimension."""
        done, total = 0, len(self)
        for model, rows in self._named.items():
            vectors = vectors_of(model, self._dimensions.get(model, 0))
            for row in sorted(rows.keys() - self._lost[model]):
                data = vectors.stored(row)
                sha256 = hashlib.sha256(data).hexdigest()
                differing = [named for named in rows[row] if named[1] != sha256]
                if differing:
                    yield DamagedRow(model, row, *differing[-1], _problem(data, vectors.row_bytes))
                done += 1
                if progress and done % _STEP == 0:
                    progress(done, total)


def vectors_named(payload: Payload) -> list[tuple[str, VectorRef]]:
    """Return (memory id, location of its vector) for each vector that an event names."""
    if isinstance(payload, MemoryReembedded):
        return [(one.id, VectorRef(model=payload.model, row=one.row, sha256=one.sha256)) for one in payload.vectors]
    vector = getattr(payload, "vector", None)
    return [] if vector is None else [(payload.memory_ids()[0], vector)]


def row_sha256(row: Vector) -> str:
    """Return the SHA-256 of a vector's little-endian bytes, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(row, dtype="<f4").tobytes()).hexdigest()


def _vectors_in(content: Mapping[str, Any]) -> list[tuple[str, str, int, str]]:
    """Return (memory id, model, row, SHA-256) for each vector that a payload names, as the journal holds it."""
    if "vectors" in content:
        return [(one["id"], content["model"], one["row"], one["sha256"]) for one in content["vectors"]]
    if "vector" not in content:
        return []
    memory_id, vector = content.get("memory", content)["id"], content["vector"]
    return [(memory_id, vector["model"], vector["row"], vector["sha256"])]


def _problem(data: bytes, row_bytes: int) -> str:
    if len(data) < row_bytes:
        return "missing"
    values = np.frombuffer(data, dtype="<f4")
    if not values.any():
        return "all zeros"
    return "differs" if np.isfinite(values).all() else "not finite"


def file_name(model: str) -> str:
    """Return a file name for a model's name; a digest keeps different models apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", model).lstrip(".")[:80]
    return plain if plain == model else f"{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
