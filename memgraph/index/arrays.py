"""Growable arrays, and multimaps over them: the flat parts of the index, which a snapshot stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SMALLEST = 64
_DELTA_SHARE = 4
_DELTA_FLOOR = 20_000

Ints = NDArray[np.int32]


class GrowingArray:
    """A one-dimensional array with amortised append."""

    def __init__(self, dtype: Any, data: NDArray[Any] | None = None) -> None:
        self._length = 0 if data is None else len(data)
        self._data = np.empty(_SMALLEST, dtype=dtype) if data is None else np.array(data, dtype=dtype)

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[Any]:
        """A view of the elements in use. Its elements may be assigned; the view must not be kept."""
        return self._data[: self._length]

    def append(self, value: Any) -> None:
        """Add one element."""
        self._reserve(1)
        self._data[self._length] = value
        self._length += 1

    def extend(self, values: NDArray[Any]) -> None:
        """Add many elements."""
        self._reserve(len(values))
        self._data[self._length : self._length + len(values)] = values
        self._length += len(values)

    def _reserve(self, count: int) -> None:
        needed = self._length + count
        if needed > len(self._data):
            grown = np.empty(max(needed, 2 * len(self._data), _SMALLEST), dtype=self._data.dtype)
            grown[: self._length] = self._data[: self._length]
            self._data = grown


class Multimap:
    """Maps integer keys to (value, weight) pairs, in a sorted base with offsets and a short unsorted delta.

    A look-up takes time in proportion to its answer, plus one pass over the delta. When the delta exceeds a quarter of the base,
    both are merged by one stable sort. A removed pair has weight 0 until then.
    """

    def __init__(self, data: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._keys = GrowingArray(np.int32, None if data is None else data["keys"])
        self._values = GrowingArray(np.int32, None if data is None else data["values"])
        self._weights = GrowingArray(np.int32, None if data is None else data["weights"])
        self._late: list[tuple[int, int, int]] = []
        self._has_removed = False
        self._offsets: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._base = 0
        if data is not None:
            self._index_base()

    def add(self, key: int, value: int, weight: int) -> None:
        """Add a pair; the weight must not be 0."""
        self._late.append((key, value, weight))

    def remove_value(self, value: int) -> None:
        """Remove every pair with this value; costs one pass over all pairs."""
        self.settle()
        self._remove(self._values.values == value)

    def remove_key(self, key: int) -> None:
        """Remove every pair with this key; costs one pass over all pairs."""
        self.settle()
        self._remove(self._keys.values == key)

    def remove(self, key: int, value: int, weight: int) -> None:
        """Remove one kind of pair; costs one pass over all pairs."""
        self.settle()
        values, weights = self._values.values, self._weights.values
        self._remove((self._keys.values == key) & (values == value) & (weights == weight))

    def _remove(self, removed: NDArray[np.bool_]) -> None:
        self._weights.values[removed] = 0
        self._has_removed = True

    def get(self, key: int) -> tuple[Ints, Ints]:
        """Return the (values, weights) of a key, in the order they were added. Callers must not change them."""
        if self._late:
            self.settle()
        start, end = (self._offsets[key], self._offsets[key + 1]) if key + 1 < len(self._offsets) else (0, 0)
        values, weights = self._values.values[start:end], self._weights.values[start:end]
        if self._base < len(self._keys):
            late = np.flatnonzero(self._keys.values[self._base :] == key) + self._base
            if len(late):
                values = np.concatenate([values, self._values.values[late]])
                weights = np.concatenate([weights, self._weights.values[late]])
        if not self._has_removed:
            return values, weights
        kept = weights != 0
        return values[kept], weights[kept]

    def __contains__(self, key: int) -> bool:
        """Return whether a key has a value."""
        if not self._has_removed and key + 1 < len(self._offsets) and self._offsets[key + 1] > self._offsets[key]:
            return True
        return len(self.get(key)[0]) > 0

    def pairs(self, weight: int, *, to: NDArray[np.bool_] | None = None) -> tuple[Ints, Ints]:
        """Return the (keys, values) of all pairs of this weight, or of those with a masked value; one pass over all pairs."""
        self.settle()
        found = self._weights.values == weight
        if to is None:
            return self._keys.values[found], self._values.values[found]
        places = np.flatnonzero(to[self._values.values] & found)
        return self._keys.values[places], self._values.values[places]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the sorted pairs, for a snapshot."""
        self.settle()
        self._merge()
        return {"keys": self._keys.values, "values": self._values.values, "weights": self._weights.values}

    def settle(self) -> None:
        """Process the pairs added since the last look-up."""
        if not self._late:
            return
        keys, values, weights = np.array(self._late, dtype=np.int32).T
        self._keys.extend(keys)
        self._values.extend(values)
        self._weights.extend(weights)
        self._late = []
        if len(self._keys) - self._base > max(_DELTA_FLOOR, self._base // _DELTA_SHARE):
            self._merge()

    def _merge(self) -> None:
        kept = np.flatnonzero(self._weights.values)
        order = kept[np.argsort(self._keys.values[kept], kind="stable")]
        self._keys = GrowingArray(np.int32, self._keys.values[order])
        self._values = GrowingArray(np.int32, self._values.values[order])
        self._weights = GrowingArray(np.int32, self._weights.values[order])
        self._has_removed = False
        self._index_base()

    def _index_base(self) -> None:
        keys = self._keys.values
        self._base = len(keys)
        highest = int(keys[-1]) if len(keys) else -1
        self._offsets = np.searchsorted(keys, np.arange(highest + 2)).astype(np.int64)


class Names:
    """Assigns small integers to strings, in the order of their first use."""

    def __init__(self, names: list[str] | None = None) -> None:
        self.names = names or []
        self._codes = {name: code for code, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Names:
        other = memo[id(self)] = Names()
        other.names, other._codes = self.names.copy(), self._codes.copy()  # strings are immutable
        return other

    def code(self, name: str) -> int:
        """Return a name's code, assigning one if necessary."""
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self.names)
            self.names.append(name)
        return code

    def find(self, name: str | None) -> int:
        """Return a name's code, −1 if it has none."""
        return self._codes.get(name, -1) if name is not None else -1
