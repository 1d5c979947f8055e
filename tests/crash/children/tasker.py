"""Works on tasks until it is killed or done, and reports each step. ``FOLDER STEPS FROM``: a JSON file of steps, and the first one to do."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from places import opened, say

from memgraph import MemGraph, MemGraphError


def do(tasks: Any, what: str, *given: Any) -> None:
    """Do one step; the store refuses some of them."""

    def pin_of(text: str) -> str:
        return next(str(one.id) for one in tasks.pins.list(all_tasks=True) if one.content == text)

    def unpin(text: str) -> None:
        asked = tasks.pins.request_removal(pin_of(text))
        tasks.pins.confirm_removal(asked.pin.id, asked.token)

    def take(text: str, agent: str) -> None:
        tasks.handoffs.accept(next(one.id for one in tasks.handoffs.list() if one.what_was_done == text), agent)

    steps: dict[str, Any] = {
        "create": lambda name: tasks.upsert(f"Title {name}", task_id=name),
        "decide": tasks.decide,
        "status": tasks.set_status,
        "link": tasks.link,
        "unlink": tasks.unlink,
        "switch": lambda session, name, push: tasks.sessions.switch(session, name, push=push),
        "pin": lambda name, text: tasks.pins.upsert(text, kind="constraint", task_id=name),
        "edit": lambda text, new: tasks.pins.edit(pin_of(text), text=new),
        "unpin": unpin,
        "hand": lambda name, text: tasks.handoffs.create(name, text, from_agent="ann", to_agent="bob"),
        "take": take,
    }
    with contextlib.suppress(MemGraphError):
        steps[what](*given)


def main() -> None:
    steps = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    memory = MemGraph(opened(Path(sys.argv[1])))
    say("ready")
    for number in range(int(sys.argv[3]), len(steps)):
        do(memory.tasks, *steps[number])
        say(number + 1)
    memory.close()


main()
