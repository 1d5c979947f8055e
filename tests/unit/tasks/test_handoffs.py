"""Handoffs: who may accept what, in which state, and which memories go with it."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import InvalidInputError, MemGraph, MemGraphError, NotFoundError
from memgraph.errors import DuplicateIdError, ScopeError, UndoError
from memgraph.model.events.tasks import HandoffAccepted, HandoffCreated
from memgraph.model.ids import new_id
from memgraph.model.memory import SemanticMemory


@pytest.fixture
def handoffs(tasks: Any) -> Any:
    return tasks.handoffs


@pytest.fixture
def add(memory: MemGraph) -> Any:
    def stored(content: str, **fields: Any) -> str:
        return str(memory.store.insert_memory(SemanticMemory(content=content, source="test", **fields)).id)

    return stored


def give(handoffs: Any, **given: Any) -> Any:
    return handoffs.create(
        "login", **{"what_was_done": "Login accepts tokens", "from_agent": "eng", "to_agent": "qa", **given}
    )


class TestCreate:
    def test_it_carries_what_was_said_and_the_state_at_that_event(self, tasks: Any, handoffs: Any) -> None:
        tasks.decide("login", "Use tokens")
        lists = {"artifacts": ["login.py"], "needs_testing": ["expired tokens"], "known_issues": ["slow"]}
        made = give(handoffs, **lists)
        tasks.decide("login", "Use cookies")
        shown = handoffs.get(made.id[:8])
        assert shown == made
        assert {name: getattr(shown, name) for name in lists} == lists
        assert (shown.from_agent, shown.to_agent, shown.state, shown.git_state) == ("eng", "qa", "open", None)
        then = tasks.snapshot("login", as_of=shown.seq)
        assert [one.content for one in then.decisions] == ["Use tokens"]
        assert [one.content for one in handoffs.page(made.id).task.decisions] == ["Use tokens"]
        assert handoffs.page(made.id).since == ["decision: Use cookies"]

    def test_memories_are_chosen_in_the_scope_of_the_task(self, tasks: Any, handoffs: Any, add: Any) -> None:
        mine, shared = add("The login checks tokens", task_id="login"), add("Tokens of the login live an hour")
        add("The login page of the docs accepts tokens", task_id="docs")
        assert set(give(handoffs).memory_ids) == {mine, shared}

    def test_the_budget_of_chosen_memories_holds(self, handoffs: Any, add: Any) -> None:
        for number in range(8):
            add(f"The login accepts tokens of kind {number} " + "and more tokens " * 20)
        assert len(give(handoffs, max_tokens=200).memory_ids) == 2  # of 89 tokens each

    def test_named_memories_are_carried_in_their_order(self, handoffs: Any, add: Any) -> None:
        ids = [add("Bananas are yellow"), add("Apples are red"), add("Login", task_id="login")]
        assert give(handoffs, memories=ids[::-1]).memory_ids == ids[::-1]
        assert give(handoffs, memories=[]).memory_ids == []

    @pytest.mark.parametrize(
        ("given", "error", "says"),
        [
            ({"to_agent": "eng"}, InvalidInputError, "is the agent that hands over"),
            ({"what_was_done": " "}, InvalidInputError, "must not be empty"),
            ({"what_was_done": "x" * 8_001}, InvalidInputError, "what_was_done"),
            ({"from_agent": "agent"}, InvalidInputError, "is no agent's own name"),
            ({"to_agent": ""}, InvalidInputError, "to_agent"),
            ({"artifacts": ["x" * 801]}, InvalidInputError, "artifacts"),
            ({"known_issues": ["x"] * 101}, InvalidInputError, "known_issues"),
            ({"memories": ["nonsense"]}, NotFoundError, "nonsense"),
            ({"memories": [new_id()]}, NotFoundError, "no memory"),
            ({"work_tree": "/nowhere"}, MemGraphError, "is not a folder"),
            ({"max_tokens": 10}, InvalidInputError, "max_tokens"),
        ],
    )
    def test_what_is_refused(self, handoffs: Any, bytes_of: Any, given: Any, error: Any, says: str) -> None:
        before = bytes_of()
        with pytest.raises(error, match=says):
            give(handoffs, **given)
        assert handoffs.list() == []
        assert bytes_of() == before

    @pytest.mark.parametrize("status", ["archived", "closed"])
    def test_a_task_that_does_not_change_is_not_handed_over(self, tasks: Any, handoffs: Any, status: str) -> None:
        tasks.set_status("login", status)
        with pytest.raises(InvalidInputError, match=f"is {status}"):
            give(handoffs)
        with pytest.raises(NotFoundError, match="nowhere"):
            handoffs.create("nowhere", "Done", from_agent="eng")

    def test_a_memory_of_another_task_stays_there(self, tasks: Any, handoffs: Any, add: Any) -> None:
        other = add("The docs are in Markdown", task_id="docs")
        with pytest.raises(NotFoundError):
            give(handoffs, memories=[other])
        event = HandoffCreated(id=new_id(), from_agent="eng", what_was_done="Done", memories=[other])
        with pytest.raises(ScopeError, match="belongs to another task"):  # whichever door it comes through
            tasks.commit("task", [event], task_id="login")

    def test_an_agent_hands_over_only_what_it_may_have(self, handoffs: Any, add: Any) -> None:
        private = add("The login of the clinic", domain="health")
        with pytest.raises(NotFoundError):
            give(handoffs, memories=[private])
        assert give(handoffs).memory_ids == []

    def test_secrets_are_not_stored(self, handoffs: Any, bytes_of: Any) -> None:
        secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        give(handoffs, what_was_done=f"Used the token {secret}")
        assert secret.encode() not in bytes_of()


class TestAccept:
    def test_it_can_be_repeated_and_switches_no_session(self, tasks: Any, handoffs: Any, bytes_of: Any) -> None:
        made = give(handoffs)
        tasks.sessions.switch("s", "docs")
        first = handoffs.accept(made.id, "qa")
        assert (first.handoff.state, first.handoff.accepted_by) == ("accepted", "qa")
        assert first.command == "memgraph task switch login"
        before = bytes_of()
        assert handoffs.accept(made.id, "qa").handoff == first.handoff
        assert bytes_of() == before
        assert tasks.sessions.get("s").active == "docs"

    def test_only_the_addressee_may(self, handoffs: Any) -> None:
        made = give(handoffs)
        for agent, says in (("eng", "is the agent that hands over"), ("agent", "own name")):
            with pytest.raises(InvalidInputError, match=says):
                handoffs.accept(made.id, agent)
        assert handoffs.get(made.id).state == "open"

    def test_one_between_other_agents_is_as_unknown_as_one_that_does_not_exist(
        self, handoffs: Any, bytes_of: Any
    ) -> None:
        made, before = give(handoffs), bytes_of()
        for call in (handoffs.accept, handoffs.withdraw, handoffs.get, handoffs.page):
            answers = []
            for wanted in (made.id, new_id(), made.id[:8], "f" * 8):
                with pytest.raises(NotFoundError) as refused:
                    call(wanted, agent="other")
                answers.append(str(refused.value).replace(wanted, "ID"))
            assert len(set(answers)) == 1
        assert bytes_of() == before
        assert handoffs.get(made.id).state == "open"

    def test_an_open_one_is_for_any_other_agent_once(self, handoffs: Any) -> None:
        made = give(handoffs, to_agent=None)
        with pytest.raises(InvalidInputError, match="is the agent that hands over"):
            handoffs.accept(made.id, "eng")
        handoffs.accept(made.id, "second")
        with pytest.raises(NotFoundError, match="no handoff"):
            handoffs.accept(made.id, "third")
        assert [one.id for one in handoffs.list(agent="second")] == [made.id]
        assert handoffs.list(agent="third") == []

    def test_a_task_that_was_closed_since_is_not_accepted(self, tasks: Any, handoffs: Any) -> None:
        made = give(handoffs)
        tasks.set_status("login", "closed")
        with pytest.raises(InvalidInputError, match="opens it again"):
            handoffs.accept(made.id, "qa")
        tasks.set_status("login", "active")
        assert handoffs.accept(made.id, "qa").handoff.state == "accepted"

    def test_events_that_do_not_fit_are_refused_at_every_door(self, tasks: Any, handoffs: Any) -> None:
        made = give(handoffs)
        with pytest.raises(NotFoundError, match="no handoff"):  # in the scope of another task
            tasks.commit("task", [HandoffAccepted(id=made.id, agent="qa")], task_id="docs")
        with pytest.raises(InvalidInputError, match="is not 'qa'"):
            tasks.commit("task", [HandoffAccepted(id=made.id, agent="x")], task_id="login")
        with pytest.raises(InvalidInputError, match="changes already"):
            tasks.commit("task", [HandoffAccepted(id=made.id, agent="qa")] * 2, task_id="login")
        again = HandoffCreated(id=made.id, from_agent="a", what_was_done="x")
        with pytest.raises(DuplicateIdError):
            tasks.commit("task", [again], task_id="login")
        assert handoffs.get(made.id) == made

    def test_it_is_not_undone(self, memory: MemGraph, handoffs: Any) -> None:
        made = give(handoffs)
        with pytest.raises(UndoError, match="record of a task"):
            memory.curation.undo(made.seq)


class TestWithdraw:
    def test_by_its_creator_or_the_owner_before_it_is_accepted(self, handoffs: Any) -> None:
        made = give(handoffs)
        with pytest.raises(InvalidInputError, match="is not the agent that created"):
            handoffs.withdraw(made.id, agent="qa")
        ended = handoffs.withdraw(made.id, agent="eng", reason="not needed")
        assert (ended.state, ended.reason) == ("withdrawn", "not needed")
        assert handoffs.withdraw(made.id) == ended
        with pytest.raises(InvalidInputError, match="was withdrawn already"):
            handoffs.accept(made.id, "qa")
        taken = give(handoffs)
        handoffs.accept(taken.id, "qa")
        with pytest.raises(InvalidInputError, match="was accepted already"):
            handoffs.withdraw(taken.id)


class TestReading:
    def test_an_agent_sees_its_own_and_open_ones(self, handoffs: Any) -> None:
        mine, open_, others = give(handoffs), give(handoffs, to_agent=None), give(handoffs, to_agent="other")
        assert [one.id for one in handoffs.list()] == [others.id, open_.id, mine.id]
        assert [one.id for one in handoffs.list(agent="qa")] == [open_.id, mine.id]
        assert len(handoffs.list(agent="eng")) == 3
        assert handoffs.list(task_id="docs") == []
        handoffs.accept(mine.id, "qa")
        assert [one.id for one in handoffs.list(state="open")] == [others.id, open_.id]
        for missing in (others.id, others.id[:8], new_id()):
            with pytest.raises(NotFoundError, match="no handoff"):
                handoffs.get(missing, agent="qa")
        with pytest.raises(InvalidInputError, match="at least its first 8 characters"):
            handoffs.get("x", agent="qa")

    def test_its_reader_gets_only_what_it_may_have(self, open_store: Any) -> None:
        memory = MemGraph(open_store("clinic", agents={"eng": {"domain": "health"}}))
        memory.tasks.upsert("Fix the login", task_id="login")
        told = [
            memory.store.insert_memory(SemanticMemory(content=text, source="test", domain=domain)).id
            for text, domain in (("The login of the clinic", "health"), ("The login of the shop", None))
        ]
        made = give(memory.tasks.handoffs, memories=told, known_issues=["My diabetes is back", "Slow"])
        assert made.memory_ids == told
        shown = memory.tasks.handoffs.get(made.id, agent="qa")
        assert (shown.memory_ids, shown.known_issues) == (told[1:], ["Slow"])
        page = memory.tasks.handoffs.page(made.id, agent="qa")
        assert [one.id for one in page.memories] == told[1:]
        for hint in ("clinic", "diabetes", told[0][:8], "left out", "withheld"):
            assert hint not in page.model_dump_json()
        assert "clinic" in memory.tasks.handoffs.page(made.id, agent="eng").text

    def test_a_memory_that_is_gone_leaves_nothing(self, memory: MemGraph, handoffs: Any, add: Any) -> None:
        ids = [add(f"The login has the number {word}") for word in ("alpha", "beta", "gamma", "delta")]
        made = give(handoffs, memories=ids)
        memory.store.delete_memory(ids[0])
        memory.store.suppress(ids[1])
        memory.store.archive(ids[2])
        assert handoffs.get(made.id).memory_ids == ids[3:]
        text = handoffs.page(made.id).model_dump_json()
        assert [word in text for word in ("alpha", "beta", "gamma", "delta")] == [False, False, False, True]
        memory.store.rebuild()
        assert handoffs.get(made.id).memory_ids == ids[3:]
        memory.store.unsuppress(ids[1])
        assert handoffs.get(made.id).memory_ids == [ids[1], ids[3]]
        memory.store.undelete(ids[0])
        assert handoffs.get(made.id).memory_ids == [ids[1], ids[3]], "what was deleted does not come back by itself"
