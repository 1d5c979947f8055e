"""The contract of extractors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memgraph.extraction.llm.extractor import ModelExtractor
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.model.build import BuildEventLog, Candidate, ExtractionResult
from memgraph.model.memory import AgentMemory
from memgraph.ports import Extractor
from memgraph.testing import FakeExtractor, FakeLanguageModel

MEMORIES = [
    {"type": "episodic", "content": "Migrate the users table", "outcome": "negative"},
    {"type": "semantic", "content": "The database is locked"},
]
SAID = "Migrate the users table: sqlite3.OperationalError: database is locked"
REPLY = json.dumps(
    {
        "memories": [
            {**memory, "outcome": "negative", "confidence": 1, "event_index": 0, "evidence": [SAID]}
            for memory in MEMORIES
        ]
    }
)
EXTRACTORS: list[Callable[[], Extractor]] = [
    RuleExtractor,
    lambda: FakeExtractor(MEMORIES),
    FakeExtractor,
    lambda: ModelExtractor(FakeLanguageModel(REPLY)),
    lambda: ModelExtractor(FakeLanguageModel("no JSON")),
]
HOSTILE = [
    "",
    " ",
    "a" * 5_000,
    "((((" * 500,
    "\\" * 500,
    "fix: " * 500,
    "数据库 \U0001f600",
    "\u202e\u200b",
    "'; DROP TABLE",
    "Error: " + "x " * 800,
]


def log(tasks: Any = (), **fields: Any) -> BuildEventLog:
    required = {
        "build_id": "b1",
        "project_id": "P",
        "build_outcome": "failure",
        "started_at": "2026-01-01",
        "completed_at": "2026-01-02",
    }
    return BuildEventLog.parse({**required, "tasks": list(tasks), **fields})


def task(number: int, outcome: str = "success", **fields: Any) -> dict[str, Any]:
    base = {
        "task_id": f"t{number}",
        "agent_name": "MARS",
        "description": f"Implement the login form, part {number}",
        "outcome": outcome,
    }
    return {**base, **fields}


LOGS = {
    "empty": log(),
    "eventful": log(
        [
            task(1, "failure", description=SAID),
            task(2, "success", description="Migrate the users table again with a busy timeout"),
            task(3, description="Decided to use WAL mode because readers block writers"),
        ]
    ),
    "many": log([task(number, ("success", "failure")[number % 2]) for number in range(200)]),
    "hostile": log([task(number, description=text) for number, text in enumerate(HOSTILE) if text.strip()]),
}  # fmt: skip


@pytest.fixture(params=EXTRACTORS, ids=["rules", "fake", "fake-empty", "model", "model-failing"])
def extractor(request: pytest.FixtureRequest) -> Extractor:
    made: Extractor = request.param()
    return made


@pytest.mark.parametrize("name", LOGS)
class TestExtractor:
    def test_it_is_one(self, extractor: Extractor, name: str) -> None:
        assert isinstance(extractor, Extractor)
        assert isinstance(extractor.extract(LOGS[name]), ExtractionResult)

    def test_it_names_itself(self, extractor: Extractor, name: str) -> None:
        assert extractor.extract(LOGS[name]).extractor

    def test_candidates_are_memories_with_unique_keys(self, extractor: Extractor, name: str) -> None:
        candidates = extractor.extract(LOGS[name]).candidates
        keys = [candidate.key for candidate in candidates if candidate.key is not None]
        assert len(set(keys)) == len(keys)
        assert all(1 <= len(key) <= 400 for key in keys)
        for candidate in candidates:
            assert isinstance(candidate, Candidate)
            assert isinstance(candidate.memory, AgentMemory)
            assert 1 <= len(candidate.memory.content) <= 800
            assert candidate.memory.embedding is None

    def test_equal_logs_give_equal_results(self, extractor: Extractor, name: str) -> None:
        again = BuildEventLog.parse(LOGS[name].model_dump())
        assert extractor.extract(LOGS[name]) == extractor.extract(again)

    def test_the_log_is_left_unchanged(self, extractor: Extractor, name: str) -> None:
        before = LOGS[name].model_dump_json()
        extractor.extract(LOGS[name])
        assert LOGS[name].model_dump_json() == before

    def test_its_findings_can_be_stored(self, extractor: Extractor, name: str, store: Any) -> None:
        found = [candidate.memory for candidate in extractor.extract(LOGS[name]).candidates]
        assert [memory.content for memory in store.insert_memories(found)] == [memory.content for memory in found]
