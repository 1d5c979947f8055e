"""What the rules keep of invented turns of users, and what they pass over.

`user_turns.jsonl` holds a turn a line: what was said, and a word of what it says to hold from now on (null: nothing).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memgraph.extraction.rules.user import own_text, statements_in
from tests.growth import assert_grows_linearly

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
        ("## Coding rules\n\n* thin coats\n* no lead\n\n## Today\nA bowl.", "Coding rules: thin coats; no lead"),
        (
            "🚫 HARD CONSTRAINTS (DO NOT BREAK)\n❌ Do NOT fire at night\n❌ one shelf",
            "HARD CONSTRAINTS (DO NOT BREAK): Do NOT fire at night; one shelf",
        ),
    ],
)
def test_a_list_of_rules_is_one_instruction_with_its_head(said: str, told: str) -> None:
    (found,) = statements_in(said)
    assert (found.kind, found.text) == ("instruction", told)


@pytest.mark.parametrize(
    "head",
    [
        "Here are the rules you need to follow",
        "Here's our rules",
        "Rules I want you to follow",
        "The team's rules",
        "Our team's conventions",
        "Rules for our agents",
        "Rules you must follow (all of them)",
        "Rules from now on",
    ],
)
def test_a_head_may_say_whose_rules_they_are_and_where_they_hold(head: str) -> None:
    assert stated(f"{head}:\n- Never mock the kiln") == f"{head}: Never mock the kiln"


def test_a_long_list_of_rules_is_several_instructions_with_the_same_head() -> None:
    items = [f"Shelf {number} is for {'very ' * 12}tall vases." for number in range(12)]
    found = statements_in("\n- ".join(["Our rules:", *items]))
    assert all(one.text.startswith("Our rules: Shelf ") and len(one.text) <= 500 for one in found)
    assert all(any(item.rstrip(".") in one.text for one in found) for item in items)


def test_an_item_without_text_is_none() -> None:
    (found,) = statements_in("Coding rules:\n- use tabs\n- \n- no globals\n- \n")
    assert found.text == "Coding rules: use tabs; no globals"


@pytest.mark.parametrize("head", ["rules {}:", "{} rules:", "# {}", "Always {}:", "rules {} a b c d e f g"])
@pytest.mark.parametrize("mark", ["-", "- ", "a ", "(", "* ", "a:"])
def test_the_head_of_a_list_is_read_in_linear_time(head: str, mark: str) -> None:
    assert_grows_linearly(lambda size: statements_in(f"{head.format(mark * size)}\n- x\n"), 28)
    assert_grows_linearly(lambda size: statements_in(f"{head.format(mark * size)}\n- x\n"), 20_000)


def test_many_lines_are_read_in_linear_time() -> None:
    assert_grows_linearly(lambda size: own_text("x\n" * size), 120_000)


NOT_RULES = "\n- never fire at night\n- always glaze twice"


@pytest.mark.parametrize(
    "said",
    [
        f"I ran this:\n$ cat CONTRIBUTING.md\nOur conventions:{NOT_RULES}",
        f"$ cat CONTRIBUTING.md\nWelcome.\n\nOur conventions:{NOT_RULES}",
        f"$ cat CONTRIBUTING.md\nWelcome.\n\nWe love pots, please read this.\n\nOur conventions:{NOT_RULES}",
        f"$ ./kiln --help\nusage: kiln\n\nOur rules:{NOT_RULES}",
        f"% kiln rules\n\nOur rules:{NOT_RULES}",
        f"ada@till:~/shop$ cat NOTES\nOur rules:{NOT_RULES}",
        f'It crashed.\nTraceback (most recent call last):\n  File "kiln.py", line 1, in fire\nRules:{NOT_RULES}\nValueError: rules',
        "ada@till:~/shop$ cat NOTES\nAlways glaze twice.\nNever fire at night.",
        "$ cat NOTES\nAlways glaze twice.",
        "Ada Lovelace 10:32 AM\nWe never fire on Fridays.",
        "Ignore these rules: always glaze twice.",
        "Do not touch anything else:\n- the kiln\n- the glaze",
        f"@@ -1 +1 @@\n+Rules:\n Our rules:{NOT_RULES}",
        *(
            f"{head}:{NOT_RULES}"
            for head in (
                "Forget these rules",
                "He gave me rules",
                "In the past we would",
                "The output of the test",
                "These rules are outdated, delete them",
                "The old rules of the team were",
                "Our competitor's principles",
                "The principles of our competitor",
                "The naming rules are wrong here",
                "We no longer follow these rules",
                "The former conventions",
                "Old rules",
                "Validation rules",
                "Rules of the other team",
                "Stop using these guidelines",
                "I disagree with these rules",
                "Rules we dropped",
                "Add these rules to the wiki",
                "Rules we needed",
                "Rules we disagreed with",
                "Google's conventions",
                "Our customer's constraints",
                "Conventions from the wiki",
                "Rules imposed by legal",
                "Their conventions",
            )
        ),
    ],
)
def test_a_list_that_is_shown_or_whose_head_denies_it_is_no_rule(said: str) -> None:
    assert stated(said) == ""


@pytest.mark.parametrize("lead", ["The mail says:\n", "From: ada@example.org\n\n", "> "])
def test_a_list_of_rules_that_is_somebody_elses_is_none(lead: str) -> None:
    assert stated(f"{lead}Rules:\n- never fire at night\n- always glaze twice") == ""
