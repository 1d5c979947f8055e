"""Memories that were kept without vectors get them later: each once, each its own text's, none forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.embedding import NoEmbedder
from memgraph.errors import EmbeddingError, InvalidInputError, ModelMismatchError
from memgraph.testing import FakeEmbedder
from tests.tables import lines_of

Open = Callable[..., Any]
DIMENSION = 64


class Whimsical(FakeEmbedder):
    """A fake that fails on some texts, or on all, or is watched while it embeds."""

    def __init__(self, *, works: bool = True, bad: Sequence[str] = (), before: Callable[[], Any] | None = None) -> None:
        super().__init__(DIMENSION)
        self.works, self.bad, self.before = works, bad, before

    def embed(self, texts: Sequence[str]) -> Any:
        if self.before is not None:
            before, self.before = self.before, None
            before()
        if not self.works:
            raise EmbeddingError("the model is away")
        made = super().embed(texts)
        for place, text in enumerate(texts):
            if text in self.bad:
                made[place] = np.nan
        return made

    def embed_query(self, text: str) -> Any:
        return self.embed([text])[0]


def episodes(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": "episodic", "content": f"try {number} of the build", **fields} for number in range(count)]


def revisions(home: Path) -> list[dict[str, Any]]:
    return [event for event in lines_of(home) if event["head"]["type"] == "memory.revised"]


@pytest.fixture
def textual(open_store: Open) -> Any:
    """A store in text-only mode that holds memories of every state: 8 that await vectors."""
    store = open_store(embedder=NoEmbedder())
    ids = [memory.id for memory in store.insert_memories(episodes(6))]
    store.insert_memories(episodes(2, task_id="T", project_id="P"))
    store.update_memory(ids[1], is_suppressed=True)
    store.archive(ids[2])
    store.delete_memory(ids[5])
    assert store.awaiting_vectors() == 7
    store.insert_memory({"type": "semantic", "content": "builds are slow", "is_pinned": True})
    return store


def vectors_of(store: Any) -> dict[str, Any]:
    return {memory.content: memory.embedding for memory in store.every_memory()}


def check_all(store: Any) -> None:
    """Every memory has the vector of its text."""
    assert store.awaiting_vectors() == 0
    for memory in store.every_memory():
        assert memory.embedding.tobytes() == FakeEmbedder(DIMENSION).embed([memory.content])[0].tobytes()
        assert memory.embedding_model == "fake"
        assert memory.embedded_at
    store.verify()


class TestEmbedding:
    def test_every_live_memory_gets_its_texts_vector(self, textual: Any, open_store: Open) -> None:
        digest, before = textual.digest(), {memory.id: memory for memory in textual.every_memory()}
        textual.close()
        store = open_store()
        told: list[Any] = []

        assert store.embed_awaiting(batch=3, progress=lambda *counts: told.append(counts)) == 8

        check_all(store)
        assert told == [(3, 8), (6, 8), (8, 8)]
        assert store.digest() == digest
        given = {"embedding", "embedding_model", "embedded_at"}
        for memory in store.every_memory():  # nothing but the vector is new
            assert memory.model_dump(exclude=given) == before[memory.id].model_dump(exclude=given)
        assert store.embed_awaiting() == 0

    def test_the_events_contain_only_the_vector(self, textual: Any, open_store: Open, tmp_path: Path) -> None:
        known = len(revisions(tmp_path / "store"))
        textual.close()
        with open_store() as store:
            store.embed_awaiting()
        events = revisions(tmp_path / "store")[known:]
        assert len(events) == 8
        for event in events:
            assert event["payload"].keys() == {"id", "changed", "vector"}
            assert event["payload"]["changed"].keys() == {"embedded_at"}
        scopes = {(event["head"]["write_scope"], event["head"]["task_id"]) for event in events}
        commits = {event["head"]["commit_id"] for event in events}
        assert scopes == {("global", None), ("task", "T")}
        assert len(commits) == 2

    @pytest.mark.embedded
    def test_a_rebuilt_and_a_reopened_store_have_the_vectors(self, textual: Any, open_store: Open) -> None:
        textual.close()
        store = open_store()
        store.embed_awaiting()
        expected = {content: vector.tobytes() for content, vector in vectors_of(store).items()}
        store.rebuild()
        check_all(store)
        store.close()
        again = open_store()
        assert {content: vector.tobytes() for content, vector in vectors_of(again).items()} == expected

    def test_at_most_limits_the_number(self, textual: Any, open_store: Open) -> None:
        textual.close()
        store = open_store()
        assert [store.embed_awaiting(at_most=3, batch=2) for _ in range(4)] == [3, 3, 2, 0]
        check_all(store)

    @pytest.mark.parametrize("batch", [0, -1])
    def test_a_batch_size_of_zero_is_rejected(self, textual: Any, batch: int) -> None:
        with pytest.raises(InvalidInputError, match="batch"):
            textual.embed_awaiting(batch=batch)

    def test_changed_text_awaits_a_vector_when_the_model_is_unavailable(self, open_store: Open) -> None:
        embedder = Whimsical()
        store = open_store(embedder=embedder)
        memory = store.insert_memory(episodes(1)[0])
        embedder.works = False
        store.update_memory(memory.id, content="the build was never tried")
        assert store.get_memory(memory.id).embedding is None
        assert store.awaiting_vectors() == 1
        embedder.works = True
        assert store.embed_awaiting() == 1
        check_all(store)


class TestFailures:
    def test_an_unavailable_model_is_reported_and_nothing_is_lost(self, textual: Any, open_store: Open) -> None:
        with pytest.raises(EmbeddingError, match="embedding_model"):
            textual.embed_awaiting()
        textual.close()
        embedder = Whimsical(works=False)
        store = open_store(embedder=embedder)
        with pytest.raises(EmbeddingError, match="away"):
            store.embed_awaiting()
        assert store.awaiting_vectors() == 8
        assert "8 memories await" in "".join(store.notices)
        embedder.works = True
        assert store.embed_awaiting() == 8
        assert store.notices == []

    def test_finished_vectors_are_kept_when_the_model_fails(self, textual: Any, open_store: Open) -> None:
        textual.close()
        embedder = Whimsical()

        def fail_next(*_: int) -> None:
            embedder.works = False

        store = open_store(embedder=embedder)
        with pytest.raises(EmbeddingError, match="2 of 8"):
            store.embed_awaiting(batch=2, progress=fail_next)
        assert store.awaiting_vectors() == 6
        embedder.works = True
        assert store.embed_awaiting() == 6
        check_all(store)

    def test_a_failing_text_is_named_and_blocks_no_other(self, textual: Any, open_store: Open) -> None:
        textual.close()
        store = open_store(embedder=Whimsical(bad=["try 0 of the build"]))
        bad = {memory.id for memory in store.every_memory() if memory.content == "try 0 of the build"}

        assert store.embed_awaiting(batch=2) == 6
        assert store.embed_awaiting() == 0

        assert {memory.id for memory in store.every_memory() if memory.embedding is None} == bad
        assert store.awaiting_vectors() == len(bad) == 2
        for memory_id in bad:
            assert any(memory_id in notice and "NaN" in notice for notice in store.notices)
        store.close()
        store = open_store()
        assert store.embed_awaiting() == 2
        check_all(store)

    @pytest.mark.parametrize("works", [True, False])
    def test_an_insert_is_kept_whatever_the_model_returns(self, open_store: Open, works: bool) -> None:
        store = open_store(embedder=Whimsical(works=works, bad=["try 1 of the build"]))
        store.insert_memories(episodes(3))
        store.insert_memory({"type": "semantic", "content": "try 1 of the build"})
        assert store.get_stats().total == 4
        assert store.awaiting_vectors() == (2 if works else 4)
        assert "found by text alone" in "".join(store.notices)
        store.close()
        with open_store() as store:
            store.embed_awaiting()
            check_all(store)

    def test_the_same_failure_is_reported_once(self, open_store: Open) -> None:
        store = open_store(embedder=Whimsical(works=False))
        for memory in episodes(5):
            store.insert_memory(memory)
        assert len(store.notices) == 2  # what failed, and how many wait


class TestBesideOthers:
    def test_a_text_changed_meanwhile_does_not_get_the_old_vector(self, textual: Any, open_store: Open) -> None:
        first = next(iter(textual.every_memory()))
        textual.close()
        other = open_store(embedder=NoEmbedder())
        store = open_store(
            embedder=Whimsical(before=lambda: other.update_memory(first.id, content="quite another text")),
        )
        assert store.embed_awaiting() == 7
        assert store.get_memory(first.id).embedding is None
        assert store.embed_awaiting() == 1
        check_all(store)

    def test_memories_deleted_or_embedded_meanwhile_are_skipped(self, textual: Any, open_store: Open) -> None:
        ids = [memory.id for memory in textual.every_memory()]
        textual.close()
        other = open_store()
        store = open_store(
            embedder=Whimsical(before=lambda: (other.delete_memory(ids[0]), other.embed_awaiting(at_most=3))),
        )
        assert store.embed_awaiting() == 4
        check_all(store)

    def test_two_threads_embed_each_once(self, textual: Any, open_store: Open) -> None:
        textual.close()
        store = open_store()
        counts: list[int] = []
        threads = [threading.Thread(target=lambda: counts.append(store.embed_awaiting(batch=1))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(counts) == 8
        check_all(store)

    def test_a_model_changed_meanwhile_is_respected(self, textual: Any, open_store: Open) -> None:
        textual.close()
        other = open_store(embedder=FakeEmbedder(DIMENSION, name="other"))
        store = open_store(embedder=Whimsical(before=lambda: other.embed_awaiting(at_most=1)))
        with pytest.raises(ModelMismatchError, match="other"):
            store.embed_awaiting()
        with pytest.raises(ModelMismatchError, match="other"):
            store.insert_memory(episodes(1)[0])
        assert other.embed_awaiting() == 7
        other.verify()

    @pytest.mark.embedded
    def test_writers_do_not_wait_for_the_model(self, textual: Any, open_store: Open) -> None:
        textual.close()
        other = open_store(embedder=NoEmbedder(), lock_timeout_s=2.0)
        store = open_store(embedder=Whimsical(before=lambda: other.insert_memory(episodes(1)[0])))
        assert store.embed_awaiting() == 8
        assert store.awaiting_vectors() == 1  # came in between: the next run's


class TestGivenVectors:
    def test_a_store_with_a_model_keeps_them_in_text_only_mode_too(self, open_store: Open) -> None:
        store = open_store()
        store.insert_memory(episodes(1)[0])
        store.close()
        store = open_store(embedder=NoEmbedder())
        vector = np.random.default_rng(1).standard_normal(DIMENSION).astype(np.float32) * 7
        given = store.insert_memory({"type": "episodic", "content": "given", "embedding": vector})
        made = store.insert_memory({"type": "episodic", "content": "not given"})
        assert given.embedding.tobytes() == vector.tobytes()
        assert (given.embedding_model, made.embedding_model) == ("fake", None)
        assert store.awaiting_vectors() == 1
        with pytest.raises(InvalidInputError, match="64 dimensions"):
            store.insert_memory({"type": "episodic", "content": "short", "embedding": vector[:9]})
        store.verify()
        store.close()
        with open_store() as store:
            assert store.get_memory(given.id).embedding.tobytes() == vector.tobytes()

    def test_a_store_without_a_model_explains_what_to_do(self, textual: Any) -> None:
        total = textual.get_stats().total
        with pytest.raises(InvalidInputError, match="embedding_model"):
            textual.insert_memory({"type": "episodic", "content": "x", "embedding": [1.0] * DIMENSION})
        assert textual.get_stats().total == total
        assert textual.vector_model.dimension == 0

    def test_a_model_name_without_a_vector_is_ignored(self, open_store: Open) -> None:
        store = open_store(embedder=NoEmbedder())
        memory = store.insert_memory({**episodes(1)[0], "embedding_model": "fake", "embedded_at": "2026-01-01"})
        assert (memory.embedding_model, memory.embedded_at) == (None, None)


def test_a_setting_makes_a_store_text_only(open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"home": tmp_path / "store", "keys_home": tmp_path / "keys"}
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    with memgraph.AgentMemoryStore(memgraph.AgentMemoryConfig(**settings)) as store:
        assert store.embedder.dimension == 0
        store.insert_memory(episodes(1)[0])
        assert store.awaiting_vectors() == 1
        assert store.notices == []  # that is what was asked for
    assert memgraph.AgentMemoryConfig(**settings, embedding_model="minilm").embedding_model == "minilm"
    monkeypatch.delenv("MEMGRAPH_EMBEDDING_MODEL")
    (tmp_path / "store" / "config.toml").write_text('embedding_model = "none"\n')
    assert memgraph.AgentMemoryConfig(**settings).embedding_model == "none"
    assert memgraph.AgentMemoryConfig(home=tmp_path / "other").embedding_model == "minilm"
    with pytest.raises(InvalidInputError, match="embedding_model"):
        memgraph.AgentMemoryConfig(**settings, embedding_model="word2vec")
