"""``memgraph contradictions``: what is open is listed, decided, dismissed, and each answer says how to take it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli

YES, NO = "The importer handles empty files", "The importer does not handle empty files"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., Any]:

    def call(*args: str) -> Any:
        return CliRunner().invoke(
            cli,
            ["--home", str(tmp_path / "store"), *args],
            prog_name="memgraph",
            obj=settings(),
        )

    return call


@pytest.fixture
def done(run: Callable[..., Any]) -> Callable[..., str]:
    """Run a command that must succeed, and return what it printed on stdout."""

    def call(*args: str) -> str:
        result = run(*args)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return call


@pytest.fixture
def ids(done: Callable[..., str]) -> list[str]:
    """Observe two things that contradict each other, and return their ids, the older one's first."""
    return [json.loads(done("observe", text, "--project", "shop", "--json"))["memory_id"] for text in (YES, NO)]


def test_what_is_open_is_listed(done: Callable[..., str], ids: list[str]) -> None:
    told = done("contradictions")
    assert told == done("contradictions", "list", "--project", "shop")
    assert told.splitlines()[0] == "the newer one says that it is not so"
    assert told.index(NO) < told.index(YES)
    (found,) = json.loads(done("contradictions", "list", "--json"))
    assert ([found["newer"]["id"], found["older"]["id"]], found["score"]) == (ids[::-1], 1.0)
    assert "embedding" not in found["newer"]

    assert json.loads(done("contradictions", "list", "--project", "bank", "--json")) == []
    assert done("contradictions", "list", "--decided") == "No contradiction was resolved.\n"


def test_the_list_says_how_many_questions_wait_and_where(done: Callable[..., str]) -> None:
    asked = "1 open question about contradictions: `memgraph distil` lists what to answer."
    for text in ("The night shift answers the depot's alarms", "The depot's alarms are answered by the yard office"):
        done("observe", text, "--project", "shop")
    done("sleep")
    assert done("contradictions").splitlines() == ["No contradictions.", asked]
    assert done("contradictions", "list", "--project", "bank") == "No contradictions.\n"
    assert done("contradictions", "list", "--decided") == "No contradiction was resolved.\n"
    assert json.loads(done("contradictions", "list", "--json")) == []
    assert len(done("distil").splitlines()) == 1
    done("distil", "skip", done("distil")[:8])
    assert done("contradictions") == "No contradictions.\n"


def test_the_user_decides_and_takes_it_back(done: Callable[..., str], ids: list[str]) -> None:
    short = [one[:8] for one in ids]
    told = done("contradictions", "resolve", *short, "--keep", short[0], "--reason", "tried it")
    assert told.startswith(f"'{YES}' replaces '{NO}'; undo: memgraph ")
    assert done("contradictions") == "No contradictions.\n"
    assert YES in done("contradictions", "list", "--decided")

    done(*told.strip().rpartition("undo: memgraph ")[2].split())
    assert YES in done("contradictions")


def test_a_dismissal_of_a_resolved_pair_says_that_both_hold_and_is_undone(
    done: Callable[..., str], ids: list[str]
) -> None:
    done("contradictions", "resolve", *ids, "--keep", ids[0])
    told = done("contradictions", "dismiss", *ids)
    assert told.startswith("No contradiction, so both hold again: ")
    assert done("list", "--state", "superseded") == ""
    done(*told.strip().rpartition("undo: memgraph ")[2].split())
    assert ids[1] in done("list", "--state", "superseded")


def test_what_is_none_is_dismissed_and_that_is_taken_back(done: Callable[..., str], ids: list[str]) -> None:
    told = done("contradictions", "dismiss", *ids)
    assert done("contradictions") == "No contradictions.\n"
    done(*told.strip().rpartition("undo: memgraph ")[2].split())
    assert YES in done("contradictions")


def edited_in(done: Callable[..., str], old: str, new: str) -> None:
    """Remember two texts, the second one by an edit: edits are not compared at once."""
    done("remember", old)
    done("edit", json.loads(done("remember", "Nothing of that", "--json"))["data"]["ids"][0], "--content", new)


def test_what_remembering_replaced_is_in_force_again_after_the_printed_undo(done: Callable[..., str]) -> None:
    done("remember", "The deploy port of the shop is 8080.")
    told = done("remember", "The deploy port of the shop is 9090.")
    assert "replaces 1 memory" in told
    for command in told.strip().rpartition("undo: ")[2].split("; "):
        done(*command.removeprefix("memgraph ").split())
    assert "8080" in done("recall", "what is the deploy port of the shop")
    assert "9090" not in done("list")


def test_a_search_reports_what_it_found(done: Callable[..., str]) -> None:
    edited_in(done, "The deploy port of the shop is 8080.", "The deploy port of the shop is 9090.")
    assert done("contradictions", "find").splitlines() == [
        "Compared 2 memories with the valid ones.",
        "1 memory replaced by a later one about the same thing; undo: memgraph undo.",
    ]
    assert json.loads(done("contradictions", "find", "--json"))["looked_at"] == 0


def test_what_a_person_decides_is_the_users_and_what_undo_takes_back(
    done: Callable[..., str], run: Callable[..., Any], ids: list[str]
) -> None:
    done("remember", "Deploy on Tuesdays only")
    done("contradictions", "resolve", *ids, "--keep", ids[0])
    told = done("undo")
    assert "Undid event" in told
    assert "linked: SUPERSEDES" in told
    assert YES in done("contradictions")

    done("contradictions", "dismiss", *ids)
    done("undo")
    assert YES in done("contradictions")

    episode = json.loads(
        done("episode", "A deploy", "--reasoning", "none", "--action", "deployed", "--outcome", "success", "--json")
    )["episode_id"]
    done("feedback", episode, "meh")
    assert "outcome" in done("undo")
    assert json.loads(done("show", episode, "--json"))["memory"]["outcome"] == "positive"
    assert "Tuesdays" in done("list")


def test_what_a_person_searched_for_is_undone_first(done: Callable[..., str]) -> None:
    edited_in(done, "The deploy port of the shop is 8080.", "The deploy port of the shop is 9090.")
    assert "undo: memgraph undo." in done("contradictions", "find")
    assert "linked: SUPERSEDES" in done("undo")
    assert done("list", "--state", "superseded") == ""


def test_undo_does_not_reach_behind_what_another_did(done: Callable[..., str], run: Callable[..., Any]) -> None:
    mine = json.loads(done("remember", "Deploy on Tuesdays only", "--json"))["data"]["ids"][0]
    done("observe", "The staging server is called heron")
    refused = run("undo")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("memgraph: nothing was undone: the last change, ")
    assert "memory.added by the agent" in refused.stderr
    assert "is not by the user" in refused.stderr
    own = json.loads(done("history", mine, "--json"))[0]["event"]
    assert f"`memgraph undo {own}` undoes the last change by the user" in refused.stderr
    assert "which had added: “Deploy on Tuesdays only”" in done("undo", str(own))


def test_what_cannot_be_is_refused_in_one_line(
    run: Callable[..., Any], done: Callable[..., str], ids: list[str]
) -> None:
    other = json.loads(done("observe", "The shop sells shoes", "--json"))["memory_id"]
    for args, code in (
        (["dismiss", ids[0], other], 1),
        (["resolve", *ids, "--keep", other], 1),
        (["resolve", ids[0], "00000000", "--keep", ids[0]], 1),
        (["resolve", *ids], 2),
    ):
        result = run("contradictions", *args)
        assert result.exit_code == code
        assert result.stdout == ""
        assert "Traceback" not in result.stderr


@pytest.fixture
def with_model(tmp_path: Path, configured: Callable[[], Any]) -> Callable[..., str]:
    """Run a command with the configured model, and return what it printed on stdout."""

    def call(*args: str) -> str:
        result = CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), *args], obj=configured())
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return call


@pytest.mark.parametrize(
    ("command", "before", "after", "question"),
    [
        ("remember", "We use Jest for unit tests", "We migrated from Jest to Vitest", "which test runner do we use"),
        ("observe", "We use Jest for unit tests", "We migrated from Jest to Vitest", "which test runner do we use"),
        ("observe", "We use Redux for state", "We replaced Redux with Zustand", "which state library do we use"),
        ("observe", "The project uses npm", "We moved from npm to pnpm", "install a package in the project"),
        (
            "observe",
            "We use MySQL in production",
            "We switched from MySQL to Postgres",
            "which database do we use in production",
        ),
        ("observe", "Deploys go through Jenkins", "We no longer use Jenkins", "how do deploys run"),
        ("observe", "Format the code with black", "We use ruff instead of black", "how is the code formatted"),
        ("observe", "We log with winston", "We dropped winston in favour of pino", "which logger do we use"),
        (
            "observe",
            "The API is written in Flask",
            "Flask was replaced by FastAPI",
            "which web framework is the API written in",
        ),
        (
            "remember",
            "We publish the docs with GitLab CI",
            "Publishing no longer runs on GitLab, it now runs on Buildkite",
            "how are the docs published",
        ),
        (
            "observe",
            "We build the docs with mkdocs",
            "The docs are no longer built with mkdocs; they are now built with hugo",
            "how are the docs built",
        ),
        (
            "observe",
            "Reports are sent on Mondays",
            "Reports are no longer sent on Mondays, they are now sent on Fridays",
            "when are reports sent",
        ),
        (
            "observe",
            "We run the tests on Python 3.9",
            "Testing does not run on Python 3.9 any more and now runs on Python 3.12",
            "which Python runs the tests",
        ),
    ],
)
def test_a_stated_replacement_is_recalled_without_the_old_statement(
    with_model: Callable[..., str], command: str, before: str, after: str, question: str
) -> None:
    with_model(command, before)
    with_model(command, after)
    told = with_model("recall", question)
    assert after in told
    assert before not in told


@pytest.mark.parametrize(
    ("before", "after", "question"),
    [
        (
            "Jenkins is our CI server",
            "We migrated the builds from Jenkins to GitHub Actions",
            "which CI server builds the project",
        ),
        (
            "We publish docs with GitLab and wheels with Travis",
            "Publishing no longer runs on GitLab, it now runs on Buildkite",
            "how do we publish",
        ),
    ],
)
def test_where_a_part_may_be_meant_the_older_statement_is_marked(
    with_model: Callable[..., str], before: str, after: str, question: str
) -> None:
    with_model("observe", before)
    with_model("observe", after)
    told = with_model("recall", question).splitlines()
    (old,) = (line for line in told if before in line)
    (new,) = (line for line in told if after in line)
    assert "contradicted by the newer line above" in old
    assert told.index(new) < told.index(old)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("We use Jest for the frontend tests", "We migrated the backend tests from Mocha to Vitest"),
        ("Redux stores are slow to test", "We replaced Redux with Zustand"),
        ("We use npm for the docs site", "The backend moved from yarn to pnpm"),
        ("MySQL 8 needs a larger connection pool", "We switched from MySQL to Postgres"),
        ("We use Docker", "We no longer use Docker Compose"),
        ("We use Jest for unit tests", "We might migrate from Jest to Vitest"),
        ("We use Redux for state", "We plan to replace Redux with Zustand"),
        ("The release moved from May to June", "We use June for invoices"),
        ("We found a race in Redux", "We replaced Redux with Zustand"),
        ("We use npm", "Facebook migrated from npm to yarn"),
        ("We use npm", "It is not true that we switched from npm to pnpm"),
        ("We use npm", "Nobody switched from npm to pnpm"),
        ("We use npm", "npm is not used by mistake"),
        ("We use Docker", "Interns do not use Docker"),
        ("Publishing runs on GitLab", "Publishing no longer runs nightly"),
        ("We publish the docs with GitLab CI", "Publishing no longer fails on GitLab, it now takes three minutes"),
        ("We publish the docs with GitLab CI", "The mobile team no longer publishes on GitLab, it now uses Buildkite"),
        ("The docs are stored on GitLab", "The docs are no longer reviewed on GitLab, they are now reviewed on Gerrit"),
        ("The API tests run on Heroku", "The API no longer runs on Heroku, it now runs on Fly"),
        ("We run the API tests on Heroku", "The API no longer runs on Heroku, it now runs on Fly"),
        ("We build the docs with mkdocs", "The docs are no longer built with mkdocs, they use hugo, except in CI"),
    ],
)
def test_a_plan_or_another_matter_replaces_nothing(with_model: Callable[..., str], before: str, after: str) -> None:
    with_model("observe", before)
    with_model("observe", after)
    assert {one["content"] for one in json.loads(with_model("list", "--json"))} == {before, after}
    assert json.loads(with_model("contradictions", "list", "--json")) == []
