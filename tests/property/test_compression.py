"""Laws of compression: twice or once, replayed or not, the same is known; and in slices or at once, where it is plain what belongs together.

Where it is not, what was told of first stays together: a generalisation is not given up for a little more modularity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph.lifecycle.lessons import compress

TOPICS = {topic: [f"{topic}{n}" for n in range(5)] for topic in "abcd"}
MIXED = [tag for tags in TOPICS.values() for tag in tags[:2]]
LAWS = settings(max_examples=6, suppress_health_check=list(HealthCheck))
MORE = settings(LAWS, max_examples=60)


def of_a_topic(tags: list[str]) -> st.SearchStrategy[list[str]]:
    """Draw tags that share two with all others of the topic, and with no other topic any."""
    return st.lists(st.sampled_from(tags[2:]), max_size=3, unique=True).map(lambda more: [*tags[:2], *more])


tag_sets = st.one_of([of_a_topic(tags) for tags in TOPICS.values()])
anything = st.lists(st.sampled_from(MIXED), min_size=1, max_size=4, unique=True)


def episodes(tags: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(
        st.fixed_dictionaries(
            {
                "tags": tags,
                "outcome": st.sampled_from(["positive", "negative"]),
                "project_id": st.sampled_from([None, "A"]),
                "evidence_build_ids": st.lists(st.sampled_from(["b1", "b2", "b3", "b4"]), max_size=3, unique=True),
            }
        ),
        min_size=3,
        max_size=24,
    )


def learned(store: Any, drawn: list[dict[str, Any]], slices: int) -> None:
    """Keep episodes and compress, in so many slices."""
    size = -(-len(drawn) // slices)
    for start in range(0, len(drawn), size):
        rows = list(enumerate(drawn))[start : start + size]
        store.insert_memories(
            [
                {"type": "episodic", "content": f"Attempt {n} ended.", "id": f"00000000-0000-4000-8000-{n:012d}", **row}
                for n, row in rows
            ]
        )
        compress(store, embedder=store.embedder)


def known(store: Any) -> set[tuple[Any, ...]]:
    superseded = {one.id for one in store.list_memories(state="superseded")}
    return {
        (*one.supporting_memory_ids, one.content, one.confidence, one.outcome, one.project_id)
        for one in store.query_by_type("semantic", limit=1_000)
        if one.id not in superseded
    }


names = (f"store {n}" for n in itertools.count())


def check_the_laws(open_store: Callable[..., Any], drawn: list[dict[str, Any]], slices: int, *, is_plain: bool) -> None:
    with open_store(next(names)) as in_slices, open_store(next(names)) as at_once:
        learned(in_slices, drawn, slices)
        if is_plain:
            learned(at_once, drawn, 1)
            assert known(in_slices) == known(at_once)
        before = in_slices.digest()
        again = compress(in_slices, embedder=in_slices.embedder)
        assert not any(again.model_dump().values())
        in_slices.rebuild()
        assert in_slices.digest() == before


@LAWS
@given(drawn=episodes(tag_sets), slices=st.integers(2, 4))
def test_in_slices_at_once_twice_and_replayed(open_store: Callable[..., Any], drawn: Any, slices: int) -> None:
    check_the_laws(open_store, drawn, slices, is_plain=True)


@pytest.mark.long
@MORE
@given(drawn=episodes(tag_sets), slices=st.integers(2, 4))
def test_the_same_at_length(open_store: Callable[..., Any], drawn: Any, slices: int) -> None:
    check_the_laws(open_store, drawn, slices, is_plain=True)


@pytest.mark.long
@MORE
@given(drawn=episodes(anything), slices=st.integers(2, 4))
def test_twice_and_replayed_whatever_belongs_together(open_store: Callable[..., Any], drawn: Any, slices: int) -> None:
    check_the_laws(open_store, drawn, slices, is_plain=False)
