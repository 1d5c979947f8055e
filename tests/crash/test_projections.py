"""Damage to what is made of the events, rows, graph and index: it is repaired automatically, and the result equals a rebuild.

Each store is opened in a process of its own, because the engine may take its process down with it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.crash.conftest import PATIENCE_S

Harm = Callable[[Any, random.Random], str]
ROWS = ("edge", "node", "gone", "state")


@pytest.fixture(scope="module")
def later(template: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The template with further memories, which its graph lacks."""
    scene = template.copy(tmp_path_factory.mktemp("later") / "one")
    with scene.open() as store:
        store.insert_memories([{"type": "episodic", "content": f"later {number}"} for number in range(3)])
        assert store.get_all_memories()
        scene.digest = store.digest()
    return scene


def truncated(path: Callable[[Any], Path]) -> Harm:
    def harm(scene: Any, chance: random.Random) -> str:
        size = chance.randrange(path(scene).stat().st_size)
        os.truncate(path(scene), size)
        return f"at byte {size}"

    return harm


def flipped(path: Callable[[Any], Path], count: int) -> Harm:
    def harm(scene: Any, chance: random.Random) -> str:
        data = bytearray(path(scene).read_bytes())
        used = [at for at in range(len(data)) if data[at]]  # most of a graph's file is empty
        places = chance.sample(used, min(count, len(used)))
        for at in places:
            data[at] ^= 1 << chance.randrange(8)
        path(scene).write_bytes(bytes(data))
        return f"byte {places[0]}" if count == 1 else f"{len(places)} bytes"

    return harm


def overwritten(path: Callable[[Any], Path]) -> Harm:
    def harm(scene: Any, chance: random.Random) -> str:
        with path(scene).open("r+b") as file:
            place = chance.randrange(0, path(scene).stat().st_size, 4096)
            file.seek(place)
            file.write(chance.randbytes(4096))
        return f"a page at {place}"

    return harm


def a_row(statement: str) -> Harm:
    """Change, or remove, one row of today's."""

    def harm(scene: Any, chance: random.Random) -> str:
        table, key = chance.choice([("node", "id"), ("edge", "source * 1000000 + target * 100 + kind")])
        ((number,),) = scene.sql(f"SELECT {key} FROM {table} ORDER BY random() LIMIT 1")
        scene.sql(f"{statement.format(table)} WHERE {key} = ?", number)
        return f"{table} {number}"

    return harm


def graph(scene: Any) -> Path:
    path: Path = scene.graph
    return path


def index(scene: Any) -> Path:
    path: Path = scene.index
    return path


def trial(scene: Any, nursery: Any, harm: Harm, seed: int) -> tuple[str, str]:
    """Damage a copy of a store, open it, and return the result."""
    copied = scene.copy(scene.folder.with_name(f"trial{seed}-{os.urandom(4).hex()}"))
    try:
        where = harm(copied, random.Random(seed))
        child = nursery.start("survey", copied.folder, "quickly", "graph")
        code = child.wait_or_kill(PATIENCE_S)
        if code is None:
            return "HUNG", where
        if code < 0:
            return f"ended by {signal.Signals(-code).name}", where
        if code:
            return f"failed: {child.errors().strip().splitlines()[-1][:160]}", where
        return ("healed" if child.said()[0]["digest"] == scene.digest else "ANOTHER STATE"), where
    finally:
        shutil.rmtree(copied.folder, ignore_errors=True)


RANDOM: dict[str, Harm] = {
    "graph truncated": truncated(graph),
    "graph: a byte flipped": flipped(graph, 1),
    "graph: 100 bytes flipped": flipped(graph, 100),
    "graph: a page of noise": overwritten(graph),
    "index truncated": truncated(index),
    "index: a byte flipped": flipped(index, 1),
    "index: 20 bytes flipped": flipped(index, 20),
    "a row changed": a_row("UPDATE {} SET body = CAST('{{}}' AS BLOB)"),
    "a row removed": a_row("DELETE FROM {}"),
}
SAMPLE = ("graph: a byte flipped", "index: a byte flipped", "a row changed", "a row removed")
"""What the short form causes, once each."""


def test_random_damage_is_repaired(template: Any, nursery: Any, is_long: bool, show: Any) -> None:
    jobs = [(name, seed) for name in RANDOM for seed in range(30)] if is_long else [(name, 0) for name in SAMPLE]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda job: trial(template, nursery, RANDOM[job[0]], job[1]), jobs))
    outcomes: dict[str, Counter[str]] = {name: Counter() for name, _ in jobs}
    for (name, _), (outcome, _) in zip(jobs, results, strict=True):
        outcomes[name][outcome] += 1
    show(
        "Damage to projections, at random",
        ("damage", "outcomes"),
        [
            (name, ", ".join(f"{count} {outcome}" for outcome, count in found.items()))
            for name, found in outcomes.items()
        ],
    )
    wrong = [(*job, *result) for job, result in zip(jobs, results, strict=True) if result[0] != "healed"]
    assert not wrong


def rows_gone(scene: Any, stranger: Any, earlier: Any) -> None:
    for table in ROWS:
        scene.sql(f"DELETE FROM {table}")


def rows_without_their_state(scene: Any, stranger: Any, earlier: Any) -> None:
    scene.sql("DELETE FROM state")


def all_gone(scene: Any, stranger: Any, earlier: Any) -> None:
    rows_gone(scene, stranger, earlier)
    for name in ("index", "graph"):
        shutil.rmtree(scene.home / name)


def rows_changed(scene: Any, stranger: Any, earlier: Any) -> None:
    scene.sql("UPDATE node SET body = CAST(replace(CAST(body AS TEXT), 'later', 'never') AS BLOB)")


def rows_of_another_store(scene: Any, stranger: Any, earlier: Any) -> None:
    scene.put({table: rows for table, rows in stranger.rows().items() if table in ROWS})


def older_rows(scene: Any, stranger: Any, earlier: Any) -> None:
    rows_of_another_store(scene, earlier, earlier)


def graph_of_another_store(scene: Any, stranger: Any, earlier: Any) -> None:
    shutil.copy(stranger.graph, scene.graph)


def directory_as_graph(scene: Any, stranger: Any, earlier: Any) -> None:
    path = scene.graph
    path.unlink()
    path.mkdir()
    (path / "something").touch()


def index_of_another_store(scene: Any, stranger: Any, earlier: Any) -> None:
    shutil.copy(stranger.index, scene.index)


def older_index(scene: Any, stranger: Any, earlier: Any) -> None:
    shutil.copy(earlier.index, scene.index)


def index_of_another_version(scene: Any, stranger: Any, earlier: Any) -> None:
    with scene.open() as store:
        seal = store._journal.seal("index")
    named = f"{seal.name}\n".encode()
    data = scene.index.read_bytes()[len(named) + 64 :]
    size = int.from_bytes(data[:8], "little")
    header = orjson.loads(data[64 : 64 + size])
    other = orjson.dumps({**header, "index_version": 0}).ljust(size)
    assert len(other) == size
    data = data[:64] + other + data[64 + size :]
    scene.index.write_bytes(named + seal.code(data).encode() + data)


def directory_as_index(scene: Any, stranger: Any, earlier: Any) -> None:
    scene.index.unlink()
    scene.index.mkdir()
    (scene.index / "something").touch()


def file_as_index_folder(scene: Any, stranger: Any, earlier: Any) -> None:
    shutil.rmtree(scene.index.parent)
    scene.index.parent.write_bytes(b"a file")


QUIET = "rows, index or graph are missing, old, or another store's"
DAMAGED = "the rows are damaged"
INDEX = "the index is damaged"
WAYS: dict[str, list[Callable[[Any, Any, Any], None]]] = {
    QUIET: [
        rows_gone,
        rows_without_their_state,
        all_gone,
        older_rows,
        rows_of_another_store,
        older_index,
        index_of_another_version,
        index_of_another_store,
    ],
    DAMAGED: [rows_changed],
    INDEX: [directory_as_index, file_as_index_folder],
    "": [graph_of_another_store, directory_as_graph],
}
"""Ways of damage by their row of the table; those of the graph are in none."""


@pytest.mark.parametrize(
    ("what", "way"), [pytest.param(what, way, id=way.__name__) for what, ways in WAYS.items() for way in ways]
)
def test_each_kind_of_damage_is_repaired(
    template: Any,
    later: Any,
    stranger: Any,
    nursery: Any,
    rows: Any,
    tmp_path: Path,
    what: str,
    way: Callable[..., None],
) -> None:
    scene = later.copy(tmp_path / "scene")
    way(scene, stranger, template)
    (found,) = nursery.run("survey", scene.folder, "quickly", "graph")
    assert found["digest"] == scene.digest
    said = [message for message in found["heard"] if str(scene.index.parent) + ": " not in message]
    if what == QUIET:
        assert said == []
    elif what:
        assert any(rows[what].fits(message) for message in said), found["heard"]
    else:
        assert [message for message in said if str(scene.home / "graph") in message], found["heard"]
