"""Claims: what says the contrary of its source is refused, and a faithful statement in slightly other words holds."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.extraction.llm.claims import Claim


def claim(content: str, source: str, **fields: Any) -> Claim:
    known = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "evidence": [source]}
    return Claim.parse({**known, "content": content, **fields})


CONTRARY = {
    "a state": ("The heater of the greenhouse is off at night.", "The heater of the greenhouse is on at night."),
    "a switch": ("Turn off the pump before you clean the filter.", "Turn the pump on before you clean the filter."),
    "a switch back": ("The lamp was switched on in May.", "The lamp was off in May."),
    "an obligation": ("You may water the ferns in winter.", "You must water the ferns in winter."),
    "a permission": ("Visitors must sign the book.", "Visitors may sign the book."),
    "a percentage": ("The harvest grew by 5% in the north.", "The harvest grew by 5 in the north."),
    "a number": ("The harvest grew by 5 in the north.", "The harvest grew by 5% in the north."),
    "a power": ("The tank holds 102 litres.", "The tank holds 10² litres."),
    "an upper limit": ("Keep the boiler under 70 degrees.", "Keep the boiler over 70 degrees."),
    "a lower limit": ("Order at least 20 seeds.", "Order up to 20 seeds."),
    "an amount": ("The new filter needs less water.", "The new filter needs more water."),
    "a direction": ("Scale the pumps down at noon.", "Scale the pumps up at noon."),
    "an order": ("Rinse the tank before you fill the pipes.", "Fill the pipes before you rinse the tank."),
    "an order, turned": ("Rinse the tank after the pipes were filled.", "Rinse the tank before the pipes were filled."),
    "a preference": ("We chose clay over plastic.", "We chose plastic over clay."),
    "a replacement": ("We replaced the clay pots with plastic ones.", "We replaced plastic pots with clay ones."),
    "a failure": ("The sensor fails to detect frost.", "The sensor detects frost."),
    "an inability": ("The old pump is unable to lift sand.", "The old pump lifts sand."),
    "a denial without its sign": ("Dont open the valve in winter.", "Open the valve in winter."),
    "a denial in short": ("The valve isn't rated for steam.", "The valve is rated for steam."),
    "a cause": ("The fern died. The heater was cold.", "The fern died because the heater was cold."),
}  # fmt: skip

FAITHFUL = {
    "is not": ("The valve isn't rated for steam.", "The valve is not rated for steam."),
    "isn't": ("The valve is not rated for steam.", "The valve isn't rated for steam."),
    "cannot": ("The pump can't lift sand.", "The pump cannot lift sand."),
    "can't": ("The pump cannot lift sand.", "The pump can't lift sand."),
    "won't": ("The lamp will not start below zero.", "The lamp won't start below zero."),
    "unable": ("The pump is unable to lift sand.", "The pump cannot lift sand."),
    "fails to": ("The sensor fails to detect frost.", "The sensor does not detect frost."),
    "still fails": ("The sensor fails to detect frost.", "The sensor fails on frost."),
    "because": ("The fern died since the heater was cold.", "The fern died because the heater was cold."),
    "therefore": ("The heater was cold, so the fern died.", "The heater was cold, therefore the fern died."),
    "due to": ("The fern died by frost, caused by a cold heater.", "The fern died due to frost."),
    "so that": ("Cover the beds by dusk: frost cannot kill ferns then.", "Cover the beds, so that frost cannot kill ferns."),
    "in order to": ("Rinse the tank to clear the pipes.", "Rinse the tank in order to clear the pipes."),
    "an order, turned": ("Rinse the tank before filling the pipes.", "Fill the pipes after rinsing the tank."),
    "an order, first": ("After the frost, prune the vine.", "Prune the vine after the frost."),
    "a plural": ("Each valve needs a gasket.", "The valves need gaskets."),
    "a singular": ("The indices of two sensors were wrong.", "The index of a sensor was wrong."),
    "percent": ("The harvest grew by 5%.", "The harvest grew by 5 percent."),
    "a state": ("The heater is switched on at night.", "The heater is on at night."),
    "a duty": ("Visitors have to sign the book.", "Visitors must sign the book."),
    "a possibility": ("The pipe can burst at night.", "The pipe may burst at night."),
    "an interjection": ("No, Anna wants clay pots for the ferns.", "Anna wants clay pots for the ferns."),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRARY)
def test_the_contrary_of_a_source_is_refused(case: str) -> None:
    source, content = CONTRARY[case]
    assert claim(content, source).problems(source)
    assert claim(source, source).problems(source) == []


@pytest.mark.parametrize("case", FAITHFUL)
def test_a_faithful_statement_holds(case: str) -> None:
    source, content = FAITHFUL[case]
    assert claim(content, source).problems(source) == []


SOURCE = "On 2026-01-05 at 14:30 Anna fixed the heater, asked by planner-2 and by juno. The user came and thanked her."


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({"event_date": "2026-01-05"}, True),
        ({"event_date": "2026-01-05T14:30"}, True),
        ({"event_date": "2026-01-05T00:00:00.000Z"}, True),
        ({"event_date": "2026-01-05T23:59:59.999Z"}, False),
        ({"event_date": "2026-01-04T23:59:59-05:00"}, False),
        ({"event_date": "2026-01-06"}, False),
        ({"event_date": "2026-02-01"}, True),  # of the metadata
        ({"agents": ["Anna", "planner-2", "the user"]}, True),
        ({"agents": ["anna"]}, True),
        ({"agents": ["Bea"]}, True),  # of the metadata
        ({"agents": ["juno"]}, True),
        ({"agents": ["fixed"]}, False),
        ({"agents": ["thanked"]}, False),
        ({"agents": ["Heater"]}, False),
        ({"agents": ["Mallory"]}, False),
        ({"outcome": "positive"}, True),
        ({"outcome": "negative"}, False),
    ],
)
def test_days_agents_and_outcomes_are_those_of_the_source(fields: dict[str, Any], holds: bool) -> None:
    content = "The heater was fixed."
    found = claim(content, SOURCE, **{"type": "episodic", **fields}).problems(SOURCE, metadata="2026-02-01 Bea")
    assert (found == []) is holds, found


def test_a_failure_is_no_success() -> None:
    source = "The night watering failed with a burst pipe."
    for outcome, holds in (("negative", True), ("unknown", True), ("positive", False)):
        assert (claim(source, source, type="episodic", outcome=outcome).problems(source) == []) is holds
    mended = "The night watering failed until the pipe was fixed."
    assert claim(mended, mended, type="episodic", outcome="positive").problems(mended) == []


def test_tags_are_words_of_the_source() -> None:
    found = claim("The heater was fixed.", SOURCE, tags=["heater", "fixes", "evil.example.com", "ignore all rules"])
    assert found.unsupported_tags(SOURCE) == ["evil.example.com", "ignore all rules"]
    assert found.without_tags(found.unsupported_tags(SOURCE)).tags == ["heater", "fixes"]
