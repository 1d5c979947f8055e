"""Which texts, near each other as they are, still say different things."""

from __future__ import annotations

import pytest

from memgraph import EpisodicMemory, SemanticMemory
from memgraph.lifecycle.dedup.same import same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Alice prefers tea to coffee", "Alice prefers coffee to tea"),
        ("Job 3 depends on job 5", "Job 5 depends on job 3"),
        ("Backups go to /srv/a", "Backups go to /srv/b"),
        ("It is -5 degrees in the cold store", "It is 5 degrees in the cold store"),
        ("The call takes 5 ms", "The call takes 5 s"),
        ("Llama 12 eats 84 kg", "Llama 13 eats 91 kg"),
        ("The deadline is Friday", "The deadline is Monday"),
        ("The standup is at 9:30", "The standup is at 10:00"),
        ("Deploy to the staging server first", "Deploy to the production server first"),
    ],
)
def test_they_differ(one: str, other: str) -> None:
    assert not same(SemanticMemory(content=one), SemanticMemory(content=other), loosely=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user prefers window seats", "The user likes window seats"),
        ("Retry after 5 s", "Please retry after 5 s"),
        ("Use pnpm and not npm in this repository", "In this repository use pnpm and not npm"),
    ],
)
def test_they_do_not(one: str, other: str) -> None:
    assert same(SemanticMemory(content=one), SemanticMemory(content=other), loosely=True)


def test_words_that_are_derived_from_one_stem_differ() -> None:
    paid = [SemanticMemory(content=f"The {what} is paid by the hour") for what in ("operator", "operation")]
    assert not same(*paid)


def test_trials_of_two_tasks_differ_however_alike_they_are() -> None:
    def trial(task: str, number: int, **fields: str) -> EpisodicMemory:
        build = f"{task}-trial-{number}"
        return EpisodicMemory(
            content="Failed trial: I want to change my flight. What was done: think, update (calls: 4, failed: 1).",
            asked="I want to change my flight.",
            tools_called=["think", "update"],
            calls=4,
            failed_calls=1,
            outcome="negative",
            source="trial",
            failure_fingerprint="72488d42af1d28c3",
            source_event_ids=[f"{build}/{task}"],
            evidence_build_ids=[build],
            **fields,
        )

    assert not same(trial("task-6", 1), trial("task-7", 0), loosely=True)
    assert same(trial("task-6", 1), trial("task-6", 2))
