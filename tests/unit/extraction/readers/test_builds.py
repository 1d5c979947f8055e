"""Build logs from files: what is read, what is skipped and why, and how a run continues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import SourceError
from memgraph.extraction.readers import BuildLogReader, Reader, SourceRecord


def build(build_id: str, **fields: Any) -> dict[str, Any]:
    task = {"taskId": "t1", "agentName": "coder", "description": "Parse dates", "output": "ok", "outcome": "success"}
    return {
        "buildId": build_id,
        "projectId": "shop",
        "tasks": [task],
        "userInterventions": [],
        "buildSummary": "",
        "buildOutcome": "success",
        "startedAt": "2026-03-01T10:00:00Z",
        "completedAt": "2026-03-01T11:00:00Z",
    } | fields


def ids(records: list[SourceRecord]) -> list[str | None]:
    return [record.build.build_id if record.build else None for record in records]


def written(path: Path, *lines: object, end: str = "\n") -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + end)
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_one_object_or_an_array_in_either_case(tmp_path: Path, indent: int | None) -> None:
    one, many = tmp_path / "one.json", tmp_path / "many.json"
    one.write_text(json.dumps(build("b1"), indent=indent))
    snake = {
        "build_id": "b2",
        "project_id": "shop",
        "build_outcome": "failure",
        "started_at": "2026-03-01",
        "completed_at": "2026-03-02",
    }
    many.write_text(json.dumps([build("b1"), snake], indent=indent))
    assert ids(list(BuildLogReader(one).records(None))) == ["b1"]
    assert ids(list(BuildLogReader(many).records(None))) == ["b1", "b2"]


def test_unreadable_lines_are_skipped_with_their_number(tmp_path: Path) -> None:
    path = written(
        tmp_path / "log.jsonl", build("b1"), "{broken", build("b2", buildOutcome="splendid"), "", "[1]", build("b3")
    )
    records = list(BuildLogReader(path).records(None))
    assert ids(records) == ["b1", None, None, None, "b3"]
    reasons = [record.skipped or "" for record in records if record.skipped]
    assert reasons[0].startswith("line 2: not JSON")
    assert reasons[1].startswith("line 3: build_outcome") or reasons[1].startswith("line 3: buildOutcome")
    assert reasons[2] == "line 5: not an object"
    assert all(record.records == 1 for record in records)


def test_a_half_written_last_line_is_read_once_it_is_finished(tmp_path: Path) -> None:
    whole, half = json.dumps(build("b1")), json.dumps(build("b2"))
    path = written(tmp_path / "log.jsonl", whole, half[:60], end="")
    reader = BuildLogReader(path)
    records = list(reader.records(None))
    assert ids(records) == ["b1", None]
    assert "not finished" in (records[1].skipped or "")
    written(path, whole, half, build("b3"))
    assert ids(list(reader.records(records[1].cursor))) == ["b2", "b3"]


def test_a_grown_file_is_continued_and_a_rewritten_one_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", build("b1"), build("b2"), end="")
    reader = BuildLogReader(path)
    cursor = list(reader.records(None))[-1].cursor
    assert list(reader.records(cursor)) == []
    with path.open("a") as stream:
        stream.write("\n" + json.dumps(build("b3")) + "\nnot json\n")
    grown = list(reader.records(cursor))
    assert ids(grown) == ["b3", None]
    assert (grown[1].skipped or "").startswith("line 4:")
    written(path, build("x1"), build("x2"), build("x3"))
    assert ids(list(reader.records(cursor))) == ["x1", "x2", "x3"]
    assert ids(list(reader.records("nonsense"))) == ["x1", "x2", "x3"]


def test_an_array_continues_only_while_it_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([build("b1"), build("b2")]))
    reader = BuildLogReader(path)
    first = next(iter(reader.records(None)))
    assert ids(list(reader.records(first.cursor))) == ["b2"]
    path.write_text(json.dumps([build("b1"), build("b2"), build("b3")]))
    assert ids(list(reader.records(first.cursor))) == ["b1", "b2", "b3"]


def test_a_line_over_the_limit_is_skipped_and_the_next_one_read(tmp_path: Path) -> None:
    huge = json.dumps(build("big", buildSummary="x" * 20_000_000))
    path = written(tmp_path / "log.jsonl", build("b1"), huge, build("b2"))
    records = list(BuildLogReader(path).records(None))
    assert ids(records) == ["b1", None, "b2"]
    assert "line 2: longer than" in (records[1].skipped or "")


def test_a_document_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([build("b1")], indent=1))
    with pytest.raises(SourceError, match="over"):
        list(BuildLogReader(path, max_whole_bytes=100).records(None))


def test_text_that_no_store_can_hold_is_cleaned_and_long_output_keeps_its_ends(tmp_path: Path) -> None:
    tasks = build("b1")["tasks"]
    tasks[0]["output"] = "start" + "x" * 300_000 + "TypeError: end"
    tasks[0]["description"] = "a\x00b\ud800c"
    path = tmp_path / "log.jsonl"
    path.write_bytes(json.dumps(build("b1", tasks=tasks)).encode().replace(b"shop", b"sh\xffop") + b"\n")
    (record,) = BuildLogReader(path).records(None)
    assert record.build is not None
    assert record.build.project_id == "sh�op"
    task = record.build.tasks[0]
    assert task.description == "abc"
    assert task.output.startswith("start")
    assert task.output.endswith("TypeError: end")


@pytest.mark.parametrize("text", ['[{"buildId": "b1"', '{"buildId":', "42", "[" * 100_000])
def test_a_document_that_is_no_build_log_raises(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(SourceError):
        list(BuildLogReader(path).records(None))


def test_a_missing_file_and_a_directory_raise(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(SourceError) as caught:
            list(BuildLogReader(path).records(None))
        assert caught.value.path == path


def test_the_project_is_the_builds_own_unless_missing_or_overridden(tmp_path: Path) -> None:
    without = build("b2")
    del without["projectId"]
    path = written(tmp_path / "nightly.jsonl", build("b1"), without)
    own = [record.build.project_id for record in BuildLogReader(path).records(None) if record.build]
    assert own == ["shop", "nightly"]
    given = [r.build.project_id for r in BuildLogReader(path, project_id="mine").records(None) if r.build]
    assert given == ["mine", "mine"]


def test_it_is_a_reader_that_knows_its_size(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", build("b1"), "", build("b2"))
    reader = BuildLogReader(path)
    assert isinstance(reader, Reader)
    assert reader.count() == 2
    assert reader.source_id == f"builds:{path}"
    assert (reader.kind, reader.locator) == ("builds", str(path))
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert list(BuildLogReader(empty).records(None)) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"startedAt": "0001-01-01T00:00:00+14:00"},
        {"completedAt": "9999-12-31T23:59:59-14:00"},
        {"tasks": [{**build("b")["tasks"][0], "aceScore": 10**400}]},
        {"tasks": [{**build("b")["tasks"][0], "occurredAt": "2026-02-30"}]},
    ],
    ids=["before-time", "after-time", "too-large", "no-day"],
)
def test_an_impossible_value_costs_its_build_and_not_the_run(tmp_path: Path, fields: dict[str, Any]) -> None:
    source = written(tmp_path / "builds.jsonl", build("b1"), build("b2", **fields), build("b3"))

    records = list(BuildLogReader(source).records(None))

    assert ids(records) == ["b1", None, "b3"]
    assert "line 2" in (records[1].skipped or "")
