"""What recall finds in ingested git histories, with and without what follows names. See README.md.

python tests/benchmarks/git_history.py --logs DIR [--half dev|test] [--uncompressed] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemoryRetrieval, RetrievalConfig
from memgraph.extraction import readers
from memgraph.lifecycle import ingest
from tests.benchmarks.tables import table

QUESTIONS = Path(__file__).with_name("git_questions.jsonl")
SETTINGS: dict[str, dict[str, float]] = {
    "default": {},
    "without the hop": {"mention_weight": 0.0},
    "without names in the question": {"name_weight": 0.0},
    "without both": {"mention_weight": 0.0, "name_weight": 0.0},
    "without the hop over evidence": {"evidence_weight": 0.0},
}
MEASURES = ("R@5", "R@10", "all@10", "MRR")
KINDS = ("join", "plain", "all")
_NOW = datetime(2026, 8, 1, tzinfo=UTC)
"""After the last commit of the logs: memories fade, and a run next year should find what this one finds."""
_RESULTS = 10
_RESAMPLES = 5_000
Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a project's memories, and the commits that answer it.

    Attributes
    ----------
    kind : {"join", "plain"}
        Whether it takes several pieces of evidence that share a file or a commit, or one that can be looked up.
    """

    project: str
    half: str
    kind: str
    question: str
    gold: list[str]


def questions(half: str | None) -> list[Question]:
    """Return the questions of a half; None: of both."""
    known = [Question(**json.loads(line)) for line in QUESTIONS.read_text("utf-8").splitlines()]
    return [question for question in known if half in {None, question.half}]


def filled(
    store: AgentMemoryStore, logs: Path, asked: Sequence[Question], *, compress: bool
) -> dict[str, frozenset[str]]:
    """Ingest the logs of the projects that are asked about; return each memory's commits.

    A generalisation has none: what it rests on is found by itself, or not.
    """
    for project in sorted({question.project for question in asked}):
        ingest(store, readers.SavedGitLogReader(logs / f"{project}.log.txt"), compress=compress)
    held = {
        memory.id or "": frozenset(source.rpartition("/")[2] for source in memory.source_event_ids)
        for memory in store.every_memory()
    }
    if missing := {commit for one in asked for commit in one.gold}.difference(*held.values()):
        raise SystemExit(
            f"{logs}: no memory was made of the commits {', '.join(sorted(missing))}, which answer questions"
        )
    return held


def scored(found: Sequence[frozenset[str]], gold: Sequence[str]) -> Scores:
    """Score the commits of the memories found, best first: shares of the evidence, all of it, place of the first."""
    wanted = frozenset(gold)
    places = [place for place, commits in enumerate(found, start=1) if commits & wanted]
    recall = {k: len(wanted.intersection(frozenset[str]().union(*found[:k]))) / len(wanted) for k in (5, 10)}
    return {
        "R@5": recall[5],
        "R@10": recall[10],
        "all@10": float(recall[10] == 1.0),
        "MRR": 1.0 / places[0] if places else 0.0,
    }


def measured(
    store: AgentMemoryStore,
    held: Mapping[str, frozenset[str]],
    asked: Sequence[Question],
    settings: Mapping[str, float],
) -> list[Scores]:
    """Put the questions, each to its project's memories, through the public interface; return the scores of each."""
    retrieval = MemoryRetrieval(store, config=RetrievalConfig(**settings))
    return [
        scored(
            [
                held[found.memory.id or ""]
                for found in retrieval.search_memories(one.question, limit=_RESULTS, project_id=one.project)
            ],
            one.gold,
        )
        for one in asked
    ]


def mean(per: Sequence[Scores], asked: Sequence[Question], kind: str) -> Scores:
    """Return the mean scores of a kind of questions."""
    chosen = [scores for scores, one in zip(per, asked, strict=True) if kind in {"all", one.kind}]
    return {measure: float(np.mean([scores[measure] for scores in chosen])) for measure in MEASURES if chosen}


def difference(one: Sequence[Scores], other: Sequence[Scores], measure: str) -> tuple[float, float, float]:
    """Return by how much `other` is better, and the 95 % interval of the bootstrap over the questions (seed 0)."""
    distances = np.array([after[measure] - before[measure] for before, after in zip(one, other, strict=True)])
    means = np.random.default_rng(0).choice(distances, (_RESAMPLES, len(distances))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return float(distances.mean()), float(low), float(high)


def lines(results: Mapping[str, Sequence[Scores]], asked: Sequence[Question]) -> Iterator[str]:
    """Yield the table, and what the default gains over each other setting."""
    rows = []
    kinds = [kind for kind in KINDS if any(kind in {"all", one.kind} for one in asked)]
    for kind in kinds:
        count = sum(kind in {"all", one.kind} for one in asked)
        for name, per in results.items():
            means = mean(per, asked, kind)
            rows.append([f"{kind} ({count}), {name}", *(f"{100 * means[measure]:.1f}" for measure in means)])
    yield from table(["%", *MEASURES], rows)
    yield "\nWhat the default gains, in points, with 95 % of the bootstrap:"
    for name in list(results)[1:]:
        for measure in MEASURES[:2]:
            told = [f"{kind} {_told(results, asked, name, kind, measure)}" for kind in kinds]
            yield f"  over {name}, {measure}: {', '.join(told)}"


def _told(
    results: Mapping[str, Sequence[Scores]], asked: Sequence[Question], name: str, kind: str, measure: str
) -> str:
    places = [place for place, one in enumerate(asked) if kind in {"all", one.kind}]
    before, after = ([results[setting][place] for place in places] for setting in (name, "default"))
    gained, low, high = (100 * value for value in difference(before, after, measure))
    return f"{gained:+.1f} [{low:.1f}, {high:.1f}]"


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--logs", type=Path, required=True, help="folder of the logs that the questions name")
    parser.add_argument("--half", choices=["dev", "test"], help="only this half of the questions")
    parser.add_argument("--uncompressed", action="store_true", help="without the generalisations that intake makes")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    asked = questions(given.half)
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as folder:
        config = AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        with AgentMemoryStore(config, clock=lambda: _NOW) as store:
            held = filled(store, given.logs, asked, compress=not given.uncompressed)
            results = {name: measured(store, held, asked, settings) for name, settings in SETTINGS.items()}
    if given.json:
        print(json.dumps(_document(results, asked, given.half, len(held)), indent=1))
        return 0
    print(f"{given.half or 'both halves'}: {len(asked)} questions to {len(held):,} memories\n")
    for line in lines(results, asked):
        print(line)
    return 0


def _document(
    results: Mapping[str, Sequence[Scores]], asked: Sequence[Question], half: str | None, memories: int
) -> dict[str, Any]:
    return {
        "half": half or "both",
        "memories": memories,
        "settings": SETTINGS,
        "kept": {name: {kind: mean(per, asked, kind) for kind in KINDS} for name, per in results.items()},
        "each": {name: list(per) for name, per in results.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
