"""A sleep is killed at random times: nothing is partial, and the next sleep gives the result of an uninterrupted one."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import memgraph
from memgraph.lifecycle import sleep
from memgraph.testing import FakeClock, FakeEmbedder

DIMENSION = 16
STEPS = ["list_orders", "check_refund_policy", "issue_refund", "send_confirmation"]


def experience(project: str) -> list[dict[str, Any]]:
    """Return a project's memories, with work for every phase."""
    run = f"Deploys of {project} run on Tuesdays after the tests have passed"
    facts = [f"The freeze of {project} holds until 2026-01-20", run, run.replace("the tests", "all of the tests")]
    facts += [f"The port of the {project} service is {port}" for port in (8080, 9090)]
    memories: list[dict[str, Any]] = [{"type": "semantic", "content": text} for text in facts]
    memories += [{"type": "semantic", "content": f"Nobody asks for {project} any more", "relevance_score": 0.01}]
    failure = {
        "type": "episodic",
        "outcome": "failure",
        "tags": [f"{project}-auth", "jwt"],
        "failure_fingerprint": "f00",
    }
    success = {"type": "episodic", "outcome": "success", "goal": "Refund the broken order of a customer"}
    log = [{"t": float(place), "action": action} for place, action in enumerate(STEPS)]
    for n in range(4):
        memories.append({**failure, "content": f"Try {n} to refresh the token failed", "build_id": f"b{n}"})
        memories.append({**success, "content": f"Order {n} was refunded", "build_id": f"s{n}", "action_log": log})
    return [{"project_id": project, **memory} for memory in memories]


def opened(folder: Path, clock: str) -> Any:
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=FakeClock(clock))


def sleeper(nursery: Any, folder: Path) -> Any:
    child = nursery.start("sleeper", folder)
    child.hears("asleep")
    return child


def test_a_killed_sleep_is_continued(tmp_path: Path, nursery: Any, show: Any, is_long: bool) -> None:
    rounds, projects = (50, ("shop", "bank", "depot")) if is_long else (1, ("shop",))
    chance, template = random.Random(20260201), tmp_path / "template"
    template.mkdir()
    with opened(template, "2026-01-02") as store:
        for project in projects:
            store.insert_memories(experience(project))
    with opened(template, "2026-01-30") as store:  # from here on the clock stands: none goes behind the last event
        store.insert_memory({"type": "semantic", "content": "It is late"})
        assert store.get_all_memories()
    whole = Path(shutil.copytree(template, tmp_path / "whole"))
    child = sleeper(nursery, whole)
    began = time.monotonic()
    assert child.wait() == 0
    longest_s = time.monotonic() - began
    with opened(whole, "2026-01-01") as store:
        rested = store.digest()
        assert sleep(store).changed == 0
    ends = Counter[str]()
    for turn in range(rounds):
        folder = Path(shutil.copytree(template, tmp_path / f"round{turn}"))
        child = sleeper(nursery, folder)
        time.sleep(chance.uniform(0, longest_s))
        child.send(signal.SIGKILL)
        child.wait()
        with opened(folder, "2026-01-01") as store:
            store.verify(deep=True)
            report = sleep(store)
            assert report.complete
            assert store.digest() == rested, f"round {turn}: another state, gone on with {report.phases[0].name}"
            ends["awake" if "awake" in child.said() else report.phases[0].name] += 1
        shutil.rmtree(folder)
    show("Sleeps that were killed", ("where", "kills"), sorted(ends.items()))
    assert not is_long or len(ends) > 3
