"""Backups while many processes write, and backups and restorations that are killed or interrupted anywhere."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.store.replayed import replayed
from memgraph.testing import FakeClock, FakeEmbedder

WRITERS = 3
RUNS, LONG_RUNS = 2, 20
KILLS, LONG_KILLS = 1, 50
"""Places in each command. Each takes three processes; with `--long` nearly all are tried."""


def restored(scene: Any, path: Path, place: str) -> Any:
    return memgraph.restore(path, scene.folder / place, keys_home=scene.keys_home)


def opened(scene: Any, place: str) -> Any:
    config = memgraph.AgentMemoryConfig(home=scene.folder / place, keys_home=scene.keys_home)
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock())


def test_backups_while_processes_write(scene: Any, nursery: Any, is_long: bool, show: Any) -> None:
    """Each restored state is that of a commit boundary between the beginning and the end of its backup."""
    runs = LONG_RUNS if is_long else RUNS
    writers = [nursery.start("writer", scene.folder, f"w{number}", 100_000) for number in range(WRITERS)]
    (scene.folder / "go").touch()
    for child in writers:
        child.hears("open")
    made, grew = [], 0
    with scene.open(lock_timeout_s=60.0) as store:
        for number in range(runs):
            with store._projector.reading():
                before = store._journal.tail.seq
            path = scene.folder / f"{number}.tar.gz"
            result = store.backup(path, incremental=number % 4 == 3)
            with store._projector.reading():
                after = store._journal.tail.seq
            assert before <= result.last_seq <= after
            grew += result.recorded_as > result.last_seq + 1
            made.append((path, result))
            time.sleep(0.05)
    for child in writers:
        child.send(signal.SIGKILL)
        child.wait()
    with scene.open() as store:
        boundaries = {commit.after.seq for commit in store._journal.replay()}
        digests = {one.last_seq: replayed(store._journal, one.last_seq)[1].digest for _, one in made}
    for number, (path, result) in enumerate(made):
        found = restored(scene, path, f"copy{number}")
        assert result.last_seq in boundaries
        assert found.digest == result.digest == f"{digests[result.last_seq]:064x}"
        shutil.rmtree(scene.folder / f"copy{number}")
    show(
        f"{runs} backups while {WRITERS} processes write",
        ("events", "grew during the backup", "restored digest is a commit boundary's"),
        [(max(boundaries), grew, len(made))],
    )


ARGUMENTS = {
    "backup": ["backup", "out.tar.gz"],
    "backup again": ["backup", "again.tar.gz", "--incremental"],
    "backup replacing": ["backup", "first.tar.gz", "--force"],
    "restore": ["--home", "restored", "restore", "first.tar.gz"],
}
QUICK = {("backup", signal.SIGKILL), ("backup", signal.SIGINT), ("restore", signal.SIGKILL)}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=[] if (name, number) in QUICK else [pytest.mark.long])
        for name in ARGUMENTS
        for number in (signal.SIGKILL, signal.SIGINT)
    ],
)
def test_a_backup_or_restoration_that_is_broken_off(
    scene: Any, nursery: Any, rows: Any, tmp_path: Path, name: str, number: signal.Signals, is_long: bool, show: Any
) -> None:
    """The store is as it was, no file of a backup's name is partial, nothing is restored in part, and the same command then works."""
    assert rows["a backup or a restoration is killed or interrupted, anywhere"].note
    with scene.open() as store:
        store.backup(scene.folder / "first.tar.gz")
    pristine = scene.copy(tmp_path / "pristine")
    whole = nursery.start("command", scene.folder, 0, int(number), *ARGUMENTS[name])
    assert whole.wait() == 0, whole.errors()
    places = json.loads(whole.out.read_text().splitlines()[-1])  # after what the command printed
    if is_long:
        tried = sorted(random.Random(7).sample(range(1, len(places) + 1), min(LONG_KILLS, len(places))))
    else:
        tried = sorted(
            random.Random(name + number.name).sample(
                range(1, len(places) + 1), KILLS if number is signal.SIGKILL else 1
            )
        )
    for place in tried:
        one = pristine.copy(tmp_path / f"scene{place}")
        child = nursery.start("command", one.folder, place, int(number), *ARGUMENTS[name])
        code = child.wait()
        assert code == (-signal.SIGKILL if number is signal.SIGKILL else 130), (
            f"{places[place - 1]}: {child.errors()[-800:]}"
        )
        for path in one.folder.glob("*.tar.gz"):  # whatever has its name is whole
            restored(one, path, f"check-{path.stem}")
            shutil.rmtree(one.folder / f"check-{path.stem}")
        if name == "restore" and (one.folder / "restored").exists():
            with opened(one, "restored") as copy:
                copy.verify()
        if number is signal.SIGINT:
            assert not list(one.folder.glob(".*")), f"{places[place - 1]}: {list(one.folder.glob('.*'))}"
        again = [
            *ARGUMENTS[name],
            *(["--force"] if name.startswith("backup") and "--force" not in ARGUMENTS[name] else []),
        ]
        shutil.rmtree(one.folder / "restored", ignore_errors=True)
        assert nursery.start("command", one.folder, 0, int(number), *again).wait() == 0
        assert not list(one.folder.glob(".*")), "what was left behind is removed"
        assert nursery.start("survey", one.folder, "quickly").wait() == 0
        shutil.rmtree(one.folder)
    show(f"{number.name} during `{name}`", ("places", "tried"), [(len(places), len(tried))])


REPAIRS = {
    "cut": ["repair", "--cut-tail", "--yes"],
    "from a backup": ["repair", "--from-backup", "first.tar.gz", "--yes"],
}


@pytest.mark.parametrize("kind", ["before COMMIT", "after COMMIT", "before it ends"])
@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_that_is_killed(scene: Any, nursery: Any, rows: Any, tmp_path: Path, name: str, kind: str) -> None:
    assert rows["a repair of a damaged journal is killed, anywhere"].note
    with scene.open() as store:
        store.backup(scene.folder / "first.tar.gz")
        store.insert_memory({"type": "episodic", "content": "after the backup"})
        digest = store.digest()
    before = scene.lines
    scene.sql("UPDATE event SET salt = zeroblob(16) WHERE seq = 9")
    whole = nursery.start("command", scene.copy(tmp_path / "whole").folder, 0, int(signal.SIGKILL), *REPAIRS[name])
    assert whole.wait() == (0 if name == "from a backup" else 1), whole.errors()
    places = json.loads(whole.out.read_text().splitlines()[-1])
    place = len(places) if kind == "before it ends" else len(places) - places[::-1].index(kind)
    child = nursery.start("command", scene.folder, place, int(signal.SIGKILL), *REPAIRS[name])
    assert child.wait() == -signal.SIGKILL, child.errors()[-800:]
    aside = b"".join(path.read_bytes() for path in (scene.home / "quarantine").rglob("*.jsonl"))
    for line in before[9:]:
        assert line in scene.lines or line in aside, "an event is lost"
    again = nursery.start("command", scene.folder, 0, int(signal.SIGKILL), *REPAIRS[name])
    code = again.wait()
    if name == "from a backup":
        assert code == 0, again.errors()[-800:]
        with scene.open() as store:
            assert store.digest() == digest
    else:
        accept = nursery.start("command", scene.folder, 0, int(signal.SIGKILL), "repair", "--accept-head", "--yes")
        assert accept.wait() in (0, 1), accept.errors()[-800:]  # if it was killed between cutting and the head file
        kept = b"".join(path.read_bytes() for path in (scene.home / "quarantine").rglob("*.jsonl"))
        assert all(line in kept for line in before[9:])
    assert nursery.start("survey", scene.folder, "quickly").wait() == 0


def test_damage_to_a_backup_and_a_missing_key_are_refused(scene: Any, rows: Any) -> None:
    with scene.open() as store:
        store.backup(scene.folder / "a.tar.gz")
    data = bytearray((scene.folder / "a.tar.gz").read_bytes())
    data[len(data) // 2] ^= 4
    (scene.folder / "bad.tar.gz").write_bytes(data)
    with pytest.raises(memgraph.MemGraphError) as refused:
        restored(scene, scene.folder / "bad.tar.gz", "copy")
    assert rows["a backup is damaged, incomplete or forged"].fits(str(refused.value))
    with pytest.raises(memgraph.JournalError) as missing:
        memgraph.restore(scene.folder / "a.tar.gz", scene.folder / "copy", keys_home=scene.folder / "other-keys")
    assert rows["the key of a backup is missing"].fits(str(missing.value))
    assert not (scene.folder / "copy").exists()
    found = restored(scene, scene.folder / "a.tar.gz", "copy")
    (scene.keys_home / "heads" / f"{scene.store_id}.{found.copy_id}").unlink()
    with pytest.raises(memgraph.JournalError) as headless:
        opened(scene, "copy")
    assert rows["the head file of a restored copy is missing"].fits(str(headless.value))
