"""Vectors are stored beside the journal, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memgraph.errors import InvalidInputError, StorageError, VectorDamageError
from memgraph.journal.vectors import NamedVectors, VectorFile, row_sha256
from memgraph.model.events.memories import MemoryAdded, VectorRef
from memgraph.model.events.store import EmbeddingSwitched

DIMENSION = 64
ODD = np.array([1e-45, -1e-45, 3.4028235e38, -0.0, 1 / 3, 1.1754944e-38, *range(DIMENSION - 6)], dtype=np.float32)


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    return VectorFile(tmp_path / "vectors", "a-model", 4)


def some(count: int, seed: int = 1, dimension: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


def test_rows_come_back_bit_for_bit(file: VectorFile) -> None:
    vectors = some(5)
    digests = file.write(0, vectors)
    assert file.rows(5).tobytes() == vectors.tobytes()
    assert digests == [row_sha256(row) for row in vectors]
    assert file.path.read_bytes() == vectors.astype("<f4").tobytes()
    assert file.path.stat().st_mode & 0o077 == 0


def test_rows_are_read_only(file: VectorFile) -> None:
    file.write(0, some(2))
    with pytest.raises(ValueError, match="read-only"):
        file.rows(2)[0] = 0


def test_other_layouts_are_written_the_same(file: VectorFile) -> None:
    vectors = np.asfortranarray(some(3).astype(">f4"))
    file.write(0, vectors)
    assert np.array_equal(file.rows(3), vectors)


def test_rows_written_later_are_seen(file: VectorFile) -> None:
    first, second = some(2, 1), some(3, 2)
    file.write(0, first)
    assert len(file.rows(2)) == 2
    file.write(2, second)
    assert np.array_equal(file.rows(5), np.concatenate([first, second]))
    assert len(file.rows(1)) == 1


def test_what_a_torn_commit_left_behind_is_overwritten(file: VectorFile) -> None:
    kept, torn, new = some(2, 1), some(3, 2), some(1, 3)
    file.write(0, kept)
    file.write(2, torn)
    assert len(file.rows(5)) == 5
    file.write(2, new)
    assert np.array_equal(file.rows(3), np.concatenate([kept, new]))
    assert np.array_equal(VectorFile(file.path.parent, "a-model", 4).rows(3), np.concatenate([kept, new]))


@pytest.mark.parametrize("size", [0, 15, 16, 47])
def test_a_truncated_file_serves_its_whole_rows(file: VectorFile, size: int) -> None:
    vectors = some(3)
    file.write(0, vectors)
    assert len(file.rows(3)) == 3
    file.path.write_bytes(file.path.read_bytes()[:size])
    for again in (file, VectorFile(file.path.parent, "a-model", 4)):
        assert np.array_equal(again.rows(3), vectors[: size // 16])
        assert again.available() == size // 16


def test_a_missing_file_has_no_rows(file: VectorFile) -> None:
    assert len(file.rows(0)) == len(file.rows(1)) == file.available() == 0
    file.write(0, some(2))
    assert len(file.rows(2)) == 2
    file.path.unlink()
    assert len(file.rows(2)) == file.available() == 0


def test_truncating_or_replacing_the_file_changes_the_epoch(file: VectorFile) -> None:
    file.write(0, some(3))
    file.rows(3)
    file.write(3, some(1))
    file.rows(4)
    assert file.epoch == 0, "it has only grown"
    file.path.write_bytes(file.path.read_bytes()[:16])
    file.rows(4)
    other = VectorFile(file.path.parent, "other", 4)
    other.write(0, some(4, seed=2))
    other.path.replace(file.path)
    assert np.array_equal(file.rows(4), some(4, seed=2))
    assert file.epoch == 2


def test_a_file_that_cannot_be_read_is_refused(file: VectorFile) -> None:
    file.write(0, some(1))
    file.path.unlink()
    file.path.mkdir()
    (file.path / "x").touch()
    for read in (lambda: file.rows(1), lambda: file.stored(0)):
        with pytest.raises(StorageError, match="cannot be read"):
            read()


@pytest.mark.parametrize("size", [0, 16, 25, 47, None])
def test_missing_and_torn_rows_before_a_write_become_zeros(file: VectorFile, size: int | None) -> None:
    vectors = some(4)
    file.write(0, vectors[:3])
    if size is None:
        file.path.unlink()
    else:
        file.path.write_bytes(file.path.read_bytes()[:size])
    file.write(3, vectors[3:])
    kept = (size or 0) // 16
    assert np.array_equal(file.rows(4)[:kept], vectors[:kept])
    assert not file.rows(4)[kept:3].any()
    assert np.array_equal(file.rows(4)[3], vectors[3])

    file.restore({1: vectors[1]}, row_count=4)
    assert np.array_equal(file.rows(4)[1], vectors[1])
    file.restore({0: vectors[0], 2: vectors[2]}, row_count=4)
    assert file.rows(4).tobytes() == vectors.tobytes()
    assert (file.stored(2), file.stored(4)) == (vectors[2].tobytes(), b"")


def test_each_model_has_its_own_file(tmp_path: Path) -> None:
    names = ["a", "a/b", "a:b", "../a", "..", ".", "A", "x" * 300, "ünï", "a b", "con", "\x00"]
    paths = [VectorFile(tmp_path, name, 4).path for name in names]
    assert len(set(paths)) == len(names)
    for path in paths:
        assert path.parent == tmp_path
        assert len(path.name) < 120
        path.touch()


class TestInAStore:
    def test_a_given_vector_is_kept_bit_for_bit(self, open_store: Callable[..., Any], tmp_path: Path) -> None:
        store = open_store()
        memory = store.insert_memory({"type": "episodic", "content": "x", "embedding": ODD})
        assert memory.embedding.tobytes() == ODD.tobytes()
        store.close()
        assert (tmp_path / "store" / "journal" / "vectors" / "fake.f32").read_bytes() == ODD.tobytes()
        again = open_store()
        assert again.get_memory(memory.id).embedding.tobytes() == ODD.tobytes()
        again.verify()

    @pytest.mark.parametrize(
        "vector", [np.zeros(64), np.full(64, np.nan), np.full(64, np.inf), np.ones(63), np.ones((1, 64)), []]
    )
    def test_an_invalid_vector_is_refused_before_anything_is_written(
        self, store: Any, tmp_path: Path, vector: Any
    ) -> None:
        before = {path: path.read_bytes() for path in (tmp_path / "store" / "journal").rglob("*") if path.is_file()}
        with pytest.raises(InvalidInputError, match="embedding"):
            store.insert_memory({"type": "episodic", "content": "x", "embedding": vector})
        after = {path: path.read_bytes() for path in (tmp_path / "store" / "journal").rglob("*") if path.is_file()}
        assert after == before

    def test_a_failed_commit_leaves_no_named_row(
        self, store: Any, monkeypatch: pytest.MonkeyPatch, vector_at: Callable[..., Any]
    ) -> None:
        kept = store.insert_memory({"type": "episodic", "content": "kept", "embedding": vector_at(0.1)})
        with monkeypatch.context() as patched:
            patched.setattr(store._journal, "append", _broken)
            with pytest.raises(OSError, match="broken"):
                store.insert_memory({"type": "episodic", "content": "lost", "embedding": vector_at(0.2)})
        new = store.insert_memory({"type": "episodic", "content": "new", "embedding": vector_at(0.3)})
        assert store.get_memory(kept.id).embedding.tobytes() == vector_at(0.1).tobytes()
        assert store.get_memory(new.id).embedding.tobytes() == vector_at(0.3).tobytes()
        assert (store._journal.folder / "vectors" / "fake.f32").stat().st_size == 2 * 64 * 4
        store.verify()

    def test_a_changed_row_is_found_by_verify(self, store: Any, open_store: Callable[..., Any], tmp_path: Path) -> None:
        ids = [store.insert_memory({"type": "episodic", "content": f"memory {n}"}).id for n in range(3)]
        store.verify()
        store.close()
        path = tmp_path / "store" / "journal" / "vectors" / "fake.f32"
        data = bytearray(path.read_bytes())
        data[64 * 4 + 5] ^= 1
        path.write_bytes(bytes(data))
        with pytest.raises(VectorDamageError) as refused:
            open_store().verify()
        assert (refused.value.row, refused.value.memory_id) == (1, ids[1])

    def test_the_remaining_vectors_of_a_truncated_file_are_served(
        self, store: Any, open_store: Callable[..., Any], tmp_path: Path
    ) -> None:
        ids = [store.insert_memory({"type": "episodic", "content": f"memory {n}"}).id for n in range(3)]
        store.close()
        path = tmp_path / "store" / "journal" / "vectors" / "fake.f32"
        path.write_bytes(path.read_bytes()[:-4])
        again = open_store()
        assert [again.get_memory(one).embedding is None for one in ids] == [False, False, True]


def _broken(*_: Any) -> None:
    raise OSError("broken")


def test_rows_are_counted_by_model(added: Callable[..., MemoryAdded]) -> None:
    named = NamedVectors().after(EmbeddingSwitched(model="m", dimension=4))
    for number, (model, row) in enumerate([("m", 0), ("m", 1), ("m", 5), ("m", 2), ("n", 0)]):
        vector = VectorRef(model=model, row=row, sha256="a" * 64)
        named = named.after(added(number).model_copy(update={"vector": vector}))
    assert named == NamedVectors("m", 4, {"m": 6, "n": 1})
