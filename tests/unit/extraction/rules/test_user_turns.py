"""What the rules keep of invented turns of users, and what they pass over.

`user_turns.jsonl` holds a turn a line: what was said, and a word of what it says to hold from now on (null: nothing).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memgraph.extraction.rules.user import statements_in

_TURNS = [json.loads(line) for line in Path(__file__).with_name("user_turns.jsonl").read_text().splitlines()]


def stated(said: str) -> str:
    return " ".join(one.text for one in statements_in(said))


@pytest.mark.parametrize("turn", _TURNS, ids=lambda turn: turn["said"][:40])
def test_a_turn_is_kept_by_what_it_says_to_hold(turn: dict[str, str | None]) -> None:
    found = stated(str(turn["said"]))
    assert (turn["states"].casefold() in found.casefold()) if turn["states"] else found == ""


def test_what_may_hold_only_for_what_is_being_done_is_none() -> None:
    for said in (
        "Make sure that numbers in invoice items do not wrap.",
        "i want the header to be bigger",
        "The build has to work offline.",
    ):
        assert statements_in(said) == []


def test_a_fact_and_the_rule_that_points_to_it_are_one_statement() -> None:
    (found,) = statements_in("The cart is shared by both shops. It must never be cleared.")
    assert (found.kind, found.text) == ("instruction", "The cart is shared by both shops. It must never be cleared.")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Glaze the cups.\n\nDo NOT:\n- start the kiln\n- open\n  the door", "Do NOT: start the kiln; open the door"),
        ("**Always:**\n1. Wedge the clay.\n2. Sign the cup.", "Always: Wedge the clay; Sign the cup"),
        ("## Glazing rules\n\n* thin coats\n* no lead\n\n## Today\nA bowl.", "Glazing rules: thin coats; no lead"),
        (
            "🚫 HARD CONSTRAINTS\n❌ Do NOT fire at night\n❌ one shelf",
            "HARD CONSTRAINTS: Do NOT fire at night; one shelf",
        ),
    ],
)
def test_a_list_of_rules_is_one_instruction_with_its_head(said: str, told: str) -> None:
    (found,) = statements_in(said)
    assert (found.kind, found.text) == ("instruction", told)


def test_a_long_list_of_rules_is_several_instructions_with_the_same_head() -> None:
    items = [f"Shelf {number} is for {'very ' * 12}tall vases." for number in range(12)]
    found = statements_in("\n- ".join(["Our rules:", *items]))
    assert all(one.text.startswith("Our rules: Shelf ") and len(one.text) <= 500 for one in found)
    assert all(any(item.rstrip(".") in one.text for one in found) for item in items)


@pytest.mark.parametrize("lead", ["The mail says:\n", "From: ada@example.org\n\n", "> "])
def test_a_list_of_rules_that_is_somebody_elses_is_none(lead: str) -> None:
    assert stated(f"{lead}Rules:\n- never fire at night\n- always glaze twice") == ""


@pytest.mark.parametrize(
    "said", ["No force pushes, please.", "No force pushes (I mean it).", "No force pushes, we’ve agreed."]
)
def test_what_somebody_says_below_a_pasted_terminal_session_is_read(said: str) -> None:
    assert stated(f"ada@till:~/shop$ git push\nEverything up-to-date\n{said}")
