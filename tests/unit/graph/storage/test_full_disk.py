"""A full disk is an error, never an abort: acknowledged events are kept, and nothing is written partially."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memgraph
from memgraph.errors import DiskFullError
from memgraph.graph.storage.database_file import LogLimits
from memgraph.ports import Change
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import Engine

MB = 1 << 20
PROGRAM = """
import os, resource, sys
from pathlib import Path
import memgraph
from memgraph.testing import FakeClock, FakeEmbedder

folder, left, largest = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")

def opened():
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock())

def fill():
    with (folder / "filler").open("ab", buffering=0) as filler:
        while (free := os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize - left) > 0:
            try:
                filler.write(bytes(min(free, 1 << 20)))
            except OSError:
                break

def attempt(do):
    try:
        return do()
    except memgraph.MemGraphError as error:
        refusals.append(type(error).__name__)

store, refusals, acknowledged = opened(), [], 0
store.insert_memory({"type": "episodic", "content": "first"})
assert store.get_stats().total == 1
if largest:
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
else:
    fill()
for turn in range(12):
    count = 300 if turn % 3 == 2 else 1
    made = attempt(lambda: store.insert_memories([{"type": "episodic", "content": f"{turn}-{n}", "tags": ["t"]} for n in range(count)]))
    acknowledged += len(made or ())
    attempt(lambda: store.cypher("MATCH (m:Memory) RETURN count(*) AS n"))
    attempt(store.get_stats)
    if turn % 4 == 3:
        attempt(store._projector.engine.release)
attempt(store.rebuild)
attempt(store.close)
again = attempt(opened)
if again is not None:
    if stats := attempt(again.get_stats):
        print("total", stats.total)
    attempt(again.close)
print("acknowledged", 1 + acknowledged)
print("refused", *sorted(set(refusals)))
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 160 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def run(folder: Path, *, left: int = 0, largest: int = 0) -> dict[str, str]:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(folder), str(left), str(largest)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-800:]}"
    return dict([*line.split(maxsplit=1), ""][:2] for line in done.stdout.splitlines())


def check(folder: Path, acknowledged: int) -> None:
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock()) as store:
        assert store.get_stats().total == acknowledged
        store.verify()
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest
        store.insert_memory({"type": "episodic", "content": "life goes on"})


@pytest.mark.long  # in every run: a limit on the size of files here, and full disks in tests/crash/test_disk_full.py
@pytest.mark.parametrize("left", [0, MB, 34 * MB, 46 * MB])
def test_a_disk_that_is_full(small_disk: Path, left: int) -> None:
    found = run(small_disk, left=left)
    assert found["refused"]
    assert found["total"] == found["acknowledged"], "on the full disk it can still be read"
    (small_disk / "filler").unlink()
    check(small_disk, int(found["acknowledged"]))


@pytest.mark.parametrize("largest", [41 * MB, *(pytest.param(size, marks=pytest.mark.long) for size in (MB, 45 * MB))])
def test_a_limit_on_the_size_of_files(tmp_path: Path, largest: int) -> None:
    found = run(tmp_path, largest=largest)
    assert found["refused"]
    check(tmp_path, int(found["acknowledged"]))


class TestEngine:
    """The engine without a journal, which would keep a reserve for it."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[Engine]:
        engine = Engine(tmp_path / "graph", log=LogLimits(short_bytes=0, long_bytes=20_000))
        engine.apply([Change("Tag", "t", None, {"id": "t"})], {"seq": 1})
        yield engine
        engine.close()

    def crowd(self, patched: pytest.MonkeyPatch, free: int) -> None:
        for name in ("memgraph.disk.space.free_bytes", "memgraph.graph.storage.database_file.free_bytes"):
            patched.setattr(name, lambda path: free)

    def test_a_write_without_enough_free_space_is_refused(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            self.crowd(patched, 20 * MB)
            with pytest.raises(DiskFullError, match=r"21\.0 MB of disk space.*34 MB") as refused:
                engine.apply([Change("Tag", "u", None, {"id": "u"})], {"seq": 2})
            assert refused.value.path.name == "memgraph.kuzu"
            with pytest.raises(DiskFullError):
                engine.rebuild([], {"seq": 2})
            assert engine.state() == {"seq": 1}
            engine.release()
            assert engine.state() == {"seq": 1}
            assert engine.cypher("MATCH (t:Tag) RETURN t.id AS id", {}) == [{"id": "t"}]
            engine.release()
        log = engine._path.with_name("memgraph.kuzu.wal")
        assert log.stat().st_size, "a log was brought into its file without room"
        engine.state()
        engine.release()
        assert not log.exists()
        assert engine.state() == {"seq": 1}

    def test_many_rows_need_more(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.crowd(monkeypatch, 40 * MB)
        engine.apply([Change("Tag", "u", None, {"id": "u"})], {"seq": 2})
        many = [Change("Tag", f"v{n}", None, {"id": f"v{n}"}) for n in range(30_000)]
        with pytest.raises(DiskFullError):
            engine.apply(many, {"seq": 3})
        with pytest.raises(DiskFullError):
            engine.rebuild(many, {"seq": 3})
        assert engine.state() == {"seq": 2}

    def test_a_new_file_needs_free_space(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = Engine(tmp_path / "another" / "graph")
        with monkeypatch.context() as patched:
            self.crowd(patched, 20 * MB)
            with pytest.raises(DiskFullError):
                engine.state()
        assert engine.state() is None
        engine.close()

    def test_the_space_for_a_log_is_included(self, tmp_path: Path) -> None:
        engine = Engine(tmp_path / "another" / "graph")
        engine.apply([Change("Tag", "t", None, {"id": "t"})], {"seq": 1})
        before = engine._file._checkpoint_bytes()
        engine.apply([Change("Tag", "u", None, {"id": "u", "name": "x" * 50_000})], {"seq": 2})
        assert engine._file._checkpoint_bytes() > before + 100_000
        engine.close()

    def test_a_long_log_is_merged_into_the_file(self, engine: Engine) -> None:
        log = engine._path.with_name("memgraph.kuzu.wal")
        sizes = []
        for number in range(8):
            engine.apply([Change("Tag", f"u{number}", None, {"id": f"u{number}", "name": "x" * 5_000})], {"seq": 2})
            sizes.append(log.stat().st_size if log.exists() else 0)
        assert 0 in sizes
        assert max(sizes) < 30_000


def test_a_full_disk_is_no_reason_to_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = memgraph.AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock()) as store:
        store.insert_memory({"type": "episodic", "content": "one"})
        assert store.get_stats().total == 1
        rebuilds: list[int] = []
        with monkeypatch.context() as patched:
            patched.setattr("memgraph.disk.space.free_bytes", lambda path: 0)
            patched.setattr(type(store._projector), "rebuild", lambda self, progress=None: rebuilds.append(1))
            assert store.insert_memory({"type": "episodic", "content": "two"}).id  # the journal has it
            for _ in range(2):
                with pytest.raises(DiskFullError):
                    store.get_stats()
        assert rebuilds == []
        assert store.get_stats().total == 2
        store.verify()


def test_the_limit_of_this_process_counts(tmp_path: Path) -> None:
    from memgraph.disk.files import free_bytes

    (tmp_path / "file").write_bytes(bytes(1_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (min(10_000, free), hard))
        assert free_bytes(tmp_path / "file") == min(9_000, free)
        assert free_bytes(tmp_path / "missing" / "file") == min(10_000, free)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
