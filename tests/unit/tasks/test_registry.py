"""The registry: tasks, their status, links, and what a session works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import InvalidInputError, MemGraph, NotFoundError
from memgraph.fold.tasks import LINKED, task_key


def test_a_task_is_registered_once_and_gets_an_id_from_its_title(memory: MemGraph, clock: Any) -> None:
    one, other = memory.tasks.upsert("  Fix the Login!  "), memory.tasks.upsert("Fix the login")
    assert (one.id, one.title, one.status) == ("fix-the-login", "Fix the Login!", "active")
    assert other.id == "fix-the-login-2"
    clock.advance(days=1)
    again = memory.tasks.upsert("Fix the sign-in", task_id=one.id)
    assert (again.id, again.title, again.created_at) == (one.id, "Fix the sign-in", one.created_at)
    assert again.touched_at > one.touched_at
    assert [task.id for task in memory.tasks.list()] == [one.id, other.id], "the last touched first"


def test_an_equal_upsert_status_or_link_writes_nothing(tasks: Any, bytes_of: Callable[[], bytes]) -> None:
    tasks.link("login", "docs")
    before = bytes_of()
    tasks.upsert("Fix the login", task_id="login")
    tasks.set_status("login", "active")
    tasks.link("login", "docs")
    tasks.unlink("docs", "login")
    assert bytes_of() == before


def test_tasks_are_listed_by_status_and_project(tasks: Any) -> None:
    tasks.upsert("Ship", task_id="ship", project="shop")
    tasks.set_status("docs", "suspended", reason="waits for the login")
    assert [task.id for task in tasks.list(status="suspended")] == ["docs"]
    assert [task.id for task in tasks.list(status=["active", "archived"], project="shop")] == ["ship"]


def test_a_link_is_an_edge_from_the_task_that_reads(tasks: Any) -> None:
    assert tasks.link("login", "docs").links == ["docs"]
    assert tasks.snapshot("docs").links == []
    assert tasks.related("docs") == []
    tasks.decide("docs", "Use Markdown")
    assert [item.content for item in tasks.related("login")[0].decisions] == ["Use Markdown"]
    assert tasks.snapshot("login").decisions == []
    ends = (task_key("login"), task_key("docs"))
    assert tasks.store.reader.record(LINKED, ends) is not None
    assert tasks.unlink("login", "docs").links == []
    assert tasks.store.reader.record(LINKED, ends) is None
    assert tasks.link("login", "docs").links == ["docs"], "it can be linked again"


def test_a_task_has_at_most_three_links(tasks: Any) -> None:
    for name in "abcd":
        tasks.upsert(name, task_id=name)
    for name in "abc":
        tasks.link("login", name)
    with pytest.raises(InvalidInputError, match=r"3 are allowed \(max_task_links\)"):
        tasks.link("login", "d")
    tasks.unlink("login", "a")
    assert tasks.link("login", "d").links == ["b", "c", "d"]


def test_the_number_of_links_is_a_setting(open_store: Any) -> None:
    tasks = MemGraph(open_store("other", max_task_links=1)).tasks
    for name in "abc":
        tasks.upsert(name, task_id=name)
    tasks.link("a", "b")
    with pytest.raises(InvalidInputError, match="1 are allowed"):
        tasks.link("a", "c")


def test_what_does_not_exist_or_is_closed_is_refused(tasks: Any, bytes_of: Callable[[], bytes]) -> None:
    tasks.upsert("Old", task_id="old")
    tasks.set_status("old", "closed")
    before = bytes_of()
    for ends in (("login", "nowhere"), ("nowhere", "login")):
        with pytest.raises(NotFoundError, match="no task with id 'nowhere'; `memgraph task list`"):
            tasks.link(*ends)
    with pytest.raises(InvalidInputError, match="is the task itself"):
        tasks.link("login", "login")
    with pytest.raises(InvalidInputError, match="names a task that is closed"):
        tasks.link("login", "old")
    for change in (tasks.link, tasks.decide, tasks.set_goal, tasks.confirm):
        with pytest.raises(InvalidInputError, match=r"is closed.*`memgraph task status ID active`"):
            change("old", "login")
    with pytest.raises(InvalidInputError, match="status"):
        tasks.set_status("login", "finished")
    with pytest.raises(InvalidInputError, match="must not be empty"):
        tasks.upsert("   ")
    with pytest.raises(InvalidInputError, match="is not that of the task"):
        tasks.upsert("Fix the login", task_id="login", project="shop")
    assert bytes_of() == before


def test_a_closed_task_can_be_opened_again(tasks: Any) -> None:
    tasks.set_status("login", "closed")
    tasks.set_status("login", "active")
    assert tasks.decide("login", "Use tokens").content == "Use tokens"


@pytest.mark.embedded
def test_what_an_agent_may_read_holds_no_tasks(tasks: Any, memory: MemGraph) -> None:
    tasks.decide("login", "Use tokens")
    tasks.pins.upsert("Never deploy on Fridays", kind="constraint")
    tasks.working.replace("s", task="Debug")
    tasks.working.keep("a", "x", ttl_s=60)
    with memory.as_agent("A") as view:
        assert view.tasks.list() == view.tasks.pins.list(all_tasks=True) == view.tasks.working.kept() == []
        assert not view.tasks.working.exists("s")
        for table in ("TaskItem", "Pin", "PinRemoval"):
            assert view.store.reader.every_record(table) == []
        assert [one.content for one in view.store.list_memories()] == ["Never deploy on Fridays"]


class TestSessions:
    def test_a_session_interrupts_and_resumes(self, tasks: Any) -> None:
        sessions = tasks.sessions
        assert sessions.get("s").active is None
        sessions.switch("s", "login")
        assert sessions.switch("s", "docs", push=True).stack == ["login", "docs"]
        assert sessions.get("other").stack == [], "sessions have nothing in common"
        assert sessions.resume("s").active == "login"
        assert sessions.switch("s", "docs").stack == ["docs"], "it replaces the current task"
        with pytest.raises(InvalidInputError, match="has interrupted no task"):
            sessions.resume("s")
        assert sessions.leave("s", "docs").active is None

    def test_a_session_holds_at_most_three_tasks(self, tasks: Any) -> None:
        for name in "abcd":
            tasks.upsert(name, task_id=name)
        for name in "abc":
            tasks.sessions.switch("s", name, push=True)
        with pytest.raises(InvalidInputError, match="would be the 4th task of the session"):
            tasks.sessions.switch("s", "d", push=True)
        assert tasks.sessions.get("s").stack == ["a", "b", "c"]
        assert tasks.sessions.switch("s", "a", push=True).stack == ["b", "c", "a"], "one that it holds moves up"

    def test_a_closed_or_unknown_task_is_not_worked_on(self, tasks: Any) -> None:
        tasks.sessions.switch("s", "login")
        tasks.sessions.switch("s", "docs", push=True)
        tasks.set_status("login", "closed")
        with pytest.raises(InvalidInputError, match="is closed"):
            tasks.sessions.switch("s", "login")
        with pytest.raises(NotFoundError):
            tasks.sessions.switch("s", "nowhere")
        with pytest.raises(InvalidInputError, match="has interrupted no task that is still open"):
            tasks.sessions.resume("s")
        assert tasks.sessions.get("s").stack == ["login", "docs"]

    def test_nothing_but_a_switch_changes_what_a_session_works_on(self, tasks: Any, memory: MemGraph) -> None:
        tasks.sessions.switch("s", "login")
        tasks.decide("docs", "Use Markdown")
        memory.recall("Write the docs", session_id="s", task_id="docs")
        memory.store.insert_memory({"type": "semantic", "content": "About docs", "task_id": "docs", "session_id": "s"})
        tasks.set_status("docs", "suspended")
        assert tasks.sessions.get("s").active == "login"
