"""Vector search over the memory-mapped cache of a model's vectors, without copying: exact, or by signs first where there are many; masks cost nothing."""

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

_MANY_ROWS = 20_000
"""Number of rows from which `near_cosines` estimates: below, a product of all takes no longer than what is around it."""
_HIGHEST, _LOWEST, _SAMPLED = 2_000, 250, 500
"""How many rows it compares exactly: those with the highest and the lowest estimates, and a sample of the others."""
_BLOCK_ROWS = 4_096
_UNSIGNED_ROWS = 2_048
"""Rows that are compared exactly before their signs are taken, too: adding a row copies the signs of none."""

Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]
Matrix = NDArray[np.float32]
Signs = NDArray[np.uint64]


class VectorSearch:
    """Cosines against the rows of one model, whose norms and signs are cached. Thread-safe. A row that is missing, zero or not finite has no vector."""

    def __init__(self, file: Vectors) -> None:
        self.file = file
        self._guard = threading.Lock()
        self._inverse_norms: Matrix = np.empty(0, dtype=np.float32)
        self._signs: Signs = np.empty((-(-file.dimension // 64), 0), dtype=np.uint64)
        self._has_damage = False
        self._looked_at = 0

    def has_vector(self, rows: Rows, count: int) -> Mask:
        """Return which of these rows, int32 numbers below `count`, the rows that the journal has named so far, hold a valid vector."""
        if len(rows) <= _EXACT_ROWS:
            return _inverse_norms(self._gathered(rows, count)) > 0
        matrix, inverse = self._with_norms(count)
        if len(matrix) == count and not self._has_damage:
            return np.ones(len(rows), dtype=np.bool_)
        found = rows < len(matrix)
        found[found] = inverse[rows[found]] > 0
        return found

    def cosines(self, query: Vector, rows: Rows, count: int) -> NDArray[np.float64]:
        """Return the cosine of the query (shape (d,), float32) with each of these rows: float64, in [−1, 1]; 0 for a damaged row.

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

    def near_cosines(self, query: Vector, rows: Rows, count: int) -> NDArray[np.float64]:
        """Return what `cosines` does; of many rows, estimates for those that are neither most nor least similar.

        How many components have the sign of the query's estimates the angle (Charikar 2002), scaled to the mean and deviation of a sample's cosines.
        """
        matrix, _ = self._with_norms(count)
        if len(rows) < _MANY_ROWS or len(matrix) < count or not hasattr(np, "bitwise_count"):  # numpy 1 counts no bits
            return self.cosines(query, rows, count)
        signs = self._with_signs(matrix)
        differing = np.zeros(signs.shape[1], dtype=np.uint16)
        for of_rows, of_query in zip(signs, _signs(query[None])[:, 0], strict=True):
            differing += np.bitwise_count(of_rows ^ of_query)
        differing = np.pad(differing, (0, count - len(differing)), constant_values=np.iinfo(np.uint16).max)[rows]
        order = np.argsort(differing, kind="stable")
        order, unsigned = np.split(order, [np.count_nonzero(rows < signs.shape[1])])
        between = order[_HIGHEST:-_LOWEST]
        sampled = between[:: len(between) // _SAMPLED]
        places = np.concatenate([order[:_HIGHEST], order[-_LOWEST:], unsigned, sampled])
        exact, found = self.cosines(query, rows[places], count), -differing.astype(np.float64)
        sample, estimates = exact[-len(sampled) :], found[sampled]
        found -= estimates.mean()
        found *= sample.std() / (estimates.std() or 1.0)
        found += sample.mean()
        found[places] = exact
        return np.clip(found, -1.0, 1.0, out=found)

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
        """Drop the cached norms and signs, because rows may have been damaged or repaired since."""
        with self._guard:
            self._drop()

    def _drop(self) -> None:
        self._inverse_norms, self._signs = self._inverse_norms[:0], self._signs[:, :0]

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
                self._drop()  # the file was replaced, or may have been repaired
            self._looked_at = state
            known = len(self._inverse_norms)
            if known < len(matrix):
                late = _inverse_norms(matrix[known:])
                self._inverse_norms = np.concatenate([self._inverse_norms, late])
                self._has_damage = not self._inverse_norms.all()
            return matrix, self._inverse_norms[: len(matrix)]

    def _with_signs(self, matrix: Matrix) -> Signs:
        """Return the signs of the rows, shape (words, rows); of the last ones perhaps not yet."""
        with self._guard:
            known = self._signs.shape[1]
            if known + _UNSIGNED_ROWS < len(matrix):
                late = [_signs(matrix[at : at + _BLOCK_ROWS]) for at in range(known, len(matrix), _BLOCK_ROWS)]
                self._signs = np.concatenate([self._signs, *late], axis=1)
            return self._signs[:, : len(matrix)]

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


def _signs(rows: Matrix) -> Signs:
    """Return a bit for each component, whether it is negative, as 64-bit words: shape (words, n)."""
    packed = np.packbits(np.signbit(rows), axis=1)
    words = np.zeros((len(rows), -(-rows.shape[1] // 64) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(words.view(np.uint64).T)


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
