"""Trials: Reflexion's three formats, tau-bench, SWE-agent's trajectories."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import SourceError
from memgraph.extraction.readers import (
    AlfworldReader,
    HotpotqaReader,
    MbppReader,
    Reader,
    TauBenchReader,
    TrajectoryReader,
    reflexion_reader,
)
from memgraph.extraction.readers.source import undated
from memgraph.extraction.readers.trials import went_wrong
from memgraph.model.build import BuildEventLog
from tests.growth import assert_grows_linearly

AGAIN = "You have attempted to answer following question before and failed. The following reflection(s) give a plan."
HOTPOTQA = f"""
####
BEGIN TRIAL 1
Trial summary: Correct: 1, Incorrect: 1, Halted: 1
####
------------- BEGIN CORRECT AGENTS -------------

Question: Who made the blue lamp?
Thought 1: I look it up.
Action 1: Finish[Ada]
Observation 1: Answer is CORRECT
Correct answer: Ada

------------- BEGIN INCORRECT AGENTS -----------

Question: Where was Bea born?
Thought 1: Near the sea.
Action 1: Finish[Oslo]
Observation 1: Answer is INCORRECT
Correct answer: Bergen

------------- BEGIN HALTED AGENTS --------------

Question: When did the mill close?
Thought 1: Search.
Action 1: Search[mill]
Observation 1: Nothing.

####
BEGIN TRIAL 2
####
------------- BEGIN CORRECT AGENTS -------------

Question: Who made the blue lamp?
Thought 1: I look it up.
Action 1: Finish[Ada]
Observation 1: Answer is CORRECT
Correct answer: Ada

Question: Where was Bea born?{AGAIN}
Reflections:
- I guessed. I should look up the parish register.
Thought 1: The register.
Action 1: Finish[Bergen]
Observation 1: Answer is CORRECT
Correct answer: Bergen

------------- BEGIN INCORRECT AGENTS -----------

Question: When did the mill close?{AGAIN}
Reflections:
- I searched too widely.
Thought 1: It was 1900.
Action 1: Finish[1900]
Observation 1: Answer is INCORRECT
Correct answer: 1910
"""


def builds(reader: Reader) -> list[BuildEventLog]:
    return [record.build for record in reader.records(None) if record.build]


def named(build: BuildEventLog) -> str:
    """Return a build's id without what tells its run, which must be there."""
    name, run = build.build_id.rsplit("@", 1)
    assert re.fullmatch(r"[0-9a-f]{8}", run)
    return name


def written(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return path


def test_an_undated_trial_n_is_day_n() -> None:
    assert [undated(n) for n in (0, 1, 31)] == [f"2000-0{m}-0{d}T00:00:00.000Z" for m, d in ((1, 1), (1, 2), (2, 1))]
    assert undated(-5) == undated(0)
    assert undated(10**30) > undated(10**6)


def test_alfworld_a_failures_lesson_is_its_own_reflection(tmp_path: Path) -> None:
    environments = [
        {"name": "env_0", "memory": ["open the drawer first", "look under the bed"], "is_success": False},
        {"name": "env_1", "memory": ["wash it first"], "is_success": True},
        {"name": "env_2", "memory": [], "is_success": True},
        {"name": "env_3"},
    ]
    path = written(tmp_path / "alfworld_env_results_trial_1.json", environments)
    reader = reflexion_reader(path)
    assert isinstance(reader, AlfworldReader)
    skipped = [record.skipped for record in reader.records(None) if record.skipped]
    assert skipped == ["environment 3: not an object with is_success"]
    found = builds(reader)
    assert [named(build) for build in found] == [f"alfworld-env_{number}-trial-1" for number in range(3)]
    assert {(build.project_id, build.source, build.completed_at) for build in found} == {
        ("alfworld", "trial", undated(1))
    }
    tasks = [task for build in found for task in build.tasks]
    assert [(task.task_id, task.outcome, task.lesson, task.reasoning) for task in tasks] == [
        ("env_0", "failure", "look under the bed", "open the drawer first"),
        ("env_1", "success", "", "wash it first"),
        ("env_2", "success", "", ""),
    ]


@pytest.mark.parametrize("name", ["my_trial_run_trial_3.json", "trial_3_part.json"])
def test_alfworld_what_was_solved_before_acted_on_nothing_new(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, [{"name": "env_1", "memory": ["wash it"], "is_success": True}])
    (build,) = builds(AlfworldReader(path))
    assert (build.tasks[0].reasoning, build.tasks[0].attempt) == ("", 3)


def test_mbpp_a_problem_is_a_build_with_a_task_per_attempt(tmp_path: Path) -> None:
    problem = {
        "name": "mbpp_7_area",
        "prompt": 'def area(x):\n    """\n\tWrite a function for the area.\n\t"""\n',
        "is_solved": True,
        "reflections": ["I forgot to square."],
        "implementations": ["return x", "return x * x"],
        "test_feedback": ["assert area(2) == 4 # got 2"],
    }
    unsolved = {"name": "mbpp_8_sum", "prompt": "", "is_solved": False, "reflections": [], "solution": "pass"}
    path = tmp_path / "mbpp.jsonl"
    path.write_text(f"{json.dumps(problem)}\n{json.dumps(unsolved)}\n{{}}\n", "utf-8")
    reader = reflexion_reader(path)
    assert isinstance(reader, MbppReader)
    assert reader.count() == 3
    first, second = builds(reader)
    assert (named(first), first.project_id, first.build_outcome) == ("mbpp_7_area", "mbpp", "success")
    failed, solved = first.tasks
    assert failed.task_id == "mbpp_7_area:attempt-0"
    assert failed.description == "mbpp_7_area: Write a function for the area."
    assert (failed.outcome, failed.lesson) == ("failure", "I forgot to square.")
    assert failed.output == "assert area(2) == 4 # got 2"
    assert (solved.outcome, solved.lesson, solved.reasoning) == ("success", "", "I forgot to square.")
    assert solved.output == "return x * x"
    assert (failed.occurred_at, solved.occurred_at) == (undated(0), undated(1))
    assert (second.build_outcome, len(second.tasks), second.tasks[0].output) == ("failure", 1, "pass")


def test_hotpotqa_a_reflection_is_the_lesson_of_the_failure_before_it(tmp_path: Path) -> None:
    reader = reflexion_reader(written(tmp_path / "trials.txt", HOTPOTQA))
    assert isinstance(reader, HotpotqaReader)
    found = builds(reader)
    assert (named(found[0]), found[0].completed_at) == ("hotpotqa-question-0-trial-1", undated(1))
    first = [build.tasks[0] for build in found if named(build).endswith("trial-1")]
    second = [build.tasks[0] for build in found if named(build).endswith("trial-2")]
    assert [(task.task_id, task.outcome, task.lesson) for task in first] == [
        ("question-0", "success", ""),
        ("question-1", "failure", "I guessed. I should look up the parish register."),
        ("question-2", "failure", "I searched too widely."),
    ]
    assert first[1].output.startswith(
        "Answered: Oslo"
    )  # what it answered before what it thought: a result is cut at its end
    assert "Correct answer: Bergen" in first[1].output
    assert "Gave no answer in 1 steps" in first[2].output
    solved = second[1]
    assert (solved.task_id, solved.description, solved.outcome) == ("question-1", "Where was Bea born?", "success")
    assert solved.reasoning == "I guessed. I should look up the parish register."
    with pytest.raises(SourceError, match="BEGIN TRIAL"):
        list(HotpotqaReader(written(tmp_path / "other.txt", "no trial here")).records(None))


def skipped(reader: Reader) -> tuple[int, list[str]]:
    """Return how many builds there are, and what could not be read."""
    records = list(reader.records(None))
    return sum(record.build is not None for record in records), [one.skipped for one in records if one.skipped]


def test_unknown_forms_are_reported_beside_the_readable_part(tmp_path: Path) -> None:
    unplaced = HOTPOTQA.replace("------------- BEGIN CORRECT AGENTS -------------\n", "", 1)
    before = skipped(HotpotqaReader(written(tmp_path / "whole.txt", HOTPOTQA)))
    assert skipped(HotpotqaReader(written(tmp_path / "unplaced.txt", unplaced))) == (
        before[0] - 1,
        ["trial 1: a question outside of the sections that say how it ended"],
    )
    problem = {"name": "p", "is_solved": True, "reflections": "none", "implementations": None}
    told = (1, ["problem 1: reflections: not a list"])
    assert skipped(MbppReader(written(tmp_path / "p.json", json.dumps([problem])))) == told
    environment = {"name": "env_0", "memory": "none", "is_success": True}
    told = (1, ["environment 0: memory: not a list"])
    assert skipped(AlfworldReader(written(tmp_path / "e_trial_0.json", json.dumps([environment])))) == told
    calls = {"role": "assistant", "content": "x", "tool_calls": ["ls", {"function": "ls"}]}
    trial = {"task_id": 1, "reward": 1, "traj": ["hello", calls]}
    told = (1, ["trial 1: 1 message and 2 tool calls of another form"])
    assert skipped(TauBenchReader(written(tmp_path / "t.json", json.dumps([trial])))) == told
    steps = {"trajectory": ["ls", {"tool": "ls"}, {"action": "ls", "observation": "a"}]}
    told = (1, ["step 0: not an object", "step 1: has no action, observation or thought"])
    assert skipped(TrajectoryReader(written(tmp_path / "r.traj", json.dumps(steps)))) == told


@pytest.mark.parametrize("as_lines", [True, False])
def test_tau_bench_a_trial_is_a_build_with_its_calls(tmp_path: Path, as_lines: bool) -> None:
    def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}

    trajectory = [
        {"role": "user", "content": "I want to return the lamp."},
        call("c1", "find_order", '{"lamp": "blue"}'),
        {"role": "tool", "tool_call_id": "c1", "name": "find_order", "content": "order 7"},
        call("c1", "return_order", "not json"),
        {"role": "tool", "tool_call_id": "c1", "name": "return_order", "content": "Error: not delivered"},
        {"role": "assistant", "content": "It was not delivered yet."},
        {"role": "user", "content": "###STOP###"},
    ]
    trials = [{"task_id": 4, "trial": n, "reward": float(n), "traj": trajectory} for n in (0, 1)]
    path = tmp_path / ("shop.jsonl" if as_lines else "shop.json")
    path.write_text("\n".join(map(json.dumps, trials)) if as_lines else json.dumps(trials), "utf-8")
    failed, solved = builds(TauBenchReader(path))
    assert [(named(build), build.build_outcome) for build in (failed, solved)] == [
        ("tau-task-4-trial-0", "failure"),
        ("tau-task-4-trial-1", "success"),
    ]
    assert (failed.project_id, solved.completed_at) == ("shop", undated(1))
    trial, found, returned = failed.tasks
    assert (trial.task_id, trial.description, trial.outcome) == ("task-4", "I want to return the lamp.", "failure")
    assert (found.task_id, found.description, found.outcome) == ("call-0", 'find_order(lamp="blue")', "success")
    assert (returned.output, returned.outcome) == ("Error: not delivered", "failure")
    assert found.output == "order 7"
    assert [said.action for said in failed.user_interventions] == ["I want to return the lamp."]


def step(action: str, observation: str, **more: Any) -> dict[str, Any]:
    state = '{"open_file": "/repo/src/a.py", "working_dir": "/repo"}'
    return {"action": action, "observation": observation, "thought": "so", "state": state, **more}


def test_a_trajectory_is_a_build_and_each_step_a_task(tmp_path: Path) -> None:
    steps = [
        step("python check.py", "Traceback (most recent call last):\nValueError: no"),
        step("edit 3:4\nx = 1\nend_of_edit", "[File: /repo/src/a.py (9 lines total)]"),
        step("open log.txt", "Traceback (most recent call last):"),
        step("submit", "diff"),
    ]
    info = {"exit_status": "submitted", "submission": "diff"}
    path = written(tmp_path / "ada__lamp-12.traj", {"trajectory": steps, "info": info})
    (build,) = builds(TrajectoryReader(path))
    assert (named(build), build.project_id, build.build_outcome) == ("ada__lamp-12", "lamp", "success")
    assert build.source == "trajectory"
    assert [(task.task_id, task.outcome) for task in build.tasks] == [
        ("step-0", "failure"),
        ("step-1", "success"),
        ("step-2", "success"),
        ("step-3", "success"),
    ]
    assert (build.tasks[0].command, build.tasks[0].reasoning) == ("python check.py", "so")
    assert build.tasks[1].files_changed == ["src/a.py"]


@pytest.mark.parametrize(
    ("info", "outcome"),
    [
        ({"exit_status": "submitted", "submission": ""}, "failure"),
        ({"exit_status": "exit_cost"}, "failure"),
        ({"exit_status": "submitted (exit_cost)", "submission": "x"}, "partial"),
        (None, "partial"),
    ],
)
def test_how_a_trajectory_ended(tmp_path: Path, info: Any, outcome: str) -> None:
    document = {"trajectory": [step("ls", "a")], **({"info": info} if info is not None else {})}
    (build,) = builds(TrajectoryReader(written(tmp_path / "run.traj", document)))
    assert build.build_outcome == outcome


@pytest.mark.parametrize(
    ("action", "observation", "failed"),
    [
        ("frob", "/bin/bash: frob: command not found", True),
        ("edit 1:1\nx\nend_of_edit", "Your proposed edit has introduced new syntax error(s).", True),
        ("pytest", "=== 1 failed, 2 passed in 0.1s ===", True),
        ("pytest", "=== 3 passed in 0.1s ===", False),
        ("vitest", "\n\n      Tests  1 failed | 2 passed (3)", True),
        ("cat a.log", "ok\nValueError: old", False),
        ("cat a.log", "cat: a.log: No such file or directory", True),
        ("make", "a.c:3:1: error: expected ;", True),
        ("", "", True),
    ],
)
def test_an_observation_says_whether_an_action_failed(action: str, observation: str, failed: bool) -> None:
    assert went_wrong(action, observation) is failed


def test_an_observation_of_blank_lines_costs_no_time() -> None:
    assert_grows_linearly(lambda size: went_wrong("vitest", "\n" * size), 20_000)


def test_a_file_without_trials_is_rejected(tmp_path: Path) -> None:
    for reader in (
        TrajectoryReader(written(tmp_path / "a.traj", {"steps": []})),
        AlfworldReader(written(tmp_path / "a.json", {"name": "x"})),
    ):
        with pytest.raises(SourceError):
            list(reader.records(None))


ENVIRONMENT = {"name": "env_0", "memory": ["look under the bed"], "is_success": False}
PROBLEM = {"name": "mbpp_1", "is_solved": True, "reflections": ["I forgot to square."]}
TRIAL = {"task_id": 4, "trial": 0, "reward": 0.0, "traj": [{"role": "user", "content": "Return the lamp."}]}
RUNS: dict[str, tuple[str, str, str]] = {
    # a file's name, what it holds, and what another run wrote there
    "trajectory": (
        "ada__lamp-12.traj",
        json.dumps({"trajectory": [step("ls", "a")]}),
        json.dumps({"trajectory": [step("ls", "b")]}),
    ),
    "alfworld": (
        "env_results_trial_0.json",
        json.dumps([ENVIRONMENT]),
        json.dumps([{**ENVIRONMENT, "memory": ["open the drawer"]}]),
    ),
    "mbpp": ("mbpp.jsonl", json.dumps(PROBLEM) + "\n", json.dumps({**PROBLEM, "reflections": ["I rounded."]}) + "\n"),
    "hotpotqa": (
        "trials.txt",
        HOTPOTQA,
        HOTPOTQA.replace("lamp", "vase").replace("Bea", "Cy").replace("mill", "inn"),
    ),
    "hotpotqa, other answers": ("trials.txt", HOTPOTQA, HOTPOTQA.replace("Thought 1:", "Thought 1: Well.")),
    "tau-bench": ("shop.jsonl", json.dumps(TRIAL) + "\n", json.dumps({**TRIAL, "reward": 1.0}) + "\n"),
}


def reader_of(path: Path) -> Reader:
    if path.suffix == ".traj":
        return TrajectoryReader(path)
    return TauBenchReader(path) if path.name == "shop.jsonl" else reflexion_reader(path)


@pytest.mark.parametrize("kind", RUNS)
def test_builds_of_another_run_have_other_ids_and_of_the_same_file_elsewhere_the_same(
    tmp_path: Path, kind: str
) -> None:
    name, text, other = RUNS[kind]
    ids = []
    for folder, content in (("a", text), ("b", other), ("copy", text)):
        (tmp_path / folder).mkdir()
        ids.append([build.build_id for build in builds(reader_of(written(tmp_path / folder / name, content)))])
    assert len(set(ids[0])) == len(ids[0]) > 0
    assert not {*ids[0]} & {*ids[1]}
    assert ids[2] == ids[0]


def test_a_file_that_grows_keeps_the_ids_of_what_it_held(tmp_path: Path) -> None:
    start = HOTPOTQA.index("\n####\nBEGIN TRIAL 2")
    grown = {
        "mbpp.jsonl": (json.dumps(PROBLEM) + "\n", json.dumps({**PROBLEM, "name": "mbpp_2"}) + "\n"),
        "shop.jsonl": (json.dumps(TRIAL) + "\n", json.dumps({**TRIAL, "trial": 1}) + "\n"),
        "trials.txt": (HOTPOTQA[:start], HOTPOTQA[start:]),
    }
    for name, (first, rest) in grown.items():
        before = [build.build_id for build in builds(reader_of(written(tmp_path / name, first)))]
        after = [build.build_id for build in builds(reader_of(written(tmp_path / name, first + rest)))]
        assert before
        assert after[: len(before)] == before
        assert len(after) > len(before)


def test_an_undated_trajectory_is_as_old_as_its_file(tmp_path: Path) -> None:
    path = written(tmp_path / "run.traj", {"trajectory": [step("ls", "a")]})
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (build,) = builds(TrajectoryReader(path))
    assert (build.started_at, build.completed_at) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:20.000Z")


def test_tau_bench_a_failure_says_how_it_differs_from_the_right_actions(tmp_path: Path) -> None:
    def trial(number: int, actions: list[dict[str, Any]], *made: str) -> dict[str, Any]:
        calls = [
            {"id": str(place), "function": {"name": name, "arguments": '{"id": "B7"}'}}
            for place, name in enumerate(made)
        ]
        traj = [{"role": "user", "content": "Cancel B7"}, {"role": "assistant", "content": "", "tool_calls": calls}]
        return {"task_id": number, "trial": 0, "reward": 0.0, "traj": traj, "info": {"task": {"actions": actions}}}

    right = [{"name": "get_booking", "kwargs": {"id": "B7"}}, {"name": "cancel_booking", "kwargs": {"id": "B7"}}]
    trials = [trial(1, right, "get_booking"), trial(2, [], "cancel_booking"), trial(3, right, "cancel_booking")]
    path = written(tmp_path / "tau.jsonl", "".join(json.dumps(one) + "\n" for one in trials))
    assert [build.tasks[0].lesson for build in builds(TauBenchReader(path))] == [
        'The right calls were never made: cancel_booking(id="B7").',
        'Nothing should have been changed. It was wrong to call cancel_booking(id="B7").',
        "",
    ]
