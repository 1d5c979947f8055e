"""Writes a history to a store step by step, and reports the steps done. ``FOLDER HISTORY [PLACE SIGNAL]``.

With a place, a fuse burns there. Without one, each step is acknowledged with the digest after it, and the places that the
fuse passed are told at the end: what runs that are broken off are held against.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuse import Fuse
from places import MoodyEmbedder, opened, say

from memgraph import AgentMemoryStore, MemoryCommands
from memgraph.extraction.readers import BuildLogReader
from memgraph.lifecycle import ingest
from memgraph.model.ids import source_id

Step = Callable[[AgentMemoryStore], object]

is_whole = len(sys.argv) == 3
fuse = Fuse() if is_whole else Fuse(int(sys.argv[3]), signal.Signals(int(sys.argv[4])))


def acknowledge(store: AgentMemoryStore) -> None:
    """Report that all steps so far are done."""
    fuse.pass_("before it is acknowledged")
    digest = store.digest()  # in any case, so that every run passes the same places
    say(digest if is_whole else "done")


def an_id(number: int) -> str:
    """Return the same id in every run."""
    return source_id("crash", number)


def memory(number: int, **fields: Any) -> dict[str, Any]:
    """Return a memory with edges of many kinds."""
    given = {
        "id": an_id(number), "type": "episodic", "content": f"memory {number}: the build failed in login{number}.py",
        "project_id": "P", "tags": [f"t{number % 5}", "auth"], "agents_involved": ["MARS"], "session_id": "s",
    }  # fmt: skip
    return {**given, **fields}


def build(number: int) -> dict[str, Any]:
    """Return one build of a log."""
    what = ("the login token expired", "the cache was cold", "a migration locked the table")[number % 3]
    task = {
        "task_id": f"t{number}", "agent_name": "MARS", "description": f"Deploy service number {number}",
        "output": f"Error: {what} in service{number}.py while deploying step {number}", "outcome": "failure",
    }  # fmt: skip
    times = {"started_at": "2026-01-01T00:00:00Z", "completed_at": f"2026-01-01T01:00:{number:02d}Z"}
    return {"build_id": f"b{number}", "project_id": "P", "tasks": [task], "build_outcome": "failure", **times}


def stock() -> list[Step]:
    """The content of a store before the other histories begin."""
    general = {"type": "semantic", "supporting_memory_ids": [an_id(800)], "session_id": None}
    return [
        lambda store: store.insert_memories([memory(number) for number in range(800, 804)]),
        lambda store: store.insert_memory(memory(804, **general)),
    ]


def more() -> list[Step]:
    """Events added to it, so that projections can be behind."""
    return [lambda store: store.insert_memory(memory(805)), lambda store: store.delete_memory(an_id(803))]


def singles() -> list[Step]:
    """Commits of few events, of every kind."""
    return [
        lambda store: store.insert_memory(memory(1)),
        lambda store: store.insert_memory(memory(2)),
        lambda store: store.update_memory(an_id(1), content="memory 1: it was the token", title="token"),
        lambda store: store.link(an_id(2), "SUPERSEDES", an_id(1)),
        lambda store: (store.record_access(an_id(2)), store.flush()),
        lambda store: store.update_memory(an_id(2), is_suppressed=True),
        lambda store: store.delete_memory(an_id(1)),
        lambda store: store.archive(an_id(2), reason="done"),
        lambda store: store.invalidate(an_id(2)),
        lambda store: store.undelete(an_id(1)),
    ]


def bulk() -> list[Step]:
    """Commits of many events."""
    return [
        lambda store: store.insert_memories([memory(number) for number in range(100, 120)]),
        lambda store: store.insert_memories([memory(number) for number in range(200, 315)]),
    ]


def importing(tasks: tuple[str | None, ...] = (None,)) -> list[Step]:
    """The import of an export with links, which is atomic."""
    memories = [memory(number, task_id=tasks[number % len(tasks)]) for number in range(12)]
    links = [{"source_id": an_id(n), "relation": "RELATED_TO", "target_id": an_id(n + 1)} for n in range(5)]
    export = {"version": "1.0.0", "total_memories": 12, "memories": memories, "links": links}
    document = {**export, "exported_at": "2026-01-01T00:00:00.000Z"}
    return [lambda store: MemoryCommands(store).import_memories(document)]


def intake() -> list[Step]:
    """A source, read in batches; a second run resumes."""
    sys.modules["memgraph.lifecycle.intake.ingest"].BATCH_BUILDS = 3  # type: ignore[attr-defined]

    def step(store: AgentMemoryStore) -> None:
        path = store.config.home.parent / "builds.jsonl"
        path.write_text("".join(json.dumps(build(number)) + "\n" for number in range(9)))
        ingest(store, BuildLogReader(path, project_id="P"), progress=lambda *_: acknowledge(store))

    return [step]


def embedding() -> list[Step]:
    """Memories that are written while the model fails, and embedded later in batches."""

    def add(store: AgentMemoryStore) -> None:
        MoodyEmbedder.is_ill = True
        store.insert_memories([memory(number) for number in range(5)])
        MoodyEmbedder.is_ill = False

    return [add, lambda store: store.embed_awaiting(batch=2, progress=lambda *_: acknowledge(store))]


def rebuilding() -> list[Step]:
    """A rebuild, and further writes."""
    return [lambda store: store.rebuild(), lambda store: store.insert_memory(memory(900))]


def corrections() -> list[Step]:
    """A merge of memories by the user, and its undoing."""
    return [
        lambda store: store.curation.merge([an_id(800), an_id(801), an_id(804)]),
        lambda store: store.curation.undo(),
    ]


def resets() -> list[Step]:
    """A reset that keeps something, a write after it, and a reset that keeps nothing."""
    return [
        lambda store: store.insert_memory(memory(910, is_pinned=True)),
        lambda store: store.reset("memory"),
        lambda store: store.insert_memory(memory(911)),
        lambda store: store.reset("all"),
    ]


def living() -> list[Step]:
    """Hardly more than opening and closing: what a store does by itself (healing, saving the index, writing the graph)."""
    return [
        lambda store: store.get_all_memories(),
        lambda store: store.cypher("MATCH (m:Memory) RETURN m.id"),
        lambda store: store.insert_memory(memory(901)),
    ]


HISTORIES: dict[str, Callable[[], list[Step]]] = {
    "stock": stock,
    "more": more,
    "singles": singles,
    "bulk": bulk,
    "import": importing,
    "import of scopes": lambda: importing((None, "T1", "T2")),
    "embedding": embedding,
    "intake": intake,
    "rebuild": rebuilding,
    "corrections": corrections,
    "resets": resets,
    "living": living,
}


def work(folder: Path, steps: list[Step]) -> None:
    """Open the store, run the steps, close it."""
    fuse.lay()
    with opened(folder) as store:
        acknowledge(store)
        try:
            for step in steps:
                step(store)
                acknowledge(store)
        except KeyboardInterrupt:  # who catches it can go on with the same store
            after = store.digest()
            store.verify()
            say({"digest": after})
            raise


def main() -> None:
    """Run the history, and report the result."""
    try:
        work(Path(sys.argv[1]), HISTORIES[sys.argv[2]]())
    except KeyboardInterrupt:
        sys.exit(130)
    say(fuse.places)


main()
