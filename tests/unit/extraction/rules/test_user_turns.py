"""What the rules keep of invented turns of users, and what they pass over.

`user_turns.jsonl` holds a turn a line: what was said, and a word of what it states beyond the request (null: nothing). The turns of the half
``test`` must each come out right, but for those named here; of the half ``dev`` most must.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memgraph.extraction.rules.user import statements_in

_TURNS = [json.loads(line) for line in Path(__file__).with_name("user_turns.jsonl").read_text().splitlines()]
_MISSED = (
    "You keep importing from internal packages.",
    "This endpoint is called by the ERP",
    "no, the importer should skip rows without",
)
"""A fact without a place, one whose subject only the context names, and a rule that reads like what is asked for now."""


def stated(said: str) -> str:
    return " ".join(one.text for one in statements_in(said))


@pytest.mark.parametrize(
    "turn",
    [turn for turn in _TURNS if turn["half"] == "test" and not turn["said"].startswith(_MISSED)],
    ids=lambda turn: turn["said"][:40],
)
def test_a_turn_is_kept_by_what_it_states_beyond_its_request(turn: dict[str, str | None]) -> None:
    found = stated(str(turn["said"]))
    assert (turn["states"].casefold() in found.casefold()) if turn["states"] else found == ""


def test_most_turns_of_the_other_half_come_out_right() -> None:
    turns = [turn for turn in _TURNS if turn["half"] == "dev"]
    stating = [turn for turn in turns if turn["states"]]
    kept = [turn for turn in stating if turn["states"].casefold() in stated(turn["said"]).casefold()]
    wrong = [turn["said"] for turn in turns if not turn["states"] and statements_in(turn["said"])]
    assert len(kept) >= 0.75 * len(stating), sorted(
        {turn["said"] for turn in stating} - {turn["said"] for turn in kept}
    )
    assert len(wrong) <= 0.05 * (len(kept) + len(wrong)), wrong


def test_a_fact_and_the_rule_that_points_to_it_are_one_statement() -> None:
    (found,) = statements_in("The cart is shared by both shops. It must never be cleared.")
    assert (found.kind, found.text) == ("instruction", "The cart is shared by both shops. It must never be cleared.")
