"""Vector files: raw float32 rows beside the journal, appended and synced before the event that names them."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import StorageError, VectorDamageError
from memgraph.journal.files import make_private_folder, sync_data, write_all
from memgraph.model.events import EmbeddingSwitched, VectorRef
from memgraph.model.memory import Vector
from memgraph.model.payload import Payload
from memgraph.model.reembedding import MemoryReembedded


@dataclass(frozen=True, slots=True)
class NamedVectors:
    """What the events so far say of vectors.

    Attributes
    ----------
    model, dimension : str or None, int
        What makes them; None until the first.
    rows : dict of str to int
        Rows that are taken, by model: the next vector goes there.
    dimensions : dict of str to int
        Of the models that were the store's before.
    """

    model: str | None = None
    dimension: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    dimensions: dict[str, int] = field(default_factory=dict)

    def after(self, payload: Payload) -> NamedVectors:
        """Return what is said after one more event."""
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
        """Return the length of a model's vectors if it is, or was, the store's."""
        return self.dimension if model == self.model else self.dimensions.get(model)


class VectorFile:
    """``journal/vectors/<model>.f32``: rows of one model, each `dimension` little-endian float32 values.

    A new vector goes to the row after the last one that an event names, so what a crash left behind is overwritten. The
    file never shrinks.
    """

    def __init__(self, folder: Path, model: str, dimension: int) -> None:
        self.model = model
        self.dimension = dimension
        self.path = folder / f"{_file_name(model)}.f32"
        self._mapped: NDArray[np.float32] = np.empty((0, dimension), dtype=np.float32)

    @property
    def row_bytes(self) -> int:
        """Size of a row."""
        return 4 * self.dimension

    def write(self, first_row: int, vectors: NDArray[np.float32]) -> list[str]:
        """Write rows from `first_row` on, sync them, and return the SHA-256 of each.

        Parameters
        ----------
        vectors : ndarray, shape (n, dimension), float32
        """
        data = np.ascontiguousarray(vectors, dtype="<f4")
        try:
            make_private_folder(self.path.parent)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.lseek(descriptor, first_row * self.row_bytes, os.SEEK_SET)
                write_all(descriptor, data.tobytes())
                sync_data(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StorageError(
                f"nothing was recorded: {error.strerror}; make room and try again", path=self.path
            ) from None
        return [row_sha256(row) for row in data]

    def rows(self, count: int) -> NDArray[np.float32]:
        """Return the first `count` rows as a read-only memory map, shape (count, dimension), float32.

        Raises
        ------
        VectorDamageError
            The file is shorter than the journal says.
        """
        if count > len(self._mapped):
            try:
                size = self.path.stat().st_size if self.path.exists() else 0
                available = size // self.row_bytes
                if available < count:
                    raise VectorDamageError(path=self.path, row=available, memory_id="unknown")
                self._mapped = np.memmap(self.path, dtype="<f4", mode="r", shape=(available, self.dimension))
            except OSError as error:
                raise StorageError(f"vectors cannot be read: {error.strerror}", path=self.path) from None
        return self._mapped[:count]


def vectors_named(payload: Payload) -> list[tuple[str, VectorRef]]:
    """Return (memory id, where its vector lies) for each vector that an event names."""
    if isinstance(payload, MemoryReembedded):
        return [(one.id, VectorRef(model=payload.model, row=one.row, sha256=one.sha256)) for one in payload.vectors]
    vector = getattr(payload, "vector", None)
    return [] if vector is None else [(payload.memory_ids()[0], vector)]


def row_sha256(row: Vector) -> str:
    """SHA-256 of a vector's little-endian bytes, in hexadecimal."""
    return hashlib.sha256(np.ascontiguousarray(row, dtype="<f4").tobytes()).hexdigest()


def _file_name(model: str) -> str:
    """Return a file name for a model's name; a digest keeps different models apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", model).lstrip(".")[:80]
    return plain if plain == model else f"{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
