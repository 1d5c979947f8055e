"""Vector files: raw float32 rows beside the journal, appended and synced before the event that names them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memgraph.disk.files import make_private_folder, sync_data, sync_folder, write_all
from memgraph.errors import StorageError
from memgraph.model.events.memories import MemoryReembedded, VectorRef
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.model.memory import Vector


@dataclass(frozen=True, slots=True)
class NamedVectors:
    """What the events so far state about vectors.

    Attributes
    ----------
    model, dimension : str or None, int
        The store's embedding model; None until the first vector.
    rows : dict of str to int
        Number of rows in use by model, which is the row of the next vector.
    dimensions : dict of str to int
        Dimensions of the store's earlier models.
    """

    model: str | None = None
    dimension: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    dimensions: dict[str, int] = field(default_factory=dict)

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


class VectorFile:
    """``journal/vectors/<model>.f32``: rows of one model, each `dimension` little-endian float32 values.

    A new vector is written to the row after the last one that an event names, so it overwrites what a crash left behind. The
    file never shrinks. If something else has truncated it, the remaining rows are served, and a missing row becomes all zeros
    when a later row is written.

    Attributes
    ----------
    epoch : int
        Incremented by `rows` if rows that it returned before may have changed: the file was truncated or replaced.
    changed_at_ns : int
        When the file was last changed, as `rows` found it.
    """

    def __init__(self, folder: Path, model: str, dimension: int) -> None:
        self.model = model
        self.dimension = dimension
        self.path = folder / f"{_file_name(model)}.f32"
        self.epoch = 0
        self.changed_at_ns = 0
        self._file_id = (0, 0)
        self._mapped: NDArray[np.float32] = np.empty((0, dimension), dtype=np.float32)

    @property
    def row_bytes(self) -> int:
        """Size of a row in bytes."""
        return 4 * self.dimension

    def write(self, first_row: int, vectors: NDArray[np.float32]) -> list[str]:
        """Write and sync rows from `first_row`, and return the SHA-256 of each.

        Parameters
        ----------
        vectors : ndarray, shape (n, dimension), float32
        """
        data = np.ascontiguousarray(vectors, dtype="<f4")
        with self._writing() as descriptor:
            self._extend(descriptor, first_row)
            os.lseek(descriptor, first_row * self.row_bytes, os.SEEK_SET)
            write_all(descriptor, data.tobytes())
        return [row_sha256(row) for row in data]

    def restore(self, vectors: Mapping[int, Vector], *, row_count: int) -> None:
        """Rewrite and sync rows, given by number. Missing rows below `row_count` become all zeros."""
        with self._writing() as descriptor:
            self._extend(descriptor, row_count)
            for row, vector in vectors.items():
                os.lseek(descriptor, row * self.row_bytes, os.SEEK_SET)
                write_all(descriptor, np.ascontiguousarray(vector, dtype="<f4").tobytes())

    def available(self) -> int:
        """Return the number of whole rows in the file.

        Raises
        ------
        StorageError
            The system does not report it.
        """
        found = self._stat()
        return found.st_size // self.row_bytes if found else 0

    def rows(self, count: int) -> NDArray[np.float32]:
        """Return the first `count` rows, or as many as the file has, as a read-only memory map of shape (n, dimension), float32.

        Raises
        ------
        StorageError
            The file exists and cannot be read.
        """
        found = self._stat()
        available = found.st_size // self.row_bytes if found else 0
        file_id = (found.st_dev, found.st_ino) if found else (0, 0)
        if len(self._mapped) and (file_id != self._file_id or available < len(self._mapped)):
            self._mapped = np.empty((0, self.dimension), dtype=np.float32)
            self.epoch += 1
        if len(self._mapped) < min(count, available):
            try:
                self._mapped = np.memmap(self.path, dtype="<f4", mode="r", shape=(available, self.dimension))
            except OSError as error:
                raise self._unreadable(error) from None
        self._file_id = file_id
        self.changed_at_ns = found.st_mtime_ns if found else 0
        return self._mapped[:count]

    def stored(self, row: int) -> bytes:
        """Return a row's bytes as they are stored; fewer if the file ends early.

        Raises
        ------
        StorageError
            The file exists and cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(row * self.row_bytes)
                return file.read(self.row_bytes)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._unreadable(error) from None

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """Open the file for a block of writes, and sync them at its end."""
        try:
            make_private_folder(self.path.parent)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                is_new = os.fstat(descriptor).st_size == 0
                yield descriptor
                sync_data(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                sync_folder(self.path.parent)
        except OSError as error:
            raise StorageError(
                f"nothing was recorded: {error.strerror}; free some disk space and try again", path=self.path
            ) from None

    def _extend(self, descriptor: int, row_count: int) -> None:
        """Extend the file to `row_count` rows. Missing rows and a truncated row become zeros, which no valid vector is."""
        size, needed = os.fstat(descriptor).st_size, row_count * self.row_bytes
        if size < needed:
            if torn := size % self.row_bytes:
                os.lseek(descriptor, size - torn, os.SEEK_SET)
                write_all(descriptor, bytes(torn))
            os.ftruncate(descriptor, needed)

    def _stat(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> StorageError:
        return StorageError(f"vectors cannot be read: {error.strerror}", path=self.path)


def vectors_named(payload: Payload) -> list[tuple[str, VectorRef]]:
    """Return (memory id, location of its vector) for each vector that an event names."""
    if isinstance(payload, MemoryReembedded):
        return [(one.id, VectorRef(model=payload.model, row=one.row, sha256=one.sha256)) for one in payload.vectors]
    vector = getattr(payload, "vector", None)
    return [] if vector is None else [(payload.memory_ids()[0], vector)]


def row_sha256(row: Vector) -> str:
    """Return the SHA-256 of a vector's little-endian bytes, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(row, dtype="<f4").tobytes()).hexdigest()


def _file_name(model: str) -> str:
    """Return a file name for a model's name; a digest keeps different models apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", model).lstrip(".")[:80]
    return plain if plain == model else f"{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
