"""A text repeats another one if they have eight words in a row in common."""

from __future__ import annotations

import pytest

from memgraph.text.words import Runs, words_of

TEXT = "one two three four five six seven eight nine"


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        (TEXT, True),
        ("before one two three four five six seven eight after", True),
        ("He said: “TWO three\n\tfour five, six (seven) eight nine”!", True),
        ("one two three four five six seven", False),
        ("one two three four and five six seven eight nine", False),
        ("", False),
    ],
)
def test_eight_words_in_a_row_are_found(text: str, repeats: bool) -> None:
    assert Runs([TEXT]).are_in(text) is repeats


@pytest.mark.parametrize(
    ("short", "text", "repeats"),
    [
        ("The staging server is heron", "we call it: the staging server is heron.", True),
        ("The staging server is heron", "the staging server is a heron", False),
        ("Use tabs", "use tabs!", True),
        ("Use tabs", "we use tabs everywhere", False),
        ("", "anything", False),
    ],
)
def test_a_shorter_text_is_found_as_a_whole(short: str, text: str, repeats: bool) -> None:
    assert Runs([short]).are_in(text) is repeats


def test_symbols_are_words_too() -> None:
    assert words_of("a → b, `c.py`!") == ["a", "→", "b", "c.py"]
    assert Runs(["a → b → c → d → e"]).are_in("see a → b → c → d → x")
