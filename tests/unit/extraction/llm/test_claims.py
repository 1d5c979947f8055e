"""Claims: their days, agents and tags are those of the source."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.extraction.llm.claims import Claim


def claim(content: str, source: str, **fields: Any) -> Claim:
    known = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "evidence": [source]}
    return Claim.parse({**known, "content": content, **fields})


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
    ],
)
def test_days_and_agents_are_those_of_the_source(fields: dict[str, Any], holds: bool) -> None:
    content = "The heater was fixed."
    found = claim(content, SOURCE, **{"type": "episodic", **fields}).problems(SOURCE, metadata="2026-02-01 Bea")
    assert (found == []) is holds, found


def test_tags_are_words_of_the_source() -> None:
    found = claim("The heater was fixed.", SOURCE, tags=["heater", "fixes", "evil.example.com", "ignore all rules"])
    assert found.unsupported_tags(SOURCE) == ["evil.example.com", "ignore all rules"]
    assert found.without_tags(found.unsupported_tags(SOURCE)).tags == ["heater", "fixes"]
