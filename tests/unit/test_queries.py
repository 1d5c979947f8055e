"""The named queries, each against one small store whose right answers are written here by hand."""

from __future__ import annotations

import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

import networkx as nx
import polars as pl
import pyarrow as pa
import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore, InvalidInputError, MemGraphError
from memgraph.errors import MissingExtraError, QueryError
from memgraph.graph.guard import check_parameters, check_read_only
from memgraph.graph.queries import named_queries, named_query, parse_query
from memgraph.model.events.records import BuildConsolidated, FailedTest, RecalledItem, RetrievalRecorded, SourceRead
from memgraph.model.memory import RECORD_SOURCES, RUN_SOURCE
from memgraph.model.results.learning import MADE_BY_SLEEP
from memgraph.model.results.rows import Column, Rows
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import vendor_name

NOW = "2026-02-01T09:00:00.000Z"
LATER = "2026-02-11T09:00:00.000Z"
REVERTED = "1234567890abcdef1234567890abcdef12345678"
STALE = "abcdef1234567890abcdef1234567890abcdef12"
FIRST_RECALL, SECOND_RECALL, THIRD_RECALL, FOURTH_RECALL = (
    f"0000000{n}-aaaa-4000-8000-000000000000" for n in (1, 2, 3, 4)
)


def uid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def day(text: str) -> str:
    """Return the first moment of a day, or of a month and day of 2026."""
    return f"{text if len(text) > 5 else f'2026-{text}'}T00:00:00.000Z"


def file(name: str, *, about: bool = False) -> dict[str, object]:
    return {"name": name, "kind": "file", "about": about}


PARSER, LEXER, CACHE = "src/parser.py", "src/lexer.py", "cache.py"
GIVEN = {
    1: {
        "content": "The parser failed on an empty file.",
        "project_id": "shop", "build_id": "b1", "session_id": "s1", "occurred_at": day("01-02"), "outcome": "failure",
        "agents_involved": ["ada"], "tags": ["parser", "failure"], "failure_fingerprint": "f-empty",
        "entities": [file(PARSER, about=True), file(LEXER)], "reason": "a task failed",
    },
    2: {
        "content": "The parser failed on an empty file again.",
        "project_id": "shop", "build_id": "b2", "session_id": "s1", "occurred_at": day("01-03"), "outcome": "failure",
        "agents_involved": ["ada", "bob"], "tags": ["parser", "failure"], "failure_fingerprint": "f-empty",
        "entities": [file(PARSER, about=True), {"name": "ValueError", "kind": "error"}], "reason": "a task failed",
        "previous_id": uid(1),
    },
    3: {
        "content": "bob reverted the streaming parser: it leaked memory.",
        "project_id": "shop", "build_id": "b3", "occurred_at": day("01-04"), "outcome": "failure",
        "agents_involved": ["bob"], "tags": ["parser", "revert"], "files_involved": [PARSER], "git_commit": "f" * 40, "undoes": [REVERTED],
        "entities": [file(PARSER, about=True), {"name": REVERTED[:12], "kind": "commit"}, {"name": "f" * 12, "kind": "commit"}],
        "reason": "a revert says what did not work",
    },
    4: {
        "content": "The parser streams now.",
        "project_id": "shop", "occurred_at": day("2025-12-20"), "outcome": "success",
        "agents_involved": ["ada"], "tags": ["parser", "decision"], "decision": "Stream the parser",
        "alternatives_considered": ["Read it whole"], "git_commit": REVERTED,
        "entities": [{"name": REVERTED[:12], "kind": "commit"}], "reason": "a decision was taken", "source": "git",
    },
    5: {
        "content": "The parser worked after empty files were skipped.",
        "project_id": "shop", "build_id": "b3", "evidence_build_ids": ["b2", "b3"], "occurred_at": day("01-05"),
        "outcome": "success", "agents_involved": ["bob"], "tags": ["parser", "recovery"], "files_involved": [PARSER],
        "entities": [file(PARSER, about=True)], "reason": "a task succeeded after it had failed",
    },
    6: {
        "content": "The cache keeps for an hour.",
        "project_id": "till", "occurred_at": day("01-20"), "outcome": "success", "agents_involved": ["ada"],
        "tags": ["cache", "decision"], "decision": "Cache for an hour", "git_commit": STALE,
        "entities": [file(CACHE, about=True), {"name": STALE[:12], "kind": "commit"}],
    },
    7: {
        "content": "The cache keeps for a minute.",
        "project_id": "till", "occurred_at": day("01-25"), "outcome": "success", "agents_involved": ["eve"],
        "tags": ["cache", "decision"], "decision": "Cache for a minute", "entities": [file(CACHE)],
    },
    8: {  # forgotten: no query tells of it
        "content": "The cache failed and nobody shall know.",
        "project_id": "till", "build_id": "b9", "session_id": "s1", "occurred_at": day("01-26"), "outcome": "failure",
        "agents_involved": ["eve"], "tags": ["cache", "recovery", "revert"], "failure_fingerprint": "f-empty",
        "entities": [file(CACHE)], "decision": "Say nothing", "floor": 0.1, "is_suppressed": True,
    },
    9: {
        "type": "semantic", "content": "The parser fails on empty files.",
        "project_id": "shop", "occurred_at": day("01-06"), "outcome": "failure", "confidence": 0.7, "tags": ["parser"],
        "evidence_build_ids": ["b1", "b2", "b3"], "supporting_memory_ids": [uid(1), uid(2), uid(3)],
    },
    10: {  # no longer true
        "type": "semantic", "content": "Streaming is safe.",
        "project_id": "shop", "occurred_at": day("01-01"), "confidence": 0.7, "supporting_memory_ids": [uid(4)],
        "entities": [file(PARSER)],
    },
    11: {
        "type": "procedural", "content": "Skip empty files.", "trigger_pattern": "a file is empty",
        "steps": ["look at its size", "skip it"], "project_id": "shop", "occurred_at": day("01-07"),
        "outcome": "success", "confidence": 0.8, "success_rate": 1.0, "evidence_build_ids": ["b2", "b3"],
        "supporting_memory_ids": [uid(5), uid(9)],
    },
    12: {
        "type": "procedural", "content": "Restart the till.", "trigger_pattern": "the till hangs",
        "steps": ["restart"], "project_id": "till", "occurred_at": day("01-08"), "confidence": 0.7,
    },
    13: {"type": "semantic", "content": "Tills open at eight.", "project_id": "till", "occurred_at": day("01-09")},
    14: {"type": "semantic", "content": "Tills open at nine.", "project_id": "till", "occurred_at": day("01-10")},
    15: {"type": "semantic", "content": "Tills close at six.", "project_id": "till", "occurred_at": day("01-11")},
    16: {"type": "semantic", "content": "Tills close at seven.", "project_id": "till", "occurred_at": day("01-12")},
    17: {  # of no project, and nobody else's business
        "content": "Ada's telephone is broken.", "occurred_at": day("01-13"), "privacy_tier": "private",
    },
    18: {
        "content": "The till lost a day's sales.",
        "project_id": "till", "occurred_at": day("01-28"), "outcome": "failure", "tags": ["Data-Loss"],
        "agents_involved": ["eve"], "is_pinned": True,
    },
    19: {
        "content": "eve reverted the long cache and all went well.",
        "project_id": "till", "occurred_at": day("01-29"), "outcome": "success", "tags": ["recovery", "revert"],
        "agents_involved": ["eve"], "floor": 0.1, "git_commit": "e" * 40, "undoes": [STALE],
    },
    20: {  # made by sleep: it bears the tags of its evidence, and is not counted beside it
        "type": "semantic", "content": "Files go wrong and are mended.", "source": "compression",
        "project_id": "till", "session_id": "s1", "occurred_at": day("01-30"), "outcome": "failure",
        "agents_involved": ["ada", "mia"], "tags": ["cache", "Data-Loss", "decision", "failure", "recovery", "revert"],
        "entities": [file(CACHE), {"name": STALE[:12], "kind": "commit"}], "failure_fingerprint": "f-empty",
    },
    **{
        number: {
            "content": content, "source": "commit", "project_id": "web", "outcome": "success", "occurred_at": day(at),
            "agents_involved": [person], "git_commit": sha * 40, "change_kind": kind,
            "changes": [{"path": path, "kind": change, "added": 3, "removed": 1, **({"was": was[0]} if was else {})} for change, path, *was in changes],
            **more,
        }
        for number, at, person, sha, kind, content, changes, more in (  # of commits
            (21, "2025-11-01", "ada", "a", "feature", "Talk to the net", [("A", "lib/net.py")], {"release": "1.0"}),
            (22, "2025-11-10", "bob", "b", "fix", "Wait for the net", [("M", "lib/net.py"), ("M", "net_test.py")],
             {"release": "1.1", "mends": "a" * 40, "closes": ["7"]}),
            (23, "2025-11-20", "ada", "c", "refactor", "Move the net", [("R", "net/core.py", "lib/net.py"), ("M", "net_test.py")],
             {"release": "1.1", "entities": [{"name": "c" * 12, "kind": "commit"}]}),
            (24, "2025-12-02", "eve", "d", "revert", "Do not move the net", [("M", "net/core.py")],
             {"undoes": ["c" * 40], "entities": [{"name": "c" * 12, "kind": "commit"}]}),
        )
    },
}  # fmt: skip
RECORDS = (21, 22, 23, 24)
TEXT = {number: str(fields["content"]) for number, fields in GIVEN.items()}


SUPPRESSED, ARCHIVED, INVALID = 100, 200, 300
"""Added to a memory's number: its shadow, which says all that it says and is out of sight of most queries."""
LONG_AGO = day("2025-01-01")
STATES = {
    SUPPRESSED: {"is_suppressed": True},
    ARCHIVED: {"archived_at": NOW, "archive_reason": "faded"},
    INVALID: {"invalid_at": LONG_AGO, "invalidation_reason": "it never was"},
}


def shadows(beside: int) -> list[dict[str, object]]:
    """Return a shadow of each memory, resting on the same memories; procedures_by_success tells of all but the suppressed ones."""
    return [
        {
            "type": "episodic",
            **fields,
            **STATES[beside],
            "id": uid(beside + number),
            "content": f"Shadow {beside + number}",
        }
        for number, fields in GIVEN.items()
        if beside == SUPPRESSED or (fields.get("type") != "procedural" and "changes" not in fields)
    ]


def build(name: str, outcome: str, ended: str, **counts: object) -> BuildConsolidated:
    times = {"started_at": day(ended), "completed_at": day(ended), "consolidated_at": NOW}
    return BuildConsolidated(
        project_id="shop", build_id=name, log_sha256="0" * 64, outcome=outcome, task_count=1, complete=True, extractor="rules",
        **{"extracted": 0, "merged": 0, **counts}, **times,
    )  # fmt: skip


def failed(*names: str) -> list[FailedTest]:
    return [FailedTest(name=name, task=name) for name in names]


def recall(query_id: str, agent: str, at: str, *numbers: int) -> RetrievalRecorded:
    known = {number: GIVEN[number % 100].get("type", "episodic") for number in numbers}
    results = [RecalledItem(id=uid(number), type=kind, score=1.0, tokens=10 * number) for number, kind in known.items()]
    return RetrievalRecorded(
        query_id=query_id, query_hmac="0" * 64, retrieved_at=at, settings_version="1", agent_name=agent, project_id="shop",
        total_tokens=sum(item.tokens for item in results), results=results,
    )  # fmt: skip


def fill(store: AgentMemoryStore, clock: FakeClock) -> None:
    """Tell a store all of it through its public doors."""
    memories = [{"type": "episodic", "id": uid(number), **fields} for number, fields in GIVEN.items()]
    for part in (memories[:8], memories[8:10], memories[10:]):  # what is rested on must be there
        store.insert_memories(part, annotate=False)
    store.insert_memories([shadow for beside in STATES for shadow in shadows(beside)], annotate=False)
    store.commit(
        "global",
        [
            build("b1", "failure", "01-02", extracted=1, passed=["a::two"], failed=failed("a::one")),
            build("b2", "failure", "01-03", extracted=1, merged=1, git_commit=STALE, failed=failed("a::one", "a::two")),
        ],
    )
    store.commit("global", [build("b3", "success", "01-05", extracted=2, passed=["a::one", "a::three"])])
    read = {"records": 40, "builds": 3, "extracted": 4, "merged": 1, "skipped": 2, "read_at": NOW}
    store.commit(
        "global", [SourceRead(source_id="x", kind="git", locator="repo", project_id="shop", cursor="9", **read)]
    )
    store.supersede(uid(6), by=uid(7), reason="it was stale")
    store.supersede(uid(15), by=uid(16))
    store.link(uid(14), "CONTRADICTS", uid(13), score=0.8, reason="eight, nine")
    store.link(uid(16), "CONTRADICTS", uid(15), score=0.9)
    for number in (10, SUPPRESSED + 10, ARCHIVED + 10):  # that of 310 is LONG_AGO
        store.invalidate(uid(number), reason="it leaked", at=day("01-04"))
    store.invalidate(uid(17), reason="it was mended", at=day("01-20"))
    for beside in STATES:
        store.link(uid(9), "DERIVED_FROM", uid(beside + 1))
        store.link(uid(beside + 13), "DERIVED_FROM", uid(6))
    store.link(uid(11), "DERIVED_FROM", uid(20))
    store.link(uid(5), "CONTRADICTS", uid(1), score=0.3, reason="worked, failed")
    for one, other in ((9, 10), (10, 9)):
        store.link(uid(one), "CONTRADICTS", uid(other), score=1.0)
    for beside in STATES:
        store.link(uid(beside + 13), "CONTRADICTS", uid(14), score=1.0)
        store.link(uid(14), "CONTRADICTS", uid(beside + 13), score=1.0)
    for older in (6, 13, 14):  # nothing of this is in force
        for newer in (10, SUPPRESSED + 16, ARCHIVED + 16, INVALID + 16):
            store.supersede(uid(older), by=uid(newer))
    store.supersede(uid(SUPPRESSED + 6), by=uid(7))
    store.archive(uid(12), reason="proposed")
    for query_id, agent, at, numbers in (
        (FIRST_RECALL, "ada", day("01-30"), (9, 1, 11)),
        (SECOND_RECALL, "ada", day("01-31"), (1, 11, 101, 102, 201, 202, 301, 302)),
        (THIRD_RECALL, "bob", NOW, (13, 7, 101, 201, 301)),
        (FOURTH_RECALL, "ada", day("01-29"), (101, 102, 201, 202, 302)),
    ):
        store.record_retrieval(recall(query_id, agent, at, *numbers), store.read_memories([uid(n) for n in numbers]))
    store.record_outcome(FIRST_RECALL, "success", used=[uid(11)])
    store.record_outcome(SECOND_RECALL, "failure", overridden=[uid(1)])
    store.record_outcome(THIRD_RECALL, "like", used=[uid(7), uid(101), uid(201), uid(301)])
    store.record_outcome(FOURTH_RECALL, "partial")
    store.flush()
    clock.set(LATER)


def given_folder(folder: Path) -> AgentMemoryConfig:
    """Return settings of a store in a folder, on the engine that is tested."""
    return AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", engine=vendor_name())


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("queries")
    config, clock = given_folder(folder), FakeClock(start=NOW)
    with AgentMemoryStore(config, embedder=FakeEmbedder(dimension=64), clock=clock) as store:
        fill(store, clock)
        yield store


def tuples(rows):
    return [tuple(row.values()) for row in rows]


SHOP = {"project": "shop"}
ANSWERS = [
    ("agents_by_outcome", {}, [("ada", 4, 2, 2, 0), ("bob", 3, 1, 2, 0), ("eve", 3, 2, 1, 0)]),
    ("agents_by_outcome", {"project": "till"}, [("eve", 3, 2, 1, 0), ("ada", 1, 1, 0, 0)]),
    ("agents_by_learning", {}, [("bob", 2, 1, 1, 3, day("01-05")), ("ada", 1, 1, 0, 4, day("01-03"))]),
    (
        "failures_by_file",
        {},
        [
            (PARSER, 3, 3, day("01-05"), ["a revert says what did not work", "a task failed"]),
            (LEXER, 1, 1, day("01-02"), ["a task failed"]),
        ],
    ),
    ("failures_by_file", {"limit": 1, "since": "2026-01-03"}, [(PARSER, 2, 2, day("01-05"), ["a revert says what did not work", "a task failed"])]),
    ("failures_by_file", {"project": "till"}, []),
    (
        "failures_by_tag",
        SHOP,
        [("parser", 3, 4, day("01-05")), ("failure", 2, 2, day("01-03")), ("revert", 1, 1, day("01-05"))],
    ),
    ("failures_by_month", {}, [(day("01-01"), 3, 2, 0, 0.667)]),
    (
        "recurring_failures",
        {},
        [(2, 2, day("01-02"), day("01-03"), ["shop"], [LEXER, PARSER], TEXT[2], "f-empty")],
    ),
    ("recurring_failures", {"builds": 3}, []),
    (
        "recoveries",
        {},
        [
            (day("01-29"), "till", ["eve"], TEXT[19], [], [], uid(19)),
            (day("01-05"), "shop", ["bob"], TEXT[5], [PARSER], ["b2", "b3"], uid(5)),
        ],
    ),
    ("recoveries", SHOP, [(day("01-05"), "shop", ["bob"], TEXT[5], [PARSER], ["b2", "b3"], uid(5))]),
    (
        "reverted_work",
        {},
        [
            (day("01-29"), "till", ["eve"], TEXT[19], [], [STALE], True, uid(19)),
            (day("01-29"), "till", ["eve"], "Shadow 319", [], [STALE], False, uid(319)),
            (day("01-04"), "shop", ["bob"], TEXT[3], [PARSER], [REVERTED], True, uid(3)),
            (day("01-04"), "shop", ["bob"], "Shadow 303", [PARSER], [REVERTED], False, uid(303)),
            (day("2025-12-02"), "web", ["eve"], TEXT[24], ["net/core.py"], ["c" * 40], True, uid(24)),
        ],
    ),
    (
        "reverted_decisions",
        {},
        [
            (day("01-20"), "till", ["ada"], "Cache for an hour", STALE, day("01-29"), ["eve"], TEXT[19], uid(6), uid(19)),
            (day("01-20"), "till", ["ada"], "Cache for an hour", STALE, day("01-29"), ["eve"], TEXT[19], uid(306), uid(19)),
            (day("2025-12-20"), "shop", ["ada"], "Stream the parser", REVERTED, day("01-04"), ["bob"], TEXT[3], uid(4), uid(3)),
            (day("2025-12-20"), "shop", ["ada"], "Stream the parser", REVERTED, day("01-04"), ["bob"], TEXT[3], uid(304), uid(3)),
            (day("2025-11-20"), "web", ["ada"], TEXT[23], "c" * 40, day("2025-12-02"), ["eve"], TEXT[24], uid(23), uid(24)),
        ],
    ),
    (
        "decisions",
        {},
        [
            (day("01-25"), "till", ["eve"], "Cache for a minute", [], None, None, uid(7), None),
            (day("01-20"), "till", ["ada"], "Cache for an hour", [], TEXT[7], day("01-25"), uid(6), uid(7)),
            (day("2025-12-20"), "shop", ["ada"], "Stream the parser", ["Read it whole"], None, None, uid(4), None),
        ],
    ),
    ("decisions", {"agent": "eve"}, [(day("01-25"), "till", ["eve"], "Cache for a minute", [], None, None, uid(7), None)]),
    (
        "replaced_knowledge",
        {},
        [
            (day("01-25"), "episodic", TEXT[6], TEXT[7], "it was stale", uid(6), uid(7)),
            (day("01-12"), "semantic", TEXT[15], TEXT[16], None, uid(15), uid(16)),
        ],
    ),
    ("replaced_knowledge", {"type": "semantic"}, [(day("01-12"), "semantic", TEXT[15], TEXT[16], None, uid(15), uid(16))]),
    (
        "invalidated_knowledge",
        {"limit": 3},
        [
            (day("01-20"), None, None, "episodic", TEXT[17], "it was mended", uid(17)),
            (day("01-04"), None, "shop", "semantic", TEXT[10], "it leaked", uid(10)),
            (LONG_AGO, None, "shop", "episodic", "Shadow 301", "it never was", uid(301)),
        ],
    ),
    ("invalidated_knowledge", {"at": "2024-12-31"}, []),
    (
        "open_contradictions",
        {},
        [
            (0.8, "eight, nine", TEXT[14], TEXT[13], day("01-10"), day("01-09"), NOW, uid(14), uid(13)),
            (0.3, "worked, failed", TEXT[5], TEXT[1], day("01-05"), day("01-02"), NOW, uid(5), uid(1)),
        ],
    ),
    (
        "evidence_chain",
        {"id": uid(11)},
        [
            (1, "episodic", "positive", day("01-05"), TEXT[5], ["b2", "b3"], None, None, uid(5)),
            (1, "semantic", "negative", day("01-06"), TEXT[9], ["b1", "b2", "b3"], None, None, uid(9)),
            (1, "semantic", "negative", day("01-30"), TEXT[20], [], None, "compression", uid(20)),
            (2, "episodic", "negative", day("01-02"), TEXT[1], ["b1"], None, None, uid(1)),
            (2, "episodic", "negative", day("01-02"), "Shadow 201", ["b1"], None, None, uid(201)),
            (2, "episodic", "negative", day("01-02"), "Shadow 301", ["b1"], None, None, uid(301)),
            (2, "episodic", "negative", day("01-03"), TEXT[2], ["b2"], None, None, uid(2)),
            (2, "episodic", "negative", day("01-04"), TEXT[3], ["b3"], "f" * 40, None, uid(3)),
        ],
    ),
    ("evidence_chain", {"id": "0000000a"}, [(1, "episodic", "positive", day("2025-12-20"), TEXT[4], [], REVERTED, "git", uid(4))]),
    ("evidence_chain", {"id": ""}, []),
    (
        "learned_from",
        {"id": uid(1)},
        [
            (1, "semantic", TEXT[9], 0.7, 6, "in force", uid(9)),
            (1, "semantic", "Shadow 209", 0.7, 3, "faded", uid(209)),
            (1, "semantic", "Shadow 309", 0.7, 3, "invalidated", uid(309)),
            (2, "procedural", TEXT[11], 0.8, 3, "in force", uid(11)),
        ],
    ),
    (
        "learned_from",
        {"id": uid(4), "at": "2026-01-03"},
        [
            (1, "semantic", TEXT[10], 0.7, 1, "in force", uid(10)),
            (1, "semantic", "Shadow 210", 0.7, 1, "faded", uid(210)),
            (1, "semantic", "Shadow 310", 0.7, 1, "invalidated", uid(310)),
        ],
    ),
    ("generalisations", {}, [(TEXT[9], "negative", 0.7, 6, 3, day("01-02"), day("01-05"), 1, uid(9))]),
    (
        "generalisations",
        {"at": "2026-01-02"},
        [
            (TEXT[9], "negative", 0.7, 6, 3, day("01-02"), day("01-05"), 1, uid(9)),
            (TEXT[10], "unknown", 0.7, 1, 0, day("2025-12-20"), day("2025-12-20"), 0, uid(10)),
        ],
    ),
    (
        "landmarks",
        {},
        [
            (day("01-30"), "till", TEXT[20], GIVEN[20]["tags"], ["ada", "mia"], uid(20)),
            (day("01-29"), "till", TEXT[19], ["recovery", "revert"], ["eve"], uid(19)),
            (day("01-28"), "till", TEXT[18], ["Data-Loss"], ["eve"], uid(18)),
        ],
    ),
    (
        "hot_knowledge",
        {"type": "procedural"},
        [(3, NOW, "procedural", "shop", TEXT[11], uid(11))],
    ),
    ("hot_knowledge", {"limit": 2}, [(3, NOW, "procedural", "shop", TEXT[11], uid(11)), (2, NOW, "episodic", "shop", TEXT[1], uid(1))]),
    ("forgotten_knowledge", {}, []),
    (
        "forgotten_knowledge",
        {"days": 10, "project": "shop"},
        [(NOW, 1, "semantic", "shop", TEXT[9], False, uid(9))],
    ),
    ("forgotten_knowledge", {"days": 11, "type": ""}, []),
    (
        "forgotten_knowledge",
        {"type": "episodic", "project": "till", "at": "2026-03-03T09:00:00Z"},
        [
            (NOW, 0, "episodic", "till", TEXT[6], False, uid(6)),
            (NOW, 2, "episodic", "till", TEXT[7], False, uid(7)),
            (NOW, 0, "episodic", "till", TEXT[18], True, uid(18)),
            (NOW, 0, "episodic", "till", TEXT[19], False, uid(19)),
        ],
    ),
    (
        "procedures_by_success",
        {},
        [
            ("a file is empty", "in force", 1.0, 0.8, 2, 2, 1, 1, 0, ["look at its size", "skip it"], uid(11)),
            ("the till hangs", "proposed", None, 0.7, 0, 0, 0, 0, 0, ["restart"], uid(12)),
        ],
    ),
    (
        "tags_by_trend",
        {"days": 10, "at": "2026-01-31"},
        [
            ("Data-Loss", 0, 1, 1, "growing"), ("recovery", 0, 1, 1, "growing"), ("revert", 0, 1, 1, "growing"),
            ("cache", 1, 1, 0, "steady"), ("decision", 1, 1, 0, "steady"),
        ],
    ),
    (
        "tags_by_trend",
        {"days": 7, "at": "2026-01-09T12:00:00Z"},
        [("parser", 1, 4, 3, "growing"), ("recovery", 0, 1, 1, "growing"), ("revert", 0, 1, 1, "growing"), ("failure", 1, 1, 0, "steady")],
    ),
    (
        "about_entity",
        {"entity": "PARSER.py"},
        [
            (True, day("01-05"), "episodic", "positive", TEXT[5], None, None, PARSER, "file", uid(5)),
            (True, day("01-04"), "episodic", "negative", TEXT[3], None, None, PARSER, "file", uid(3)),
            (True, day("01-03"), "episodic", "negative", TEXT[2], None, None, PARSER, "file", uid(2)),
            (True, day("01-02"), "episodic", "negative", TEXT[1], None, None, PARSER, "file", uid(1)),
        ],
    ),
    (
        "about_entity",
        {"entity": "parser.py", "at": "2026-01-02T12:00:00+01:00"},
        [
            (True, day("01-02"), "episodic", "negative", TEXT[1], None, None, PARSER, "file", uid(1)),
            (False, day("01-01"), "semantic", "unknown", TEXT[10], None, day("01-04"), PARSER, "file", uid(10)),
        ],
    ),
    (
        "about_entity",
        {"entity": "cache.py", "at": "2026-01-26"},
        [
            (True, day("01-20"), "episodic", "positive", TEXT[6], None, None, CACHE, "file", uid(6)),
            (False, day("01-25"), "episodic", "positive", TEXT[7], None, None, CACHE, "file", uid(7)),
        ],
    ),
    ("about_entity", {"entity": "cache.py", "at": "2026-01-19"}, []),
    (
        "about_entity",
        {"entity": "cache.py", "project": "till", "limit": 2},
        [
            (True, day("01-20"), "episodic", "positive", TEXT[6], None, None, CACHE, "file", uid(6)),
            (False, day("01-30"), "semantic", "negative", TEXT[20], None, None, CACHE, "file", uid(20)),
        ],
    ),
    (
        "entities_by_mentions",
        {"kind": "file"},
        [
            (PARSER, "file", 4, 4, 3, day("01-05")),
            (CACHE, "file", 2, 1, 0, day("01-25")),
            (LEXER, "file", 1, 0, 1, day("01-02")),
        ],
    ),
    ("entities_by_mentions", {"kind": "error"}, [("ValueError", "error", 1, 0, 1, day("01-03"))]),
    (
        "lessons_by_build",
        {"build": "b3"},
        [
            ("b3", "shop", "success", day("01-05"), "episodic", "negative", TEXT[3], ["bob"], "a revert says what did not work", uid(3)),
            ("b3", "shop", "success", day("01-05"), "episodic", "positive", TEXT[5], ["bob"], "a task succeeded after it had failed", uid(5)),
            ("b3", "shop", "success", day("01-05"), "procedural", "positive", TEXT[11], [], None, uid(11)),
            ("b3", "shop", "success", day("01-05"), "semantic", "negative", TEXT[9], [], None, uid(9)),
        ],
    ),
    (
        "lessons_by_build",
        {"agent": "ada", "since": "2026-01-03", "until": "2026-01-05"},
        [("b2", "shop", "failure", day("01-03"), "episodic", "negative", TEXT[2], ["ada", "bob"], "a task failed", uid(2))],
    ),
    ("lessons_by_build", {"project": "till"}, []),
    (
        "builds",
        {},
        [
            ("b3", "shop", "success", day("01-05"), 2, 0, 2, 2),
            ("b2", "shop", "failure", day("01-03"), 1, 1, 2, 2),
            ("b1", "shop", "failure", day("01-02"), 1, 0, 1, 1),
        ],
    ),
    ("builds", {"outcome": "success"}, [("b3", "shop", "success", day("01-05"), 2, 0, 2, 2)]),
    (
        "recalls_that_helped",
        {},
        [
            (NOW, "bob", "shop", "like", 2, "episodic", TEXT[7], uid(7), THIRD_RECALL),
            (day("01-30"), "ada", "shop", "success", 3, "procedural", TEXT[11], uid(11), FIRST_RECALL),
        ],
    ),
    (
        "recalls_by_agent",
        {},
        [("ada", 3, 2, 1, 0.5, 7166.7, day("01-31")), ("bob", 1, 1, 1, 1.0, 6230.0, NOW)],
    ),
    (
        "memories_by_use",
        {},
        [
            (2, 1, 0, 1, "procedural", TEXT[11], uid(11)),
            (1, 1, 0, 1, "episodic", TEXT[7], uid(7)),
            (2, 0, 1, 0, "episodic", TEXT[1], uid(1)),
            (1, 0, 0, 0, "semantic", TEXT[9], uid(9)),
            (1, 0, 0, 0, "semantic", TEXT[13], uid(13)),
        ],
    ),
    ("recalled_in_vain", {"times": 2}, [(2, 1, 20, "episodic", TEXT[1], uid(1))]),
    ("recalled_in_vain", {}, []),
    (
        "coverage_by_project",
        {},
        [
            ("shop", 3, 5, 1, 1, 0, 4, 0.8, day("2025-12-20"), day("01-07")),
            ("till", 0, 4, 1, 0, 4, 0, 0.0, day("01-09"), day("01-30")),  # when tills open and close was stated
        ],
    ),
    (
        "memories_by_reason",
        SHOP,
        [
            ("", 2, 1, 1, 2),
            ("a task failed", 2, 0, 2, 1),
            ("a decision was taken", 1, 1, 0, 0),
            ("a revert says what did not work", 1, 0, 1, 0),
            ("a task succeeded after it had failed", 1, 1, 0, 0),
        ],
    ),
    (
        "session_story",
        {"session": "s1"},
        [
            (day("01-02"), ["ada"], None, "negative", TEXT[1], uid(1), None),
            (day("01-03"), ["ada", "bob"], None, "negative", TEXT[2], uid(2), uid(1)),
        ],
    ),
    (
        "file_history",
        {"file": "net/core.py"},
        [
            (day("2025-12-02"), "web", ["eve"], "revert", "net/core.py", "M", 3, 1, TEXT[24], "d" * 40, uid(24)),
            (day("2025-11-20"), "web", ["ada"], "refactor", "net/core.py", "R", 3, 1, TEXT[23], "c" * 40, uid(23)),
            (day("2025-11-10"), "web", ["bob"], "fix", "lib/net.py", "M", 3, 1, TEXT[22], "b" * 40, uid(22)),
            (day("2025-11-01"), "web", ["ada"], "feature", "lib/net.py", "A", 3, 1, TEXT[21], "a" * 40, uid(21)),
        ],
    ),
    (
        "file_history",
        {"file": "lib/net.py", "limit": 1},
        [(day("2025-12-02"), "web", ["eve"], "revert", "net/core.py", "M", 3, 1, TEXT[24], "d" * 40, uid(24))],
    ),
    ("file_history", {"file": "lib/net.py", "project": "shop"}, []),
    (
        "release_changes",
        {},
        [
            ("1.1", day("2025-11-20"), "web", ["ada"], "refactor", TEXT[23], ["net/core.py", "net_test.py"], "c" * 40, uid(23)),
            ("1.1", day("2025-11-10"), "web", ["bob"], "fix", TEXT[22], ["lib/net.py", "net_test.py"], "b" * 40, uid(22)),
            ("1.0", day("2025-11-01"), "web", ["ada"], "feature", TEXT[21], ["lib/net.py"], "a" * 40, uid(21)),
        ],
    ),
    (
        "release_changes",
        {"after": "1.0", "upto": "1.1", "kind": "fix"},
        [("1.1", day("2025-11-10"), "web", ["bob"], "fix", TEXT[22], ["lib/net.py", "net_test.py"], "b" * 40, uid(22))],
    ),
    (
        "release_changes",
        {"upto": "1.0"},
        [("1.0", day("2025-11-01"), "web", ["ada"], "feature", TEXT[21], ["lib/net.py"], "a" * 40, uid(21))],
    ),
    ("release_changes", {"after": "1.1"}, []),
    ("release_changes", {"after": "2.0"}, []),
    (
        "time_to_fix",
        {"project": "web"},
        [
            (day("2025-12-02"), 12.0, "REVERTS", "web", ["ada"], ["eve"], TEXT[23], TEXT[24], "c" * 40, "d" * 40),
            (day("2025-11-10"), 9.0, "MENDS", "web", ["ada"], ["bob"], TEXT[21], TEXT[22], "a" * 40, "b" * 40),
        ],
    ),
    (
        "fixes_by_file",
        {},
        [("lib/net.py", 1, 2, 0.5, day("2025-11-10")), ("net_test.py", 1, 2, 0.5, day("2025-11-10"))],
    ),
    ("fixes_by_file", {"since": "2025-11-20"}, []),
    ("changes_together", {"file": "lib/net.py"}, [("net_test.py", 1, 2, 0.5, day("2025-11-10"))]),
    (
        "changes_together",
        {"file": "net_test.py"},
        [("lib/net.py", 1, 2, 0.5, day("2025-11-10")), ("net/core.py", 1, 2, 0.5, day("2025-11-20"))],
    ),
    ("changes_together", {"file": "net_test.py", "since": "2025-11-20"}, [("net/core.py", 1, 1, 1.0, day("2025-11-20"))]),
    (
        "failing_tests",
        {},
        [
            ("a::one", "shop", 2, 1, day("01-03"), STALE, day("01-05"), None, False),
            ("a::two", "shop", 1, 0, day("01-03"), STALE, day("01-02"), None, True),
        ],
    ),
    ("failing_tests", {"since": "2026-01-03", "limit": 1}, [("a::one", "shop", 1, 1, day("01-03"), STALE, day("01-05"), None, False)]),
    ("sources_read", {}, [("git", "repo", "shop", 40, 3, 4, 1, 2, NOW)]),
    ("sources_read", {"kind": "junit"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expected"), ANSWERS, ids=[f"{name}-{given}" for name, given, _ in ANSWERS])
def test_the_answer_is_the_one_written_by_hand(told, name, given, expected):
    rows = told.query(name, **given)
    assert tuples(rows) == expected
    assert rows.columns == named_query(name).columns, "the header's columns are not those of the answer"


PROJECT_TRIED = {name for name, given, _ in ANSWERS if "project" in given}


PROJECT_UNTRIED = sorted(
    name
    for name in set(named_queries()) - PROJECT_TRIED
    if "project" in {one.name for one in named_query(name).parameters}
)


@pytest.mark.parametrize("name", PROJECT_UNTRIED)
def test_an_unknown_project_has_no_rows(told, name):
    needed = {one.name: "cache.py" for one in named_query(name).parameters if one.default is None}
    assert told.query(name, project="nowhere", **needed) == []


def test_a_build_that_left_nothing_is_listed_beside_one_that_taught(tmp_path):
    """Kùzu leaves it out where EXISTS asks for an edge of a memory that an OPTIONAL MATCH has not found."""
    with AgentMemoryStore(
        given_folder(tmp_path), embedder=FakeEmbedder(dimension=64), clock=FakeClock(start=NOW)
    ) as store:
        store.commit("global", [build("b1", "success", "01-02", extracted=1), build("b2", "success", "01-03")])
        shared = {"project_id": "shop", "build_id": "b1"}
        episode = store.insert_memory({"type": "episodic", "content": "The tests failed", **shared})
        lesson = store.insert_memory({"type": "semantic", "content": "Tests fail at night", **shared})
        store.link(lesson.id, "DERIVED_FROM", episode.id)
        rows = [(row["build"], row["episodes"], row["generalisations"]) for row in store.query("builds")]
    assert rows == [("b2", 0, 0), ("b1", 1, 1)]


def test_a_commit_is_told_from_a_release_by_its_form(tmp_path):
    named = {
        "20240115": "release",
        "v1.0": "release",
        "0123456": "release",
        "1" * 12: "commit",
        "1" * 40: "commit",
        "a1" * 32: "commit",
    }
    entities = [{"name": one, "kind": "commit"} for one in named]
    with AgentMemoryStore(given_folder(tmp_path), embedder=FakeEmbedder(dimension=64)) as store:
        store.insert_memories([{"type": "episodic", "content": "Ship it", "entities": entities}], annotate=False)
        store.flush()
        assert {row["entity"]: row["kind"] for row in store.query("entities_by_mentions")} == named


def test_every_query_has_an_answer_written_by_hand():
    assert {name for name, _, expected in ANSWERS if expected} == set(named_queries())
    assert len(named_queries()) >= 20


@pytest.mark.parametrize("name", sorted(named_queries()))
def test_every_header_keeps_its_word(name):
    query = named_query(name)
    check_parameters(check_read_only(query.text), [one.name for one in query.parameters])
    command, verb, named, *options = shlex.split(query.example)
    assert (command, verb, named) == ("memgraph", "query", name)
    assert set(options[::2]) <= {"--param"}
    given = {option.split("=", 1)[0] for option in options[1::2]}
    known = [one.name for one in query.parameters]
    assert {one.name for one in query.parameters if one.default is None} <= given <= set(known)
    assert query.text.startswith(f"// name: {name}\n")
    assert [query.text.count(f"\n// {kind}: ") for kind in ("name", "purpose", "example")] == [0, 1, 1]
    columns = [one.name for one in query.columns]
    assert columns
    assert len({*known}) == len(known)
    assert len({*columns}) == len(columns)
    fitting = {"STRING": "x", "INT64": 1, "DOUBLE": 1.0, "BOOLEAN": True, "TIMESTAMP": NOW}
    required = {one.name: fitting[one.type] for one in query.parameters if one.default is None}
    assert query.values(required, now=NOW).keys() == {*known}  # each default is an allowed value


_SOURCES = re.compile(r"\.source IN \[([^]]*)\]")
HEADER = """// name: one
// purpose: says so,
//   in two lines
// parameter: project STRING = '': of which; '' for all
// parameter: at TIMESTAMP = now: when
// parameter: since TIMESTAMP = null: from when
// parameter: least DOUBLE = 0.5: how much
// parameter: all BOOLEAN = false: whether
// parameter: limit INT64, at least 0, at most 9: how many
// parameter: kind STRING = '', one of '' 'a b' 'c': which
// column: a STRING
// column: b STRING[]: which
// example: memgraph query one --param limit=3
// cost: much
RETURN $project AS a
"""


def test_a_header_is_read():
    query = parse_query("one", HEADER)
    assert (query.purpose, query.cost) == ("says so, in two lines", "much")
    assert query.columns == (("a", "STRING"), ("b", "STRING[]"))
    assert query.notes == {"b": "which"}
    assert [(one.name, one.type, one.default) for one in query.parameters] == [
        ("project", "STRING", "''"),
        ("at", "TIMESTAMP", "now"),
        ("since", "TIMESTAMP", "null"),
        ("least", "DOUBLE", "0.5"),
        ("all", "BOOLEAN", "false"),
        ("limit", "INT64", None),
        ("kind", "STRING", "''"),
    ]
    *_, limit, kind = query.parameters
    assert (limit.at_least, limit.at_most, limit.one_of) == (0, 9, ())
    assert (kind.at_least, kind.at_most, kind.one_of) == (None, None, ("", "a b", "c"))
    values = query.values({"limit": 3, "since": datetime(2026, 1, 1, tzinfo=UTC)}, now=NOW)
    assert values == {
        "project": "",
        "at": datetime(2026, 2, 1, 9, tzinfo=UTC),
        "since": datetime(2026, 1, 1, tzinfo=UTC),
        "least": 0.5,
        "all": False,
        "limit": 3,
        "kind": "",
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("// example", "// sample"),
        ("//   in two", "// in two"),  # neither an entry nor what goes on
        ("INT64, at least", "INTEGER, at least"),
        ("at least 0", "at lest 0"),
        ("// column: b STRING[]", "// column: b MAP"),
    ],
)
def test_a_header_that_keeps_not_to_the_grammar_is_refused(before, after):
    assert HEADER.count(before) == 1
    with pytest.raises(MemGraphError, match=r"queries/one\.cypher: .* grammar"):
        parse_query("one", HEADER.replace(before, after))


@pytest.mark.parametrize(
    ("name", "params", "error", "message"),
    [
        ("failures_by_files", {}, QueryError, "no query 'failures_by_files'; did you mean failures_by_file or"),
        ("FAILURES-BY-FILE", {}, QueryError, "did you mean failures_by_file "),
        ("entities", {}, QueryError, "did you mean entities_by_mentions"),
        ("xyzzy", {}, QueryError, "there is no query 'xyzzy'; `memgraph queries` lists them"),
        ("evidence_chain", {}, QueryError, r"the query evidence_chain needs id \(the memory's id.*: give id="),
        (
            "builds",
            {"most": 1},
            QueryError,
            "the query builds has no parameter 'most'; it takes project, outcome, at, limit",
        ),
        ("builds", {"limit": "1"}, InvalidInputError, "limit: must be a 64-bit integer"),
        ("builds", {"limit": True}, InvalidInputError, "limit: must be a 64-bit integer"),
        ("builds", {"limit": 2**63}, InvalidInputError, "limit: must be a 64-bit integer"),
        ("builds", {"limit": None}, InvalidInputError, "limit: must be a 64-bit integer"),
        ("builds", {"project": 7}, InvalidInputError, "project: must be text"),
        ("tags_by_trend", {"at": "someday"}, InvalidInputError, "at: must be a time"),
        ("tags_by_trend", {"at": None}, InvalidInputError, "at: must be a time"),
        ("builds", {"limit": -1}, InvalidInputError, r"limit: must be at least 0 \(got -1"),
        ("forgotten_knowledge", {"days": 2**63 - 1}, InvalidInputError, "days: must be at least 0 and at most 36,500"),
        ("forgotten_knowledge", {"days": -5}, InvalidInputError, "days: must be at least 0 and at most 36,500"),
        ("forgotten_knowledge", {"type": "nonsense"}, InvalidInputError, "type: must be one of '', 'episodic', 'sem"),
        ("tags_by_trend", {"days": 2**62}, InvalidInputError, "days: must be at least 1 and at most 36,500"),
        ("builds", {"project": "\udcff"}, InvalidInputError, "project: is not UTF-8 text"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(told, name, params, error, message):
    with pytest.raises(error, match=message):
        told.query(name, **params)


@pytest.mark.parametrize("given", [{"days": 36_500, "at": "0001-01-01"}, {"limit": 2**63 - 1}, {"limit": 0}])
def test_the_ends_of_a_range_are_in_it(told, given):
    for name in ("forgotten_knowledge", "tags_by_trend"):
        assert isinstance(told.query(name, **given), list)
    if given == {"limit": 0}:
        assert told.query("tags_by_trend", **given) == []
    elif "limit" in given:
        assert told.query("tags_by_trend", **given) == told.query("tags_by_trend", limit=1_000) != []


@pytest.mark.parametrize(
    "asked", [None, 5, True, float("nan"), object(), [], {}, b"x"], ids=lambda one: type(one).__name__
)
def test_what_is_no_text_is_no_query(told, asked):
    with pytest.raises(InvalidInputError, match="name: must be the name of a query"):
        told.query(asked)
    with pytest.raises(InvalidInputError, match="query: must be a Cypher statement"):
        told.cypher(asked)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (10**44, "the parameter 'x' is too large"),
        (-(2**63) - 1, "the parameter 'x' is too large"),
        ([{"a": 2**63}], "the parameter 'x' is too large"),
        ("\udcff", "the parameter 'x' is not UTF-8 text"),
        ([{"\udcff": 1}], "the parameter 'x' is not UTF-8 text"),
        (object(), "the parameter 'x' contains a object, which is not a valid query parameter"),
    ],
    ids=["large", "small", "within", "half", "key", "object"],
)
def test_a_value_that_the_engine_does_not_take_is_refused_by_name(told, value, message):
    with pytest.raises(QueryError, match=message):
        told.cypher("RETURN $x AS v, $y AS w", y=1, x=value)


def test_what_sleep_made_is_told_by_its_source():
    named = [
        set(re.findall("'([^']*)'", said))
        for query in named_queries().values()
        for said in _SOURCES.findall(query.text)
    ]
    assert len(named) > 5
    assert all(sources in (MADE_BY_SLEEP, set(RECORD_SOURCES), set(RECORD_SOURCES) - {RUN_SOURCE}) for sources in named)


def test_a_parameters_value_is_no_cypher(told):
    hostile = "' OR true RETURN 1 //"
    assert told.query("builds", project=hostile) == []
    assert told.query("about_entity", entity=hostile) == []


DISTINCT_FIRST = "MATCH (m:Memory) RETURN m.type AS type, count(DISTINCT m.project_id) AS projects, count(*) AS memories ORDER BY type"
DISTINCT_LAST = "MATCH (m:Memory) RETURN m.type AS type, count(*) AS memories, count(DISTINCT nullif(m.project_id, '')) AS projects ORDER BY type"


def test_an_aggregate_that_the_engine_would_get_wrong_is_refused(told):
    with pytest.raises(QueryError, match="put those with DISTINCT last"):
        told.cypher(DISTINCT_FIRST)
    assert tuples(told.cypher(DISTINCT_LAST)) == [("episodic", 52, 3), ("procedural", 4, 2), ("semantic", 28, 2)]
    check_read_only(
        "MATCH (m:Memory) WITH count(DISTINCT m.type) AS a RETURN sum(a), 'count(DISTINCT x), sum(y)' AS text"
    )


@pytest.mark.parametrize(
    "where",
    ["$x", "m.is_pinned AND $x", "NOT ($x) AND m.is_pinned", "m.is_pinned AND ($x OR size('a') = 1)", "EXISTS { MATCH (b:Build) WHERE $x }"],
)  # fmt: skip
def test_a_condition_that_the_engine_would_pass_over_is_refused(told, where):
    with pytest.raises(QueryError, match="name a column in it, too"):
        told.cypher(f"MATCH (m:Memory) WHERE {where} RETURN m.id AS id", x=False)


@pytest.mark.parametrize(
    "where",
    [
        "m.is_pinned OR $x AND $x",
        "m.is_pinned AND $x OR m.access_count > 1000",
        "m.is_pinned AND m.privacy_tier STARTS WITH CASE WHEN $x AND $x THEN 'x' ELSE 'p' END",
        "m.is_pinned AND coalesce(m.floor > $x, true)",
    ],
)
def test_other_conditions_on_parameters_are_asked(where):
    check_read_only(f"MATCH (m:Memory) WHERE {where} RETURN m.id AS id, $x AND $x AS both")


KINDS = """
MATCH (m:Memory) WHERE m.id = $id
RETURN m.content AS text, m.occurred_at AS at, m.tags AS tags, m.confidence AS number, m.is_pinned AS truth, sum(m.access_count) AS total,
       {name: m.entities_name} AS entities, m AS node, date('2026-01-02') AS day, m.valid_at AS no_time, m.files_involved AS no_list
"""


def test_rows_are_a_list_of_dictionaries_that_knows_its_columns(told):
    rows = told.cypher(KINDS, id=uid(1))
    assert isinstance(rows, list)
    assert rows == [dict(rows[0])]
    types = dict(rows.columns)
    assert list(rows[0]) == list(types)
    assert (types["text"], types["at"], types["tags"], types["truth"]) == ("STRING", "TIMESTAMP", "STRING[]", "BOOLEAN")
    assert type(rows[0]["total"]) is int  # the engine gives every sum as a decimal
    assert told.cypher(KINDS, id="nobody").columns == rows.columns


@pytest.mark.parametrize("memory_id", [uid(1), "nobody"], ids=["a row", "no row"])
def test_tables_keep_names_types_and_values(told, memory_id):
    rows = told.cypher(KINDS, id=memory_id)
    names = [column.name for column in rows.columns]

    arrow = rows.arrow()
    assert arrow.column_names == names
    assert arrow.schema.field("at").type == pa.timestamp("ms", tz="UTC")
    assert arrow.schema.field("tags").type == pa.list_(pa.string())
    assert arrow.schema.field("total").type == pa.int64()
    polars = rows.polars()
    assert polars.columns == names
    assert polars.schema["at"] == pl.Datetime("ms", "UTC")
    assert polars.schema["tags"] == pl.List(pl.String)
    assert polars.schema["truth"] == pl.Boolean
    pandas = rows.pandas()
    assert list(pandas.columns) == names
    assert str(pandas.dtypes["at"]) == "datetime64[ms, UTC]"
    assert str(pandas.dtypes["total"]) == "Int64"
    if rows:
        (record,) = arrow.to_pylist()
        assert record["at"] == datetime(2026, 1, 2, tzinfo=UTC)
        assert record["tags"] == ["parser", "failure"]
        assert record["entities"].startswith('{"name": ["src/parser.py"')  # a record is text in JSON
        assert (record["total"], record["no_time"], record["no_list"]) == (2, None, [])
        assert polars.to_dicts() == [record]
        assert pandas["at"][0].to_pydatetime() == record["at"]
        assert list(pandas["tags"][0]) == record["tags"]


def test_a_number_of_more_than_64_bits_fits_no_table():
    rows = Rows([{"x": 2**64}], columns=[Column("x", "INT128")])
    with pytest.raises(QueryError, match="in the column x needs more than 64 bits"):
        rows.arrow()


@pytest.mark.parametrize(
    ("method", "package", "extra"),
    [("arrow", "pyarrow", "parquet"), ("polars", "polars", "polars"), ("pandas", "pandas", "pandas")],
)
def test_a_table_without_its_library_says_what_installs_it(monkeypatch, method, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtraError,
        match=re.escape(f"need {package}, which is not installed: pip install 'memgraph-kuzu[{extra}]'"),
    ):
        getattr(Rows(), method)()


PUBLIC = {
    uid(beside + number) for beside in (0, INVALID) for number in GIVEN if number not in (8, 12, 17, *RECORDS)
} - {uid(311)}


def test_a_network_omits_private_memories(told):
    network = told.to_networkx()
    assert isinstance(network, nx.MultiDiGraph)
    assert set(network) == PUBLIC
    assert network.nodes[uid(1)]["content"] == TEXT[1]
    assert network.nodes[uid(18)]["relevance"] == 1.0  # pinned
    assert 0.0 < network.nodes[uid(4)]["relevance"] < 1.0
    assert network.edges[uid(14), uid(13), "CONTRADICTS"]["reason"] == "eight, nine"
    found = nx.descendants(nx.subgraph_view(network, filter_edge=lambda _s, _t, key: key == "DERIVED_FROM"), uid(11))
    assert found == {uid(number) for number in (1, 2, 3, 5, 9, 20, 301)}
    assert network.has_edge(uid(1), uid(2), "NEXT")


def test_a_network_shows_what_is_named(told):
    assert set(told.to_networkx(include=["suppressed", "archived", "private", "records"])) > {
        uid(number) for number in GIVEN
    }
    assert set(told.to_networkx(include=["private"])) == PUBLIC | {uid(17), uid(317)}
    shop = {uid(beside + number) for beside in (0, 300) for number in (1, 2, 3, 4, 5, 9, 10)} | {uid(11)}
    assert set(told.to_networkx(project_id="shop")) == shop
    assert set(told.to_networkx(project_id="shop", include="archived")) == shop | {
        uid(200 + n) for n in (1, 2, 3, 4, 5, 9, 10)
    }
    assert set(told.to_networkx(project_id="nowhere")) == set()
    with pytest.raises(InvalidInputError, match="must be one of suppressed, archived, sensitive, private"):
        told.to_networkx(include=["deleted"])
