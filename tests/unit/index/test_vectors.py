"""The first pass over many vectors: what is found, and what is said of the rest, is what exact cosines say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from memgraph.index.vectors import VectorSearch

DIMENSION, COUNT, TOPICS = 100, 30_000, 60


class File:
    """Rows in memory, in place of the journal's file."""

    dimension, epoch = DIMENSION, 0

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    def rows(self, count: int) -> Any:
        return self.matrix[:count]


@pytest.fixture(scope="module")
def vectors() -> Any:
    """Vectors around topics, away from the origin, and of different lengths, as a model's may be."""
    chance = np.random.default_rng(7)
    topics, noise = chance.standard_normal((TOPICS, DIMENSION)), chance.standard_normal((COUNT, DIMENSION))
    lengths = chance.uniform(0.5, 2.0, (COUNT, 1))
    return (lengths * (topics[chance.integers(TOPICS, size=COUNT)] + noise + 0.2)).astype(np.float32)


def queries(vectors: Any) -> Any:
    noise = np.random.default_rng(8).standard_normal((50, DIMENSION))
    return (vectors[:: COUNT // 50] + noise).astype(np.float32)


def test_the_best_of_many_are_those_of_exact_cosines(vectors: Any) -> None:
    search, rows, shared = VectorSearch(File(vectors)), np.arange(COUNT, dtype=np.int32), []
    for query in queries(vectors):
        exact, near = search.cosines(query, rows, COUNT), search.near_cosines(query, rows, COUNT)
        best, found = (np.argsort(-values, kind="stable")[:10] for values in (exact, near))
        np.testing.assert_allclose(near[found], exact[found], atol=1e-6)
        shared.append(len({*best.tolist()} & {*found.tolist()}) / 10)
        assert near.mean() == pytest.approx(exact.mean(), abs=0.01)
        assert near.std() == pytest.approx(exact.std(), rel=0.1)
    assert np.mean(shared) >= 0.99


def test_rows_in_another_order_and_late_rows_are_found_too(vectors: Any) -> None:
    search = VectorSearch(File(vectors))
    rows = np.random.default_rng(9).permutation(COUNT - 100)[: COUNT - 1_000].astype(np.int32)
    search.near_cosines(vectors[0], rows, COUNT - 100)  # takes the signs of the first rows
    rows = np.append(rows, np.arange(COUNT - 100, COUNT, dtype=np.int32))
    for place in (5, len(rows) - 3):
        near = search.near_cosines(vectors[rows[place]], rows, COUNT)
        assert near.argmax() == place
        assert near[place] == pytest.approx(1.0, abs=1e-6)


def test_a_file_with_missing_rows_is_compared_exactly(vectors: Any) -> None:
    search, rows = VectorSearch(File(vectors[:-500])), np.arange(COUNT, dtype=np.int32)
    np.testing.assert_array_equal(search.near_cosines(vectors[3], rows, COUNT), search.cosines(vectors[3], rows, COUNT))
