"""Target: the readers of transcripts, trajectories, trials, reports and CI logs, with what the rules make of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from memgraph.extraction import readers
from memgraph.extraction.readers import Reader
from tests.fuzz.harness import Target
from tests.fuzz.mutation import mutated, mutated_bytes
from tests.fuzz.sources import drained

_AT = {"sessionId": "s1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/repo"}
TRANSCRIPT = [
    {"type": "user", "message": {"role": "user", "content": "Always run the checks. Fix the cart."}, **_AT},
    {
        "type": "assistant",
        "message": {
            "content": [
                {"type": "text", "text": "The root cause is a default argument."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q"}},
                {"type": "tool_use", "id": "t2", "name": "Edit", "input": {"file_path": "/repo/shop/cart.py"}},
            ]
        },
        **_AT,
    },
    {
        "type": "user",
        "message": {
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "E  KeyError: 'total'", "is_error": True},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "done"}]},
            ]
        },
        **_AT,
    },
    {"type": "summary", "summary": "The cart", "leafUuid": "x"},
]
TRAJECTORY = {
    "trajectory": [
        {"action": "edit 1:2\nx", "observation": "E999 SyntaxError: y", "thought": "Let's edit.", "state": '{"open_file": "/r/a.py"}'},
        {"action": "python a.py", "observation": "ok", "thought": "It works because of x.", "state": {"working_dir": "/r"}},
    ],
    "history": [{"role": "user", "content": "ISSUE:\nThe cart is empty\n"}],
    "info": {"exit_status": "submitted", "submission": "diff"},
}  # fmt: skip
TRIALS = [{"name": "env_0", "memory": ["I should look first."], "is_success": False}]
PROBLEM = {
    "name": "mbpp_1",
    "prompt": '"""Add."""',
    "is_solved": True,
    "reflections": ["I forgot to add."],
    "solution": "x",
}
DIALOGUE = {
    "task_id": 1, "trial": 2, "reward": 0.0,
    "traj": [
        {"role": "user", "content": "Book it."},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "book", "arguments": '{"seat": "4A"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": "Error: taken"},
    ],
}  # fmt: skip
QUESTIONS = (
    b"BEGIN TRIAL 1\n------------- BEGIN INCORRECT AGENTS -----------\n\nQuestion: Why?\nThought 1: x\nAction 1: Finish[y]\n"
    b"Observation 1: Answer is INCORRECT\nCorrect answer: z\n\nBEGIN TRIAL 2\n------------- BEGIN CORRECT AGENTS -------------\n\n"
    b"Question: Why?\nReflections:\n- I guessed.\nThought 1: x\nAction 1: Finish[z]\n"
)
JUNIT = (
    b'<?xml version="1.0"?><testsuites><testsuite name="s" timestamp="2026-01-01T00:00:00" hostname="h">'
    b'<testcase classname="a.B" name="c" time="0.1"><failure message="boom">E  ValueError: x</failure></testcase>'
    b'<testcase classname="a.B" name="d"/><system-err>no</system-err></testsuite></testsuites>'
)
CI_LOG = (
    b"2026-01-01T00:00:00.0000000Z ##[group]Run pytest -q\n\x1b[31mFAILED tests/test_a.py::test_b - AssertionError: 1 == 2\x1b[0m\n"
    b"src/a.ts(3,5): error TS2322: Type 'x' is not assignable.\nerror[E0382]: borrow of moved value\n  --> src/main.rs:4:5\n"
    b"--- FAIL: TestX (0.00s)\n    x_test.go:9: no\nnpm ERR! code ELIFECYCLE\n##[error]Process completed with exit code 1.\n"
)


def _lines(entries: Any) -> bytes:
    return b"".join(json.dumps(entry).encode("utf-8", "surrogatepass") + b"\n" for entry in entries)


Document = tuple[str, Callable[..., Reader], Any, Callable[[Any], bytes]]
_WHOLE = lambda value: json.dumps(value).encode("utf-8", "surrogatepass")  # noqa: E731
DOCUMENTS: dict[str, Document] = {
    "transcript": ("t.jsonl", readers.TranscriptReader, TRANSCRIPT, _lines),
    "trajectory": ("t.traj", readers.TrajectoryReader, TRAJECTORY, _WHOLE),
    "alfworld": ("x_trial_1.json", readers.AlfworldReader, TRIALS, _WHOLE),
    "mbpp": ("m.jsonl", readers.MbppReader, [PROBLEM], _lines),
    "tau": ("d.jsonl", readers.TauBenchReader, [DIALOGUE], _lines),
}
TEXTS: dict[str, tuple[str, Callable[..., Reader], bytes]] = {
    "hotpotqa": ("q.txt", readers.HotpotqaReader, QUESTIONS),
    "junit": ("r.xml", readers.JunitReader, JUNIT),
    "ci": ("c.log", readers.CiLogReader, CI_LOG),
}


@contextmanager
def formats_target(folder: Path) -> Iterator[Target]:
    """A file of one of the formats: its bytes or its structure changed."""

    def make(rng: Random) -> bytes:
        name = rng.choice([*DOCUMENTS, *TEXTS])
        if name in TEXTS:
            data = mutated_bytes(rng, TEXTS[name][2], [text for _, _, text in TEXTS.values()])
        else:
            _, _, document, written = DOCUMENTS[name]
            whole = written(document)
            if rng.random() < 0.3:
                data = mutated_bytes(rng, whole, [whole, CI_LOG])
            else:
                changed = mutated(rng, document)
                data = written(changed if written is _WHOLE or isinstance(changed, list) else [changed])
        return f"{name}\n".encode() + data

    def run(case: bytes) -> bool:
        name, _, data = case.partition(b"\n")
        file, reader = (DOCUMENTS | TEXTS)[name.decode()][:2]  # type: ignore[operator]
        path = folder / file
        path.write_bytes(data)
        return drained(reader(path), None)

    yield Target(make, run)
