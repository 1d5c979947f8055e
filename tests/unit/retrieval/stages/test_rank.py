"""Only as many slots are sorted as are asked for, and the order is that of sorting all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memgraph.retrieval.stages.rank import best


def index_of(count: int, rng: np.random.Generator) -> Any:
    return SimpleNamespace(ids=SimpleNamespace(names=[f"{n:05d}" for n in rng.permutation(count)]))


@pytest.mark.parametrize("count", [0, 1, 5, 99, 100, 101, 5_000])
@pytest.mark.parametrize("levels", [1, 3, 1_000_000])
def test_the_best_are_those_of_a_full_sort(count: int, levels: int) -> None:
    rng = np.random.default_rng(count + levels)
    index = index_of(300, rng)
    scores = rng.integers(0, levels, 300) / levels
    mask = np.zeros(300, dtype=np.bool_)
    mask[rng.permutation(300)[:100]] = True

    every = sorted(np.flatnonzero(mask).tolist(), key=lambda s: (-round(float(scores[s]), 6), index.ids.names[s]))

    assert best(index, scores, np.flatnonzero(mask), count) == every[:count]


def test_scores_equal_after_rounding_are_ordered_by_id() -> None:
    index: Any = SimpleNamespace(ids=SimpleNamespace(names=["b", "a", "c"]))
    scores = np.array([0.5 + 1e-9, 0.5, 0.1])

    assert best(index, scores, np.arange(3), 2) == [1, 0]
    assert best(index, scores, np.arange(0), 2) == []
