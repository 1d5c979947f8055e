"""Damaged rows are found by what the events name, however these are read."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memgraph.errors import StorageError
from memgraph.journal.vectors import DamagedRow, NamedRows, VectorFile, holds
from memgraph.model.events.memories import MemoryAdded, VectorRef
from memgraph.model.events.reembedding import MemoryReembedded, PlacedVector, VectorsLost
from memgraph.model.events.store import EmbeddingSwitched
from memgraph.testing import FakeEmbedder

NOW = "2026-01-01T00:00:00.000Z"
Added = Callable[[int], MemoryAdded]


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    return VectorFile(tmp_path, "m", 4)


@pytest.fixture
def named(file: VectorFile, added: Added) -> tuple[NamedRows, list[str]]:
    """Five rows of a file, and their SHA-256."""
    hashes = file.write(0, np.arange(1, 21, dtype=np.float32).reshape(5, 4))
    named = NamedRows()
    named.take(EmbeddingSwitched(model="m", dimension=4))
    for row, sha256 in enumerate(hashes):
        vector = VectorRef(model="m", row=row, sha256=sha256)
        named.take(added(row).model_copy(update={"vector": vector}))
    return named, hashes


def found(named: NamedRows, file: VectorFile) -> list[tuple[int, str]]:
    return [(one.row, one.problem) for one in named.damaged(partial(VectorFile, file.path.parent))]


def test_an_undamaged_file_has_no_damaged_rows(named: tuple[NamedRows, list[str]], file: VectorFile) -> None:
    assert found(named[0], file) == []
    assert len(named[0]) == 5
    assert all(holds(file, row, sha256) for row, sha256 in enumerate(named[1]))


def test_each_kind_of_damage_is_named(named: tuple[NamedRows, list[str]], file: VectorFile, added: Added) -> None:
    rows = np.fromfile(file.path, dtype="<f4").reshape(5, 4)
    rows[0], rows[1, 2], rows[3, 0] = 0.0, np.inf, 7.0
    file.path.write_bytes(rows.tobytes()[:-1])
    assert found(named[0], file) == [(0, "all zeros"), (1, "not finite"), (3, "differs"), (4, "missing")]
    first = next(named[0].damaged(partial(VectorFile, file.path.parent)))
    assert first == DamagedRow("m", 0, added(0).memory.id, named[1][0], "all zeros")
    assert not holds(file, 4, named[1][4])
    file.path.unlink()
    assert found(named[0], file) == [(row, "missing") for row in range(5)]


def test_a_lost_row_is_not_checked_until_an_event_names_it_again(
    named: tuple[NamedRows, list[str]], file: VectorFile, added: Added
) -> None:
    rows, hashes = named
    file.path.unlink()
    rows.take(VectorsLost(model="m", rows=[0, 1, 2, 4], recorded_at=NOW))
    rows.take(VectorsLost(model="other", rows=[3], recorded_at=NOW))
    assert found(rows, file) == [(3, "missing")]
    again = PlacedVector(id=added(1).memory.id, row=1, sha256=hashes[1])
    rows.take(MemoryReembedded(model="m", embedded_at=NOW, vectors=[again]))
    assert found(rows, file) == [(1, "missing"), (3, "missing")]
    assert len(rows) == 2


def test_an_unreadable_file_is_an_error_and_not_damage(named: tuple[NamedRows, list[str]], file: VectorFile) -> None:
    file.path.unlink()
    file.path.mkdir()
    with pytest.raises(StorageError, match="cannot be read"):
        found(named[0], file)


def test_lines_and_events_name_the_same_rows(store: Any) -> None:
    ids = [store.insert_memory({"type": "episodic", "content": f"try {n}"}).id for n in range(4)]
    store.update_memory(ids[0], content="another text")
    store.delete_memory(ids[1])
    store.undelete(ids[1])
    store.reembed(FakeEmbedder(8, "new"))
    path = store._journal.vectors("fake", 64).path
    path.write_bytes(bytes(path.stat().st_size))
    assert store.repair_vectors().lost == 5
    told = NamedRows()
    for commit in store._journal.replay():
        for event in commit.events:
            told.take(event.payload)
    read = NamedRows.of_lines(store._journal.lines())
    assert (read._named, read._dimensions, read._lost) == (told._named, told._dimensions, told._lost)
    assert len(read) == 4


def test_progress_is_reported(file: VectorFile) -> None:
    hashes = file.write(0, np.ones((2_500, 4), dtype=np.float32))
    named = NamedRows()
    named.take(EmbeddingSwitched(model="m", dimension=4))
    placed = [
        PlacedVector(id=f"{row:08x}-0000-4000-8000-000000000000", row=row, sha256=one) for row, one in enumerate(hashes)
    ]
    for start in (0, 1_000, 2_000):
        named.take(MemoryReembedded(model="m", embedded_at=NOW, vectors=placed[start : start + 1_000]))
    told: list[tuple[int, int | None]] = []
    assert list(named.damaged(partial(VectorFile, file.path.parent), lambda *counts: told.append(counts))) == []
    assert told == [(1_000, 2_500), (2_000, 2_500)]
