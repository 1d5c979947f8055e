"""Reports of builds: JUnit's XML and the text of CI logs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from memgraph.errors import SourceError
from memgraph.extraction.readers import CiLogReader, JunitReader
from memgraph.extraction.readers.source import undated
from memgraph.model.build import BuildEventLog, BuildTask

JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="cart" timestamp="2026-03-01T10:00:00" hostname="runner-1" time="2.5">
  <properties><property name="a" value="b"/></properties>
  <testcase classname="cart.Totals" name="adds"/>
  <testcase classname="cart.Totals" name="rounds">
    <failure message="expected 3" type="AssertionError">at totals.py:9</failure>
    <system-err>warning: old rounding</system-err>
  </testcase>
  <testcase name="loads"><error type="ImportError"/></testcase>
  <testcase name="later"><skipped message="not now"/></testcase>
</testsuite></testsuites>
"""
GITHUB = """\ufeff2026-03-01T10:00:00.1234567Z ##[group]Run actions/checkout@v4
2026-03-01T10:00:00.2000000Z with:
2026-03-01T10:00:00.2000000Z   fetch-depth: 1
2026-03-01T10:00:00.3000000Z ##[endgroup]
2026-03-01T10:00:01.0000000Z Syncing repository
2026-03-01T10:00:02.0000000Z ##[group]Run pytest -q
2026-03-01T10:00:02.0000000Z \x1b[36;1mpytest -q\x1b[0m
2026-03-01T10:00:02.0000000Z shell: /usr/bin/bash -e {0}
2026-03-01T10:00:02.0000000Z ##[endgroup]
2026-03-01T10:00:03.0000000Z ____________________ TestCart.test_total ____________________
2026-03-01T10:00:03.0000000Z >       assert total() == 3
2026-03-01T10:00:03.0000000Z E       assert 2 == 3
2026-03-01T10:00:04.0000000Z \x1b[31mFAILED\x1b[0m tests/test_cart.py::TestCart::test_total - assert 2 == 3
2026-03-01T10:00:04.0000000Z ========== 1 failed, 4 passed in 0.12s ==========
2026-03-01T10:00:05.0000000Z ##[error]Process completed with exit code 1.
"""


def junit(path: Path, text: str) -> BuildEventLog:
    path.write_text(text, "utf-8")
    (build,) = [record.build for record in JunitReader(path).records(None) if record.build]
    return build


def ci(path: Path, text: str) -> BuildEventLog:
    path.write_text(text, "utf-8")
    (build,) = [record.build for record in CiLogReader(path).records(None) if record.build]
    return build


def failures(build: BuildEventLog) -> dict[str, BuildTask]:
    return {task.task_id: task for task in build.tasks if not task.task_id.startswith("command-")}


def test_a_report_is_a_build_and_a_test_case_a_task(tmp_path: Path) -> None:
    build = junit(tmp_path / "report.xml", JUNIT)
    assert build.build_id == "junit-cart-2026-03-01T10:00:00.000Z"
    assert (build.source, build.trust_class, build.build_outcome) == ("test report", "tool", "failure")
    assert (build.started_at, build.completed_at) == ("2026-03-01T10:00:00.000Z", "2026-03-01T10:00:02.500Z")
    assert build.build_summary == "4 tests: 1 passed, 2 failed, 1 skipped"
    assert [(task.task_id, task.outcome) for task in build.tasks] == [
        ("cart.Totals::adds", "success"),
        ("cart.Totals::rounds", "failure"),
        ("loads", "failure"),
    ]
    assert build.tasks[1].output == "expected 3\nat totals.py:9\nstderr: warning: old rounding"
    assert build.tasks[2].output == "ImportError"
    assert {task.agent_name for task in build.tasks} == {"runner-1"}


def test_an_undated_report_is_known_by_its_content(tmp_path: Path) -> None:
    text = '<testsuite name="cart"><testcase name="a"/></testsuite>'
    first, second = junit(tmp_path / "a.xml", text), junit(tmp_path / "b.xml", text)
    assert first.build_id == second.build_id
    assert (first.started_at, first.tasks[0].agent_name) == (undated(0), "tests")
    assert junit(tmp_path / "a.xml", text.replace("a", "b")).build_id != first.build_id


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="&a;"/></testsuite>',
        '<!DOCTYPE x SYSTEM "file:///etc/passwd"><testsuite/>',
        "<html/>",
        "",
        "no xml",
    ],
)
def test_entities_and_what_is_no_report_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "report.xml"
    path.write_text(text, "utf-8")
    with pytest.raises(SourceError):
        list(JunitReader(path).records(None))


def test_a_report_that_breaks_off_gives_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(JUNIT[: JUNIT.index('<testcase name="loads"')], "utf-8")
    built, skipped = JunitReader(path).records(None)
    assert built.build is not None
    assert len(built.build.tasks) == 2
    assert (skipped.skipped or "").startswith("not whole XML")
    packed = tmp_path / "report.xml.gz"
    packed.write_bytes(gzip.compress(JUNIT.encode())[:-30])
    assert any("ends too early" in (record.skipped or "") for record in JunitReader(packed).records(None))


def test_a_github_log_has_its_commands_and_failures(tmp_path: Path) -> None:
    build = ci(tmp_path / "run.log", GITHUB)
    assert (build.source, build.trust_class, build.build_outcome) == ("ci log", "tool", "failure")
    assert (build.started_at, build.completed_at) == ("2026-03-01T10:00:00.000Z", "2026-03-01T10:00:05.000Z")
    assert build.build_summary == "1 failed, 4 passed in 0.12s"
    checkout, pytest_run = build.tasks[:2]
    assert (checkout.description, checkout.command, checkout.outcome) == ("Run actions/checkout@v4", "", "success")
    assert (pytest_run.command, pytest_run.outcome) == ("pytest -q", "failure")
    assert "\x1b" not in pytest_run.output
    failed = failures(build)["pytest tests/test_cart.py::TestCart::test_total"]
    assert "E       assert 2 == 3" in failed.output
    assert failed.occurred_at == "2026-03-01T10:00:04.000Z"


@pytest.mark.parametrize(
    ("text", "task_id", "said"),
    [
        ("src/cart.ts(4,7): error TS2322: Type 'a' is not 'b'.", "tsc src/cart.ts:4 TS2322", "Type 'a'"),
        ("src/cart.ts:4:7 - error TS2322: Type 'a' is not 'b'.", "tsc src/cart.ts:4 TS2322", "Type 'a'"),
        (
            'error[E0308]: mismatched types\n --> src/main.rs:4:9\n  |\n4 | let x: u8 = "";\n',
            "rustc E0308 src/main.rs:4",
            "mismatched types",
        ),
        (
            "test cart::adds ... FAILED\n\nfailures:\n\n---- cart::adds stdout ----\nthread 'cart::adds' panicked at no\n",
            "cargo test cart::adds",
            "panicked at no",
        ),
        ("--- FAIL: TestCart (0.00s)\n    cart_test.go:9: got 2, want 3\nFAIL", "go test TestCart", "got 2, want 3"),
        (
            "=== RUN   TestCart\n    cart_test.go:9: got 2, want 3\n--- FAIL: TestCart (0.00s)\nFAIL",
            "go test TestCart",
            "got 2, want 3",
        ),
        ("# shop/cart\n./cart.go:3:5: undefined: total", "go build ./cart.go:3", "undefined: total"),
        (
            "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! shop@1.0.0 test: `jest`\n",
            "npm ELIFECYCLE",
            "shop@1.0.0 test",
        ),
        ("npm error code ERESOLVE\nnpm error unable to resolve", "npm ERESOLVE", "unable to resolve"),
        ("FAILED tests/test_a.py::test_b[x y] - KeyError", "pytest tests/test_a.py::test_b[x y]", "KeyError"),
    ],
)
def test_failures_are_recognised(tmp_path: Path, text: str, task_id: str, said: str) -> None:
    build = ci(tmp_path / "run.log", text)
    assert build.build_outcome == "failure"
    failed = failures(build)
    assert list(failed) == [task_id]
    assert said in failed[task_id].output


def test_commands_of_shells_and_of_npm(tmp_path: Path) -> None:
    log = "$ npm ci\nadded 3 packages\n\n> shop@1.0.0 test\n> jest --ci\n\nok\n+ make all\nmake: *** [all] Error 2\n"
    build = ci(tmp_path / "run.log", log)
    assert [(task.description, task.command, task.outcome) for task in build.tasks] == [
        ("npm ci", "npm ci", "success"),
        ("npm script test", "jest --ci", "success"),
        ("make all", "make all", "failure"),
    ]


def test_a_log_without_failures_is_a_success(tmp_path: Path) -> None:
    build = ci(tmp_path / "run.log", "$ make\nall good\n==== 3 passed in 0.1s ====\n")
    assert build.build_outcome == "success"
    assert [task.outcome for task in build.tasks] == ["success"]
