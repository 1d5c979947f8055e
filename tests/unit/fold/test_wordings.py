"""Other wordings of a memory, after merges through several doors and after a change by the user."""

from __future__ import annotations

from typing import Any

import memgraph

TEXT = "Deploys of the shop run on Tuesdays after the tests have passed"
LONGER = f"{TEXT}. Everybody agreed"
OTHER = LONGER.replace("the tests", "tests")


def test_replaced_and_left_out_texts_are_kept_until_the_user_changes_the_memory(store: Any, clock: Any) -> None:
    memory = memgraph.MemGraph(store)
    first = memory.save_observation(TEXT).memory_id
    for text, others in ((LONGER, [TEXT]), (OTHER, [TEXT, OTHER]), (LONGER, [TEXT, OTHER])):
        clock.advance(days=1)
        assert memory.save_observation(text).memory_id == first
        assert memory.commands.wordings(first) == others
    assert store.get_memory(first).content == LONGER
    clock.advance(days=1)
    store.update_memory(first, content="Deploys run on Fridays")
    assert memory.commands.wordings(first) == []
