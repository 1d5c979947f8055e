"""A state machine of tasks, sessions and agents: whatever happens in whichever order, also when the process dies in between or in a commit.

Every text names its task in one word, such as ``xt2x``; so what is shown where it does not belong is found by looking for the word.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memgraph import AgentMemoryStore, MemGraph, MemGraphError, NotFoundError
from memgraph.config import AgentMemoryConfig
from memgraph.fold import EmptyRows, Projection, project
from memgraph.fold.tasks import WRITABLE
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.opening import open_journal
from memgraph.model.events.tasks import DecisionMade
from memgraph.model.ids import new_id
from memgraph.retrieval.context.task_labels import related_label
from memgraph.tasks.pins import TOKEN_LIFE_S, Pins
from memgraph.testing import FakeClock, FakeEmbedder

TASKS = tuple(f"t{number}" for number in range(1, 6))
SESSIONS = ("s1", "s2", "s3")
AGENTS = ("ann", "bob")
OPENED = {"decide": "decisions", "constrain": "constraints", "ask": "open_questions", "plan": "next_actions"}
WORD = re.compile(r"x(t[1-5])x")
STATUSES = ("active", "suspended", "archived", "closed")
MAX_LINKS = 3

tasks = st.sampled_from(TASKS)
sessions = st.sampled_from(SESSIONS)
numbers = st.integers(0, 3)


def word(name: str) -> str:
    return f"x{name}x"


def named_in(text: str) -> set[str]:
    """Return the tasks whose texts are shown."""
    return set(WORD.findall(text))


@dataclass
class Removal:
    """A request to remove a pin."""

    pin_id: str
    token: str
    asked: float
    state: str = "open"


@dataclass
class Given:
    """A handoff, for one agent or for any."""

    task: str
    giver: str
    to: str | None
    state: str = "open"

    @property
    def taker(self) -> str:
        return self.to or next(one for one in AGENTS if one != self.giver)

    @property
    def is_anyones(self) -> bool:
        """Whether it exists for agents that have no part in it."""
        return self.to is None and self.state != "accepted"


class TaskMachine(RuleBasedStateMachine):
    """See the module. The model: what each task holds, its status and links, the pins, the handoffs, and the stack of each session."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="memgraph-tasks-"))
        self.clock, self.steps, self.lives = FakeClock(), 0, 0
        self.status = dict.fromkeys(TASKS, "active")
        self.links: dict[str, list[str]] = {name: [] for name in TASKS}
        self.asks = dict.fromkeys(SESSIONS, False)
        self.items: dict[str, dict[str, list[str]]] = {name: {kind: [] for kind in OPENED.values()} for name in TASKS}
        self.stacks: dict[str, list[str]] = {name: [] for name in SESSIONS}
        self.autoswitch = dict.fromkeys(SESSIONS, False)
        self.pins: dict[str, tuple[str, str | None]] = {}
        self.removals: list[Removal] = []
        self.handoffs: dict[str, Given] = {}
        self.working: dict[str, str] = {}
        self.kept: dict[str, tuple[str, float]] = {}
        self.memory = self.opened()
        for name in TASKS:
            self.memory.tasks.upsert(f"Title {word(name)}", task_id=name)

    def opened(self, root: Path | None = None) -> MemGraph:
        folder = root or self.root
        config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        return MemGraph(AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=self.clock))

    # -- what is done

    def done_if(self, is_allowed: bool, call: Callable[[], Any]) -> bool:
        """Make a call that must be refused if it is not allowed; return whether it was done."""
        if not is_allowed:
            with pytest.raises(MemGraphError):
                call()
            return False
        call()
        return True

    def is_open(self, name: str | None) -> bool:
        return name is None or self.status[name] in WRITABLE

    @rule(what=st.sampled_from(list(OPENED)), name=tasks, number=numbers)
    def commit(self, what: str, name: str, number: int) -> None:
        text = f"{what} {number} {word(name)}"
        if self.done_if(self.is_open(name), lambda: getattr(self.memory.tasks, what)(name, text)):
            self.items[name][OPENED[what]].append(text)

    @rule(name=tasks, other=tasks)
    def close_an_item(self, name: str, other: str) -> None:
        """A task that can change can close its own items, and no task those of another."""
        found = self.memory.tasks.snapshot(other).decisions
        is_allowed = name == other and self.is_open(name)
        if found and self.done_if(is_allowed, lambda: self.memory.tasks.revert(name, found[0].id)):
            del self.items[name]["decisions"][0]

    @rule(name=tasks, status=st.sampled_from((*STATUSES, "active", "active")))
    def set_status(self, name: str, status: Any) -> None:
        self.memory.tasks.set_status(name, status)
        self.status[name] = status
        if not self.is_open(name):
            self.nothing_changes_in(name)

    def nothing_changes_in(self, name: str) -> None:
        """Try everything that changes a task, its pins and its handoffs."""
        tasks, text = self.memory.tasks, f"too late {word(name)}"
        free = next(one for one in TASKS if one not in (name, *self.links[name]))
        calls: list[Callable[[], Any]] = [
            *(lambda what=what: getattr(tasks, what)(name, text) for what in OPENED),
            *(lambda one=one: tasks.close_item(name, one.id) for one in tasks.snapshot(name).decisions),
            lambda: tasks.link(name, free),
            *(lambda other=other: tasks.unlink(name, other) for other in self.links[name]),
            lambda: self.tokens.upsert(text, task_id=name),
            lambda: tasks.handoffs.create(name, text, from_agent="ann"),
            *(lambda one=one: tasks.sessions.switch(one, name) for one in SESSIONS if self.stacks[one][-1:] != [name]),
        ]
        for pin_id in [key for key, (_, task) in self.pins.items() if task == name]:
            calls.append(lambda pin_id=pin_id: self.tokens.edit(pin_id, text=text))
            calls.append(lambda pin_id=pin_id: self.tokens.request_removal(pin_id))
            calls.append(lambda pin_id=pin_id: self.tokens.forget([pin_id]))
        for key, one in self.handoffs.items():
            if (one.task, one.state) == (name, "open"):
                calls.append(lambda key=key, one=one: tasks.handoffs.accept(key, one.taker))
                calls.append(lambda key=key: tasks.handoffs.withdraw(key))
        for call in calls:
            with pytest.raises(MemGraphError):
                call()

    @rule(name=tasks, others=st.lists(tasks, min_size=1, max_size=5, unique=True))
    def link(self, name: str, others: list[str]) -> None:
        for other in others:
            known = self.links[name]
            is_new = self.is_open(name) and name != other and self.status[other] != "closed" and len(known) < MAX_LINKS
            call = lambda other=other: self.memory.tasks.link(name, other)  # noqa: E731
            if self.done_if(other in known or is_new, call) and other not in known:
                known.append(other)

    @rule(name=tasks, other=tasks)
    def unlink(self, name: str, other: str) -> None:
        is_linked = other in self.links[name]
        is_allowed = not is_linked or self.is_open(name)
        if self.done_if(is_allowed, lambda: self.memory.tasks.unlink(name, other)) and is_linked:
            self.links[name].remove(other)

    @rule(name=tasks, number=numbers)
    def remember(self, name: str, number: int) -> None:
        fields = {"type": "semantic", "content": f"memory {number} {word(name)}", "task_id": name}
        self.memory.store.insert_memory(fields)

    @rule(session=sessions, name=tasks, push=st.booleans())
    def switch(self, session: str, name: str, push: bool) -> None:
        stack = self.stacks[session]
        is_same = stack[-1:] == [name]
        expected = stack if is_same else [*(one for one in (stack if push else stack[:-1]) if one != name), name]
        is_allowed = is_same or (self.is_open(name) and len(expected) <= 3)
        if self.done_if(is_allowed, lambda: self.memory.tasks.sessions.switch(session, name, push=push)):
            self.put(session, expected)

    @rule(session=sessions)
    def resume(self, session: str) -> None:
        expected = [one for one in self.stacks[session][:-1] if self.is_open(one)]
        if self.done_if(bool(expected), lambda: self.memory.tasks.sessions.resume(session)):
            self.put(session, expected)

    @rule(session=sessions, name=tasks)
    def leave(self, session: str, name: str) -> None:
        """What is left may end with a task that does not change any more: nobody can switch to it, so the call is refused."""
        expected = [one for one in self.stacks[session] if one != name]
        is_allowed = expected == self.stacks[session] or not expected or self.is_open(expected[-1])
        if self.done_if(is_allowed, lambda: self.memory.tasks.sessions.leave(session, name)):
            self.put(session, expected)

    def put(self, session: str, stack: list[str]) -> None:
        """Note the tasks of a session: another current one answers what was asked."""
        if stack[-1:] != self.stacks[session][-1:]:
            self.asks[session] = False
        self.stacks[session] = stack

    @rule(session=sessions, on=st.booleans())
    def set_autoswitch(self, session: str, on: bool) -> None:
        self.memory.tasks.sessions.control(session, autoswitch=on)
        self.autoswitch[session] = on

    @rule(session=sessions, on=st.sampled_from(["minimal", "supportive"]))
    def set_guidance(self, session: str, on: Any) -> None:
        self.memory.tasks.sessions.control(session, guidance=on)

    @rule(session=sessions, said=st.lists(tasks, min_size=1, max_size=2))
    def turn(self, session: str, said: list[str]) -> None:
        message = f"go on with {' and '.join(f'Title {word(one)}' for one in said)}"
        stack, limits = self.stacks[session], self.memory.store.config.turns
        before = self.memory.tasks.sessions.get(session)
        found = self.memory.tasks.begin_turn(session, message)
        is_guarded = before.switches_back >= limits.max_switches_back or before.mismatches >= limits.max_mismatches
        assert found.inferred_task is None or self.is_open(found.inferred_task), "a task that is over is never meant"
        if found.decision == "switched":
            assert self.autoswitch[session], "a turn switches only if the user allowed it"
            assert not found.ambiguous
            assert found.confidence >= limits.switch_confidence
            assert not is_guarded
            assert {one for one in said if self.is_open(one)} == {found.inferred_task}
            chosen = str(found.inferred_task)
            self.put(session, [*(one for one in stack[:-1] if one != chosen), chosen])
        elif len(set(said)) == 1 and self.is_open(said[0]) and stack[-1:] != said[:1]:
            assert found.decision == ("guarded" if self.autoswitch[session] else "autoswitch_off")
            assert is_guarded or not self.autoswitch[session]
        assert found.resolved_task == (self.stacks[session] or [None])[-1]
        assert found.confirmations == []
        self.asks[session] = found.nudge is not None
        if found.nudge is not None:
            self.agree(session, None)

    @rule(session=sessions, asked=st.sampled_from([None, "Shall we?"]))
    def agree(self, session: str, asked: str | None) -> None:
        """A "yes" changes no task but the current one, and says nothing to a question of several options."""
        active = (self.stacks[session] or [None])[-1]
        found = self.memory.tasks.begin_turn(session, "yes", asked=asked)
        assert found.resolved_task == active
        is_recorded = active is not None and self.is_open(active) and (asked is not None or found.nudge is None)
        assert [(one.task_id, one.confirmed) for one in found.confirmations] == (
            [(active, asked)] if is_recorded else []
        )
        assert found.nudge is None or (self.asks[session] and asked is None)
        assert (
            found.nudge is not None or not self.asks[session] or asked is not None or not all(map(self.is_open, TASKS))
        )
        self.asks[session] = found.nudge is not None

    @rule(name=st.none() | tasks, number=numbers, kind=st.sampled_from(["fact", "constraint"]))
    def pin(self, name: str | None, number: int, kind: Any) -> None:
        text = f"pin {number} {word(name) if name else 'everywhere'}"
        known = next((key for key, one in self.pins.items() if one == (text, name)), None)
        if known is None and not self.is_open(name):
            with pytest.raises(MemGraphError):
                self.tokens.upsert(text, kind=kind, task_id=name)
            return
        found = self.tokens.upsert(text.upper() if known else text, kind=kind, task_id=name)
        assert found.is_new == (known is None)
        if known is None:
            self.pins[found.pin.id] = (text, name)

    @precondition(lambda self: self.pins)
    @rule(place=numbers)
    def edit_pin(self, place: int) -> None:
        pin_id = list(self.pins)[place % len(self.pins)]
        _, name = self.pins[pin_id]
        text = f"edited {self.steps} {word(name) if name else 'everywhere'}"
        if self.done_if(self.is_open(name), lambda: self.tokens.edit(pin_id, text=text)):
            self.pins[pin_id] = (text, name)

    @precondition(lambda self: self.pins)
    @rule(place=numbers, then=st.sampled_from(["wait", "cancel", "confirm"]))
    def ask_to_remove_pin(self, place: int, then: str) -> None:
        pin_id = list(self.pins)[place % len(self.pins)]
        if not self.is_open(self.pins[pin_id][1]):
            with pytest.raises(MemGraphError):
                self.tokens.request_removal(pin_id)
            return
        one = Removal(pin_id, self.tokens.request_removal(pin_id).token, self.seconds())
        self.removals.append(one)
        if then == "cancel":
            self.cancel(one)
        if then != "wait":
            self.confirm(one)

    @precondition(lambda self: self.removals)
    @rule(place=st.integers(0, 9), cancels=st.booleans())
    def settle_removal(self, place: int, cancels: bool) -> None:
        one = self.removals[place % len(self.removals)]
        (self.cancel if cancels else self.confirm)(one)

    def confirm(self, one: Removal) -> None:
        """Once: by a token that is fresh, of a pin that holds. Confirming again changes nothing."""
        is_fresh = one.state == "open" and self.seconds() - one.asked <= TOKEN_LIFE_S
        is_allowed = is_fresh and one.pin_id in self.pins and self.is_open(self.pins[one.pin_id][1])
        call = lambda: self.tokens.confirm_removal(one.pin_id, one.token)  # noqa: E731
        if self.done_if(is_allowed or one.state == "confirmed", call) and one.state == "open":
            one.state = "confirmed"
            del self.pins[one.pin_id]

    def cancel(self, one: Removal) -> None:
        """Also one that has expired, and as often as one likes."""
        call = lambda: self.tokens.cancel_removal(one.pin_id, one.token)  # noqa: E731
        if self.done_if(one.state != "confirmed", call) and one.pin_id in self.pins:
            one.state = "cancelled"

    @rule(name=tasks, giver=st.sampled_from(AGENTS), taker=st.none() | st.sampled_from(AGENTS))
    def hand_over(self, name: str, giver: str, taker: str | None) -> None:
        call = lambda: self.memory.tasks.handoffs.create(  # noqa: E731
            name, f"done {word(name)}", from_agent=giver, to_agent=taker
        )
        if giver == taker or not self.is_open(name):
            with pytest.raises(MemGraphError):
                call()
        else:
            self.handoffs[call().id] = Given(name, giver, taker)

    @precondition(lambda self: self.handoffs)
    @rule(place=numbers)
    def take_over(self, place: int) -> None:
        handoff_id = list(self.handoffs)[place % len(self.handoffs)]
        one = self.handoffs[handoff_id]
        with pytest.raises(MemGraphError):
            self.memory.tasks.handoffs.accept(handoff_id, one.giver)
        if not one.is_anyones:
            for call in (self.memory.tasks.handoffs.accept, self.memory.tasks.handoffs.withdraw):
                with pytest.raises(NotFoundError, match=handoff_id):
                    call(handoff_id, agent="a third")
        is_allowed = one.state == "accepted" or (one.state == "open" and self.is_open(one.task))
        if self.done_if(is_allowed, lambda: self.memory.tasks.handoffs.accept(handoff_id, one.taker)):
            one.state = "accepted"
            page = self.memory.tasks.handoffs.page(handoff_id, agent=one.taker)
            assert named_in(page.text) <= {one.task}

    @precondition(lambda self: self.handoffs)
    @rule(place=numbers)
    def withdraw(self, place: int) -> None:
        handoff_id = list(self.handoffs)[place % len(self.handoffs)]
        one = self.handoffs[handoff_id]
        is_allowed = one.state == "withdrawn" or (one.state == "open" and self.is_open(one.task))
        if self.done_if(is_allowed, lambda: self.memory.tasks.handoffs.withdraw(handoff_id, agent=one.giver)):
            one.state = "withdrawn"

    @rule(session=sessions)
    def work(self, session: str) -> None:
        self.working[session] = f"notes {self.steps} of {session}"
        self.memory.tasks.working.replace(session, task=f"work in {session}", notes=self.working[session])

    @rule(name=st.none() | tasks, life_s=st.sampled_from([60, 600]))
    def keep(self, name: str | None, life_s: int) -> None:
        item = f"kept-{name}"
        text = f"kept {word(name) if name else 'for all'}"
        self.memory.tasks.working.keep(item, text, ttl_s=life_s, task_id=name)
        self.kept[item] = (name or "", self.seconds() + life_s)

    @rule(seconds=st.sampled_from([1, 61, 181, 700]))
    def pass_time(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def prune(self) -> None:
        self.memory.tasks.working.prune()

    @rule(name=tasks, is_whole=st.booleans())
    def crash(self, name: str, is_whole: bool) -> None:
        """Die in a commit, before or after the database has taken it; then open again."""
        if not self.is_open(name):
            return
        self.lives += 1
        text = f"torn {self.lives} {word(name)}"
        place = "_write_head_file" if is_whole else "put_head"
        with patch.object(Journal, place, side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
            self.memory.tasks.commit("task", [DecisionMade(id=new_id(), decision=text)], task_id=name)
        if is_whole:
            self.items[name]["decisions"].append(text)
        self.die()

    @rule()
    def die(self) -> None:
        """Die between two commits: what is on the disk at this moment is all that the next process finds."""
        self.lives += 1
        next_root = Path(tempfile.mkdtemp(prefix="memgraph-tasks-"))
        for part in ("store", "keys"):
            shutil.copytree(self.root / part, next_root / part)
        self.memory.close()
        shutil.rmtree(self.root)
        self.root = next_root
        self.memory = self.opened()

    # -- what must be so after every step

    @invariant()
    def tasks_hold_their_own(self) -> None:
        self.steps += 1
        for name in TASKS:
            found = self.memory.tasks.snapshot(name)
            assert {kind: [one.content for one in getattr(found, kind)] for kind in OPENED.values()} == self.items[name]
            assert {one.task_id for kind in OPENED.values() for one in getattr(found, kind)} <= {name}
            assert (found.status, sorted(found.links)) == (self.status[name], sorted(self.links[name]))

    @invariant()
    def sessions_are_where_they_were_put(self) -> None:
        for session in SESSIONS:
            assert self.memory.tasks.sessions.get(session).stack == self.stacks[session]

    @invariant()
    def pins_are_as_they_were_edited(self) -> None:
        found = self.tokens.list(all_tasks=True)
        assert {one.id: (one.content, one.task_id) for one in found} == self.pins

    @invariant()
    def working_memories_and_kept_texts_are_their_owners(self) -> None:
        for session, notes in self.working.items():
            found = self.memory.tasks.working.get(session)
            assert found is not None
            assert found.notes == notes
        for name in (None, *TASKS):
            expected = {item for item, (of, ends) in self.kept.items() if of == (name or "") and ends > self.seconds()}
            assert {one.id for one in self.memory.tasks.working.kept(task_id=name)} == expected

    @invariant()
    def handoffs_are_as_agents_left_them(self) -> None:
        for agent in AGENTS:
            found = {one.id: (one.task_id, one.state) for one in self.memory.tasks.handoffs.list(agent=agent)}
            assert found == {key: (one.task, one.state) for key, one in self.handoffs.items()}
        third = {one.id for one in self.memory.tasks.handoffs.list(agent="a third")}
        assert third == {key for key, one in self.handoffs.items() if one.is_anyones}

    @invariant()
    def nothing_is_shown_of_another_task(self) -> None:
        """But of a task to which the current one is linked, and that is labelled."""
        if self.steps % 4:
            return
        session = SESSIONS[self.steps // 4 % len(SESSIONS)]
        active = (self.stacks[session] or [None])[-1]
        linked = self.links[active] if active else []
        everything = " ".join(map(word, TASKS))
        result = self.memory.recall(everything, session_id=session)
        assert {one.task_id for one in result.memories} <= {active, None, *linked}
        for one in result.memories:
            if one.task_id not in (active, None):
                assert one.id in result.related_ids
                assert result.labels[one.id] == related_label(str(one.task_id))
        assert len(result.related_ids) <= self.memory.store.config.retrieval_budget.related
        for line in self.memory.tasks.prompt(everything, session=session).text.splitlines():
            for name in named_in(line) - {active}:
                assert name in linked
                assert related_label(name) in line
        name = TASKS[self.steps // 4 % len(TASKS)]
        assert named_in(self.memory.tasks.continuity(name).text) <= {name}

    @invariant()
    def the_state_is_that_of_the_journal(self) -> None:
        if self.steps % 3:
            return
        digest = self.memory.store.digest()  # commits pending accesses, so before the replay
        keys = self.root / "keys"
        journal = open_journal(
            self.root / "store", FileKeys(keys), keys_home=keys, now=self.memory.store.now, created_by="tests"
        )
        commits = list(journal.replay())
        events = [event for commit in commits for event in commit.events]
        _, state = project(events, commits[-1].after, Projection(journal.store_id), EmptyRows())
        assert digest == f"{state.digest:064x}"

    @property
    def tokens(self) -> Pins:
        """The pins, with the uptime of a machine that this machine sets."""
        return Pins(self.memory.store, self.seconds)

    def seconds(self) -> float:
        return self.clock().timestamp()

    def teardown(self) -> None:
        try:
            self.memory.close()
        except MemGraphError:
            if sys.exc_info()[0] is None:
                raise
        finally:
            shutil.rmtree(self.root, ignore_errors=True)


def lives(examples: int, steps: int, *phases: Phase) -> settings:
    return settings(
        phases=[Phase.explicit, Phase.generate, *phases],
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        derandomize=True,
        deadline=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )


def test_tasks_are_their_model() -> None:
    run_state_machine_as_test(TaskMachine, settings=lives(10, 30))


@pytest.mark.long
def test_tasks_are_their_model_for_long() -> None:
    run_state_machine_as_test(TaskMachine, settings=lives(60, 50, Phase.shrink))
