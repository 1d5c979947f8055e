"""Reports of builds: JUnit's XML and the text of CI logs."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from memgraph.errors import SourceError
from memgraph.extraction.readers import CiLogReader, JunitReader
from memgraph.model.build import BuildEventLog, BuildTask
from tests.growth import assert_grows_linearly

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


def test_a_report_names_its_tests_and_their_commit(tmp_path: Path) -> None:
    retried = '<testcase classname="cart.Totals" name="locks"><flakyFailure message="timeout"/></testcase>'
    text = JUNIT.replace('name="a" value="b"', f'name="git.commit.id" value="{"C0" * 20}"')
    build = junit(tmp_path / "report.xml", text.replace("</testsuite><", f"{retried}</testsuite><"))
    assert build.git_commit == "c0" * 20
    assert [(task.test, task.outcome) for task in build.tasks] == [
        ("cart.Totals::adds", "success"),
        ("cart.Totals::rounds", "failure"),
        ("loads", "failure"),
        ("cart.Totals::locks", "failure"),
        ("cart.Totals::locks", "success"),
    ]
    assert junit(tmp_path / "plain.xml", JUNIT.replace('"a" value="b"', '"sha" value="main"')).git_commit is None
    broken = '<testsuite name="cart"><error type="ImportError"/></testsuite>'
    assert [task.test for task in junit(tmp_path / "broken.xml", broken).tasks] == [None], "a suite is no test"


def test_an_undated_report_is_known_by_its_content(tmp_path: Path) -> None:
    text = '<testsuite name="cart"><testcase name="a"/></testsuite>'
    first, second = junit(tmp_path / "a.xml", text), junit(tmp_path / "b.xml", text)
    assert first.build_id == second.build_id
    assert first.tasks[0].agent_name == "tests"
    assert junit(tmp_path / "a.xml", text.replace("a", "b")).build_id != first.build_id


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="&a;"/></testsuite>',
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
    skipped, built = JunitReader(path).records(None)
    assert built.build is not None
    assert len(built.build.tasks) == 2
    assert (skipped.skipped or "").startswith("not well-formed XML")
    packed = tmp_path / "report.xml.gz"
    packed.write_bytes(gzip.compress(JUNIT.encode())[:-30])
    assert any("is truncated" in (record.skipped or "") for record in JunitReader(packed).records(None))


def test_a_github_log_has_its_commands_and_failures(tmp_path: Path) -> None:
    build = ci(tmp_path / "run.log", GITHUB)
    assert (build.source, build.trust_class, build.build_outcome) == ("ci log", "tool", "failure")
    assert (build.started_at, build.completed_at) == ("2026-03-01T10:00:00.000Z", "2026-03-01T10:00:05.000Z")
    assert build.build_summary == "1 failed, 4 passed in 0.12s"
    checkout, failed = build.tasks
    assert (checkout.description, checkout.command, checkout.outcome) == ("Run actions/checkout@v4", "", "success")
    assert failed == failures(build)["pytest tests/test_cart.py::TestCart::test_total"]
    assert "E       assert 2 == 3" in failed.output
    assert failed.occurred_at == "2026-03-01T10:00:04.000Z"


def test_a_log_names_tests_as_reports_do_and_the_commit(tmp_path: Path) -> None:
    checked_out = f"HEAD is now at c0ffee1 Count again\n[command]git log -1 --format=%H\n'c0ffee1{'a' * 33}'\n"
    verbose = "tests/test_cart.py::TestCart::test_count[a::b] PASSED [ 50%]\ntest cart::adds ... ok\n    --- PASS: TestCart/empty (0.00s)\n"
    shared = "[gw1] [ 75%] PASSED tests/test_cart.py::test_last\nthe count is 4 PASSED\n"
    build = ci(tmp_path / "run.log", checked_out + verbose + shared + GITHUB)
    assert build.git_commit == "c0ffee1" + "a" * 33
    assert {task.test: (task.description, task.outcome) for task in build.tasks if task.test} == {
        "tests.test_cart.TestCart::test_total": ("Test tests/test_cart.py::TestCart::test_total failed", "failure"),
        "tests.test_cart.TestCart::test_count[a::b]": (
            "Test tests/test_cart.py::TestCart::test_count[a::b]",
            "success",
        ),
        "cart::adds": ("Test cart::adds", "success"),
        "TestCart/empty": ("Test TestCart/empty", "success"),
        "tests.test_cart::test_last": ("Test tests/test_cart.py::test_last", "success"),
    }
    jenkins = "Checking out Revision c0ffee1 (refs/remotes/origin/main)\nFAILED tests/test_a.py - SyntaxError"
    build = ci(tmp_path / "jenkins.log", jenkins)
    assert (build.git_commit, [task.test for task in build.tasks]) == ("c0ffee1", [None]), "a module is no test"


def test_a_hash_that_a_later_command_prints_is_not_the_commit(tmp_path: Path) -> None:
    printed = f"$ make\nmade\n$ sha1sum cart.tar | cut -c-40\n{'b' * 40}\nexit status 1\n"
    assert ci(tmp_path / "run.log", printed).git_commit is None
    assert ci(tmp_path / "run.log", f"HEAD is now at c0ffee1 Count\n{printed}").git_commit == "c0ffee1"
    shown = f"[command]/usr/bin/git log -1 --format=%H\n'{'c' * 40}'\n"
    assert ci(tmp_path / "run.log", f"$ setup\n$ checkout\n{shown}{printed}").git_commit == "c" * 40
    assert ci(tmp_path / "run.log", f"$ setup\n$ git rev-parse HEAD\n{'c' * 40}\n{printed}").git_commit == "c" * 40


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
        ("# shop/cart\nC:\\w\\x.go:3:5: undefined: total", "go build C:\\w\\x.go:3", "undefined: total"),
        ("error: no\n --> C:\\a\\main.rs:3:5\n", "rustc error C:\\a\\main.rs:3", "error: no"),
        ("error: no\n --> /home/my project/main.rs:3:5\n", "rustc error /home/my project/main.rs:3", "error: no"),
        (
            "error: 1 positional argument in format string, but no arguments were given\n --> src/main.rs:3:5\n",
            "rustc error src/main.rs:3",
            "positional argument",
        ),
        (
            "____ test_b ____\nC:\\my shop\\test_a.py:12: AssertionError\nFAILED test_a.py::test_b",
            "pytest test_a.py::test_b",
            "test_a.py:12: AssertionError",
        ),
        (
            "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! shop@1.0.0 test: `jest`\n",
            "npm ELIFECYCLE",
            "shop@1.0.0 test",
        ),
        ("npm error code ERESOLVE\nnpm error unable to resolve", "npm ERESOLVE", "unable to resolve"),
        ('npm ERR! Missing script: "upload_logs"', 'npm Missing script: "upload_logs"', "Missing script"),
        (
            "npm error code ENOENT\nnpm error path /home/ci/app_logs/package.json",
            "npm ENOENT",
            "path /home/ci/app_logs",
        ),
        ("FAILED tests/test_a.py::test_b[x y] - KeyError", "pytest tests/test_a.py::test_b[x y]", "KeyError"),
    ],
)
def test_failures_are_recognised(tmp_path: Path, text: str, task_id: str, said: str) -> None:
    build = ci(tmp_path / "run.log", text)
    assert build.build_outcome == "failure"
    failed = failures(build)
    assert list(failed) == [task_id]
    assert said in failed[task_id].output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            (
                " FAIL  src/a.test.js\n  ● sum › adds\n\n    expected 3\n\n  ● sum › subs\n\n    expected 1\n  ● Console\n\n    asked\n"
                " FAIL  src/b.test.js\n  ● halves\n    expected 2\n"
            ),
            {
                "jest src/a.test.js sum › adds": "expected 3",
                "jest src/a.test.js sum › subs": "expected 1",
                "jest src/b.test.js halves": "expected 2",
            },
        ),
        (
            (
                "--- FAIL: TestA (0.00s)\n    a_test.go:3: bad\n    --- FAIL: TestA/empty (0.00s)\n        a_test.go:9: got 2\n"
                "    --- FAIL: TestA/full (0.00s)\n        a_test.go:12: got 3\nFAIL"
            ),
            {
                "go test TestA": "a_test.go:3: bad",
                "go test TestA/empty": "a_test.go:9: got 2",
                "go test TestA/full": "a_test.go:12: got 3",
            },
        ),
        (
            "FAILED a.py::b - x.py:3: first\nFAILED a.py::c - x.py:4: second\n",
            {"pytest a.py::b": "x.py:3: first", "pytest a.py::c": "x.py:4: second"},
        ),
        (
            "error[E1]: one\n --> a.rs:3:5\nerror[E2]: two\n --> a.rs:4:5\n",
            {"rustc E1 a.rs:3": "error[E1]: one\n --> a.rs:3:5", "rustc E2 a.rs:4": "error[E2]: two\n --> a.rs:4:5"},
        ),
        (
            (
                "npm error code E1\nnpm error errno 1\nnpm error\nnpm error no\nnpm error code E2\nnpm error so\nok\n"
                "npm error A complete log of this run can be found in:\nnpm error     /root/.npm/_logs/7-debug.log\n"
            ),
            {"npm E1": "code E1\nno", "npm E2": "code E2\nso"},
        ),
    ],
)
def test_each_failure_has_its_own_lines(tmp_path: Path, text: str, told: dict[str, str]) -> None:
    found = failures(ci(tmp_path / "run.log", text))
    assert {key: task.output for key, task in found.items()} == told


def test_what_a_sum_or_a_programs_heading_says_is_no_failure_of_its_own(tmp_path: Path) -> None:
    log = "  # totals\nx.go:3:5: undefined\nerror: 2 targets failed:\n --> src/main.rs:3:5\nexit status 1\n"
    assert [task.task_id for task in ci(tmp_path / "run.log", f"$ make\n{log}").tasks] == ["command-0"]


def test_commands_of_shells_and_of_npm(tmp_path: Path) -> None:
    log = "$ npm ci\nadded 3 packages\n\n> shop@1.0.0 test\n> jest --ci\n\nok\n+ make all\nmake: *** [all] Error 2\n"
    build = ci(tmp_path / "run.log", log)
    assert [(task.description, task.command, task.outcome) for task in build.tasks] == [
        ("npm ci", "npm ci", "success"),
        ("npm script test", "jest --ci", "success"),
        ("make all", "make all", "failure"),
    ]


def test_a_script_that_a_command_runs_is_that_command(tmp_path: Path) -> None:
    log = "##[group]Run npm test\nnpm test\n##[endgroup]\n> till@1.0.0 test\n> jest\n\nno tests found\n##[error]Process completed with exit code 1.\n"
    tasks = ci(tmp_path / "run.log", log).tasks
    assert [(task.description, task.command, task.outcome) for task in tasks] == [
        ("Run npm test", "npm test", "failure")
    ]


def test_a_failed_command_gives_way_to_the_failures_it_ended_with(tmp_path: Path) -> None:
    log = (
        "$ make docs\nno such target\nexit status 2\n"
        "$ pytest -q\nFAILED tests/test_a.py::test_b - KeyError\nexit status 1\n"
        "$ npm ci\nnpm ERR! code ERESOLVE\nnpm ERR! unable to resolve\n"
        "$ ls\na\nexit status 0\n"
    )
    told = [(task.description, task.outcome) for task in ci(tmp_path / "run.log", log).tasks]
    assert told == [
        ("make docs", "failure"),
        ("ls", "success"),
        ("Test tests/test_a.py::test_b failed", "failure"),
        ("npm failed: ERESOLVE", "failure"),
    ]


def test_the_scripts_own_failure_replaces_npms(tmp_path: Path) -> None:
    npm = "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\n"
    log = f"> shop@1.0.0 build\n> tsc\n\nsrc/cart.ts(4,7): error TS2322: No.\n{npm}"
    build = ci(tmp_path / "run.log", log)
    assert [task.task_id for task in build.tasks] == ["tsc src/cart.ts:4 TS2322"]
    # a script that failed with nothing but npm's words, told before of another, is not lost
    build = ci(tmp_path / "run.log", f"{log}> shop@1.0.0 lint\n> lint .\n\nbad quotes\n{npm}")
    assert [(task.description, task.outcome) for task in build.tasks] == [
        ("npm script lint", "failure"),
        ("src/cart.ts:4: TS2322: No.", "failure"),
    ]


@pytest.mark.parametrize("name", ["report.xml", "run.log"])
def test_an_undated_report_is_as_old_as_its_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        '<testsuite time="3"><testcase name="a"/></testsuite>' if name == "report.xml" else "$ ls\n", "utf-8"
    )
    os.utime(path, (1_700_000_000, 1_700_000_000))
    reader = JunitReader(path) if name == "report.xml" else CiLogReader(path)
    (build,) = [record.build for record in reader.records(None) if record.build]
    assert (build.started_at, build.completed_at) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:20.000Z")


@pytest.mark.parametrize("text", ["", "\n", JUNIT])
def test_a_text_without_command_or_failure_is_no_log(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.log").write_text(text, "utf-8")
    with pytest.raises(SourceError, match="contains no command or failure"):
        list(CiLogReader(tmp_path / "run.log").records(None))


def test_a_long_line_of_counts_costs_no_time(tmp_path: Path) -> None:
    assert_grows_linearly(
        lambda size: ci(tmp_path / "run.log", "$ pytest\n" + ("=== " + "1 failed " * size + "\n") * 5), 7_000
    )


def test_command_output_is_held_within_limits(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    printed = ("x" * 10_000 + "\n") * 40
    path.write_text("".join(f"$ step {n}\n{printed}" for n in range(16)) + "exit status 0\n", "utf-8")
    tracemalloc.start()
    (record,) = CiLogReader(path).records(None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert record.build is not None
    assert [len(task.output) > 5_000 for task in record.build.tasks] == [True] * 16
    assert peak < 4_500_000  # of 6.4 MB; a file is hashed in pieces of 1 MB


def test_a_log_without_failures_is_a_success(tmp_path: Path) -> None:
    build = ci(tmp_path / "run.log", "$ make\nall good\n==== 3 passed in 0.1s ====\n")
    assert build.build_outcome == "success"
    assert [task.outcome for task in build.tasks] == ["success"]


@pytest.mark.parametrize("mark", ["#", "ℹ"])
def test_a_command_whose_node_tests_failed_has_failed(tmp_path: Path, mark: str) -> None:
    counts = f"{mark} pass 1\n{mark} fail %d\n"
    for failed, outcome in ((1, "failure"), (0, "success")):
        build = ci(tmp_path / "run.log", f"$ node --test\n{counts % failed}")
        assert [task.outcome for task in build.tasks] == [build.build_outcome] == [outcome]
    with pytest.raises(SourceError, match="contains no command or failure"):
        ci(tmp_path / "run.log", counts % 1)


@pytest.mark.parametrize(
    "verdict",
    ["FAILED (failures=1)", "error: could not compile `cart`", "[INFO] BUILD FAILURE", "2 failed in 0.3s", "FAIL"],
)
def test_the_last_line_of_a_check_tells_that_it_failed(tmp_path: Path, verdict: str) -> None:
    build = ci(tmp_path / "run.log", f"$ ./check\nran 3 tests\n{verdict}\n")
    assert (build.build_outcome, build.build_summary) == ("failure", verdict)
    assert [task.outcome for task in build.tasks] == ["failure"]


def test_the_line_that_names_what_failed_is_the_summary(tmp_path: Path) -> None:
    build = ci(tmp_path / "run.log", "$ go test ./...\nFAIL\nFAIL\tshop/cart\t0.2s\nFAIL\n")
    assert build.build_summary == "FAIL shop/cart 0.2s"


def test_a_time_within_a_line_is_part_of_it(tmp_path: Path) -> None:
    log = "10:00:01  $ ls\n10:00:02  began at 12:30:11  here\n10:00:03  exit status 0\n"
    (task,) = ci(tmp_path / "run.log", log).tasks
    assert task.output == "began at 12:30:11  here\nexit status 0"
