"""The forms of the records: what does not fit its class is refused, and every reason and quota is reported by something."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

import memgraph
from memgraph.diagnostics.records import (
    DiagnosticRecord,
    LifecycleRecord,
    Quota,
    QuotaRecord,
    RetrievalRecord,
    SecurityReason,
    SecurityRecord,
)
from memgraph.diagnostics.reports import reason_of
from memgraph.errors import InvalidInputError

AT = "2026-02-01T09:00:00.000Z"
RANKING = {
    "settings_version": "5-1f0c9a3e", "configuration_sha256": "0" * 64, "analyser_version": 1, "embedder": "none", "dimension": 0,
    "fusion": "scores", "weights": {"tag_weight": 0.05},
}  # fmt: skip
COUNTS = {"recalls": 2, "empty": 1, "results": 3, "tokens": 40, "duration_ms": 3.5, "longest_ms": 2.0}
SECURITY = {"at": AT, "severity": "critical", "reason": "signature", "mode": "prod"}
RETRIEVAL = {"at": AT, "severity": "info", "reason": "ended", "ranking": RANKING, "counts": COUNTS}
LIFECYCLE = {
    "at": AT,
    "severity": "error",
    "run": "sleep",
    "outcome": "failed",
    "error": "BusyError",
    "duration_s": 1.0,
}
QUOTA = {"at": AT, "quota": "max_memory_mb", "value": 2.0, "limit": 1.0, "unit": "bytes", "severity": "warning"}


@pytest.mark.parametrize(
    ("kind", "good"),
    [(SecurityRecord, SECURITY), (RetrievalRecord, RETRIEVAL), (LifecycleRecord, LIFECYCLE), (QuotaRecord, QUOTA)],
)
@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2},
        {"severity": "fatal"},
        {"store_id": "a text with spaces"},
        {"content": "a memory"},
        {"at": "yesterday"},
    ],
)
def test_what_all_records_have(kind: type[DiagnosticRecord], good: dict[str, Any], wrong: dict[str, Any]) -> None:
    assert kind.parse(good).version == 1
    with pytest.raises(InvalidInputError):
        kind.parse(good | wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": "other"},
        {"mode": "test"},
        {"seq": "1"},
        {"seq": -1},
        {"key_ids": ["a text with spaces"]},
    ],
)
def test_security(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        SecurityRecord.parse(SECURITY | wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"error": "a message"},
        {"run": "walk"},
        {"duration_s": -1.0},
        {"counts": {"a text with spaces": 1}},
        {"counts": {"collect.archived": -1}},
    ],
)
def test_lifecycle(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        LifecycleRecord.parse(LIFECYCLE | wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"quota": "luck"},
        {"value": float("nan")},
        {"unit": "ells"},
        {"occasions": 0},
    ],
)
def test_quota(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        QuotaRecord.parse(QUOTA | wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ranking": RANKING | {"weights": {"tag weight": 1.0}}},
        {"ranking": RANKING | {"configuration_sha256": "abc"}},
        {"ranking": RANKING | {"embedder": "a text with spaces"}},
        {"counts": COUNTS | {"longest_ms": float("inf")}},
        {"query": "x"},
    ],
)
def test_retrieval(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        RetrievalRecord.parse(RETRIEVAL | wrong)


def _constants(call: str, place: int) -> set[str]:
    """Return the text constants at a place of all calls of a function in the package."""
    found = set()
    for path in Path(memgraph.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) > place:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == call and isinstance(node.args[place], ast.Constant):
                    found.add(node.args[place].value)
    return found


def test_every_quota_and_run_and_reason_is_reported_somewhere() -> None:
    assert _constants("report_quota", 1) == set(get_args(Quota))
    assert _constants("reported", 1) == set(get_args(LifecycleRecord.model_fields["run"].annotation))
    assert _constants("_report_ranking", 1) == set(get_args(RetrievalRecord.model_fields["reason"].annotation))
    told = _constants("tell", 0)
    returned = {
        node.value.value
        for node in ast.walk(ast.parse(inspect.getsource(reason_of)))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant)
    }
    assert told | returned == set(get_args(SecurityReason))


def test_every_quota_is_reported_in_its_unit() -> None:
    units: dict[str, set[str]] = {}
    for path in Path(memgraph.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "report_quota":
                (unit,) = (one.value for one in node.keywords if one.arg == "unit")
                if isinstance(unit, ast.Constant):
                    units.setdefault(ast.literal_eval(node.args[1]), set()).add(unit.value)
    assert units == {
        **{quota: {"bytes"} for quota in ("disk", "max_memory_mb", "server_bodies")},
        "distil_orders_a_day": {"orders"},
        "server_requests": {"requests"},
    }
