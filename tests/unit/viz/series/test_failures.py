"""A task that failed in every trial, each time in other words or of another error, is one task that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memgraph import AgentMemoryStore
from memgraph.testing import FakeClock
from memgraph.viz.page.data import page_data
from memgraph.viz.series import LESSON, SEEN, learning_series
from tests.unit.viz.conftest import _build

DAY = 86_400

TRIALS = 4
FAILED = {"task-0": (0, 1, 2, 3), "task-1": (0, 2, 3), "task-2": (1, 2), "task-3": ()}


@pytest.fixture(scope="module")
def store(opened: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMemoryStore]:
    folder = tmp_path_factory.mktemp("words")
    with opened(folder, FakeClock("2026-03-01T09:00:00.000Z")) as store:
        for trial in range(TRIALS):
            for task in FAILED:
                tell(store, task, trial)
        yield store


def tell(store: AgentMemoryStore, task: str, trial: int) -> None:
    """Tell of a trial: of one that failed in words of its own, but of the first of task-2 nothing; of task-3 an error on the way."""
    at, name = f"2000-01-0{trial + 1}T00:00:00.000Z", f"tau-{task}-trial-{trial}@0000000{trial}"
    is_failed = trial in FAILED[task]
    fields = {"project_id": "air", "started_at": at, "completed_at": at}
    outcome = "failure" if is_failed else "success"
    store.commit("global", [_build(store, name, outcome, 1).model_copy(update=fields)])
    said = f"Failed trial: Please, {'now ' * trial}book {task}. What was done: no tool was called."
    kept = {"type": "episodic", "project_id": "air", "outcome": "failure", "occurred_at": at, "source": "trial"}
    by_build = {**kept, "build_id": name, "evidence_build_ids": [name]}
    if is_failed and (task, trial) != ("task-2", 1):
        store.insert_memory({**by_build, "content": said, "failure_fingerprint": f"{task} {trial}"})
    if task == "task-3":
        store.insert_memory({**by_build, "content": f"Error {trial}: no seat", "failure_fingerprint": "no seat"})


def test_known_tasks_that_failed_again(store: AgentMemoryStore) -> None:
    found = {one.name: one for one in learning_series(store)}
    points = [(point.value, point.count) for point in found["returning_failures"].points]
    assert points == [(None, 0), (0.5, 2), (1.0, 3), (0.666667, 3)]
    seen = [(point.value, point.count) for point in found["repeated_failures"].points if point.group == SEEN]
    assert seen == [(0.0, 2), (0.5, 2), (1.0, 3), (1.0, 2)]


def test_the_page_lists_each_once_and_counts_tasks_without_a_memory(store: AgentMemoryStore) -> None:
    data = page_data(store)
    failing = data.document["failing"]["failures"]
    assert [[at // DAY for at in failed] for _, _, failed, _, _ in failing] == [[0, 1, 2, 3], [0, 2, 3], [1, 2]]
    assert [[at // DAY for at in solved] for *_, solved in failing] == [[], [1], [0, 3]]
    assert [len(places) for _, places, *_ in failing] == [4, 3, 1]
    assert data.is_of_tasks
    few = page_data(store, limit=1)
    assert [len(one[2]) for one in few.document["failing"]["failures"]] == [4, 3, 2]
    assert sum(len(one[1]) for one in few.document["failing"]["failures"]) <= 1


def test_a_lesson_of_a_task_is_known_whatever_its_words(store: AgentMemoryStore) -> None:
    first = next(one for one in store.query_by_type("episodic") if one.failure_fingerprint == "task-0 0")
    rule = {"type": "semantic", "content": "Ask for the date", "project_id": "air", "occurred_at": "2000-01-02"}
    made = store.insert_memory({**rule, "supporting_memory_ids": [first.id]})
    (found,) = (one for one in learning_series(store) if one.name == "repeated_failures")
    assert [point.value for point in found.points if point.group == LESSON] == [0.0, 0.0, 0.333333, 0.5]
    store.delete_memory(made.id)
