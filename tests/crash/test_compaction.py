"""A compaction is killed, its files are changed or lost: the store is as before, compacted, or refused, never another one."""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memgraph.journal.closed.files import files_in, read_all

import memgraph
from memgraph.errors import JournalError, StorageError
from memgraph.graph.wire import unpack
from memgraph.journal.keys.ring import name_of
from memgraph.store.compaction import compact
from memgraph.store.maintenance.keys import rotate_key
from memgraph.store.repair import baseline_problem, drop_baseline
from memgraph.testing import FakeClock, FakeEmbedder

DIMENSION = 16
KILLS, LONG_KILLS = 4, 50
FLIPS, LONG_FLIPS = 12, 400
LATER, MIDDLE = "2026-03-01", "2026-02-06"
RETENTION_DAYS = 5
FAILURE_OF = {
    "proof": "the proof of condensed segments is changed",
    "condensed segment": "a condensed segment is changed",
}
DELETED = b"Day 1"


def config_of(folder: Path, days: int = 0) -> memgraph.AgentMemoryConfig:
    return memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", archive_retention_days=days)


def words(folder: Path) -> bytes:
    """Return the content of all archived segments."""
    journal = folder / "store" / "journal"
    return b"".join(read_all(journal, name_of(path)) for path in files_in(journal / "archive"))


def opened(folder: Path) -> Any:
    embedder, clock = FakeEmbedder(DIMENSION), FakeClock("2026-02-20T00:00:00.000Z")
    return memgraph.AgentMemoryStore(config_of(folder), embedder=embedder, clock=clock)


def files(folder: Path) -> set[str]:
    journal = folder / "store" / "journal"
    return {str(path.relative_to(journal)) for path in journal.rglob("*") if path.is_file() and path.name != "lock.pid"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A store of ten days in several segments that has a baseline of its first days, and its digest."""
    folder = tmp_path_factory.mktemp("compaction") / "template"
    folder.mkdir()
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    with memgraph.AgentMemoryStore(config_of(folder), embedder=FakeEmbedder(DIMENSION), clock=clock) as store:
        store._journal.segments._segment_bytes = 3_000
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
    assert compact(config_of(folder), before=MIDDLE, clock=clock).archived_segments
    yield folder, digest
    shutil.rmtree(folder.parent)


@pytest.mark.parametrize("days", [0, RETENTION_DAYS], ids=["archives", "condenses"])
def test_killed_anywhere(
    template: tuple[Path, str], tmp_path: Path, nursery: Any, show: Any, is_long: bool, rows: Any, days: int
) -> None:
    assert rows["a compaction is killed, anywhere"]
    folder, digest = template
    (places,) = nursery.run("compactor", shutil.copytree(folder, tmp_path / "whole"), LATER, days)
    clock = FakeClock("2026-03-05T00:00:00.000Z")
    chance = random.Random(20260204)
    first = {kind: number for number, kind in reversed(list(enumerate(places, 1)))}
    most = min(LONG_KILLS if is_long else KILLS, len(places))
    chosen = [*(first.values() if is_long else ()), *chance.sample(range(1, len(places) + 1), most), len(places)]
    left = Counter[str]()
    for turn, place in enumerate(chosen):
        here = Path(shutil.copytree(folder, tmp_path / f"round{turn}"))
        child = nursery.start("compactor", here, LATER, days, place, int(signal.SIGKILL))
        assert child.wait() == -signal.SIGKILL, child.errors()[-1_500:]
        what = f"place {place} ({places[place - 1]})"
        with opened(here) as store:
            is_new = store._journal.baseline.seq > 8
            assert store.notices == [], what
            assert store.digest() == digest, what
            store.verify(deep=True)
            store.rebuild()
            assert store.digest() == digest, what
        assert len([name for name in files(here) if name.startswith("baseline/")]) == 1, what
        done = compact(config_of(here, days), before=LATER, clock=clock)
        assert done.is_new != is_new, what
        assert (DELETED in words(here)) == (not days), what
        assert compact(config_of(here, days), before=LATER, clock=clock).condensed_segments == 0, what
        with opened(here) as store:
            assert store.digest() == digest, what
            store.verify(deep=True)
        assert sorted(path.name for path in (here / "store" / "journal").glob("*.jsonl")) == [
            path.name for path in sorted((tmp_path / "whole" / "store" / "journal").glob("*.jsonl"))
        ], what
        left["compacted" if is_new else "as before"] += 1
        shutil.rmtree(here)
    what = "a compaction that condenses" if days else "a compaction"
    show(f"SIGKILL in {len(chosen)} of {len(places)} places of {what}", ("left", "times"), left.most_common())
    assert left["compacted"]


@pytest.mark.parametrize("part", ["header", "rows", "proof", "condensed segment"])
def test_flipped_bits(template: tuple[Path, str], tmp_path: Path, part: str, is_long: bool, rows: Any) -> None:
    folder, _ = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    journal = here / "store" / "journal"
    if part in ("proof", "condensed segment"):
        compact(config_of(here, RETENTION_DAYS), before=LATER, clock=FakeClock("2026-03-05T00:00:00.000Z"))
        for packed in (journal / "archive").glob("*.zst"):  # else most flips are refused as damage to the compression
            unpack(packed.parent, name_of(packed))
    path = {
        "header": journal / "baseline.json",
        "rows": next((journal / "baseline").iterdir()),
        "proof": journal / "condensed.json",
        "condensed segment": next((journal / "archive").iterdir()),
    }[part]
    failure = FAILURE_OF.get(part, "a baseline's header or its rows are changed")
    data, said = path.read_bytes(), Counter[bool]()
    for at in range(0, len(data), max(1, len(data) // (LONG_FLIPS if is_long else FLIPS))):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 7
        path.write_bytes(flipped)
        with pytest.raises((JournalError, StorageError)) as refused, opened(here) as store:
            store.verify()  # a condensed segment is not read before
        said[rows[failure].fits(str(refused.value))] += 1
    path.write_bytes(data)
    with opened(here) as store:
        store.verify()
    assert said[True]
    assert part != "rows" or not said[False]


@pytest.mark.parametrize("part", ["baseline.json", "baseline"])
def test_a_missing_baseline(template: tuple[Path, str], tmp_path: Path, part: str, rows: Any) -> None:
    folder, _ = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    path = here / "store" / "journal" / part
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(JournalError) as refused:
        opened(here)
    assert rows["a baseline is missing"].fits(str(refused.value)) == (part == "baseline.json")
    assert "`memgraph repair`" in str(refused.value)


@pytest.mark.parametrize("what", ["header", "rows", "missing"])
def test_repaired_without_the_baseline(template: tuple[Path, str], tmp_path: Path, what: str) -> None:
    folder, digest = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    journal = here / "store" / "journal"
    path = next((journal / "baseline").iterdir()) if what == "rows" else journal / "baseline.json"
    path.unlink() if what == "missing" else path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert baseline_problem(config_of(here)) is not None
    last = drop_baseline(config_of(here))
    assert baseline_problem(config_of(here)) is None
    with opened(here) as store:
        assert store.verify(deep=True) == last
        assert store.digest() == digest
        assert store.notices == []
    assert files(here) & {"baseline.json", "archive", "baseline"} == set()
    assert compact(config_of(here), before=LATER, clock=FakeClock()).is_new


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_archive_is_refused(template: tuple[Path, str], tmp_path: Path, which: int) -> None:
    """Without it a purge could not make the baseline anew, and views of agents would lack what is in it."""
    folder, _ = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    archive = here / "store" / "journal" / "archive"
    compact(config_of(here), before=LATER, clock=FakeClock())
    sorted(archive.iterdir())[which].unlink()
    with pytest.raises(JournalError, match=("archived segments are missing", "which is not there")[which]):
        opened(here)


def test_a_baseline_of_another_state_is_refused(template: tuple[Path, str], tmp_path: Path) -> None:
    """An older header of the same store names rows that are gone."""
    folder, _ = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    header = here / "store" / "journal" / "baseline.json"
    older = header.read_bytes()
    compact(config_of(here), before=LATER, clock=FakeClock())
    header.write_bytes(older)
    with pytest.raises(JournalError, match="cannot be read"):
        opened(here)


def test_a_replaced_key_makes_no_baseline(template: tuple[Path, str], tmp_path: Path) -> None:
    """Whoever has a former key can sign a header, but it does not count once the journal is signed with another."""
    folder, digest = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    header = here / "store" / "journal" / "baseline.json"
    by_former_key = header.read_bytes()
    rotate_key(config_of(here), clock=FakeClock())
    with opened(here) as store:
        assert store.digest() == digest
    header.write_bytes(by_former_key)
    with pytest.raises(JournalError, match="is not signed with the key that signs the journal"):
        opened(here)
