"""Vectors that no event names yet are resumed up to the first that does not match."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memgraph.errors import StorageError
from memgraph.journal.vectors import MadeVectors, VectorFile

FIRST = 3


def vectors(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 4)).astype(np.float32)


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    """A file with three rows that events name."""
    file = VectorFile(tmp_path / "vectors", "a/model:7b", 4)
    file.write(0, vectors(FIRST, seed=9))
    return file


@pytest.fixture
def rows(file: VectorFile) -> Path:
    return file.path.with_suffix(".rows.jsonl")


def made(file: VectorFile) -> MadeVectors:
    """Two batches of two."""
    kept = MadeVectors(file, FIRST)
    kept.add([("a", "A"), ("b", "B")], vectors(2))
    kept.add([("c", "C"), ("d", "D")], vectors(2, seed=2))
    return kept


def taken_up(file: VectorFile, first: int = FIRST) -> list[str]:
    kept = MadeVectors(file, first)
    return [name for name in "abcd" if kept.row(name, name.upper())]


def test_a_later_run_resumes_with_the_stored_vectors(file: VectorFile, rows: Path) -> None:
    before = made(file)
    again = MadeVectors(file, FIRST)
    for name in "abcd":
        assert again.row(name, name.upper()) == before.row(name, name.upper())
    assert [again.row(name, name.upper()).row for name in "abcd"] == [3, 4, 5, 6]
    assert again.row("a", "another text") is None
    assert again.row("x", "X") is None
    again.add([("a", "A2")], vectors(1, seed=3))
    assert (again.row("a", "A"), again.row("a", "A2").row) == (None, 7)
    assert rows.stat().st_mode & 0o777 == file.path.stat().st_mode & 0o777 == 0o600
    assert np.array_equal(file.rows(FIRST), vectors(FIRST, seed=9))


@pytest.mark.parametrize(
    ("harm", "left"),
    [
        (lambda rows, _: rows.write_bytes(rows.read_bytes()[:-1]), ["a", "b", "c"]),
        (lambda rows, _: rows.write_bytes(rows.read_bytes()[:-30]), ["a", "b", "c"]),
        (lambda rows, _: rows.write_bytes(b"{}\n" + rows.read_bytes()), []),
        (lambda rows, _: rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[1:])), []),
        (lambda rows, _: rows.write_bytes(b'["a", "A", 3, null]\n'), []),
        (lambda _, path: path.write_bytes(path.read_bytes()[:-1]), ["a", "b", "c"]),
        (lambda _, path: path.write_bytes(path.read_bytes()[:-33] + b"x" + path.read_bytes()[-32:]), ["a"]),
        (lambda _, path: path.unlink(), []),
    ],
    ids=["no end", "torn", "foreign", "first gone", "no hash", "torn row", "another row", "no rows"],
)
def test_rows_that_do_not_match_are_removed_and_computed_again(
    file: VectorFile, rows: Path, harm: Callable[[Path, Path], object], left: list[str]
) -> None:
    made(file)
    harm(rows, file.path)
    assert taken_up(file) == left
    assert len(rows.read_bytes().splitlines()) == len(left)
    MadeVectors(file, FIRST).add([("z", "Z")], vectors(1, seed=5))
    assert MadeVectors(file, FIRST).row("z", "Z").row == FIRST + len(left)


def test_rows_that_events_name_by_now_are_not_resumed(file: VectorFile) -> None:
    made(file)
    assert taken_up(file, FIRST + 2) == []


def test_a_vector_of_another_dimension_is_refused(file: VectorFile) -> None:
    made(file)
    assert taken_up(VectorFile(file.path.parent, file.model, 8)) == []


def test_the_list_is_removed_once(file: VectorFile, rows: Path) -> None:
    kept = made(file)
    kept.forget()
    kept.forget()
    assert not rows.exists()


def test_an_unreadable_list_is_an_error(file: VectorFile, rows: Path) -> None:
    rows.mkdir()
    with pytest.raises(StorageError, match="rows"):
        MadeVectors(file, FIRST)
