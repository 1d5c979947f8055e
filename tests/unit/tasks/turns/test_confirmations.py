"""Confirmations: whole short messages that agree, in several languages, and nothing else."""

from __future__ import annotations

import pytest

from memgraph import InvalidInputError
from memgraph.model.results.tasks import LANGUAGES, TurnSettings
from memgraph.tasks.turns import DENIALS, WORDS, is_confirmation, is_denial

DEFAULT = TurnSettings()


@pytest.mark.parametrize(
    "message",
    [
        "yes", "Yes.", "YES!!", " correct ", "agreed", "That's right", "that’s right.", "Yes, that's correct!", "yes please", "correct, thanks", "agreed 👍",
        "ja, genau", "oui, c'est ça", "Sí.", "esatto", "sim", "dat klopt", "да", "はい", "是的", "tak", "det stämmer",
    ],
)  # fmt: skip
def test_a_whole_short_message_that_agrees_confirms(message: str) -> None:
    assert is_confirmation(message, DEFAULT)


@pytest.mark.parametrize(
    "message",
    [
        "", " ", "no", "yes but not today", "yes, but …", "yes?", "right?", "not correct", "that's not right", "please", "thanks", "ok", "yes and deploy it",
        "Yes, use cookies", "is that correct", "yesterday", "yes " * 40, "是的吗？", "ja aber",
    ],
)  # fmt: skip
def test_anything_else_does_not(message: str) -> None:
    assert not is_confirmation(message, DEFAULT)


def test_every_listed_phrase_confirms_in_its_language() -> None:
    assert WORDS.keys() == set(LANGUAGES)
    for language, listed in WORDS.items():
        only = TurnSettings(confirmation_languages=[language])
        assert all(is_confirmation(phrase, only) for phrase in listed.split(", ")), language


def test_a_whole_short_message_that_says_no_denies() -> None:
    assert DENIALS.keys() == set(LANGUAGES)
    for language, listed in DENIALS.items():
        only = TurnSettings(confirmation_languages=[language])
        assert all(is_denial(phrase, only) for phrase in listed.split(", ")), language
        assert not any(is_confirmation(phrase, only) for phrase in listed.split(", ")), language
    assert all(is_denial(message, DEFAULT) for message in ("No.", "no, thanks", "NO!", "nein danke", "нет"))
    assert not any(
        is_denial(message, DEFAULT) for message in ("", "no?", "no, use cookies", "yes", "thanks", "not now")
    )


def test_languages_and_further_phrases_are_settings() -> None:
    english = TurnSettings(confirmation_languages=["en"], confirmations=["Make it so!"])
    assert not is_confirmation("oui", english)
    assert is_confirmation("make it so", english)
    assert is_confirmation("Yes, make it so.", english)
    assert not is_confirmation("make it so", DEFAULT)
    with pytest.raises(InvalidInputError, match="confirmation"):
        TurnSettings(confirmation_languages=["xx"])  # type: ignore[list-item]
