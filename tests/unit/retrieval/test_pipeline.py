"""The pipeline as a whole: its stages tell what they did, its answers are the same each time, and it knows what it does not know."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memgraph
from memgraph.index.analyser import ANALYSER_VERSION
from memgraph.model.results.retrieval import StageReport
from memgraph.privacy import Access
from memgraph.retrieval.pipeline import STAGES, ranked
from memgraph.retrieval.stages.certainty import certainty_word
from memgraph.retrieval.version import STAGES_VERSION, settings_version
from memgraph.store.access.scope import Scope
from memgraph.testing import FakeEmbedder

FROZEN = Path(__file__).with_name("frozen_rankings.json")
TEXTS = [
    ("The deploy failed because the disk of the build host was full", "negative", ["deploy", "disk"]),
    ("Deploys run from the main branch at noon", "neutral", ["deploy"]),
    ("A full disk is found by the health check of the host", "positive", ["disk", "health"]),
    ("Retrying the payment call with a back-off fixed the timeouts", "positive", ["payment"]),
    ("The payment service timed out under load", "negative", ["payment"]),
    ("Load tests are run before each release, with ten users", "neutral", ["release"]),
    ("getUserById returned null for accents such as José", "negative", ["users"]),
    ("Version 1.2.3 of the parser reads files with a byte order mark", "positive", ["parser"]),
    ("数据库连接超时", "negative", ["database"]),
]
QUERIES = [
    "is the Build Host's disk full?",
    "when is a release cut?",
    "why did the deploy fail?",
    "disk full on the build host",
    "payment timeouts under load",
    "get user by id with accents",
    "parser 1.2.3",
    "数据库",
    "what did Ann say about the release in March 2026?",
]


@pytest.fixture
def filled(store: Any) -> Any:
    """Return a store of nine memories in three sessions, linked, and of two speakers."""
    memories = [
        memgraph.EpisodicMemory(
            id=f"00000000-0000-4000-8000-{place:012d}",
            content=content,
            outcome=outcome,
            tags=tags,
            project_id="shop",
            session_id=f"s{place // 3}",
            speaker="Ann" if place % 2 else "Bob",
            occurred_at=f"2026-0{1 + place // 3}-05",
        )
        for place, (content, outcome, tags) in enumerate(TEXTS)
    ]
    kept = store.insert_memories(memories)
    store.link(kept[3].id, "CONTRADICTS", kept[4].id)
    return store


@pytest.fixture
def rich(filled: Any) -> Any:
    """Return the same with what each of the other stages looks for."""

    def known(place: int, kind: Any, content: str, **fields: Any) -> Any:
        given = {"id": f"00000000-0000-4000-8000-{place:012d}", "content": content, "project_id": "shop", **fields}
        return filled.insert_memory(kind(**given))

    episode, fact = memgraph.EpisodicMemory, memgraph.SemanticMemory
    known(20, episode, "Was the disk of the host full again?", session_id="s7", speaker="Bob")
    known(21, episode, "Yes, logs took it all", session_id="s7", speaker="Ann")
    known(22, episode, "It is owned by Health Desk since spring", title="Build Host")
    known(23, episode, "Four people, on call by turns", title="Health Desk")
    rule = known(24, fact, "Disks fill with logs", confidence=0.8, tags=["disk"])
    old = known(25, fact, "Releases are cut on Monday", tags=["release"])
    new = known(26, fact, "Since March a release is cut on Tuesday", tags=["release"])
    known(
        27,
        memgraph.ProceduralMemory,
        "free the disk",
        trigger_pattern="disk full on a host",
        steps=["find", "rotate"],
        confidence=0.9,
    )
    known(28, episode, "All orders of a day were lost", outcome="negative", tags=["deploy", "disk"], floor=0.1)
    filled.link(f"00000000-0000-4000-8000-{0:012d}", "SUPPORTS", rule.id)
    filled.link(new.id, "SUPERSEDES", old.id)
    filled.record_access(f"00000000-0000-4000-8000-{2:012d}")
    return filled


def rankings(store: Any, **settings: Any) -> dict[str, list[list[Any]]]:
    retrieval = memgraph.MemoryRetrieval(store, config=memgraph.RetrievalConfig(**settings))
    return {
        query: [[int(found.memory.id[-12:]), found.score] for found in retrieval.search_memories(query)]
        for query in QUERIES
    }


def test_rankings_change_with_their_version_only(rich: Any) -> None:
    """The gate before a change of ranking: raise `STAGES_VERSION` or `ANALYSER_VERSION`, and put the new rankings here."""
    frozen = json.loads(FROZEN.read_text())
    found = {
        "settings": settings_version(memgraph.RetrievalConfig()),
        "analyser": str(ANALYSER_VERSION),
        "rankings": rankings(rich),
    }

    assert found["rankings"] == frozen["rankings"], "the order has changed: raise a version, and freeze it anew"
    assert found == frozen, "a version was raised: freeze its rankings"


CHANGED: list[dict[str, Any]] = [
    {"dense_weight": 0.4}, {"fusion": "rrf"}, {"context_weight": 0.0}, {"neighbour_weight": 0.0}, {"neighbour_span": 1},
    {"neighbour_decay": 0.1}, {"answer_factor": 1.0}, {"question_discount": 0.0}, {"speaker_weight": 0.0}, {"name_weight": 0.0},
    {"tag_weight": 0.0}, {"trigger_weight": 0.0}, {"time_weight": 0.0}, {"mention_weight": 0.0}, {"evidence_weight": 0.0},
    {"contradiction_weight": 0.0}, {"landmark_weight": 0.0}, {"relevance_weight": 0.0}, {"use_weight": 0.0},
    {"negative_weight": 0.0}, {"k1": 0.5}, {"b": 0.0}, {"length_constant_words": 1.0},
]  # fmt: skip


def test_every_setting_moves_a_frozen_ranking(rich: Any) -> None:
    frozen = json.loads(FROZEN.read_text())["rankings"]

    assert [changed for changed in CHANGED if rankings(rich, **changed) == frozen] == []


def test_the_same_question_has_the_same_answer_to_the_byte(filled: Any, open_store: Any) -> None:
    first = [memgraph.MemoryRetrieval(filled).search_memories(query) for query in QUERIES]
    filled.close()
    again = open_store()
    second = [memgraph.MemoryRetrieval(again).search_memories(query) for query in QUERIES]

    assert [[scored.model_dump_json() for scored in found] for found in first] == [
        [scored.model_dump_json() for scored in found] for found in second
    ]


def test_each_stage_reports_counts(filled: Any) -> None:
    result = memgraph.MemoryRetrieval(filled).retrieve({"task_description": QUERIES[2]})

    assert [report.stage for report in result.stages] == [stage.name for stage in STAGES]
    counts = {report.stage: report.counts for report in result.stages}
    assert counts["filter"] == {"admitted": 9}
    assert counts["meaning"] == {"compared": 9}
    assert counts["words"]["matched"] > 0
    assert counts["fuse"] == {"candidates": 9}


def test_stages_can_be_observed(filled: Any) -> None:
    seen: list[StageReport] = []
    with filled.reader.frozen():
        ranking = ranked(filled, QUERIES[0], None, Scope(Access()), memgraph.RetrievalConfig(), watch=seen.append)

    assert seen == ranking.stages


def test_results_carry_their_versions(filled: Any, embedder: Any) -> None:
    versions = memgraph.MemoryRetrieval(filled).retrieve({"task_description": "disk"}).versions
    settings = settings_version(memgraph.RetrievalConfig(dense_weight=0.45))

    assert versions == {"settings": settings, "analyser": str(ANALYSER_VERSION), "embedder": embedder.name}


def test_the_recorded_version_names_the_stages_and_changes_with_every_weight(filled: Any) -> None:
    configs = [memgraph.RetrievalConfig(**changed) for changed in [{}, *CHANGED]]
    versions = [settings_version(config) for config in configs]
    memgraph.MemoryRetrieval(filled, config=configs[1]).retrieve({"task_description": "disk"})

    assert len({*versions}) == len(configs)
    assert all(re.fullmatch(rf"{STAGES_VERSION}-[0-9a-f]{{8}}", version) for version in versions)
    assert settings_version(memgraph.RetrievalConfig(max_tokens=7)) == versions[0]
    filled.flush()
    with closing(sqlite3.connect(filled.config.home / "memgraph.db")) as raw:
        journal = b"".join(payload for (payload,) in raw.execute("SELECT payload FROM event"))
    assert f'"settings_version":"{versions[1]}"'.encode() in journal


def test_few_candidates_find_the_same_best(filled: Any) -> None:
    for query in QUERIES:
        every = memgraph.MemoryRetrieval(filled).search_memories(query, limit=1)
        few = memgraph.MemoryRetrieval(filled, config=memgraph.RetrievalConfig(candidates=4)).search_memories(
            query, limit=1
        )
        assert few == every


def test_more_may_be_asked_for_than_are_candidates(filled: Any) -> None:
    retrieval = memgraph.MemoryRetrieval(filled, config=memgraph.RetrievalConfig(candidates=1))

    assert len(retrieval.search_memories("disk", limit=9)) == 9
    asked = {"task_description": "disk", "max_episodic": 9, "max_tokens": 10_000}
    assert len(retrieval.retrieve(asked).memories) == 9


def test_ranks_can_be_fused_instead_of_scores(filled: Any) -> None:
    retrieval = memgraph.MemoryRetrieval(filled, config=memgraph.RetrievalConfig(fusion="rrf"))
    result = retrieval.retrieve({"task_description": "why did the deploy fail?"})
    best = max(result.explanations, key=lambda found: found.score)

    assert best.text == pytest.approx(0.55), "the first by its words has all that words can give"
    assert best.dense == pytest.approx(0.45)


@pytest.mark.parametrize(("query", "kind"), [("数据库", "keyword"), (QUERIES[0], "combined")])
def test_a_result_says_what_found_it(filled: Any, query: str, kind: str) -> None:
    config = memgraph.RetrievalConfig(dense_weight=0.0 if kind == "keyword" else 0.45)
    found = memgraph.MemoryRetrieval(filled, config=config).search_memories(query, limit=1)[0]

    assert found.match_type == kind


def test_certainty_separates_known_from_unknown_queries(filled: Any) -> None:
    retrieval = memgraph.MemoryRetrieval(filled)

    def certainty(task: str) -> tuple[str, float]:
        result = retrieval.retrieve({"task_description": task})
        assert result.certainty == certainty_word(result.certainty_score)
        return result.certainty, result.certainty_score

    known = certainty("The payment service timed out under load")
    foreign = certainty("How do penguins keep their feet warm?")

    assert known[0] == "high"
    assert foreign[0] == "none"
    assert known[1] > certainty("payment of penguins")[1] > foreign[1]


def test_what_brings_nothing_is_certain_of_nothing(filled: Any) -> None:
    query = {"task_description": "The payment service timed out under load", "floor": 1.0}
    result = memgraph.MemoryRetrieval(filled).retrieve(query)
    assert (result.memories, result.certainty, result.certainty_score) == ([], "none", 0.0)
    filled.insert_memories(
        [
            {
                "type": "semantic",
                "content": "Deploy on Tuesdays only.",
                "is_pinned": True,
                "tags": ["constraint"],
                "trust_class": "user",
            }
        ]
    )
    result = memgraph.MemoryRetrieval(filled).retrieve(query)
    assert ([one.content for one in result.memories], result.certainty) == (["Deploy on Tuesdays only."], "none")


def test_an_empty_store_is_certain_of_nothing(store: Any) -> None:
    result = memgraph.MemoryRetrieval(store).retrieve({"task_description": "anything"})

    assert (result.memories, result.certainty, result.certainty_score) == ([], "none", 0.0)


@pytest.mark.parametrize("text", ["", " ", "?!", "the of and"])
def test_a_task_without_words_is_answered(filled: Any, text: str) -> None:
    result = memgraph.MemoryRetrieval(filled).retrieve({"task_description": text})

    assert len(result.memories) == 5
    assert result.certainty == "none"


def test_a_long_task_is_searched_with_its_beginning(filled: Any) -> None:
    retrieval = memgraph.MemoryRetrieval(filled)
    long = "payment timeouts under load " + "zzz " * 25_000

    result = retrieval.retrieve({"task_description": long})

    assert "first 8,000 characters" in (result.notice or "")
    assert [memory.id for memory in result.memories] == [
        memory.id for memory in retrieval.retrieve({"task_description": long[:8_000]}).memories
    ]
    assert retrieval.search_memories(long) == retrieval.search_memories(long[:8_000])
    with pytest.raises(memgraph.InvalidInputError):
        retrieval.retrieve({"task_description": "x" * 1_000_001})


@pytest.mark.parametrize("size", [0, 1, 63, 65])
def test_a_vector_of_another_length_is_refused(filled: Any, size: int) -> None:
    with pytest.raises(memgraph.InvalidInputError) as caught:
        memgraph.MemoryRetrieval(filled).search_memories("disk", embedding=np.ones(size, dtype=np.float32))
    assert caught.value.field == "embedding"


def test_a_given_vector_is_used(filled: Any, embedder: Any) -> None:
    embedder.calls.clear()
    vector = embedder.embed_query("payment service")
    found = memgraph.MemoryRetrieval(filled).search_memories("", embedding=vector, limit=2)

    assert len(embedder.calls) == 1
    assert all("payment" in scored.memory.content.lower() for scored in found)


@pytest.mark.parametrize(
    "limits", [dict.fromkeys(("max_episodic", "max_semantic", "max_procedural"), 0), {"max_tokens": 0}]
)
def test_a_budget_of_nothing_gives_nothing(filled: Any, limits: dict[str, int]) -> None:
    result = memgraph.MemoryRetrieval(filled).retrieve({"task_description": "disk", **limits})

    assert (result.memories, result.injected_prompt_prefix) == ([], "")


def test_an_absurd_budget_gives_all(filled: Any) -> None:
    limits = dict.fromkeys(("max_episodic", "max_semantic", "max_procedural", "max_tokens"), 10**9)

    assert len(memgraph.MemoryRetrieval(filled).retrieve({"task_description": "disk", **limits}).memories) == 9


def test_an_unknown_project_sees_shared_knowledge_only(filled: Any) -> None:
    filled.insert_memory(memgraph.SemanticMemory(content="disks fill up"))
    found = memgraph.MemoryRetrieval(filled).search_memories("disk", project_id="nowhere")

    assert [scored.memory.content for scored in found] == ["disks fill up"]


def test_with_phrases_their_words_count_and_not_those_of_the_task(filled: Any) -> None:
    """A task in the words of one memory, with phrases in the words of another: the phrases decide. A name counts wherever it stands."""
    recall = memgraph.MemoryRetrieval(filled).retrieve
    task = {"task_description": "payment service timed out under load", "project_id": "shop", "floor": "off"}

    def found(**more: Any) -> list[str]:
        return [one.content for one in recall({**task, **more}).memories if one.type == "episodic"]

    assert found()[0] == TEXTS[4][0]
    assert found(also=["full disk of the host", "health check finds a full disk"])[0] == TEXTS[2][0]
    by_speaker = found(task_description="what did Ann say?", also=["deploys from the main branch"])
    assert by_speaker[0] == TEXTS[1][0]


def test_each_phrase_is_compared_by_itself_and_a_short_title_is_no_chance_match(
    open_store: Any,
) -> None:
    """Of a title of four words and a long text that is less near to the phrases the title comes first, and names that phrases guess cost nothing."""
    title, long = "Lowercase WSGI header names", " ".join(["request bodies are read in one piece"] * 6)
    phrases = [
        "fix casing in StartResponseAdapter",
        "normalise keys of the response",
        "content type not found by Middleware",
    ]
    near, off = [1.0, *[0.0] * 63], [0.0, 1.0, *[0.0] * 62]
    given = {
        title: near,
        long: np.add(near, np.multiply(off, 0.6)),
        **dict.fromkeys(phrases, np.add(near, np.multiply(off, 0.1))),
    }
    store = open_store(embedder=FakeEmbedder(64, vectors=given))
    store.insert_memories([memgraph.EpisodicMemory(content=text) for text in (long, title)])
    task = {"task_description": "code outside the adapter misses fields whose spelling differs", "floor": 0.7}
    recall = memgraph.MemoryRetrieval(store).retrieve
    assert [one.content for one in recall({**task, "also": phrases}).memories][:1] == [title]
    assert recall(task).memories == []
