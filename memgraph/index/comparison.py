"""Compares two indexes of the same memories by names and ids, because slots and codes may differ between indexes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.index.arrays import Multimap, Names
from memgraph.index.columns import COLUMNS
from memgraph.index.index import Index

_NAMED = ("project", "session", "task", "domain", "speaker", "vector_model")
_SLOTS = ("previous", "following")
_BY_NAME = {
    "postings": "vocabulary",
    "mentions": "entities",
    "agents": "agent_names",
    "tags": "tag_names",
    "triggers": "vocabulary",
}
"""Multimaps from a name's code to slots, and the attribute that holds the names."""
_OF_SLOTS = {"named": "entities", "tagged": "tag_names"}
"""Multimaps from slots to a name's code."""
Codes = NDArray[np.int64]


def differences(given: Index, built: Index) -> Iterator[tuple[str, str, str]]:
    """Yield (memory id, part, problem) for every difference between `given` and `built`.

    Parts are columns (``anchor``), and ``postings``, ``mentions``, ``agents``, ``tags``, ``triggers``, ``named``, ``tagged``,
    ``sequences``, ``links``. Linear in the size of both.
    """
    ours, theirs = _live(given), _live(built)
    yield from ((memory_id, "memory", "missing") for memory_id in theirs if memory_id not in ours)
    yield from ((memory_id, "memory", "not in the journal") for memory_id in ours if memory_id not in theirs)
    common = [memory_id for memory_id in theirs if memory_id in ours]
    own = np.array([ours[memory_id] for memory_id in common], dtype=np.int64)
    other = np.array([theirs[memory_id] for memory_id in common], dtype=np.int64)
    slots = np.full(len(given) + 1, -1, dtype=np.int64)  # slots of `built` by slot of `given`; the last entry is for −1
    slots[own] = other
    live = np.full(len(built) + 1, -1, dtype=np.int64)
    live[other] = other
    for name in COLUMNS:
        mine, right = given.column(name)[own], built.column(name)[other]
        if name in _NAMED:
            mine = _translation(given.scopes, built.scopes)[mine]
        elif name in _SLOTS:
            mine, right = slots[mine], live[right]
        yield from ((common[place], name, "differs") for place in np.flatnonzero(mine != right).tolist())
    id_of = dict(zip(other.tolist(), common, strict=True))
    for kind, names in _BY_NAME.items():
        codes, same = _translation(getattr(given, names), getattr(built, names)), _identity(getattr(built, names))
        mine, right = _pairs(getattr(given, kind), codes, slots), _pairs(getattr(built, kind), same, live)
        yield from ((id_of[slot], kind, "differs") for slot in _only_in_one(mine, right)[:, 1].tolist())
    for kind, names in _OF_SLOTS.items():
        codes, same = _translation(getattr(given, names), getattr(built, names)), _identity(getattr(built, names))
        mine, right = _pairs(getattr(given, kind), slots, codes), _pairs(getattr(built, kind), live, same)
        yield from ((id_of[slot], kind, "differs") for slot in _only_in_one(mine, right)[:, 0].tolist())
    codes = _translation(given.vocabulary, built.vocabulary)
    for memory_id, mine_at, right_at in zip(common, own.tolist(), other.tolist(), strict=True):
        if not np.array_equal(codes[given.sequences.get(mine_at)], built.sequences.get(right_at)):
            yield memory_id, "sequences", "differs"
    mine, right = _pairs(given.links, slots, slots), _pairs(built.links, live, live)
    yield from ((id_of[slot], "links", "differs") for slot in _only_in_one(mine, right)[:, 0].tolist())


def _live(index: Index) -> dict[str, int]:
    return {index.ids.names[slot]: slot for slot in np.flatnonzero(index.column("is_live")).tolist()}


def _translation(given: Names, built: Names) -> Codes:
    """Return the code in `built` for each code of `given`; names missing there get higher codes; −1 stays −1."""
    codes = [built.find(name) for name in given.names]
    return np.array([code if code >= 0 else len(built) + own for own, code in enumerate(codes)] + [-1], dtype=np.int64)


def _identity(names: Names) -> Codes:
    codes: Codes = np.append(np.arange(len(names), dtype=np.int64), -1)
    return codes


def _pairs(pairs: Multimap, keys: Codes, values: Codes) -> Codes:
    """Return (key, value, weight) rows, translated to the given codes, without those of dead slots."""
    held: dict[str, NDArray[Any]] = pairs.arrays()
    table: Codes = np.stack([keys[held["keys"]], values[held["values"]], held["weights"].astype(np.int64)], axis=1)
    alive: Codes = table[(table[:, 0] >= 0) & (table[:, 1] >= 0)]
    return alive


def _only_in_one(mine: Codes, right: Codes) -> Codes:
    """Return, once each, the rows whose multiplicity differs."""
    if len(mine) == len(right):
        order = [np.lexsort(table.T) for table in (mine, right)]
        if np.array_equal(mine[order[0]], right[order[1]]):
            return mine[:0]
    rows, inverse = np.unique(np.concatenate([mine, right]), axis=0, return_inverse=True)
    signs = np.concatenate([np.ones(len(mine), dtype=np.int64), -np.ones(len(right), dtype=np.int64)])
    uneven: Codes = rows[np.bincount(inverse.ravel(), weights=signs, minlength=len(rows)) != 0]
    return uneven
