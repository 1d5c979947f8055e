"""Laws of sleep: twice is once, what may not be mixed is not, stopped and gone on with is the same, replayed is the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.embedding import NoEmbedder
from memgraph.lifecycle import sleep
from memgraph.testing import FakeClock, FakeEmbedder

LAWS = settings(max_examples=6, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
WORDS = "the deploy of the shop runs on every Tuesday after all tests have passed in the pipeline".split()
KIN = ("type", "project_id", "task_id", "privacy_tier", "trust_class", "outcome", "domain", "speaker")
memories = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["semantic", "semantic", "episodic"]),
        "content": st.integers(9, len(WORDS)).map(lambda count: " ".join(WORDS[:count]))
        | st.integers(0, 6).map(lambda start: " ".join(WORDS[start:])),
        "project_id": st.sampled_from(["shop", "shop", None]),
        "task_id": st.sampled_from([None, None, "T"]),
        "privacy_tier": st.sampled_from(["public", "public", "private"]),
        "trust_class": st.sampled_from(["agent", "agent", "web"]),
        "outcome": st.sampled_from(["unknown", "unknown", "positive", "negative"]),
        "is_pinned": st.sampled_from([False, False, True]),
        "relevance_score": st.sampled_from([0.01, 0.5, 1.0]),
        "build_id": st.sampled_from([None, "b1", "b2", "b3", "b4"]),
        "tags": st.lists(st.sampled_from(["auth", "jwt", "proxy"]), max_size=3, unique=True),
    }
)
stores_of = st.lists(memories, min_size=6, max_size=16)


@contextmanager
def opened(drawn: list[dict[str, Any]], embedder: Any) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="memgraph-sleep-") as folder:
        config = memgraph.AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        clock = FakeClock()
        with memgraph.AgentMemoryStore(config, embedder=embedder, clock=clock) as store:
            numbered = [{**fields, "id": str(UUID(int=number))} for number, fields in enumerate(drawn, start=1)]
            for task in (None, "T"):
                store.insert_memories([fields for fields in numbered if fields["task_id"] == task])
            clock.advance(days=3)
            yield store


@LAWS
@given(drawn=stores_of, has_vectors=st.booleans(), stopped_after=st.integers(0, 12))
def test_a_sleep(drawn: list[dict[str, Any]], has_vectors: bool, stopped_after: int) -> None:
    embedder = FakeEmbedder(64) if has_vectors else NoEmbedder()
    with opened(drawn, embedder) as store:
        pinned = {memory.id: memory.content for memory in store.every_memory() if memory.is_pinned}
        sleep(store)
        found = {memory.id: memory for memory in store.every_memory()}
        assert {memory_id: found[memory_id].content for memory_id in pinned} == pinned
        for link in store.every_link():
            if link.relation == "SUPERSEDES" and link.reason == "near-duplicate":
                newer, older = found[link.source_id], found[link.target_id]
                assert [getattr(newer, name, None) for name in KIN] == [getattr(older, name, None) for name in KIN]
                assert set(older.evidence_build_ids) <= set(newer.evidence_build_ids)
        digest = store.digest()
        again = sleep(store)
        assert (again.changed, store.digest()) == (0, digest)
        store.rebuild()
        assert store.digest() == digest
    with opened(drawn, embedder) as store:
        asked = iter(range(stopped_after))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("memgraph.lifecycle.run._MOST_IN_A_COMMIT", 1)
            sleep(store, phases=["near-duplicates"], max_seconds=0)
            patch.setattr(sleep.__globals__["SleepContext"], "is_time_up", lambda _context: next(asked, None) is None)
            sleep(store)
        sleep(store)
        assert store.digest() == digest
