"""Vectors computed before the event that names them, for a model that the store is about to change to."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.disk.files import make_private_folder, sync_data, write_all
from memgraph.errors import StorageError
from memgraph.journal.vectors.vector_file import VectorFile


class MadeRow(NamedTuple):
    """A row that no event names yet: its memory, the HMAC of the text, and the location of the vector."""

    memory_id: str
    text: str
    row: int
    sha256: str


class MadeVectors:
    """``<model>.rows.jsonl``: the memory and text of each row of a model's file that no event names yet.

    A line is written and synced after its row. A later run therefore resumes an interrupted one: it keeps the rows as long as
    each line is whole and matches its row, removes the rest and computes it again. One process at a time.

    Parameters
    ----------
    file : VectorFile
    first_row : int
        The first row that no event names.

    Raises
    ------
    StorageError
        The file cannot be read or truncated.
    """

    def __init__(self, file: VectorFile, first_row: int) -> None:
        self._file = file
        self._path = file.path.with_suffix(".rows.jsonl")
        self._first_row = self._next_row = first_row
        self._rows: dict[str, MadeRow] = {}
        self._take_in()

    def row(self, memory_id: str, text: str) -> MadeRow | None:
        """Return the row computed for a memory's text, which is given as its HMAC; None if there is none for this text."""
        made = self._rows.get(memory_id)
        return made if made is not None and made.text == text else None

    def add(self, texts: Sequence[tuple[str, str]], vectors: NDArray[np.float32]) -> None:
        """Store vectors, each with its memory's id and the HMAC of its text. They are durable when the call returns.

        Parameters
        ----------
        vectors : ndarray, shape (n, dimension), float32

        Raises
        ------
        StorageError
            The vectors cannot be written; those stored before remain.
        """
        hashes = self._file.write(self._next_row, vectors)
        rows = [
            MadeRow(memory_id, text, row, sha256)
            for row, ((memory_id, text), sha256) in enumerate(zip(texts, hashes, strict=True), start=self._next_row)
        ]
        self._append(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        self._rows |= {row.memory_id: row for row in rows}
        self._next_row += len(rows)

    def forget(self) -> None:
        """Remove the list, because events name the rows now."""
        with suppress(OSError):  # a list that remains matches nothing the next time
            self._path.unlink(missing_ok=True)

    def _take_in(self) -> None:
        if not self._path.exists():
            return
        try:
            whole = 0
            for line, row in self._lines():
                self._rows[row.memory_id] = row
                self._next_row += 1
                whole += len(line)
            if whole < self._path.stat().st_size:
                os.truncate(self._path, whole)
        except OSError as error:
            raise StorageError(f"cannot be read: {error.strerror}; make it readable", path=self._path) from None

    def _lines(self) -> Iterator[tuple[bytes, MadeRow]]:
        """Yield the lines and their rows, up to the first that does not match."""
        if not self._file.path.exists():
            return
        with self._path.open("rb") as lines, self._file.path.open("rb", buffering=1 << 20) as vectors:
            vectors.seek(self._first_row * self._file.row_bytes)
            for number, line in enumerate(lines, start=self._first_row):
                row = _row_of(line)
                data = vectors.read(self._file.row_bytes)
                is_so = row is not None and row.row == number and row.sha256 == hashlib.sha256(data).hexdigest()
                if row is None or not is_so or len(data) < self._file.row_bytes:
                    return
                yield line, row

    def _append(self, data: bytes) -> None:
        try:
            make_private_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                write_all(descriptor, data)
                sync_data(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StorageError(
                f"cannot be written: {error.strerror}; free some disk space and try again", path=self._path
            ) from None


def _row_of(line: bytes) -> MadeRow | None:
    """Parse a line; None if it is torn or was not written by this class."""
    if not line.endswith(b"\n"):
        return None
    try:
        memory_id, text, row, sha256 = json.loads(line)
    except (ValueError, TypeError):
        return None
    return MadeRow(str(memory_id), str(text), row, sha256)
