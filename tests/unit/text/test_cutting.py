"""Summaries: extractive, short, and of whole sentences where these fit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.text.attempts import NOT_VERIFIED
from memgraph.text.cutting import SUMMARY_CHARS, summary_of, whole_sentences

EPISODE = (
    "The refresh of the token failed with 401 because the proxy strips the header on a redirect. Reasoning: the gateway "
    "keeps cookies and drops the header when it upgrades the connection, which nobody had noticed before. "
    "Action: moved to session cookies. Outcome: failure."
)


def test_it_says_what_it_was_about_and_what_came_of_it() -> None:
    assert summary_of(EPISODE) == (
        "The refresh of the token failed with 401 because the proxy strips the header on a redirect. "
        "Action: moved to session cookies. Outcome: failure."
    )


def test_whole_sentences_end_where_the_next_one_does_not_fit() -> None:
    assert whole_sentences("Open the door. Then cool the pan in the fridge.", 20) == "Open the door."
    assert whole_sentences("Open the door. Then go.", 80) == "Open the door. Then go."
    assert (
        whole_sentences("Two steps. 1. Open the door. 2. Cool the pan in the fridge.", 40)
        == "Two steps. 1. Open the door."
    )
    assert whole_sentences("Open the door of the kitchen", 10) == "Open the…"


def test_what_nobody_verified_is_no_part_of_a_summary() -> None:
    for quoted in (EPISODE, "Deploys are frozen."):
        summary = summary_of(f"“{quoted}”{NOT_VERIFIED}{'It thaws in the hall. ' * 9}")
        assert summary == (summary_of(quoted) or quoted)


def test_a_short_text_is_its_own_summary() -> None:
    assert summary_of("x" * SUMMARY_CHARS) is None
    assert summary_of("x" * (SUMMARY_CHARS + 1)) is not None


def test_sentences_that_are_too_long_are_cut_between_words() -> None:
    found = summary_of("The build " + "failed again and " * 30 + "again. It was mended.")
    assert found is not None
    assert found.endswith("… It was mended.")
    assert set(found.removesuffix("… It was mended.").split()) <= {"The", "build", "failed", "again", "and"}


pieces = st.lists(st.sampled_from(["yes.", "word ", "x" * 90, "。", "\n", "Ünï! "]), min_size=60, max_size=90)


@settings(max_examples=40, database=None)
@given(pieces.map("".join))
def test_it_is_never_too_long_and_always_the_same(text: str) -> None:
    found = summary_of(text)
    assert found == summary_of(text)
    if found is not None:
        assert 0 < len(found) <= SUMMARY_CHARS
