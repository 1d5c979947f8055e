"""Each failure in the documentation is caused by a test."""

from __future__ import annotations

from pathlib import Path

from tests.crash.failures import FAILURES

TESTS = "\n".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))


def test_every_failure_is_caused_by_a_test() -> None:
    assert [failure.what for failure in FAILURES if f'"{failure.what}"' not in TESTS] == []


def test_no_failure_is_there_twice_and_each_has_a_message_or_a_note() -> None:
    assert len({failure.what for failure in FAILURES}) == len(FAILURES)
    assert [failure.what for failure in FAILURES if bool(failure.says) == bool(failure.note)] == []
