"""The contract of annotators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import AgentMemoryStore
from memgraph.extraction.annotate import RuleAnnotator
from memgraph.model.memory import AgentMemory, Entity, parse_memory
from memgraph.ports import Annotation, Annotator
from memgraph.testing import FakeAnnotator

FOUND = Annotation(
    entities=(Entity(name="login.py", kind="file", about=True),), tags=("auth",), failure_fingerprint="f1"
)
ANNOTATORS: list[Callable[[], Annotator]] = [RuleAnnotator, FakeAnnotator, lambda: FakeAnnotator(FOUND)]
MEMORIES: list[dict[str, Any]] = [
    {"type": "episodic", "content": "x"},
    {
        "type": "episodic",
        "content": "sqlite3.OperationalError: database is locked in src/auth/login.py (#42), see https://example.org/a",
        "outcome": "negative",
        "agents_involved": ["MARS"],
        "files_involved": ["src/auth/login.py"],
        "git_commit": "0123abc",
    },
    {"type": "semantic", "content": "Always set a busy timeout on `sqlite3` connections", "title": "sqlite3"},
    {"type": "procedural", "content": "Deploy", "steps": ["build", "push"], "trigger_pattern": "release"},
    {"type": "episodic", "content": "数据库 \U0001f600 \u202e " + "(" * 300 + "a/" * 200, "outcome": "negative"},
    {"type": "episodic", "content": "a." * 400, "title": "t" * 8_000, "speaker": "s" * 400},
]


@pytest.fixture(params=ANNOTATORS, ids=["rules", "fake-empty", "fake"])
def annotator(request: pytest.FixtureRequest) -> Annotator:
    made: Annotator = request.param()
    return made


@pytest.fixture(params=range(len(MEMORIES)))
def memory(request: pytest.FixtureRequest) -> AgentMemory:
    return parse_memory(MEMORIES[request.param])


@pytest.fixture
def stored(config: Any, embedder: Any, clock: Any) -> Callable[..., Any]:
    """Insert a memory into a store with this annotator and return the stored memory."""

    def insert(annotator: Annotator, memory: Any) -> Any:
        with AgentMemoryStore(config, embedder=embedder, clock=clock, annotator=annotator) as store:
            return store.insert_memory(memory)

    return insert


class TestAnnotator:
    def test_it_is_one(self, annotator: Annotator, memory: AgentMemory) -> None:
        assert isinstance(annotator, Annotator)
        assert isinstance(annotator.annotate(memory), Annotation)

    def test_it_is_deterministic_across_instances(self, annotator: Annotator, memory: AgentMemory) -> None:
        again = parse_memory(memory.model_dump(exclude_unset=True))
        assert annotator.annotate(memory) == annotator.annotate(again)

    def test_the_memory_is_left_unchanged(self, annotator: Annotator, memory: AgentMemory) -> None:
        before = memory.model_dump_json()
        annotator.annotate(memory)
        assert memory.model_dump_json() == before

    def test_no_entity_is_named_twice(self, annotator: Annotator, memory: AgentMemory) -> None:
        named = [(entity.kind, entity.name.casefold()) for entity in annotator.annotate(memory).entities]
        assert len(set(named)) == len(named)

    def test_its_findings_can_be_stored(
        self, annotator: Annotator, memory: AgentMemory, stored: Callable[..., Any]
    ) -> None:
        found = annotator.annotate(memory)
        kept = stored(annotator, memory)
        assert tuple(kept.entities) == found.entities
        assert tuple(kept.tags) == found.tags
        assert kept.failure_fingerprint == found.failure_fingerprint


def test_what_is_found_is_added_to_given_issues(stored: Callable[..., Any]) -> None:
    given = [{"name": "#12", "kind": "issue"}]
    kept = stored(FakeAnnotator(FOUND), {"type": "episodic", "content": "x", "entities": given})
    assert [entity.name for entity in kept.entities] == [*(entity.name for entity in FOUND.entities), "#12"]


def test_given_tags_entities_and_fingerprints_stay(stored: Callable[..., Any]) -> None:
    given = {"tags": ["mine"], "entities": [{"name": "E", "kind": "error"}], "failure_fingerprint": "f0"}
    kept = stored(FakeAnnotator(FOUND), {"type": "episodic", "content": "x", **given})
    assert (kept.tags, [entity.name for entity in kept.entities], kept.failure_fingerprint) == (["mine"], ["E"], "f0")
