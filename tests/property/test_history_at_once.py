"""A history that is read at once teaches what the same history does that is read as it happens."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.testing import FakeClock, FakeEmbedder
from memgraph.viz.page.data import page_data

LESSONS = (
    "I should have looked in the drawer before I opened the fridge.",
    "I should have looked in the drawer before I opened the fridge, and then again at the table.",
    "The plate was wrong: next time I will clean the cup at the sink instead.",
)
FAILED, SOLVED = False, True
trial = st.tuples(st.sampled_from([FAILED, FAILED, SOLVED]), st.integers(0, len(LESSONS) - 1))
histories = st.lists(st.lists(trial, min_size=4, max_size=6), min_size=1, max_size=3)
"""Of each task its trials: whether it was solved, and which lesson was drawn or acted on."""


def moment(number: int) -> str:
    return f"2000-01-{number + 1:02}T00:00:00.000Z"


def log(task: str, number: int, *, is_solved: bool, lesson: str) -> dict[str, Any]:
    told = {"reasoning": lesson} if is_solved else {"lesson": lesson}
    outcome = "success" if is_solved else "failure"
    at = {"started_at": moment(number), "completed_at": moment(number)}
    done = {"task_id": task, "agent_name": "cook", "description": f"House {task}", "outcome": outcome, **told}
    build_id = f"house-{task}-trial-{number}@{number:08}"
    return {
        "build_id": build_id,
        "project_id": "house",
        "source": "trial",
        "build_outcome": outcome,
        "tasks": [{**done, "occurred_at": moment(number)}],
        **at,
    }


def trials(history: Sequence[Sequence[tuple[bool, int]]]) -> list[list[dict[str, Any]]]:
    """Return the logs of each trial, of all tasks that were at it."""
    longest = max(map(len, history))
    return [
        [
            log(f"env_{place}", number, is_solved=tries[number][0], lesson=LESSONS[tries[number][1]])
            for place, tries in enumerate(history)
            if number < len(tries)
        ]
        for number in range(longest)
    ]


@contextmanager
def read(history: Sequence[Sequence[tuple[bool, int]]], *, at_once: bool) -> Iterator[memgraph.AgentMemoryStore]:
    with tempfile.TemporaryDirectory(prefix="memgraph-history-") as folder:
        config = memgraph.AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        clock = FakeClock("2026-02-01T09:00:00.000Z")
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=clock) as store:
            pipeline = memgraph.ConsolidationPipeline(store)
            for logs in trials(history):
                pipeline.consolidate_all([memgraph.BuildEventLog.parse(one) for one in logs])
                if not at_once:
                    pipeline.compress()
                    clock.advance(days=1)
            pipeline.compress()
            yield store


def told(store: memgraph.AgentMemoryStore) -> list[dict[str, Any]]:
    """Return what every memory in force says, but for its use, its id and when it was recorded."""
    mask = store.reader.listed() & ~store.reader.superseded()
    ids = [store.reader.index.ids.names[slot] for slot in np.flatnonzero(mask)]
    fields = {"content", "outcome", "tags", "confidence", "occurred_at", "title", "privacy_tier"}
    found = []
    for memory in store.read_memories(ids):
        links = sorted(getattr(memory, "supporting_memory_ids", ()))
        builds = sorted(memory.evidence_build_ids)
        found.append({**memory.model_dump(include=fields), "builds": builds, "links": links})
    return sorted(found, key=lambda one: (one["content"], one["builds"]))


def check_the_law(history: Sequence[Sequence[tuple[bool, int]]]) -> None:
    with read(history, at_once=True) as at_once, read(history, at_once=False) as lived:
        known = told(at_once)
        assert known == told(lived)
        for store in (at_once, lived):
            data = page_data(store)
            assert sorted(memory.content for memory in data.memories if memory.type == "semantic") == sorted(
                one["content"] for one in known if one["links"]
            )


FEW = settings(max_examples=1, database=None, suppress_health_check=list(HealthCheck))


@FEW
@given(history=histories)
@example(history=[[(FAILED, 0), (FAILED, 1), (FAILED, 0), (FAILED, 1), (SOLVED, 0)], [(FAILED, 2), (SOLVED, 2)] * 3])
def test_at_once_or_as_it_happened_the_same_is_learned(history: list[list[tuple[bool, int]]]) -> None:
    check_the_law(history)


@pytest.mark.long
@settings(FEW, max_examples=60)
@given(history=histories)
def test_the_same_at_length(history: list[list[tuple[bool, int]]]) -> None:
    check_the_law(history)
