"""What the two plain baselines share: all vectors in one array, compared exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tests.benchmarks.data import DIMENSION, Vector


class Nearest:
    """Vectors of length 1 and their ids, in memory."""

    def __init__(self, known: Iterable[tuple[str, Vector]] = ()) -> None:
        self._ids: list[str] = []
        self._rows = np.empty((1_024, DIMENSION), dtype=np.float32)
        for key, vector in known:
            self.add([key], [vector])

    def __contains__(self, key: str) -> bool:
        return key in self._ids

    def add(self, ids: Sequence[str], vectors: Sequence[Vector]) -> None:
        first, after = len(self._ids), len(self._ids) + len(ids)
        if after > len(self._rows):
            grown = np.empty((2 * after, DIMENSION), dtype=np.float32)
            grown[:first] = self._rows[:first]
            self._rows = grown
        self._rows[first:after] = vectors
        self._ids += ids

    def query(self, vector: Vector, limit: int) -> list[str]:
        cosines = self._rows[: len(self._ids)] @ vector
        return [self._ids[place] for place in np.argsort(-cosines)[:limit]]
