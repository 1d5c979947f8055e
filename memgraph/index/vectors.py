"""Vector search over the journal's memory-mapped vector file: exact, or a compact first pass with exact cosines for the best."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.arrays import Arrays, GrowingArray
from memgraph.journal.vectors import Vectors
from memgraph.model.memory import Vector

_GATHER_SHARE = 0.2
"""Share of rows below which gathering them is faster than multiplying all."""
_EXACT_ROWS = 256
"""Up to this number, rows are compared in double precision: equal vectors then have equal cosines, whatever their rows."""
SKETCHED_FROM = 20_000
"""From this many vectors on, a first pass reads their sketches."""
_SKETCHED_DIMENSIONS = 128
"""Shorter vectors are quick to compare, and their signs say too little."""
_CENTRED = 16_384
"""The first so many vectors have their centre at the origin of all sketches: it must not depend on when they were made."""
_BEST, _WORST, _SAMPLED = 2_000, 256, 2_048
"""Rows of the first pass whose cosines are computed: by how near they look, the farthest ones for the range, and others for the distribution."""
_FIRST, _ERRORS = 10, 4.0
"""Estimates serve only where so many rows are nearer by so many standard errors than the last of the best looks."""
_CHUNK = 4_096
SKETCH_PARTS = ("inverse", "words", "centre")

Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]
Matrix = NDArray[np.float32]


class Near(NamedTuple):
    """Cosines of which some are estimates.

    Attributes
    ----------
    cosines : ndarray, shape (n,), float64
    is_exact : ndarray, shape (n,), bool, or None
        None: all are.
    sample : ndarray, shape (m,), int
        Places of exact ones that are spread evenly, for statistics.
    """

    cosines: NDArray[np.float64]
    is_exact: Mask | None = None
    sample: NDArray[np.int64] | None = None


class Sketch:
    """What is remembered of each vector of one model: its inverse norm, 0 for a damaged one, and on which side of random directions it is.

    The sides are those of the unit vector less the centre of the first 16,384, packed; they are made once there are 20,000 vectors.
    """

    def __init__(self, data: Arrays | None = None) -> None:
        self._inverse, self._words, self._centre = GrowingArray(np.float32), list[GrowingArray](), None
        if data is not None:
            self._inverse, self._centre = GrowingArray(np.float32, data["inverse"]), data["centre"]
            self._words = [GrowingArray(np.uint64, words) for words in data["words"].reshape(-1, len(self._inverse))]
        self.has_damage = not self.inverse.all()

    def clear(self) -> None:
        """Forget everything, because rows may have been damaged or repaired since."""
        self._inverse, self._words, self._centre, self.has_damage = GrowingArray(np.float32), [], None, False

    def __len__(self) -> int:
        return len(self._inverse)

    @property
    def is_complete(self) -> bool:
        """Whether it has the signs of all its vectors. Of few vectors it has none: they are quick to read again, and then damage shows."""
        return self._centre is not None and len(self._words[0]) == len(self)

    @property
    def inverse(self) -> Matrix:
        """The inverse norms."""
        return self._inverse.values

    def extend(self, rows: Matrix) -> None:
        """Take in the next rows."""
        late = _inverse_norms(rows)
        self._inverse.extend(late)
        self.has_damage |= not late.all()

    def distances(self, unit: Vector, matrix: Matrix) -> NDArray[np.int64]:
        """Return in how many signs each row differs from a unit vector."""
        if self._centre is None:
            some = matrix[:_CENTRED]
            self._centre = (some * self.inverse[:_CENTRED, None]).mean(axis=0)
            self._words = [GrowingArray(np.uint64) for _ in range(-(-2 * len(unit) // 64))]
        for first in range(len(self._words[0]), len(self), _CHUNK):
            rows = slice(first, min(first + _CHUNK, len(self)))
            with np.errstate(all="ignore"):
                signs = _signs(matrix[rows] * self.inverse[rows, None] - self._centre)
            for words, more in zip(self._words, signs.T, strict=True):
                words.extend(more)
        found = np.zeros(len(self), dtype=np.int64)
        for words, sign in zip(self._words, _signs(unit[None] - self._centre)[0], strict=True):
            found += np.bitwise_count(words.values ^ sign)
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as flat arrays, for a snapshot; nothing unless it is complete."""
        if not self.is_complete or self._centre is None:
            return {}
        words = np.concatenate([part.values for part in self._words])
        return {"inverse": self.inverse, "words": words, "centre": self._centre}


class VectorSearch:
    """Cosines against the rows of one model's file, which are not normalised. Thread-safe.

    A damaged row counts as no vector: it is missing because the file was truncated, is all zeros, or is not finite. The norms
    show this at no extra cost; of those that the index keeps, when the row is compared. Other damage is found only by a SHA-256: see
    `memgraph.journal.vectors.damage`.
    """

    def __init__(self, file: Vectors) -> None:
        self.file = file
        self.sketch = Sketch()
        self._guard = threading.Lock()
        self._epoch = 0

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
        self._with_norms(count)
        if not self.sketch.has_damage:
            return np.ones(len(rows), dtype=np.bool_)
        found: Mask = self.sketch.inverse[rows] > 0
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
        unit = _unit(query)
        if len(rows) <= _EXACT_ROWS:
            return _exact_cosines(unit, self._gathered(rows, count))
        return self._products(self._with_norms(count), unit, rows)

    def near(self, query: Vector, rows: Rows, count: int, weights: NDArray[np.float64]) -> Near:
        """Return the cosines of the query with these rows: from 20,000 on estimates, but for the best, the worst and a sample.

        The first pass counts the signs in which the vectors differ; the sample tells what cosine a count stands for. Deterministic.

        Parameters
        ----------
        weights : ndarray, shape (n,), float64
            Factors of the cosines by which the best are chosen.
        """
        if len(rows) < SKETCHED_FROM or len(query) < _SKETCHED_DIMENSIONS:
            return Near(self.cosines(query, rows, count))
        matrix, unit = self._with_norms(count), _unit(query)
        with self._guard:
            distances = self.sketch.distances(unit, matrix)
        if len(distances) > count or not _are_all(rows, count):
            distances = distances[rows]
        sample = np.arange(0, len(rows), len(rows) // _SAMPLED)
        products = self._products(matrix, unit, rows[sample])
        spread = distances[sample] - distances[sample].mean()
        slope = float(spread @ products) / (float(spread @ spread) or 1.0)
        of_distance = products.mean() + slope * (np.arange(2 * len(query) + 1) - distances[sample].mean())
        cosines = np.clip(of_distance, -1.0, 1.0)[distances]
        corrected = cosines * weights
        least = np.partition(corrected, -_BEST)[-_BEST]
        is_exact = corrected >= least
        is_exact |= corrected <= np.partition(corrected, _WORST)[_WORST]
        chosen = np.flatnonzero(is_exact)
        cosines[chosen] = self._products(matrix, unit, rows[chosen])
        error = float((products - cosines[sample]).std())
        if least + _ERRORS * error > np.partition(cosines[chosen] * weights[chosen], -_FIRST)[-_FIRST]:
            return Near(self.cosines(query, rows, count))  # no few stand out: one of the others may be nearer
        cosines[sample], is_exact[sample] = products, True
        return Near(cosines, is_exact, sample)

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
        """Drop what is remembered of the rows, because they may have been damaged or repaired since."""
        with self._guard:
            self.sketch.clear()

    def _gathered(self, rows: Rows, count: int) -> Matrix:
        """Return a copy of these rows; missing ones are zeros."""
        with self._guard:
            return self._rows(count)[rows]

    def _rows(self, count: int) -> Matrix:
        """Return the first rows, and forget what is remembered of them if they may have changed."""
        matrix = self.file.rows(count)
        if self.file.epoch != self._epoch:
            self.sketch.clear()
        self._epoch = self.file.epoch
        return matrix

    def _with_norms(self, count: int) -> Matrix:
        """Return the rows, whose norms the sketch knows afterwards."""
        with self._guard:
            matrix = self._rows(count)
            for first in range(len(self.sketch), count, _CHUNK):
                self.sketch.extend(matrix[first : min(first + _CHUNK, count)])
            return matrix

    def _products(self, matrix: Matrix, unit: Vector, rows: Rows) -> NDArray[np.float64]:
        inverse, count = self.sketch.inverse[: len(matrix)], len(matrix)
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


def _unit(query: Vector) -> Vector:
    wide = query.astype(np.float64)  # the square of a tiny or huge number does not fit into float32
    return (wide / np.linalg.norm(wide)).astype(np.float32)


@lru_cache(maxsize=4)
def _directions(dimension: int) -> Matrix:
    """Return random directions, one a column, always the same: by them the share of equal sides tells the angle alone (Charikar 2002)."""
    return np.random.default_rng(0).standard_normal((dimension, 2 * dimension), dtype=np.float32)


def _signs(rows: Matrix) -> NDArray[np.uint64]:
    """Return on which side of each direction some rows are, packed: shape (n, words), uint64."""
    packed = np.packbits(rows @ _directions(rows.shape[1]) > 0, axis=1)
    words = np.zeros((len(rows), -(-packed.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : packed.shape[1]] = packed
    return words.view(np.uint64)


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
