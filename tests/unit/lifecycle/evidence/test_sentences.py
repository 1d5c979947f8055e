"""What of an episode may be told elsewhere: whole sentences, without raw data and without what only one case has."""

from __future__ import annotations

import pytest

from memgraph.lifecycle.evidence.sentences import in_general, most_central, requests, sentences_of, without_numbers


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("One thing broke. Another thing held!", ["One thing broke.", "Another thing held!"]),
        ("However, the cache was stale.", ["The cache was stale."]),
        ("## Read the **bold** [guide](http://x.org/a) first.", ["Read the bold guide first."]),
        ("This sentence was cut before … Last words of it.", ["Last words of it."]),
        ('It said {"error": 1} to us. The rest was fine.', ["The rest was fine."]),
        ("Same words here. Same words here.", ["Same words here."]),
        ("OK. 2. Fine.", []),
        ("", []),
    ],
)
def test_only_whole_sentences_of_prose_are_kept(text: str, told: list[str]) -> None:
    assert sentences_of(text) == told


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("I fly to Rome on May 20th.", "I fly to Rome."),
        ("It was due by 2024-05-20 at the gate.", "It was due at the gate."),
        ("My user is ann_li_3668.", "My user is (an id)."),
        ("Please take M05KNL for me.", "Please take (a code) for me."),
        ("Kitchen env_77 and version 3.11 stay.", "Kitchen env_77 and version 3.11 stay."),
    ],
)
def test_details_of_one_case_are_removed_or_replaced_with_their_kind(sentence: str, told: str) -> None:
    assert in_general([sentence]) == [told]


def test_sentences_without_such_details_are_preferred() -> None:
    assert in_general(["My user is ann_li_3668.", "I want to book a flight."]) == ["I want to book a flight."]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("Error: sums differ, total is 305, but paid 255", "sums differ"),
        ("ValueError: total is 305", "total is 305"),
        ("no seats left", "no seats left"),
    ],
)
def test_errors_without_their_numbers(error: str, told: str) -> None:
    assert without_numbers(error) == told


def test_the_most_central_and_the_advice_about_it() -> None:
    told = [
        "Weather was nice.",
        "The token expired during the login.",
        "You should renew the token before the login.",
        "I will look at something else again.",
    ]
    assert most_central(told, room=400) == told[1:3]
    assert most_central(told, room=40) == told[1:2]
    assert most_central(told, room=5) == []


def test_requests_are_preferred_to_small_talk() -> None:
    said = [
        "I don't remember the number of it.",
        "I'd like to know my balance.",
        "I want to change the return flight to Monday.",
    ]
    assert requests(said, room=180) == said[1:]
