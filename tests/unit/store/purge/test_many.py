"""Purges of random memories in a store with all that is made of memories, each followed by a search of every file."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.model.build import BuildEventLog

pytestmark = pytest.mark.embedded
PURGES, LONG_PURGES = 4, 200
STEPS = ["list the orders", "check the policy", "issue the refund", "send a confirmation"]


class Teller:
    """Tells things that nobody has told before."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def words(self, number: int) -> str:
        syllables = ("ka", "lo", "mi", "ren", "tus", "vor", "zel", "pha", "nim", "gor", "dra", "shu")
        return " ".join("".join(self._chance.choices(syllables, k=3)) for _ in range(number))

    def pick(self, many: list[Any]) -> Any:
        return self._chance.choice(many)


def live(memory: MemGraph, teller: Teller, rounds: int) -> None:
    """Give a store episodes of several builds, with what sleep makes of them, and everything else that may repeat a text."""
    store = memory.store
    for number in range(rounds):
        cause, goal, project = teller.words(9), teller.words(5), f"project-{number % 3}"
        shared = {"project_id": project, "tags": [teller.words(1), teller.words(1)]}
        for build in range(4):
            text = f"{cause} in {teller.words(10)}"
            failure = {"content": text, "outcome": "negative", "failure_fingerprint": f"f{number}", "last_error": cause}
            log = [{"t": float(place), "action": f"{step} {goal}"} for place, step in enumerate(STEPS)]
            success = {"content": teller.words(12), "outcome": "positive", "goal": goal, "action_log": log}
            for fields in (failure, success):
                store.insert_memory({"type": "episodic", "build_id": f"b{number}-{build}", **shared, **fields})
        fact = f"{teller.words(11)} since {number}"
        memory.save_observation(fact, project=project)
        memory.save_observation(f"{fact} {teller.words(1)}", project=project)
        edited = store.insert_memory({"type": "semantic", "content": teller.words(14), **shared}).id
        memory.curation.edit(edited, {"content": teller.words(14)})
        gone = store.insert_memory({"type": "episodic", "content": teller.words(13), **shared}).id
        store.delete_memory(gone, reason=teller.words(9))
        one, two = (
            store.insert_memory({"type": "semantic", "content": teller.words(12), **shared}).id for _ in range(2)
        )
        memory.curation.merge([one, two])
        memory.tasks.upsert(f"Task {number}", task_id=f"t{number}")
        memory.tasks.decide(f"t{number}", fact)
        memory.recall(fact, project=project)
        task = {
            "task_id": "t", "agent_name": "MARS", "description": teller.words(6), "outcome": "failure",
            "output": f"Error: {teller.words(12)}",
        }  # fmt: skip
        log = {
            "build_id": f"log{number}", "project_id": project, "tasks": [task], "build_outcome": "failure",
            "started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T01:00:00Z",
        }  # fmt: skip
        memory.consolidation.consolidate(BuildEventLog.parse(log))
    memory.maintenance.sleep()


def test_nothing_is_left_after_any_of_many_purges(
    open_store: Callable[..., Any], traces: Callable[..., list[str]], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    is_long = pytestconfig.getoption("--long")
    purges = LONG_PURGES if is_long else PURGES
    teller = Teller(20260204)
    store = open_store(redact_secrets=False)
    with MemGraph(store) as memory:
        live(memory, teller, max(4, purges // 6))
        kinds = {(one.type, one.trust_class) for one in store.every_memory()}
        assert {"episodic", "semantic", "procedural"} <= {kind for kind, _ in kinds}
        assert any(getattr(one, "supporting_memory_ids", ()) for one in store.every_memory())
        (tmp_path / "all.json").write_text(memory.commands.export_memories().model_dump_json())
        home, gone = store.config.home, 0
        for turn in range(purges):
            if turn % 10 == 5:
                memory.maintenance.sleep()
                store.at("2099-01-01").close()
            every = sorted(store.every_memory(), key=lambda one: one.id)
            victim = teller.pick(every)
            assert traces(home, victim.content), "the search finds what is there"
            receipt = memory.purge(victim.id)
            gone += len(receipt.ids) + len(receipt.derived_ids) + len(receipt.copied_ids)
            left = {one.id for one in store.every_memory()}
            assert left.isdisjoint([victim.id, *receipt.derived_ids, *receipt.copied_ids])
            assert traces(home, victim.content) == [], f"purge {turn} of {victim.type} {victim.content!r}"
            store.check_receipt(receipt)
            if turn % 20 == 0 or turn == purges - 1:
                store.verify(deep=True)
        print(f"\n{purges} purges removed {gone} memories, {len(left)} are left")
