"""Laws of looking back: a view of what was recorded is what the store was, and time only adds where nothing is taken out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.fold import EmptyRows, Workspace, fold
from memgraph.fold.fold import digest_after
from memgraph.store.past import Past, moment_of
from memgraph.testing import FakeClock, FakeEmbedder

few = settings(max_examples=3, database=None, suppress_health_check=[HealthCheck.too_slow])
places = st.integers(0, 4)
ways = st.sampled_from(
    ["suppress", "unsuppress", "archive", "unarchive", "invalidate", "revalidate", "delete_memory", "undelete"]
)
years = st.sampled_from([None, "2021-05-01", "2023-05-01", "2031-05-01"])
kinds = st.sampled_from(["episodic", "semantic"])
additions = st.tuples(st.just("add"), kinds, years)
steps = st.one_of(
    additions,
    st.tuples(ways, places),
    st.tuples(st.sampled_from(["link", "unlink"]), st.sampled_from(["SUPERSEDES", "SUPPORTS"]), places, places),
    st.tuples(st.just("change"), places, st.sampled_from(["night", "day"])),
    st.tuples(st.just("use"), places),
)


@contextmanager
def fresh() -> Iterator[tuple[Any, FakeClock]]:
    with tempfile.TemporaryDirectory(prefix="memgraph-past-") as folder:
        config = memgraph.AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        clock = FakeClock("2026-02-01T09:00:00.000Z")
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock) as store:
            yield store, clock


def take(store: Any, ids: list[str], step: tuple[Any, ...]) -> None:
    """Do one step; what is gone is left alone."""
    chosen = [ids[one % len(ids)] for one in step if isinstance(one, int)] if ids else []
    if step[0] == "add":
        fields = {"type": step[1], "content": f"event {len(ids)} of the night", "project_id": "P", "tags": ["night"]}
        ids.append(store.insert_memory({**fields, "occurred_at": step[2]}).id)
    elif step[0] == "undelete" and chosen:
        store.undelete(chosen[0])
    elif not chosen or any(store.get_memory(one) is None for one in chosen):
        return
    elif step[0] in {"link", "unlink"}:
        if chosen[0] != chosen[1]:
            getattr(store, step[0])(chosen[0], step[1], chosen[1])
    elif step[0] == "change":
        store.update_memory(chosen[0], content=f"event of the {step[2]}", tags=[step[2]])
    elif step[0] == "use":
        store.record_access(chosen[0])
    else:
        getattr(store, step[0])(chosen[0])


def folded(store: Any, when: str, *, recorded: bool = False) -> tuple[str, set[str]]:
    """Return the digest of what had happened, and the memories that were there: a view without its graph."""
    workspace = Workspace(EmptyRows())
    past = Past(moment_of(when), recorded=recorded)
    for event in store._views._excerpt(past, past.sift, "a view").events_after(0):
        fold(workspace, event)
    changes = list(workspace.changes())
    return f"{digest_after(0, changes):064x}", {str(one.key) for one in changes if one.table == "Memory"}


@settings(few, max_examples=2)
@given(taken=st.lists(steps, min_size=4, max_size=10), chosen=st.integers(0, 9))
def test_what_had_been_recorded_is_what_the_store_was(taken: list[tuple[Any, ...]], chosen: int) -> None:
    with fresh() as (store, clock):
        ids: list[str] = []
        states = []
        for step in taken:
            take(store, ids, step)
            store.flush()
            states.append((store.now(), store.digest(), {one.id for one in store.every_memory()}))
            clock.advance(days=1)
        for when, *state in states:
            assert list(folded(store, when, recorded=True)) == state
        when, digest, ids_then = states[chosen % len(states)]
        with store.at(when, recorded=True) as view:
            assert (view.digest(), {one.id for one in view.every_memory()}) == (digest, ids_then)
            view.verify(deep=True)
        # nothing happens after it was recorded, so by the last moment all had happened
        assert folded(store, states[-1][0]) == states[-1][1:]


@few
@given(taken=st.lists(steps, min_size=4, max_size=10))
def test_with_live_recording_both_kinds_of_view_agree(taken: list[tuple[Any, ...]]) -> None:
    with fresh() as (store, clock):
        ids: list[str] = []
        moments = []
        for step in taken:
            take(store, ids, ("add", step[1], None) if step[0] == "add" else step)
            store.flush()
            moments.append(store.now())
            clock.advance(days=1)
        for when in moments:
            assert folded(store, when) == folded(store, when, recorded=True)


@few
@given(taken=st.lists(additions, min_size=3, max_size=8))
def test_a_later_view_contains_at_least_as_much(taken: list[tuple[Any, ...]]) -> None:
    with fresh() as (store, clock):
        ids: list[str] = []
        for step in taken:
            take(store, ids, step)
            clock.advance(days=1)
        happened = [one[2] or "2026" for one in taken]
        before: set[str] = set()
        for when in ("2021-06-01", "2024-01-01", "2026-03-01"):
            _, found = folded(store, when)
            expected = {one for one, moment in zip(ids, happened, strict=True) if min(moment, "2026") < when}
            assert before <= found == expected
            before = found
        assert before == set(ids)
