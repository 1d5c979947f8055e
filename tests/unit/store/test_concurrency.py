"""Several threads, stores and processes on one home: nothing is lost, nothing is done twice, nobody sees half of it."""

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

import memgraph
from memgraph.errors import MemGraphError, StorageError
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.testing import FakeExtractor

TEXT = "The login test failed because the token had expired"


def episode(content=TEXT, **fields):
    return {"type": "episodic", "content": content, **fields}


def log(build, task="t"):
    return memgraph.BuildEventLog(
        build_id=build,
        project_id="shop",
        build_outcome="failure",
        started_at="2026-01-01T00:00:00Z",
        completed_at="2026-01-01T01:00:00Z",
        build_summary=task,
    )


def in_threads(work, items, threads=4):
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


OPEN = """
import sys
from pathlib import Path
from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.testing import FakeEmbedder
home = Path(sys.argv[1])
with AgentMemoryStore(AgentMemoryConfig(home=home, keys_home=home.parent / "keys"), embedder=FakeEmbedder()) as store:
    store.insert_memory({"type": "episodic", "content": f"Written by {sys.argv[2]}"})
"""


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.long)])
def test_processes_opening_a_new_directory_create_one_store(tmp_path, config, open_store, count):
    home = tmp_path / "fresh" / "store"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    children = [
        subprocess.Popen([sys.executable, "-c", OPEN, str(home), str(n)], env=environment, stderr=subprocess.PIPE)
        for n in range(count)
    ]
    errors = [child.communicate()[1].decode() for child in children]

    assert [child.returncode for child in children] == [0] * count, errors
    settings = config.model_copy(update={"home": home, "keys_home": home.parent / "keys"})
    with memgraph.AgentMemoryStore(settings, embedder=memgraph_fake()) as store:
        assert store.get_stats().total == count
        assert store.verify() > count


def memgraph_fake():
    from memgraph.testing import FakeEmbedder

    return FakeEmbedder()


@pytest.mark.embedded
def test_a_graph_deleted_under_an_open_store_is_rebuilt(open_store):
    with open_store() as store:
        store.insert_memory(episode())
        count = "MATCH (m:Memory) RETURN count(m) AS n"
        assert store.cypher(count)[0]["n"] == 1
        shutil.rmtree(store.config.home / "graph")
        store.insert_memory(episode("Another one"))
        assert store.cypher(count)[0]["n"] == 2


def test_nothing_is_acknowledged_that_goes_into_a_file_put_aside(open_store):
    with open_store() as store:
        store.insert_memory(episode())
        place = store.config.home / "memgraph.db"
        with open_store() as other:  # its write-ahead log is merged when the last one closes it
            other.insert_memory(episode("Another one"))
        kept = place.with_name("kept.db")
        shutil.copy(place, kept)
        kept.replace(place)
        assert store.insert_memory(episode("The third one"))
    with open_store() as store:
        assert len(store.get_all_memories()) == 3
    with open_store() as store:
        place.unlink()
        with pytest.raises(MemGraphError):
            store.insert_memory(episode("The fourth one"))


@pytest.mark.embedded
def test_a_commit_by_another_store_is_applied_once(open_store):
    with open_store() as one:
        memory = one.insert_memory(episode())
        with open_store() as other:
            other.link(other.insert_memory(episode("Why")).id, "related_to", memory.id)
        one.update_memory(memory.id, title="login")

        assert len(one.links(memory.id)) == 1
        assert one.verify() > 0


def test_accesses_by_threads_add_up(store):
    memory = store.insert_memory(episode())

    in_threads(lambda _: store.record_access(memory.id), range(40))

    assert store.get_memory(memory.id).access_count == 40
    store.flush()
    assert store.get_memory(memory.id).access_count == 40


def test_a_use_survives_a_read_that_fails(store, monkeypatch):
    memory = store.insert_memory(episode())
    store.record_access(memory.id)
    with monkeypatch.context() as patched:
        patched.setattr(
            store._projector.rows, "memories", Mock(side_effect=StorageError("the disk is gone", path="rows"))
        )
        with pytest.raises(StorageError):
            assert store.reader.index
    store.flush()
    assert store.get_memory(memory.id).access_count == 1


def test_accesses_by_two_stores_add_up_and_undo_no_update(open_store):
    with open_store() as one, open_store() as other:
        memory = one.insert_memory(episode())
        one.record_access(memory.id)
        other.record_access(memory.id)
        other.flush()
        other.update_memory(memory.id, relevance_score=0.1)
        one.flush()

        assert one.get_memory(memory.id).access_count == 2
        assert one.get_memory(memory.id).relevance_score == pytest.approx(0.3)


def test_merges_by_threads_lose_no_evidence(open_store):
    store = open_store(compression_cycle_interval=1_000)
    store.insert_memory(episode(project_id="shop"))

    def consolidate(number):
        pipeline = ConsolidationPipeline(store, extractor=FakeExtractor([episode()]))
        return pipeline.consolidate(log(f"b{number}")).memories_deduplicated

    assert sum(in_threads(consolidate, range(20))) == 20
    (memory,) = store.get_all_memories()
    assert sorted(memory.evidence_build_ids) == sorted(f"b{n}" for n in range(20))


def test_one_log_consolidated_by_threads_at_once_counts_once(store):
    def consolidate(_):
        return ConsolidationPipeline(store, extractor=FakeExtractor([episode()])).consolidate(log("b1"))

    results = in_threads(consolidate, range(4))

    assert sum(len(result.new_memory_ids) for result in results) == 1
    assert len(store.get_all_memories()) == 1


@pytest.mark.embedded
def test_searching_beside_a_writer_sees_consistent_states(store):
    retrieval = memgraph.MemoryRetrieval(store)
    store.insert_memory(episode())
    is_done = threading.Event()
    failures = []

    def search():
        while not is_done.is_set():
            try:
                assert retrieval.search_memories("login token")
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the failure
                failures.append(error)
                return

    searchers = [threading.Thread(target=search) for _ in range(2)]
    for thread in searchers:
        thread.start()
    for number in range(30):
        store.insert_memory(episode(f"Login attempt {number} used a stale token"))
    is_done.set()
    for thread in searchers:
        thread.join()

    assert failures == []


def test_a_grown_log_of_many_failures_adds_its_growth(store):
    tasks = [
        {
            "task_id": f"t{n}",
            "agent_name": "MARS",
            "description": what,
            "output": f"Error: {what}",
            "outcome": "failure",
        }
        for n, what in enumerate(
            "parse the config|render the page|drop the table|send the mail|sign the token|warm the cache|open the port|"
            "scale the image|merge the branch|rotate the logs|charge the card".split("|")
        )
    ]
    pipeline = ConsolidationPipeline(store)
    shared = {"build_id": "b1", "project_id": "shop", "build_outcome": "failure"}
    times = {"started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T01:00:00Z"}

    first = pipeline.consolidate({**shared, **times, "tasks": tasks[:8]})
    grown = pipeline.consolidate({**shared, **times, "tasks": tasks})

    assert first.memories_extracted == 8
    assert grown.memories_extracted == 3


def test_a_vector_of_the_wrong_length_is_rejected_everywhere(store):
    memory = store.insert_memory(episode())
    pipeline = ConsolidationPipeline(store)
    before = store.digest()
    for bad in ([1.0] * 65, [1.0], [float("nan")] * 64, [0.0] * 64):
        with pytest.raises(memgraph.InvalidInputError):
            pipeline.merge(memory, {"content": TEXT + " and more", "embedding": bad})
        with pytest.raises(memgraph.InvalidInputError):
            pipeline.deduplicate(bad, "episodic")
    assert store.digest() == before
    assert store.verify() > 0


@pytest.mark.embedded
def test_an_interrupted_recorded_commit_counts_its_uses_once(open_store, monkeypatch):
    with open_store() as store:
        memory = store.insert_memory(episode())
        store.record_access(memory.id)
        engine = store._projector.rows

        def interrupted(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(engine, "apply", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.flush()

        assert store.get_memory(memory.id).access_count == 1
        store.flush()
        assert store.get_memory(memory.id).access_count == 1
        assert store.verify() > 0


def test_an_update_embeds_its_text_once(store, embedder):
    memory = store.insert_memory(episode())
    embedder.calls.clear()

    updated = store.update_memory(memory.id, content="A new text")

    assert embedder.calls == [["A new text"]]
    assert updated.embedding == pytest.approx(embedder.embed(["A new text"])[0])
