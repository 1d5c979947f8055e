"""A history that is read at once replays as the same history does that is read as it happens: page, series and the past agree."""

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
from memgraph.viz.page.data import PageData, page_data

DAY = 86_400
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


def slider(data: PageData) -> dict[int, set[str]]:
    """Return what the slider shows as in force at the end of each trial, read as the page's script reads it."""
    lives = {place: turns for place, *turns in data.document["lives"]}
    added = np.cumsum(data.document["memories"]["added"]).tolist()
    last = data.document["end"] // DAY
    return {
        number: {
            memory.id
            for place, memory in enumerate(data.memories)
            if sum(turn <= number * DAY for turn in lives.get(place, [added[place]])) % 2
        }
        for number in range(last + 1)
    }


def told_by_builds(data: PageData) -> dict[str, list[int]]:
    """Return when builds told each memory, as the page has it."""
    return {data.memories[place].id: times for place, *times in data.document["told"]}


def told(store: memgraph.AgentMemoryStore) -> dict[str, dict[str, Any]]:
    """Return what every memory in force says, but for its use and when it was recorded."""
    mask = store.reader.listed() & ~store.reader.superseded()
    ids = [store.reader.index.ids.names[slot] for slot in np.flatnonzero(mask)]
    fields = {"content", "outcome", "tags", "confidence", "occurred_at", "title", "privacy_tier"}
    found = {}
    for memory in store.read_memories(ids):
        links = sorted((link.relation, link.source_id, link.target_id) for link in store.links(memory.id))
        builds = sorted(memory.evidence_build_ids)
        found[memory.id] = {**memory.model_dump(include=fields), "builds": builds, "links": links}
    return found


def check_the_law(history: Sequence[Sequence[tuple[bool, int]]], numbers: Sequence[int]) -> None:
    with read(history, at_once=True) as at_once, read(history, at_once=False) as lived:
        one, other = page_data(at_once), page_data(lived)
        shown = slider(one)
        assert shown == slider(other)
        assert [series.points for series in one.series] == [series.points for series in other.series]
        assert told_by_builds(one) == told_by_builds(other)
        texts = {memory.id: memory.content for memory in one.memories}
        worded = {one.memories[place].id: at // DAY for place, at in one.document["worded"]}
        for number in numbers:
            with at_once.at(moment(number)) as then, lived.at(moment(number)) as lived_then:
                known = told(then)
                assert known.keys() == shown[number]
                assert known == told(lived_then)
                same = {one for one in known if worded.get(one, 0) <= number}
                assert {one: known[one]["content"] for one in same} == {one: texts[one] for one in same}
                assert all(known[one]["content"] != texts[one] for one in known.keys() - same)
                builds = {build for memory in known.values() for build in memory["builds"]}
                assert not any(f"-trial-{later}@" in build for build in builds for later in range(number + 1, 7))


FEW = settings(max_examples=1, database=None, suppress_health_check=list(HealthCheck))


@FEW
@given(history=histories)
@example(history=[[(FAILED, 0), (FAILED, 1), (FAILED, 0), (FAILED, 1), (SOLVED, 0)], [(FAILED, 2), (SOLVED, 2)] * 3])
def test_at_once_or_as_it_happened_it_is_the_same_replay(history: list[list[tuple[bool, int]]]) -> None:
    check_the_law(history, [2])


@pytest.mark.long
@settings(FEW, max_examples=60)
@given(history=histories)
def test_the_same_at_length(history: list[list[tuple[bool, int]]]) -> None:
    check_the_law(history, [2, 3])
