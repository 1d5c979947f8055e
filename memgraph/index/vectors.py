"""Exact vector search over the journal's memory-mapped vector file: nothing is copied, masks cost nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.journal.vectors import VectorFile
from memgraph.model.memory import Vector

_GATHER_SHARE = 0.2
"""Below this share of rows, gathering them beats multiplying all."""


class VectorSearch:
    """Cosines against the rows of one model's file. Keeps the rows' norms; rows are kept as they were given."""

    def __init__(self, file: VectorFile) -> None:
        self.file = file
        self._norms: NDArray[np.float32] = np.empty(0, dtype=np.float32)

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
        norms = self._norms_of(matrix)
        length = float(np.linalg.norm(query))
        if len(rows) < _GATHER_SHARE * count:
            products = matrix[rows] @ query
        else:
            products = (matrix @ query)[rows]
        return np.clip(products.astype(np.float64) / (norms[rows].astype(np.float64) * length), -1.0, 1.0)

    def _norms_of(self, matrix: NDArray[np.float32]) -> NDArray[np.float32]:
        known = len(self._norms)
        if known < len(matrix):
            late = np.sqrt(np.einsum("ij,ij->i", matrix[known:], matrix[known:], dtype=np.float32))
            late[late == 0] = 1.0  # a row that no event names may hold anything
            self._norms = np.concatenate([self._norms, late])
        return self._norms
