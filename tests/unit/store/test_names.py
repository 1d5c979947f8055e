"""Names do not outlive their memories: analysts see none of what only deleted memories were about."""

from __future__ import annotations

from typing import Any

import pytest

NAMED = {
    "Tag": "secret",
    "Entity": "Dr. Anna Smith",
    "Agent": "Ada",
    "Project": "hush",
    "Build": "build-7",
    "Session": "s-1",
    "Task": "t-1",
}


def seen(store: Any) -> dict[str, str]:
    rows = store.cypher(f"MATCH (x:{':'.join(NAMED)}) RETURN label(x) AS kind, x.name AS name")
    found = {row["kind"]: row["name"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.embedded
def test_names_are_removed_with_the_last_memory_and_restored_with_it(store: Any) -> None:
    fields = {
        "type": "episodic",
        "content": "It was kept quiet",
        "tags": ["secret"],
        "agents_involved": ["Ada"],
        "entities": [{"kind": "person", "name": "Dr. Anna Smith"}],
        "project_id": "hush",
        "build_id": "build-7",
        "session_id": "s-1",
        "task_id": "t-1",
    }
    one, other = (store.insert_memory(fields) for _ in range(2))
    before = seen(store)
    assert before == NAMED
    store.delete_memory(one.id)
    assert seen(store) == before
    store.delete_memory(other.id)
    assert seen(store) == {}
    store.verify(deep=True)
    store.undelete(other.id)
    assert seen(store) == before
    store.update_memory(other.id, tags=["harmless"])
    digest = store.digest()
    store.rebuild()
    assert store.digest() == digest
    assert seen(store) == NAMED | {"Tag": "harmless"}
