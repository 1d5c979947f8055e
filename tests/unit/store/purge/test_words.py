"""A purged word that is also a name, such as of an agent or a session, and words that are none: names of fields, ids, times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryStore, MemGraph
from memgraph.errors import NotFoundError
from memgraph.model.events.payload import Payload
from memgraph.model.events.tasks import (
    ChatContextSet,
    LedgerCheckpointed,
    SessionControlSet,
    SessionTasksSet,
    TransientRemoved,
    TransientSet,
    WorkingMemorySet,
)

pytestmark = pytest.mark.embedded
Traces = Callable[..., list[str]]
WORD, OTHER = "Margaret", "The nightly backup of the billing database needs about forty minutes"
LATER = "2099-01-01T00:00:00.000Z"


@pytest.fixture
def home(store: AgentMemoryStore) -> Path:
    store.insert_memory({"type": "episodic", "content": OTHER})
    return store.config.home


def named(store: AgentMemoryStore, text: str) -> None:
    """Use a word as every kind of name."""
    memory = MemGraph(store)
    memory.tasks.upsert("Move", task_id="t1")
    statements: list[Payload] = [
        LedgerCheckpointed(agent=WORD, goal=text),
        TransientSet(item_id=WORD, content=text, expires_at=LATER),
        WorkingMemorySet(session_id=WORD, task=text),
        ChatContextSet(session_id=WORD, context=text),
        SessionTasksSet(session_id=WORD, stack=["t1"]),
        SessionControlSet(session_id=WORD, autoswitch=True, guidance="minimal"),
    ]
    store.commit("system", statements)
    memory.save_observation(f"{text} by the window", project=WORD)
    store.insert_memory({
        "type": "episodic", "content": text, "tags": [WORD], "agents_involved": [WORD], "session_id": WORD, "build_id": WORD,
    })  # fmt: skip
    memory.recall(text, project=WORD)


def test_a_word_that_is_every_kind_of_name_is_gone_after_one_purge(
    store: AgentMemoryStore, home: Path, traces: Traces
) -> None:
    for text in ("A walk in the morning", "A swim in the evening"):
        named(store, text)
    store.flush()
    assert traces(home, WORD) != []
    store.purge(match=WORD.upper())
    assert traces(home, WORD) == []
    with pytest.raises(NotFoundError, match="nothing in the journal says"):
        store.preview_purge(match=WORD)
    store.verify(deep=True)
    store.close()
    assert traces(home, WORD) == []


def test_a_memory_that_is_only_a_name_is_gone_after_one_purge(
    store: AgentMemoryStore, home: Path, traces: Traces
) -> None:
    named(store, "A walk in the morning")
    store.purge([store.insert_memory({"type": "episodic", "content": WORD}).id])
    assert "ledger.checkpointed" not in {one.type for one in events(store)}
    store.verify(deep=True)


def events(store: AgentMemoryStore) -> list[Any]:
    return [event for commit in store._journal.replay() for event in commit.events]


def test_another_name_does_not_fall_back_to_what_was_stated_before(
    store: AgentMemoryStore, home: Path, traces: Traces
) -> None:
    memory = MemGraph(store)
    for task_id in ("margaret", "t1"):
        memory.tasks.upsert("Move", task_id=task_id)
    store.commit("system", [TransientSet(item_id="note", content="The first", expires_at=LATER)])
    store.commit("system", [TransientSet(item_id="note", content=f"For {WORD}", expires_at=LATER)])
    store.commit("system", [SessionTasksSet(session_id="s", stack=["t1"])])
    store.commit("system", [SessionTasksSet(session_id="s", stack=["t1", "margaret"])])
    store.commit("system", [SessionTasksSet(session_id="s", stack=["margaret", "t1"])])
    store.purge(match=WORD)
    assert memory.tasks.sessions.get("s").stack == ["t1"]
    assert [row for _, row in scanned(store, "TransientItem")] == []
    store.verify(deep=True)


def test_a_note_that_was_ended_together_with_another_one_stays_ended(store: AgentMemoryStore, home: Path) -> None:
    for name in ("note", WORD, "other"):
        store.commit("system", [TransientSet(item_id=name, content="The first", expires_at=LATER)])
    store.commit("system", [TransientRemoved(item_ids=[WORD, "note"])])
    store.purge(match=WORD)
    assert [row["name"] for _, row in scanned(store, "TransientItem")] == ["other"]
    store.verify(deep=True)


def scanned(store: AgentMemoryStore, table: str) -> list[Any]:
    with store._projector.reading():
        return list(store._projector.rows.scan(table))


class TestLostTasks:
    @pytest.fixture
    def memory(self, store: AgentMemoryStore, home: Path) -> MemGraph:
        memory = MemGraph(store)
        memory.tasks.upsert("Write to Margaret")
        memory.tasks.upsert("Another task", task_id="t1")
        memory.tasks.decide("write-to-margaret", "By letter, with a stamp")
        memory.tasks.constrain("write-to-margaret", "No phone calls on Mondays")
        memory.tasks.set_goal("write-to-margaret", "An answer within a week")
        memory.tasks.decide("t1", "This one stays")
        memory.tasks.sessions.switch("s", "t1")
        memory.tasks.sessions.switch("s", "write-to-margaret", push=True)
        return memory

    def test_they_are_announced(self, store: AgentMemoryStore, memory: MemGraph) -> None:
        found = store.preview_purge(match=WORD)
        assert [(one.id, one.title, one.items) for one in found.lost_tasks] == [
            ("write-to-margaret", "Write to Margaret", 2)
        ]
        created = next(one.seq for one in events(store) if one.type == "TASK_CREATED")
        assert store.purge(match=WORD).lost_tasks == [created]

    def test_texts_of_their_items_go_with_them(
        self, store: AgentMemoryStore, memory: MemGraph, home: Path, traces: Traces
    ) -> None:
        store.purge(match=WORD)
        texts = ("By letter, with a stamp", "No phone calls on Mondays", "An answer within a week")
        assert traces(home, *texts) == []
        assert [one.content for one in memory.tasks.snapshot("t1").decisions] == ["This one stays"]
        store.verify(deep=True)

    def test_sessions_leave_them(self, store: AgentMemoryStore, memory: MemGraph) -> None:
        store.purge(match="write to margaret")
        assert memory.tasks.sessions.get("s").stack == ["t1"]

    def test_a_title_that_was_changed_is_the_former_one(self, store: AgentMemoryStore, memory: MemGraph) -> None:
        memory.tasks.upsert("Call Margaret", task_id="t1")
        assert [one.id for one in store.preview_purge(match="call margaret").lost_tasks] == []
        store.purge(match="call margaret")
        assert memory.tasks.get("t1").title == "Another task"


class TestRemainingNames:
    def test_an_id_that_was_made_from_a_title_is_named_before_and_in_the_receipt(
        self, store: AgentMemoryStore, home: Path
    ) -> None:
        memory = MemGraph(store)
        memory.tasks.upsert("Write to Margaret")
        memory.tasks.decide("write-to-margaret", "By letter")
        heads = [one for one in events(store) if one.task_id == "write-to-margaret"]
        (found,) = store.preview_purge(match="to Margaret").remaining
        assert (found.what, found.name, found.event, found.events) == (
            "id of a task", "write-to-margaret", heads[0].seq, len(heads),
        )  # fmt: skip
        receipt = store.purge(match="to Margaret")
        assert receipt.remaining is not None
        assert [(one.what, one.name, one.event, one.events) for one in receipt.remaining] == [
            ("id of a task", None, heads[0].seq, len(heads))
        ]
        assert store.check_receipt(receipt).remaining == receipt.remaining

    def test_a_name_that_is_only_in_heads_is_refused_with_the_reason(self, store: AgentMemoryStore, home: Path) -> None:
        MemGraph(store).tasks.upsert("Move", task_id="margaret")
        before = len(events(store))
        with pytest.raises(NotFoundError, match=r"nothing.*can be removed.*id of a task.*1 event, first event"):
            store.purge(match=WORD)
        assert len(events(store)) == before

    def test_paths_of_backups_are_named(self, store: AgentMemoryStore, home: Path, tmp_path: Path) -> None:
        with MemGraph(store) as memory:
            memory.backup(tmp_path / "margaret.tar.gz")
            store.insert_memory({"type": "episodic", "content": "A letter to Margaret"})
            (found,) = store.preview_purge(match=WORD).remaining
            assert found.what == "event backup.made"
            assert str(found.name).endswith("margaret.tar.gz")


class TestWordsThatAreNone:
    @pytest.mark.parametrize("text", ["memory", "confidence", "episodic", "2099", "sha256", "hashing"])
    def test_fields_fixed_values_ids_and_times_do_not_match(
        self, store: AgentMemoryStore, home: Path, text: str
    ) -> None:
        store.commit("system", [TransientSet(item_id="note", content="x", expires_at=LATER)])
        with pytest.raises(NotFoundError):
            store.preview_purge(match=text)

    def test_an_id_does_not_match(self, store: AgentMemoryStore, home: Path) -> None:
        one = store.insert_memory({"type": "episodic", "content": "A letter"}).id
        with pytest.raises(NotFoundError):
            store.preview_purge(match=one[:6])

    def test_names_of_a_tasks_values_match(self, store: AgentMemoryStore, home: Path, traces: Traces) -> None:
        memory = MemGraph(store)
        memory.tasks.upsert("Move", task_id="t1")
        memory.tasks.patch_state("t1", {"address of Margaret": "unknown"})
        store.purge(match=WORD)
        assert traces(home, WORD) == []


def test_a_restated_memory_has_links_without_the_words(store: AgentMemoryStore, home: Path, traces: Traces) -> None:
    secret = "Margaret moved to the house behind the old lighthouse in spring"
    asked = store.insert_memory({"type": "episodic", "content": secret}).id
    told = store.insert_memory({"type": "episodic", "content": f"She said: {secret}"}).id
    third = store.insert_memory({"type": "episodic", "content": "Release branches are cut on Thursdays"}).id
    store.link(told, "ELABORATES", third, reason=f"because {secret}")
    store.update_memory(told, content="She said something")
    assert store.purge([asked]).restated_ids == [told]
    assert traces(home, secret) == []
    assert [(one.relation, one.reason) for one in store.links(told)] == [("ELABORATES", None)]


def test_a_project_and_a_source_without_a_hit_are_said(store: AgentMemoryStore, home: Path) -> None:
    with pytest.raises(NotFoundError, match="nothing in the journal is of project 'Heron'"):
        store.purge(project="Heron")
    with pytest.raises(NotFoundError, match="nothing in the journal rests on source 'log'"):
        store.purge(source="log")
