"""How much room a store takes over weeks of ordinary use: thousands of commits of every kind, days with a sleep at their end.

python tests/benchmarks/weeks.py [--commits 50000] [--engine kuzu]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.lifecycle import sleep
from memgraph.testing import FakeEmbedder
from tests.benchmarks.data import DIMENSION, SEED, Author, Clock
from tests.benchmarks.machine import size_of

_COMMITS_A_DAY = 2_500
_PRINTED = 10
_BATCH = 10


class Life:
    """What an agent does with a store, a commit at a time."""

    def __init__(self, store: AgentMemoryStore, author: Author, ids: list[str], chance: Random) -> None:
        self._store = store
        self._author = author
        self._ids = ids
        self._chance = chance

    def commit(self) -> None:
        """Do one thing: mostly add and touch, now and then change, link, put away, delete, add many."""
        acts: list[tuple[int, Callable[[], object]]] = [
            (45, self._add),
            (25, lambda: self._store.record_access(self._some())),
            (10, lambda: self._store.update_memory(self._some(), tags=[f"seen-{self._chance.randrange(50)}"])),
            (5, lambda: self._store.update_memory(self._some(), content=self._author.memory()["content"])),
            (8, lambda: self._store.link(self._some(), "related_to", self._some())),
            (2, lambda: self._store.supersede(self._some(), by=self._some())),
            (2, lambda: self._store.suppress(self._some())),
            (2, self._delete),
            (1, self._add_many),
        ]
        (act,) = self._chance.choices([act for _, act in acts], [weight for weight, _ in acts])
        try:
            act() if self._ids else self._add()
        except (InvalidInputError, NotFoundError):  # linked to itself, superseded in a circle, deleted meanwhile
            self._add()

    def _add(self) -> None:
        self._ids.append(self._store.insert_memory(self._author.memory()).id)

    def _add_many(self) -> None:
        self._ids += [memory.id for memory in self._store.insert_memories(self._author.memories(_BATCH))]

    def _delete(self) -> None:
        self._store.delete_memory(self._ids.pop(self._chance.randrange(len(self._ids))))

    def _some(self) -> str:
        return self._chance.choice(self._ids)


def main(arguments: list[str] | None = None) -> int:
    """Live, print what the store takes, and return 1 if the graph is more than three times what a new one takes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--commits", type=int, default=50_000, metavar="N")
    parser.add_argument("--engine", default="kuzu")
    given = parser.parse_args(arguments)
    author, chance, clock, ids = Author(SEED), Random(SEED), Clock(), list[str]()
    print(
        f"{'commits':>9}{'memories':>10}{'journal':>10}{'vectors':>10}{'graph':>10}{'most':>8}{'index':>8}{'s':>8}   MB"
    )
    with tempfile.TemporaryDirectory(prefix="memgraph-weeks-") as temporary:
        folder = Path(temporary)
        config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", engine=given.engine)
        done, most, began = 0, 0, time.monotonic()
        every = max(1, given.commits // _PRINTED)
        while done < given.commits:
            with AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=clock) as store:
                life = Life(store, author, ids, chance)
                for _ in range(min(_COMMITS_A_DAY, given.commits - done)):
                    life.commit()
                    done += 1
                    if done % 100 == 0:
                        most = max(most, size_of(config.home / "graph"))
                    if done % every == 0:
                        _say(config.home, done, store.get_stats().total, most, time.monotonic() - began)
                sleep(store)
            clock.advance(days=1)
        used = size_of(config.home / "graph")
        with AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=clock) as store:
            is_true = not store.verification(deep=True).differing
            store.rebuild()
        fresh = size_of(config.home / "graph")
        print(f"graph at the end {used / 1e6:.1f} MB, made anew {fresh / 1e6:.1f} MB: {used / fresh:.2f} ×")
        print("every cell is what the journal says" if is_true else "the graph DIFFERS from the journal")
    return 1 if used > 3 * fresh or not is_true else 0


def _say(home: Path, done: int, memories: int, most: int, seconds: float) -> None:
    journal, vectors = home / "journal", home / "journal" / "vectors"
    sizes = [
        size_of(journal) - size_of(vectors),
        size_of(vectors),
        size_of(home / "graph"),
        most,
        size_of(home / "index"),
    ]
    shown = "".join(f"{size / 1e6:>{width}.1f}" for size, width in zip(sizes, (10, 10, 10, 8, 8), strict=True))
    print(f"{done:>9,}{memories:>10,}{shown}{seconds:>8.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
