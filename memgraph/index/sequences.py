"""The terms of each memory in the order of its text, in which names of entities are searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.index.arrays import GrowingArray, Ints


class Sequences:
    """One list of term codes per slot, all in one array. A slot's old list stays in the array until the next snapshot."""

    def __init__(self, data: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._starts = GrowingArray(np.int64, None if data is None else data["starts"])
        self._lengths = GrowingArray(np.int32, None if data is None else data["lengths"])
        self._codes = GrowingArray(np.int32, None if data is None else data["codes"])

    def put(self, slot: int, codes: Sequence[int]) -> None:
        """Set the terms of an existing slot or of the next one."""
        if slot == len(self._starts):
            self._starts.append(0)
            self._lengths.append(0)
        self._starts.values[slot] = len(self._codes)
        self._lengths.values[slot] = len(codes)
        self._codes.extend(np.array(codes, dtype=np.int32))

    def get(self, slot: int) -> Ints:
        """Return a slot's terms; do not keep them across changes."""
        start = int(self._starts.values[slot])
        codes: Ints = self._codes.values[start : start + int(self._lengths.values[slot])]
        return codes

    def clear(self, slot: int) -> None:
        """Remove a slot's terms."""
        self._lengths.values[slot] = 0

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the lists as flat arrays, for a snapshot, without replaced lists."""
        starts, lengths = self._starts.values, self._lengths.values
        if int(lengths.sum()) < len(self._codes):
            kept = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
            self._codes = GrowingArray(np.int32, self._codes.values[kept])
            self._starts.values[:] = np.cumsum(lengths) - lengths
        return {"starts": starts, "lengths": lengths, "codes": self._codes.values}
