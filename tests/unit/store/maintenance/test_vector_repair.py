"""Damaged vectors: texts, lists and recall are served meanwhile, and a repair makes the vectors again from the texts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.embedding import NoEmbedder
from memgraph.errors import EmbeddingError, KeyMissingError, ReadOnlyError, VectorDamageError
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import VectorTable, damage_cache, lines_of

Open = Callable[..., Any]
DIMENSION = 64
ROW_BYTES = 4 * DIMENSION
NAN = np.full(DIMENSION, np.nan, "<f4").tobytes()
HUGE = np.full(DIMENSION, 3e38, dtype=np.float32)
"""A vector that was given: no model makes it again. The squares of its components are no float32."""


HARMS: dict[str, tuple[Callable[[VectorTable], Any], int, bool]] = {
    # what is done to the table, how many of its 10 rows it damages, whether that shows without a SHA-256
    "all rows are missing": (lambda table: table.remove(), 10, True),
    "a row is empty": (lambda table: table.cut(1), 1, True),
    "a row is cut": (lambda table: table.cut(1, ROW_BYTES - 100), 1, True),
    "the last rows are missing": (lambda table: table.remove(2), 8, True),
    "a row of zeros": (lambda table: table.put(1, bytes(ROW_BYTES)), 1, True),
    "a row that is not finite": (lambda table: table.put(1, NAN), 1, True),
    "an infinite component": (lambda table: table.put(1, np.array([np.inf], "<f4").tobytes()), 1, True),
    "a flipped bit": (lambda table: table.flip(1), 1, False),
    "two rows swapped": (lambda table: table.swap(0, 2), 2, False),
}


@pytest.fixture
def table(tmp_path: Path) -> VectorTable:
    return VectorTable(tmp_path / "store")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return the folder of a furnished store and its keys, and the ids in it."""
    folder = tmp_path_factory.mktemp("repair")
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    clock = FakeClock("2026-02-01T09:00:00Z")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=clock) as store:
        return folder, furnish(store)


@pytest.fixture
def ids(tmp_path: Path, template: tuple[Path, list[str]]) -> list[str]:
    """Make a store with 10 rows, two of which no memory uses; return the ids of its memories, in their order."""
    folder, found = template
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return list(found)


def furnish(store: Any) -> list[str]:
    texts = [f"The build failed in login{n}.py" for n in range(5)]
    ids = [memory.id for memory in store.insert_memories([{"type": "episodic", "content": text} for text in texts])]
    ids.append(store.insert_memory({"type": "episodic", "content": "Deploy on Tuesdays", "task_id": "T"}).id)
    ids.append(store.insert_memory({"type": "semantic", "content": "Given", "embedding": HUGE}).id)
    store.update_memory(ids[3], content="It was the clock in clock.py")  # row 3 is of a text that is gone
    store.delete_memory(ids.pop(4))
    store.archive(ids[2])
    ids.append(store.insert_memory({"type": "episodic", "content": "Users hide in users.sql"}).id)
    ids.append(store.insert_memory({"type": "episodic", "content": "Forgotten"}).id)
    store.suppress(ids[-1])
    store.digest()
    return ids


def served(store: Any) -> None:
    """Everything that reads, reads; the scores are numbers."""
    memories = list(store.every_memory())
    assert len(memories) == 8
    for memory in memories:
        assert store.get_memory(memory.id).content == memory.content
        assert memory.embedding is None or np.isfinite(memory.embedding).all()
        assert (memory.embedding is None) == (memory.embedding_model is None)
    retrieval, commands = memgraph.MemoryRetrieval(store), memgraph.MemoryCommands(store)
    found = retrieval.search_memories("Users hide in users.sql", limit=5)
    assert found[0].memory.content == "Users hide in users.sql"
    assert np.isfinite([one.score for one in found]).all()
    recalled = retrieval.retrieve({"task_description": "Deploy on Tuesdays", "agent_name": "MARS", "task_id": "T"})
    assert "Deploy on Tuesdays" in recalled.injected_prompt_prefix
    assert commands.ask("who hides in users.sql?").success
    assert len(commands.list()) == 6
    assert commands.stats().total == 7
    exported = commands.export_memories()
    assert exported.total_memories == 8
    exported.model_dump_json()


def sound(store: Any) -> None:
    """Every memory has its own text's vector, or one that was made for it, and everything verifies."""
    for memory in store.every_memory():
        assert memory.embedding is not None
        if memory.content != "Given":
            assert memory.embedding.tobytes() == FakeEmbedder(DIMENSION).embed([memory.content])[0].tobytes()
    assert store.damaged_vectors() == 0
    assert store.verification(deep=True).first == []
    assert not [notice for notice in store.notices if "--repair" in notice]


@pytest.mark.parametrize(
    "harm", [pytest.param(harm, marks=[pytest.mark.embedded] * (harm == "the last rows are missing")) for harm in HARMS]
)
def test_damaged_vectors_fall_back_to_text_until_repaired(
    open_store: Open, ids: list[str], table: VectorTable, harm: str
) -> None:
    damage, damaged, shows = HARMS[harm]
    was = table.rows()
    damage(table)

    with open_store() as store:
        served(store)
        assert (store.damaged_vectors() > 0) == shows
        assert [notice for notice in store.notices if "memgraph embed --repair" in notice] != [] or not shows
        digest = store.digest()
        found = store.verification()
        assert (found.differing, {one.part for one in found.first}) == (damaged, {"vectors"})
        with pytest.raises(VectorDamageError, match="memgraph embed --repair"):
            store.verify()
        told: list[tuple[int, int | None]] = []

        result = store.repair_vectors(batch=3, progress=lambda *counts: told.append(counts))

        assert (result.checked, result.damaged, result.failed) == (10, damaged, 0)
        assert result.restored + result.lost == damaged
        assert told[-1] == (result.restored + result.replaced,) * 2
        assert store.digest() == digest
        sound(store)
    with open_store() as store:
        sound(store)
        assert store.repair_vectors().damaged == 0
        assert store.digest() == digest
        served(store)
    if result.lost == 0:
        assert table.rows() == was, "a row that the model makes again is written back in place"


@pytest.mark.parametrize(
    "harm",
    [
        lambda _data: b"",
        lambda data: data[: ROW_BYTES * 3 + 7],
        lambda data: data[ROW_BYTES:] + data[:ROW_BYTES],
        lambda data: bytes(len(data)),
        lambda data: data + NAN,
    ],
    ids=["empty", "cut", "moved by a row", "zeros", "longer"],
)
def test_a_damaged_cache_is_made_anew(
    open_store: Open, ids: list[str], table: VectorTable, harm: Callable[[bytes], bytes], caplog: Any
) -> None:
    with open_store() as store:
        served(store)
    damage_cache(table.home, harm)
    with open_store() as store:
        served(store)
        sound(store)
        assert caplog.messages == []


def test_a_cache_that_another_process_removes_is_made_anew_whole(
    open_store: Open, ids: list[str], table: VectorTable
) -> None:
    with open_store() as store:
        served(store)
        table.forget()
        file = store._journal.vectors("fake", DIMENSION)
        new = [{"type": "episodic", "content": f"Life goes on, {number}"} for number in range(3)]
        store.insert_memories(new)
        file._extend(11)  # as a process does that has looked at the file before it was removed
        file.rows(12)
        sound_rows = [table.rows()[row] for row in range(13)]
        assert [row.tobytes() for row in store._journal.vectors("fake", DIMENSION).rows(13)] == sound_rows
    with open_store() as again:
        assert [row.tobytes() for row in again._journal.vectors("fake", DIMENSION).rows(13)] == sound_rows


@pytest.mark.parametrize("harm", [name for name in HARMS if name.endswith("missing")])
def test_what_is_written_after_missing_rows_has_its_place(
    open_store: Open, ids: list[str], table: VectorTable, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    HARMS[harm][0](table)
    with open_store() as store:
        new = store.insert_memory({"type": "episodic", "content": "Life goes on"})
        assert store.damaged_vectors() > 0
        assert len([one for one in caplog.messages if "memgraph embed --repair" in one]) == 1
    assert max(table.rows()) == 10
    with open_store() as store:
        assert store.get_memory(new.id).embedding is not None
        assert store.damaged_vectors() > 0
        assert store.verification().differing == HARMS[harm][1]
        store.repair_vectors()
        sound(store)


def test_an_open_store_notices_damage_and_repair(
    open_store: Open, ids: list[str], table: VectorTable, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = open_store(), open_store()
    served(reader)
    for harm in ("a row that is not finite", "the last rows are missing", "all rows are missing"):
        HARMS[harm][0](table)
        served(reader)
        assert reader.damaged_vectors() > 0
        writer.repair_vectors()
        assert reader.damaged_vectors() == 0
        served(reader)
    assert len([one for one in caplog.messages if "memgraph embed --repair" in one]) == 1, "told once a process"


def test_many_rows_are_searched_past_a_damaged_one(open_store: Open, table: VectorTable) -> None:
    """More than are compared one by one: norms and products of all rows."""
    texts = [f"word{n} and word{n + 1}" for n in range(300)]
    with open_store() as store:
        store.insert_memories([{"type": "episodic", "content": text} for text in texts])
        store.insert_memory({"type": "episodic", "content": "Given", "embedding": HUGE})
    table.put(7, NAN)
    table.put(8, bytes(ROW_BYTES))
    with open_store() as store:
        scored = {
            one.memory.content: one.score
            for one in memgraph.MemoryRetrieval(store).search_memories(texts[8], limit=301)
        }
        assert np.isfinite(list(scored.values())).all()
        reader = store.reader
        cosines = reader.cosines(HUGE, slice(None))
        assert cosines[300] == pytest.approx(1.0)
        assert cosines[[7, 8]].tolist() == [0.0, 0.0]
        assert np.flatnonzero(~reader.has_vector()).tolist() == [7, 8]
        assert store.damaged_vectors() == 2
        other = open_store()
        assert np.flatnonzero(~other.reader.has_vector()).tolist() == [7, 8]
        assert store.repair_vectors().restored == 2
        assert other.reader.has_vector().all()
        assert memgraph.MemoryRetrieval(store).search_memories(texts[8], limit=1)[0].memory.content == texts[8]


def test_comparisons_use_words_where_a_vector_is_lost(open_store: Open, ids: list[str], table: VectorTable) -> None:
    table.remove()
    with open_store() as store:
        memory = memgraph.MemGraph(store)
        known = memory.save_observation("Deploys run on Tuesdays")
        table.put(10, NAN)
        assert memory.save_observation("Deploys run on Tuesdays").memory_id == known.memory_id
        twins = [{"type": "semantic", "content": "The staging database is read-only"} for _ in range(2)]
        store.insert_memories(twins)
        table.put(11, NAN)
        assert memory.maintenance.sleep().complete
        assert len(store.list_memories(state="superseded")) == 1
        store.repair_vectors()
        assert store.verification(deep=True).first == []
        assert store.damaged_vectors() == 0


def test_a_given_vector_is_replaced_by_the_models_with_an_event(
    open_store: Open, ids: list[str], table: VectorTable, tmp_path: Path
) -> None:
    table.put(6, bytes(ROW_BYTES))
    known = len(lines_of(tmp_path / "store"))
    with open_store() as store:
        result = store.repair_vectors()
        assert (result.restored, result.replaced, result.lost) == (0, 1, 1)
        assert store.get_memory(ids[5]).embedding.tobytes() == FakeEmbedder(DIMENSION).embed(["Given"])[0].tobytes()
        sound(store)
    revised, lost = lines_of(tmp_path / "store")[known:]
    assert (revised["head"]["type"], revised["payload"]["vector"]["row"]) == ("memory.revised", 10)
    assert (lost["head"]["type"], lost["payload"]["rows"]) == ("vectors.lost", [6])


def test_unused_rows_are_reported_apart_and_need_no_model(
    open_store: Open, ids: list[str], table: VectorTable, tmp_path: Path
) -> None:
    for row in (3, 4):
        table.put(row, bytes(ROW_BYTES))
    with open_store(embedder=NoEmbedder()) as store:
        assert {one.problem for one in store.verification().first} == {"all zeros; no memory uses it"}
        result = store.repair_vectors()
        assert (result.damaged, result.lost, result.restored) == (2, 2, 0)
        assert store.verification(deep=True).first == []
        store.rebuild()
        assert store.verification(deep=True).first == []
    assert lines_of(tmp_path / "store")[-1]["payload"]["rows"] == [3, 4]


def test_lost_unused_rows_at_the_end_are_harmless(
    open_store: Open, ids: list[str], table: VectorTable, caplog: pytest.LogCaptureFixture
) -> None:
    with open_store() as store:
        store.delete_memory(ids[-1])
        table.remove(9)
        assert store.repair_vectors().lost == 1
        store.insert_memory({"type": "episodic", "content": "Life goes on"})
        assert caplog.messages == []
        assert max(table.rows()) == 10
        sound(store)


def test_an_undeleted_memory_does_not_get_a_lost_vector(open_store: Open, ids: list[str], table: VectorTable) -> None:
    with open_store() as store:
        gone = store.insert_memory({"type": "episodic", "content": "Deleted once"})
        kept = store.insert_memory({"type": "episodic", "content": "Deleted, and sound"})
        store.delete_memory(gone.id)
        store.delete_memory(kept.id)
        table.put(10, bytes(ROW_BYTES))
        store.repair_vectors()
        assert store.undelete(gone.id).embedding is None
        assert store.undelete(kept.id).embedding is not None
        assert store.awaiting_vectors() == 1
        assert store.embed_awaiting() == 1
        sound(store)


def test_a_lost_row_that_is_used_again_is_verified_again(open_store: Open, ids: list[str], table: VectorTable) -> None:
    with open_store() as store:
        gone = store.insert_memory({"type": "episodic", "content": "Deleted once"})
        store.delete_memory(gone.id)
        row = table.rows()[10]
        table.put(10, bytes(ROW_BYTES))
        store.repair_vectors()
        table.put(10, row)  # from a backup
        assert store.undelete(gone.id).embedding.tobytes() == row
        store.verify()
        table.put(10, bytes(ROW_BYTES))
        assert store.verification().differing == 1


class TestWithoutAModel:
    def test_nothing_changes_and_the_reason_is_given(
        self, open_store: Open, ids: list[str], table: VectorTable, tmp_path: Path
    ) -> None:
        table.remove(2)
        before = table.rows(), lines_of(tmp_path / "store")
        with open_store(embedder=NoEmbedder()) as store, pytest.raises(EmbeddingError, match="set embedding_model"):
            store.repair_vectors()
        assert (table.rows(), lines_of(tmp_path / "store")) == before

    def test_a_failing_text_is_named_and_the_others_are_repaired(
        self, open_store: Open, ids: list[str], table: VectorTable
    ) -> None:
        class Fastidious(FakeEmbedder):
            def embed(self, texts: Any) -> Any:
                if "Deploy on Tuesdays" in texts:
                    raise EmbeddingError("not this one")
                return super().embed(texts)

        table.remove()
        with open_store(embedder=Fastidious(DIMENSION)) as store:
            result = store.repair_vectors()
            assert (result.failed, result.replaced) == (1, 1)
            assert [notice for notice in store.notices if ids[4] in notice]
            assert store.verification().differing == 1
            served(store)
        with open_store() as store:
            assert store.repair_vectors().restored == 1
            sound(store)


def test_an_interrupted_repair_continues(open_store: Open, ids: list[str], table: VectorTable) -> None:
    table.remove()

    def stop(done: int, _total: int | None) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with open_store() as store:
        with pytest.raises(KeyboardInterrupt):
            store.repair_vectors(batch=2, progress=stop)
        served(store)
    with open_store() as store:
        embedder = store.embedder
        embedder.calls.clear()
        store.repair_vectors()
        assert sum(map(len, embedder.calls)) == 4, "what was healed before is not embedded again"
        sound(store)


class Watched(FakeEmbedder):
    """Does something else before it embeds for the first time."""

    before: Callable[[], object] | None = None

    def embed(self, texts: Any) -> Any:
        before, self.before = self.before, None
        if before is not None:
            before()
        return super().embed(texts)


def test_writes_during_embedding_are_kept(open_store: Open, ids: list[str], table: VectorTable) -> None:
    embedder = Watched(DIMENSION)
    with open_store(embedder=embedder) as store:
        other = open_store()

        def meanwhile() -> None:
            other.update_memory(ids[0], content="Changed meanwhile")
            other.delete_memory(ids[1])
            other.update_memory(ids[2], content="Changed and damaged")
            table.put(11, bytes(ROW_BYTES))

        for row in range(3):
            table.put(row, bytes(ROW_BYTES))
        embedder.before = meanwhile
        result = store.repair_vectors()
        assert (result.restored, result.replaced, result.lost) == (0, 0, 3)
        assert store.get_memory(ids[0]).content == "Changed meanwhile"
        assert [one.column for one in store.verification().first] == [ids[2]]
        assert store.repair_vectors().restored == 1
        assert store.verification(deep=True).first == []


def test_two_repairs_at_once(open_store: Open, ids: list[str], table: VectorTable) -> None:
    table.remove()
    embedder = Watched(DIMENSION)
    with open_store(embedder=embedder) as store:
        other = open_store()
        embedder.before = other.repair_vectors
        result = store.repair_vectors()
        assert (result.damaged, result.restored, result.replaced, result.lost) == (10, 0, 0, 0)
        sound(store)


class TestOtherModels:
    def test_a_change_of_model_in_progress(self, open_store: Open, ids: list[str], table: VectorTable) -> None:
        new = FakeEmbedder(DIMENSION * 2, "new")

        class Away(FakeEmbedder):
            def embed(self, texts: Any) -> Any:
                if len(self.calls) >= 2:
                    raise EmbeddingError("away")
                return super().embed(texts)

        with open_store() as store:
            with pytest.raises(EmbeddingError, match="run it again"):
                store.reembed(Away(DIMENSION * 2, "new"), batch=3)
            table.remove(2)
            VectorTable(table.home, "new").remove(5)
            served(store)
            store.repair_vectors()
            sound(store)
            assert store.reembed(new).reused == 5
            store.verify(deep=True)

    def test_a_store_that_has_changed_its_model_meanwhile(
        self, open_store: Open, ids: list[str], table: VectorTable
    ) -> None:
        """The rows of the former model are of no use, and are recorded as lost."""
        table.remove()
        with open_store() as store:
            store.reembed(FakeEmbedder(DIMENSION * 2, "new"))
            assert store.damaged_vectors() == 0
            assert store.verification().differing == 10
            assert store.repair_vectors().lost == 10
            store.verify(deep=True)
            assert store.reembed(FakeEmbedder(DIMENSION)).embedded == 8
            sound(store)


class TestReadOnly:
    def test_a_store_whose_key_is_missing(
        self, open_store: Open, ids: list[str], table: VectorTable, tmp_path: Path
    ) -> None:
        table.remove(2)
        for key in (tmp_path / "keys" / "keys").iterdir():
            key.unlink()
        with open_store(security_mode="dev", allow_unsigned_replay=True) as store:
            served(store)
            with pytest.raises(KeyMissingError):
                store.repair_vectors()
        assert len(table.rows()) == 2

    def test_a_view_of_the_past(
        self, open_store: Open, ids: list[str], table: VectorTable, clock: Any, caplog: Any
    ) -> None:
        with open_store() as store:
            then = store.now()
            clock.advance(days=1)
            store.update_memory(ids[0], content="Another text")
            table.remove()
            with store.at(then, recorded=True) as past:
                served(past)
                with pytest.raises(ReadOnlyError):
                    past.repair_vectors()
            assert table.rows() == {}
            store.repair_vectors()
            caplog.clear()
            with store.at(then, recorded=True) as past:
                served(past)
                assert past.get_memory(ids[0]).embedding is None  # that of its former text is lost
                assert past.get_memory(ids[1]).embedding is not None
                assert past.notices == []
                past.verify()
            assert caplog.messages == []
