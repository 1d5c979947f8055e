"""Text-only mode: no model is loaded, and what a user does still does what it says."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import memgraph
from memgraph.embedding import NoEmbedder
from memgraph.errors import EmbeddingError
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.testing import FakeEmbedder, FakeExtractor

Open = Callable[..., Any]
DIMENSION = 64
DEPLOY = "Deploy on Tuesdays only"
EPISODES = [
    "The deploy failed because the migration locked the orders table",
    "The cache was cold after the restart",
    "Ana reverted the new CSV parser",
]


@pytest.fixture
def store(open_store: Open) -> Any:
    made = open_store(embedder=NoEmbedder())
    made.insert_memories([{"type": "episodic", "content": text} for text in EPISODES])
    return made


@pytest.fixture
def commands(store: Any) -> memgraph.MemoryCommands:
    return memgraph.MemoryCommands(store)


class TestCommands:
    def test_ask_returns_episodes_that_share_words_with_the_question(self, commands: Any) -> None:
        told = commands.ask("why was the CSV parser reverted?").message.split("\n")
        assert len(told) == 1
        assert told[0].endswith(EPISODES[2])
        assert EPISODES[0] in commands.ask("orders table").message

    def test_ask_does_not_say_that_nothing_is_known_where_it_cannot_tell(self, commands: Any) -> None:
        answer = commands.ask("database trouble")
        assert answer.data == {"ids": []}
        assert "only words are compared" in answer.message

    def test_the_nearest_in_words_comes_first(self, store: Any, commands: Any) -> None:
        store.insert_memory({"type": "episodic", "content": "The parser of the CSV import"})
        told = commands.ask("the CSV parser").message.split("\n")
        assert [line.split(": ", 1)[1] for line in told] == ["The parser of the CSV import", EPISODES[2]]

    @pytest.mark.parametrize("query", [DEPLOY, DEPLOY.upper(), "only deploy on a Tuesday!"])
    def test_forget_finds_a_text_by_its_words(self, commands: Any, query: str) -> None:
        kept = commands.remember(DEPLOY, tags=["release", "calendar"], project_id="shop")
        result = commands.forget(query)
        assert (result.success, result.data) == (True, {"id": kept.data["ids"][0]})

    @pytest.mark.parametrize("query", ["deploy", "the table", "something else", "the", "💥"])
    def test_forget_touches_nothing_that_merely_shares_a_word(self, store: Any, commands: Any, query: str) -> None:
        result = commands.forget(query)
        assert not result.success
        assert "own words" in result.message
        assert store.get_stats().suppressed_count == 0

    def test_a_single_memory_is_found(self, open_store: Open) -> None:
        store = open_store("single", embedder=NoEmbedder())
        commands = memgraph.MemoryCommands(store)
        store.insert_memory({"type": "episodic", "content": EPISODES[0]})
        assert EPISODES[0] in commands.ask("deploy").message
        assert commands.forget(EPISODES[0]).success

    def test_the_rest_works_as_ever(self, store: Any, commands: Any) -> None:
        kept = commands.remember(DEPLOY)
        assert len(commands.list()) == commands.stats().total == 4
        assert commands.show(kept.data["ids"][0]).embedding is None

    @pytest.mark.embedded
    def test_an_export_goes_round(self, store: Any, commands: Any, open_store: Open) -> None:
        export = commands.export_memories()
        assert export.embedding_model is None
        document = export.model_dump(mode="json")
        other = open_store("other", embedder=NoEmbedder())
        memgraph.MemoryCommands(other).import_memories(document)
        assert other.digest() == store.digest()
        embedded = open_store("embedded")
        memgraph.MemoryCommands(embedded).import_memories(document)
        assert embedded.digest() == store.digest()
        assert embedded.awaiting_vectors() == 0

    def test_another_stores_vectors_are_left_out(self, open_store: Open) -> None:
        source = open_store("source")
        source.insert_memory({"type": "episodic", "content": EPISODES[0]})
        store = open_store("bare", embedder=NoEmbedder())
        memgraph.MemoryCommands(store).import_memories(memgraph.MemoryCommands(source).export_memories())
        assert store.awaiting_vectors() == 1
        assert store.digest() == source.digest()


class TestRecall:
    def test_text_finds_and_nothing_is_complained_of(self, store: Any) -> None:
        retrieval = memgraph.MemoryRetrieval(store)
        result = retrieval.retrieve({"task_description": "change the CSV parser"})
        assert result.notice is None
        assert result.memories[0].content == EPISODES[2]
        assert retrieval.search_memories("the cold cache")[0].memory.content == EPISODES[1]

    def test_a_given_vector_that_nothing_can_be_compared_with_is_passed_over(self, store: Any) -> None:
        query = {"task_description": "the cold cache", "task_embedding": [1.0] * 9, "max_episodic": 1}
        result = memgraph.MemoryRetrieval(store).retrieve(query)
        assert [memory.content for memory in result.memories] == [EPISODES[1]]

    def test_a_store_whose_memories_all_await_vectors_ranks_as_without_a_model(
        self, store: Any, open_store: Open
    ) -> None:
        def found(opened: Any) -> list[tuple[str, float]]:
            hits = memgraph.MemoryRetrieval(opened).search_memories("the deploy locked the cache")
            return [(hit.memory.id, hit.score) for hit in hits]

        expected = found(store)
        store.close()
        assert found(open_store()) == expected

    def test_what_awaits_its_vector_is_found_beside_what_has_one(self, store: Any, open_store: Open) -> None:
        store.close()
        store = open_store()
        others = [f"Service {number} was restarted on a Monday" for number in range(20)]
        store.insert_memories([{"type": "episodic", "content": text} for text in others])
        assert store.awaiting_vectors() == len(EPISODES)
        commands = memgraph.MemoryCommands(store)
        hits = memgraph.MemoryRetrieval(store).search_memories("Ana reverted the CSV parser", limit=1)
        assert hits[0].memory.content == EPISODES[2]
        assert commands.ask("who reverted the CSV parser?").message.split("\n")[0].endswith(EPISODES[2])
        assert commands.ask("a service on a Monday").message.count("Monday") == 5
        assert EPISODES[0][:50] in commands.forget(EPISODES[0]).message


def log(build: str) -> memgraph.BuildEventLog:
    times = {"started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T01:00:00Z"}
    return memgraph.BuildEventLog(build_id=build, project_id="shop", build_outcome="failure", **times)


def consolidated(store: Any, *texts: str, first_build: int = 0, outcome: str = "negative") -> list[Any]:
    """Consolidate a build for each text, all in one call."""
    found = [[{"type": "episodic", "content": text, "outcome": outcome}] for text in texts]
    extractor = FakeExtractor([memgraph.ExtractionResult.from_memories(memories) for memories in found])
    pipeline = ConsolidationPipeline(store, extractor=extractor)
    return pipeline.consolidate_all([log(f"b{first_build + place}") for place in range(len(texts))])


class TestDeduplication:
    TEXT = "getUserById failed: the Token  had expired"
    SAME = "getUserById FAILED:\tthe token had expired"

    @pytest.mark.parametrize("calls", [1, 2])
    def test_equal_texts_merge(self, open_store: Open, calls: int) -> None:
        store = open_store(embedder=NoEmbedder())
        if calls == 1:
            results = consolidated(store, self.TEXT, self.SAME)
        else:
            results = consolidated(store, self.TEXT) + consolidated(store, self.SAME, first_build=1)
        assert [result.memories_deduplicated for result in results] == [0, 1]
        (memory,) = store.get_all_memories()
        assert memory.evidence_build_ids == ["b0", "b1"]

    @pytest.mark.parametrize("other", ["getUserById failed: the token had not expired", "The token had expired"])
    def test_texts_that_differ_do_not(self, open_store: Open, other: str) -> None:
        store = open_store(embedder=NoEmbedder())
        consolidated(store, self.TEXT)
        consolidated(store, other, first_build=1)
        assert store.get_stats().total == 2

    def test_nor_do_equal_texts_of_other_outcomes(self, open_store: Open) -> None:
        store = open_store(embedder=NoEmbedder())
        consolidated(store, self.TEXT)
        consolidated(store, self.TEXT, first_build=1, outcome="positive")
        assert store.get_stats().total == 2

    def test_what_was_forgotten_is_not_merged_into(self, open_store: Open) -> None:
        store = open_store(embedder=NoEmbedder())
        consolidated(store, self.TEXT)
        forgotten = store.update_memory(store.get_all_memories()[0].id, is_suppressed=True)
        consolidated(store, self.SAME, first_build=1)
        assert store.get_memory(forgotten.id) == forgotten

    @pytest.mark.parametrize("modes", [("none", "fake"), ("fake", "none")])
    def test_across_the_modes(self, open_store: Open, modes: tuple[str, str]) -> None:
        for place, mode in enumerate(modes):
            with open_store(embedder=NoEmbedder() if mode == "none" else FakeEmbedder(DIMENSION)) as store:
                consolidated(store, self.TEXT, first_build=place)
        with open_store() as store:
            assert store.get_stats().total == 1
            store.embed_awaiting()
            store.verify()

    def test_merging_by_hand_takes_the_longer_text_and_leaves_its_vector_to_later(self, open_store: Open) -> None:
        with open_store() as store:
            memory = store.insert_memory({"type": "episodic", "content": "The build failed"})
        with open_store(embedder=NoEmbedder()) as store:
            after = ConsolidationPipeline(store).merge(memory, {"content": "The build failed: no space left"})
            assert (after.content, after.embedding) == ("The build failed: no space left", None)
            assert store.awaiting_vectors() == 1
            assert ConsolidationPipeline(store).deduplicate(memory.embedding, "episodic") is None
        with open_store() as store:
            assert store.embed_awaiting() == 1
            after = store.get_memory(memory.id)
            assert ConsolidationPipeline(store).deduplicate(after.embedding, "episodic") == after

    def test_a_store_without_vectors_has_no_duplicate_of_one(self, store: Any) -> None:
        assert ConsolidationPipeline(store).deduplicate([1.0] * 384, "episodic") is None


class Away(FakeEmbedder):
    def embed(self, texts: Any) -> Any:
        raise EmbeddingError("the model is away")

    def embed_query(self, text: str) -> Any:
        return self.embed([text])


def test_a_model_that_fails_leaves_words_and_a_warning(open_store: Open, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(embedder=Away(DIMENSION))
    consolidated(store, EPISODES[0], EPISODES[0].upper())
    commands = memgraph.MemoryCommands(store)
    with caplog.at_level(logging.WARNING, logger="memgraph"):
        assert EPISODES[0] in commands.ask("which deploy locked the table?").message
    assert "the model is away" in caplog.text
    assert "the model is away" in memgraph.MemoryRetrieval(store).retrieve({"task_description": "deploy"}).notice
    assert commands.forget(EPISODES[0]).success


def test_ingest_takes_a_few_along_once_the_model_works(open_store: Open, tmp_path: Any) -> None:
    from memgraph.extraction.readers import BuildLogReader

    def read(builds: int, embedder: Any) -> int:
        task = {"task_id": "t", "agent_name": "MARS", "description": "Deploy", "outcome": "failure"}
        lines = []
        for number in range(builds):
            failed = {**task, "output": f"Error: service{number}.py ran out of memory at step {number}"}
            lines.append(
                log(f"b{number}").model_copy(update={"tasks": [memgraph.BuildTask(**failed)]}).model_dump_json()
            )
        (tmp_path / "builds.jsonl").write_text("\n".join(lines) + "\n")
        with memgraph.MemGraph(open_store(embedder=embedder)) as memory:
            memory.ingest(BuildLogReader(tmp_path / "builds.jsonl", project_id="shop"))
            return memory.store.awaiting_vectors()

    waiting = read(3, Away(DIMENSION))
    assert waiting
    assert read(4, FakeEmbedder(DIMENSION)) == 0


def test_no_model_is_loaded() -> None:
    program = """
import os, sys, tempfile
from pathlib import Path
import memgraph
folder = Path(tempfile.mkdtemp())
with memgraph.MemGraph.open(folder / "store", keys_home=folder / "keys", embedding_model="none") as memory:
    memory.commands.remember("Deploy on Tuesdays only")
    assert memory.recall("deploy").memories
    assert memory.commands.forget("Deploy on Tuesdays only").success
    assert not memory.commands.ask("deploy").data["ids"]
assert not {"onnxruntime", "tokenizers"} & sys.modules.keys(), "a model was loaded"
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
