"""Laws of forgetting: nothing compounds, what must stay stays, what is put away comes back, a stopped run is finished."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.lifecycle import collect
from memgraph.testing import FakeClock, FakeEmbedder

few = settings(max_examples=3, database=None, suppress_health_check=[HealthCheck.too_slow], phases=[Phase.generate])
memories = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["episodic", "episodic", "semantic", "procedural"]),
        "outcome": st.sampled_from(["negative", "negative", "positive"]),
        "tags": st.lists(st.sampled_from(["auth", "jwt", "proxy", "data-loss"]), max_size=3, unique=True),
        "project_id": st.sampled_from(["shop", "shop", "bank", None]),
        "task_id": st.sampled_from([None, None, "T1", "T2"]),
        "relevance_score": st.sampled_from([0.01, 0.05, 0.09, 0.5, 1.0]),
        "access_count": st.sampled_from([0, 0, 2, 3]),
        "is_pinned": st.sampled_from([False, False, False, True]),
        "is_suppressed": st.sampled_from([False, False, False, True]),
        "floor": st.sampled_from([0.0, 0.0, 0.1, 0.3]),
        "content": st.sampled_from(["The build failed", "The build failed. " * 20]),
    }
)
GENERAL = str(UUID(int=99))
stores_of = st.lists(memories, min_size=4, max_size=9)


@contextmanager
def opened(drawn: list[dict[str, Any]], **config: Any) -> Iterator[tuple[Any, FakeClock]]:
    """Open a store of these memories, and of three that a generalisation was made of."""
    with tempfile.TemporaryDirectory(prefix="memgraph-forgetting-") as folder:
        home = memgraph.AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys", **config)
        clock = FakeClock(start="2026-02-01T09:00:00.000Z")
        with memgraph.AgentMemoryStore(home, embedder=FakeEmbedder(dimension=16), clock=clock) as store:
            numbered = [{**fields, "id": str(UUID(int=number))} for number, fields in enumerate(drawn, start=1)]
            for task in (None, "T1", "T2"):
                store.insert_memories([fields for fields in numbered if fields["task_id"] == task])
            sources = [str(UUID(int=number)) for number in (101, 102, 103)]
            plain = {"type": "episodic", "content": "It took long", "tags": ["slow"], "outcome": "positive"}
            store.insert_memories([{**plain, "id": source} for source in sources])
            general = {"type": "semantic", "content": "Builds take long", "supporting_memory_ids": sources}
            store.insert_memory({**general, "id": GENERAL})
            clock.advance(days=31)
            yield store, clock


def relevances(store: Any) -> dict[str, float]:
    return {memory.id: memory.relevance_score for memory in store.every_memory()}


@few
@given(drawn=stores_of, days=st.integers(0, 400))
def test_decay_twice_is_decay_once(drawn: list[dict[str, Any]], days: int) -> None:
    with opened(drawn) as (store, clock):
        retrieval = memgraph.MemoryRetrieval(store)
        clock.advance(days=days)
        digest, before = store.digest(), relevances(store)
        first = retrieval.apply_decay()
        assert (retrieval.apply_decay(), store.digest(), relevances(store)) == (first, digest, before)


def lasting(store: Any) -> set[str]:
    """Return the ids of what must be there for ever: pinned, a landmark now, or all that is left of several episodes."""
    pipeline = memgraph.ConsolidationPipeline(store)
    present = [memory for memory in store.every_memory() if memory.archived_at is None]
    seen = {memory.id for memory in store.get_all_memories()}
    found = {memory.id for memory in present if memory.is_pinned or pipeline.is_landmark(memory)}
    return found | {
        memory.id
        for memory in present
        if memory.type != "episodic"
        and len(memory.supporting_memory_ids) > 1
        and memory.id in seen
        and not seen & set(memory.supporting_memory_ids)
    }


def a_year(drawn: list[dict[str, Any]], setting: str, days: int) -> None:
    with opened(drawn, garbage_collection=setting) as (store, clock):
        retrieval = memgraph.MemoryRetrieval(store)
        for _ in range(0, 365, days):
            must_stay = lasting(store)
            retrieval.apply_decay()
            collect(store)
            left = {memory.id for memory in store.every_memory() if memory.archived_at is None}
            assert must_stay <= left
            clock.advance(days=days)
        kept = {memory.id: memory for memory in store.every_memory() if memory.archived_at is None}
        assert GENERAL in kept
        assert kept.keys().isdisjoint(kept[GENERAL].supporting_memory_ids)
        pipeline = memgraph.ConsolidationPipeline(store)
        listed = store.get_all_memories()
        assert all(memory.relevance_score >= 0.1 for memory in listed if pipeline.is_landmark(memory))
        store.verify()


few_years = settings(few, max_examples=2)


@few_years
@given(drawn=stores_of, setting=st.sampled_from(["archive", "delete"]))
def test_a_year_loses_nothing_that_must_stay(drawn: list[dict[str, Any]], setting: str) -> None:
    a_year(drawn, setting, days=30)


@pytest.mark.long
@few
@given(drawn=stores_of, setting=st.sampled_from(["archive", "delete"]))
def test_a_year_of_days_loses_nothing_that_must_stay(drawn: list[dict[str, Any]], setting: str) -> None:
    a_year(drawn, setting, days=1)


@few
@given(drawn=stores_of)
def test_collected_memories_are_restored_unchanged(drawn: list[dict[str, Any]]) -> None:
    with opened(drawn) as (store, _):
        collect(store)  # summaries and floors
        for memory in store.list_memories(state="archived"):
            store.unarchive(memory.id)
        before = {memory.id: memory for memory in store.every_memory()}
        links = {key: sorted(map(repr, store.links(key))) for key in before}
        collect(store)
        for memory in store.list_memories(state="archived"):
            back = store.unarchive(memory.id)
            assert back == before[memory.id].model_copy(update={"updated_at": back.updated_at})
            assert sorted(map(repr, store.links(memory.id))) == links[memory.id]


class Stopped(BaseException):
    """A kill, as far as a process can suffer it in a test."""


@few
@given(drawn=stores_of, setting=st.sampled_from(["archive", "delete"]), after=st.integers(0, 5))
def test_a_run_that_was_stopped_is_finished_by_the_next(drawn: list[dict[str, Any]], setting: str, after: int) -> None:
    def run(commits: int | None) -> tuple[str, list[str]]:
        with opened(drawn, garbage_collection=setting) as (store, _), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules[collect.__module__], "_BATCH", 2)
            if commits is not None:
                real, left = store.commit, [commits]

                def commit(*args: Any, **fields: Any) -> Any:
                    if not left[0]:
                        raise Stopped
                    left[0] -= 1
                    return real(*args, **fields)

                with pytest.MonkeyPatch.context() as stopping:
                    stopping.setattr(store, "commit", commit)
                    with suppress(Stopped):  # it may be done before
                        collect(store)
            collect(store)
            return store.digest(), sorted(memory.id for memory in store.list_memories(state="archived"))

    assert run(after) == run(None)
