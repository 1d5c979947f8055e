"""How long recall takes, each a job for a process of its own. They yield ``{"figure": name, "values": […]}``, milliseconds."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from memgraph import AgentMemoryStore, Link, MemoryRetrieval, RetrievalConfig
from memgraph.model.results.retrieval import StageReport
from memgraph.privacy import OWNER
from memgraph.retrieval.pipeline import ranked
from memgraph.store.access.scope import Scope
from tests.benchmarks.data import DIMENSION, Vector
from tests.benchmarks.figures import timed, timed_ms
from tests.benchmarks.jobs import calls, figure, opened
from tests.benchmarks.peers import opened as opened_peer
from tests.benchmarks.stories import Storyteller

Result = dict[str, Any]
Values = defaultdict[str, list[float]]
Question = tuple[str, Vector]

LIMIT = 10
WARMING = 10
_EPISODES_A_GENERALISATION = 50
_EVIDENCE = 4
_EPISODES_A_PROCEDURE = 200
_EPISODES_A_LINK = 200
_BULK = 1_000
_LONGEST_QUERIES_S = 30.0


def measure(
    folder: str, size: int, batch: int, questions: int, commits: int, block_s: float, blocks: int
) -> Iterator[Result]:
    """Fill a store, then ask it in every way."""
    teller = Storyteller()
    with opened(Path(folder)) as store:
        start = time.perf_counter()
        links = fill(store, teller, size, batch)
        yield figure("fill_s", time.perf_counter() - start)
        yield {"links": links, "memories": store.get_stats().total}
        retrieval = MemoryRetrieval(store)
        asked = [teller.question() for _ in range(questions)]
        _search(retrieval, *asked[0])  # makes the copy of the vectors
        yield from _shown(_recalls(store, retrieval, _vectors(folder, store), asked))
        yield from _shown(_recording(store, retrieval, asked, block_s, blocks))
        yield from _shown(_commits(store, retrieval, teller, commits))
        yield from _shown(_beside_a_bulk_insert(store, retrieval, teller, asked, min(size, 4 * _BULK)))


def fill(store: AgentMemoryStore, teller: Storyteller, size: int, batch: int) -> int:
    """Insert so many memories with their edges, in calls of `batch`; return how many links they have beside NEXT and tags."""
    made = 0
    for count in calls(size, batch):
        kinds = max(1, count // _EPISODES_A_GENERALISATION), max(1, count // _EPISODES_A_PROCEDURE)
        ids = [memory.id for memory in store.insert_memories(teller.memories(count - sum(kinds)))]
        spread = max(1, len(ids) // kinds[0])
        evidence = [ids[first : first + _EVIDENCE] for first in range(0, spread * kinds[0], spread)]
        store.insert_memories(
            [*(teller.generalisation(one) for one in evidence), *(teller.procedure() for _ in range(kinds[1]))]
        )
        pairs = list(zip(ids[::_EPISODES_A_LINK], ids[1::_EPISODES_A_LINK], strict=False))
        relations = ("CONTRADICTS", "SUPERSEDES")
        links = [Link(source_id=new, relation=relations[n % 2], target_id=old) for n, (old, new) in enumerate(pairs)]
        store.import_memories([], links)
        made += 2 * sum(map(len, evidence)) + len(links)
    return made


def peer(name: str, folder: str, size: int, batch: int, questions: int, within_s: float) -> Iterator[Result]:
    """Fill a peer with the same episodes, and query it."""
    teller, store = Storyteller(), opened_peer(name, Path(folder))
    done, start = 0, time.perf_counter()
    for count in calls(size, batch):
        store.insert(teller.memories(count))
        done += count
        if time.perf_counter() - start > within_s:
            break
    yield {"memories": done}
    store.query(*teller.question(), LIMIT)  # loads what is loaded late
    asked = [partial(store.query, *teller.question(), LIMIT) for _ in range(questions)]
    yield figure("query", *timed_ms(asked, within_s=_LONGEST_QUERIES_S))
    store.close()


def _recalls(
    store: AgentMemoryStore, retrieval: MemoryRetrieval, vectors: np.ndarray, asked: Sequence[Question]
) -> Values:
    """Time the bare product, the search, and its stages, in turn for each question: what disturbs one disturbs all."""
    taken: Values = defaultdict(list)
    search = partial(_search, retrieval)
    _ask_all(search, asked[:WARMING])
    for text, vector in asked:
        taken["product"].append(1e3 * timed(partial(np.matmul, vectors, vector)))
        taken["search"].append(1e3 * timed(partial(search, text, vector)))
        for stage, milliseconds in _stages(store, text, vector).items():
            taken[f"stage:{stage}"].append(milliseconds)
    return taken


def _stages(store: AgentMemoryStore, text: str, vector: Vector) -> dict[str, float]:
    """Return what each stage of the ranking took."""
    ends: dict[str, float] = {}

    def watch(report: StageReport) -> None:
        ends[report.stage] = time.perf_counter()

    with store.reader.frozen():
        start = time.perf_counter()
        ranked(store, text, vector, Scope(OWNER), RetrievalConfig(), wanted=LIMIT, watch=watch)
        ends["certainty"] = time.perf_counter()
    begins = [start, *ends.values()]
    return {stage: 1e3 * (end - begin) for (stage, end), begin in zip(ends.items(), begins, strict=False)}


def _recording(
    store: AgentMemoryStore, retrieval: MemoryRetrieval, asked: Sequence[Question], block_s: float, blocks: int
) -> Values:
    """Time `retrieve` with access records and without, in blocks that are long enough for records to reach the disk."""
    taken: Values = defaultdict(list)
    for _ in range(blocks):
        means = []
        for name, record in (("retrieve", store.record_retrieval), ("retrieve_unrecorded", _nothing)):
            store.flush()
            with patch.object(store, "record_retrieval", record):
                block = _block(retrieval, asked, block_s)
            means.append(statistics.fmean(block))
            taken[name] += block
        taken["recording_ratio"].append(means[0] / means[1])
    return taken


def _block(retrieval: MemoryRetrieval, asked: Sequence[Question], seconds: float) -> list[float]:
    """Recall for so long, at least once."""
    taken: list[float] = []
    until = time.perf_counter() + seconds
    for text, vector in cycle(asked):
        query = {"task_description": text, "task_embedding": vector}
        taken.append(1e3 * timed(partial(retrieval.retrieve, query)))
        if time.perf_counter() > until:
            break
    return taken


def _commits(store: AgentMemoryStore, retrieval: MemoryRetrieval, teller: Storyteller, count: int) -> Values:
    """Commit one memory and recall it at once: the very next recall must find it."""
    taken: Values = defaultdict(list)
    for _ in range(count):
        memory = teller.memory()
        taken["commit"].append(1e3 * timed(partial(store.insert_memory, memory)))
        start = time.perf_counter()
        found = _search(retrieval, memory["content"], memory["embedding"])
        taken["next_recall"].append(1e3 * (time.perf_counter() - start))
        if memory["content"] not in {one.memory.content for one in found}:
            raise RuntimeError("a recall did not find what was committed before it")
    return taken


def _beside_a_bulk_insert(
    store: AgentMemoryStore, retrieval: MemoryRetrieval, teller: Storyteller, asked: Sequence[Question], count: int
) -> Values:
    """Recall while another thread inserts."""
    memories = [teller.memories(one) for one in calls(count, _BULK)]
    taken: Values = defaultdict(list)
    with ThreadPoolExecutor(1) as writer:
        inserted = [writer.submit(store.insert_memories, some) for some in memories]
        for text, vector in cycle(asked):
            if inserted[-1].done():
                break
            taken["search_in_bulk"].append(1e3 * timed(partial(_search, retrieval, text, vector)))
        for one in inserted:
            one.result()  # or the error that it met
    return taken


def _search(retrieval: MemoryRetrieval, text: str, vector: Vector) -> Any:
    return retrieval.search_memories(text, embedding=vector, limit=LIMIT)


def _nothing(*_: object, **__: object) -> None:
    """Record nothing."""


def _ask_all(ask: Callable[[str, Vector], Any], asked: Sequence[Question]) -> list[float]:
    return [1e3 * timed(partial(ask, text, vector)) for text, vector in asked]


def _vectors(folder: str, store: AgentMemoryStore) -> np.ndarray:
    """Return the very file that recall reads, mapped: what a product with it costs is the floor under an exact search."""
    path = Path(folder) / "store" / "cache" / f"{store.embedder.name}.f32"
    return np.memmap(path, dtype=np.float32, mode="r", shape=(store.get_stats().total, DIMENSION))


def _shown(values: Values) -> Iterator[Result]:
    return (figure(name, *taken) for name, taken in values.items())
