"""Intake: incremental, resumable, and the same whichever way it went."""

import json
import sys

import pytest

from memgraph.config import ConsolidationConfig
from memgraph.errors import SourceError
from memgraph.extraction.readers import BuildLogReader
from memgraph.lifecycle import ConsolidationPipeline, ingest

FAILURES = ("the login token expired", "the cache was cold", "a migration locked the table", "the queue lost a message")


def build(number):
    what = FAILURES[number % len(FAILURES)]
    task = {
        "taskId": f"t{number}",
        "agentName": "MARS",
        "description": f"Deploy service number {number}",
        "output": f"Error: {what} in service{number}.py while deploying step {number}",
        "outcome": "failure",
    }
    return {
        "buildId": f"b{number}",
        "projectId": "shop",
        "tasks": [task],
        "buildOutcome": "failure",
        "startedAt": "2026-01-01T00:00:00Z",
        "completedAt": f"2026-01-01T01:00:{number % 60:02d}Z",
    }


@pytest.fixture
def log(tmp_path):
    def write(count, name="builds.jsonl", tail=""):
        path = tmp_path / name
        path.write_text("".join(json.dumps(build(number)) + "\n" for number in range(count)) + tail)
        return path

    return write


def read(store, path, **options):
    return ingest(store, BuildLogReader(path, project_id="shop"), **options)


def test_the_same_input_twice_adds_nothing(store, log):
    first = read(store, log(5))
    events, digest = store.verify(), store.digest()

    again = read(store, log(5))

    assert first.extracted + first.merged > 0
    assert (again.extracted, again.merged) == (0, 0)
    assert (store.verify(), store.digest()) == (events, digest)


@pytest.mark.embedded
def test_a_grown_file_adds_its_growth(store, log):
    read(store, log(3))
    grown = read(store, log(5))

    assert grown.builds == 2
    assert len(store.cypher("MATCH (b:Build) RETURN b.id AS id")) == 5


def test_unreadable_records_are_skipped_with_a_count_and_a_reason(store, log):
    report = read(store, log(2, tail='{"buildId": "b9"}\nnot json\n'))

    assert report.skipped == 2
    assert sum(report.reasons.values()) == 2
    assert report.builds == 2


def test_an_interrupted_run_resumes_and_ends_as_an_uninterrupted_one(open_store, log, monkeypatch):
    batch = 8
    monkeypatch.setattr(sys.modules["memgraph.lifecycle.intake.ingest"], "BATCH_BUILDS", batch)
    path = log(3 * batch)
    with open_store("whole") as whole:
        read(whole, path)
        expected, total = whole.digest(), whole.get_stats().total

    class StopError(Exception):
        pass

    def stop_after_two_batches(done, _total):
        if done >= 2 * batch:
            raise StopError

    with open_store("cut") as cut, pytest.raises(StopError):
        read(cut, path, progress=stop_after_two_batches)
    with open_store("cut") as cut:
        rest = read(cut, path)

        assert rest.builds == batch
        assert cut.get_stats().total == total
        assert cut.digest() == expected


def test_memories_carry_the_source_s_own_time(store, log):
    read(store, log(1))

    (memory,) = store.get_all_memories()
    assert memory.occurred_at.startswith("2026-01-01T01:00:00")
    assert memory.created_at == store.now()


def test_progress_ends_at_the_total(store, log):
    seen = []
    read(store, log(3), progress=lambda done, total: seen.append((done, total)))

    assert seen[-1] == (3, 3)


def test_an_unreadable_source_is_an_error_and_changes_nothing(store, tmp_path):
    before = store.digest()
    with pytest.raises(SourceError):
        read(store, tmp_path / "missing.jsonl")
    assert store.digest() == before


def test_disabled_consolidation_reads_nothing_and_keeps_the_cursor(open_store, log):
    with open_store(consolidation_enabled=False) as store:
        report = read(store, log(3))

        assert report.read == 0
        assert "consolidation_enabled" in report.notice
    with open_store() as store:
        assert read(store, log(3)).builds == 3


@pytest.mark.embedded
def test_builds_that_run_out_of_time_are_finished_before_the_cursor_moves(open_store, log):
    path = log(6)
    with open_store("whole") as whole:
        read(whole, path)
        expected = whole.digest()
    with open_store("slow") as slow:
        pipeline = ConsolidationPipeline(slow, config=ConsolidationConfig(max_duration_ms=0.001))
        read(slow, path, pipeline=pipeline)

        assert slow.cypher("MATCH (b:Build) WHERE NOT b.is_complete RETURN b.name AS name") == []
        assert slow.digest() == expected


def test_candidates_beyond_the_limit_are_counted(store, tmp_path):
    tasks = [
        {
            "taskId": f"t{n}",
            "agentName": "MARS",
            "description": f"Run part{n}.py",
            "output": f"Error: part{n}.py broke",
            "outcome": "failure",
        }
        for n in range(20)
    ]
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({**build(0), "tasks": tasks}) + "\n")
    report = read(store, path)
    assert (report.extracted + report.merged, report.left_out) == (8, 12)
