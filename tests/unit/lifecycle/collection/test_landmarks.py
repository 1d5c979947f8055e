"""Landmarks: which memories are alone with what they tell, counted in one pass and told one by one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.index.index import Index
from memgraph.lifecycle.collect import Company, is_landmark
from tests.growth import STEP, assert_grows_linearly


def negative(tags: list[str], **fields: Any) -> dict[str, Any]:
    base = {"type": "episodic", "content": "The build failed", "outcome": "negative", "project_id": "shop"}
    return {**base, "tags": tags, **fields}


@pytest.mark.parametrize(
    ("tags", "other", "expected"),
    [
        (["auth", "jwt"], ["auth", "jwt", "proxy"], False),  # two shared
        (["auth", "jwt", "proxy"], ["auth", "jwt"], False),  # two of three
        (["auth", "jwt"], ["auth", "cookie"], True),  # one shared
        (["auth"], ["auth", "cookie"], False),  # all that it has
        (["auth", "cookie"], ["auth"], True),
        (["Auth", "JWT"], ["auth", "jwt"], False),  # however they are written
        (["auth"], ["deploy"], True),
    ],
)
def test_memories_that_share_enough_tags_are_company(
    store: Any, tags: list[str], other: list[str], expected: bool
) -> None:
    memory = store.insert_memory(negative(tags))
    store.insert_memory(negative(other, outcome="positive"))
    assert is_landmark(store, memory) is expected
    assert memgraph.ConsolidationPipeline(store).is_landmark(memory) is expected


def test_company_must_be_listed_and_in_the_same_project(store: Any) -> None:
    memory = store.insert_memory(negative(["auth"]))
    store.insert_memory(negative(["auth"], project_id="bank"))
    store.insert_memory(negative(["auth"], project_id=None))
    twin = store.insert_memory(negative(["auth"], type="semantic", outcome="positive"))
    assert not is_landmark(store, memory)
    for way, back in [("archive", "unarchive"), ("suppress", "unsuppress"), ("invalidate", "revalidate")]:
        getattr(store, way)(twin.id)
        assert is_landmark(store, memory)
        getattr(store, back)(twin.id)
        assert not is_landmark(store, memory)
    store.delete_memory(twin.id)
    assert is_landmark(store, memory)


def test_a_forgotten_memory_is_no_landmark(store: Any) -> None:
    memory = store.insert_memory(negative(["auth"]))
    assert is_landmark(store, memory)
    assert not is_landmark(store, store.suppress(memory.id))


def test_a_superseded_memory_is_neither_company_nor_landmark(store: Any) -> None:
    old, new = (store.insert_memory(negative(tags)) for tags in (["auth", "jwt"], ["auth", "jwt", "proxy"]))
    store.supersede(old.id, by=new.id)
    assert [is_landmark(store, one) for one in (old, new)] == [False, True]
    store.unsupersede(old.id)
    assert [is_landmark(store, one) for one in (old, new)] == [False, False]


def test_only_negative_memories_are_landmarks_unless_tagged(store: Any) -> None:
    assert not is_landmark(store, store.insert_memory(negative(["auth"], outcome="positive")))
    for tag in ("critical-failure", "data-loss", "security-incident", "user-escalation", "Data-Loss"):
        assert is_landmark(store, store.insert_memory(negative(["auth", tag], outcome="positive")))


def test_an_unstored_memory_can_be_checked(store: Any) -> None:
    store.insert_memory(negative(["auth", "jwt"]))
    assert not is_landmark(store, memgraph.parse_memory(negative(["auth", "jwt"])))
    assert is_landmark(store, memgraph.parse_memory(negative(["auth", "unheard of"])))


TAGS = st.lists(st.sampled_from("abcde"), max_size=4, unique=True)
drawn = st.lists(st.tuples(TAGS, st.sampled_from(["P", "Q", None]), st.booleans(), st.booleans()), max_size=12)


def built(memories: list[tuple[list[str], str | None, bool, bool]]) -> tuple[Index, Any, Any]:
    index, rows = Index(), []
    when = "2026-02-01T09:00:00.000Z"
    for number, (tags, project, _, _) in enumerate(memories, start=1):
        row = {"id": str(UUID(int=number)), "type": "episodic", "content": "x", "tags": tags, "seq": number}
        row |= {"relevance_anchor": 1.0, "relevance_at": when, "created_at": when, "occurred_at": when}
        rows.append({**row, **({"project_id": project} if project else {})})
    index.build(rows)
    members = np.array([is_member for _, _, is_member, _ in memories], dtype=np.bool_)
    return index, members, np.array([asks for _, _, _, asks in memories], dtype=np.bool_)


def has_company(memories: Any, place: int, members: Any) -> bool:
    tags, project, _, _ = memories[place]
    return any(
        members[other] and other != place and memories[other][1] == project
        and len(set(memories[other][0]) & set(tags)) >= min(2, len(tags))
        for other in range(len(memories))
    )  # fmt: skip


@settings(max_examples=80, database=None)
@given(memories=drawn, leaving=st.lists(st.integers(0, 11), max_size=6))
def test_counting_agrees_with_comparing_all_pairs(memories: Any, leaving: list[int]) -> None:
    index, members, asking = built(memories)
    company = Company(index, members, asking)
    for gone in [None, *leaving]:
        if gone is not None and gone < len(memories):
            company.leave(gone)
            members[gone] = False
        expected = [not has_company(memories, place, members) for place in range(len(memories))]
        alone = company.alone()
        for place in np.flatnonzero(asking).tolist():
            assert company.is_alone(place) == alone[place] == expected[place]


def test_a_tag_on_every_memory_costs_no_more_than_another() -> None:
    memories = [(["all", f"t{number}", f"u{number % 500}"], "P", True, True) for number in range(3_000)]
    scenes = {many: built(memories[:many]) for many in (3_000 // STEP**step for step in range(6))}
    assert_grows_linearly(lambda many: Company(*scenes[many]).alone(), 3_000)
    assert not Company(*scenes[3_000]).alone().any()  # each shares "all" and a second tag with five others


def test_only_the_rarest_of_many_tags_are_compared() -> None:
    many = [f"m{number}" for number in range(400)]
    memories = [(many, "P", True, True), ([*many, "x"], "P", True, True), (["x", "y"], "P", True, True)]
    index, members, asking = built(memories)  # type: ignore[arg-type]
    assert Company(index, members, asking).alone().tolist() == [False, False, True]
