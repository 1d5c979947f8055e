"""A log is lived through: before each trial memory is asked, then the trial is read, then memory sleeps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from memgraph import AgentMemory, Embedder, MemGraph, MemoryRetrieval, RetrievalConfig
from memgraph.retrieval import pipeline
from memgraph.retrieval.context.budget import count_tokens, within_tokens
from memgraph.testing import FakeClock
from tests.benchmarks.corpus import Part
from tests.benchmarks.learning_logs import Log, Question, Trial, TrialReader
from tests.benchmarks.retrieval_peers import Bm25

SHOWN = 5
"""Of the memories found so many are looked at."""
NEAR = 0.95
"""Cosine from which two memories are near-duplicates."""
WHOLE = "everything"
WITHOUT: dict[str, RetrievalConfig] = {
    WHOLE: RetrievalConfig(),
    "SUPPORTS, DERIVED_FROM": RetrievalConfig(evidence_weight=0.0),
    "CONTRADICTS": RetrievalConfig(contradiction_weight=0.0),
    "SUPERSEDES": RetrievalConfig(),
    "landmarks": RetrievalConfig(landmark_weight=0.0),
}
"""What is taken away from recall, and the settings that do so. SUPERSEDES has none: its stage is left out, so that what was
replaced is recalled as if it were in force."""
_START = datetime(2000, 1, 1, tzinfo=UTC)
_MOST = {"episodic": 5, "semantic": 3, "procedural": 2}
_TOKENS = 800
_FOUND = 400


@dataclass(slots=True)
class Answer:
    """How one question was answered.

    Attributes
    ----------
    stored : bool
        Whether the failure, or the lesson from it, is in the store at all.
    bm25, hit : bool, dict of str to bool
        Whether it is among the five that BM25, and recall with something taken away, find.
    covered : dict of str to bool
        Whether the recall, within the default budget, holds a generalisation of it.
    coverable : bool
        Whether the store holds one.
    recalled : bool
        Whether the recall holds the failure, the lesson or a generalisation of it.
    is_solved : bool or None
        How the attempt that followed ended; None where the log was cut before it.
    """

    log: str
    task: str
    day: int
    stored: bool = False
    bm25: bool = False
    hit: dict[str, bool] = field(default_factory=dict)
    covered: dict[str, bool] = field(default_factory=dict)
    coverable: bool = False
    recalled: bool = False
    is_solved: bool | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What a store holds in the end; counts.

    Attributes
    ----------
    near : int
        Memories in force with another one in force at a cosine of `NEAR` or more.
    near_alike : int
        The same, of one type: a generalisation and its episode are not of one.
    builds_of_evidence : list of int
        Of each generalisation.
    landmarks, negative : int
        Negative memories in force, and those of them that must not be forgotten.
    links : dict of str to int
        Between memories, by relation.
    """

    memories: int
    episodes: int
    near: int
    near_alike: int
    builds_of_evidence: list[int]
    covered_episodes: int
    landmarks: int
    negative: int
    links: dict[str, int]


@dataclass(slots=True)
class Life:
    """What came of living through a log.

    Attributes
    ----------
    solved : list of int
        Tasks, trial by trial.
    builds, extracted, merged : int
        Trials that were read, what was new in them, and what was known.
    seconds, slept : dict
        What reading and the phases of sleep took, and how many memories each phase changed.
    """

    name: str
    answers: list[Answer] = field(default_factory=list)
    solved: list[int] = field(default_factory=list)
    builds: int = 0
    extracted: int = 0
    merged: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    slept: dict[str, int] = field(default_factory=dict)
    survey: Survey | None = None

    def as_record(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def live_through(log: Log, folder: Path, embedder: Embedder, *, phases: Sequence[str] = ()) -> Life:
    """Replay a log into a new store in `folder`; the clock stands still within a trial.

    Parameters
    ----------
    phases : sequence of str
        Of the sleep after each trial; none: all.
    """
    life, clock = Life(log.name), FakeClock(_START)
    with MemGraph.open(folder / "store", keys_home=folder / "keys", embedder=embedder, clock=clock) as graph:
        for trial, questions in zip(log.trials, log.questions(), strict=True):
            clock.set(_START)
            clock.advance(days=trial.day)
            life.answers += _asked(graph, log, trial, questions)
            with _timed(life, "ingest"):
                report = graph.ingest(TrialReader(log, trial), compress=False)
            life.builds += report.builds
            life.extracted += report.extracted
            life.merged += report.merged
            life.solved.append(sum(attempt.is_solved for attempt in trial.attempts))
            _sleep(graph, life, phases)
        life.survey = surveyed(graph, embedder)
    return life


def _sleep(graph: MemGraph, life: Life, phases: Sequence[str]) -> None:
    for phase in graph.sleep(phases=phases).phases:
        life.seconds[phase.name] = life.seconds.get(phase.name, 0.0) + phase.seconds
        life.slept[phase.name] = life.slept.get(phase.name, 0) + phase.changed


@contextmanager
def _timed(life: Life, what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    life.seconds[what] = life.seconds.get(what, 0.0) + time.perf_counter() - started


def _asked(graph: MemGraph, log: Log, trial: Trial, questions: Sequence[Question]) -> list[Answer]:
    """Put the questions, first by searches that record nothing, then as an agent would, which counts accesses."""
    if not questions:
        return []
    memories = in_force(graph)
    generalised = _evidence(graph, memories)
    bm25 = Bm25().fill([Part(memory.id or "", memory.content) for memory in memories])
    answers = []
    for question in questions:
        gold = _gold(memories, question.gold)
        attempt = question.attempt
        answer = Answer(log.name, attempt.task, trial.day, stored=bool(gold))
        answer.is_solved = attempt.is_solved if attempt.build_id else None
        answer.coverable = any(gold & sources for sources in generalised.values())
        answer.bm25 = any(memories[place].id in gold for place in bm25(attempt.query, SHOWN))
        for name, config in WITHOUT.items():
            with _without_succession(name == "SUPERSEDES"):
                found = MemoryRetrieval(graph.store, config=config).search_memories(
                    attempt.query, limit=_FOUND, project_id=log.project_id
                )
            ranked = [one.memory for one in found]
            answer.hit[name] = any(memory.id in gold for memory in ranked[:SHOWN])
            answer.covered[name] = any(gold & generalised.get(one.id or "", set()) for one in budgeted(ranked))
        answers.append(answer)
    for question, answer in zip(questions, answers, strict=True):
        gold = _gold(memories, question.gold)
        recall = graph.recall(question.attempt.query, project=log.project_id)
        answer.recalled = any(
            memory.id in gold or gold & generalised.get(memory.id or "", set()) for memory in recall.memories
        )
    return answers


def in_force(graph: MemGraph) -> list[AgentMemory]:
    """Return the memories that can be recalled: none that was archived, suppressed or superseded."""
    replaced = {link.target_id for link in graph.store.every_link() if link.relation == "SUPERSEDES"}
    return [memory for memory in graph.store.get_all_memories() if memory.id not in replaced]


def budgeted(ranked: Sequence[AgentMemory]) -> list[AgentMemory]:
    """Return of ranked memories those that `retrieve` gives by default: 5, 3 and 2 of the types, the best of them within 800 tokens."""
    left, kept = dict(_MOST), []
    for memory in ranked:
        if left[memory.type]:
            left[memory.type] -= 1
            kept.append(memory)
    return kept[: within_tokens([count_tokens(memory.content) for memory in kept], _TOKENS)]


def _gold(memories: Sequence[AgentMemory], builds: frozenset[str]) -> set[str]:
    """Return the episodes that tell of one of these builds' failure, or of the lesson from it."""
    return {
        memory.id or ""
        for memory in memories
        if memory.type == "episodic" and memory.outcome == "negative" and builds & {*memory.evidence_build_ids}
    }


def _evidence(graph: MemGraph, memories: Sequence[AgentMemory]) -> dict[str, set[str]]:
    """Return what each generalisation was made of."""
    made = {memory.id or "": set[str]() for memory in memories if memory.source == "compression"}
    for link in graph.store.every_link():
        if link.relation == "DERIVED_FROM" and link.source_id in made:
            made[link.source_id].add(link.target_id)
    return made


@contextmanager
def _without_succession(is_left_out: bool) -> Iterator[None]:
    stages = tuple(stage for stage in pipeline.STAGES if not (is_left_out and stage.name == "succession"))
    with mock.patch.object(pipeline, "STAGES", stages):
        yield


def surveyed(graph: MemGraph, embedder: Embedder) -> Survey:
    """Count what a store holds."""
    memories = in_force(graph)
    made = _evidence(graph, memories)
    links = dict[str, int]()
    for link in graph.store.every_link():
        links[link.relation] = links.get(link.relation, 0) + 1
    negative = [memory for memory in memories if memory.outcome == "negative"]
    episodes = {memory.id for memory in memories if memory.type == "episodic"}
    near, alike = near_duplicates(memories, embedder)
    return Survey(
        memories=len(memories),
        episodes=len(episodes),
        near=near,
        near_alike=alike,
        builds_of_evidence=sorted(len(memory.evidence_build_ids) for memory in memories if memory.id in made),
        covered_episodes=len(episodes & {one for sources in made.values() for one in sources}),
        landmarks=sum(graph.consolidation.is_landmark(memory) for memory in negative),
        negative=len(negative),
        links=links,
    )


def near_duplicates(memories: Sequence[AgentMemory], embedder: Embedder) -> tuple[int, int]:
    """Return how many memories have another one at a cosine of `NEAR` or more, and how many one of their own type."""
    if not memories:
        return 0, 0
    vectors = np.asarray(embedder.embed([memory.content for memory in memories]))
    is_near = vectors @ vectors.T >= NEAR
    np.fill_diagonal(is_near, val=False)
    types = np.array([memory.type for memory in memories])
    return int(is_near.any(axis=1).sum()), int((is_near & (types[:, None] == types)).any(axis=1).sum())
