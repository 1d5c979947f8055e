"""Exact vector search over the journal's memory-mapped vector file: nothing is copied, masks cost nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.journal.vectors import VectorFile
from memgraph.model.memory import Vector

_GATHER_SHARE = 0.2
"""Below this share of rows, gathering them beats multiplying all."""


_EXACT_ROWS = 256
"""So few are compared in double precision: equal vectors then have equal cosines, wherever they stand."""


class VectorSearch:
    """Cosines against the rows of one model's file. Keeps the rows' norms; rows are kept as they were given."""

    def __init__(self, file: VectorFile) -> None:
        self.file = file
        self._inverse_norms: NDArray[np.float32] = np.empty(0, dtype=np.float32)

    def cosines(self, query: Vector, rows: NDArray[np.int32], count: int) -> NDArray[np.float64]:
        """Cosine of the query with each of these rows, in [−1, 1].

        Parameters
        ----------
        query : ndarray, shape (d,), float32
        rows : ndarray, shape (n,), int32
            Row numbers, below `count`.
        count : int
            Rows that the journal has named so far.

        Returns
        -------
        ndarray, shape (n,), float64
            Equal vectors may differ in the last place between calls: round before comparing.
        """
        if not len(rows):
            return np.empty(0)
        matrix = self.file.rows(count)
        wide = query.astype(np.float64)  # the square of a tiny or huge number is none of float32
        unit = (wide / np.linalg.norm(wide)).astype(np.float32)
        if len(rows) <= _EXACT_ROWS:
            chosen = matrix[rows].astype(np.float64)
            lengths = np.linalg.norm(chosen, axis=1)
            return np.clip((chosen @ unit.astype(np.float64)) / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0)
        inverse = self._inverse_norms_of(matrix)
        if len(rows) < _GATHER_SHARE * count:
            products = (matrix[rows] @ unit) * inverse[rows]
        elif _are_all(rows, count):
            products = (matrix @ unit) * inverse
        else:
            products = ((matrix @ unit) * inverse)[rows]
        return np.clip(products, -1.0, 1.0, out=products).astype(np.float64)

    def _inverse_norms_of(self, matrix: NDArray[np.float32]) -> NDArray[np.float32]:
        known = len(self._inverse_norms)
        if known < len(matrix):
            late = np.sqrt(np.einsum("ij,ij->i", matrix[known:], matrix[known:], dtype=np.float32))
            late[late == 0] = 1.0  # a row that no event names may hold anything
            self._inverse_norms = np.concatenate([self._inverse_norms, 1.0 / late])
        return self._inverse_norms[: len(matrix)]


def _are_all(rows: NDArray[np.int32], count: int) -> bool:
    """Tell whether these are all rows in their order, as of a store into which nothing else was ever written."""
    return len(rows) == count and bool(rows[0] == 0) and bool((rows[1:] - rows[:-1] == 1).all())
