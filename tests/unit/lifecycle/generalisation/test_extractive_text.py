"""What a generalisation says: how often, around what, and its cases in their own words, in whole sentences."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.lifecycle.episodes import counted
from memgraph.lifecycle.lessons import by_centrality, generalised, said_again, title_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.registry import attempt_in

Row = dict[str, Any]


def row(content: str, *tags: str, **fields: Any) -> Row:
    base = {"id": content, "content": content, "tags": list(tags), "occurred_at": "2026-03-04T10:00:00.000Z"}
    return {**base, **attempt_in(content), **fields}


def text_of(*episodes: Row, outcome: str = "positive", builds: int = 4, **told: Any) -> str | None:
    evidence = frozenset(f"b{n}" for n in range(builds))
    times = sorted(one["occurred_at"] for one in episodes)
    return generalised(list(episodes), outcome, counted(evidence, episodes), times=times, **told)[0]


class TestTheSame:
    def test_accounts_that_say_something_else_are_told_with_their_dates(self) -> None:
        told = text_of(
            row("The nightly export timed out.", "failure", "export"),
            row("The export hung since two jobs held one lock. (lock.py)", "failure", "export", title="jobs/lock.py"),
            row("The nightly export timed out again.", "failure", "export", occurred_at="2026-05-01T00:00:00.000Z"),
            outcome="negative",
            against=2,
        )
        assert told == (
            "The same failed with `export` in 4 builds, from March to May 2026: “The nightly export timed out” (4 March 2026). "
            "Also: “The export hung since two jobs held one lock” (4 March 2026). It went well in 2 other builds."
        )

    def test_what_was_added_or_changed_again_and_again_is_no_lesson(self) -> None:
        assert text_of(*(row(f"Support {name} models.", "feature", "models") for name in ("large", "small"))) is None

    def test_what_a_user_said_is_told_by_its_own_memory(self) -> None:
        said = ("The user said: The shop build fails.", "The user said: The shop build is red.")
        assert text_of(*(row(one, "statement", "user") for one in said), outcome="unknown") is None


def mended(number: int, said: str, **fields: Any) -> Row:
    day = f"2026-0{number}-04T10:00:00.000Z"
    return row(said, "fix", git_commit=f"c{number}", build_id=f"b{number}", occurred_at=day, **fields)


class TestSaidAgain:
    """Changes of a history are generalised if they state the same, word for word."""

    cause = "The cache key left out the locale."
    changes = (
        mended(1, f"Fix the German prices. {cause} (cart.py)", title="shop/cart.py"),
        mended(2, f"Stop mixing up invoices. {cause} See the log of the night.", title="shop/invoice.py"),
        mended(3, f"Repair the footer. {cause.upper()} (page.py)", title="shop/page.py"),
    )

    def test_a_cause_that_three_builds_state(self) -> None:
        other = mended(4, "Fix the prices of bags. The cache key left out the bag.")
        assert said_again([*self.changes, other]) == [list(self.changes)]
        assert text_of(*self.changes, builds=3) == (
            "Stated in 3 builds, from January to March 2026: “The cache key left out the locale”."
        )

    def test_fewer_builds_or_another_number_state_nothing_again(self) -> None:
        assert said_again(self.changes[:2]) == []
        told = (f"Raise the limit. The pool is limited to {number} open connections." for number in (10, 20, 30))
        assert said_again([mended(number, one) for number, one in enumerate(told, start=1)]) == []

    def test_what_is_covered_grows_by_one(self) -> None:
        assert said_again(self.changes[:2], {self.changes[0]["id"]}) == [list(self.changes[:2])]


class TestOneSeenAgainAndAgain:
    """What was merged into one episode is told as what holds of all these times, not as the episode once more."""

    def test_a_lesson_of_a_task(self) -> None:
        lesson = "I was stuck in a loop with the fridge. I should have opened it first."
        assert text_of(
            row(f"Failed trial: Kitchen 89. Lesson: {lesson}", "lesson", outcome="negative"), outcome="negative"
        ) == (f"Failed in 4 trials of Kitchen 89. The lesson: “{lesson}”")

    def test_a_conversation(self) -> None:
        asked = (
            "Hi! I'm looking to book a flight from Oslo to Rome. What was done: get_user, book_flight (calls: 8, failed: "
            "1). Last error: Error: payment does not add up"
        )
        assert text_of(row(f"Failed trial: {asked}", "failure", outcome="negative"), outcome="negative") == (
            "Failed in 4 trials: “Hi! I'm looking to book a flight from Oslo to Rome.” Their last error was: Error: payment does "
            "not add up."
        )

    def test_anything_else_says_where_and_how_often(self) -> None:
        told = text_of(row("Fix: Close the pool before the fork. (pool.py)", "fix", title="db/pool.py"), builds=3)
        assert (
            told
            == "The same had to be fixed with `pool.py` in 3 builds, in March 2026: Close the pool before the fork."
        )

    def test_without_a_sentence_there_is_no_lesson(self) -> None:
        assert text_of(row('{"a": 1}', "auth", "jwt"), outcome="negative") is None


class TestTrials:
    def trial(self, about: str, lead: str = "Failed trial", number: int = 0, **fields: Any) -> Row:
        return row(
            f"{lead}: {about}",
            "lesson",
            **{
                "source": "trial",
                "source_event_ids": [f"b{number}/env_7"],
                "evidence_build_ids": [f"b{number}"],
                "occurred_at": f"2000-01-0{number + 1}T00:00:00.000Z",
                "attempt": number,
                "outcome": "negative" if lead.startswith("Failed") else "positive",
                **fields,
            },
        )

    def told(self, *solved: Row) -> str:
        failed = self.trial(
            "Kitchen 7. Lesson: I should have opened the fridge.", evidence_build_ids=["b0", "b1", "b3", "b5"]
        )
        return text_of(failed, outcome="negative", solved=solved)

    def test_whether_and_when_it_was_solved(self) -> None:
        lead = "Solved after a failed trial"
        two = [self.trial(f"Kitchen 7. What it acted on: Open it {n}.", lead, n) for n in (2, 4)]
        assert self.told().startswith("Never solved in 4 trials of Kitchen 7. The lesson: ")
        assert self.told(two[0]).startswith("Failed in 4 trials of Kitchen 7, solved in trial 3.")
        assert self.told(*two).startswith("Failed in 4 trials of Kitchen 7, solved in trials 3 and 5.")
        dated = [{**one, "occurred_at": "2026-03-04T10:00:00.000Z", "attempt": None} for one in two]
        assert self.told(dated[0]).startswith("Failed in 4 trials of Kitchen 7, solved in another.")
        assert self.told(*dated).startswith("Failed in 4 trials of Kitchen 7, solved in 2 others.")

    def test_one_tool_says_nothing_and_those_of_the_success_say_more(self) -> None:
        asked = "I want to fly to Rome tomorrow. What was done: "
        failed = self.trial(f"{asked}search (calls: 1, failed: 0).")
        assert text_of(failed, outcome="negative") is None  # nobody says why it failed
        told = text_of(failed, outcome="negative", solved=[self.trial(f"{asked}search, book.", "Solved", 1)])
        assert told == (
            "Failed in 4 trials, solved in trial 2: “I want to fly to Rome tomorrow.” What the solved trial called: `search` "
            "and `book`; no failed one called `book`."
        )

    def test_what_decided_the_trial_that_solved_it(self) -> None:
        asked = "I want to fly to Rome tomorrow. What was done: search (calls: 1, failed: 0)"
        decided = "Basic fares cannot be changed. In the end, `search` was called."
        solved = self.trial(f"{asked}.", "Solved", 1, explained=decided)
        assert text_of(self.trial(f"{asked}."), outcome="negative", solved=[solved]) == (
            "Failed in 4 trials, solved in trial 2: “I want to fly to Rome tomorrow.” What decided the trial that solved it: "
            "“Basic fares cannot be changed. In the end, `search` was called.”"
        )

    def test_the_calls_alone_are_no_lesson(self) -> None:
        done = "I want to fly to Rome tomorrow. What was done: search, book (calls: 4, failed: 1)."
        errors = ["Last error: no seats", "Last error: no such date", "Last error: no such user"]
        assert (
            text_of(*(self.trial(f"{done} {error}", number=n) for n, error in enumerate(errors)), outcome="negative")
            is None
        )


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
def test_it_fits_and_is_never_cut_within_a_sentence(length: int, sentence: str) -> None:
    content = (sentence * 800)[:length].strip()
    told = text_of(
        *(row(f"{content}", "a", "b", id=str(n)) for n in range(3)), row("Something else entirely, at last.", "a", "b")
    )
    assert len(told) <= MAX_CONTENT_CHARS
    assert told.endswith(".")
    assert "…" not in told


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
    episodes = [row("odd"), row("tokens expired at login"), row("tokens expired at logout")]
    assert [one["content"] for one in by_centrality(episodes)][-1] == "odd"
    assert by_centrality(episodes[::-1]) == by_centrality(episodes)


def test_what_most_are_about() -> None:
    assert title_of([row("1", title="a.py"), row("2", title="a.py"), row("3")]) == "a.py"
    assert title_of([row("1", title="a.py"), row("2")]) is None
