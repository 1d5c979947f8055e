"""A copy of an index gives the same answers, and shares nothing mutable with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from memgraph.index.index import Index
from memgraph.ports import Row
from memgraph.store.maintenance.verifying import differences

NOW = "2026-02-01T09:00:00.000Z"


def row(number: int, **fields: Any) -> Row:
    return {
        "id": f"m{number}",
        "type": ("episodic", "procedural")[number % 2],
        "content": f"the deploy of auth/session.ts failed with code E{number}",
        "seq": number + 1,
        "previous_id": f"m{number - 1}",
        "tags": [f"tag{number % 3}"],
        "agents_involved": ["MARS"],
        "trigger_pattern": f"deploy {number}",
        "entities": [{"name": f"auth/session{number % 2}.ts", "kind": "file"}],
        "relevance_anchor": 0.5,
        **dict.fromkeys(("created_at", "occurred_at", "relevance_at"), NOW),
        **fields,
    }


def changing_parts(value: object, found: dict[int, object]) -> dict[int, object]:
    """Collect every array, list, dictionary and object of an index."""
    if id(value) in found or value is None or isinstance(value, str | bytes | int | float | bool | type | tuple):
        return found
    if isinstance(value, np.ndarray):
        found[id(value)] = value
        return found if value.base is None else changing_parts(value.base, found)
    if isinstance(value, dict | list):
        found[id(value)] = value
        for part in value.values() if isinstance(value, dict) else value:
            changing_parts(part, found)
    elif hasattr(value, "__dict__"):
        found[id(value)] = value
        for part in vars(value).values():
            changing_parts(part, found)
    return found


def test_a_copy_shares_no_part() -> None:
    index = Index()
    index.build([row(number) for number in range(30)], [("SUPPORTS", ("m3", "m1"))])
    index.aliases.same(0)
    copy = index.copy()
    mine, others = changing_parts(index, {}), changing_parts(copy, {})
    assert len(mine) > 50
    assert not mine.keys() & others.keys()
    assert not list(differences(copy, index))
    assert vars(copy).keys() == vars(index).keys()
    assert copy.aliases.same(0) == index.aliases.same(0)


def test_changes_of_a_copy_do_not_affect_the_index() -> None:
    index, same = Index(), Index()
    for one in (index, same):
        one.build([row(number) for number in range(30)], [("SUPPORTS", ("m3", "m1"))])
    copy = index.copy()
    for number in range(30, 90):
        copy.put(row(number))
    copy.put(row(2, content="something else", tags=["other"]), row(2))
    copy.remove("m5")
    copy.touch("m7", access_count=3, accessed_at=NOW, anchor=1.0, anchored_at=NOW)
    copy.settle()
    assert not list(differences(index, same))
    assert len(copy) == 90
    assert len(index) == 30
    assert index.slot("m5") >= 0 > copy.slot("m5")
