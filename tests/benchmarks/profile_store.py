"""Where bulk inserts, single inserts, rebuilds and recall spend their time, by layer of memgraph and by function.

    python tests/benchmarks/profile_store.py [--memories 10000] [--top 12]

Time spent outside memgraph (pydantic, orjson, numpy, Kùzu, the standard library) counts for the function of memgraph that
called it. Profiling slows Python down about twofold and compiled code not at all: read shares, not seconds.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import memgraph
from memgraph import MemoryRetrieval
from tests.benchmarks.data import Author, GivenVectors
from tests.benchmarks.jobs import opened

Function = tuple[str, int, str]
PACKAGE = Path(memgraph.__file__).parent
OUTSIDE: Function = ("", 0, "outside memgraph")
_ROUNDS = 100


def attributed(stats: pstats.Stats) -> dict[Function, float]:
    """Return the seconds of each function of memgraph, with those of what it calls outside.

    The time of a function outside goes to its callers, in proportion to their calls' time, until it is inside.
    """
    table: dict[Function, Any] = stats.stats  # type: ignore[attr-defined]
    own: dict[Function, float] = defaultdict(float)
    moving: dict[Function, float] = defaultdict(float)
    for function, (_, _, seconds, _, _) in table.items():
        (own if _is_inside(function) else moving)[function] += seconds
    for _ in range(_ROUNDS):
        arriving: dict[Function, float] = defaultdict(float)
        for function, seconds in moving.items():
            callers = {caller: spent[3] for caller, spent in table[function][4].items() if caller != function}
            whole = sum(callers.values())
            if not whole:
                own[OUTSIDE] += seconds
            for caller, spent in callers.items() if whole else ():
                (own if _is_inside(caller) else arriving)[caller] += seconds * spent / whole
        moving = arriving
    own[OUTSIDE] += sum(moving.values())  # what calls itself in circles
    return own


@contextmanager
def profiled(title: str, top: int) -> Iterator[Callable[..., Any]]:
    """Yield how to run a call under the profiler; at the end, print what was found."""
    profile = cProfile.Profile()
    yield profile.runcall
    own = attributed(pstats.Stats(profile))
    whole = sum(own.values())
    layers: dict[str, float] = defaultdict(float)
    for function, seconds in own.items():
        layers[_layer(function)] += seconds
    print(f"\n== {title}: {whole:.2f} s under the profiler ==")
    print(
        "  "
        + ", ".join(
            f"{name} {seconds / whole:.0%}"
            for name, seconds in _largest(layers, len(layers))
            if seconds / whole >= 0.01
        )
    )
    for function, seconds in _largest(own, top):
        print(f"  {seconds / whole:6.1%}  {seconds:8.3f} s  {_where(function)}")


def main() -> int:
    """Profile each operation in a store of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--memories", type=int, default=10_000, help="memories in the bulk insert (default 10,000)")
    parser.add_argument("--singles", type=int, default=200, help="single inserts, and recalls (default 200)")
    parser.add_argument("--top", type=int, default=12, help="functions shown of each (default 12)")
    given = parser.parse_args()
    author, embedder = Author(), GivenVectors()
    with tempfile.TemporaryDirectory(prefix="memgraph-profile-") as temporary:
        folder = Path(temporary)
        with opened(folder, embedder) as store:
            store.insert_memory(author.memory())  # opens files, imports modules
            with profiled(f"bulk insert of {given.memories:,}", given.top) as run:
                run(store.insert_memories, author.memories(given.memories))
            with profiled(f"{given.singles:,} single inserts at {given.memories:,}", given.top) as run:
                for memory in author.memories(given.singles):
                    run(store.insert_memory, memory)
            retrieval = MemoryRetrieval(store)
            questions = [author.question() for _ in range(given.singles)]
            embedder.vectors.update(questions)
            retrieval.search_memories(questions[0][0])
            with profiled(f"{given.singles:,} recalls (search_memories) at {given.memories:,}", given.top) as run:
                for text, _ in questions:
                    run(retrieval.search_memories, text)
            with profiled(f"rebuild at {given.memories:,}", given.top) as run:
                run(store.rebuild)
            with profiled(f"verify at {given.memories:,}", given.top) as run:
                run(store.verify)
        with profiled(f"open to first recall at {given.memories:,}", given.top) as run:
            again = run(opened, folder, embedder)
            run(MemoryRetrieval(again).search_memories, questions[0][0])
        again.close()
    return 0


def _is_inside(function: Function) -> bool:
    return function[0].startswith(str(PACKAGE))


def _layer(function: Function) -> str:
    if function == OUTSIDE:
        return "outside"
    return Path(function[0]).relative_to(PACKAGE).parts[0].removesuffix(".py")


def _where(function: Function) -> str:
    path, line, name = function
    return name if function == OUTSIDE else f"{Path(path).relative_to(PACKAGE)}:{line} {name}"


def _largest(seconds: dict[Any, float], count: int) -> list[tuple[Any, float]]:
    return sorted(seconds.items(), key=lambda entry: -entry[1])[:count]


if __name__ == "__main__":
    sys.exit(main())
