"""Repeated errors: whose fault they are, what prevents them, and who tells of them, on a real embedded graph."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.lifecycle.antipatterns import SOURCE, analyse_errors
from memgraph.lifecycle.compress import compress
from memgraph.lifecycle.remedies import kind_of, remedy_of, tried_in

Store = Any
ERROR = "KeyError: 'currency' in checkout/totals.py:88"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("requests.exceptions.ConnectionError: connection refused by 10.0.0.1:443", "external"),
        ("Error: connect ECONNREFUSED 127.0.0.1:5432", "external"),
        ("openai.RateLimitError: Too Many Requests", "external"),
        ("HTTP 503: Service Unavailable", "external"),
        ("Could not resolve host: pypi.org", "external"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'config.toml'", "configuration"),
        ("ModuleNotFoundError: No module named 'kuzu'", "configuration"),
        ("bash: make: command not found", "configuration"),
        ("the environment variable DATABASE_URL is not set", "configuration"),
        ("ERROR: Could not find a version that satisfies the requirement", "configuration"),
        ("PermissionError: [Errno 13] Permission denied: '/etc/hosts'", "configuration"),
        ("HTTP 401 Unauthorized", "configuration"),
        (ERROR, "internal"),
        ("AssertionError: expected 3, got 5", "internal"),
        ("SyntaxError: unmatched ')'", "internal"),
        ("The connection pool is sized wrongly, error 5030", "internal"),
    ],
)
def test_whose_fault_an_error_is(error: str, kind: str) -> None:
    assert kind_of(error) == kind


@pytest.mark.parametrize(
    ("content", "tried", "remedy"),
    [
        ("`make test` failed (E1); what worked: `make test JOBS=1`. It was slow.", "`make test`", "`make test JOBS=1`"),
        ("`make` failed (E1); it worked after a.py, b.py had been edited. So.", "`make`", "edit a.py, b.py"),
        ("`make` failed (E1); it worked after `make clean`. So.", "`make`", "`make clean`"),
        ("`make` failed (E1); it worked when it was run again. I must not run two at once.", "`make`", "I must not run two at once."),
        ("MARS failed at “Deploy the shop” (run.py): E1.", "“Deploy the shop”", None),
        ("Failed trial: Q. Lesson: I assumed both were the same. I should search each.", "I assumed both were the same.", None),
    ],
)  # fmt: skip
def test_what_was_tried_and_what_helped_are_read_from_what_an_episode_says(
    content: str, tried: str, remedy: str | None
) -> None:
    outcome = "positive" if remedy else "negative"
    row = {"id": "i", "content": content, "outcome": outcome}
    assert (tried_in(row), remedy_of(row)) == (tried, remedy)


def failed(n: int, **fields: Any) -> dict[str, Any]:
    base = {"type": "episodic", "project_id": "shop", "outcome": "negative", "build_id": f"b{n}", "tags": [f"only-{n}"]}
    error = {"type": "KeyError", "message": ERROR}
    return {
        **base,
        "content": f"MARS failed at “Total of order {n}”: {ERROR}.",
        "errors_encountered": [error],
        **fields,
    }


def mended(n: int, **fields: Any) -> dict[str, Any]:
    told = f"`pytest -k total` failed ({ERROR}); it worked after checkout/totals.py had been edited. Default it."
    return {**failed(n), "outcome": "positive", "content": told, **fields}


def learn(store: Store, *episodes: dict[str, Any]) -> list[str]:
    return [one.id for one in store.insert_memories(list(episodes))]


def antipatterns(store: Store) -> list[Any]:
    return [one for one in store.query_by_type("semantic") if one.source == SOURCE]


class TestAntiPatterns:
    def test_an_error_of_three_builds_becomes_one_with_what_helped(self, store: Store) -> None:
        ids = learn(store, failed(1), failed(2), mended(3))
        result = analyse_errors(store)
        assert (result.failures, result.internal, result.created) == (2, 2, 1)
        (made,) = antipatterns(store)
        assert made.incorrect_approach == "“Total of order 2”"
        assert made.correct_approach == "edit checkout/totals.py"
        assert (made.category, made.confidence, made.outcome) == ("internal error", 0.7, "negative")
        assert made.supporting_memory_ids == sorted(ids)
        assert made.evidence_build_ids == ["b1", "b2", "b3"]
        assert "came up in 3 builds, and stayed in 2 of them. What helped: edit checkout/totals.py." in made.content
        (error,) = result.repeated
        assert (error.builds, error.remedy, error.memory_id) == (3, "edit checkout/totals.py", made.id)

    def test_two_builds_are_no_pattern_nor_is_the_same_one_thrice(self, store: Store) -> None:
        learn(store, failed(1), failed(2), failed(2, content="Again."))
        assert (analyse_errors(store).created, antipatterns(store)) == (0, [])

    def test_what_helped_later_in_the_same_build_counts_without_naming_the_error(self, store: Store) -> None:
        about = {"title": "checkout/totals.py"}
        helped = {
            "content": "`pytest` failed (E); what worked: `pytest --currency EUR`.",
            "errors_encountered": [],
            "outcome": "positive",
        }
        learn(store, failed(1), failed(2), failed(3, **about), {**failed(3), **about, **helped})
        analyse_errors(store)
        assert antipatterns(store)[0].correct_approach == "`pytest --currency EUR`"

    def test_a_lesson_that_was_drawn_again_and_again_did_not_help(self, store: Store) -> None:
        told = "Failed trial: env_4. Lesson: I will look in the drawer first."
        learn(store, failed(1, content=told, errors_encountered=[], evidence_build_ids=["b1", "b2", "b3"]))
        analyse_errors(store)
        (made,) = antipatterns(store)
        said = "Much the same lesson was drawn from 3 failed trials, so it did not help by itself: “I will look in the drawer first.” (env_4)."
        assert (made.content, made.incorrect_approach) == (said, "I will look in the drawer first.")

    def test_services_and_settings_are_told_apart(self, store: Store) -> None:
        down = {"type": "e", "message": "connect ECONNREFUSED 10.0.0.1"}
        learn(store, *(failed(n, errors_encountered=[down]) for n in range(3)))
        result = analyse_errors(store)
        assert (result.external, result.internal) == (3, 0)
        (made,) = antipatterns(store)
        assert made.category == "external error"
        assert "not one's own" in made.content


class TestAgain:
    def test_unchanged_nothing_is_written_and_grown_it_is_brought_up(self, store: Store) -> None:
        learn(store, failed(1), failed(2), failed(3))
        analyse_errors(store)
        before = store.digest(), store._journal.tail.chain.seq
        assert not analyse_errors(store).updated
        assert (store.digest(), store._journal.tail.chain.seq) == before
        (made,) = antipatterns(store)
        learn(store, mended(4))
        result = analyse_errors(store)
        assert (result.created, result.updated) == (0, 1)
        (after,) = antipatterns(store)
        assert (after.id, after.confidence, after.correct_approach) == (made.id, 0.8, "edit checkout/totals.py")
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest

    def test_what_was_put_away_is_not_made_again_and_what_was_disproved_is_taken_back(self, store: Store) -> None:
        ids = learn(store, failed(1), failed(2), failed(3))
        analyse_errors(store)
        (made,) = antipatterns(store)
        store.suppress(made.id)
        learn(store, failed(4))
        assert analyse_errors(store).created == 0
        store.unsuppress(made.id)
        for one in ids:
            store.invalidate(one)
        analyse_errors(store)
        assert antipatterns(store) == []


class TestBesideCompression:
    def compressed(self, store: Store) -> Any:
        compress(store, embedder=store.embedder)
        (made,) = [
            one for one in store.query_by_type("semantic") if one.source == "compression" and one.outcome == "negative"
        ]
        return made

    def test_its_generalisation_is_told_what_to_avoid_instead_of_a_second_one(self, store: Store) -> None:
        learn(store, *(failed(n, tags=["checkout", "totals"]) for n in (1, 2, 3)), mended(9, tags=["other"]))
        made = self.compressed(store)
        result = analyse_errors(store)
        assert (result.created, result.updated, antipatterns(store)) == (0, 1, [])
        after = store.get_memory(made.id)
        assert after.content == made.content
        assert (after.incorrect_approach, after.correct_approach) == ("“Total of order 3”", "edit checkout/totals.py")
        assert after.category == "internal error"
        assert result.repeated[0].memory_id == made.id
        assert not compress(store, embedder=store.embedder).updated
        assert not analyse_errors(store).updated

    def test_what_it_comes_to_cover_is_superseded(self, store: Store) -> None:
        ids = learn(store, failed(1), failed(2), failed(3))
        analyse_errors(store)
        (own,) = antipatterns(store)
        for one in ids:
            store.update_memory(one, tags=["checkout", "totals"])
        made = self.compressed(store)
        assert analyse_errors(store).superseded == 1
        links = {(link.source_id, link.target_id) for link in store.links(own.id) if link.relation == "SUPERSEDES"}
        assert links == {(made.id, own.id)}
        assert not analyse_errors(store).superseded
