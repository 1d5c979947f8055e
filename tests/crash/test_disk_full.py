"""A full disk: a write is refused with a clear error, or acknowledged and stored. With free space everything works again."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.journal.journal import Journal
from memgraph.journal.sql import FullDatabaseError, SQLite

KILOBYTE = 1 << 10


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 96 MB, if one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    gc.collect()  # a memory map that is still referred to keeps the disk busy
    subprocess.run(["umount", str(folder)], check=True)


def try_it(scene: Any, nursery: Any, rows: Any, how: str, size: int) -> tuple[int, int, str]:
    """Let a child write without free space, check what is left, and return what happened."""
    row = rows["the disk is full"]
    child = nursery.start("cramped", scene.folder, how, size)
    code = child.wait()
    (scene.folder / "ballast").unlink(missing_ok=True)
    said = child.said()
    refusals = [word for word in said if isinstance(word, dict)]
    acknowledged = {word for word in said if isinstance(word, str)} - {"closed"}
    ended = "continued with free space" if code == 0 else signal.Signals(-code).name if code < 0 else "failed"
    assert code in {0, -signal.SIGABRT}, f"exit {code}: {child.errors()[-1_500:]}"
    for refusal in refusals:
        assert refusal["type"] == "FullDatabaseError", refusal
        assert row.fits(refusal["refused"]), refusal
    assert refusals or code, "the disk was not full"
    nursery.run("survey", scene.folder, "quickly")
    with scene.open() as store:
        assert acknowledged <= {memory.id for memory in store.every_memory()}
    return len(acknowledged), len(refusals), ended


@pytest.mark.parametrize("limit", [4 * KILOBYTE])
def test_a_limit_on_file_sizes(scene: Any, nursery: Any, rows: Any, show: Any, limit: int) -> None:
    outcome = try_it(scene, nursery, rows, "limit", limit)
    show(f"No file may grow past {limit >> 10} kB", ("acknowledged", "refused", "the process"), [outcome])


@pytest.mark.parametrize(
    "left", [8 * KILOBYTE, *(pytest.param(left * KILOBYTE, marks=pytest.mark.long) for left in (0, 200))]
)
def test_a_full_disk(template: Any, small_disk: Path, nursery: Any, rows: Any, show: Any, left: int) -> None:
    scene = template.copy(small_disk / "scene")
    outcome = try_it(scene, nursery, rows, "fill", left)
    show(f"{left >> 10} kB left on the disk", ("acknowledged", "refused", "the process"), [outcome])


@pytest.mark.parametrize("statement", ["COMMIT", "put_head"])
def test_the_last_free_space_is_taken_by_another_process(
    scene: Any, rows: Any, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """The space is free when it is checked, and taken when it is needed."""
    row = rows["the disk is full"]
    with scene.open() as store:
        before = scene.sql("SELECT COUNT(*) FROM event")
        with monkeypatch.context() as patched:
            full = FullDatabaseError(scene.database, "no space is left")

            def refuse(*_: Any, **__: Any) -> None:
                raise full

            if statement == "COMMIT":
                patched.setattr(SQLite, "_begin", refuse)
            else:
                patched.setattr(Journal, "put_head", refuse)
            with pytest.raises(memgraph.StorageError) as refused:
                store.insert_memories([{"type": "episodic", "content": "a long memory " * 40} for _ in range(3)])
        assert row.fits(str(refused.value)), refused.value
        assert scene.sql("SELECT COUNT(*) FROM event") == before
        assert store.digest() == scene.digest
        store.insert_memory({"type": "episodic", "content": "with room again"})
        store.verify()
    assert all("memgraph quota: disk (error)" in message for message in scene.heard)


def test_nothing_can_be_created_on_a_full_disk(small_disk: Path, nursery: Any) -> None:
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    (small_disk / "ballast").write_bytes(bytes(free))
    folder = small_disk / "scene"
    child = nursery.start("survey", folder)
    assert child.wait() == 1
    assert "FullDatabaseError" in child.errors(), child.errors()
    (small_disk / "ballast").unlink()
    nursery.run("survey", folder)


def test_a_store_that_is_opened_on_a_full_disk_asks_for_space_alone(template: Any, small_disk: Path) -> None:
    scene = template.copy(small_disk / "scene")
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    (small_disk / "ballast").write_bytes(bytes(free))
    with scene.open() as store, pytest.raises(memgraph.MemGraphError, match="free some disk space") as refused:
        store.insert_memory({"type": "episodic", "content": "no room for this"})
    assert "write access" not in str(refused.value)
    (small_disk / "ballast").unlink()
    with scene.open() as store:
        store.insert_memory({"type": "episodic", "content": "with room again"})
