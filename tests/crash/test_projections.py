"""Damage to the projections, graph and index: it is repaired automatically, and the result equals a rebuild.

Each store is opened in a process of its own, because the engine may take its process down with it.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from tests.crash.conftest import PATIENCE_S
from tests.projections import ROWS, keep, lose

Harm = Callable[[Any, random.Random], str]


@pytest.fixture(scope="module")
def crashed(template: Any, nursery: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A store whose process was killed, with an engine log that was not yet merged into its graph."""
    scene = template.copy(tmp_path_factory.mktemp("crashed") / "one")
    places = nursery.run("history", template.copy(scene.folder.with_name("rehearsal")).folder, "singles")[-1]
    at = len(places) - places[::-1].index("before it is acknowledged")
    child = nursery.start("history", scene.folder, "singles", at, int(signal.SIGKILL))
    assert child.wait() == -signal.SIGKILL
    assert scene.graph.with_name(scene.graph.name + "-wal").stat().st_size > 0
    with scene.copy(scene.folder.with_name("whole")).open() as store:
        scene.digest = store.digest()
    return scene


@pytest.fixture(scope="module")
def later(template: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The template with further memories."""
    scene = template.copy(tmp_path_factory.mktemp("later") / "one")
    with scene.open() as store:
        store.insert_memories([{"type": "episodic", "content": f"later {number}"} for number in range(3)])
        assert store.get_all_memories()
        scene.digest = store.digest()
    return scene


def wal(scene: Any) -> Path:
    return scene.graph.with_name(scene.graph.name + "-wal")


def truncated(path: Callable[[Any], Path]) -> Harm:
    def harm(scene: Any, chance: random.Random) -> str:
        size = chance.randrange(path(scene).stat().st_size)
        os.truncate(path(scene), size)
        return f"at byte {size}"

    return harm


def flipped(path: Callable[[Any], Path], count: int, *, start: int = 0) -> Harm:
    def harm(scene: Any, chance: random.Random) -> str:
        data = bytearray(path(scene).read_bytes())
        used = [at for at in range(start, len(data)) if data[at]]  # most of a graph's file is empty
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


def graph(scene: Any) -> Path:
    return scene.graph


def index(scene: Any) -> Path:
    return scene.index


def trial(scene: Any, nursery: Any, harm: Harm, seed: int) -> tuple[str, str]:
    """Damage a copy of a store, open it, and return the result."""
    copied = scene.copy(scene.folder.with_name(f"trial{seed}-{os.urandom(4).hex()}"))
    try:
        where = harm(copied, random.Random(seed))
        child = nursery.start("survey", copied.folder, "quickly")
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


SAMPLE = (
    "graph: a byte flipped",
    "killed, then log truncated",
    "killed, then graph: a byte flipped",
    "index: a byte flipped",
)
"""What the short form causes, once each."""
RANDOM: dict[str, tuple[bool, Harm]] = {
    "graph truncated": (False, truncated(graph)),
    "graph: a byte flipped": (False, flipped(graph, 1)),
    "graph: 100 bytes flipped": (False, flipped(graph, 100)),
    "graph: a page of noise": (False, overwritten(graph)),
    "killed, then log truncated": (True, truncated(wal)),
    "killed, then log: a byte flipped": (True, flipped(wal, 1)),
    "killed, then graph truncated": (True, truncated(graph)),
    "killed, then graph: a byte flipped": (True, flipped(graph, 1)),
    "index truncated": (False, truncated(index)),
    "index: a byte flipped": (False, flipped(index, 1)),
    "index: 20 bytes flipped": (False, flipped(index, 20)),
}


def test_random_damage_is_repaired(template: Any, crashed: Any, nursery: Any, is_long: bool, show: Any) -> None:
    jobs = [(name, seed) for name in RANDOM for seed in range(30)] if is_long else [(name, 0) for name in SAMPLE]

    def one(job: tuple[str, int]) -> tuple[str, str]:
        name, seed = job
        is_crashed, harm = RANDOM[name]
        return trial(crashed if is_crashed else template, nursery, harm, seed)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, jobs))
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
    lose(scene.home, [ROWS])


def all_gone(scene: Any, stranger: Any, earlier: Any) -> None:
    lose(scene.home)


def rows_emptied(scene: Any, stranger: Any, earlier: Any) -> None:
    scene.graph.write_bytes(b"")


def rows_of_another_store(scene: Any, stranger: Any, earlier: Any) -> None:
    keep(stranger.home, scene.home, [ROWS])


def older_rows(scene: Any, stranger: Any, earlier: Any) -> None:
    keep(earlier.home, scene.home, [ROWS])


def log_of_noise(scene: Any, stranger: Any, earlier: Any) -> None:
    wal(scene).write_bytes(os.urandom(5_000))


def directory_as_rows(scene: Any, stranger: Any, earlier: Any) -> None:
    scene.graph.unlink()
    scene.graph.mkdir()
    (scene.graph / "something").touch()


def index_of_another_store(scene: Any, stranger: Any, earlier: Any) -> None:
    shutil.copy(stranger.index, scene.index)


def older_index(scene: Any, stranger: Any, earlier: Any) -> None:
    shutil.copy(earlier.index, scene.index)


def index_of_another_version(scene: Any, stranger: Any, earlier: Any) -> None:
    with scene.open() as store:
        seal = store._journal.seal("index")
    named = f"{seal.name}\n".encode()
    with np.load(io.BytesIO(scene.index.read_bytes()[len(named) + 64 :])) as file:
        data = {name: file[name] for name in file.files}
    header = orjson.loads(data["header"].tobytes())
    data["header"] = np.frombuffer(orjson.dumps({**header, "index_version": 0}), dtype=np.uint8)
    np.savez(buffer := io.BytesIO(), **data)
    scene.index.write_bytes(named + seal.code(buffer.getvalue()).encode() + buffer.getvalue())


def directory_as_index(scene: Any, stranger: Any, earlier: Any) -> None:
    scene.index.unlink()
    scene.index.mkdir()
    (scene.index / "something").touch()


def file_as_index_folder(scene: Any, stranger: Any, earlier: Any) -> None:
    shutil.rmtree(scene.index.parent)
    scene.index.parent.write_bytes(b"a file")


def crashed_and_log_gone(scene: Any, stranger: Any, earlier: Any) -> None:
    wal(scene).unlink()


def crashed_and_rows_gone(scene: Any, stranger: Any, earlier: Any) -> None:
    lose(scene.home, [ROWS])


def crashed_and_rows_of_another_store(scene: Any, stranger: Any, earlier: Any) -> None:
    keep(stranger.home, scene.home, [ROWS])


QUIET = "rows, index or graph are missing or old"
GRAPH = "the rows are damaged, or another store's"
INDEX = "the index is damaged, or another store's"
WAYS: dict[str, list[Callable[[Any, Any, Any], None]]] = {
    QUIET: [
        rows_gone,
        rows_emptied,
        all_gone,
        older_rows,
        older_index,
        index_of_another_version,
        log_of_noise,
        directory_as_rows,
        crashed_and_log_gone,
        crashed_and_rows_gone,
    ],
    GRAPH: [rows_of_another_store, crashed_and_rows_of_another_store],
    INDEX: [directory_as_index, file_as_index_folder, index_of_another_store],
}


ALIKE = {crashed_and_log_gone, file_as_index_folder}
"""Ways that are noticed, and repaired, as another of the same row is: only long runs try them."""


@pytest.mark.parametrize(
    ("what", "way"),
    [
        pytest.param(what, way, id=way.__name__, marks=[pytest.mark.long] if way in ALIKE else [])
        for what, ways in WAYS.items()
        for way in ways
    ],
)
def test_each_kind_of_damage_is_repaired(
    template: Any,
    later: Any,
    crashed: Any,
    stranger: Any,
    nursery: Any,
    rows: Any,
    tmp_path: Path,
    what: str,
    way: Callable[..., None],
) -> None:
    scene = (crashed if way.__name__.startswith("crashed") else later).copy(tmp_path / "scene")
    way(scene, stranger, template)
    (found,) = nursery.run("survey", scene.folder, "quickly")
    assert found["digest"] == scene.digest
    said = [message for message in found["heard"] if str(scene.index.parent) + ": " not in message]
    if what != QUIET:
        assert any(rows[what].fits(message) for message in said), found["heard"]
    else:
        assert said == []
