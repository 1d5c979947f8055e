"""One store whose series are written by hand beside it, and one of all that should not be shown or is hard to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memgraph import AgentMemoryStore
from memgraph.config import AgentMemoryConfig
from memgraph.model.events.memories import MemoryMerged
from memgraph.model.events.records import BuildConsolidated, RetrievalRecorded
from memgraph.testing import FakeClock, FakeEmbedder

RECALLS = [f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3, 4)]
IDS = {name: f"{name.lower() * 8}-0000-4000-8000-000000000000" for name in "ABCDEF"} | {
    "G": "99999999-0000-4000-8000-000000000000",
    "H": "88888888-0000-4000-8000-000000000000",
    "S": "77777777-0000-4000-8000-000000000000",
}
HOSTILE = {
    "control": "before \x01\x0b\x1f after",
    "markup": "</data> ]]> <img src=x onerror=alert(1)> & \"quotes\" 'too'",
    "lines": "one\r\ntwo\rthree\ttabbed",
    "rtl": "\u202eمرحبا بالعالم\u202c",
    "emoji": "👩‍🚀 went to 🌕 and \ufffe",
    "long": "x" * 800,
}


@pytest.fixture(scope="session")
def opened() -> Callable[..., AgentMemoryStore]:
    """Open the store in a folder; pages, series and exports ask the database nothing."""

    def call(folder: Any, clock: FakeClock, **given: Any) -> AgentMemoryStore:
        config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        return AgentMemoryStore(config, embedder=FakeEmbedder(), clock=clock, **given)

    return call


@pytest.fixture(scope="session")
def learned(
    opened: Callable[..., AgentMemoryStore], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentMemoryStore]:
    """What happened from Monday, February 2nd, to the 12th, each at 9; see `HISTORY` in test_series.py."""
    clock = FakeClock("2026-02-02T09:00:00.000Z")
    with opened(tmp_path_factory.mktemp("learned"), clock) as store:
        _fill(store, clock)
        yield store


def _fill(store: AgentMemoryStore, clock: FakeClock) -> None:
    def add(name: str, **fields: Any) -> None:
        given = {"type": "episodic", "project_id": "shop", "content": f"Memory {name} of the story"}
        store.insert_memory({**given, "id": IDS[name], **fields})

    def on(day: int) -> None:
        clock.set(f"2026-02-{day:02}T09:00:00.000Z")

    add("A", outcome="failure", failure_fingerprint="f1", tags=["cache", "lesson"])
    add("B", outcome="success", tags=["cache"])
    add("S", type="semantic", tags=["rule"])
    on(3)
    add("C", outcome="failure", failure_fingerprint="f1", tags=["Cache"])
    add("D", outcome="failure", failure_fingerprint="f2", tags=["db"])
    on(4)
    sources = [IDS["A"], IDS["C"]]
    add("G", type="semantic", supporting_memory_ids=sources, occurred_at="2026-02-01", tags=["cache"])
    store.record_access(IDS["A"])
    for query_id, returned in zip(RECALLS, (["A", "G"], ["B"], ["S"], []), strict=True):
        store.commit("system", [_recall(store, query_id, returned)])
    store.record_outcome(RECALLS[0], "success")
    store.record_outcome(RECALLS[1], "success")
    store.record_outcome(RECALLS[1], "failure")
    on(9)
    store.suppress(IDS["B"])
    store.supersede(IDS["A"], by=IDS["C"])
    store.link(IDS["B"], "CONTRADICTS", IDS["D"])
    store.link(IDS["B"], "CONTRADICTS", IDS["D"], reason="said twice")
    on(10)
    store.unsuppress(IDS["B"])
    store.archive(IDS["D"])
    store.invalidate(IDS["C"], reason="no longer so")
    on(11)
    add("E", outcome="failure", failure_fingerprint="f2", tags=["db"], project_id="bank")
    for build_id, day in (("b1", 3), ("b2", 4)):
        store.commit("global", [_build(store, build_id, "success", day)])
    told = {"build_id": "b1", "evidence_build_ids": ["b1"], "occurred_at": "2026-02-03T12:00:00Z"}
    add("F", outcome="failure", failure_fingerprint="f1", tags=["cache"], **told)
    again = {"evidence_build_ids": ["b1", "b2"], "relevance_anchor": 0.9, "relevance_at": store.now()}
    store.commit("global", [MemoryMerged.parse({"id": IDS["F"], "changed": again}), _build(store, "b2", "failure", 5)])
    on(12)
    store.delete_memory(IDS["C"])
    add("H", outcome="failure", failure_fingerprint="f2", tags=["db", "lesson"])


def _recall(store: AgentMemoryStore, query_id: str, returned: list[str]) -> RetrievalRecorded:
    types = {"G": "semantic", "S": "semantic"}
    results = [{"id": IDS[name], "type": types.get(name, "episodic"), "score": 1.0, "tokens": 3} for name in returned]
    return RetrievalRecorded.parse(
        {
            "query_id": query_id,
            "query_hmac": "0" * 64,
            "retrieved_at": store.now(),
            "settings_version": "1",
            "project_id": "shop",
            "total_tokens": 3 * len(returned),
            "results": results,
        }
    )


def _build(store: AgentMemoryStore, build_id: str, outcome: Any, day: int) -> BuildConsolidated:
    return BuildConsolidated(
        project_id="shop",
        build_id=build_id,
        log_sha256="0" * 64,
        outcome=outcome,
        started_at=f"2026-02-{day:02}T11:00:00.000Z",
        completed_at=f"2026-02-{day:02}T12:00:00.000Z",
        task_count=1,
        complete=True,
        extracted=0,
        merged=0,
        extractor="rules",
        consolidated_at=store.now(),
    )


@pytest.fixture(scope="session")
def motley(
    opened: Callable[..., AgentMemoryStore], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentMemoryStore]:
    """Memories of every tier and state, by their titles, and texts that are hard to write; `plain` is linked to each."""
    clock = FakeClock("2026-03-01T09:00:00.000Z")
    with opened(tmp_path_factory.mktemp("motley"), clock) as store:
        plain = {"type": "episodic", "project_id": "shop", "tags": ["t"], "content": "A plain memory"}
        rich = {
            "title": "plain",
            "action_log": [{"t": 1.5, "action": "looked", "target": None}],
            "entities": [{"name": "a.py", "kind": "file"}],
            "duration_seconds": 2.5,
            "valid_at": "2026-02-01",
        }
        given = [
            {**plain, **rich},
            *({**plain, "title": name, "privacy_tier": name} for name in ("sensitive", "private")),
            *({**plain, "title": name} for name in ("suppressed", "archived")),
            *({**plain, "title": name, "content": text, "project_id": "odd"} for name, text in HOSTILE.items()),
        ]
        ids = {memory.title: memory.id for memory in store.insert_memories(given)}
        for name in list(ids)[1:]:
            store.link(ids["plain"], "RELATED_TO", ids[name], score=0.5, reason=HOSTILE["control"])
        store.insert_memory({**plain, "title": "next", "previous_id": ids["plain"]})
        store.suppress(ids["suppressed"])
        store.archive(ids["archived"])
        clock.set("2026-03-02T09:00:00.000Z")
        store.record_access(ids["plain"])
        yield store


FAILED_IN = {"env_1": (0, 1, 2), "env_2": (0, 1, 2), "env_3": (0, 1), "env_4": (0,), "env_5": (0,), "env_6": (0,)}
"""In which of three undated trials each task failed; `env_0` never did."""


def fill_trials(store: AgentMemoryStore) -> None:
    """Tell of seven tasks in three trials that nobody dated; of env_2 two memories tell, and of env_1 a generalisation was made."""
    tasks = ["env_0", *FAILED_IN]
    for trial in range(3):
        for task in tasks:
            outcome = "failure" if trial in FAILED_IN.get(task, ()) else "success"
            at = f"2000-01-0{trial + 1}T00:00:00.000Z"
            built = _build(store, _name(task, trial), outcome, 1).model_copy(
                update={"project_id": "house", "started_at": at, "completed_at": at}
            )
            store.commit("global", [built])
    lesson = {"type": "episodic", "project_id": "house", "outcome": "failure", "tags": ["lesson"], "source": "trial"}
    told = [(task, trials) for task, trials in FAILED_IN.items() if task != "env_2"]
    kept = store.insert_memories(
        [
            {
                **lesson,
                "content": f"Failed trial: House {task}. Lesson: I was stuck in a loop at the {task[-1]}th door of the house. "
                "I should have opened it first.",
                "asked": f"House {task}.",
                "lesson": f"I was stuck in a loop at the {task[-1]}th door of the house. I should have opened it first.",
                "failure_fingerprint": task,
                "evidence_build_ids": [_name(task, trial) for trial in trials],
                "occurred_at": f"2000-01-0{trials[0] + 1}",
            }
            for task, trials in [*told, ("env_2", (0,)), ("env_2", (1, 2))]
        ]
    )
    made = {
        "type": "semantic",
        "project_id": "house",
        "content": "Never solved in 3 trials of House env_1. The lesson: Open the door first.",
        "supporting_memory_ids": [kept[0].id],
        "evidence_build_ids": [_name("env_1", trial) for trial in range(3)],
        "title": "env_1",
        "occurred_at": "2000-01-03",
    }
    store.insert_memory(made)


def _name(task: str, trial: int) -> str:
    return f"house-{task}-trial-{trial}@0000000{trial}"


@pytest.fixture(scope="session")
def trials(
    opened: Callable[..., AgentMemoryStore], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AgentMemoryStore]:
    with opened(tmp_path_factory.mktemp("trials"), FakeClock("2026-03-01T09:00:00.000Z")) as store:
        fill_trials(store)
        yield store
