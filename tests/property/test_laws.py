"""Laws that hold for any memories: each example has a real store of its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from math import ceil, exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.embedding import NoEmbedder

DIMENSION = 64
START = "2026-02-01T09:00:00.000Z"
KINDS = {"episodic": "EpisodicMemory", "semantic": "SemanticMemory", "procedural": "ProceduralMemory"}

few = settings(max_examples=4, database=None, suppress_health_check=[HealthCheck.too_slow])
fewest = settings(few, max_examples=2)
"""For laws of the embedded graph, whose stores take longest."""
many = settings(max_examples=200, database=None)


@contextmanager
def fresh_folder():
    with tempfile.TemporaryDirectory(prefix="memgraph-laws-") as folder:
        yield Path(folder)


def fakes(start=START):
    from memgraph.testing import FakeClock, FakeEmbedder

    return {"embedder": FakeEmbedder(dimension=DIMENSION), "clock": FakeClock(start=start)}


def opened(folder, name="store", *, is_embedded=False, **parts):
    config = memgraph.AgentMemoryConfig(home=folder / name, keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, **(parts or fakes()))


def vector(seed):
    return np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)


texts = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60
).filter(str.strip)
names = st.sampled_from(["auth", "deploy", "ünïcode tag", "a, b", "'quoted\"", "{x}"])


@st.composite
def memories(draw, *, content=texts, projects=(None, "A", "B"), min_size=1, max_size=7):
    """Draw memories with ids, vectors and many combinations of fields."""
    drawn = []
    for memory_id in draw(st.lists(st.uuids(version=4), min_size=min_size, max_size=max_size, unique=True)):
        kind = draw(st.sampled_from(sorted(KINDS)))
        fields = {
            "id": str(memory_id),
            "content": draw(content),
            "outcome": draw(st.sampled_from(["positive", "negative", "neutral", "unknown", "failure"])),
            "relevance_score": draw(st.floats(0.0, 1.0)),
            "confidence": draw(st.floats(0.0, 1.0)),
            "is_pinned": draw(st.booleans()),
            "is_suppressed": draw(st.integers(0, 4)) == 0,
            "project_id": draw(st.sampled_from(projects)),
            "session_id": draw(st.sampled_from([None, "s1", "s2"])),
            "tags": draw(st.lists(names, max_size=3, unique=True)),
            "agents_involved": draw(st.lists(st.sampled_from(["MARS", "VENUS"]), max_size=2, unique=True)),
            "embedding": vector(draw(st.integers(0, 2**32 - 1))),
        }
        if kind == "procedural":
            fields["steps"] = draw(st.lists(texts, max_size=3))
            fields["trigger_pattern"] = draw(st.none() | texts)
        if kind == "episodic":
            fields["location"] = draw(st.none() | texts)
        drawn.append(getattr(memgraph, KINDS[kind])(**fields))
    return drawn


def relevances(store):
    return {memory.id: memory.relevance_score for memory in store.get_all_memories(include_suppressed=True)}


def rows(store):
    """Return the graph's rows of memories, read in this process: a query starts a process for each store."""
    with store._projector.reading():
        return dict(store._projector.rows.scan("Memory"))


@few
@given(given_memories=memories(), days=st.tuples(st.integers(0, 60), st.integers(0, 60)))
def test_decay_is_idempotent(given_memories, days):
    with fresh_folder() as folder:
        parts = fakes()
        with opened(folder, **parts) as store, opened(folder, "undecayed", **parts) as undecayed:
            store.insert_memories(given_memories)
            undecayed.insert_memories(given_memories)
            retrieval = memgraph.MemoryRetrieval(store, parts["embedder"])
            parts["clock"].advance(days=days[0])
            before, digest = relevances(store), store.digest()

            once = retrieval.apply_decay()
            twice = retrieval.apply_decay()

            assert once == twice
            assert relevances(store) == before
            assert store.digest() == digest
            unpinned = [memory for memory in store.get_all_memories() if not memory.is_pinned]
            assert once.below_threshold <= once.updated
            assert once.updated >= len(unpinned)
            parts["clock"].advance(days=days[1])
            assert relevances(store) == relevances(undecayed)  # to have run it in between is to have done nothing
            assert store.digest() == undecayed.digest()


@few
@given(given_memories=memories(), days=st.floats(0.0, 400.0))
def test_relevance_is_pure(given_memories, days):
    with fresh_folder() as folder:
        parts = fakes()
        with opened(folder, **parts) as store:
            store.insert_memories(given_memories)
            parts["clock"].advance(days=days)

            assert relevances(store) == relevances(store)
            for memory in given_memories:
                rate = 0.05 if memory.type == "episodic" else -np.log(0.95) / 7
                expected = 1.0 if memory.is_pinned else memory.relevance_score * exp(-rate * days)
                assert store.get_memory(memory.id).relevance_score == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.fixture(scope="module")
def curve(tmp_path_factory):
    """Return the decay function of a retrieval over an empty store."""
    folder = tmp_path_factory.mktemp("curve")
    with opened(folder) as store:
        yield memgraph.MemoryRetrieval(store).calculate_decayed_relevance


@many
@given(initial=st.floats(0.0, 1.0), first=st.floats(0.0, 1e4), second=st.floats(0.0, 1e4))
def test_decay_composes_and_never_rises(curve, initial, first, second):
    after = curve(initial, first, False)

    assert 0.0 <= after <= initial
    assert curve(initial, first + second, False) <= after
    assert curve(after, second, False) == pytest.approx(curve(initial, first + second, False), rel=1e-6, abs=1e-300)
    assert curve(initial, first, True) == 1.0
    assert curve(initial, 0, False) == initial


@few
@given(
    given_memories=memories(
        content=st.builds(lambda size, mark: (mark + " word" * 160)[:size].strip(), st.integers(1, 800), st.sampled_from("abc")),
        projects=("A", None),
        min_size=4,
        max_size=14,
    ),
    budgets=st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6), st.integers(0, 1000)), min_size=3, max_size=3
    ),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_budget_is_never_exceeded(given_memories, budgets, seed):
    with fresh_folder() as folder:
        parts = fakes()
        with opened(folder, **parts) as store:
            store.insert_memories(given_memories)
            retrieval = memgraph.MemoryRetrieval(store, parts["embedder"])
            for episodic, semantic, procedural, tokens in budgets:
                result = retrieval.retrieve(
                    memgraph.RetrievalQuery(
                        task_description="word",
                        task_embedding=vector(seed),
                        project_id="A",
                        max_episodic=episodic,
                        max_semantic=semantic,
                        max_procedural=procedural,
                        max_tokens=tokens,
                    )
                )

                found = [memory.type for memory in result.memories]
                assert found.count("episodic") <= episodic
                assert found.count("semantic") <= semantic
                assert found.count("procedural") <= procedural
                used = sum(ceil(len(memory.content) / 4) for memory in result.memories)
                assert result.total_tokens_used == used <= tokens
                assert len({memory.id for memory in result.memories}) == len(result.memories)
                assert not any(memory.is_suppressed for memory in result.memories)
                assert bool(result.injected_prompt_prefix) is bool(result.memories)


@few
@given(
    given_memories=memories(min_size=2, max_size=10), asked=st.sampled_from(["A", "B"]), seed=st.integers(0, 2**32 - 1)
)
def test_scope_never_leaks(given_memories, asked, seed):
    with fresh_folder() as folder:
        parts = fakes()
        with opened(folder, **parts) as store:
            store.insert_memories(given_memories)
            visible = {
                memory.id
                for memory in given_memories
                if memory.project_id in {asked, None} and not memory.is_suppressed
            }
            own = {memory.id for memory in given_memories if memory.project_id == asked and not memory.is_suppressed}
            foreign = [memory for memory in given_memories if memory.id not in visible]
            retrieval = memgraph.MemoryRetrieval(store, parts["embedder"])
            # ask for exactly what another project holds, where it holds something
            wanted = foreign[0] if foreign else given_memories[0]

            for towards in (wanted.embedding, vector(seed)):
                result = retrieval.retrieve(
                    memgraph.RetrievalQuery(
                        task_description=wanted.content,
                        task_embedding=towards,
                        project_id=asked,
                        max_episodic=50,
                        max_semantic=50,
                        max_procedural=50,
                        max_tokens=10_000,
                    )
                )
                found = {memory.id for memory in result.memories}
                assert found <= visible
                assert bool(found) is bool(visible)
            listed = memgraph.MemoryCommands(store, parts["embedder"]).list(project=asked, limit=50)
            assert {entry.id for entry in listed} == own
            assert {memory.id for memory in store.query_by_project(asked)} - own <= {
                memory.id for memory in given_memories if memory.project_id == asked and memory.is_suppressed
            }


@fewest
@given(given_memories=memories(min_size=2), cut=st.integers(0, 7))
def test_the_digest_is_independent_of_how_inserts_are_batched(given_memories, cut):
    with fresh_folder() as folder:
        parts = fakes()
        with (
            opened(folder, "single", is_embedded=True, **parts) as single,
            opened(folder, "bulk", is_embedded=True, **parts) as bulk,
            opened(folder, "mixed", is_embedded=True, **parts) as mixed,
        ):
            empty = single.digest()
            for memory in given_memories:
                single.insert_memory(memory)
            bulk.insert_memories(given_memories)
            mixed.insert_memories(given_memories[:cut])
            for memory in given_memories[cut:]:
                mixed.insert_memory(memory)

            assert single.digest() == bulk.digest() == mixed.digest() != empty
            assert relevances(single) == relevances(bulk) == relevances(mixed)
            assert rows(single) == rows(bulk) == rows(mixed)
            bulk.delete_memory(given_memories[0].id)
            assert bulk.digest() != single.digest()


def live_through(store, clock, given_memories, choices):
    """Give a store a history: accesses, updates, links and a deletion."""
    store.insert_memories(given_memories)
    ids = [memory.id for memory in given_memories]
    for choice in choices:
        one, other = ids[choice % len(ids)], ids[(choice // 7) % len(ids)]
        clock.advance(days=choice % 3)
        if choice % 4 == 0:
            store.record_access(one)
        elif choice % 4 == 1:
            store.update_memory(one, tags=["changed"], outcome="negative", is_suppressed=choice % 8 == 1)
        elif choice % 4 == 2 and one != other:
            store.link(one, "RELATED_TO", other)
        elif choice % 4 == 3:
            store.update_memory(one, relevance_score=(choice % 10) / 10)
    if len(ids) > 2:
        store.delete_memory(ids[-1])


@few
@given(given_memories=memories(min_size=2), choices=st.lists(st.integers(0, 1000), max_size=6), days=st.integers(0, 40))
def test_an_export_imported_elsewhere_has_the_same_digest(given_memories, choices, days):
    with fresh_folder() as folder:
        parts = fakes()
        with (
            opened(folder, **parts) as store,
            opened(folder, "elsewhere", **fakes("2026-06-01T00:00:00.000Z")) as elsewhere,
        ):
            live_through(store, parts["clock"], given_memories, choices)
            parts["clock"].advance(days=days)
            export = memgraph.MemoryCommands(store, parts["embedder"]).export_memories()
            document = json.loads(export.model_dump_json())

            result = memgraph.MemoryCommands(elsewhere, parts["embedder"]).import_memories(document)

            assert result.data == {"imported": export.total_memories, "skipped": 0}
            assert elsewhere.digest() == store.digest()
            for memory in export.memories:
                copy = elsewhere.get_memory(memory.id)
                assert copy.embedding.tobytes() == memory.embedding.tobytes()
                assert (copy.content, copy.relevance_at) == (memory.content, memory.relevance_at)
                assert sorted(map(repr, elsewhere.links(memory.id))) == sorted(map(repr, store.links(memory.id)))


@fewest
@given(
    given_memories=memories(min_size=2),
    choices=st.lists(st.integers(0, 1000), max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_rebuilt_store_is_the_same(given_memories, choices, seed):
    query = "word of a query"
    with fresh_folder() as folder:
        parts = fakes()

        def seen():
            with opened(folder, is_embedded=True, **parts) as store:
                found = memgraph.MemoryRetrieval(store, parts["embedder"]).search_memories(query, limit=20)
                everything = {memory.id: memory for memory in store.get_all_memories(include_suppressed=True)}
                links = {memory_id: sorted(map(repr, store.links(memory_id))) for memory_id in everything}
                return store.digest(), rows(store), everything, links, [(one.memory.id, one.score) for one in found]

        with opened(folder, is_embedded=True, **parts) as store:
            live_through(store, parts["clock"], given_memories, choices)
            at_work = store.digest()
        before = seen()
        with closing(sqlite3.connect(folder / "store" / "memgraph.db")) as raw, raw:
            for table in ("node", "edge", "gone", "state"):
                raw.execute(f"DELETE FROM {table}")
        for name in ("index", "graph"):
            shutil.rmtree(folder / "store" / name, ignore_errors=True)

        after = seen()

        assert at_work == before[0]
        assert after == before
        assume(any(not memory.is_suppressed for memory in before[2].values()))
        assert after[4]


@few
@given(
    given_memories=memories(min_size=2),
    choices=st.lists(st.integers(0, 1000), max_size=6),
    batch=st.integers(1, 4),
    query=texts,
)
def test_vectors_that_come_late_make_no_difference(given_memories, choices, batch, query):
    bare = [memory.model_copy(update={"embedding": None}) for memory in given_memories]

    def lived(folder, name, embedder):
        clock = fakes()["clock"]
        with opened(folder, name, embedder=embedder, clock=clock) as store:
            live_through(store, clock, bare, choices)

    def seen(folder, name):
        parts = fakes("2026-06-01T00:00:00.000Z")
        with opened(folder, name, **parts) as store:
            waiting = store.awaiting_vectors()
            assert store.embed_awaiting(batch=batch) == waiting
            found = memgraph.MemoryRetrieval(store, parts["embedder"]).search_memories(query, limit=20)
            vectors = {memory.id: memory.embedding.tobytes() for memory in store.every_memory()}
            store.verify()
            return waiting, [store.digest(), vectors, [(hit.memory.id, hit.score) for hit in found]]

    with fresh_folder() as folder:
        lived(folder, "from the start", fakes()["embedder"])
        lived(folder, "late", NoEmbedder())

        nothing, expected = seen(folder, "from the start")
        waiting, late = seen(folder, "late")

        assert (nothing, waiting) == (0, len(late[1]))
        assert late == expected
