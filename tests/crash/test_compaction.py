"""A compaction is killed, what it has made is changed or lost: the store is as before, compacted, or refused, never another one."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import JournalError
from memgraph.store.compaction import compact
from memgraph.store.maintenance.keys import rotate_key
from memgraph.store.repair import baseline_problem, drop_baseline
from memgraph.testing import FakeClock, FakeEmbedder
from tests.crash.conftest import Scene

DIMENSION = 16
FLIPS, LONG_FLIPS = 12, 400
LATER, MIDDLE, NOW = "2026-03-01", "2026-02-06", "2026-03-05T00:00:00.000Z"
DELETED = "Day 1"
KINDS = {"before COMMIT": False, "after COMMIT": True, "before VACUUM": True, "after VACUUM": True}
"""Where it is killed, and whether the journal is compacted then."""


def config_of(folder: Path, days: int = 0) -> memgraph.AgentMemoryConfig:
    return memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", archive_retention_days=days)


def opened(folder: Path) -> Any:
    embedder, clock = FakeEmbedder(DIMENSION), FakeClock("2026-02-20T00:00:00.000Z")
    return memgraph.AgentMemoryStore(config_of(folder), embedder=embedder, clock=clock)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A store of ten days that has a baseline of its first days, and its digest."""
    folder = tmp_path_factory.mktemp("compaction") / "template"
    folder.mkdir()
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    with memgraph.AgentMemoryStore(config_of(folder), embedder=FakeEmbedder(DIMENSION), clock=clock) as store:
        ids = []
        for number in range(10):
            ids.append(store.insert_memory({"type": "episodic", "content": f"Day {number}", "tags": [f"t{number}"]}).id)
            clock.advance(days=1)
        store.link(ids[3], "SUPERSEDES", ids[2], reason="newer")
        store.delete_memory(ids[1])
        for number in range(4):
            clock.advance(days=1)
            store.insert_memory({"type": "episodic", "content": f"Afterwards {number}"})
        digest = store.digest()
    assert compact(config_of(folder), before=MIDDLE, clock=clock).archived_events
    yield folder, digest
    shutil.rmtree(folder.parent)


@pytest.fixture
def here(template: tuple[Path, str], tmp_path: Path) -> Scene:
    """A copy of it."""
    return Scene(Path(shutil.copytree(template[0], tmp_path / "here")), "", template[1])


@pytest.mark.parametrize("kind", KINDS)
def test_killed_anywhere(
    template: tuple[Path, str], here: Scene, tmp_path: Path, nursery: Any, rows: Any, kind: str
) -> None:
    assert rows["a compaction is killed, anywhere"].note
    (places,) = nursery.run("compactor", shutil.copytree(template[0], tmp_path / "whole"), LATER, 0)
    child = nursery.start("compactor", here.folder, LATER, 0, places.index(kind) + 1, int(signal.SIGKILL))
    assert child.wait() == -signal.SIGKILL, child.errors()[-1_500:]
    with opened(here.folder) as store:
        assert store.notices == []
        assert store.digest() == here.digest
        store.verify(deep=True)
        store.rebuild()
        assert store.digest() == here.digest
    done = compact(config_of(here.folder), before=LATER, clock=FakeClock(NOW))
    assert done.is_new != KINDS[kind]
    with opened(here.folder) as store:
        assert store.digest() == here.digest
        store.verify(deep=True)


@pytest.mark.parametrize("day", [MIDDLE, LATER])
def test_who_has_it_open_goes_on(here: Scene, day: str) -> None:
    """Also if everything that it has read is archived meanwhile."""
    with opened(here.folder) as store:
        compact(config_of(here.folder), before=day, clock=FakeClock(NOW))
        assert store.digest() == here.digest
        store.insert_memory({"type": "episodic", "content": "in between"})
        store.verify(deep=True)
        digest = store.digest()
    with opened(here.folder) as store:
        assert store.digest() == digest


def test_texts_of_deleted_memories_go_after_their_retention(here: Scene) -> None:
    assert compact(config_of(here.folder, 5), before=LATER, clock=FakeClock(NOW)).removed_texts
    with opened(here.folder) as store:
        assert store.verify(deep=True)
        assert all(DELETED.encode() not in line.data for line in store._journal.every_line())
    assert compact(config_of(here.folder, 5), before=LATER, clock=FakeClock(NOW)).removed_texts == 0


@pytest.mark.parametrize(
    ("table", "column", "what"),
    [
        ("baseline", "header", "a baseline's header or its rows are changed"),
        ("baseline", "body", "a baseline's header or its rows are changed"),
        ("archive", "body", "an archived event is changed or missing"),
    ],
)
def test_flipped_bits(here: Scene, table: str, column: str, what: str, is_long: bool, rows: Any) -> None:
    ((data,),) = here.sql(f"SELECT {column} FROM {table}")
    said = Counter[bool]()
    for at in range(0, len(data), max(1, len(data) // (LONG_FLIPS if is_long else FLIPS))):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 7
        here.sql(f"UPDATE {table} SET {column} = ?", bytes(flipped))
        with pytest.raises(JournalError) as refused, opened(here.folder) as store:  # an archive is not read before
            store.verify()
        said[rows[what].fits(str(refused.value))] += 1
    here.sql(f"UPDATE {table} SET {column} = ?", data)
    with opened(here.folder) as store:
        store.verify()
    assert said[True] > said[False]


@pytest.mark.parametrize("harm", ["DELETE FROM archive", "UPDATE archive SET last = last - 1"])
def test_a_missing_archive_is_refused(here: Scene, rows: Any, harm: str) -> None:
    """Lists go on from the baseline; without it a purge could not make the baseline anew, and views of agents would lack what is in it."""
    here.sql(harm)
    with opened(here.folder) as store:
        assert store.digest() == here.digest
        for read in (store.verify, lambda: list(store._journal.replay())):
            with pytest.raises(JournalError) as refused:
                read()
            assert rows["an archived event is changed or missing"].fits(str(refused.value))


def test_a_missing_baseline(here: Scene, rows: Any) -> None:
    """Nothing is lost: the archive has every event."""
    assert rows["a baseline is missing"].note
    here.sql("DELETE FROM baseline")
    with opened(here.folder) as store:
        assert store.digest() == here.digest
        store.verify(deep=True)
    assert compact(config_of(here.folder), before=LATER, clock=FakeClock(NOW)).is_new


@pytest.mark.parametrize("column", ["header", "body"])
def test_repaired_without_the_baseline(here: Scene, column: str) -> None:
    here.sql(f"UPDATE baseline SET {column} = CAST({column} || x'3f' AS BLOB)")
    assert baseline_problem(config_of(here.folder)) is not None
    last = drop_baseline(config_of(here.folder))
    assert baseline_problem(config_of(here.folder)) is None
    with opened(here.folder) as store:
        assert store.verify(deep=True) == last
        assert store.digest() == here.digest
        assert store.notices == []
    assert compact(config_of(here.folder), before=LATER, clock=FakeClock(NOW)).is_new


def test_a_baseline_of_another_state_is_refused(here: Scene) -> None:
    """An older header of the same store names other rows."""
    ((older,),) = here.sql("SELECT header FROM baseline")
    compact(config_of(here.folder), before=LATER, clock=FakeClock(NOW))
    here.sql("UPDATE baseline SET header = ?", older)
    with pytest.raises(JournalError, match="it is not what was signed"), opened(here.folder) as store:
        store.rebuild()


def test_an_older_baseline_serves_nothing_else(here: Scene) -> None:
    """It stands for the same events: what follows is read from the archive."""
    older = here.sql("SELECT * FROM baseline")
    compact(config_of(here.folder), before=LATER, clock=FakeClock(NOW))
    here.put({"baseline": older})
    with opened(here.folder) as store:
        assert store.digest() == here.digest
        store.verify(deep=True)


def test_a_replaced_key_makes_no_baseline(here: Scene) -> None:
    """Whoever has a former key can sign a header, but it does not count once the journal is signed with another."""
    by_former_key = here.sql("SELECT * FROM baseline")
    rotate_key(config_of(here.folder), clock=FakeClock())
    with opened(here.folder) as store:
        assert store.digest() == here.digest
    here.put({"baseline": by_former_key})
    with pytest.raises(JournalError, match="is not signed with the key that signs the journal"):
        opened(here.folder)
