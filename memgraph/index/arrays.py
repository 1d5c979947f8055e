"""The flat parts of the index, which a snapshot stores: columns, lists of terms, multimaps, and the codes of names."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SMALLEST = 64
_TAIL_SHARE = 4
_SHORT_TAIL = 20_000
MAX_WEIGHT = 2**15 - 1
"""Largest weight of a pair."""

Ints = NDArray[np.int32]
Integers = Sequence[int] | NDArray[Any] | int
Arrays = Mapping[str, NDArray[Any]]


class GrowingArray:
    """A one-dimensional array with amortised append; `data`, its first elements, is used as it is until it grows."""

    def __init__(self, dtype: Any, data: NDArray[Any] | None = None) -> None:
        self._length = 0 if data is None else len(data)
        self._data = np.empty(_SMALLEST, dtype=dtype) if data is None else data.astype(dtype, copy=False)

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[Any]:
        """A view of the elements in use. Its elements may be assigned; the view must not be kept."""
        return self._data[: self._length]

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
    """Maps integer keys to (value, weight) pairs: a base sorted by key, and a tail that is merged into it at a quarter of its size.

    Adding a pair costs nothing but the pair; a look-up, its answer. A removed pair has weight 0 until the merge.
    """

    def __init__(self, data: Arrays | None = None) -> None:
        self._offsets: NDArray[np.int64] = np.zeros(1, dtype=np.int64) if data is None else data["offsets"]
        self._values: Ints = np.empty(0, dtype=np.int32) if data is None else data["values"]
        self._weights: NDArray[np.int16] = np.empty(0, dtype=np.int16) if data is None else data["weights"]
        self._holed: set[int] = set()
        self._keys: Ints | None = None
        self._clear_tail()

    def _clear_tail(self) -> None:
        self._tail = array("i"), array("i"), array("h")
        self._known: dict[int, array[int]] = {}
        self._known_until = 0
        self._longest_tail = max(_SHORT_TAIL, len(self._values) // _TAIL_SHARE)

    def add(self, keys: Integers, values: Integers, weights: Integers) -> None:
        """Add pairs, or one; no weight may be 0."""
        for part, new in zip(self._tail, (keys, values, weights), strict=True):
            part.frombytes(np.asarray(new, dtype=part.typecode).tobytes())
        if len(self._tail[0]) > self._longest_tail:
            self._merge()

    def _places(self, key: int) -> array[int] | None:
        """Return where in the tail a key is. Found at the first look-up after additions, so that adding many costs little."""
        keys, known = self._tail[0], self._known
        if self._known_until < len(keys):
            for place in range(self._known_until, len(keys)):
                places = known.get(keys[place])
                if places is None:
                    places = known[keys[place]] = array("i")
                places.append(place)
            self._known_until = len(keys)
        return known.get(key)

    def remove(self, key: int, value: int, weight: int | None = None) -> None:
        """Remove the pairs of a key with this value, or only those that also have this weight; costs one pass over the key's pairs."""
        start, end = self._range(key)
        values, weights = self._values[start:end], self._weights[start:end]
        found = (values == value) & (weights == weight if weight is not None else weights != 0)
        if found.any():
            weights[found] = 0
            self._holed.add(key)
        for place in self._places(key) or ():
            if self._tail[1][place] == value and weight in (None, self._tail[2][place]):
                self._tail[2][place] = 0

    def remove_value(self, value: int) -> None:
        """Remove every pair with this value; costs one pass over all pairs."""
        found = [keys[values == value] for keys, values, _ in self._parts()]
        for key in np.unique(np.concatenate(found)).tolist():
            self.remove(key, value)

    def remove_key(self, key: int) -> None:
        """Remove every pair with this key."""
        start, end = self._range(key)
        self._weights[start:end] = 0
        self._holed.add(key)
        for place in self._places(key) or ():
            self._tail[2][place] = 0

    def get(self, key: int) -> tuple[Ints, NDArray[np.int16]]:
        """Return the (values, weights) of a key, in the order they were added. Callers must not change them."""
        start, end = self._range(key)
        values, weights = self._values[start:end], self._weights[start:end]
        places = self._places(key)
        if places is None and key not in self._holed:
            return values, weights
        if places is not None:
            late = np.frombuffer(places, dtype=np.int32)
            values = np.concatenate([values, np.frombuffer(self._tail[1], dtype=np.int32)[late]])
            weights = np.concatenate([weights, np.frombuffer(self._tail[2], dtype=np.int16)[late]])
        kept = weights != 0
        return (values, weights) if kept.all() else (values[kept], weights[kept])

    def __contains__(self, key: int) -> bool:
        """Return whether a key has a value."""
        return len(self.get(key)[0]) > 0

    def pairs(self, weight: int, *, to: NDArray[np.bool_] | None = None) -> tuple[Ints, Ints]:
        """Return the (keys, values) of all pairs of this weight, or of those with a masked value; one pass over all pairs."""
        found = []
        for keys, values, weights in self._parts():
            has = weights == weight
            if to is not None:
                has &= to[values]
            found.append((keys[has], values[has]))
        return (
            found[0]
            if len(found) == 1
            else (np.concatenate([keys for keys, _ in found]), np.concatenate([values for _, values in found]))
        )

    def every(self) -> tuple[Ints, Ints, NDArray[np.int16]]:
        """Return the keys, values and weights of all pairs."""
        keys, values, weights = (np.concatenate(parts) for parts in zip(*self._parts(), strict=True))
        kept = weights != 0
        return (keys, values, weights) if kept.all() else (keys[kept], values[kept], weights[kept])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the pairs as flat arrays, for a snapshot: those of key k are at ``offsets[k]`` to ``offsets[k + 1]``."""
        if self._tail[0] or self._holed:
            self._merge()
        return {"offsets": self._offsets, "values": self._values, "weights": self._weights}

    def _range(self, key: int) -> tuple[int, int]:
        if 0 <= key < len(self._offsets) - 1:
            return int(self._offsets[key]), int(self._offsets[key + 1])
        return 0, 0

    def _parts(self) -> Iterator[tuple[Ints, Ints, NDArray[np.int16]]]:
        """Yield keys, values and weights of the base and of the tail, removed pairs (of weight 0) included."""
        if self._keys is None:
            self._keys = np.repeat(np.arange(len(self._offsets) - 1, dtype=np.int32), np.diff(self._offsets))
        yield self._keys, self._values, self._weights
        if self._tail[0]:
            keys, values = (np.frombuffer(part, dtype=np.int32) for part in self._tail[:2])
            yield keys, values, np.frombuffer(self._tail[2], dtype=np.int16)

    def _merge(self) -> None:
        keys, values, weights = self.every()
        order = np.argsort(keys, kind="stable")
        self._values, self._weights = values[order], weights[order]
        self._offsets = np.concatenate([[0], np.cumsum(np.bincount(keys))]).astype(np.int64)
        self._keys = None
        self._holed.clear()
        self._clear_tail()


class Sequences:
    """One list of term codes per slot, all in one array. A slot's old list stays in the array until the next snapshot."""

    def __init__(self, data: Arrays | None = None) -> None:
        self._starts = GrowingArray(np.int64, None if data is None else data["starts"])
        self._lengths = GrowingArray(np.int32, None if data is None else data["lengths"])
        self._codes = GrowingArray(np.int32, None if data is None else data["codes"])

    def put(self, slots: Ints, lengths: Ints, codes: Ints) -> None:
        """Set the terms of slots: each one's are so many of the codes, which follow each other."""
        more = int(slots.max()) + 1 - len(self._starts)
        if more > 0:
            self._starts.extend(np.zeros(more, dtype=np.int64))
            self._lengths.extend(np.zeros(more, dtype=np.int32))
        self._starts.values[slots] = len(self._codes) + np.cumsum(lengths) - lengths
        self._lengths.values[slots] = lengths
        self._codes.extend(codes)

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


class Names:
    """Assigns small integers to strings, in the order of their first use."""

    def __init__(self, names: list[str] | None = None) -> None:
        self.names = names or []
        self._codes = _Codes(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def codes(self, names: Iterable[str]) -> list[int]:
        """Return the codes of names, assigning them if necessary."""
        return list(map(self._codes.__getitem__, names))

    def code(self, name: str) -> int:
        """Return a name's code, assigning one if necessary."""
        return self._codes[name]

    def find(self, name: str | None) -> int:
        """Return a name's code, −1 if it has none."""
        return self._codes.get(name, -1) if name is not None else -1


class _Codes(dict[str, int]):
    """The places of names in a list, to which an unknown one is added."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(zip(names, range(len(names)), strict=True))
        self._names = names

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self._names)
        self._names.append(name)
        return code
