"""What recall finds: memgraph and its peers on question sets whose evidence is known. See README.md.

python benchmarks/retrieval.py --bench DIR [--half dev] [--sets locomo,hotpot] [--systems memgraph,bm25] [--ablate] [--abstention]

`MemGraphSystem` is what a harness calls: ``harness.py --callable benchmarks.retrieval:MemGraphSystem``.
"""

from __future__ import annotations

import argparse
import atexit
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

if __package__ in {None, ""}:  # run as a script: `benchmarks` is found from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import child
from benchmarks.corpus import Doc, Part, Search, System
from benchmarks.embeddings import CachedEmbedder, cache_folder
from benchmarks.machine import installed
from benchmarks.peers import PEERS
from benchmarks.questions import HEADLINES, SETS, Harness, Result
from benchmarks.retrieval_peers import Bm25, Dense, Stored
from benchmarks.tables import table
from memgraph import Embedder, MemGraph, MemoryRetrieval, RetrievalConfig
from memgraph.model.base import MAX_NAME_CHARS

_PROJECT = "benchmark"
_JOB = "benchmarks.retrieval:measured"
_LONGEST_JOB_S = 7_200.0
Record = dict[str, Any]


class MemGraphSystem(System):
    """memgraph through its public interface, every setting at its default.

    Stores lie in a temporary folder that is removed at exit. Searching records no access: no question changes the next one's answer.

    Parameters
    ----------
    embedder : Embedder, optional
        Default: memgraph's own, its vectors kept on disk between runs.

    Attributes
    ----------
    config : RetrievalConfig or None
        To search with; None: the default settings.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        super().__init__()
        self._embedder = embedder or CachedEmbedder()
        self._folder = tempfile.TemporaryDirectory(prefix="memgraph-bench-")
        self._graphs: list[MemGraph] = []
        self.config: RetrievalConfig | None = None
        atexit.register(self.close)

    def fill(self, parts: Sequence[Part]) -> Search:
        graph = self._opened()
        memories = [_memory(part, number) for number, part in enumerate(parts)]
        graph.store.insert_memories(memories)
        return _Filled(self, graph, {memory["id"]: place for place, memory in enumerate(memories)})

    def graph_of(self, docs: Sequence[Doc]) -> MemGraph:
        """Return the store that holds documents; fill it if need be."""
        filled = self.search_of(docs)
        assert isinstance(filled, _Filled)
        return filled.graph

    def close(self) -> None:
        super().close()
        while self._graphs:
            self._graphs.pop().close()
        self._folder.cleanup()
        atexit.unregister(self.close)

    def _opened(self) -> MemGraph:
        folder = Path(self._folder.name) / str(len(self._graphs))
        graph = MemGraph.open(folder / "store", keys_home=folder / "keys", embedder=self._embedder)
        self._graphs.append(graph)
        return graph


@dataclass(frozen=True, slots=True)
class _Filled:
    """A filled store, searched with the system's settings of the moment."""

    system: MemGraphSystem
    graph: MemGraph
    place_of: dict[str, int]

    def __call__(self, query: str, k: int) -> list[int]:
        retrieval = MemoryRetrieval(self.graph.store, config=self.system.config)
        return [self.place_of[found.memory.id] for found in retrieval.search_memories(query, limit=k)]


def _memory(part: Part, number: int) -> Record:
    """Return a part as a memory. Its id follows from its place, so that ties end the same way in every run."""
    fields = {
        "type": "episodic",
        "id": str(uuid5(NAMESPACE_URL, f"{part.doc_id}#{number}")),
        "content": part.text,
        "project_id": _PROJECT,
        "title": part.title and part.title[:MAX_NAME_CHARS],
        "speaker": part.speaker and part.speaker[:MAX_NAME_CHARS],
        "session_id": part.session and part.session[:MAX_NAME_CHARS],
        "occurred_at": part.occurred_at,
    }
    return {name: value for name, value in fields.items() if value is not None}


SYSTEMS: dict[str, Callable[[CachedEmbedder], System]] = {
    "memgraph": MemGraphSystem,
    "bm25": lambda _: Bm25(),
    "dense": Dense,
    "dense-dated": partial(Dense, told=True),
    **{name: partial(Stored, name) for name in ("chromadb", "langgraph", "mem0")},
}
DEFAULT_SYSTEMS = tuple(name for name in SYSTEMS if name != "mem0")
"""mem0 takes one call a memory: it is measured when it is asked for."""


def measured(system: str, bench: str, sets: Sequence[str], half: str, cache: str) -> Iterator[Record]:
    """Measure one system on the sets: a job for a process of its own. Yields ``{"set": …, "report": …, "result": …}``."""
    harness = Harness(Path(bench))
    asked = SYSTEMS[system](CachedEmbedder(folder=Path(cache)))
    try:
        for name in sets:
            result = harness.evaluate(asked, name, half)
            yield {"set": name, "report": harness.report(result), "result": result}
    finally:
        asked.close()


def measure(given: argparse.Namespace, say: Callable[[str], None]) -> Record:
    """Measure each system in its own process, and print its reports as they come."""
    missing = [name for name in given.systems if is_missing(name)]
    found: Record = {"systems": {}, "failed": {}, "not_installed": missing}
    if missing:
        say(f"Not installed, so not measured: {', '.join(missing)} (pip install '.[bench]')")
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as home:
        for system in (name for name in given.systems if name not in missing):
            results = found["systems"][system] = {}
            arguments = {
                "system": system,
                "bench": given.bench,
                "sets": given.sets,
                "half": given.half,
                "cache": given.cache,
            }
            try:
                with child.Job(_JOB, Path(home), timeout_s=_LONGEST_JOB_S, **arguments) as job:
                    for record in job.results():
                        if "set" in record:
                            results[record["set"]] = record["result"]
                            say(f"\n{system}: {record['report']}")
                        else:
                            found["failed"][system] = f"asked for the network: {record['network']}"
                    job.finish()
            except child.JobError as error:
                found["failed"][system] = str(error)
            if system in found["failed"]:
                say(f"\n{system}, not measured whole: {found['failed'][system]}")
    return found


def is_missing(system: str) -> bool:
    """Tell whether a system is a peer that is not installed."""
    distribution = PEERS[system].distribution if system in PEERS and system != "memgraph" else None
    return distribution is not None and installed(distribution) is None


def compared(harness: Harness, found: Record, sets: Sequence[str]) -> Iterator[str]:
    """Yield the headlines side by side, then memgraph's distance from each system with its bootstrap interval."""
    systems = {name: results for name, results in found["systems"].items() if results}
    columns = [(name, *headline) for name in sets for headline in HEADLINES[name]]
    heads = [f"{name} {'' if category == 'ALL' else f'{category} '}{metric}" for name, category, metric in columns]
    rows = [[system, *(_share(results.get(name), *by) for name, *by in columns)] for system, results in systems.items()]
    if rows:
        yield from table(["", *heads], rows)
    own = systems.pop("memgraph", {})
    if own and systems:
        yield "\nmemgraph's distance from each, in points, with 95 % of the bootstrap:"
    for system, results in systems.items() if own else ():
        both = [name for name in sets if name in results and name in own]
        told = [f"{name} {harness.distance(results[name], own[name], HEADLINES[name][0][1])}" for name in both]
        yield f"  {system}: {', '.join(told)}"


def _share(result: Result | None, category: str, metric: str) -> str:
    """Return a result's figure in percent; a dash where nothing was measured."""
    figures = result["agg"].get(category) if result else None
    return f"{100 * figures[metric]:.1f}" if figures else "–"


def asked(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return what is to be measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--bench", required=True, type=lambda path: str(Path(path).resolve()), help="folder of harness.py and data"
    )
    parser.add_argument("--half", default="dev", help="dev (default) or heldout")
    parser.add_argument(
        "--sets", type=lambda text: text.split(","), default=list(SETS), help=f"default {','.join(SETS)}"
    )
    parser.add_argument(
        "--systems", type=lambda text: text.split(","), default=list(DEFAULT_SYSTEMS), help=f"of {','.join(SYSTEMS)}"
    )
    parser.add_argument(
        "--ablate", action="store_true", help="switch off each stage and edge kind, instead of comparing systems"
    )
    parser.add_argument("--abstention", action="store_true", help="put questions to stores not their own, instead")
    parser.add_argument("--cache", default=None, help="folder of kept vectors (default: the user's cache)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    given.cache = str(cache_folder(given.cache).resolve())
    for kind, known in (("sets", SETS), ("systems", SYSTEMS)):
        if unknown := [name for name in getattr(given, kind) if name not in known]:
            parser.error(f"--{kind}: {', '.join(unknown)} unknown; known are {', '.join(known)}")
    return given


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return 1 if a system could not be measured."""
    given = asked(arguments)
    say = partial(print, flush=True, file=sys.stderr if given.json else sys.stdout)
    harness = Harness(Path(given.bench))
    document: Record = {"half": given.half}
    if not (given.ablate or given.abstention):
        found = measure(given, say)
        for line in compared(harness, found, given.sets):
            say(line)
        document |= found
    else:
        document |= _of_memgraph_alone(given, harness, say)
    if given.json:
        print(json.dumps(document, indent=1))
    return 1 if document.get("failed") else 0


def _of_memgraph_alone(given: argparse.Namespace, harness: Harness, say: Callable[[str], None]) -> Record:
    from benchmarks import ablation, abstention

    document: Record = {}
    system = MemGraphSystem(CachedEmbedder(folder=Path(given.cache)))
    try:
        if given.ablate:
            document["ablation"] = ablation.measure(system, harness, given.sets, given.half, say)
        if given.abstention:
            document["abstention"] = abstention.measure(system, harness, given.half, say)
    finally:
        system.close()
    return document


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the folders are removed then, too
    sys.exit(main())
