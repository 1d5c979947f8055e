"""Laws of undoing: any sequence of corrections, undone in reverse, restores the state before it; redone, the state after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph.store.curation import Edit
from memgraph.testing import FakeClock, FakeEmbedder

COUNT = 5
TYPES = ("episodic", "semantic", "procedural")
some = settings(max_examples=12, database=None, suppress_health_check=[HealthCheck.too_slow])
places = st.integers(0, COUNT - 1)
several = st.lists(places, min_size=1, max_size=3, unique=True)
texts = st.sampled_from(
    ["The lamp is on", "The lamp is off", "Deploy on Tuesdays", "A key sk-proj-0123456789abcdefghijABCDEFGHIJ"]
)
values = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from(["A title", "", None]),
        "valid_at": st.sampled_from(["2026-01-01", None]),
        "privacy_tier": st.sampled_from(["public", "private"]),
        "domain": st.sampled_from(["health", None]),
    },
)
tags = st.lists(st.sampled_from(["night", "Night", "deploy"]), max_size=2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("text"), places, texts, st.booleans()),
        st.tuples(st.just("edit"), several, values, tags, tags),
        st.tuples(st.just("pin"), several, st.booleans()),
        st.tuples(st.just("merge"), st.lists(places, min_size=2, max_size=3, unique=True)),
        st.tuples(st.just("split"), places),
        st.tuples(
            st.sampled_from(["archive", "unarchive", "invalidate", "revalidate", "suppress", "unsuppress"]), places
        ),
        st.tuples(st.sampled_from(["delete_memory", "undelete", "delete_memory"]), places),
        st.tuples(st.sampled_from(["link", "unlink"]), places, st.sampled_from(["SUPERSEDES", "SUPPORTS"]), places),
        st.tuples(st.sampled_from(["supersede", "unsupersede"]), places, places),
        st.tuples(st.just("access"), places),
    ),
    min_size=3,
    max_size=10,
)


@contextmanager
def opened() -> Iterator[tuple[Any, Any, list[str]]]:
    with tempfile.TemporaryDirectory(prefix="memgraph-undo-") as folder:
        config = memgraph.AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        clock = FakeClock(start="2026-02-01T09:00:00.000Z")
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock) as store:
            fields = {"project_id": "P", "session_id": "s", "tags": ["night"], "confidence": 0.3}
            trace = {
                "action_log": [{"t": 0.1, "action": "look"}, {"t": 2.0, "action": "run", "error": "none"}],
                "errors_encountered": [{"type": "E", "message": "it failed", "resolution": "again"}],
                "files_involved": ["a.py"], "duration_seconds": 2.0,
            }  # fmt: skip
            ids = [
                store.insert_memory(
                    {"type": TYPES[n % 3], "content": f"Event {n} of the night", **fields, **(trace if n == 0 else {})}
                ).id
                for n in range(COUNT)
            ]
            yield store, clock, [str(one) for one in ids]


def take(store: Any, ids: list[str], step: tuple[Any, ...]) -> None:
    """Take one step as the user; what is refused changes nothing."""
    hand, name = store.curation, step[0]
    if name == "text":
        (hand.new_version if step[3] else lambda one, edit: hand.edit([one], edit))(
            ids[step[1]], Edit.of({"content": step[2]})
        )
    elif name == "edit":
        hand.edit([ids[place] for place in step[1]], Edit.of(step[2], add_tags=step[3], remove_tags=step[4]))
    elif name == "pin":
        hand.change([ids[place] for place in step[1]], lambda *_: {"is_pinned": step[2]})
    elif name == "merge":
        hand.merge([ids[place] for place in step[1]])
    elif name == "split":
        hand.split(ids[step[1]], ["One part of it", "Another part of it"])
    elif name == "link":
        hand.states.link(ids[step[1]], step[2], ids[step[3]], score=0.1, reason="alike")
    elif name == "unlink":
        hand.states.unlink(ids[step[1]], step[2], ids[step[3]])
    elif name == "supersede":
        hand.states.supersede(ids[step[1]], by=ids[step[2]], reason="newer")
    elif name == "access":
        store.record_access(ids[step[1]])
    else:
        getattr(hand.states, name)(ids[step[1]])


def without_use(store: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return every memory without what uses change, and every link."""
    use = {"access_count", "last_accessed_at", "relevance_anchor", "relevance_at", "relevance_score", "embedded_at"}
    memories = sorted((memory.model_dump(exclude=use) for memory in store.every_memory()), key=lambda one: one["id"])
    return memories, sorted(map(repr, store.every_link()))


@some
@given(taken=steps)
def test_a_sequence_undone_in_reverse_restores_the_state_before_it(taken: list[tuple[Any, ...]]) -> None:
    with opened() as (store, clock, ids):
        is_used = any(step[0] == "access" for step in taken)
        digests, states, commits = [store.digest()], [without_use(store)], []
        for step in taken:
            clock.advance(minutes=1)
            before = store.reader.index.offset.seq
            try:
                take(store, ids, step)
            except memgraph.MemGraphError:
                continue
            store.flush()
            events = [one for one in store.reader.events_after(before) if one.actor == "user"]
            assert len({event.commit_id for event in events}) <= 1
            if events:
                commits.append(events[0].seq)
                digests.append(store.digest())
                states.append(without_use(store))
        undone = []
        for seq, digest, state in zip(reversed(commits), reversed(digests[:-1]), reversed(states[:-1]), strict=True):
            clock.advance(minutes=1)
            result = store.curation.undo()
            assert result.undone == seq
            undone.append(result.event)
            assert without_use(store) == state
            assert is_used or store.digest() == digest
        incremental = store.digest()
        store.rebuild()
        assert store.digest() == incremental
        for event, digest, state in zip(reversed(undone), digests[1:], states[1:], strict=True):
            assert store.curation.undo(event).is_redo
            assert without_use(store) == state
            assert is_used or store.digest() == digest
        store.verify()
