"""Conflicts: a message that asks for what a rule forbids, and the many that only mention it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.tasks.prohibitions import asks_for_forbidden
from tests.growth import assert_grows_linearly

ASKS = {
    "Never deploy on Fridays": [
        "Deploy the shop on Friday", "Please deploy it on Friday evening.", "Can you deploy on Friday?", "Run the tests and deploy on Friday",
        "Let's deploy on Fridays.", "I want you to deploy the fix this Friday", "Here is the log.\n\nERROR 5\n\nNow deploy it on Friday",
    ],
    "The user: “Never deploy on Fridays.” In other words (not verified): Deploys wait for Monday. Never delete backups.": ["Deploy the fix on Friday"],
    "No cookies": ["Use cookies for the session", "Let's switch to cookies", "Add a cookie banner"],
    "Do not use cookies": ["use cookies", "Add cookies to the shop"],
    "Don't push to main": ["push this to main", "Please push it to main!"],
    "Don’t push to main": ["push this to main"],
    "The API must not be changed": ["Change the API"],
    "Never push without review": ["Push it without review"],
    "Never deploy on Fridays unless Ann agrees": ["Deploy on Friday"],
    "No downtime": ["Schedule a downtime on Monday", "Deploy it with downtime", "Please deploy with a downtime of an hour"],
    "Always use tabs": ["Never use tabs"],
    "Cookies are not allowed": ["use cookies"],
    "Deploying on Fridays is forbidden": ["deploy it friday"],
    "It is forbidden to delete backups": ["Delete the backups"],
    "Nobody may edit the generated files": ["Edit the generated files"],
}  # fmt: skip
DOES_NOT_ASK = {
    "Never deploy on Fridays": [
        "Should we deploy on Friday?", "We never deploy on Fridays, right?", "Deploys on Friday failed", "Deploy on Thursday instead of Friday",
        "Deploy before Friday", "Prepare the deploy for Friday", "What happened with the deploy on Friday?", "Don't deploy on Friday", "Deploy on Monday",
        "Deploy on Friday failed", "Friday", "Cancel the deploy on Friday", "Is it Friday?", "",
    ],
    "The user: “Never deploy on Fridays.” In other words (not verified): Deploys wait for Monday. Never delete backups.": ["Delete the backups"],
    "No cookies": ["Remove the cookies", "What are cookies?", "The cookies are gone", "no cookies please"],
    "Do not use cookies": ["delete the cookies", "use tokens"],
    "Don't push to main": ["push to develop", "Pull from main"],
    "The API must not be changed": ["Document the API", "Was the API changed?"],
    "Never push without review": ["Push it", "Push it after the review"],
    "Never deploy on Fridays unless Ann agrees": ["Ann agreed, deploy on Friday", "Ann agrees: deploy on Friday"],
    "No downtime": [
        "Avoid downtime", "Plan the release", "Deploy it with no downtime", "Deploy it with care for downtime", "Help with the downtime",
        "Fix the problem with downtime",
    ],
    "Always use tabs": ["Use tabs"],
    "Cookies are not allowed": ["are cookies allowed?"],
    "Write in plain English": ["Write the docs"],
    "The shop has 40 customers": ["Delete the shop", "The shop has customers"],
    "Never": ["Deploy it", "never"],
}  # fmt: skip


@pytest.mark.parametrize(("rule", "message"), [(rule, one) for rule, all_ in ASKS.items() for one in all_])
def test_a_request_for_what_is_forbidden_is_found(rule: str, message: str) -> None:
    assert asks_for_forbidden(message, rule)


@pytest.mark.parametrize(("rule", "message"), [(rule, one) for rule, all_ in DOES_NOT_ASK.items() for one in all_])
def test_questions_reports_denials_and_other_requests_are_none(rule: str, message: str) -> None:
    assert not asks_for_forbidden(message, rule)


@pytest.mark.parametrize("unit", ["deploy, ", "not ", "Friday. ", "please ", "a", "("])
def test_hostile_texts_take_linear_time(unit: str) -> None:
    def check(length: int) -> None:
        message = unit * (length // len(unit))
        assert not asks_for_forbidden(message, "Never deploy on Fridays")
        asks_for_forbidden("Deploy on Friday", message[:800])

    assert_grows_linearly(check, 16_000)


_STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=200)
_WORDS = st.lists(
    st.sampled_from(
        "never do not deploy on friday unless no cookies . ? ! , and please can you ’t don't must be :".split()
    ),
    min_size=1,
    max_size=20,
).map(" ".join)


@given(message=_STORABLE | _WORDS, rule=_STORABLE | _WORDS)
def test_any_texts_can_be_compared(message: str, rule: str) -> None:
    """No text is refused, and a rule without a word forbids nothing."""
    assert asks_for_forbidden(message, rule) == asks_for_forbidden(f"{message}\n", f"{rule}\n")
    assert not asks_for_forbidden(message, "")
