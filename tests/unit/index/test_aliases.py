"""Aliases: one thing under several names, given the present names in whatever order they came."""

from __future__ import annotations

from typing import Any

import pytest


def named(store: Any, *entities: tuple[str, str], project: str = "shop") -> list[str]:
    """Insert a memory for each entity, and return their ids."""
    return [
        store.insert_memory(
            {
                "type": "semantic",
                "content": f"Note {number} on {name} in {project}.",
                "project_id": project,
                "entities": [{"kind": kind, "name": name}],
            }
        ).id
        for number, (kind, name) in enumerate(entities)
    ]


def same(store: Any, kind: str, name: str, project: str = "shop") -> set[str]:
    """Return all names of the thing that a name names."""
    from memgraph.index.index import entity_name

    index = store.reader.index
    found = index.aliases.same(index.entities.find(entity_name(kind, name, project)))
    return {index.entities.names[code].rsplit("\x1f", 1)[-1] for code in found}


PATH, BARE = ("file", "auth/session.ts"), ("file", "session.ts")


@pytest.mark.parametrize("order", [(PATH, BARE), (BARE, PATH)])
def test_a_bare_file_name_is_the_only_path_that_ends_in_it(store: Any, order: Any) -> None:
    named(store, *order)
    assert same(store, *BARE) == same(store, *PATH) == {"auth/session.ts", "session.ts"}


def test_a_longer_path_is_the_same_file(store: Any) -> None:
    named(store, BARE, PATH, ("file", "src/auth/session.ts"), ("file", "mysession.ts"))
    assert same(store, *BARE) == {"session.ts", "auth/session.ts", "src/auth/session.ts"}


def test_a_bare_name_of_two_files_is_separate(store: Any) -> None:
    _, _, other = named(store, BARE, PATH, ("file", "web/session.ts"))
    assert same(store, *BARE) == {"session.ts"}
    assert same(store, *PATH) == {"auth/session.ts"}

    store.delete_memory(other)
    assert same(store, *BARE) == {"session.ts", "auth/session.ts"}


def test_projects_are_separate(store: Any) -> None:
    named(store, BARE)
    named(store, PATH, project="other")
    assert same(store, *BARE) == {"session.ts"}


def test_a_title_does_not_make_another_person(store: Any) -> None:
    named(store, ("person", "Smith"), ("concept", "Dr. Smith"), ("person", "Prof. Dr. Jones"))
    assert same(store, "person", "Smith") == {"smith", "dr. smith"}


def test_a_last_name_is_the_only_person_with_it(store: Any) -> None:
    named(store, ("person", "Smith"), ("person", "Anna Smith"), ("concept", "Dr. Smith"), ("concept", "Granny Smith"))
    assert same(store, "person", "Anna Smith") == {"smith", "anna smith", "dr. smith"}
    named(store, ("person", "Ben Smith"))
    assert same(store, "person", "Anna Smith") == {"anna smith"}
    assert same(store, "concept", "Dr. Smith") == {"smith", "dr. smith"}


def test_a_name_shared_by_many_is_no_alias(store: Any) -> None:
    named(store, *(("file", f"p{number}/index.ts") for number in range(60)), ("file", "index.ts"))
    assert same(store, "file", "index.ts") == {"index.ts"}


def test_recall_by_one_name_finds_memories_about_the_other(store: Any) -> None:
    from memgraph import MemoryRetrieval, RetrievalConfig

    def said(content: str, name: str, *, about: bool) -> Any:
        entity = {"kind": "file", "name": name, "about": about}
        given = {"type": "semantic", "content": content, "project_id": "shop", "entities": [entity]}
        return store.insert_memory(
            given,
        ).id

    said("Logins end too soon: look at session.ts first.", "session.ts", about=False)
    about = said("Tokens are renewed when half of their life is over.", "auth/session.ts", about=True)
    retrieval = MemoryRetrieval(store, config=RetrievalConfig(mention_weight=0.5))
    result = retrieval.retrieve({"task_description": "Logins end too soon", "project_id": "shop"})
    (why,) = [explained for explained in result.explanations if explained.memory_id == about]
    assert why.mention > 0


def test_the_graph_stores_the_short_name(store: Any) -> None:
    named(store, PATH, ("person", "Dr. Anna Smith"), ("symbol", "Cart.total"))
    found = store.cypher("MATCH (e:Entity) RETURN e.short_name AS name ORDER BY name")
    assert [row["name"] for row in found] == ["cart.total", "session.ts", "smith"]
