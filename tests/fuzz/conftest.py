"""The table of what was tried, printed at the end."""

from __future__ import annotations

import logging

import pytest

from tests.fuzz.harness import HEADING, Outcome

_OUTCOMES: list[Outcome] = []


@pytest.fixture
def outcomes(caplog: pytest.LogCaptureFixture) -> list[Outcome]:
    """Return where outcomes are put for the table; what memgraph logs of thousands of cases is not kept."""
    caplog.set_level(logging.CRITICAL, "memgraph")
    return _OUTCOMES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _OUTCOMES:
        terminalreporter.section("fuzzing")
        for line in (HEADING, *(outcome.row() for outcome in _OUTCOMES)):
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"{sum(outcome.cases for outcome in _OUTCOMES):,} cases in all")
