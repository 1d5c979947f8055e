"""How long each named query takes over a store of so many memories. See README.md.

python tests/benchmarks/queries.py [--memories 10000 100000] [--runs 5] [--json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from memgraph import AgentMemoryConfig, AgentMemoryStore, Link, parse_memory
from memgraph.graph.queries import named_queries
from memgraph.model.events.records import BuildConsolidated, RecalledItem, RetrievalRecorded
from memgraph.model.ids import source_id
from tests.benchmarks.data import COMPONENTS, SEED, Author, Clock, Memory
from tests.benchmarks.machine import described
from tests.benchmarks.tables import table

LIMIT_MS = 1_000.0
_CALL = 10_000
"""Memories of one insert."""
_SOURCES = 5
"""Episodes that a generalisation rests on."""
_RECALLED = 10
_DAYS = 400
_START = datetime(2025, 1, 1, tzinfo=UTC)
GIVEN = {
    "about_entity": {"entity": "src/auth/service_1.py"},
    "evidence_chain": {"id": "GENERAL"},
    "forgotten_knowledge": {"at": "2027-01-01", "type": ""},
    "learned_from": {"id": "EPISODE"},
    "recalled_in_vain": {"times": 2},
    "session_story": {"session": "session-7"},
    "tags_by_trend": {"at": "2026-01-01"},
}
"""What is asked where a query must be given something, or would find nothing."""


def fill(store: AgentMemoryStore, size: int) -> dict[str, Any]:
    """Fill a store with so many memories and what hangs on them; return what it holds and the ids to ask for.

    Of a hundred memories four are generalisations and one is a procedure, each of five episodes; two replace another one, one
    contradicts another one, four tell of a decision, and ten of an error by its fingerprint. There is a build for twenty
    memories and a recall of ten memories for twenty.
    """
    chance = random.Random(SEED)
    episodes = list(_episodes(size * 95 // 100, chance))
    for first in range(0, len(episodes), _CALL):
        store.insert_memories(episodes[first : first + _CALL], annotate=False)
    ids = [memory["id"] for memory in episodes]
    learned = list(_learned(size - len(episodes), ids, chance))
    store.insert_memories(learned, annotate=False)
    links = [
        Link(source_id=new, relation=relation, target_id=old, score=0.5, created_at="2026-01-01T00:00:00.000Z")
        for relation, share in (("SUPERSEDES", 50), ("CONTRADICTS", 100))
        for old, new in (sorted(chance.sample(range(len(ids)), 2)) for _ in range(size // share))
        for old, new in [(ids[old], ids[new])]
    ]
    store.import_memories([], list({(one.source_id, one.relation, one.target_id): one for one in links}.values()))
    builds = sorted({(memory["project_id"], memory["build_id"]) for memory in episodes})
    store.commit("global", [_build(*build, chance) for build in builds])
    for number in range(size // 20):
        _recall(store, number, [chance.choice(episodes) for _ in range(_RECALLED)], chance)
    store.flush()
    counts = {
        "memories": store.cypher("MATCH (m:Memory) RETURN count(m) AS n")[0]["n"],
        "edges": store.cypher("MATCH ()-[e]->() RETURN count(e) AS n")[0]["n"],
    }
    return {**counts, "GENERAL": learned[0]["id"], "EPISODE": learned[0]["supporting_memory_ids"][0]}


def measure(store: AgentMemoryStore, known: dict[str, Any], runs: int) -> Iterator[dict[str, Any]]:
    """Yield for each named query how long its runs took, each in a transaction of its own, and how many rows it gave."""
    for name in named_queries():
        given = {key: known.get(value, value) for key, value in GIVEN.get(name, {}).items()}
        taken, rows = [], []
        for _ in range(runs):
            start = time.perf_counter()
            rows = store.query(name, **given)
            taken.append(1e3 * (time.perf_counter() - start))
        yield {"query": name, "rows": len(rows), "p50_ms": statistics.median(taken), "max_ms": max(taken)}


def _episodes(count: int, chance: random.Random) -> Iterator[Memory]:
    author = Author()
    for number in range(count):
        memory = author.memory()
        del memory["embedding"]  # queries look at no vector
        at = _START + timedelta(minutes=_DAYS * 24 * 60 * number / count)
        extra: Memory = {"id": source_id("benchmark", number), "occurred_at": at.isoformat()}
        if memory["outcome"] == "negative" and number % 10 < 3:
            extra["failure_fingerprint"] = f"failure-{chance.randrange(200)}"
        if number % 25 == 0:
            extra |= {"decision": f"Decision {number}", "git_commit": _commit(number)}
            extra |= {"tags": [*memory["tags"], "decision"], "entities": [*memory["entities"], _named(number)]}
        if number % 100 == 5:  # of the same project
            undone = _named(number - 5)
            extra |= {"tags": [*memory["tags"], "revert"], "entities": [*memory["entities"], undone]}
        if number % 50 == 3:
            extra["tags"] = [*memory["tags"], "recovery"]
        if number % 97 == 0:
            extra["floor"] = 0.1
        if number % 89 == 0:
            extra |= {"invalid_at": (at + timedelta(days=30)).isoformat(), "invalidation_reason": "no longer so"}
        yield {**memory, **extra}


def _commit(number: int) -> str:
    return hashlib.sha1(str(number).encode(), usedforsecurity=False).hexdigest()


def _named(number: int) -> dict[str, str]:
    """Return a commit as memories name it."""
    return {"name": _commit(number)[:12], "kind": "commit"}


def _learned(count: int, ids: Sequence[str], chance: random.Random) -> Iterator[Memory]:
    for number in range(count):
        told = chance.sample(ids, _SOURCES)
        general: Memory = {
            "id": source_id("benchmark, learned", number),
            "content": f"In general {number} is so.",
            "project_id": f"project-{number % 5}",
            "tags": [chance.choice(COMPONENTS)],
            "confidence": 0.7,
            "supporting_memory_ids": told,
        }
        if number % 5 == 4:
            yield {
                **general,
                "type": "procedural",
                "trigger_pattern": f"case {number}",
                "steps": ["one", "two"],
                "success_rate": 0.5,
            }
        else:
            yield {**general, "type": "semantic"}


def _build(project: str, name: str, chance: random.Random) -> BuildConsolidated:
    at = (_START + timedelta(hours=chance.randrange(_DAYS * 24))).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return BuildConsolidated(
        project_id=project,
        build_id=name,
        log_sha256="0" * 64,
        outcome=chance.choice(("success", "failure")),
        started_at=at,
        completed_at=at,
        task_count=20,
        complete=True,
        extracted=4,
        merged=0,
        extractor="rules",
        consolidated_at=at,
    )


def _recall(store: AgentMemoryStore, number: int, given: Sequence[Memory], chance: random.Random) -> None:
    memories = {memory["id"]: parse_memory(memory) for memory in given}
    results = [RecalledItem(id=one, type="episodic", score=1.0, tokens=40) for one in memories]
    query_id = source_id("benchmark, recall", number)
    record = RetrievalRecorded(
        query_id=query_id,
        query_hmac="0" * 64,
        retrieved_at=store.now(),
        settings_version="1",
        agent_name=chance.choice(("MARS", "VENUS")),
        project_id=given[0]["project_id"],
        total_tokens=400,
        results=results,
    )
    store.record_retrieval(record, list(memories.values()))
    if number % 25 == 0:  # each is a commit of its own
        used, overridden, *_ = memories
        outcome = chance.choice(("success", "failure"))
        store.record_outcome(query_id, outcome, used=[used], overridden=[overridden])


def main() -> None:
    """Fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    results = []
    for size in asked.memories:
        with tempfile.TemporaryDirectory(prefix="memgraph-queries-") as folder:
            config = AgentMemoryConfig(
                home=Path(folder, "store"), keys_home=Path(folder, "keys"), embedding_model="none"
            )
            with AgentMemoryStore(config, clock=Clock()) as store:
                start = time.perf_counter()
                known = fill(store, size)
                print(
                    f"filled {known['memories']:,} memories, {known['edges']:,} edges in {time.perf_counter() - start:.0f} s",
                    file=sys.stderr,
                )
                found = list(measure(store, known, asked.runs))
            results.append(
                {
                    "memories": known["memories"],
                    "edges": known["edges"],
                    "queries": found,
                    "machine": described(Path(folder)),
                }
            )
    if asked.json:
        print(json.dumps(results))
        return
    for result in results:
        print(f"\n{result['memories']:,} memories, {result['edges']:,} edges\n")
        rows = [
            [
                one["query"],
                f"{one['rows']:,}",
                f"{one['p50_ms']:,.0f}",
                f"{one['max_ms']:,.0f}",
                "slow" if one["p50_ms"] > LIMIT_MS else "",
            ]
            for one in sorted(result["queries"], key=lambda one: -one["p50_ms"])
        ]
        print("\n".join(table(["query", "rows", "p50 ms", "max ms", ""], rows)))


if __name__ == "__main__":
    main()
