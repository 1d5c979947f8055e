"""The runner: what phases plan is embedded and committed, and planned anew where others wrote what it rests on."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from memgraph.errors import MemGraphError
from memgraph.lifecycle.run import ATTEMPTS, Changes, Commit, Plan, View, Watch, carry_out, changes_after
from memgraph.model.events.records import AccessRecorded
from memgraph.model.memory import SemanticMemory
from memgraph.testing import FakeEmbedder

FACT = "Deploys run on Tuesdays"


@pytest.fixture
def store(open_store: Any) -> Any:
    return open_store()


def adding(content: str) -> Plan[int]:
    return Plan(1, [Commit([SemanticMemory(content=content)])], [content])


def test_a_new_memory_has_the_vector_of_its_text(store: Any) -> None:
    done = carry_out(store, lambda _view: adding(FACT), embedder=store.embedder)
    (kept,) = store.get_all_memories()
    assert (done.result, done.seqs) == (1, [store.reader.index.offset.seq])
    assert kept.embedding == pytest.approx(store.embedder.embed([FACT])[0])


def test_a_stale_plan_is_made_again_and_finally_under_the_lock(store: Any) -> None:
    views: list[View] = []
    embedded: list[str] = []

    class Counting(FakeEmbedder):
        def embed(self, texts: Any) -> Any:
            embedded.extend(texts)
            return super().embed(texts)

    others: list[threading.Thread] = []

    def plan(view: View) -> Plan[int]:
        views.append(view)
        fact = {"type": "semantic", "content": f"Fact {len(views)}"}
        others.append(threading.Thread(target=store.insert_memory, args=(fact,), daemon=True))
        others[-1].start()
        is_locked = len(views) == ATTEMPTS
        others[-1].join(0.5 if is_locked else None)
        assert others[-1].is_alive() is is_locked
        return adding(FACT)

    carry_out(store, plan, embedder=Counting(store.embedder.dimension, store.embedder.name))
    others[-1].join()
    assert len(views) == ATTEMPTS
    assert embedded == [FACT], "no text is embedded twice"


def test_irrelevant_writes_do_not_make_a_plan_stale(store: Any) -> None:
    plans = []

    def plan(_view: View) -> Plan[int]:
        plans.append(store.insert_memory({"type": "semantic", "content": f"Fact {len(plans)}"}))
        return adding(FACT)

    carry_out(store, plan, embedder=store.embedder, rests_on=lambda _event: False)
    assert len(plans) == 1


def test_a_plan_that_fails_writes_nothing(store: Any) -> None:
    before = store.reader.index.offset.seq
    with pytest.raises(MemGraphError):
        carry_out(store, lambda _view: Plan(None, [Commit([SemanticMemory(id="no id", content=FACT)])]))
    assert store.reader.index.offset.seq == before


def test_changes_come_in_batches_without_ignored_events(store: Any) -> None:
    ids = [store.insert_memory({"type": "semantic", "content": f"Fact number {n}"}).id for n in range(3)]
    since = store.reader.index.offset.seq
    for one in ids:
        store.update_memory(one, tags=["deploy"])
    store.update_memory(ids[0], confidence=0.3)
    store.record_access(ids[1])
    store.flush()
    watch = Watch((AccessRecorded,), frozenset({"confidence", "updated_at"}))

    def changes(**limits: Any) -> list[Changes]:
        return list(changes_after(store.reader, since, watch.touched, **limits))

    (everything,) = changes()
    first = list(everything.touched.values())
    assert list(everything.touched) == ids
    assert first == sorted(first)
    batches = changes(most_memories=2)
    assert [list(batch.touched) for batch in batches] == [ids[:2], ids[2:]]
    assert [batch.is_last for batch in batches] == [False, True]
    assert batches[1].after_seq == batches[0].through_seq == first[1]
    assert [list(batch.touched) for batch in changes(until=first[1], most_memories=2)] == [ids[:2]]
