"""`conflict_of`: what cannot both be so conflicts; what is merely alike does not."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import EpisodicMemory, SemanticMemory
from memgraph.lifecycle.contradictions.conflict import claims_of, conflict_of

CONFLICTING = [
    ("The deploy port is 8080", "The deploy port is now 9090", "value"),
    ("API_TIMEOUT = 30", "API_TIMEOUT: 60", "value"),
    ("The request timeout = 30 seconds", "The request timeout is 60 seconds", "value"),
    ("The config file is config/app.yaml", "The config file is now settings/app.toml.", "value"),
    ("The flag strict_ports defaults to true.", "The flag strict_ports defaults to false.", "value"),
    ("requests is pinned to 2.31", "requests is pinned to 2.32", "value"),
    ("The owner of the billing service is Anna", "The owner of the billing service is Ben", "value"),
    ("The cache is enabled in production", "The cache is disabled in production", "value"),
    ("The user likes early meetings", "The user does not like early meetings", "denial"),
    ("The parser handles tabs.", "The parser doesn't handle tabs.", "denial"),
    ("Never force-push to main", "Force-push to main", "denial"),
    ("The worker retries failed jobs", "The worker no longer retries failed jobs", "denial"),
]  # fmt: skip

ALIKE = [
    ("A click on the heater changes the state to on.", "A click on the heater changes the state to off."),
    ("Note 1 about the staging server", "Note 2 about the staging server"),
    ("Harbour number 7 opens at six", "Harbour number 8 opens at six"),
    ("Gate 49 closes when the tide is out", "Gate 56 closes when the tide is out"),
    ("Step 3 is to run the linter", "Step 4 is to run the linter"),
    ("The service supports Python 3.11", "The service supports Python 3.12"),
    ("Use `ls` to list files", "Use `find` to list files"),
    ("The API is fast and reliable", "The API is documented and reliable"),
    ("The timeout is 30 seconds", "In CI, the timeout is 60 seconds"),
    ("The worker port is 8080 (staging)", "The worker port is 9090 (production)"),
    ("The parser fails", "The parser does not fail when the file is empty"),
    ("The billing service uses Redis", "The billing service uses Postgres"),
    ("The port of the web server is 8080", "The port of the admin server is 9090"),
    ("Alice likes window seats", "Bob likes window seats"),
    ("Issue 31 is about the parser", "Issue 32 is about the parser"),
    ("Trial 3 took 20 minutes", "Trial 4 took 30 minutes"),
    ("The user visited Rome in 2023", "The user visited Rome in 2024"),
    ("Which port is the deploy port, is it 8080?", "Which port is the deploy port, is it 9090?"),
    ("She played at the 1992 Summer Olympics", "She played at the 1976 Summer Olympics"),
    ("Oakdale is a hamlet. The population was 974 at the census.", "Leland is a town. The population was 527 at the census."),
    ("The job ran at 03:15", "The job ran at 05:45"),
    ("The docs explain the install on Linux", "The docs explain the install on macOS"),
    ("The minimum password length is 8", "The maximum password length is 8"),
    ("The public API is stable", "The private API is stable"),
    ("Do not deploy on Fridays", "Do not deploy on Mondays"),
    ("The user asked for a refund on March 3", "The user asked for a refund on April 10"),
    ("Retry the request on a 429", "Retry the request on a 503"),
    ("The meeting is on Monday", "The meeting is on Thursday"),  # there may be two
    ("The deploy port is 8080", "The deploy port is 8080, behind the proxy"),
    ("Tests on Python 3.10 are slow", "Tests on Python 3.11 are slow"),
    ("The package is tested with Python 3.10", "The package is tested with Python 3.11"),
    ("The import took 20 minutes", "The import took 30 minutes"),
    ("The service runs on Kubernetes", "The service is stored on GitHub"),
    ("requests is pinned to 2.31", "urllib3 is pinned to 1.26"),
    ("The importer supports CSV", "The importer supports JSON"),
    ("The project requires Python 3.11", "The project requires Python 3.12"),  # who is asked knows; these words do not show it
    ("Always use pytest for the unit tests", "Always use unittest for the unit tests"),
    ("Always write tests for the parser", "Always write docs for the parser"),
    ("We had trouble with Redux", "We replaced Redux with Zustand"),
    ("The outage was found on Redis", "We moved from Redis to Valkey"),
    ("We never moved from Jest to Vitest", "We moved from Vitest to Bun"),
    ("We use Redux", "“The store is in src.” In other words (not verified): The store is new. We moved from Redux to Zustand"),
]  # fmt: skip


@pytest.mark.parametrize(("older", "newer", "kind"), CONFLICTING)
def test_exclusive_statements_conflict_in_either_order(older: str, newer: str, kind: str) -> None:
    for pair in ((older, newer), (newer, older)):
        found = conflict_of(*(SemanticMemory(content=text) for text in pair))
        assert found is not None
        assert found.kind == kind
        assert 0.6 <= found.score <= 1


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_merely_similar_statements_do_not_conflict(one: str, other: str) -> None:
    for pair in ((one, other), (other, one)):
        assert conflict_of(*(SemanticMemory(content=text) for text in pair)) is None


def test_a_replacement_is_replaced_in_turn() -> None:
    texts = ("We migrated from Jest to Vitest", "We moved from Vitest to Bun")
    found = conflict_of(*(SemanticMemory(content=text) for text in texts))
    assert found is not None
    assert found.is_stated


@pytest.mark.parametrize(
    ("older", "newer", "is_sure"),
    [
        ("We use Redis", "We moved from Redis to SQS", True),
        ("We use Redis", "We moved from Redis to SQS for the queue", False),
        ("Jenkins is our CI server", "We migrated the builds from Jenkins to GitHub Actions", False),
    ],
)
def test_what_may_concern_only_a_part_is_not_sure(older: str, newer: str, is_sure: bool) -> None:
    found = conflict_of(*(SemanticMemory(content=text) for text in (older, newer)))
    assert found is not None
    assert found.is_sure is is_sure


def test_the_reason_names_both_values() -> None:
    found = conflict_of(*(SemanticMemory(content=text) for text in CONFLICTING[0][:2]))
    assert found is not None
    assert found.reason == "says “9090” where the older one says “8080”"


def test_stated_subjects_must_be_equal() -> None:
    def told(text: str, file: str) -> SemanticMemory:
        return SemanticMemory.parse({"content": text, "entities": [{"name": file, "kind": "file", "about": True}]})

    older, newer = CONFLICTING[0][:2]
    assert conflict_of(told(older, "a.toml"), told(newer, "a.toml")) is not None
    assert conflict_of(told(older, "a.toml"), told(newer, "b.toml")) is None


def change(text: str, **fields: Any) -> EpisodicMemory:
    return EpisodicMemory(content=text, source="git", **fields)


@pytest.mark.parametrize(
    ("older", "newer", "does"),
    [
        ("Bump litellm to 1.2", "Bump litellm from 1.2 to 1.3", True),
        ("Update the certificates", "Ann reverted “Update the certificates of June” (commit 1a2b3c4).", False),
        ("Ann reverted “Update the certificates” (commit 1a2b3c4).", "Update the certificates of the shop.", False),
        ("Show a progress bar.", "Fix: Disabling progress bar.", False),
        ("Add support for Llama.", "Add support for Claude.", False),
        ("Add the importer.", "Remove the exporter.", False),
    ],
)  # fmt: skip
def test_a_change_conflicts_with_another_value(older: str, newer: str, does: bool) -> None:
    assert (conflict_of(change(older), change(newer)) is not None) is does


def test_a_failed_trial_and_a_later_success_are_a_recovery() -> None:
    def episode(outcome: str, action: str = "retry with a backoff") -> EpisodicMemory:
        return EpisodicMemory(
            content=f"Import {outcome}", outcome=outcome, situation="import the orders", action=action
        )

    assert conflict_of(episode("failure"), episode("success")) is None
    assert conflict_of(episode("success", "batch it"), episode("failure")) is None
    found = conflict_of(episode("success"), episode("failure"))
    assert found is not None
    assert found.kind == "outcome"


def test_events_that_differ_in_a_number_do_not_conflict() -> None:
    texts = ("The import ended at 9090 rows", "The import ended at 8080 rows")
    assert conflict_of(*(EpisodicMemory(content=text) for text in texts)) is None


def test_equal_claims_of_opposite_outcome_conflict() -> None:
    good, bad = (SemanticMemory(content="Retry on a 429", outcome=word) for word in ("success", "failure"))
    assert conflict_of(good, bad) is not None
    assert conflict_of(good, good) is None


@pytest.mark.parametrize("text", ["", "?!", "a" * 800, "= = = to to", "not not", "set to", "n't", "“”()", "is " * 200])
def test_any_text_is_accepted(text: str) -> None:
    assert claims_of(text) == claims_of(f" {text}\n")
    if text:
        assert conflict_of(SemanticMemory(content=text), SemanticMemory(content=text)) is None
