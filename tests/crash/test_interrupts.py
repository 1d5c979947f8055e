"""Ctrl-C at any time during a command: exit code 130, one line, no loss, and the store is usable at once."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

SHORT = ("remember", "recall", "ingest")
"""Commands interrupted in every run, at one place each: one that writes once, one that reads, one that writes for long."""
COMMANDS = {
    "remember": ["remember", "Deploy on Tuesdays only", "--tag", "deploy"],
    "forget": ["forget", "Tokens expire"],
    "recall": ["recall", "the build failed in login", "--project", "P"],
    "ingest": ["ingest", "builds", "builds.jsonl"],
    "import": ["import", "export.json"],
    "export": ["export", "out.json"],
    "rebuild": ["rebuild"],
    "verify": ["verify"],
}


def build(number: int) -> dict[str, Any]:
    task = {
        "task_id": f"t{number}", "agent_name": "MARS", "description": f"Deploy service {number}", "outcome": "failure",
        "output": f"Error: the cache was cold in service{number}.py",
    }  # fmt: skip
    times = {"started_at": "2026-01-01T00:00:00Z", "completed_at": f"2026-01-01T01:00:0{number}Z"}
    return {"build_id": f"b{number}", "project_id": "P", "tasks": [task], "build_outcome": "failure", **times}


@pytest.fixture(scope="module")
def set_up(template: Any, stranger: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Any]:
    """Make copies of a store, with the other files that the commands read."""
    import memgraph

    folder = tmp_path_factory.mktemp("interrupts")
    with stranger.copy(folder / "stranger").open() as store:
        (folder / "export.json").write_text(memgraph.MemoryCommands(store).export_memories().model_dump_json())
    (folder / "builds.jsonl").write_text("".join(json.dumps(build(number)) + "\n" for number in range(8)))
    made = iter(range(100_000))

    def copy() -> Any:
        scene = template.copy(folder / f"scene{next(made)}")
        for name in ("export.json", "builds.jsonl"):
            shutil.copy(folder / name, scene.folder / name)
        return scene

    return copy


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in COMMANDS]
)
def test_an_interrupted_command(
    set_up: Callable[[], Any], nursery: Any, rows: Any, is_long: bool, name: str, show: Any
) -> None:
    row = rows["Ctrl-C at a command"]
    whole = nursery.start("command", set_up().folder, 0, int(signal.SIGINT), *COMMANDS[name])
    assert whole.wait() == 0, whole.errors()
    places = json.loads(whole.out.read_text().splitlines()[-1])  # after what the command printed
    numbers = list(range(1, len(places) + 1))
    if not is_long:
        numbers = random.Random(name).sample(numbers, 1)
    wrong = []
    for number in numbers:
        scene = set_up()
        child = nursery.start("command", scene.folder, number, int(signal.SIGINT), *COMMANDS[name])
        code, said = child.wait(), child.errors()
        last = said.rstrip("\n").rpartition("\n")[2]
        if code != 130 or "Traceback" in said or "Exception" in said or not row.fits(last):
            wrong.append(f"place {number} ({places[number - 1]}): exit {code}: {said[-1_000:]}")
        left = nursery.start("survey", scene.folder, "quickly")
        if left.wait() != 0:
            wrong.append(f"place {number} ({places[number - 1]}): afterwards: {left.errors()[-1_000:]}")
        elif name in {"ingest", "import"} and number == numbers[-1]:
            again = nursery.start("command", scene.folder, 0, int(signal.SIGINT), *COMMANDS[name])
            assert again.wait() == 0, again.errors()
        shutil.rmtree(scene.folder)
    show(f"Ctrl-C at `{name}`", ("places", "tried", "wrong"), [(len(places), len(numbers), len(wrong))])
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.long
def test_a_real_process_interrupted_at_random_times(set_up: Callable[[], Any], nursery: Any, show: Any) -> None:
    """Interrupt only once the command's own code runs, after the interpreter has started."""
    chance = random.Random(20260203)
    program = "import sys; print('up', file=sys.stderr, flush=True); from memgraph.__main__ import main; main()"
    outcomes: dict[str, int] = {}
    for _ in range(60):
        scene = set_up()
        environment = {
            "PATH": "", "HOME": str(scene.folder), "MEMGRAPH_HOME": str(scene.home),
            "MEMGRAPH_KEYS_HOME": str(scene.keys_home), "MEMGRAPH_EMBEDDING_MODEL": "none",
        }  # fmt: skip
        command = [sys.executable, "-c", program, *chance.choice(list(COMMANDS.values()))]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, cwd=scene.folder
        ) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == "up\n"
            time.sleep(chance.uniform(0.1, 1.2))
            process.send_signal(signal.SIGINT)
            said = process.stderr.read()
        outcome = f"exit {process.returncode}{', with a traceback' if 'Traceback' in said else ''}"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if "Traceback" in said:
            print(said[-1_500:])
        left = nursery.start("survey", scene.folder, "quickly")
        assert left.wait() == 0, left.errors()
        shutil.rmtree(scene.folder)
    show("Ctrl-C at random moments", ("outcome", "times"), sorted(outcomes.items()))
    assert outcomes.keys() <= {"exit 0", "exit 1", "exit 130"}
