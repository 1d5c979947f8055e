"""A store changes its embedding model: found by the old vectors until the new ones are all there, and nothing is made twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.commands import MemoryCommands
from memgraph.embedding import NoEmbedder
from memgraph.errors import BusyError, EmbeddingError, InvalidInputError, ModelMismatchError
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.retrieval import MemoryRetrieval
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import ROWS, change, lines_of, table

Open = Callable[..., Any]
OLD, NEW = 64, 32


class Model(FakeEmbedder):
    """Another model, which may fail on some texts or on all, and beside which things may happen."""

    def __init__(self, dimension: int = NEW, name: str = "new", *, bad: Sequence[str] = ()) -> None:
        super().__init__(dimension, name)
        self.bad, self.works = bad, True
        self.beside: list[Callable[[], Any]] = []
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        if self.beside:
            self.beside.pop(0)()
        if not self.works:
            raise EmbeddingError("the model is away")
        made = super().embed(texts)
        for place, text in enumerate(texts):
            if text in self.bad:
                made[place] = np.nan
        self.texts += texts
        return made

    def embed_query(self, text: str) -> Any:
        return self._vector(text)


def text_of(number: int) -> str:
    return f"try {number} of the build in module{number}"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the old model with memories of every state: 8 that are there, one that is deleted."""
    folder = tmp_path_factory.mktemp("template")
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with memgraph.AgentMemoryStore(
        config, embedder=FakeEmbedder(OLD), clock=FakeClock("2026-02-01T09:00:00Z")
    ) as store:
        states = [{}, {"is_suppressed": True}, {"archived_at": "2026-02-01"}, {"invalid_at": "2026-02-01"}, {}, {}]
        made = [{"type": "episodic", "content": text_of(n), **state} for n, state in enumerate(states)]
        ids = [memory.id for memory in store.insert_memories(made)]
        store.insert_memories([{"type": "episodic", "content": text_of(n), "task_id": "T"} for n in (6, 7)])
        store.insert_memory({"type": "semantic", "content": text_of(8), "is_pinned": True})
        store.delete_memory(ids[5])
    return folder


@pytest.fixture
def beside(open_store: Open) -> Open:
    """Open the same store once more, beside `store`."""
    return open_store


@pytest.fixture
def store(template: Path, open_store: Open, tmp_path: Path) -> Any:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return open_store()


def check(store: Any, model: FakeEmbedder, *, but: Sequence[str] = (), deep: bool = False) -> None:
    """Every memory has the vector of its text, by this model, and all that is derived says so."""
    assert store.awaiting_vectors() == len(but)
    for memory in store.every_memory():
        if memory.content in but:
            assert (memory.embedding, memory.embedding_model, memory.embedded_at) == (None, None, None)
        else:
            assert memory.embedding.tobytes() == model._vector(memory.content).tobytes()
            assert memory.embedding_model == model.name
            assert memory.embedded_at
    store.verify(deep=deep)


def found(store: Any, text: str) -> tuple[str, float]:
    """Return the text of what is found first, and how near it is by meaning."""
    with store.reader.frozen():
        first = MemoryRetrieval(store).search_memories(text, limit=1)[0]
        slots = np.array([store.reader.index.slot(first.memory.id)])
        return first.memory.content, float(store.reader.cosines(store.embedder.embed_query(text), slots)[0])


class TestChanging:
    @pytest.mark.embedded
    def test_one_commit_changes_all_vectors_and_nothing_else(self, store: Any, tmp_path: Path) -> None:
        digest, before = store.digest(), {memory.id: memory for memory in store.every_memory()}
        known, told = len(lines_of(tmp_path / "store")), []
        model = Model()

        result = store.reembed(model, batch=3, progress=lambda *counts: told.append(counts))

        assert result.model_dump() == {"model": "new", "dimension": NEW, "embedded": 8, "reused": 0, "awaiting": 0}
        assert told == [(3, 8), (6, 8), (8, 8)]
        assert store.vector_model == ("new", NEW)
        assert store.embedder is model
        check(store, model, deep=True)
        assert store.digest() == digest
        of_vectors = {"embedding", "embedding_model", "embedded_at"}
        for memory in store.every_memory():
            assert memory.model_dump(exclude=of_vectors) == before[memory.id].model_dump(exclude=of_vectors)
        events = lines_of(tmp_path / "store")[known:]
        assert [event["head"]["type"] for event in events] == ["embedding.switched", "memory.reembedded"]
        assert len({event["head"]["commit_id"] for event in events}) == 1
        assert table(tmp_path / "store", "made_vector") == []

    def test_memories_are_found_before_during_and_after_the_change(self, store: Any, beside: Open) -> None:
        other, seen = beside(), []
        model = Model()
        model.beside = [lambda: seen.append(found(other, text_of(4)))] * 2
        assert found(store, text_of(4)) == (text_of(4), pytest.approx(1.0))
        store.reembed(model, batch=4)
        assert seen == [(text_of(4), pytest.approx(1.0))] * 2
        assert found(store, text_of(4)) == (text_of(4), pytest.approx(1.0))

    @pytest.mark.embedded
    def test_projections_can_be_rebuilt_after_the_change(self, store: Any, open_store: Open, tmp_path: Path) -> None:
        model = Model()
        store.reembed(model)
        digest = store.digest()
        store.rebuild()
        check(store, model)
        store.close()
        for name in ROWS:
            change(tmp_path / "store", f"DELETE FROM {name}")
        shutil.rmtree(tmp_path / "store" / "index")
        again = open_store(embedder=model)
        check(again, model)
        assert again.digest() == digest
        again.insert_memory({"type": "episodic", "content": "one more"})
        check(again, model)

    def test_changing_back_and_forth(self, store: Any) -> None:
        old, new = FakeEmbedder(OLD), Model()
        for model in (new, old, new):
            store.reembed(model)
            store.insert_memory({"type": "episodic", "content": f"written with {model.name}, {len(new.texts)}"})
            check(store, model)

    def test_the_current_model_embeds_only_missing_vectors(self, store: Any, beside: Open) -> None:
        textual = beside(embedder=NoEmbedder())
        textual.insert_memory({"type": "episodic", "content": "waits"})
        assert store.reembed(FakeEmbedder(OLD)).embedded == 1
        assert store.reembed(FakeEmbedder(OLD)).embedded == 0
        check(store, FakeEmbedder(OLD))
        textual.insert_memory({"type": "episodic", "content": "waits again"})
        assert store.reembed(Model()).embedded == 10  # it need not have had one
        check(store, Model())

    def test_a_text_only_store_gets_a_model(self, open_store: Open) -> None:
        store = open_store(embedder=NoEmbedder())
        assert store.reembed(Model()).embedded == 0
        store.delete_memory(store.insert_memory({"type": "episodic", "content": "gone"}).id)
        assert store.reembed(Model(name="newer")).embedded == 0  # one without memories changes too
        store.insert_memory({"type": "episodic", "content": "one"})
        check(store, Model(name="newer"))

    def test_an_unusable_embedder_is_rejected(self, store: Any, open_store: Open) -> None:
        for model, problem in ((NoEmbedder(), "computes no vectors"), (FakeEmbedder(NEW), "64 under that name")):
            with pytest.raises(InvalidInputError, match=problem):
                store.reembed(model)
        check(store, FakeEmbedder(OLD))
        store.reembed(Model())
        store.close()
        again = open_store(embedder=NoEmbedder())
        with pytest.raises(InvalidInputError, match="64 under that name"):  # what it was called before counts, too
            again.reembed(FakeEmbedder(NEW))

    def test_more_memories_than_fit_one_event(self, open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memgraph.store.maintenance.vectors.MAX_ITEMS", 2)
        store = open_store()
        store.insert_memories([{"type": "episodic", "content": text_of(n)} for n in range(5)])
        store.reembed(Model())
        check(store, Model())


class TestStopped:
    def test_an_interrupted_change_continues_without_repetition(self, store: Any, open_store: Open) -> None:
        def stop() -> None:
            raise KeyboardInterrupt

        model = Model()
        for _ in range(4):  # each run makes one batch
            model.beside = [lambda: None, stop]
            store = open_store()
            if len(model.texts) < 6:
                with pytest.raises(KeyboardInterrupt):
                    store.reembed(model, batch=2)
                check(store, FakeEmbedder(OLD))
                store.close()
        result = store.reembed(model, batch=2)
        assert (result.embedded, result.reused) == (2, 6)
        assert len(model.texts) == len(set(model.texts)) == 8
        check(store, model, deep=True)

    def test_a_failing_model_explains_how_to_continue(self, store: Any) -> None:
        model = Model()
        model.beside = [lambda: None, lambda: setattr(model, "works", False)]
        with pytest.raises(EmbeddingError, match=r"is away.*\(3 now\).*run it again"):
            store.reembed(model, batch=3)
        check(store, FakeEmbedder(OLD))
        model.works = True
        assert store.reembed(model).reused == 3
        check(store, model)

    def test_leftovers_of_an_earlier_change_are_not_used(self, store: Any, tmp_path: Path) -> None:
        model = Model()
        left: list[tuple[Any, ...]] = []
        model.beside = [lambda: None, lambda: left.extend(table(tmp_path / "store", "made_vector"))]
        store.reembed(model, batch=4)
        store.reembed(FakeEmbedder(OLD))
        assert left
        for row in left:
            change(tmp_path / "store", "INSERT INTO made_vector VALUES (?, ?, ?, ?, ?, ?)", *row)
        assert change(tmp_path / "store", "UPDATE made_vector SET place = 'x' WHERE memory = ?", left[0][2])
        assert store.reembed(model).reused == 0
        check(store, model)

    def test_a_text_that_the_model_rejects_awaits_and_is_named(self, store: Any, open_store: Open) -> None:
        model = Model(bad=[text_of(4)])
        result = store.reembed(model, batch=3)
        assert (result.embedded, result.awaiting) == (7, 1)
        check(store, model, but=[text_of(4)])
        (waiting,) = (memory for memory in store.every_memory() if memory.embedding is None)
        assert any(waiting.id in notice and "NaN" in notice for notice in store.notices)
        assert found(store, text_of(4))[0] == text_of(4)  # by its words
        store.update_memory(waiting.id, is_pinned=True)
        check(store, model, but=[text_of(4)])
        store.rebuild()
        check(store, model, but=[text_of(4)])
        model.bad = []
        assert store.embed_awaiting() == 1
        check(store, model)


class TestBesideOthers:
    def test_concurrent_writes_get_new_vectors(self, store: Any, beside: Open) -> None:
        other = beside()
        ids = {memory.content: memory.id for memory in store.every_memory()}
        gone = next(
            line["payload"]["id"] for line in lines_of(store.config.home) if line["head"]["type"] == "memory.deleted"
        )
        model = Model()
        model.beside = [
            lambda: other.insert_memory({"type": "episodic", "content": "new one", "task_id": "U"}),
            lambda: (other.update_memory(ids[text_of(0)], content="changed"), other.delete_memory(ids[text_of(7)])),
            lambda: other.undelete(gone),
            lambda: other.update_memory(ids[text_of(8)], content="changed behind its back"),
        ]
        result = store.reembed(model, batch=2)
        assert result.awaiting == 0
        check(store, model)
        assert store.get_memory(ids[text_of(0)]).content == "changed"
        assert store.get_memory(ids[text_of(7)]) is None

    def test_many_concurrent_writes_are_embedded_before_the_change(
        self, store: Any, beside: Open, tmp_path: Path
    ) -> None:
        other = beside()
        model = Model()
        many = [{"type": "episodic", "content": f"late {number}"} for number in range(7)]
        model.beside = [lambda: other.insert_memories(many)]
        store.reembed(model, batch=3)
        check(store, model)
        named = [
            len(line["payload"]["vectors"])
            for line in lines_of(tmp_path / "store")
            if "reembedded" in line["head"]["type"]
        ]
        assert named == [15]

    def test_a_store_open_with_the_old_model_raises_an_error(self, store: Any, open_store: Open, beside: Open) -> None:
        other = beside()
        asked, commands = MemoryRetrieval(other), MemoryCommands(other)
        assert asked.search_memories(text_of(4))
        store.reembed(Model(OLD))  # of the same length: nothing but the name tells them apart
        total = store.get_stats().total
        for write in (
            lambda: other.insert_memory({"type": "episodic", "content": "by the old model"}),
            lambda: other.check_embedder(other.embedder),
            lambda: other.update_memory(next(iter(other.every_memory())).id, content="other"),
            lambda: other.reader.cosines(other.embedder.embed_query("x"), np.array([0])),
            lambda: ConsolidationPipeline(other),
        ):
            with pytest.raises(ModelMismatchError, match="memgraph reembed"):
                write()
        result = asked.retrieve({"task_description": text_of(4)})
        assert text_of(4) in {memory.content for memory in result.memories}
        assert "text search only" in result.notice
        assert "memgraph reembed" in result.notice
        assert commands.ask(text_of(4)).success
        assert store.get_stats().total == total
        check(store, Model(OLD))
        other.close()
        with pytest.raises(ModelMismatchError, match="memgraph reembed"):
            open_store()

    def test_objects_made_from_the_store_use_the_new_model(self, store: Any) -> None:
        asked, commands = MemoryRetrieval(store), MemoryCommands(store)
        store.reembed(Model())
        assert asked.search_memories(text_of(4), limit=1)[0].memory.content == text_of(4)
        assert commands.forget(text_of(4)).success

    def test_a_concurrent_write_with_the_old_model_is_rejected(self, store: Any) -> None:
        waiting = store.insert_memory({"type": "episodic", "content": "one"})
        writes = [
            lambda: store.insert_memory({"type": "episodic", "content": "two"}),
            lambda: store.update_memory(waiting.id, content="three"),
            lambda: store.import_memories([memgraph.parse_memory({"type": "episodic", "content": "four"})], []),
            lambda: store.commit("global", [memgraph.parse_memory({"type": "episodic", "content": "five"})]),
        ]
        for number, write in enumerate(writes):
            before = Model(OLD, f"model {number}")
            store.reembed(before)
            after = Model(OLD, f"model {number + 1}")  # of the same length: nothing but the name tells them apart
            before.beside = [lambda after=after: store.reembed(after)]
            with pytest.raises(ModelMismatchError, match=f"model {number + 1}"):
                write()
        check(store, after)

    def test_one_change_at_a_time(self, store: Any, beside: Open) -> None:
        other = beside(lock_timeout_s=0.05)
        refused: list[Any] = []

        def change() -> None:
            with pytest.raises(BusyError, match="embedding model") as error:
                other.reembed(Model(name="third"))
            refused.append(error)

        model = Model()
        model.beside = [change]
        store.reembed(model)
        assert len(refused) == 1
        check(store, model)

    def test_an_undeleted_memory_does_not_get_its_old_vector(self, store: Any) -> None:
        memory = next(memory for memory in store.every_memory() if memory.content == text_of(0))
        store.delete_memory(memory.id)
        store.reembed(Model())
        back = store.undelete(memory.id)
        assert (back.embedding, back.embedding_model) == (None, None)
        check(store, Model(), but=[text_of(0)])
        store.embed_awaiting()
        store.delete_memory(memory.id)
        assert store.undelete(memory.id).embedding is not None
        check(store, Model())

    @pytest.mark.embedded
    def test_another_process_uses_the_new_model(self, store: Any, run: Any) -> None:
        store.reembed(FakeEmbedder(64, "second"))
        done = run(
            """
import memgraph.testing
fake = memgraph.testing.FakeEmbedder
FakeEmbedder = lambda dimension: fake(dimension, "second")
with opened() as store:
    store.insert_memory({"type": "episodic", "content": "from elsewhere"})
    assert store.awaiting_vectors() == 0
    store.verify()
FakeEmbedder = fake
try:
    opened()
except memgraph.errors.ModelMismatchError:
    print("refused")
"""
        )
        assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
        check(store, FakeEmbedder(64, "second"))

    def test_an_export_has_vectors_of_the_new_model(self, store: Any, open_store: Open) -> None:
        model = Model(bad=[text_of(4)])
        store.reembed(model)
        export = MemoryCommands(store).export_memories()
        assert export.embedding_model == "new"
        other = open_store("other", embedder=Model())
        MemoryCommands(other).import_memories(json.loads(export.model_dump_json()))
        assert other.digest() == store.digest()
        check(other, Model())


class TestUnfitModel:
    @pytest.mark.parametrize("good", [0, 3])
    def test_a_model_that_fails_on_most_memories_is_rejected(self, store: Any, tmp_path: Path, good: int) -> None:
        before, digest = len(lines_of(tmp_path / "store")), store.digest()
        old = store.embedder
        unfit = Model(bad=[text_of(number) for number in range(9) if number not in range(good)])
        with pytest.raises(EmbeddingError, match=f"cannot embed {8 - good} of 8 memories, so the store still uses"):
            store.reembed(unfit, batch=3)
        assert (store.vector_model.name, store.embedder) == ("fake", old)
        assert (len(lines_of(tmp_path / "store")), store.digest()) == (before, digest)
        check(store, old)

    def test_half_of_them_may_fail(self, store: Any) -> None:
        bad = [text_of(number) for number in (0, 1, 2, 3)]
        model = Model(bad=bad)
        assert store.reembed(model).awaiting == 4
        check(store, model, but=bad)

    @pytest.mark.parametrize("works", [True, False])
    def test_such_a_model_is_rejected_for_a_store_without_vectors(self, open_store: Open, works: bool) -> None:
        with open_store(embedder=NoEmbedder()) as store:
            store.insert_memory({"type": "semantic", "content": text_of(0)})
            unfit = Model(bad=[text_of(0)])
            unfit.works = works
            with pytest.raises(EmbeddingError, match="cannot embed 1 of 1" if works else "is away"):
                store.reembed(unfit)
            assert isinstance(store.embedder, NoEmbedder)
            store.insert_memory({"type": "semantic", "content": text_of(1)})
            assert store.awaiting_vectors() == 2
