"""What an open store reports beside its trust: rankings, runs of the lifecycle, and limits that were reached."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from starlette.responses import Response
from starlette.testclient import TestClient

from memgraph import AgentMemoryConfig, MemGraph, MemoryRetrieval, RetrievalConfig
from memgraph.diagnostics import delivery
from memgraph.diagnostics.delivery import Repeats
from memgraph.diagnostics.records import LifecycleRecord, Quota, QuotaRecord, RetrievalRecord, SecurityReason
from memgraph.diagnostics.reports import (
    BETWEEN_S,
    MAX_RANKINGS,
    RecallWatch,
    report_quota,
    report_security,
    reported_run,
)
from memgraph.errors import BusyError, StorageError
from memgraph.interfaces.cli.serve import limit_reporter
from memgraph.interfaces.http.limits import Limited, Limits
from memgraph.journal.sql import SQLite
from memgraph.lifecycle.run import report_budget, report_orders
from memgraph.model.model_usage import ModelUsage
from memgraph.model.results.learning import OrdersResult
from memgraph.retrieval.version import ranking_of
from memgraph.store.commit.records import VectorModel

AT = "2026-02-01T09:00:00.000Z"
SECRET = "zq9999zq"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "diagnostics.jsonl"


@pytest.fixture
def config(file: Path) -> AgentMemoryConfig:
    return AgentMemoryConfig(diagnostics_file=str(file))


@pytest.fixture
def memory(open_store: Callable[..., Any], file: Path) -> MemGraph:
    made = MemGraph(open_store(diagnostics_file=str(file)))
    made.store.insert_memory({"type": "semantic", "content": f"Deploy {SECRET} on Tuesdays only"})
    return made


def read(file: Path, kind: str) -> list[dict[str, Any]]:
    assert delivery.flush(10.0)
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [one for one in found if one["kind"] == kind]


class Hours:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_the_fields_of_a_record_agree(file: Path) -> None:
    configs = [AgentMemoryConfig(diagnostics_file=str(file), security_mode=mode) for mode in ("prod", "dev")]
    for config in configs:
        for reason in get_args(SecurityReason):
            report_security(config, reason, now=lambda: AT, store_id="store-1")
    for quota in get_args(Quota):
        given = {"value": 1.0, "limit": 1.0, "unit": "bytes"}
        report_quota(config, quota, now=lambda: AT, store_id="store-1", repeats=Repeats(), **given)
    for error in (None, ValueError("x"), KeyboardInterrupt()):
        with suppress(ValueError, KeyboardInterrupt), reported_run(config, "sleep", now=lambda: AT, store_id="store-1"):
            if error:
                raise error
    hours, everything = Hours(), config.model_copy(update={"diagnostics_recalls": "all"})
    watch = RecallWatch(everything, "store-1", lambda: AT, timer=hours)
    for hours.seconds in (0.0, 3_600.0, 3_601.0):
        watch.note(ranking_of(RetrievalConfig(), None, VectorModel("none", 0)), query_id="q", results=0, tokens=0, duration_ms=1.0)  # fmt: skip
    watch.close()
    assert {(one["mode"], one["severity"], one["reason"]) for one in read(file, "security")} == {
        *(("dev", "error", reason) for reason in get_args(SecurityReason)),
        *(("prod", "error", reason) for reason in ("mode_invalid", "dev_bypass", "unsigned_replay")),
        *(("prod", "critical", reason) for reason in ("signature", "envelope", "schema", "boot_key", "journal")),
    }
    severities = {one["quota"]: one["severity"] for one in read(file, "quota")}
    assert severities == dict.fromkeys(get_args(Quota), "warning") | {"disk": "error"}
    assert [(one["outcome"], one["severity"], one.get("error")) for one in read(file, "lifecycle")] == [
        ("complete", "info", None),
        ("failed", "error", "ValueError"),
        ("interrupted", "info", None),
    ]
    assert {(one["reason"], "counts" in one, "query_id" in one) for one in read(file, "retrieval")} == {
        ("begun", False, False),
        ("recall", True, True),
        ("hour", True, False),
        ("ended", True, False),
    }


class TestRetrieval:
    def test_a_ranking_is_reported_once_and_at_the_end_with_counts(self, memory: MemGraph, file: Path) -> None:
        for task in ("when to deploy", "deploy on which day", "xylophone"):
            memory.recall(task)
        assert [one["reason"] for one in read(file, "retrieval")] == ["begun"]
        memory.close()
        begun, ended = read(file, "retrieval")
        assert RetrievalRecord.model_validate_json(json.dumps(ended)).store_id == memory.store.store_id
        assert (begun["ranking"], ended["reason"]) == (ended["ranking"], "ended")
        assert ended["counts"]["recalls"] == 3
        assert ended["ranking"]["weights"]["dense_weight"] == 0.45
        memory.close()
        assert len(read(file, "retrieval")) == 2

    def test_another_configuration_begins_another_period(self, memory: MemGraph, file: Path) -> None:
        version = memory.recall("deploy").versions["settings"]
        other = MemoryRetrieval(memory.store, config=RetrievalConfig(k1=1.5))
        changed = other.retrieve({"task_description": "deploy"}).versions["settings"]
        memory.recall("deploy")
        found = read(file, "retrieval")
        assert [one["ranking"]["settings_version"] for one in found] == [version, changed]
        memory.close()
        assert [one["counts"]["recalls"] for one in read(file, "retrieval")[2:]] == [2, 1]

    def test_each_recall_is_reported_on_request(self, open_store: Callable[..., Any], file: Path) -> None:
        memory = MemGraph(open_store(diagnostics_file=str(file), diagnostics_recalls="all"))
        ids = [memory.recall("deploy").query_id for _ in range(2)]
        assert [one["query_id"] for one in read(file, "retrieval") if one["reason"] == "recall"] == ids

    def test_no_text_is_in_any_record(self, memory: MemGraph, file: Path) -> None:
        memory.recall(f"deploy {SECRET}")
        memory.maintenance.sleep()
        memory.close()
        assert read(file, "retrieval")
        assert read(file, "lifecycle")
        assert SECRET not in file.read_text()

    def test_a_view_of_the_past_reports_nothing(self, memory: MemGraph, file: Path) -> None:
        with memory.at(memory.store.now()) as view:
            assert view.recall("deploy").memories
        assert read(file, "retrieval") == []

    def test_counts_come_every_hour_of_use(self, config: AgentMemoryConfig, file: Path) -> None:
        hours, ranking = Hours(), ranking_of(RetrievalConfig(), None, VectorModel("none", 0))
        watch = RecallWatch(config, "store-1", lambda: AT, timer=hours)
        for hours.seconds in (0.0, 1_800.0, 3_600.0, 3_700.0, 7_200.0):
            watch.note(ranking, query_id="q", results=0, tokens=0, duration_ms=1.0)
        found = read(file, "retrieval")
        assert [(one["reason"], one.get("counts", {}).get("recalls")) for one in found] == [
            ("begun", None),
            ("hour", 3),
            ("hour", 2),
        ]

    def test_floors_of_single_queries_do_not_flood(self, config: AgentMemoryConfig, file: Path) -> None:
        watch = RecallWatch(config, "store-1", lambda: AT)
        for number in range(4 * MAX_RANKINGS):
            ranking = ranking_of(RetrievalConfig(), number / 100, VectorModel("none", 0))
            watch.note(ranking, query_id="q", results=1, tokens=1, duration_ms=1.0)
        assert len(read(file, "retrieval")) == MAX_RANKINGS

    def test_the_name_of_a_model_cannot_be_a_sentence(self) -> None:
        named = ranking_of(RetrievalConfig(), None, VectorModel("my model: say hello", 3))
        assert named.embedder == "my_model:_say_hello"


class TestLifecycle:
    def test_a_sleep(self, memory: MemGraph, file: Path) -> None:
        report = memory.maintenance.sleep()
        (found,) = read(file, "lifecycle")
        assert LifecycleRecord.model_validate_json(json.dumps(found)).severity == "info"
        assert (found["run"], found["outcome"], found["left"]) == ("sleep", "complete", [])
        assert found["phases"] == [phase.name for phase in report.phases]

    def test_a_sleep_that_ran_out_of_time(self, memory: MemGraph, file: Path) -> None:
        report = memory.maintenance.sleep(max_seconds=0)
        (found,) = read(file, "lifecycle")
        assert (found["outcome"], found["left"], found["phases"]) == ("interrupted", report.left, [])

    def test_counts(self, memory: MemGraph, file: Path) -> None:
        for number in range(3):
            memory.save_episode(
                f"Episode {number} of the harbour", "because", "acted", "failure", build_id=f"b{number}", tags=["tide", "pier"]
            )  # fmt: skip
        memory.maintenance.compress()
        (found,) = read(file, "lifecycle")
        assert (found["run"], found["outcome"], found["counts"]["episodes"]) == ("compress", "complete", 3)

    def test_a_collection(self, memory: MemGraph, file: Path) -> None:
        memory.maintenance.collect()
        assert [one["run"] for one in read(file, "lifecycle")] == ["collect"]

    def test_a_failure_is_an_error_that_names_its_phase(
        self, memory: MemGraph, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise BusyError(SECRET, timeout_s=1.0, pid=None)

        monkeypatch.setattr(import_module("memgraph.lifecycle.sleep"), "merge_near_duplicates", refuse)
        with pytest.raises(BusyError):
            memory.maintenance.sleep()
        (found,) = read(file, "lifecycle")
        assert (found["outcome"], found["severity"], found["error"]) == ("failed", "error", "BusyError")
        assert (found["phase"], found["phases"]) == ("near-duplicates", ["temporal", "copies"])
        assert found["left"][0] == "near-duplicates"
        assert SECRET not in json.dumps(found)

    @pytest.mark.parametrize(
        ("error", "outcome", "named"), [(KeyboardInterrupt(), "interrupted", None), (ValueError("x"), "failed", "ValueError")]
    )  # fmt: skip
    def test_what_ends_a_run(
        self, config: AgentMemoryConfig, file: Path, error: BaseException, outcome: str, named: str | None
    ) -> None:
        with pytest.raises(type(error)), reported_run(config, "sleep", now=lambda: AT, store_id="s"):
            raise error
        (found,) = read(file, "lifecycle")
        assert (found["outcome"], found.get("error")) == (outcome, named)


class TestQuotas:
    def test_one_record_a_minute_with_the_occasions_since(self, config: AgentMemoryConfig, file: Path) -> None:
        minutes = Hours()
        repeats = Repeats(between_s=BETWEEN_S, timer=minutes)
        for minutes.seconds in (0.0, 1.0, 59.0, 61.0):
            for store_id in ("one", "other"):
                report_quota(config, "disk", now=lambda: AT, store_id=store_id, value=1, limit=2, unit="bytes", repeats=repeats)  # fmt: skip
        found = [one for one in read(file, "quota") if one["store_id"] == "one"]
        assert [one["occasions"] for one in found] == [1, 3]
        assert len(read(file, "quota")) == 4
        assert QuotaRecord.model_validate_json(json.dumps(found[0])).severity == "error"

    def test_a_full_disk(self, memory: MemGraph, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        begin = SQLite._begin

        def full(database: SQLite, raw: sqlite3.Connection, *, is_writing: bool, timeout_s: float) -> None:
            begin(database, raw, is_writing=is_writing, timeout_s=timeout_s)
            if is_writing:
                raw.execute("PRAGMA max_page_count = 1")

        monkeypatch.setattr(SQLite, "_begin", full)
        monkeypatch.setattr("memgraph.store.opening.free_bytes", lambda _path: 1_000)
        with pytest.raises(StorageError, match="nothing was recorded"):
            memory.store.insert_memory({"type": "semantic", "content": "Another fact " * 60})
        (found,) = read(file, "quota")
        assert (found["quota"], found["severity"], found["value"]) == ("disk", "error", 1_000.0)
        assert found["store_id"] == memory.store.store_id

    def test_a_store_that_is_too_large_after_a_run(self, open_store: Callable[..., Any], file: Path) -> None:
        memory = MemGraph(open_store(diagnostics_file=str(file), max_memory_mb=1))
        memory.maintenance.collect()
        assert read(file, "quota") == []
        (memory.store.config.home / "padding").write_bytes(bytes(1_000_001))
        memory.maintenance.collect()
        (found,) = read(file, "quota")
        assert (found["quota"], found["limit"], found["value"] > 1e6) == ("max_memory_mb", 1e6, True)

    @pytest.mark.parametrize(
        ("used", "unit"),
        [({"calls": 100}, "calls"), ({"prompt_tokens": 200_000}, "tokens"), ({"seconds": 301.0}, "seconds")],
    )
    def test_a_spent_model_budget(self, memory: MemGraph, file: Path, used: Mapping[str, Any], unit: str) -> None:
        report_budget(memory.store, ModelUsage(**used))
        report_budget(memory.store, None)
        assert read(file, "quota") == []
        report_budget(memory.store, ModelUsage(**used, spent=True))
        (found,) = read(file, "quota")
        assert (found["quota"], found["unit"], found["value"]) == (
            "model_budget",
            unit,
            float(next(iter(used.values()))),
        )

    def test_work_orders_beyond_those_of_a_day(self, memory: MemGraph, file: Path) -> None:
        report_orders(memory.store, OrdersResult(candidates=40, requested=40))
        assert read(file, "quota") == []
        report_orders(memory.store, OrdersResult(candidates=45, requested=40))
        (found,) = read(file, "quota")
        assert (found["quota"], found["value"], found["limit"]) == ("distil_orders_a_day", 5.0, 40.0)

    @pytest.mark.parametrize(
        ("limits", "quota"),
        [({"requests": 0}, "server_requests"), ({"buffered_bytes": 3}, "server_bodies")],
    )
    def test_requests_that_the_server_refuses(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], quota: str
    ) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await Response("done")(scope, receive, send)

        monkeypatch.setenv("MEMGRAPH_DIAGNOSTICS_FILE", str(file))
        limited = Limited(app, Limits(**limits), open_paths=(), on_limit=limit_reporter(tmp_path / "served"))
        assert TestClient(limited).post("/v1/remember", content=b"body").status_code == 503
        (found,) = read(file, "quota")
        assert (found["quota"], found["severity"]) == (quota, "warning")
        assert found["value"] >= found["limit"] == float(next(iter(limits.values())))
