"""Rows forged by SQL in every table, and flipped bytes in every file: what is served is what was recorded, or the store is refused.

A few cases; with ``--long`` 1,000 forged rows and 400 flipped bytes, one at a time, and a value of each other type in each column.
"""

from __future__ import annotations

import shutil
import sqlite3
import traceback
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import memgraph
from memgraph import MemGraph
from memgraph.errors import MemGraphError
from memgraph.store.compaction import compact
from memgraph.testing import FakeClock, FakeEmbedder

SEED = 20261127
WORDS = "albatross bullfinch cormorant dotterel flamingo goldfinch hornbill kingfisher lapwing nightingale".split()
MARK = "zz"
TABLES = ("event", "head", "archive", "baseline", "vector", "tenant", "node", "edge", "gone", "state")
OF_A_VECTOR = {"embedding", "embedding_model", "embedded_at"}
NEW = "A memory that is written afterwards"


def opened(folder: Path) -> MemGraph:
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", lock_timeout_s=1.0)
    clock = FakeClock("2026-03-20T09:00:00.000Z")
    return MemGraph(memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Make a store with an archive, a baseline, events after it, a purged event, an index, a cache of vectors and a graph."""
    folder = tmp_path_factory.mktemp("flipped")
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    clock = FakeClock("2026-02-01T09:00:00.000Z")

    def live(words: list[str], ids: list[str]) -> None:
        with MemGraph(memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock)) as memory:
            for word in words:
                clock.advance(days=1)
                fields = {"type": "episodic", "content": f"The {word} nests", "tags": [word], "project_id": "P"}
                ids.append(memory.store.insert_memory({**fields, "session_id": "s"}).id)
            memory.store.insert_memory(
                {"type": "semantic", "content": f"A {words[0]} sings", "supporting_memory_ids": ids[-2:]}
            )
            memory.store.link(ids[-1], "SUPERSEDES", ids[-2], score=0.5, reason=f"the {words[1]} left")
            memory.store.update_memory(ids[-3], title=f"On the {words[2]}")
            memory.tasks.upsert(f"Watch the {words[0]}", task_id=words[0])
            memory.tasks.decide(words[0], f"Count every {words[1]}")
            memory.store.delete_memory(ids[-4])

    ids: list[str] = []
    live(WORDS[:5], ids)
    compact(config, before=clock() + timedelta(seconds=1), clock=clock)
    live(WORDS[5:], ids)
    with opened(folder) as memory:
        memory.store.purge([ids.pop(6)])
        memory.store.rebuild()
        memory.store.delete_memory(ids[2])
        for ask in questions(memory, ids).values():
            ask()
    return folder, ids


def questions(memory: MemGraph, ids: list[str]) -> dict[str, Callable[[], Any]]:
    """Return what is asked, by name. Nothing of it is recorded."""
    store = memory.store
    return {
        "memories": lambda: [one.model_dump(exclude=OF_A_VECTOR) for one in store.every_memory()],
        "vectors": lambda: [(one.embedding.tobytes(), one.embedded_at) for one in store.every_memory()],
        "one": lambda: [(one := store.get_memory(key)) and one.model_dump(exclude=OF_A_VECTOR) for key in ids],
        "links": lambda: sorted(map(repr, store.every_link())),
        "links of one": lambda: [sorted(map(repr, store.links(key))) for key in ids if store.get_memory(key)],
        "search": lambda: [(one.memory.id, one.score) for one in memory.search_memories("Where does the lapwing nest?", limit=20)],
        "history": lambda: [repr(memory.curation.history(key)) for key in ids],
        "tasks": lambda: [repr(memory.tasks.snapshot(word)) for word in (WORDS[0], WORDS[5])],
        "digest": lambda: (store.digest(), store.get_stats().model_dump(exclude={"db_size_bytes"})),
        "past": lambda: [one.model_dump(exclude=OF_A_VECTOR) for one in memory.at("2026-02-04").store.every_memory()],
        "graph": lambda: sorted(map(repr, store.cypher("MATCH (a:Memory)-[e]->(b) RETURN a.id, a.content, label(e), label(b)"))),
    }  # fmt: skip


def spoilt(rng: Random, value: Any, others: list[Any]) -> Any:
    """Return something else in place of a value: of another row, a word changed also where it is compressed, a bit, or nothing."""
    way = rng.randrange(6)
    if way == 0:
        return rng.choice(others)
    if way == 1:
        return rng.choice([None, 0, -1, 1 << 40, 1e999, "", "x", b"", rng.randbytes(16)])
    if isinstance(value, int):
        return value + rng.choice([-2, -1, 1, 2])
    data = value.encode() if isinstance(value, str) else bytes(value or b"?")
    with suppress(zlib.error):
        data = zlib.compress(worded(rng, zlib.decompress(data)), 6)
    if way < 5:
        data = worded(rng, data)
    else:
        place = rng.randrange(len(data) or 1)
        data = data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :] if data else b"?"
    return data.decode("utf-8", "replace") if isinstance(value, str) else data


def worded(rng: Random, data: bytes) -> bytes:
    """Return data in which a word that is there is a forged one of its length."""
    word = rng.choice([one for one in WORDS if one.encode() in data] or WORDS)
    return data.replace(word.encode(), MARK.encode() + word[2:].encode())


def forge(number: int, table: str, home: Path) -> str:
    """Forge a row of a table of a closed store, in a way that the database allows, and return what was done."""
    rng = Random(f"rows {SEED} {number}")
    if table == "vector" or rng.random() < 0.3:  # what was made of the tables before is gone, too
        for name in ("cache", "index"):
            shutil.rmtree(home / name)
    with closing(sqlite3.connect(home / "memgraph.db")) as raw:
        while True:
            with suppress(sqlite3.IntegrityError), raw:
                return f"case {number}, {forged(rng, raw, table)}"


def other_types(home: Path) -> list[tuple[str, str, object]]:
    """Return each column of each table with a value of each type: text that is no ASCII, bytes, nothing, a small, a huge and a broken number."""
    with closing(sqlite3.connect(home / "memgraph.db")) as raw:
        columns = [(table, row[1]) for table in TABLES for row in raw.execute(f"PRAGMA table_info({table})")]
    return [(*one, value) for one in columns for value in ("é", b"\xff", None, 5, (1 << 63) - 1, 0.5)]


def retype(table: str, column: str, value: object, where: str, home: Path) -> str:
    """Put a value of any type into a column of the last row of a table, or of one in the middle, if the database allows it."""
    with closing(sqlite3.connect(home / "memgraph.db")) as raw, suppress(sqlite3.IntegrityError), raw:
        rows = raw.execute(f"SELECT * FROM {table}")
        names = [one[0] for one in rows.description]
        row = (found := rows.fetchall())[-1 if where == "last" else len(found) // 2]
        here = " AND ".join(f"{name} IS ?" for name in names)
        raw.execute(f"UPDATE {table} SET {column} = ? WHERE {here}", [value, *row])
    return f"{column} of the {where} row is {value!r}"


def flip(number: int, name: Path, home: Path) -> str:
    """Flip a bit of a file of a closed store, and return where."""
    rng, data = Random(f"bytes {SEED} {number}"), bytearray((home / name).read_bytes())
    place = rng.randrange(len(data))
    data[place] ^= 1 << rng.randrange(8)
    (home / name).write_bytes(data)
    return f"case {number}, byte {place}"


def forged(rng: Random, raw: sqlite3.Connection, table: str) -> str:
    """Change, add or remove a row of a table, and return what was done."""
    columns = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
    rows = raw.execute(f"SELECT * FROM {table}").fetchall()
    row, other = list(rng.choice(rows)), rng.choice(rows)
    here = " AND ".join(f"{column} IS ?" for column in columns)
    way = rng.choice(["update", "update", "update", "insert", "delete", "exchange", "empty"])
    before = list(row)
    places = range(len(columns))
    if way == "empty" and rng.random() < 0.3:
        raw.execute(f"DELETE FROM {table}")
    elif way in ("delete", "empty"):
        raw.execute(f"DELETE FROM {table} WHERE {here}", before)
    elif way == "insert":
        for place in rng.sample(places, 2):
            row[place] = spoilt(rng, row[place], [one[place] for one in rows])
        raw.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    else:
        place = rng.choice(places)
        row[place] = other[place] if way == "exchange" else spoilt(rng, row[place], [one[place] for one in rows])
        raw.execute(f"UPDATE OR REPLACE {table} SET {columns[place]} = ? WHERE {here}", [row[place], *before])
        way = f"{way} {columns[place]}"
    return way


class Trials:
    """Copies of a store that are spoilt, and what became of them."""

    def __init__(self, made: tuple[Path, list[str]], folder: Path) -> None:
        self.made, self.ids = made
        self.place = folder / "case"
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.faults: list[str] = []
        self.truth: dict[str, Any] = {}
        self.refusals = 0
        self.take("nothing", lambda _home: "", with_graph=True)
        assert not self.faults

    def take(self, where: str, spoil: Callable[[Path], str], *, with_graph: bool) -> None:
        """Spoil a copy, ask all, write, and ask again what is made anew of the events."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.made, self.place)
        self.case, refusals = f"{where}: {spoil(self.place / 'store')}", self.refusals
        try:
            with opened(self.place) as memory:
                asked = questions(memory, self.ids)
                if where == "vector" and not is_verified(memory):  # what is reported may change the order of a recall
                    del asked["vectors"], asked["search"]
                for name, ask in asked.items():
                    if name != "graph" or with_graph:
                        self.compare(name, ask)
                written = memory.store.insert_memory({"type": "semantic", "content": NEW})
                memory.store.rebuild()
                memory.store.delete_memory(written.id)
                self.case += ", then written and rebuilt"
                for name in ("memories", "one", "links", "tasks"):
                    self.compare(name, asked[name])
        except MemGraphError:
            self.refusals += 1
        except Exception:  # noqa: BLE001 - which it is, is the question
            self.faults.append(f"{self.case}: {traceback.format_exc()[-800:]}")
        self.counts[where]["refused" if self.refusals > refusals else "as it was"] += 1

    def compare(self, name: str, ask: Callable[[], Any]) -> None:
        """Ask, and compare the answer with what was answered before anything was spoilt."""
        try:
            found = ask()
        except MemGraphError:
            self.refusals += 1
            return
        if (true := self.truth.setdefault(name, found)) != found:
            self.faults.append(f"{self.case}: {name}: {difference(true, found)}")

    def report(self, title: str) -> str:
        """Return a table of what became of them."""
        rows = (
            f"{where:<28}{found['as it was']:>6} as it was{found['refused']:>6} refused"
            for where, found in self.counts.items()
        )
        return "\n".join([title, *rows])


def is_verified(memory: MemGraph) -> bool:
    """Return whether a store is what was recorded, by its own account."""
    try:
        memory.store.verify()
    except MemGraphError:
        return False
    return True


def difference(true: Any, found: Any) -> str:
    """Return where two answers differ."""
    if isinstance(true, list) and isinstance(found, list) and len(true) == len(found):
        true, found = next((one, other) for one, other in zip(true, found, strict=True) if one != other)
    return f"{true!r:.400} became {found!r:.400}"


@pytest.fixture
def trials(made: tuple[Path, list[str]], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Trials:
    caplog.set_level("CRITICAL", "memgraph")
    return Trials(made, tmp_path)


def test_forged_rows_are_never_served(
    trials: Trials, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    count = 1_000 if pytestconfig.getoption("--long") else 40
    for number in range(count):
        table = TABLES[number % len(TABLES)]
        trials.take(table, partial(forge, number, table), with_graph=number % 8 == 0)
    with capsys.disabled():
        print("\n" + trials.report(f"{count} forged rows, seed {SEED}"))
    assert not trials.faults, "\n".join(trials.faults)


@pytest.mark.parametrize("where", ["last", pytest.param("middle", marks=pytest.mark.long)])
def test_a_value_of_another_type_is_never_served(
    trials: Trials, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    cases = other_types(trials.made / "store")
    for number, case in enumerate(cases):
        if pytestconfig.getoption("--long") or number % 41 == 0:
            trials.take(case[0], partial(retype, *case, where), with_graph=number % 82 == 0)
    with capsys.disabled():
        print("\n" + trials.report("values of other types"))
    assert not trials.faults, "\n".join(trials.faults)


def test_flipped_bytes_are_never_served(
    trials: Trials, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    count = 400 if pytestconfig.getoption("--long") else 16
    names = [
        path.relative_to(trials.made / "store") for path in sorted((trials.made / "store").rglob("*"))
        if path.is_file() and path.stat().st_size and "lock" not in path.name
    ]  # fmt: skip
    assert {"memgraph.db", "cache", "index", "graph"} <= {name.parts[0] for name in names}
    for number in range(count):
        name = names[number % len(names)]
        trials.take(str(name)[:27], partial(flip, number, name), with_graph="graph" in name.parts or number % 8 == 0)
    with capsys.disabled():
        print("\n" + trials.report(f"{count} flipped bytes, seed {SEED}"))
    assert not trials.faults, "\n".join(trials.faults)
