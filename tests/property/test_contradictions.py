"""Laws of contradictions: twice is once, in slices as at once; what is unrelated or of another scope is never linked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import SemanticMemory
from memgraph.lifecycle import find_contradictions, open_contradictions
from memgraph.lifecycle.contradictions.conflict import claims_of, conflict_of

SUBJECTS = ("The deploy port of the shop", "The read timeout of the importer", "The owner of the billing service")
VALUES = {
    SUBJECTS[0]: ("8080", "9090", "7070"),
    SUBJECTS[1]: ("30 seconds", "60 seconds"),
    SUBJECTS[2]: ("Anna", "Ben"),
}
SCOPE = ("project_id", "task_id", "privacy_tier", "domain")
LAWS = settings(max_examples=6, suppress_health_check=list(HealthCheck))

facts = st.sampled_from(SUBJECTS).flatmap(
    lambda subject: st.fixed_dictionaries(
        {
            "content": st.sampled_from(VALUES[subject]).map(lambda value: f"{subject} is {value}"),
            "title": st.just(subject),
            "project_id": st.sampled_from([None, "A", "B"]),
            "task_id": st.sampled_from([None, None, "T"]),
            "privacy_tier": st.sampled_from(["public", "public", "private"]),
            "domain": st.sampled_from(["work", "work", "home"]),
            "trust_class": st.sampled_from(["user", "agent", "tool"]),
            "confidence": st.sampled_from([0.5, 0.9]),
            "is_pinned": st.booleans(),
        }
    )
)
names = (f"store {number}" for number in itertools.count())


def filled(open_store: Callable[..., Any], drawn: list[dict[str, Any]], *, slices: int) -> Any:
    """Return a store with these facts, one a day, looked through in so many slices."""
    store = open_store(next(names))
    size = -(-len(drawn) // slices)
    for start in range(0, len(drawn), size):
        for number, fields in list(enumerate(drawn, start=1))[start : start + size]:
            given_id = f"00000000-0000-4000-8000-{number:012d}"
            store.insert_memory(
                SemanticMemory.parse({**fields, "id": given_id, "occurred_at": f"2026-01-{number:02}T00:00:00Z"})
            )
        find_contradictions(store)
    return store


def check_the_laws(open_store: Callable[..., Any], drawn: list[dict[str, Any]]) -> None:
    store = filled(open_store, drawn, slices=1)
    before = store.digest(), store._journal.tail.seq
    assert find_contradictions(store).looked_at == 0
    assert (store.digest(), store._journal.tail.seq) == before
    links = [link for link in store.every_link() if link.relation == "CONTRADICTS"]
    for link in links:
        newer, older = store.read_memories([link.source_id, link.target_id])
        assert newer.title == older.title, "unrelated"
        assert newer.content != older.content
        assert all(getattr(newer, name) == getattr(older, name) for name in SCOPE)
        assert newer.occurred_at > older.occurred_at
    store.rebuild()
    assert store.digest() == before[0]

    in_slices = filled(open_store, drawn, slices=3)
    assert in_force(in_slices) == in_force(store)


def in_force(store: Any) -> tuple[set[str], set[frozenset[str]]]:
    """Return what is superseded and what is open: which of several newer ones replaces something depends on who came first."""
    superseded = {one.id for one in store.list_memories(state="superseded")}
    return superseded, {frozenset([one.newer.id, one.older.id]) for one in open_contradictions(store)}


@LAWS
@given(drawn=st.lists(facts, min_size=4, max_size=14))
def test_the_search_is_idempotent_and_links_nothing_unrelated(open_store: Callable[..., Any], drawn: Any) -> None:
    check_the_laws(open_store, drawn)


@pytest.mark.long
@settings(LAWS, max_examples=60)
@given(drawn=st.lists(facts, min_size=4, max_size=28))
def test_the_same_at_length(open_store: Callable[..., Any], drawn: Any) -> None:
    check_the_laws(open_store, drawn)


words = st.sampled_from(
    "the port is not no 8080 to set instead of use A-b, (x) . ; is: don't because if when v1.2 “q” ? Ann".split()
)


@settings(max_examples=150)
@given(texts=st.lists(st.lists(words, min_size=1, max_size=14).map(" ".join), min_size=2, max_size=2))
def test_any_two_texts_are_judged_and_a_text_never_conflicts_with_itself(texts: list[str]) -> None:
    one, other = (SemanticMemory(content=text) for text in texts)
    assert conflict_of(one, one) is None
    there, back = conflict_of(one, other), conflict_of(other, one)
    assert (there is None) == (back is None)
    if there is not None and back is not None:
        assert (there.kind, there.score) == (back.kind, back.score)
    assert len(claims_of(one.content)) <= 6
