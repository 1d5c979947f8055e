"""Working memory, chat context and transient texts: kept apart by session, for a while, and never recalled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemGraph, MemGraphError, NotFoundError
from memgraph.model.events.tasks import TransientSet

FIELDS = {
    "task": "Debug the webhook",
    "context": ["Bearer failed"],
    "pending": ["Check the URL"],
    "notes": "Ann is in a hurry",
}


@pytest.fixture
def working(tasks: Any) -> Any:
    return tasks.working


class TestWorkingMemory:
    def test_it_is_replaced_as_a_whole(self, working: Any) -> None:
        assert working.get("s") is None
        assert working.replace("s", **FIELDS).model_dump(include=set(FIELDS)) == FIELDS
        assert working.replace("s", task="Deploy").pending == []
        assert working.get("s").notes is None
        assert not working.exists("other")
        assert working.clear("s")
        assert not working.exists("s")
        assert not working.clear("s"), "clearing again changes nothing"

    def test_it_is_void_after_a_week(self, working: Any, clock: Any) -> None:
        working.replace("s", **FIELDS)
        clock.advance(days=7)
        assert working.exists("s")
        clock.advance(seconds=1)
        assert working.get("s") is None
        assert working.replace("s", task="Again").task == "Again"

    def test_its_age_is_a_setting(self, open_store: Any, clock: Any) -> None:
        working = MemGraph(open_store("other", working_memory_days=1)).tasks.working
        working.replace("s", **FIELDS)
        clock.advance(days=1, seconds=1)
        assert working.get("s") is None


def test_the_last_context_of_a_chat_holds(working: Any) -> None:
    assert working.context("s") is None
    working.set_context("s", "Webhooks")
    assert working.set_context("s", "Deployments").context == "Deployments"
    assert working.context("s").context == "Deployments"
    assert working.context("other") is None


class TestTransient:
    def test_texts_expire(self, working: Any, clock: Any) -> None:
        later = working.keep("b", "The build runs", ttl_s=60)
        working.keep("a", "Old", ttl_s=10)
        first = working.keep("a", "Ann is on the phone", ttl_s=10)
        mine = working.keep("c", "Of the task", ttl_s=60, task_id="login")
        assert working.kept() == [first, later]
        assert working.kept(task_id="login") == [mine]
        assert working.kept(task_id="docs") == []
        clock.advance(seconds=10)
        assert working.kept() == [later]
        assert working.prune() == 1
        assert working.prune() == 0

    def test_only_an_explicit_promotion_makes_a_memory(self, working: Any, memory: MemGraph, clock: Any) -> None:
        touched = memory.tasks.get("login").touched_at
        clock.advance(hours=1)
        working.keep("c", "Tokens expire after an hour", ttl_s=60, task_id="login")
        working.replace("s", **FIELDS)
        working.set_context("s", "Webhooks")
        assert memory.store.get_stats().total == 0
        assert memory.tasks.get("login").touched_at == touched, "it is no part of the task"
        made = working.promote("c")
        assert (made.content, made.task_id) == ("Tokens expire after an hour", "login")
        assert working.kept(task_id="login") == []
        assert [one.id for one in memory.store.list_memories()] == [made.id]
        with pytest.raises(NotFoundError):
            working.promote("c")

    def test_a_text_is_kept_for_a_task_that_exists_whatever_the_door(self, working: Any, memory: MemGraph) -> None:
        with pytest.raises(NotFoundError, match="no task"):
            working.keep("c", "Ann is on the phone", ttl_s=10, task_id="nowhere")
        event = TransientSet(item_id="c", content="x", expires_at="2099-01-01T00:00:00.000Z", task_id="nowhere")
        with pytest.raises(NotFoundError, match="no task"):
            memory.store.commit("system", [event])
        assert working.kept(task_id="nowhere") == []

    def test_what_has_expired_is_not_promoted(self, working: Any, memory: MemGraph, clock: Any) -> None:
        working.keep("c", "Ann is on the phone", ttl_s=10)
        clock.advance(seconds=10)
        with pytest.raises(NotFoundError, match="has not expired"):
            working.promote("c")
        assert memory.store.get_stats().total == 0


def test_what_is_invalid_is_refused(working: Any, bytes_of: Callable[[], bytes]) -> None:
    before = bytes_of()
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: working.replace("s"), "is empty"),
        (lambda: working.replace(" ", task="x"), "must not be empty"),
        (lambda: working.replace("s", task="x" * 10_000), "at most 8000 characters"),
        (lambda: working.replace("s", pending=["x"] * 101), "pending"),
        (lambda: working.set_context("s", " "), "must not be empty"),
        (lambda: working.keep("a", "x", ttl_s=0), "ttl_s"),
        (lambda: working.keep("a", "x", ttl_s=float("inf")), "ttl_s"),
        (lambda: working.keep("a", "", ttl_s=1), "must not be empty"),
        (lambda: working.keep("a", "x", ttl_s=1, task_id="nowhere"), "no task"),
    ]
    for call, says in calls:
        with pytest.raises(MemGraphError, match=says):
            call()
    assert bytes_of() == before


def test_all_of_it_is_replayed(working: Any) -> None:
    working.replace("s", **FIELDS)
    working.set_context("s", "Webhooks")
    working.keep("a", "x", ttl_s=60, task_id="login")
    tables = ("WorkingMemory", "ChatContext", "TransientItem")
    before = {table: working.store.reader.every_record(table) for table in tables}
    assert all(before.values())
    working.store.rebuild()
    assert {table: working.store.reader.every_record(table) for table in tables} == before
