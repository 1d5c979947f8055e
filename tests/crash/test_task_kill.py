"""A process that works on tasks is killed at random times: its tasks are as after its last whole step, or after the one that it was in."""

from __future__ import annotations

import copy
import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

TASKS = ("t1", "t2", "t3")
SESSIONS = ("s1", "s2")
OPEN = {"active", "suspended"}
KILLS, STEPS, LONGEST_LIFE_S = 25, 1_000, 0.5
State = dict[str, Any]


def after(state: State, what: str, *given: Any) -> State:
    """Return what a step makes of a state: the same where it is refused."""
    made: State = copy.deepcopy(state)
    tasks, pins, handoffs = made["tasks"], made["pins"], made["handoffs"]
    is_open = {name: task["status"] in OPEN for name, task in tasks.items()} | {None: True}
    match (what, *given):
        case ("create", name):
            tasks[name] = {"status": "active", "decisions": [], "links": []}
        case ("decide", name, text) if is_open[name]:
            tasks[name]["decisions"].append(text)
        case ("status", name, status):
            tasks[name]["status"] = status
        case ("link", name, other) if is_open[name] and name != other and tasks[other]["status"] != "closed":
            tasks[name]["links"] = sorted({*tasks[name]["links"], other})
        case ("unlink", name, other) if is_open[name]:
            tasks[name]["links"] = [one for one in tasks[name]["links"] if one != other]
        case ("switch", session, name, push) if is_open[name] and made["stacks"][session][-1:] != [name]:
            below = made["stacks"][session] if push else made["stacks"][session][:-1]
            made["stacks"][session] = [*(one for one in below if one != name), name]
        case ("pin", name, text) if is_open[name]:
            pins[text] = name
        case ("edit", text, new) if is_open[pins[text]]:
            pins[new] = pins.pop(text)
        case ("unpin", text) if is_open[pins[text]]:
            del pins[text]
        case ("hand", name, text) if is_open[name]:
            handoffs[text] = [name, "open"]
        case ("take", text, _) if is_open[handoffs[text][0]]:
            handoffs[text][1] = "accepted"
    return made


def history(chance: random.Random) -> tuple[list[list[Any]], list[State]]:
    """Return steps, and the states from before the first to after the last."""
    steps: list[list[Any]] = []
    states: list[State] = [
        {"tasks": {}, "pins": {}, "handoffs": {}, "stacks": {name: [] for name in SESSIONS}},
    ]
    for number in range(STEPS):
        state, name, other = states[-1], chance.choice(TASKS), chance.choice(TASKS)
        choices: list[list[Any]] = [
            ["decide", name, f"decision {number} of {name}"],
            ["status", name, chance.choice(["active", "active", "suspended", "archived", "closed"])],
            ["link", name, other],
            ["unlink", name, other],
            ["switch", chance.choice(SESSIONS), name, chance.random() < 0.5],
            ["pin", chance.choice([None, name]), f"pin {number}"],
            ["hand", name, f"done {number}"],
        ]
        if state["pins"]:
            text = chance.choice(sorted(state["pins"]))
            choices += [["unpin", text], ["edit", text, f"edited {number}"]]
        if state["handoffs"]:
            choices.append(["take", chance.choice(sorted(state["handoffs"])), "bob"])
        step = ["create", TASKS[number]] if number < len(TASKS) else chance.choice(choices)
        steps.append(step)
        states.append(after(state, *step))
    return steps, states


def state_of(memory: memgraph.MemGraph) -> State:
    """Return the state that a store holds."""
    tasks = memory.tasks
    snapshots = [tasks.snapshot(one.id) for one in tasks.list()]
    return {
        "tasks": {
            one.task_id: {
                "status": one.status,
                "decisions": [item.content for item in one.decisions],
                "links": sorted(one.links),
            }
            for one in snapshots
        },
        "pins": {one.content: one.task_id for one in tasks.pins.list(all_tasks=True)},
        "handoffs": {one.what_was_done: [one.task_id, one.state] for one in tasks.handoffs.list()},
        "stacks": {name: tasks.sessions.get(name).stack for name in SESSIONS},
    }


@pytest.mark.long
def test_tasks_are_as_after_a_whole_step(tmp_path: Path, nursery: Any, show: Any) -> None:
    chance = random.Random(20260202)
    steps, states = history(chance)
    script = tmp_path / "steps.json"
    script.write_text(json.dumps(steps), "utf-8")
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    done = kills = under_way = 0
    while kills < KILLS and done < STEPS:
        worker = nursery.start("tasker", tmp_path, script, done)
        worker.hears("ready")
        while kills % 4 and len(worker.said()) < 4:  # one in four is killed on its way to its first step
            assert worker.poll() is None, worker.errors()
            time.sleep(0.005)
        time.sleep(chance.uniform(0, LONGEST_LIFE_S))
        worker.send(signal.SIGKILL)
        kills += worker.wait() == -signal.SIGKILL
        reported = max([done, *(number for number in worker.said() if number != "ready")])
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock()) as store:
            found = state_of(memgraph.MemGraph(store))
            fits = [number for number in (reported, reported + 1) if found == states[min(number, STEPS)]]
            assert fits, f"after step {reported} ({steps[reported - 1]})"
            digest = store.digest()
            store.rebuild()
            assert store.digest() == digest
        done = min(fits[0], STEPS)
        under_way += fits == [reported + 1]
    show(
        "Killed while it works on tasks",
        ("kills", "steps", "a step was whole but not reported"),
        [(kills, done, under_way)],
    )
    assert kills >= KILLS // 2
    assert done > kills
