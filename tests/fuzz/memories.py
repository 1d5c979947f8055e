"""Targets: whatever brings memories into a store. What is refused leaves no byte behind; what is taken can be read again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

from click.testing import CliRunner

import memgraph
from memgraph.interfaces.cli.group import cli
from memgraph.model.events.memories import MemoryDeleted
from memgraph.model.memory import parse_memory
from memgraph.testing import FakeClock, FakeEmbedder
from tests.fuzz.harness import Target, afterwards
from tests.fuzz.mutation import mutated, mutated_bytes, mutated_text, random_document, read, written

DIMENSION = 4
CLOCK = FakeClock("2026-02-01T09:00:00.000Z")
IDS = [str(UUID(int=number, version=4)) for number in range(1, 6)]
_CHECK_EVERY = 200


def opened(folder: Path, name: str = "store") -> memgraph.AgentMemoryStore:
    config = memgraph.AgentMemoryConfig(home=folder / name, keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=CLOCK)


def fill(store: memgraph.AgentMemoryStore) -> None:
    """Put in memories of every type, with every kind of field, and links."""
    context = {
        "project_id": "P",
        "session_id": "s",
        "build_id": "b",
        "agents_involved": ["MARS"],
        "tags": ["auth", "a, b"],
    }
    store.insert_memories(
        [
            {
                "id": IDS[0],
                "type": "episodic",
                "content": "The build failed in login.py 数据库",
                "outcome": "failure",
                "action_log": [{"t": 1.5, "action": "ran", "error": "E1"}],
                "event_date": "2026-01-05",
                **context,
                "errors_encountered": [{"type": "E1", "message": "m"}],
                "duration_seconds": 3.0,
                "floor": 0.1,
            },
            {"id": IDS[1], "type": "episodic", "content": "Then it passed", "is_pinned": True, **context},
        ]
    )
    store.insert_memory(
        {
            "id": IDS[2],
            "type": "semantic",
            "content": "Builds fail on Mondays",
            "supporting_memory_ids": IDS[:2],
            "confidence": 0.7,
            "conditions": ["c"],
            "usage_count": 2,
            "invalid_at": "2027-01-01",
            "title": "T",
        }
    )
    store.insert_memory(
        {
            "id": IDS[3],
            "type": "procedural",
            "content": "How to build",
            "steps": ["one", "two"],
            "task_id": "T",
            "success_rate": 0.5,
            "common_errors": [{"error": "e", "fix": "f"}],
            "privacy_tier": "private",
        }
    )
    store.link(IDS[1], "SUPERSEDES", IDS[0], reason="newer", score=0.5)
    store.record_access(IDS[0])


def exported(folder: Path) -> dict[str, Any]:
    """Return the export that is spoilt."""
    with opened(folder, "origin") as store:
        fill(store)
        return dict(memgraph.MemoryCommands(store).export_memories().model_dump(mode="json"))


def events_in(home: Path) -> int:
    """Return how many events a store has."""
    with closing(sqlite3.connect(home / "memgraph.db")) as raw:
        found: int = raw.execute("SELECT count(*) FROM event").fetchone()[0]
        return found


class Watched:
    """A store whose journal is watched: whether anything was recorded, and whether all still fits."""

    def __init__(self, folder: Path) -> None:
        self.store = opened(folder)
        self._home = folder / "store"
        self._taken = 0

    def recorded(self) -> int:
        return events_in(self._home)

    def check(self, accepted: bool, before: int) -> None:
        """Check that what was refused recorded nothing, and now and then that what was taken can be trusted."""
        assert accepted or self.recorded() == before, "it was refused, and something was recorded"
        self._taken += accepted
        if accepted and self._taken % _CHECK_EVERY == 1:
            with afterwards():
                self.store.verify()
                digest = self.store.digest()
                self.store.rebuild()
            assert self.store.digest() == digest, "replay gives another state"

    @contextmanager
    def case(self) -> Iterator[None]:
        before = self.recorded()
        try:
            yield
        except memgraph.MemGraphError:
            self.check(False, before)
            raise
        self.check(True, before)


@contextmanager
def import_target(folder: Path) -> Iterator[Target]:
    """A document given to `import_memories`."""
    document = exported(folder)
    watched = Watched(folder)
    store = watched.store
    commands = memgraph.MemoryCommands(store)

    def make(rng: Random) -> bytes:
        if rng.random() < 0.05:
            return written(random_document(rng))
        spoilt = mutated(rng, document)
        if isinstance(spoilt, dict) and isinstance(spoilt.get("memories"), list) and rng.random() < 0.7:
            spoilt["total_memories"] = len(spoilt["memories"])
        return written(spoilt)

    def run(case: bytes) -> bool:
        with watched.case():
            result = commands.import_memories(read(case))
            if not result.success:
                raise memgraph.InvalidInputError(result.message, field="export")
        with afterwards():
            again = json.loads(commands.export_memories().model_dump_json())
            assert again["total_memories"] == len(again["memories"])
            memories = [parse_memory(memory) for memory in again["memories"]]
            for task in {memory.task_id for memory in memories}:
                gone = [MemoryDeleted(id=str(memory.id)) for memory in memories if memory.task_id == task]
                store.commit("task" if task else "global", gone, task_id=task)
            assert store.get_stats().total == 0
        return True

    with store:
        yield Target(make, run)


@contextmanager
def memory_target(folder: Path) -> Iterator[Target]:
    """A mapping given to `insert_memory`, and mappings of changes given to `update_memory`."""
    memories = exported(folder)["memories"]
    given = [{name: value for name, value in memory.items() if value not in (None, [])} for memory in memories]
    fixed = [
        "id",
        "type",
        "created_at",
        "updated_at",
        "relevance_anchor",
        "relevance_at",
        "embedding_model",
        "embedded_at",
    ]
    fixed += ["access_count", "last_accessed_at", "previous_id", "task_id", "project_id", "session_id"]
    changes = [{name: value for name, value in memory.items() if name not in fixed} for memory in memories]
    watched = Watched(folder)
    store = watched.store

    def make(rng: Random) -> bytes:
        if rng.random() < 0.5:
            return written({"insert": mutated(rng, rng.choice(given))})
        chosen = rng.choice(changes)
        few = {name: chosen[name] for name in rng.sample(sorted(chosen), rng.randrange(1, 5))}
        return written({"update": rng.choice([*IDS, "x", None]), "to": mutated(rng, few)})

    def run(case: bytes) -> bool:
        document = read(case)
        with watched.case():
            if "insert" in document:
                kept = store.insert_memory(document["insert"])
                with afterwards():
                    assert store.delete_memory(str(kept.id))
            elif isinstance(to := document["to"], dict):
                store.update_memory(document["update"], **{name: to[name] for name in to if name not in {"id", "self"}})
        return True

    with store:
        fill(store)
        yield Target(make, run)


@contextmanager
def import_file_target(folder: Path) -> Iterator[Target]:
    """A file given to ``memgraph import``, in this process: exit code 0 or 1, and one line of reasons."""
    document = exported(folder)
    data = json.dumps(document, ensure_ascii=False).encode()
    with opened(folder) as store:
        fill(store)
    clean, used, path = folder / "clean", folder / "used", folder / "export.json"
    clean.mkdir()
    for name in ("store", "keys"):
        (folder / name).rename(clean / name)
    shutil.copytree(clean, used)

    def make(rng: Random) -> bytes:
        way = rng.random()
        if way < 0.5:
            return mutated_bytes(rng, data)
        if way < 0.6:
            return data[: rng.randrange(len(data))]
        if way < 0.65:
            return rng.randbytes(rng.choice([0, 1, 10, 10_000]))
        if way < 0.7:
            return rng.choice([b"[", b'{"memories":', b'{"a":[']) * rng.choice([1, 300, 100_000])
        if way < 0.75:
            return b" " * rng.choice([0, 1, 5_000_000]) + rng.choice(
                [b"null", b"{}", b"[]", b"1e999", b'"', b"\xef\xbb\xbf{}"]
            )
        text = json.dumps(mutated(rng, document), ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
        return (
            mutated_text(rng, text.decode("utf-8", "replace")).encode("utf-8", "surrogatepass") if way < 0.8 else text
        )

    def run(case: bytes) -> bool:
        path.write_bytes(case)
        before = events_in(used / "store")
        with patch("memgraph.store.store.default_embedder", lambda *_: FakeEmbedder(DIMENSION)):
            command = ["--home", str(used / "store"), "import", str(path)]
            result = CliRunner().invoke(cli, command, env={"MEMGRAPH_KEYS_HOME": str(used / "keys")})
        assert result.exit_code in {0, 1}, f"exit code {result.exit_code}: {result.output}"
        if not isinstance(result.exception, SystemExit | None):
            raise result.exception
        if result.exit_code == 1:
            assert result.stderr.startswith("memgraph: "), result.stderr
            assert result.stderr.count("\n") == 1, result.stderr
            assert events_in(used / "store") == before, "it was refused, and something was recorded"
        elif events_in(used / "store") != before:
            shutil.rmtree(used)
            shutil.copytree(clean, used)
        return result.exit_code == 0

    yield Target(make, run)
