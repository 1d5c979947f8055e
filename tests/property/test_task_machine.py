"""A state machine of tasks, sessions and agents: whatever happens in whichever order, also when the process dies in between.

Every text names its task in one word, such as ``xt2x``; so what is shown where it does not belong is found by looking for the word.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memgraph import AgentMemoryStore, MemGraph, MemGraphError
from memgraph.config import AgentMemoryConfig
from memgraph.fold import EmptyRows, Projection, project
from memgraph.journal.keys import FileKeys
from memgraph.journal.opening import open_journal
from memgraph.model.events.tasks import DecisionMade
from memgraph.model.ids import new_id
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import in_memory

TASKS = tuple(f"t{number}" for number in range(1, 6))
SESSIONS = ("s1", "s2", "s3")
AGENTS = ("ann", "bob")
OPENED = {"decide": "decisions", "constrain": "constraints", "ask": "open_questions", "plan": "next_actions"}
WORD = re.compile(r"x(t[1-5])x")
TOKEN_LIFE_S = 180

tasks = st.sampled_from(TASKS)
sessions = st.sampled_from(SESSIONS)
numbers = st.integers(0, 3)


def word(name: str) -> str:
    return f"x{name}x"


def named_in(text: str) -> set[str]:
    """Return the tasks whose texts are shown."""
    return set(WORD.findall(text))


class TaskMachine(RuleBasedStateMachine):
    """See the module. The model: what each task holds, the pins, and the stack of each session."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="memgraph-tasks-"))
        self.clock, self.uptime, self.steps, self.lives = FakeClock(), 1_000.0, 0, 0
        self.items: dict[str, dict[str, list[str]]] = {name: {kind: [] for kind in OPENED.values()} for name in TASKS}
        self.stacks: dict[str, list[str]] = {name: [] for name in SESSIONS}
        self.autoswitch = dict.fromkeys(SESSIONS, False)
        self.pins: dict[str, tuple[str, str | None]] = {}
        self.removals: list[tuple[str, str, float]] = []
        self.handoffs: dict[str, tuple[str, str | None]] = {}
        self.working: dict[str, str] = {}
        self.kept: dict[str, tuple[str, float]] = {}
        self.torn = b""
        self.memory = self.opened()
        for name in TASKS:
            self.memory.tasks.upsert(f"Title {word(name)}", task_id=name)

    def opened(self, root: Path | None = None) -> MemGraph:
        folder = root or self.root
        config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        return MemGraph(AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=self.clock, engine=in_memory()))

    # -- what is done

    @rule(what=st.sampled_from(list(OPENED)), name=tasks, number=numbers)
    def commit(self, what: str, name: str, number: int) -> None:
        text = f"{what} {number} {word(name)}"
        getattr(self.memory.tasks, what)(name, text)
        self.items[name][OPENED[what]].append(text)

    @rule(name=tasks, other=tasks)
    def commit_in_two_tasks(self, name: str, other: str) -> None:
        """An item of another task cannot be closed from this one."""
        found = self.memory.tasks.snapshot(other).decisions
        if found and name != other:
            with pytest.raises(MemGraphError):
                self.memory.tasks.revert(name, found[0].id)

    @rule(name=tasks, number=numbers)
    def remember(self, name: str, number: int) -> None:
        fields = {"type": "semantic", "content": f"memory {number} {word(name)}", "task_id": name}
        self.memory.store.insert_memory(fields)

    @rule(session=sessions, name=tasks, push=st.booleans())
    def switch(self, session: str, name: str, push: bool) -> None:
        stack = self.stacks[session]
        expected = stack
        if stack[-1:] != [name]:
            expected = [*(one for one in (stack if push else stack[:-1]) if one != name), name]
        if len(expected) > 3:
            with pytest.raises(MemGraphError):
                self.memory.tasks.sessions.switch(session, name, push=push)
        else:
            self.memory.tasks.sessions.switch(session, name, push=push)
            self.stacks[session] = expected

    @rule(session=sessions)
    def resume(self, session: str) -> None:
        if len(self.stacks[session]) < 2:
            with pytest.raises(MemGraphError):
                self.memory.tasks.sessions.resume(session)
        else:
            self.memory.tasks.sessions.resume(session)
            self.stacks[session] = self.stacks[session][:-1]

    @rule(session=sessions, on=st.booleans())
    def set_autoswitch(self, session: str, on: bool) -> None:
        self.memory.tasks.sessions.control(session, autoswitch=on)
        self.autoswitch[session] = on

    @rule(
        session=sessions, said=st.lists(tasks, min_size=1, max_size=2), yes=st.sampled_from([False, False, False, True])
    )
    def turn(self, session: str, said: list[str], yes: bool) -> None:
        message = "yes" if yes else f"go on with {' and '.join(f'Title {word(one)}' for one in said)}"
        stack = self.stacks[session]
        counters = self.memory.tasks.sessions.get(session)
        found = self.memory.tasks.begin_turn(session, message)
        if found.decision == "switched":
            assert self.autoswitch[session], "a turn switches only if the user allowed it"
            assert not yes
            assert not found.ambiguous
            assert found.confidence >= self.memory.store.config.turns.switch_confidence
            assert counters.switches_back < self.memory.store.config.turns.max_switches_back
            assert counters.mismatches < self.memory.store.config.turns.max_mismatches
            assert set(said) == {found.inferred_task}
            chosen = found.inferred_task
            self.stacks[session] = [*(one for one in stack[:-1] if one != chosen), str(chosen)]
        elif len(set(said)) == 1 and not yes and stack[-1:] != said[:1]:
            limits = self.memory.store.config.turns
            is_guarded = (
                counters.switches_back >= limits.max_switches_back or counters.mismatches >= limits.max_mismatches
            )
            assert found.decision == ("guarded" if self.autoswitch[session] else "autoswitch_off")
            assert is_guarded or not self.autoswitch[session]
        assert found.resolved_task == (self.stacks[session] or [None])[-1]
        assert {one.task_id for one in found.confirmations} <= {found.resolved_task}

    @rule(name=st.none() | tasks, number=numbers, kind=st.sampled_from(["fact", "constraint"]))
    def pin(self, name: str | None, number: int, kind: Any) -> None:
        text = f"pin {number} {word(name) if name else 'everywhere'}"
        known = next((key for key, one in self.pins.items() if one == (text, name)), None)
        found = self.memory.tasks.pins.upsert(text.upper() if known else text, kind=kind, task_id=name)
        assert found.is_new == (known is None)
        if known is None:
            self.pins[found.pin.id] = (text, name)

    @precondition(lambda self: self.pins)
    @rule(place=numbers)
    def edit_pin(self, place: int) -> None:
        pin_id = sorted(self.pins)[place % len(self.pins)]
        _, name = self.pins[pin_id]
        text = f"edited {self.steps} {word(name) if name else 'everywhere'}"
        self.memory.tasks.pins.edit(pin_id, text=text)
        self.pins[pin_id] = (text, name)

    @precondition(lambda self: self.pins)
    @rule(place=numbers)
    def ask_to_remove_pin(self, place: int) -> None:
        pin_id = sorted(self.pins)[place % len(self.pins)]
        token = self.memory.tasks.pins.request_removal(pin_id).token
        self.removals.append((pin_id, token, self.seconds()))

    @precondition(lambda self: self.removals)
    @rule(place=numbers)
    def confirm_removal(self, place: int) -> None:
        pin_id, token, asked = self.removals.pop(place % len(self.removals))
        if pin_id in self.pins and self.seconds() - asked <= TOKEN_LIFE_S:
            self.memory.tasks.pins.confirm_removal(pin_id, token)
            del self.pins[pin_id]
        else:
            with pytest.raises(MemGraphError):
                self.memory.tasks.pins.confirm_removal(pin_id, token)

    @rule(name=tasks, giver=st.sampled_from(AGENTS), taker=st.none() | st.sampled_from(AGENTS))
    def hand_over(self, name: str, giver: str, taker: str | None) -> None:
        call = lambda: self.memory.tasks.handoffs.create(  # noqa: E731
            name, f"done {word(name)}", from_agent=giver, to_agent=taker
        )
        if giver == taker:
            with pytest.raises(MemGraphError):
                call()
        else:
            self.handoffs[call().id] = (name, taker or next(one for one in AGENTS if one != giver))

    @precondition(lambda self: self.handoffs)
    @rule(place=numbers)
    def take_over(self, place: int) -> None:
        handoff_id = sorted(self.handoffs)[place % len(self.handoffs)]
        name, taker = self.handoffs[handoff_id]
        wrong = next(one for one in AGENTS if one != taker)
        with pytest.raises(MemGraphError):
            self.memory.tasks.handoffs.accept(handoff_id, wrong)
        page = self.memory.tasks.handoffs.accept(handoff_id, str(taker)).page
        assert named_in(page.text) <= {name}

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

    @rule(name=tasks, cut=st.sampled_from([0.0, 0.3, 0.99, 1.0]))
    def crash(self, name: str, cut: float) -> None:
        """Die in a commit: a part of its bytes is in the journal, or all and nothing is projected; then open again."""
        self.lives += 1
        self.memory.close()
        ahead = self.root / f"ahead{self.lives}"
        for part in ("store", "keys"):
            shutil.copytree(self.root / part, ahead / part)
        text = f"torn {self.lives} {word(name)}"
        with self.opened(ahead) as doomed:
            doomed.tasks.commit("task", [DecisionMade(id=new_id(), decision=text)], task_id=name)
        (before,), (after,) = (list((home / "store/journal").glob("*.jsonl")) for home in (self.root, ahead))
        whole, written = before.read_bytes().removesuffix(self.torn), after.read_bytes()
        assert written.startswith(whole)
        added = written[len(whole) :]
        self.torn = added[: int(cut * len(added))]
        before.write_bytes(whole + self.torn)
        shutil.rmtree(ahead)
        if cut == 1.0:
            self.torn = b""
            self.items[name]["decisions"].append(text)
        self.memory = self.opened()

    # -- what must be so after every step

    @invariant()
    def tasks_hold_their_own(self) -> None:
        self.steps += 1
        for name in TASKS:
            found = self.memory.tasks.snapshot(name)
            assert {kind: [one.content for one in getattr(found, kind)] for kind in OPENED.values()} == self.items[name]
            assert {one.task_id for kind in OPENED.values() for one in getattr(found, kind)} <= {name}

    @invariant()
    def sessions_are_where_they_were_put(self) -> None:
        for session in SESSIONS:
            assert self.memory.tasks.sessions.get(session).stack == self.stacks[session]

    @invariant()
    def pins_are_as_they_were_edited(self) -> None:
        found = self.memory.tasks.pins.list(all_tasks=True)
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
    def nothing_is_shown_of_another_task(self) -> None:
        if self.steps % 4:
            return
        session = SESSIONS[self.steps // 4 % len(SESSIONS)]
        active = (self.stacks[session] or [None])[-1]
        everything = " ".join(map(word, TASKS))
        allowed = {active} - {None}
        result = self.memory.recall(everything, session_id=session)
        assert {one.task_id for one in result.memories} <= {active, None}
        assert named_in(self.memory.tasks.prompt(everything, session=session).text) <= allowed
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
    run_state_machine_as_test(TaskMachine, settings=lives(8, 30))


@pytest.mark.long
def test_tasks_are_their_model_for_long() -> None:
    run_state_machine_as_test(TaskMachine, settings=lives(60, 50, Phase.shrink))
