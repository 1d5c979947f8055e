"""Named queries and series put builds, and memories that several builds told, in the same months."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.model.events.memories import MemoryMerged, RecordPatch
from memgraph.model.events.records import BuildConsolidated
from memgraph.testing import FakeClock, FakeEmbedder
from memgraph.viz.series import Series, learning_series

NOW = "2026-06-30T12:00:00.000Z"


class Telling:
    """Tells a store what builds say, a merged memory as consolidation merges it."""

    def __init__(self, store: AgentMemoryStore) -> None:
        self.store = store

    def build(self, name: str, day: str, *events: Any, outcome: str = "failure") -> None:
        at = f"{day}T00:00:00.000Z"
        counted = {"log_sha256": "0" * 64, "task_count": 1, "complete": True, "extractor": "rules", "extracted": 0}
        times = {"started_at": at, "completed_at": at, "consolidated_at": NOW}
        told = {"project_id": "shop", "build_id": name, "outcome": outcome, "merged": 0}
        self.store.commit("global", [*events, BuildConsolidated.parse({**counted, **times, **told})])

    def add(self, name: str, day: str, outcome: str = "failure", **fields: Any) -> str:
        """Add an episode that a build told first; the build succeeded unless it is told otherwise."""
        place = {"type": "episodic", "project_id": "shop", "build_id": name, "evidence_build_ids": [name]}
        memory = {**place, "content": f"{name} told it", "occurred_at": day, "outcome": outcome, "tags": ["csv"]}
        kept = self.store.insert_memory({**memory, **fields})
        self.build(name, day, outcome=outcome)
        return kept.id

    def again(
        self, memory_id: str, name: str, day: str, *, in_its_words: bool = False, outcome: str = "failure"
    ) -> None:
        """Let a build tell an episode again."""
        before = self.store.get_memory(memory_id)
        builds = [*(before.evidence_build_ids if before else ()), name]
        words = {"content": f"{name} told it at length", "occurred_at": f"{day}T00:00:00.000Z"} if in_its_words else {}
        self.build(
            name,
            day,
            MemoryMerged(id=memory_id, changed=RecordPatch(evidence_build_ids=builds, **words)),
            outcome=outcome,
        )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMemoryStore]:
    folder: Path = tmp_path_factory.mktemp("months")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=FakeClock(NOW)) as store:
        telling = Telling(store)
        failed = telling.add("b1", "2026-01-10", failure_fingerprint="f1")
        telling.again(failed, "b2", "2026-02-10")
        telling.again(failed, "b3", "2026-04-10", in_its_words=True)
        good = telling.add("b4", "2026-02-11", "success")
        telling.again(good, "b5", "2026-03-11", in_its_words=True, outcome="success")
        telling.add("b6", "2026-04-12", failure_fingerprint="f2")
        store.insert_memory(
            {"type": "episodic", "project_id": "shop", "content": "b6 told it twice", "failure_fingerprint": "f2",
             "outcome": "failure", "build_id": "b6", "evidence_build_ids": ["b6"], "occurred_at": "2026-04-12"}
        )  # fmt: skip
        store.insert_memory(
            {"type": "episodic", "project_id": "shop", "content": "nobody built it", "outcome": "failure",
             "occurred_at": "2026-05-02", "tags": ["csv"]}
        )  # fmt: skip
        for trial, day in enumerate(("2026-01-20", "2026-05-20")):
            name = f"shop-task_1-trial-{trial}@0000000{trial}"
            telling.add(name, day, failure_fingerprint=f"words {trial}")
            step = {"content": f"{name} met an error", "failure_fingerprint": "f9", "outcome": "failure"}
            place = {"type": "episodic", "project_id": "shop", "build_id": name, "evidence_build_ids": [name]}
            store.insert_memory({**place, **step, "occurred_at": day})
        yield store


def of(store: AgentMemoryStore, name: str, group: str) -> dict[str, int]:
    """Return the counts of a series by month, those that are not 0."""
    found: Series = next(one for one in learning_series(store, bucket="month") if one.name == name)
    return {point.at[:7]: point.count for point in found.points if point.group == group and point.count}


def test_failures_are_counted_in_the_months_of_their_builds_beside_the_builds_that_went_well(
    store: AgentMemoryStore,
) -> None:
    rows = {
        row["month"][:7]: (row["builds"], row["failures"], row["share"]) for row in store.query("failures_by_month")
    }
    assert {month: many for month, (many, *_) in rows.items()} == of(store, "success_rate", "builds")
    assert rows == {
        "2026-01": (2, 2, 1.0), "2026-02": (2, 1, 0.5), "2026-03": (1, 0, 0.0), "2026-04": (2, 2, 1.0), "2026-05": (1, 1, 1.0)
    }  # fmt: skip


def test_a_failure_that_was_merged_counts_once_for_each_build(store: AgentMemoryStore) -> None:
    row = next(row for row in store.query("failures_by_tag", project="shop") if row["tag"] == "csv")
    assert tuple(row.values()) == ("csv", 7, 9, "2026-05-20T00:00:00.000Z")


def test_new_memories_belong_to_the_months_in_which_they_were_first_reported(store: AgentMemoryStore) -> None:
    months = {"2026-01": "2026-01-31", "2026-02": "2026-02-28", "2026-04": "2026-04-30", "2026-05": "2026-05-31"}
    told = {
        month: next(row["recent"] for row in store.query("tags_by_trend", days=int(day[-2:]), at=f"{day}T23:59:59Z"))
        for month, day in months.items()
    }
    assert told == of(store, "tags", "csv")
