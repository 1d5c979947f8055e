"""Files of every reader's kind, broken at random: none ends in a traceback, and none hides that what it reports has failed."""

from __future__ import annotations

import gzip
import json
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import memgraph
from memgraph.interfaces.cli.learning.ingest import KINDS
from memgraph.testing import FakeEmbedder

SEED = 20261127
AT = {"sessionId": "session-@", "timestamp": "2026-05-04T10:00:00Z", "cwd": "/home/ada/till-@"}
CALL = {"type": "tool_use", "id": "u1", "name": "Bash", "input": {"command": "pytest -q"}}
RESULT = {"type": "tool_result", "tool_use_id": "u1", "content": "E  KeyError: 'sum'", "is_error": True}
TRANSCRIPT = [
    {"type": "user", "message": {"role": "user", "content": "Fix the café's sum."}, **AT},
    {"type": "assistant", "message": {"content": [{**CALL, "id": "u0", "input": {"command": "ls"}}]}, **AT},
    {"type": "user", "message": {"content": [{**RESULT, "tool_use_id": "u0", "content": "a.py", "is_error": False}]}, **AT},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "It rounds twice."}, CALL]}, **AT},
    {"type": "user", "message": {"content": [RESULT]}, **AT},
]  # fmt: skip
CODEX = [
    {"type": "session_meta", "payload": {"id": "codex-@", "cwd": "/home/ada/till-@"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "call_id": "c0", "arguments": '{"command": "ls"}'}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c0", "output": "Exit code: 0\na.py"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"command": "pytest"}'}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": "Exit code: 2\n1 failed in 0.1s"}},
]  # fmt: skip
TASK = {
    "taskId": "t1",
    "agentName": "ada",
    "description": "Round the café's sum",
    "outcome": "failure",
    "output": "Error: 11",
}
BUILD = {
    "buildId": "build-@", "projectId": "till", "buildOutcome": "failure", "startedAt": "2026-05-04T10:00:00Z",
    "completedAt": "2026-05-04T10:05:00Z", "tasks": [TASK],
}  # fmt: skip
TRAJECTORY = {
    "trajectory": [
        {"action": "ls", "observation": "a.py", "thought": "Look at @."},
        {"action": "python a.py", "observation": "Traceback (most recent call last):\nKeyError: 'sum'", "thought": "Run it."},
    ],
    "info": {"exit_status": "exit_cost"},
}  # fmt: skip
DIALOGUE = {
    "task_id": "9@", "trial": 0, "reward": 0.5,
    "traj": [
        {"role": "user", "content": "Book the café."},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "book", "arguments": '{"seat": "4A"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": "Error: taken"},
    ],
}  # fmt: skip
PROBLEM = {
    "name": "mbpp_@",
    "prompt": '"""Add."""',
    "is_solved": False,
    "reflections": ["I forgot the café."],
    "solution": "x",
}
QUESTIONS = """BEGIN TRIAL 1
------------- BEGIN CORRECT AGENTS -------------

------------- BEGIN INCORRECT AGENTS -----------

Question: Which café is @?
Thought 1: Look.
Action 1: Finish[the second]
Observation 1: Answer is INCORRECT
Correct answer: the first

"""
JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="till-@" tests="3" failures="1" timestamp="2026-05-04T10:00:00">
<testcase classname="till.Sums" name="adds"/>
<testcase classname="till.Sums" name="rounds">
<failure message="expected 12">E  AssertionError: café
at sums.py:9</failure></testcase>
<testcase classname="till.Sums" name="splits"/>
</testsuite></testsuites>
"""
HOSTED = "".join(
    f"2026-05-04T10:00:{second:02}.1234567Z {line}\n"
    for second, line in enumerate(
        [
            *(
                "##[group]Run pip install @",
                "pip install @",
                "shell: bash",
                "##[endgroup]",
                "Successfully installed café",
            ),
            *("##[group]Run pytest -q", "pytest -q", "shell: bash", "##[endgroup]", "..F"),
            *("E   assert 11 == 12", "FAILED tests/test_till.py::test_rounds - assert 11 == 12"),
            *("===== 1 failed, 2 passed in 0.31s =====", "##[error]Process completed with exit code 1."),
            *("Post job cleanup.", "Cleaning up orphan processes"),
        ]
    )
)
JENKINS = (
    "Started by user ada\n10:00:01  + pytest tests # @\n10:00:02  ===== 2 passed in 0.31s =====\n10:00:03  + pytest café\n"
    "10:00:04  FAILED café/test_till.py::test_rounds - assert 11 == 12\n10:00:05  1 failed in 0.12s\n"
    "10:00:06  script returned exit code 1\n10:00:07  Finished: FAILURE\n"
)
HISTORY = "".join(
    f"commit {number}{'a' * 39}\nAuthor: Ada <ada@example.org>\nDate:   Mon May 4 10:0{number}:00 2026 +0200\n\n"
    f"    Fix the café's sum of @, which rounded twice\n\nM\ttill/sums.py\n\n"
    for number in (2, 1)
)


def _lines(entries: list[Any]) -> str:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


FILES: dict[str, tuple[str, str]] = {
    "report.xml": ("junit", JUNIT),
    "hosted.log": ("ci-log", HOSTED),
    "jenkins.txt": ("ci-log", JENKINS),
    "builds.json": ("builds", json.dumps([BUILD, {**BUILD, "buildId": "other-@"}], indent=1, ensure_ascii=False)),
    "builds.jsonl": ("builds", _lines([BUILD, {**BUILD, "buildId": "second-@"}])),
    "session.jsonl": ("transcripts", _lines(TRANSCRIPT)),
    "rollout.jsonl": ("codex", _lines(CODEX)),
    "run.traj": ("trajectories", json.dumps(TRAJECTORY, ensure_ascii=False)),
    "alfworld.json": ("reflexion", json.dumps([{"name": "env_@", "memory": ["Look at the café."], "is_success": False}])),
    "mbpp.jsonl": ("reflexion", _lines([PROBLEM])),
    "hotpotqa.txt": ("reflexion", QUESTIONS),
    "dialogues.json": ("tau-bench", json.dumps([DIALOGUE], ensure_ascii=False)),
    "history.txt": ("git", HISTORY),
}  # fmt: skip
"""Names, kinds and texts of files. All but the last report failures alone, or end with one."""


def _cut(rng: Random, data: bytes) -> bytes:
    start = rng.randrange(len(data)) if rng.random() < 0.2 else 0
    return data[start : rng.randrange(start, len(data)) + 1]


def _flipped(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice([1, 2, 4, 12])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _doubled(rng: Random, data: bytes) -> bytes:
    found = data.splitlines(keepends=True)
    for _ in range(rng.randrange(1, 6)):
        found.insert(rng.randrange(len(found) + 1), rng.choice(found))
    return b"".join(found)


def _encoded(rng: Random, data: bytes) -> bytes:
    codec = rng.choice(["utf-16", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "cp500", "utf-7", "gzip"])
    if codec == "gzip":
        packed = gzip.compress(data, mtime=0)
        return packed[: rng.randrange(20, len(packed) + 1)]
    return data.decode("utf-8", "replace").encode(codec, "replace")


def _nested(rng: Random, data: bytes) -> bytes:
    opening, closing = rng.choice(
        [(b"[", b"]"), (b'{"a":', b"}"), (b"<a>", b"</a>"), (b"<testsuite>", b""), (b"\0", b"\x1b")]
    )
    depth = rng.choice([50, 2_000, 100_000])
    at = rng.choice([0, rng.randrange(len(data)), len(data)])
    return data[:at] + opening * depth + closing * depth + data[at:]


DAMAGES: list[Callable[[Random, bytes], bytes]] = [_cut, _flipped, _doubled, _encoded, _nested]


def broken(number: int) -> tuple[str, str, bytes]:
    """Return the name, kind and content of a broken file, made from its number alone."""
    rng = Random(f"{SEED} {number}")
    name = list(FILES)[number % len(FILES)]
    kind, text = FILES[name]
    data = text.replace("@", f"{number}").encode()
    for way in rng.sample(DAMAGES, rng.choice([1, 1, 1, 2])):
        data = way(rng, data) or b"\n"
    return name, kind, data


def test_a_broken_file_ends_in_no_traceback_and_hides_no_failure(
    tmp_path: Path, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: Counter[str] = Counter()
    faults: list[str] = []
    places: dict[str, int] = {}
    with memgraph.MemGraph.open(tmp_path / "store", keys_home=tmp_path / "keys", embedder=FakeEmbedder(64)) as memory:
        for number in range(200 if pytestconfig.getoption("--long") else 26):
            name, kind, data = broken(number)
            path = tmp_path / f"{number}" / name
            path.parent.mkdir()
            path.write_bytes(data)
            counts["files"] += 1
            try:
                report = memory.ingest(KINDS[kind].reader(path, None), compress=False)
            except memgraph.MemGraphError:
                counts["refused"] += 1
                continue
            except Exception:  # noqa: BLE001 - which it is, is the question
                counts["tracebacks"] += 1
                faults.append(f"{number} {name}: {traceback.format_exc()[-800:]}")
                continue
            if not report.builds:
                counts["refused"] += 1
                continue
            counts["in part" if report.skipped else "whole"] += 1
            rows = memory.store.cypher("MATCH (b:Build) RETURN b.name AS name, b.outcome AS outcome")
            for row in rows:
                if row["name"] not in places and row["outcome"] == "success" and kind != "git":
                    counts["hidden failures"] += 1
                    faults.append(f"{number} {name}: {row['name']} is a success: {data[:2_000]!r}")
                places.setdefault(row["name"], number)
    told = ", ".join(
        f"{counts[name]} {name}" for name in ("files", "refused", "in part", "whole", "tracebacks", "hidden failures")
    )
    with capsys.disabled():
        print(f"\nbroken files with seed {SEED}: {told}")
    assert min(counts["refused"], counts["in part"], counts["whole"]) > 0, told
    assert not faults, "\n".join(faults)
