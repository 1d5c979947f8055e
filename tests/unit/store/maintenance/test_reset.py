"""Reset: what it removes and keeps, everywhere, and what a crash in the middle of it leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import InvalidInputError, MemGraph, NotFoundError
from memgraph.errors import UndoError
from memgraph.fold.history import history_of
from memgraph.fold.records import CLEARED
from memgraph.graph.schema import tables
from memgraph.model.events.store import StoreReset
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.store import states

OF_MEMORIES = {
    *"Memory Practice Project Session Tag Entity File CHANGED RENAMED Commit OF_COMMIT REVERTS MENDS Person AUTHORED_BY".split(),
    *"Release IN_RELEASE Issue CLOSES Turn OF_TURN".split(),
    *"Test PASSED FAILED OF_BUILD RAN_ON".split(),
    *"NEXT TAGGED MENTIONS INVOLVES IN_PROJECT FROM_BUILD IN_SESSION IN_TASK".split(),
    *EXPLICIT_RELATIONS,
}
"""Tables whose rows go with the memories, or runs, that they belong to."""
FACT, PIN, LEARNED = "The vault holds the deploy key", "Never deploy on Fridays", "restarted the zebra service"


@pytest.fixture
def memory(store: Any) -> MemGraph:
    return filled(MemGraph(store))


def filled(memory: MemGraph) -> MemGraph:
    """Give a store something of every kind."""
    memory.commands.remember(FACT, ["vault"])
    memory.save_observation("Ann prefers short answers", agent="MARS")
    for number in range(5):
        memory.save_episode(f"Case {number}", "it hung", f"{LEARNED} {number}", "failure", project="P", session_id="x")
    memory.store.insert_memory({"type": "procedural", "content": "Restart first", "steps": ["stop", "start"]})
    memory.tasks.upsert("Fix the login", task_id="login")
    memory.tasks.decide("login", "Use tokens")
    memory.tasks.upsert("Docs", task_id="docs")
    memory.tasks.link("login", "docs")
    pin = memory.tasks.pins.upsert(PIN, kind="constraint", task_id="login").pin
    memory.tasks.pins.request_removal(pin.id)
    memory.tasks.sessions.switch("s", "login")
    memory.tasks.working.replace("s", task="Debug the zebra")
    memory.tasks.working.set_context("s", "All about zebras")
    memory.tasks.working.keep("phone", "Zebra on the phone", ttl_s=3_600)
    memory.recall("zebra service", project="P")
    return memory


def rows(store: Any) -> dict[str, list[Any]]:
    with store.reader.frozen():
        scanned = {name: store._projector.rows.scan(name) for name in tables()}
    return {name: sorted(found, key=repr) for name, found in scanned.items()}


def is_whole(store: Any) -> None:
    """Check that graph and index equal a replay, and that another replay gives the same."""
    store.flush()
    before, digest = rows(store), store.digest()
    store.verify(deep=True)
    store.rebuild()
    assert (rows(store), store.digest()) == (before, digest)


def test_every_table_says_what_a_reset_does_with_it() -> None:
    declared = set(CLEARED) | OF_MEMORIES
    assert declared == tables().keys(), "a new table needs its place in memgraph/fold/records.py"
    assert not set(CLEARED) & OF_MEMORIES
    nodes = {name for name in CLEARED if tables()[name].ends is None}
    assert nodes == states._KINDS.keys(), "what is removed is listed by its name"


def test_a_promoted_text_stays_and_a_kept_one_goes(memory: MemGraph) -> None:
    memory.tasks.working.keep("door", "The code of the door is 4711", ttl_s=3_600)
    promoted = memory.tasks.working.promote("door")
    memory.maintenance.reset("memory")
    assert memory.store.get_memory(promoted.id) == promoted
    assert memory.tasks.working.kept() == []


@pytest.mark.embedded
def test_reset_of_memory_keeps_facts_pins_and_tasks(memory: MemGraph) -> None:
    store = memory.store
    ends = store.store_id, store.config
    previewed = memory.maintenance.reset("memory", preview=True)
    assert previewed.event is None
    assert len(list(store.every_memory())) == 9, "a preview changes nothing"
    done = memory.maintenance.reset("memory")
    assert (done.removed, done.kept) == (previewed.removed, previewed.kept)
    assert done.removed == {
        "episodic": 5,
        "procedural": 1,
        "working_memories": 1,
        "chat_contexts": 1,
        "transient_items": 1,
        "session_tasks": 1,
        "recalls": 1,
        "pin_removal_requests": 1,
    }
    assert done.kept["semantic"] == 3
    assert {one.content for one in store.every_memory()} == {FACT, PIN, "Ann prefers short answers"}
    assert [pin.content for pin in memory.tasks.pins.list(task_id="login")] == [PIN]
    assert [one.content for one in memory.tasks.snapshot("login").decisions] == ["Use tokens"]
    assert memory.tasks.snapshot("login").links == ["docs"]
    assert memory.tasks.sessions.get("s").stack == []
    assert memory.tasks.working.get("s") is None
    assert memory.tasks.working.context("s") is None
    assert memory.tasks.working.kept() == []
    assert (store.store_id, store.config) == ends
    assert LEARNED not in memory.recall("zebra service", project="P").model_dump_json()
    assert LEARNED not in memory.commands.export_memories().model_dump_json()
    assert "zebra" not in repr(rows(store)).lower()
    assert not store.cypher("MATCH (m:Memory) WHERE m.project_id = 'P' RETURN m.id")
    assert not store.cypher("MATCH (p:Project) RETURN p.name"), "nodes of removed memories go with them"
    with store.as_agent("MARS") as view:
        assert LEARNED not in repr([one.content for one in view.every_memory()])
        assert not view.cypher("MATCH (r:Recall) RETURN r.id")
    is_whole(store)


def test_reset_of_all_leaves_an_empty_store_that_can_be_used(memory: MemGraph) -> None:
    memory.maintenance.sleep()
    done = memory.maintenance.reset("all")
    assert done.kept == {}
    assert done.removed["tasks"] == 2
    assert done.removed["pins"] == 1
    assert {name: found for name, found in rows(memory.store).items() if found} == {}
    is_whole(memory.store)
    filled(memory)
    assert len(list(memory.store.every_memory())) == 9
    is_whole(memory.store)


@pytest.mark.parametrize("scope", ["memory", "all"])
def test_again_there_is_nothing_to_remove(memory: MemGraph, scope: Any) -> None:
    assert memory.maintenance.reset(scope).event
    seq = memory.store.reader.index.offset.seq
    again = memory.maintenance.reset(scope)
    assert (again.removed, again.event) == ({}, None)
    assert list(memory.store.reader.events_after(seq)) == []


def test_the_order_of_what_stays_closes_over_what_goes(memory: MemGraph) -> None:
    store = memory.store
    ids = [store.insert_memory({"type": "episodic", "content": f"step {n}", "session_id": "y"}).id for n in range(5)]
    memory.curation.pin([ids[0], ids[3]])
    memory.maintenance.reset("memory")
    assert store.get_memory(ids[3]).previous_id == ids[0]
    assert store.insert_memory({"type": "episodic", "content": "step 5", "session_id": "y"}).previous_id == ids[3]
    is_whole(store)


@pytest.mark.embedded
def test_links_and_builds_of_what_stays(store: Any) -> None:
    memory = MemGraph(store)
    learned = store.insert_memory({"type": "episodic", "content": "Learned", "build_id": "b", "project_id": "P"})
    task = {
        "task_id": "t",
        "agent_name": "A",
        "description": "Deploy",
        "outcome": "failure",
        "output": "Error: no token",
    }
    times = {"started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T01:00:00Z"}
    log = {"build_id": "b", "project_id": "P", "tasks": [task], "build_outcome": "failure", **times}
    memory.consolidation.consolidate(log)
    kept = [
        store.insert_memory({"type": "semantic", "content": f"Kept {n}", "is_pinned": True, **where}).id
        for n, where in enumerate(({"build_id": "b", "project_id": "P"}, {"supporting_memory_ids": [learned.id]}))
    ]
    store.link(kept[0], "RELATED_TO", kept[1])
    store.link(kept[0], "SUPERSEDES", learned.id)
    done = memory.maintenance.reset("memory")
    assert done.removed["builds_read"] == 1
    assert [(link.relation, link.target_id) for link in store.every_link()] == [("RELATED_TO", kept[1])]
    assert store.cypher("MATCH (:Memory)-[:FROM_BUILD]->(b:Build) RETURN b.name AS name, b.outcome AS outcome") == [
        {"name": "b", "outcome": ""}
    ]
    is_whole(store)
    assert memory.consolidation.consolidate(log).memories_extracted, (
        "a build counts as unread, so it can be learned from again"
    )
    is_whole(store)


def test_the_removed_are_in_history_and_one_can_be_restored(memory: MemGraph, clock: Any) -> None:
    gone = next(one for one in memory.store.every_memory() if LEARNED in one.content)
    before = memory.store.now()
    clock.advance(days=1)
    memory.maintenance.reset("memory")
    assert memory.curation.history(gone.id)[-1].what == "removed by a reset"
    with memory.at(before, recorded=True) as past:
        assert past.store.get_memory(gone.id) is not None
        shown = past.store.to_networkx()
        assert gone.id not in shown, "a picture of the past does not show what was removed since"
    assert memory.store.find_id(gone.id[:13], deleted=True) == gone.id
    assert memory.store.undelete(gone.id).content == gone.content
    is_whole(memory.store)


def test_charts_count_the_removed_no_longer(memory: MemGraph) -> None:
    memory.maintenance.reset("memory")
    lives = history_of(memory.store.reader.events_after(0)).lives
    assert {one for one, life in lives.items() if not life.is_deleted} == {
        one.id for one in memory.store.every_memory()
    }


def test_an_agents_view_has_nothing_of_before(store: Any) -> None:
    memory = MemGraph(store)
    known = store.insert_memory({"type": "semantic", "content": "The zebra service hangs", "tags": ["old"]})
    assert memory.recall("zebra service", agent="MARS").memories
    memory.maintenance.reset("memory")
    store.insert_memory({"type": "semantic", "id": known.id, "content": "The zebra service works", "tags": ["new"]})
    with memory.as_agent("MARS") as view:
        found = rows(view.store)
    assert [row["tags"] for _, row in found["Memory"]] == [["new"]]
    assert found["Recall"] == found["RECALLED"] == []


def test_undo_says_what_brings_it_back(memory: MemGraph) -> None:
    memory.commands.remember("Deploy on Tuesdays only")
    event = memory.maintenance.reset("memory").event
    for asked in ((), (event,)):
        with pytest.raises(UndoError, match="copy of the store's directory") as refused:
            memory.curation.undo(*asked)
        if not asked:
            assert str(refused.value).endswith("undoes the last change by the user")


def test_memories_that_others_were_derived_from_stay_withheld(store: Any) -> None:
    memory = MemGraph(store)
    secret = store.insert_memory({"type": "episodic", "content": "Ann's diagnosis", "privacy_tier": "private"})
    derived = {"type": "semantic", "content": "Ann is ill", "supporting_memory_ids": [secret.id], "is_pinned": True}
    made = store.insert_memory({**derived, "privacy_tier": "public"})
    memory.maintenance.reset("memory")
    assert made.id not in store.to_networkx()
    assert made.id not in memory.commands.export_memories(shareable=True).model_dump_json()


def test_only_the_store_writes_the_event(store: Any) -> None:
    with pytest.raises(InvalidInputError, match="only be written by the store"):
        store.commit("system", [StoreReset(scope="all")])
    with pytest.raises(InvalidInputError, match="scope"):
        store.reset("everything")


def test_more_memories_than_one_event_names(memory: MemGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MOST_IDS", 2)
    seq = memory.store.reader.index.offset.seq
    memory.maintenance.reset("all")
    events = [event for event in memory.store.reader.events_after(seq) if event.type == "store.reset"]
    assert [len(event.payload.removed) for event in events] == [2, 2, 2, 2, 1]
    assert len({event.commit_id for event in events}) == 1
    assert [bool(event.payload.cleared) for event in events] == [False, False, False, False, True]
    is_whole(memory.store)


def test_another_process_learns_of_it(open_store: Callable[..., Any]) -> None:
    first = open_store()
    filled(MemGraph(first))
    second = open_store()
    assert len(list(second.every_memory())) == 9
    gone = next(one.id for one in second.every_memory() if LEARNED in one.content)
    first.reset("memory")
    assert len(list(second.every_memory())) == 3
    assert second.get_memory(gone) is None
    with pytest.raises(NotFoundError):
        second.update_memory(gone, title="x")
    is_whole(second)


CHILD = """
store = opened()
import os
import signal
import memgraph.store.rows
def die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
kind, name = sys.argv[2].split(".")
target = {"rows": memgraph.store.rows.Rows, "journal": type(store._journal)}[kind]
setattr(target, name, die)
store.reset("all")
"""


@pytest.mark.embedded
@pytest.mark.parametrize(("place", "left"), [("journal.append", 9), ("rows.rebuild", 9)])
def test_a_killed_reset_is_done_or_not(
    run: Callable[..., Any], open_store: Callable[..., Any], place: str, left: int
) -> None:
    with open_store() as store:
        filled(MemGraph(store))
    assert run(CHILD, place).returncode == -signal.SIGKILL, os.environ
    found = open_store()
    assert len(list(found.every_memory())) == left
    is_whole(found)
