"""Exact vector search over the journal's memory-mapped vector file, without copying; masks cost nothing."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from memgraph.journal.vectors import Vectors
from memgraph.model.memory import Vector

_GATHER_SHARE = 0.2
"""Share of rows below which gathering them is faster than multiplying all."""


_EXACT_ROWS = 256
"""Up to this number, rows are compared in double precision: equal vectors then have equal cosines, whatever their rows."""

Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]
Matrix = NDArray[np.float32]


class VectorSearch:
    """Cosines against the rows of one model's file. Caches the rows' norms; rows are not normalised. Thread-safe.

    A damaged row counts as no vector: it is missing because the file was truncated, is all zeros, or is not finite. The norms
    show this at no extra cost. Other damage is found only by a SHA-256: see `memgraph.journal.vectors.damage`.
    """

    def __init__(self, file: Vectors) -> None:
        self.file = file
        self._guard = threading.Lock()
        self._inverse_norms: Matrix = np.empty(0, dtype=np.float32)
        self._has_damage = False
        self._looked_at = 0

    def has_vector(self, rows: Rows, count: int) -> Mask:
        """Return which of these rows hold a valid vector.

        Parameters
        ----------
        rows : ndarray, shape (n,), int32
            Row numbers, below `count`.
        count : int
            Rows that the journal has named so far.
        """
        if len(rows) <= _EXACT_ROWS:
            return _inverse_norms(self._gathered(rows, count)) > 0
        matrix, inverse = self._with_norms(count)
        if len(matrix) == count and not self._has_damage:
            return np.ones(len(rows), dtype=np.bool_)
        found = rows < len(matrix)
        found[found] = inverse[rows[found]] > 0
        return found

    def cosines(self, query: Vector, rows: Rows, count: int) -> NDArray[np.float64]:
        """Return the cosine of the query with each of these rows, in [−1, 1]; 0 for a damaged row.

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
        wide = query.astype(np.float64)  # the square of a tiny or huge number does not fit into float32
        unit = (wide / np.linalg.norm(wide)).astype(np.float32)
        if len(rows) <= _EXACT_ROWS:
            return _exact_cosines(unit, self._gathered(rows, count))
        matrix, inverse = self._with_norms(count)
        if len(matrix) < count:
            found = np.flatnonzero(rows < len(matrix))
            result = np.zeros(len(rows))
            result[found] = self._products(matrix, inverse, unit, rows[found])
            return result
        return self._products(matrix, inverse, unit, rows)

    def vectors(self, rows: Rows, count: int) -> Matrix:
        """Return a copy of these rows as stored, shape (n, d), float32; damaged ones are zeros."""
        gathered = self._gathered(rows, count)
        gathered[~_are_vectors(gathered)] = 0.0
        return gathered

    def vector(self, row: int, count: int) -> Vector | None:
        """Return a read-only copy of a row as stored, shape (d,), float32; None if it is damaged."""
        gathered = self._gathered(np.array([row], dtype=np.int32), count)
        if not _are_vectors(gathered)[0]:
            return None
        gathered.flags.writeable = False
        found: Vector = gathered[0]
        return found

    def look_again(self) -> None:
        """Drop the cached norms, because rows may have been damaged or repaired since."""
        with self._guard:
            self._inverse_norms = np.empty(0, dtype=np.float32)

    def _gathered(self, rows: Rows, count: int) -> Matrix:
        """Return a copy of these rows; missing ones are zeros."""
        with self._guard:
            matrix = self.file.rows(count)
        if len(matrix) == count:
            return matrix[rows]
        found = rows < len(matrix)
        gathered = np.zeros((len(rows), self.file.dimension), dtype=np.float32)
        gathered[found] = matrix[rows[found]]
        return gathered

    def _with_norms(self, count: int) -> tuple[Matrix, Matrix]:
        """Return the rows and the inverse norm of each; 0 for a damaged one."""
        with self._guard:
            matrix = self.file.rows(count)
            state = self.file.epoch
            if state != self._looked_at:
                self._inverse_norms = np.empty(0, dtype=np.float32)  # the file was replaced, or may have been repaired
            self._looked_at = state
            known = len(self._inverse_norms)
            if known < len(matrix):
                late = _inverse_norms(matrix[known:])
                self._inverse_norms = np.concatenate([self._inverse_norms, late])
                self._has_damage = not self._inverse_norms.all()
            return matrix, self._inverse_norms[: len(matrix)]

    def _products(self, matrix: Matrix, inverse: Matrix, unit: Vector, rows: Rows) -> NDArray[np.float64]:
        count = len(matrix)
        with np.errstate(all="ignore"):  # values that are not finite are handled below
            if len(rows) < _GATHER_SHARE * count:
                products = (matrix[rows] @ unit) * inverse[rows]
            elif _are_all(rows, count):
                products = (matrix @ unit) * inverse
            else:
                products = ((matrix @ unit) * inverse)[rows]
        odd = np.flatnonzero(~np.isfinite(products))  # damaged rows, and products that overflow float32
        if len(odd):
            products[odd] = _exact_cosines(unit, matrix[rows[odd]])
        return np.clip(products, -1.0, 1.0, out=products).astype(np.float64)


def _are_vectors(rows: Matrix) -> Mask:
    """Return which rows are finite and not all zeros."""
    found: Mask = np.logical_and(np.isfinite(rows).all(axis=1), rows.any(axis=1))
    return found


def _exact_cosines(unit: Vector, rows: Matrix) -> NDArray[np.float64]:
    """Return the cosines in double precision; 0 for an invalid row."""
    with np.errstate(all="ignore"):
        wide = rows.astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1)
        cosines: NDArray[np.float64] = np.clip((wide @ unit.astype(np.float64)) / lengths, -1.0, 1.0)
    cosines[~((lengths > 0) & np.isfinite(lengths))] = 0.0
    return cosines


def _inverse_norms(rows: Matrix) -> Matrix:
    """Return the inverse norm of each row; 0 for an invalid row."""
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float32))
        inverse: Matrix = np.float32(1.0) / norms
    odd = np.flatnonzero(~(np.isfinite(inverse) & (inverse > 0)))  # invalid, or its squares do not fit into float32
    if len(odd):
        inverse[odd] = 0.0
        odd = odd[_are_vectors(rows[odd])]
        lengths = np.linalg.norm(rows[odd].astype(np.float64), axis=1)
        inverse[odd] = np.minimum(1.0 / lengths, np.finfo(np.float32).max)
    return inverse


def _are_all(rows: Rows, count: int) -> bool:
    """Return whether these are all rows in order, as in a store whose vectors were never replaced."""
    return len(rows) == count and bool(rows[0] == 0) and bool((rows[1:] - rows[:-1] == 1).all())
