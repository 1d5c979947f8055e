"""What a generalisation says: how often, around what, and its cases in their own words, in whole sentences."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.lifecycle.generalise import by_centrality, counted, generalised, shared_by
from memgraph.model.base import MAX_CONTENT_CHARS

Row = dict[str, Any]


def row(content: str, *tags: str, **fields: Any) -> Row:
    base = {"id": content, "content": content, "tags": list(tags), "occurred_at": "2026-03-04T10:00:00.000Z"}
    return {**base, **fields}


def text_of(*episodes: Row, outcome: str = "positive", builds: int = 4) -> str:
    evidence = frozenset(f"b{n}" for n in range(builds))
    return generalised(list(episodes), shared_by(episodes), outcome, counted(evidence, episodes))


def test_fixes_of_one_file() -> None:
    file = {"title": "env/swe_env.py"}
    assert (
        text_of(
            row("Fix: Quote environment variables. (swe_env.py)", "fix", "env", **file),
            row("Fix: Close the container in time.", "fix", "env", **file, occurred_at="2026-05-01T00:00:00.000Z"),
            row("Work with GitHub URLs. (repo.py)", "fix", "env", **file),
        )
        == "Fixes to `swe_env.py` were needed in 4 builds, from March to May 2026. For example: “Quote environment "
        "variables”, “Close the container in time” and “Work with GitHub URLs (repo.py)”."
    )


def test_failures_around_tags_without_a_kind() -> None:
    told = text_of(
        *(
            row(f"Token {n} expired during {word}.", "auth", "jwt")
            for n, word in enumerate(["the first login", "a late payment"])
        ),
        outcome="negative",
    )
    assert told.startswith("Work on `auth` and `jwt` went wrong in 4 builds, in March 2026. For example: “Token 0 ")


def test_work_of_several_kinds_counts_them() -> None:
    episodes = [row(f"{kind} {n}", kind, "agent", "models") for kind in ("fix", "novelty") for n in range(2)]
    assert "went well in 4 builds, in March 2026: fixes (2) and something new (2)." in text_of(*episodes)


def test_one_failure_seen_again_and_again_is_told_whole() -> None:
    lesson = row(
        f"Failed trial: Heat the egg. Lesson: {'Open the microwave first. ' * 20}".strip(),
        "lesson",
        occurred_at="2000-01-03T00:00:00.000Z",
    )
    assert text_of(lesson, outcome="negative").startswith(
        "Failed in 4 trials: Heat the egg. Lesson: Open the microwave"
    )
    assert text_of(lesson, outcome="negative").endswith(lesson["content"][-26:])


def test_what_is_unlike_the_first_is_told_too_and_what_is_like_it_is_not() -> None:
    cases = [
        "The import failed on a byte order mark.",
        "The import failed on a byte order mark again.",
        "A timeout hit the nightly export.",
    ]
    told = text_of(*(row(case, "csv", "io") for case in cases), outcome="negative")
    assert "byte order mark”" in told
    assert "again" not in told
    assert "nightly export" in told


@pytest.mark.parametrize("length", [50, 119, 125, 300, 799])
@pytest.mark.parametrize("sentence", ["word " * 7, "onewordthatdoesnotend" * 5, "Short one. "])
def test_it_fits_and_is_never_cut_within_a_sentence_that_would_do_without(length: int, sentence: str) -> None:
    content = (sentence * 800)[:length].strip()
    told = text_of(
        *(row(f"{content}", "a", "b", id=str(n)) for n in range(3)), row("Something else entirely, at last.", "a", "b")
    )
    assert len(told) <= MAX_CONTENT_CHARS
    assert told.endswith((".", "…"))
    if sentence == "Short one. " and "…" in told:
        pytest.fail(told)


def test_names_stay_as_they_are_written() -> None:
    assert "“add_hooks for the batch”" in text_of(
        row("add_hooks for the batch", "x", "y"), row("Other words.", "x", "y")
    )


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ({"b1", "b2", "b3"}, "in 3 builds"),
        ({"memory 1", "memory 2"}, "in 2 episodes"),
        ({"b1", "memory 2"}, "in 2 cases"),
    ],
)
def test_how_often(evidence: set[str], told: str) -> None:
    assert counted(frozenset(evidence), [row("x")]) == told


def test_the_most_typical_comes_first() -> None:
    episodes = [
        row("odd", "a", "b"),
        row("tokens expired at login", "a", "b", "c"),
        row("tokens expired at logout", "a", "b", "c"),
    ]
    weights = {"a": 1.0, "b": 1.0, "c": 2.0}
    assert [one["content"] for one in by_centrality(episodes, weights)][-1] == "odd"
    assert by_centrality(episodes[::-1], weights) == by_centrality(episodes, weights)


def test_what_most_have_in_common() -> None:
    thing = {"kind": "file", "name": "a.py", "about": True}
    shared = shared_by(
        [
            row("1", "A", "b", entities=[thing], title="a.py"),
            row("2", "a", "b", entities=[{**thing, "about": False}], title="a.py"),
            row("3", "c"),
        ]
    )
    assert shared.tags == ("A", "b")
    assert shared.entities == (thing,)
    assert shared.title == "a.py"
