"""memgraph's own measurements, each a job for a process of its own. They yield ``{"figure": name, "values": […]}``."""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemoryRetrieval, RetrievalConfig
from tests.benchmarks import child
from tests.benchmarks.data import PROJECTS, SEED, Author, Clock, GivenVectors, Memory, Vector
from tests.benchmarks.figures import timed, timed_ms
from tests.benchmarks.machine import resident_mb, size_of

Result = dict[str, Any]
_LONGEST_WAIT_S = 30.0
_LONGEST_LIFE_S = 600.0
_IDS = "ids.json"
_NO_WALK = RetrievalConfig(neighbour_weight=0.0, mention_weight=0.0)
"""The walk is done and counts nothing, so that what is looked for by its own word or vector is the best of all."""

QUERIES = {
    "query_count": "MATCH (m:Memory) WHERE m.id <> $id RETURN m.type, m.outcome, count(*)",
    "query_walk": "MATCH (m:Memory {id: $id})-[:MENTIONS]->(e)<-[:MENTIONS]-(o:Memory) RETURN e.name, count(o)",
    "query_text": "MATCH (m:Memory) WHERE m.id <> $id AND m.content CONTAINS 'timed out' RETURN count(m)",
}
"""What an analyst asks, by the figure's name."""


def opened(folder: Path, embedder: GivenVectors | None = None) -> AgentMemoryStore:
    """Open the store of a run, with every setting at its default."""
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return AgentMemoryStore(config, embedder=embedder or GivenVectors(), clock=Clock())


def figure(name: str, *values: float) -> Result:
    return {"figure": name, "values": list(values)}


def calls(size: int, batch: int) -> list[int]:
    """Divide a number of memories into calls."""
    return [min(batch, size - done) for done in range(0, size, batch)]


def build(folder: str, size: int, batch: int) -> Iterator[Result]:
    """Fill a new store through `insert_memories`, and see that all of it is in the graph."""
    author, taken = Author(), []
    with opened(Path(folder)) as store:
        store.insert_memory(author.memory())  # opens files
        for count in calls(size, batch):
            memories = author.memories(count)
            taken.append(timed(partial(store.insert_memories, memories)))
            rate = count / taken[-1]
        held = resident_mb()
        found = store.cypher("MATCH (m:Memory) RETURN count(m) AS memories")[0]["memories"]
        if found != size + 1:
            raise RuntimeError(f"{size + 1:,} memories were inserted, the graph has {found:,}")
        listed = store.list_memories(limit=2_000, by="created")
        closing = time.perf_counter()
    yield figure("bulk_close", time.perf_counter() - closing)
    yield figure("bulk", size / sum(taken))
    if len(taken) > 1:
        yield figure("bulk_last_call", rate)
    for name in ("peak", "now"):
        if name in held:
            yield figure(f"writer_{name}", held[name])
    (Path(folder) / _IDS).write_text(json.dumps([memory.id for memory in listed]))
    store_folder = Path(folder) / "store"
    yield figure("disk_database", sum(path.stat().st_size for path in store_folder.glob("memgraph.db*")) / (size + 1))
    for name in ("cache", "graph", "index"):
        yield figure(f"disk_{name}", size_of(store_folder / name) / (size + 1))
    yield figure("disk", size_of(store_folder) / (size + 1))


def write(folder: str, of: int, singles: int, looks: int) -> Iterator[Result]:
    """Insert one by one into a store of so many; then find what was inserted, in this process and in another."""
    author, embedder = Author(first=of + 1), GivenVectors()
    with opened(Path(folder), embedder) as store:
        retrieval = MemoryRetrieval(store, config=_NO_WALK)
        _is_found(retrieval, embedder, *author.question(), "")  # loads the index
        store.insert_memory(author.memory())
        yield figure("single", *timed_ms([partial(store.insert_memory, one) for one in author.memories(singles)]))

        taken = defaultdict[str, list[float]](list)
        for memory, word in (_marked(author) for _ in range(looks)):
            sees = partial(_is_found, retrieval, embedder, word, author.question()[1])
            taken["text"].append(_until_seen(store, memory, sees))
        for memory in author.memories(looks):
            sees = partial(_is_found, retrieval, embedder, author.word(), memory["embedding"])
            taken["vector"].append(_until_seen(store, memory, sees))
        for memory in author.memories(looks):
            taken["cypher"].append(_until_seen(store, memory, partial(_is_in_cypher, store)))
        for way in ("text", "vector", "cypher"):
            yield figure(f"visible_{way}", *taken[way])

        with _watching(Path(folder)) as ask:
            for _ in range(looks):
                for way in ("get", "search"):
                    memory, word = _marked(author)
                    start = time.perf_counter()
                    memory_id = store.insert_memory(memory).id
                    taken["single_shared"].append(1e3 * (time.perf_counter() - start))
                    ask({"by": way, "id": memory_id, "word": word})
                    taken[way].append(1e3 * (time.perf_counter() - start))
        yield figure("single_shared", *taken["single_shared"])
        yield figure("visible_process_get", *taken["get"])
        yield figure("visible_process_search", *taken["search"])


def watch(folder: str) -> Iterator[Result]:
    """Be the other process: told an id on standard input, read until it is there, and say so."""
    embedder = GivenVectors()
    text, vector = Author(SEED + 1).question()
    with opened(Path(folder), embedder) as store:
        retrieval = MemoryRetrieval(store, config=_NO_WALK)
        _is_found(retrieval, embedder, text, vector, "")  # loads the index
        yield {"ready": True}
        for line in sys.stdin:
            asked = json.loads(line)
            if asked["by"] == "get":
                _until(partial(_is_there, store, asked["id"]))
            else:
                _until(partial(_is_found, retrieval, embedder, asked["word"], vector, asked["id"]))
            yield {"seen": asked["id"]}


def read(folder: str, reads: int, within_s: float) -> Iterator[Result]:
    """Read by id, list, recall, in a store that this process has just opened."""
    author, embedder = Author(SEED + 2), GivenVectors()
    timed_some = partial(timed_ms, within_s=within_s)
    ids = json.loads((Path(folder) / _IDS).read_text())
    wanted = ids[:: max(1, len(ids) // reads)][:reads]
    with opened(Path(folder), embedder) as store:
        store.get_memory(ids[-1])  # opens the database
        yield figure("get_cold", *timed_some([partial(store.get_memory, known) for known in wanted]))
        yield figure("get_warm", *timed_some([partial(store.get_memory, known) for known in wanted]))
        store.list_memories(limit=1)  # loads the index
        yield figure("list_all", *timed_some([partial(store.list_memories, limit=20)] * reads))
        listings = [partial(store.query_by_project, f"project-{n % PROJECTS}", limit=20) for n in range(reads)]
        yield figure("list_project", *timed_some(listings))

        retrieval = MemoryRetrieval(store)
        questions = [author.question() for _ in range(reads)]
        embedder.vectors.update(questions)
        retrieval.search_memories(questions[0][0])  # touches the vectors
        search, retrieve = retrieval.search_memories, retrieval.retrieve
        yield figure("search", *timed_some([partial(search, text) for text, _ in questions]))
        of_project = [
            partial(search, text, project_id=f"project-{n % PROJECTS}") for n, (text, _) in enumerate(questions)
        ]
        yield figure("search_project", *timed_some(of_project))
        asked = [
            {"task_description": text, "agent_name": "MARS", "project_id": f"project-{n % PROJECTS}"}
            for n, (text, _) in enumerate(questions)
        ]
        yield figure("retrieve", *timed_some([partial(retrieve, query) for query in asked]))
        for name, query in QUERIES.items():
            yield figure(
                name, *timed_some([partial(store.cypher, query, id=known) for known in wanted[: max(1, reads // 10)]])
            )


def replay(folder: str, repeats: int, within_s: float) -> Iterator[Result]:
    """Verify and rebuild."""
    with opened(Path(folder)) as store:
        events = store.verify()  # once before, for the system's cache
        for name, call in (("verify", store.verify), ("rebuild", store.rebuild)):
            taken: list[float] = []
            while len(taken) < repeats and sum(taken) < within_s:
                taken.append(timed(call))
            yield figure(name, *(events / seconds for seconds in taken))


def _marked(author: Author) -> tuple[Memory, str]:
    """Make a memory that holds a word of its own, and return both."""
    memory, word = author.memory(), author.word()
    return memory | {"content": f"{memory['content']} See {word}."}, word


def _is_found(retrieval: MemoryRetrieval, embedder: GivenVectors, text: str, vector: Vector, memory_id: str) -> bool:
    embedder.vectors[text] = vector
    return memory_id in {found.memory.id for found in retrieval.search_memories(text)}


def _is_in_cypher(store: AgentMemoryStore, memory_id: str) -> bool:
    return bool(store.cypher("MATCH (m:Memory {id: $id}) RETURN m.content AS content", id=memory_id))


def _is_there(store: AgentMemoryStore, memory_id: str) -> bool:
    return store.get_memory(memory_id) is not None


def _until_seen(store: AgentMemoryStore, memory: Memory, sees: Callable[[str], bool]) -> float:
    """Insert, look until it is seen, and return how long both took together, milliseconds."""
    start = time.perf_counter()
    _until(partial(sees, store.insert_memory(memory).id))
    return 1e3 * (time.perf_counter() - start)


def _until(sees: Callable[[], bool]) -> None:
    until = time.monotonic() + _LONGEST_WAIT_S
    while not sees():
        if time.monotonic() > until:
            raise RuntimeError(f"what was inserted was not seen within {_LONGEST_WAIT_S:.0f} s")


@contextmanager
def _watching(folder: Path) -> Iterator[Callable[[Result], None]]:
    """Start the other process and yield how to ask it: the call returns when it has seen what it was told."""
    with child.Job("tests.benchmarks.jobs:watch", folder / "home", timeout_s=_LONGEST_LIFE_S, folder=folder) as other:

        def ask(question: Result) -> None:
            other.tell(json.dumps(question))
            other.result()

        other.result()  # it is ready
        yield ask
        other.finish()
