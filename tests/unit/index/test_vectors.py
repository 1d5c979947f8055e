"""From many vectors on a search estimates most cosines, and finds the same nearest ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from memgraph.index import vectors
from memgraph.index.vectors import VectorSearch
from memgraph.journal.vectors.vector_file import VectorFile

DIMENSION, COUNT = 256, 24_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> VectorFile:
    """Vectors in clusters, as those of texts about the same matters."""
    chance = np.random.default_rng(7)
    centres = chance.normal(size=(60, DIMENSION)) + 0.3
    rows = centres[chance.integers(60, size=COUNT)] + chance.normal(size=(COUNT, DIMENSION))
    made = VectorFile(tmp_path_factory.mktemp("vectors"), "model", DIMENSION)
    made.write(0, rows.astype(np.float32))
    return made


def nearest(cosines: np.ndarray) -> list[int]:
    return np.argsort(-np.round(cosines, 6), kind="stable")[:10].tolist()


def queries(count: int = 20) -> np.ndarray:
    """Vectors near some of the file's."""
    return np.random.default_rng(8).normal(size=(count, DIMENSION)).astype(np.float32)


def test_the_nearest_are_those_of_an_exact_search(file: VectorFile) -> None:
    search, rows = VectorSearch(file), np.arange(COUNT, dtype=np.int32)
    common = 0
    for number, noise in enumerate(queries()):
        query = search.vector(number * 1_000, COUNT) + noise
        exact, found = search.cosines(query, rows, COUNT), search.near(query, rows, COUNT, np.ones(COUNT))
        assert found.is_exact is not None
        assert found.is_exact.sum() < COUNT / 4
        assert np.allclose(found.cosines[found.is_exact], exact[found.is_exact], atol=1e-6)
        common += len({*nearest(exact)} & {*nearest(found.cosines)})
    assert common >= 198


def test_masked_rows_alone_are_searched(file: VectorFile) -> None:
    search, rows = VectorSearch(file), np.arange(1, COUNT, dtype=np.int32)
    query = search.vector(0, COUNT)
    assert query is not None
    found = search.near(query, rows, COUNT, np.ones(len(rows)))
    assert nearest(found.cosines) == nearest(search.cosines(query, rows, COUNT))


def test_few_rows_are_compared_exactly(file: VectorFile) -> None:
    rows = np.arange(vectors.SKETCHED_FROM - 1, dtype=np.int32)
    assert VectorSearch(file).near(queries(1)[0], rows, COUNT, np.ones(len(rows))).is_exact is None


def test_a_search_that_saw_the_rows_grow_gives_what_a_new_one_gives(tmp_path: Path, file: VectorFile) -> None:
    growing, rows = VectorFile(tmp_path, "model", DIMENSION), file.rows(COUNT)
    growing.write(0, rows[:-70])
    search, query = VectorSearch(growing), rows[-1] + 0.1
    for count in range(COUNT - 70, COUNT + 1, 7):
        growing.write(count - 7, rows[count - 7 : count])
        slots = np.arange(count, dtype=np.int32)
        found = search.near(query, slots, count, np.ones(count))
        assert found.is_exact is not None
    again = VectorSearch(growing).near(query, slots, COUNT, np.ones(COUNT))
    assert np.array_equal(np.round(found.cosines, 6), np.round(again.cosines, 6))
    assert nearest(found.cosines)[0] == COUNT - 1


def test_a_row_that_is_damaged_later_counts_as_no_vector_when_it_is_compared(tmp_path: Path, file: VectorFile) -> None:
    rows, slots = file.rows(COUNT), np.arange(COUNT, dtype=np.int32)
    damaged = VectorFile(tmp_path, "model", DIMENSION)
    damaged.write(0, rows)
    search = VectorSearch(damaged)
    assert nearest(search.near(rows[5], slots, COUNT, np.ones(COUNT)).cosines)[0] == 5
    damaged.restore({5: np.zeros(DIMENSION, dtype=np.float32)}, row_count=COUNT)
    assert 5 not in nearest(search.near(rows[5], slots, COUNT, np.ones(COUNT)).cosines)
    search.look_again()
    assert not search.has_vector(slots, COUNT)[5]
