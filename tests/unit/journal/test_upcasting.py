"""Events of earlier versions: read as those of the present one, while the journal keeps what was signed."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import PayloadError
from memgraph.journal.envelope import Chain, CommitDraft, Event, seal, unseal
from memgraph.journal.keyring import key_from_secret
from memgraph.model.events.memories import MemoryAdded, MemoryMerged, MemoryUndeleted
from memgraph.model.events.records import BuildConsolidated
from memgraph.model.events.registry import PAYLOADS, UPCASTERS
from memgraph.model.ids import source_id

NOW = "2026-02-01T09:00:00.000Z"
KEY = key_from_secret(b"k" * 32)
START = Chain(source_id("tests", 0))
LESSON = "Failed trial: Light the lamp. Lesson: I should look at the desk first."


def record(content: str, **fields: Any) -> dict[str, Any]:
    """Return a memory as version 1 held it."""
    times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), NOW)
    memory = {"id": source_id("tests", 1), "type": "episodic", "content": content, **times, **fields}
    made: dict[str, Any] = PAYLOADS["memory.added", 1].parse({"memory": memory}).dump()["memory"]
    return made


def read(kind: str, content: dict[str, Any]) -> Event:
    """Sign an event of version 1 and read it."""
    (line,) = seal([CommitDraft("global", [PAYLOADS[kind, 1].parse(content)])], START, KEY, NOW).lines
    assert b'"event_version":1' in line.head
    event, chain = unseal(line, START, KEY)
    assert event.seq == chain.seq == 1
    return event


def test_every_earlier_version_has_an_upcaster_and_only_these() -> None:
    newest = {kind: max(version for name, version in PAYLOADS if name == kind) for kind, _ in PAYLOADS}
    assert UPCASTERS.keys() == {(kind, version) for kind, version in PAYLOADS if version < newest[kind]}


def test_an_episode_has_the_fields_that_its_text_described() -> None:
    trial = record(LESSON, source="trial", occurred_at="2000-01-03T00:00:00.000Z")
    event = read("memory.added", {"memory": trial})
    assert isinstance(event.payload, MemoryAdded)
    told = {"asked": "Light the lamp.", "lesson": "I should look at the desk first.", "attempt": 2}
    assert event.content == event.payload.dump() == {"memory": {**trial, **told}}
    assert event.payload.memory.model_dump(include=set(told)) == told


def test_a_build_of_an_earlier_version_names_no_tests() -> None:
    build = {
        "project_id": "shop", "build_id": "b1", "log_sha256": "0" * 64, "outcome": "success", "started_at": NOW, "completed_at": NOW,
        "task_count": 1, "complete": True, "extracted": 0, "merged": 0, "extractor": "rules", "consolidated_at": NOW,
    }  # fmt: skip
    event = read("build.consolidated", build)
    assert isinstance(event.payload, BuildConsolidated)
    assert (event.content, event.payload.passed, event.payload.failed) == (build, [], [])


def test_what_tells_of_no_attempt_is_as_it_was() -> None:
    plain = {"memory": record("Fix: Quote the variables.")}
    assert read("memory.added", plain).content == plain
    stated = {"memory": record(LESSON, type="procedural")}
    assert read("memory.added", stated).content == stated


def test_a_way_to_success_says_what_was_to_be_reached() -> None:
    way = "What led to success in “Repair the export”: 1. `pytest`; 2. edit src/export.py"
    assert read("memory.added", {"memory": record(way)}).content["memory"]["goal"] == "Repair the export"
    kept = read("memory.added", {"memory": record(way, goal="its own")})
    assert kept.content["memory"]["goal"] == "its own"


def test_a_generalisation_says_what_it_quotes() -> None:
    text = "Failed in 3 trials of env_1, solved in another. The lesson: “Open the door.”"
    event = read("memory.added", {"memory": record(text, type="semantic")})
    told = {"asked": "env_1", "lesson": "Open the door.", "is_solved": True}
    assert event.content["memory"] == {**record(text, type="semantic"), **told}


def test_a_changed_text_describes_another_attempt_or_none() -> None:
    step = "`make` failed 2 times (E1); it worked after `make clean`. It was stale."
    event = read("memory.merged", {"id": source_id("tests", 1), "changed": {"content": step}, "cleared": ["title"]})
    assert isinstance(event.payload, MemoryMerged)
    before = {**record(LESSON), "asked": "Light the lamp.", "lesson": "Look.", "attempt": 2, "title": "t"}
    told = {"tried": "`make`", "attempts": 3, "last_error": "E1", "worked": "`make clean`", "worked_how": "after"}
    assert event.payload.row_after(before) == {**record(step), **told, "explained": "It was stale."}
    event = read("memory.revised", {"id": source_id("tests", 1), "changed": {"content": "Another."}})
    assert event.payload.row_after(before) == record("Another.", title="t")  # type: ignore[attr-defined]


def test_what_changes_no_text_changes_no_attempt() -> None:
    change = {"id": source_id("tests", 1), "changed": {"confidence": 0.5}}
    assert read("memory.revised", change).content == change


def test_a_memory_that_is_back_has_them_too() -> None:
    event = read("memory.undeleted", {"memory": record(LESSON), "added_seq": 1})
    assert isinstance(event.payload, MemoryUndeleted)
    assert event.payload.memory.lesson == "I should look at the desk first."


def test_a_field_of_version_2_is_refused_in_version_1() -> None:
    made = MemoryAdded.parse({"memory": {**record(LESSON), "lesson": "Look."}})
    sealed = seal([CommitDraft("global", [_AsVersion1(**dict(made))])], START, KEY, NOW)
    with pytest.raises(PayloadError, match=r"memory\.lesson"):
        unseal(sealed.lines[0], START, KEY)


class _AsVersion1(MemoryAdded):
    VERSION = 1


COMPOSED = re.compile(
    r"Failed trial|Solved after|What it acted on|What was done|Last error|Lesson|had been edited|it worked (?:after|when)|what worked"
    r"|failed at “|had failed with|What led to success|Never solved|The lesson|The same task failed"
)
"""What the rules and the lifecycle compose of an attempt."""


def parsed_sentences(source: str) -> list[str]:
    """Return the regular expressions of a module that look for what memgraph composes."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    patterns = (
        constant.value
        for call in calls
        if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "re"
        for constant in ast.walk(call)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    )
    return [pattern for pattern in patterns if COMPOSED.search(pattern)]


def test_no_other_module_parses_what_the_rules_compose() -> None:
    package = Path(memgraph.__file__).parent
    found = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if parsed_sentences(path.read_text())
    }
    assert found == {"model/events/registry.py"}
    assert parsed_sentences('import re\n_LEAD = re.compile(r"^(?:Failed trial|Solved): (.+)")')
