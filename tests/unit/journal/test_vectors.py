"""Vectors are stored bit for bit; what is searched is a copy of them that is believed only as far as the key vouches for it."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memgraph.errors import InvalidInputError, VectorDamageError
from memgraph.journal.journal import Journal
from memgraph.journal.vectors import DamagedRow, MadeVectors, NamedRows, NamedVectors, Vectors, row_sha256
from memgraph.model.events.memories import MemoryAdded, MemoryReembedded, PlacedVector, VectorRef, VectorsLost
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import EmbeddingSwitched

NOW = "2026-01-01T00:00:00.000Z"
DIMENSION = 64
ODD = np.array([1e-45, -1e-45, 3.4028235e38, -0.0, 1 / 3, 1.1754944e-38, *range(DIMENSION - 6)], dtype=np.float32)
Added = Callable[..., MemoryAdded]
Sql = Callable[..., Any]


@pytest.fixture
def make(journal: Journal) -> Callable[..., Vectors]:
    """Open the vectors of a model, as another process would."""
    return lambda model="a-model", dimension=4: Vectors(
        journal.database, journal.home / "cache", model, dimension, journal.seal
    )


@pytest.fixture
def vectors(make: Callable[..., Vectors]) -> Vectors:
    return make()


def some(count: int, seed: int = 1, dimension: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


def test_rows_come_back_bit_for_bit(vectors: Vectors, sql: Sql) -> None:
    rows = some(5)
    assert vectors.write(0, rows) == [row_sha256(row) for row in rows]
    assert vectors.rows(5).tobytes() == rows.tobytes()
    assert b"".join(value for (value,) in sql("SELECT value FROM vector ORDER BY place")) == rows.tobytes()
    assert b"".join(vectors.blocks(0, 5)) == rows.tobytes()
    assert vectors.path.stat().st_mode & 0o077 == 0


def test_rows_are_read_only(vectors: Vectors) -> None:
    vectors.write(0, some(2))
    with pytest.raises(ValueError, match="read-only"):
        vectors.rows(2)[0] = 0


def test_other_layouts_are_written_the_same(vectors: Vectors) -> None:
    rows = np.asfortranarray(some(3).astype(">f4"))
    vectors.write(0, rows)
    assert np.array_equal(vectors.rows(3), rows)


def test_rows_written_later_or_elsewhere_are_seen(vectors: Vectors, make: Any) -> None:
    first, second = some(2, 1), some(3, 2)
    vectors.write(0, first)
    assert len(vectors.rows(2)) == 2
    make().write(2, second)
    assert np.array_equal(vectors.rows(5), np.concatenate([first, second]))
    assert (len(vectors.rows(1)), vectors.epoch) == (1, 0)


def test_what_a_commit_that_failed_has_written_is_not_served(journal: Journal) -> None:
    vectors, kept, lost, new = journal.vectors("a-model", 4), some(2, 1), some(2, 2), some(2, 3)

    def write(first: int, rows: np.ndarray) -> None:
        with journal.locked(), journal.committing():
            vectors.write(first, rows)
            assert len(vectors.rows(first + 2))
            if rows is lost:
                raise KeyboardInterrupt

    write(0, kept)
    with pytest.raises(KeyboardInterrupt):
        write(2, lost)
    assert vectors.stored(2) == b""
    write(2, new)
    assert np.array_equal(vectors.rows(4), np.concatenate([kept, new]))


def test_a_missing_or_short_row_is_zeros(vectors: Vectors, make: Any, sql: Sql) -> None:
    rows = some(4)
    vectors.write(0, rows)
    sql("DELETE FROM vector WHERE place = 1")
    sql("UPDATE vector SET value = x'00' WHERE place = 2")
    for one in (vectors, make()):
        assert (one.stored(1), one.stored(3)) == (b"", rows[3].tobytes())
        assert np.array_equal(one.rows(4), [rows[0], np.zeros(4), np.zeros(4), rows[3]])
    vectors.restore({1: rows[1], 2: rows[2]})
    vectors.forget()
    assert vectors.rows(4).tobytes() == rows.tobytes()


class TestTheCopy:
    """The file that is searched may be changed by anyone; it is believed as far as its code goes, and else made anew."""

    @pytest.fixture
    def saved(self, vectors: Vectors) -> np.ndarray:
        rows = some(4)
        vectors.write(0, rows)
        vectors.rows(4)
        vectors.save()
        return rows

    def test_it_is_used_again(self, saved: np.ndarray, make: Any, sql: Sql) -> None:
        sql("DELETE FROM vector")
        assert make().rows(4).tobytes() == saved.tobytes()

    @pytest.mark.parametrize("harm", ["flip", "short", "long", "gone", "no note", "note", "count", "other's"])
    def test_a_changed_one_is_made_anew(self, saved: np.ndarray, vectors: Vectors, make: Any, harm: str) -> None:
        path, note = vectors.path, vectors.path.with_suffix(".json")
        data = bytearray(path.read_bytes())
        if harm == "flip":
            data[21] ^= 1
            path.write_bytes(data)
        elif harm in ("short", "long"):
            path.write_bytes(data[:-1] if harm == "short" else data + b"x" * 16)
        elif harm in ("gone", "no note"):
            (path if harm == "gone" else note).unlink()
        elif harm in ("note", "count"):
            note.write_text("{}" if harm == "note" else note.read_text().replace('"rows":4', '"rows":3'))
        else:
            other = make("other")
            other.write(0, some(4, seed=9))
            other.rows(4)
            other.save()
            path.write_bytes(other.path.read_bytes())
            note.write_bytes(other.path.with_suffix(".json").read_bytes())
        assert make().rows(4).tobytes() == saved.tobytes()

    def test_one_that_is_cut_or_replaced_while_it_is_open_is_made_anew(
        self, saved: np.ndarray, vectors: Vectors
    ) -> None:
        vectors.path.unlink()
        assert vectors.rows(4).tobytes() == saved.tobytes()
        assert vectors.epoch == 1

    def test_one_that_is_replaced_while_it_grows_is_made_anew(
        self, saved: np.ndarray, vectors: Vectors, make: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        vectors.write(4, more := some(300, seed=2))
        lock = fcntl.flock

        def late(descriptor: int, operation: int) -> None:
            monkeypatch.setattr(fcntl, "flock", lock)
            other = make()  # another process, before this one has the lock
            other.forget()
            other.rows(2)
            lock(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", late)
        for _ in range(2):
            assert vectors.rows(304).tobytes() == np.concatenate([saved, more]).tobytes()

    def test_where_files_cannot_be_locked_the_rows_stay_in_memory(
        self, saved: np.ndarray, vectors: Vectors, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: Any) -> None:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(fcntl, "flock", refused)
        vectors.write(4, more := some(20, seed=2))
        before = len(list(Path("/dev/fd").iterdir()))
        for count in range(5, 25):
            assert vectors.rows(count).tobytes() == np.concatenate([saved, more])[:count].tobytes()
        assert len(list(Path("/dev/fd").iterdir())) <= before

    def test_it_is_gone_with_what_is_removed(self, saved: np.ndarray, vectors: Vectors, make: Any) -> None:
        vectors.remove([2])
        assert not vectors.path.exists()
        assert not vectors.rows(4)[2].any()
        assert saved[2].tobytes() not in vectors.path.read_bytes()
        assert not make().rows(4)[2].any()

    def test_rows_that_the_table_no_longer_holds_are_not_vouched_for(
        self, saved: np.ndarray, vectors: Vectors, make: Any
    ) -> None:
        new, newer = some(2, seed=2), some(2, seed=3)
        vectors.write(4, new)
        vectors.rows(6)
        make().write(5, newer)  # in a history without the last row, which this process has not read
        vectors.save()
        assert make().rows(7).tobytes() == np.concatenate([saved, new[:1], newer]).tobytes()

    def test_rows_that_were_read_again_are_compared_again(self, saved: np.ndarray, vectors: Vectors, make: Any) -> None:
        make().forget()
        vectors.rows(4)
        make().write(3, new := some(2, seed=2))
        vectors.rows(5)
        vectors.save()
        assert make().rows(5).tobytes() == np.concatenate([saved[:3], new]).tobytes()

    def test_one_that_cannot_be_written_is_done_without(self, saved: np.ndarray, vectors: Vectors, make: Any) -> None:
        vectors.forget()
        vectors.path.mkdir()
        again = make()
        assert again.rows(4).tobytes() == saved.tobytes()
        again.save()


def test_each_model_has_its_own_rows(make: Any) -> None:
    names = ["a", "a/b", "a:b", "../a", "..", ".", "A", "x" * 300, "ünï", "a b", "con", "\x00"]
    paths = [make(name).path for name in names]
    assert len(set(paths)) == len(names)
    for number, (name, path) in enumerate(zip(names, paths, strict=True)):
        assert path.parent == paths[0].parent
        assert len(path.name) < 120
        make(name).write(0, some(1, seed=number))
    for number, name in enumerate(names):
        assert np.array_equal(make(name).rows(1), some(1, seed=number))


class TestMade:
    """Vectors that no event names yet are taken up again as far as they match."""

    FIRST = 3

    @pytest.fixture
    def made(self, journal: Journal, vectors: Vectors) -> Callable[..., MadeVectors]:
        vectors.write(0, some(self.FIRST, seed=9))

        def opened(first: int = self.FIRST, of: Vectors = vectors) -> MadeVectors:
            return MadeVectors(journal.database, of, first)

        kept = opened()
        kept.add([("a", "A"), ("b", "B")], some(2))
        kept.add([("c", "C"), ("d", "D")], some(2, seed=2))
        return opened

    @staticmethod
    def taken_up(kept: MadeVectors) -> list[str]:
        return [name for name in "abcd" if kept.row(name, name.upper())]

    def test_a_later_run_resumes_with_the_stored_vectors(self, made: Any, vectors: Vectors) -> None:
        again = made()
        assert [again.row(name, name.upper()).row for name in "abcd"] == [3, 4, 5, 6]
        assert (again.row("a", "another text"), again.row("x", "X")) == (None, None)
        again.add([("a", "A2")], some(1, seed=3))
        assert (again.row("a", "A"), again.row("a", "A2").row, made().row("a", "A2").row) == (None, 7, 7)
        assert np.array_equal(vectors.rows(self.FIRST), some(self.FIRST, seed=9))

    @pytest.mark.parametrize(
        ("harm", "left"),
        [
            ("DELETE FROM made_vector WHERE memory = 'b'", "acd"),
            ("UPDATE made_vector SET sha256 = 'x' WHERE memory = 'c'", "abd"),
            ("UPDATE made_vector SET place = 4 WHERE memory = 'a'", "bcd"),
            ("UPDATE vector SET value = zeroblob(16) WHERE place = 5", "abd"),
            ("DELETE FROM vector WHERE place > 3", "a"),
            ("DELETE FROM made_vector", ""),
        ],
    )
    def test_rows_that_do_not_match_are_computed_again(self, made: Any, sql: Sql, harm: str, left: str) -> None:
        sql(harm)
        again = made()
        assert self.taken_up(again) == list(left)
        again.add([("z", "Z")], some(1, seed=5))
        places = [made().row(name, name.upper()).row for name in (*left, "z")]
        assert len(set(places)) == len(places)

    def test_rows_that_events_name_by_now_are_not_resumed(self, made: Any) -> None:
        assert self.taken_up(made(self.FIRST + 2)) == ["c", "d"]

    def test_the_list_is_removed_once(self, made: Any, sql: Sql) -> None:
        made().forget()
        made().forget()
        assert self.taken_up(made()) == []
        assert sql("SELECT COUNT(*) FROM vector") == [(7,)]


def take(named: NamedRows, payload: Payload) -> None:
    named.take(payload.TYPE, payload.dump())


class TestNamed:
    """Damaged rows are found by what the events name."""

    @pytest.fixture
    def named(self, vectors: Vectors, added: Added) -> tuple[NamedRows, list[str]]:
        """Five rows, and their SHA-256."""
        hashes = vectors.write(0, np.arange(1, 21, dtype=np.float32).reshape(5, 4))
        named = NamedRows()
        take(named, EmbeddingSwitched(model="a-model", dimension=4))
        for row, sha256 in enumerate(hashes):
            vector = VectorRef(model="a-model", row=row, sha256=sha256)
            take(named, added(row).model_copy(update={"vector": vector}))
        return named, hashes

    @staticmethod
    def found(named: NamedRows, make: Any) -> list[tuple[int, str]]:
        return [(one.row, one.problem) for one in named.damaged(make)]

    def test_undamaged_rows_are_not_reported(self, named: Any, make: Any, vectors: Vectors) -> None:
        assert self.found(named[0], make) == []
        assert len(named[0]) == 5
        assert all(vectors.holds(row, sha256) for row, sha256 in enumerate(named[1]))

    def test_each_kind_of_damage_is_named(self, named: Any, make: Any, added: Added, sql: Sql) -> None:
        for row, values in ((0, [0, 0, 0, 0]), (1, [5, 6, np.inf, 8]), (3, [7, 14, 15, 16])):
            sql("UPDATE vector SET value = ? WHERE place = ?", np.array(values, dtype="<f4").tobytes(), row)
        sql("UPDATE vector SET value = substr(value, 1, 15) WHERE place = 4")
        assert self.found(named[0], make) == [(0, "all zeros"), (1, "not finite"), (3, "differs"), (4, "missing")]
        first = next(named[0].damaged(make))
        assert first == DamagedRow("a-model", 0, added(0).memory.id, named[1][0], "all zeros")
        sql("DELETE FROM vector")
        assert self.found(named[0], make) == [(row, "missing") for row in range(5)]

    def test_a_lost_row_is_not_checked_until_an_event_names_it_again(
        self, named: Any, make: Any, added: Added, sql: Sql
    ) -> None:
        rows, hashes = named
        sql("DELETE FROM vector")
        take(rows, VectorsLost(model="a-model", rows=[0, 1, 2, 4], recorded_at=NOW))
        take(rows, VectorsLost(model="other", rows=[3], recorded_at=NOW))
        assert self.found(rows, make) == [(3, "missing")]
        again = PlacedVector(id=added(1).memory.id, row=1, sha256=hashes[1])
        take(rows, MemoryReembedded(model="a-model", embedded_at=NOW, vectors=[again]))
        assert self.found(rows, make) == [(1, "missing"), (3, "missing")]
        assert len(rows) == 2

    def test_progress_is_reported(self, vectors: Vectors, make: Any) -> None:
        hashes = vectors.write(0, np.ones((2_500, 4), dtype=np.float32))
        named = NamedRows()
        take(named, EmbeddingSwitched(model="a-model", dimension=4))
        placed = [
            PlacedVector(id=f"{row:08x}-0000-4000-8000-000000000000", row=row, sha256=one)
            for row, one in enumerate(hashes)
        ]
        for start in (0, 1_000, 2_000):
            take(named, MemoryReembedded(model="a-model", embedded_at=NOW, vectors=placed[start : start + 1_000]))
        reported: list[tuple[int, int | None]] = []
        assert list(named.damaged(make, lambda *counts: reported.append(counts))) == []
        assert reported == [(1_000, 2_500), (2_000, 2_500)]

    def test_rows_are_counted_by_model(self, added: Added) -> None:
        named = NamedVectors().after(EmbeddingSwitched(model="m", dimension=4))
        for number, (model, row) in enumerate([("m", 0), ("m", 1), ("m", 5), ("m", 2), ("n", 0)]):
            vector = VectorRef(model=model, row=row, sha256="a" * 64)
            named = named.after(added(number).model_copy(update={"vector": vector}))
        assert named == NamedVectors("m", 4, {"m": 6, "n": 1})


class TestInAStore:
    def test_a_given_vector_is_kept_bit_for_bit(self, open_store: Callable[..., Any], sql: Sql) -> None:
        store = open_store()
        memory = store.insert_memory({"type": "episodic", "content": "x", "embedding": ODD})
        assert memory.embedding.tobytes() == ODD.tobytes()
        store.close()
        assert sql("SELECT value FROM vector") == [(ODD.tobytes(),)]
        again = open_store()
        assert again.get_memory(memory.id).embedding.tobytes() == ODD.tobytes()
        again.verify()

    @pytest.mark.parametrize(
        "vector", [np.zeros(64), np.full(64, np.nan), np.full(64, np.inf), np.ones(63), np.ones((1, 64)), []]
    )
    def test_an_invalid_vector_is_refused_before_anything_is_written(self, store: Any, sql: Sql, vector: Any) -> None:
        before = sql("SELECT MAX(seq) FROM event")
        with pytest.raises(InvalidInputError, match="embedding"):
            store.insert_memory({"type": "episodic", "content": "x", "embedding": vector})
        assert (sql("SELECT MAX(seq) FROM event"), sql("SELECT * FROM vector")) == (before, [])

    def test_a_failed_commit_leaves_no_row(
        self, store: Any, monkeypatch: pytest.MonkeyPatch, vector_at: Callable[..., Any], sql: Sql
    ) -> None:
        kept = store.insert_memory({"type": "episodic", "content": "kept", "embedding": vector_at(0.1)})
        with monkeypatch.context() as patched:
            patched.setattr(store._journal, "append", _broken)
            with pytest.raises(OSError, match="broken"):
                store.insert_memory({"type": "episodic", "content": "lost", "embedding": vector_at(0.2)})
        new = store.insert_memory({"type": "episodic", "content": "new", "embedding": vector_at(0.3)})
        assert store.get_memory(kept.id).embedding.tobytes() == vector_at(0.1).tobytes()
        assert store.get_memory(new.id).embedding.tobytes() == vector_at(0.3).tobytes()
        assert sql("SELECT place, value FROM vector") == [(0, vector_at(0.1).tobytes()), (1, vector_at(0.3).tobytes())]
        store.verify()

    def test_a_changed_row_is_found_by_verify(self, store: Any, open_store: Callable[..., Any], sql: Sql) -> None:
        ids = [store.insert_memory({"type": "episodic", "content": f"memory {n}"}).id for n in range(3)]
        store.verify()
        store.close()
        sql("UPDATE vector SET value = (SELECT value FROM vector WHERE place = 0) WHERE place = 1")
        with pytest.raises(VectorDamageError) as refused:
            open_store().verify()
        assert (refused.value.row, refused.value.memory_id) == (1, ids[1])

    def test_memories_whose_row_is_missing_have_no_vector(
        self, store: Any, open_store: Any, sql: Sql, tmp_path: Path
    ) -> None:
        ids = [store.insert_memory({"type": "episodic", "content": f"memory {n}"}).id for n in range(3)]
        store.close()
        sql("DELETE FROM vector WHERE place = 2")
        for path in (tmp_path / "store" / "cache").glob("*.f32"):
            path.unlink()
        again = open_store()
        assert [again.get_memory(one).embedding is None for one in ids] == [False, False, True]


def _broken(*_: Any) -> None:
    raise OSError("broken")
