"""The contract of readers: they resume where they stopped, repeat nothing, and report broken files with a reason."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import MemGraphError, SourceError
from memgraph.extraction.readers import (
    AlfworldReader,
    BuildLogReader,
    CiLogReader,
    HotpotqaReader,
    JunitReader,
    MbppReader,
    Reader,
    SourceRecord,
    TauBenchReader,
    TrajectoryReader,
    TranscriptReader,
)


def _lines(*entries: dict[str, Any]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def _build(number: int) -> dict[str, Any]:
    task = {"task_id": "t", "agent_name": "a", "description": "d", "outcome": "success"}
    times = {"started_at": "2026-01-01", "completed_at": "2026-01-02"}
    return {"build_id": f"b{number}", "build_outcome": "success", "tasks": [task], **times}


def _call(session: str) -> list[dict[str, Any]]:
    common = {"sessionId": session, "timestamp": "2026-01-01T00:00:00Z"}
    use = {"type": "tool_use", "id": f"{session}-t", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": f"{session}-t", "content": "a"}
    return [
        {"type": "assistant", "message": {"content": [use]}, **common},
        {"type": "user", "message": {"content": [result]}, **common},
    ]


QUESTION = "Question: Why {n}?\nThought 1: x\nAction 1: Finish[y]\nObservation 1: Answer is CORRECT\n"
TRIALS = "".join(
    f"BEGIN TRIAL {n}\n------------- BEGIN CORRECT AGENTS -------------\n\n{QUESTION.format(n=n)}\n" for n in (1, 2, 3)
)
CASES: dict[str, tuple[str, Callable[..., Reader], str]] = {
    "builds-lines": ("b.jsonl", BuildLogReader, _lines(*map(_build, range(3)))),
    "builds-array": ("b.json", BuildLogReader, json.dumps([_build(n) for n in range(3)])),
    "transcripts": ("t.jsonl", TranscriptReader, _lines(*_call("s1"), *_call("s2"))),
    "trajectories": ("t.traj", TrajectoryReader, json.dumps({"trajectory": [{"action": "ls", "observation": "a"}]})),
    "alfworld": ("x_trial_0.json", AlfworldReader, json.dumps([{"name": "env_0", "memory": [], "is_success": True}])),
    "mbpp": ("m.jsonl", MbppReader, _lines(*({"name": f"p{n}", "is_solved": True} for n in range(3)))),
    "hotpotqa": ("h.txt", HotpotqaReader, TRIALS),
    "tau-bench": ("t.jsonl", TauBenchReader, _lines(*({"task_id": n, "reward": 1.0, "traj": []} for n in range(3)))),
    "junit": ("r.xml", JunitReader, '<testsuite name="s"><testcase name="a"/><testcase name="b"/></testsuite>'),
    "ci-log": ("c.log", CiLogReader, "$ make\nok\nsrc/a.ts(1,2): error TS1: no\n"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Callable[..., Reader], bytes]:
    name, reader, text = CASES[request.param]
    (tmp_path / name).write_text(text, "utf-8")
    return tmp_path / name, reader, text.encode()


def built(records: list[SourceRecord]) -> list[Any]:
    return [record.build for record in records if record.build]


def test_it_resumes_from_every_cursor_and_repeats_nothing(case: Any) -> None:
    path, make, _ = case
    reader = make(path)
    assert isinstance(reader, Reader)
    records = list(reader.records(None))
    assert len(built(records)) == len(records) > 0
    for number, record in enumerate(records, start=1):
        assert built(list(make(path).records(record.cursor))) == built(records[number:])
    assert list(make(path).records(records[-1].cursor)) == []
    assert built(list(make(path).records("nonsense"))) == built(records)
    assert reader.count() in {None, sum(record.records for record in records)}


def test_a_given_project_is_the_builds_project(case: Any) -> None:
    path, make, _ = case
    assert {build.project_id for build in built(list(make(path, project_id="shop").records(None)))} == {"shop"}


def test_a_compressed_file_reads_the_same(case: Any) -> None:
    path, make, data = case
    plain = built(list(make(path, project_id="p").records(None)))
    packed = path.with_name(path.name + ".gz")
    middle = len(data) // 2
    packed.write_bytes(gzip.compress(data[:middle]) + gzip.compress(data[middle:]) + b"\0" * 40)
    records = list(make(packed, project_id="p").records(None))
    assert [build.tasks for build in built(records)] == [build.tasks for build in plain]
    assert built(list(make(packed, project_id="p").records(records[0].cursor))) == built(records[1:])


def broken(data: bytes) -> dict[str, bytes]:
    middle = len(data) // 2
    return {
        "empty": b"",
        "blank": b"\n\n  \n",
        "binary": bytes(range(256)) * 100,
        "truncated gzip": gzip.compress(data * 50)[:-20],
        "damaged gzip": gzip.compress(data)[:12] + b"\xff" * 40,
        "half": data[:middle],
        "long line": b'{"a": "' + b"x" * 5_000_000 + b'"}\n' + data,
        "invalid UTF-8": data[:middle] + b"\xff\xfe\xc3" + data[middle:],
        "NUL": data[:middle] + b"\x00" + data[middle:],
        "lone surrogate": data.replace(b'"', b'"\\ud800', 9),
        "deep": b"[" * 100_000 + b'{"a":' * 1_000,
        "deep XML": b"<testsuite>" * 20_000,
        "other JSON": b'{"a": [1, null, {"b": []}], "trajectory": [3], "traj": [], "message": 7}\n',
        "wrong types": b'[{"name": [], "memory": 3, "is_success": true, "tool_calls": {}, "sessionId": {}}, 1, null]\n',
    }


@pytest.mark.parametrize("kind", broken(b""))
def test_a_broken_file_is_reported_and_does_not_stop_the_run(case: Any, kind: str) -> None:
    path, make, data = case
    path.write_bytes(broken(data)[kind])
    with suppress(MemGraphError):
        reader = make(path)
        str(reader.source_id).encode()
        for record in reader.records(None):
            assert record.build is not None or record.skipped
            record.cursor.encode()


def test_binary_files_missing_ones_and_directories_are_refused(case: Any, tmp_path: Path) -> None:
    path, make, _ = case
    path.write_bytes(b"\x7fELF" + bytes(200))
    for refused in (path, tmp_path, tmp_path / "absent"):
        with pytest.raises(SourceError) as caught:
            list(make(refused).records(None))
        assert caught.value.path == refused


def test_a_truncated_gzip_gives_its_readable_part_and_reports_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl.gz"
    lines = _lines(*({**_build(n), "build_summary": f"{n * 7919 % 9973:x}" * 50} for n in range(2_000)))
    path.write_bytes(gzip.compress(lines.encode())[:-2_000])
    records = list(BuildLogReader(path).records(None))
    assert len(built(records)) > 1_000
    assert "is truncated" in (records[-1].skipped or "")
