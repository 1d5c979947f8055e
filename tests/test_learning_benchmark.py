"""The benchmark of learning: what is asked before which trial, what counts as a hit, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memgraph import MemGraph, parse_memory
from memgraph.testing import FakeEmbedder
from tests.benchmarks import learning, learning_scale
from tests.benchmarks.embeddings import CachedEmbedder
from tests.benchmarks.learning_logs import LOGS, Attempt, Log, Trial, hotpotqa, tau_bench, without_rarest
from tests.benchmarks.learning_replay import SHOWN, WHOLE, Answer, budgeted, live_through, near_duplicates

REFLECTION = "- I guessed where was Bea born. I should look up the parish register instead of guessing."


def question(text: str, section: str, reflections: str = "") -> str:
    told = f"Reflections:\n{reflections}\n" if reflections else ""
    return f"------------- BEGIN {section} AGENTS -------------\n\nQuestion: {text}\n{told}Thought 1: Hm.\nAction 1: Finish[Oslo]\n"


LAMP, BEA, MILL = "Who made the lamp?", "Where was Bea born?", "When did the mill close?"
HOTPOTQA = "\n".join(
    [
        "BEGIN TRIAL 1",
        *(question(LAMP, "CORRECT"), question(BEA, "INCORRECT"), question(MILL, "INCORRECT")),
        "BEGIN TRIAL 2",
        *(question(LAMP, "CORRECT"), question(BEA, "INCORRECT", REFLECTION)),
        question(MILL, "CORRECT", "- I searched too widely. I should search for mills that close."),
        "BEGIN TRIAL 3",
        question(LAMP, "CORRECT"),
    ]
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    path = tmp_path / "hotpotqa.txt"
    path.write_text(HOTPOTQA, "utf-8")
    return hotpotqa(path)


def test_a_question_loses_its_rarest_word() -> None:
    asked = ["Who made the blue lamp?", "Who made the red lampshade?", "Who, the maker?", "?"]
    assert without_rarest(asked) == ["Who made the lamp?", "Who made the red ?", "Who, the ?", "?"]


def test_what_failed_is_asked_about_until_it_is_solved(log: Log) -> None:
    asked = [
        {(question.attempt.task, question.attempt.is_solved, len(question.gold)) for question in questions}
        for questions in log.questions()
    ]
    # the log ends before question 1 is tried for the third time: it is asked about all the same
    assert asked == [set(), {("question-1", False, 1), ("question-2", True, 1)}, {("question-1", False, 2)}]
    assert log.questions()[2][0].attempt.build_id is None
    assert log.questions()[2][0].attempt.query == "was Bea born?"


def test_the_question_is_stored_nowhere(log: Log) -> None:
    told = json.dumps([record.build.model_dump() for trial in log.trials for record in trial.records if record.build])
    assert "parish register" in told
    for text in (LAMP, BEA, MILL):
        assert text.rstrip("?").casefold() not in told.casefold()


def test_what_is_solved_can_be_tried_again() -> None:
    attempts = [[Attempt("a", "q0", "a0"), Attempt("b", "q", "b0", True)], [Attempt("a", "q1", "a1", True)]]
    attempts.append([Attempt("a", "q2", "a2"), Attempt("b", "q", "b2")])
    trials = [Trial(day, [], tried) for day, tried in enumerate(attempts)]
    asked = Log("x", "x", trials, tries_solved=True).questions()
    assert [[(one.attempt.query, one.gold) for one in some] for some in asked] == [
        [],
        [("q1", frozenset({"a0"}))],
        [("q2", frozenset({"a0"}))],
    ]


def test_tau_bench_asks_with_the_opening_message_of_the_trial(tmp_path: Path) -> None:
    said = [[{"role": "user", "content": text}] for text in ("Return the lamp.", "The lamp goes back.")]
    rows = [{"task_id": 4, "trial": n, "reward": 0.0, "traj": messages} for n, messages in enumerate(said)]
    (tmp_path / "shop.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (asked,) = tau_bench(tmp_path / "shop.jsonl").questions()[1]
    assert asked.attempt.query == "The lamp goes back."
    assert [gold.partition("@")[0] for gold in asked.gold] == ["tau-task-4-trial-0"]


def test_a_log_is_lived_through(log: Log, tmp_path: Path) -> None:
    life = live_through(log, tmp_path, FakeEmbedder())
    assert [(one.day, one.task, one.is_solved) for one in life.answers] == [
        (2, "question-1", False),
        (2, "question-2", True),
        (3, "question-1", None),
    ]
    bea, mill, again = life.answers
    assert (bea.stored, bea.hit[WHOLE], bea.bm25, bea.recalled) == (True, True, True, True)
    assert mill.hit[WHOLE]
    assert again.hit == bea.hit
    assert not again.coverable
    assert life.survey is not None
    assert (life.builds, life.survey.episodes, life.survey.builds_of_evidence) == (7, 4, [])
    assert life.merged == 0  # the lesson that failed again has its own label
    assert life.solved == [1, 2, 1]


def test_the_budget_is_that_of_a_recall(tmp_path: Path) -> None:
    embedder = FakeEmbedder()
    with MemGraph.open(tmp_path / "store", keys_home=tmp_path / "keys", embedder=embedder) as graph:
        kinds = ["episodic"] * 7 + ["semantic"] * 5 + ["procedural"] * 3
        graph.store.insert_memories(
            [
                {"type": kind, "content": f"The parser of part {n} fails. {'Look at it again. ' * (6 * n)}"[:760]}
                for n, kind in enumerate(kinds)
            ]
        )
        found = graph.search_memories("parser fails", limit=50)
        expected = graph.recall("parser fails").memories
    assert {memory.id for memory in budgeted([one.memory for one in found])} == {memory.id for memory in expected}
    assert len(expected) < 10


def test_near_duplicates_are_counted_with_and_without_regard_to_the_type() -> None:
    vectors = {
        "a": [1.0, 0.0, 0.0],
        "b": [1.0, 0.01, 0.0],
        "c": [0.0, 1.0, 0.0],
        "d": [0.0, 1.0, 0.1],
        "e": [0.0, 0.0, 1.0],
    }
    embedder = FakeEmbedder(3, vectors=vectors)
    kinds = {"d": "semantic"}
    memories = [parse_memory({"type": kinds.get(text, "episodic"), "content": text}) for text in vectors]
    assert near_duplicates(memories, embedder) == (4, 2)
    assert near_duplicates([], embedder) == (0, 0)


def test_an_interval_draws_tasks_and_not_questions() -> None:
    answers = [Answer("x", f"task-{number // 10}", number % 10) for number in range(40)]
    better, worse = [answer.task == "task-0" for answer in answers], [False] * 40
    points, low, high = learning.difference(answers, better, worse)
    assert (points, low) == (25.0, 0.0)  # three times in ten no drawn task is the one that gained
    assert high >= 50.0
    assert learning.difference(answers, better, better) == (0.0, 0.0, 0.0)


def test_the_benchmark_prints_tables_or_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learning, "CachedEmbedder", lambda folder: CachedEmbedder(FakeEmbedder(), folder=folder))
    place = tmp_path / LOGS["hotpotqa"][1]
    place.parent.mkdir(parents=True)
    place.write_text(HOTPOTQA, "utf-8")
    given = ["--logs", str(tmp_path), "--only", "hotpotqa", "--cache", str(tmp_path / "cache"), "--phases", "compress"]
    assert learning.main([*given, "--json"]) == 0
    out, err = capsys.readouterr()
    document: dict[str, Any] = json.loads(out)
    assert document["logs"][0]["answers"][0]["hit"][WHOLE]
    assert f"| lesson hit@{SHOWN} |" in err
    assert "SUPPORTS, DERIVED_FROM" in err
    with pytest.raises(SystemExit):
        learning.main(["--logs", str(tmp_path), "--only", "nothing"])


def test_compression_is_measured_whole_again_and_with_more(tmp_path: Path) -> None:
    (found,) = learning_scale.measured(120, str(tmp_path))
    assert found["first"]["created"] > 0
    assert found["again_changed_nothing"]
    assert found["again"]["created"] == found["again"]["updated"] == 0
    made, same = learning_scale.Experience().episodes(5), learning_scale.Experience().episodes(5)
    assert [one["tags"] for one in made] == [one["tags"] for one in same]
    assert all(np.array_equal(one["embedding"], other["embedding"]) for one, other in zip(made, same, strict=True))
