"""Many processes on one store: all their writes exist exactly once; a process waits for locks, and is refused after the timeout."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conftest import graph_ids


def recorded(scene: Any) -> Counter[str]:
    """Count the events that add each memory."""
    payloads = scene.sql("SELECT payload FROM event WHERE type = 'memory.added'")
    return Counter(json.loads(payload)["memory"]["id"] for (payload,) in payloads)


def all_well(scene: Any, expected: set[str], *, with_rebuild: bool = False) -> None:
    """Check that these memories exist exactly once, and that everything is consistent."""
    with scene.open(lock_timeout_s=60.0) as store:
        found = Counter(memory.id for memory in store.every_memory())
        assert expected <= found.keys()
        assert graph_ids(store) == found
        store.verify()
        if with_rebuild:
            digest = store.digest()
            store.rebuild()
            assert store.digest() == digest
    assert set(recorded(scene).values()) == {1}


@pytest.mark.long
def test_processes_write_concurrently(scene: Any, nursery: Any, show: Any) -> None:
    writers, each = 8, 500
    children = [nursery.start("writer", scene.folder, f"w{number}", each) for number in range(writers)]
    began = time.monotonic()
    (scene.folder / "go").touch()
    codes = [child.wait(1_800) for child in children]
    seconds = time.monotonic() - began
    assert codes == [0] * writers, [child.errors()[-800:] for child in children]
    acknowledged = [word for child in children for word in child.said() if word != "open"]
    all_well(scene, set(acknowledged), with_rebuild=True)
    times = recorded(scene)
    show(
        "Many processes",
        ("writers", "writes each", "acknowledged", "recorded once", "seconds", "writes a second"),
        [
            (
                writers,
                each,
                len(set(acknowledged)),
                sum(times[key] == 1 for key in set(acknowledged)),
                f"{seconds:.1f}",
                f"{writers * each / seconds:.0f}",
            )
        ],
    )
    assert len(set(acknowledged)) == len(acknowledged) == writers * each


def test_writers_readers_and_a_hook_run_concurrently(scene: Any, nursery: Any, is_long: bool) -> None:
    count = 100 if is_long else 2
    (scene.folder / "go").touch()
    readers = [nursery.start("reader", scene.folder) for _ in range(2)]
    others = [nursery.start("writer", scene.folder, f"w{number}", count) for number in range(2)]
    others.append(nursery.start("hook", scene.folder, count))
    for child in others:
        assert child.wait(600) == 0, child.errors()[-800:]
    for reader in readers:
        reader.hears("a round")  # on a busy machine the writers may have ended before
    (scene.folder / "stop").touch()
    for reader in readers:
        assert reader.wait() == 0, reader.errors()[-800:]
    written = {word for child in others[:2] for word in child.said() if word != "open"}
    assert len(written) == 2 * count
    all_well(scene, written, with_rebuild=True)
    with scene.open() as store:
        contents = Counter(memory.content for memory in store.every_memory())
        assert [contents[f"Hook says {number}"] for number in range(count)] == [1] * count


@pytest.fixture(scope="module")
def places(template: Any, nursery: Any, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The places that the history of single writes passes."""
    rehearsal = template.copy(tmp_path_factory.mktemp("rehearsal") / "scene")
    passed: list[str] = nursery.run("history", rehearsal.folder, "singles")[-1]
    return passed


class TestWaiting:
    """A process stops while it holds a lock."""

    @pytest.mark.parametrize("place", [pytest.param("before pwrite", marks=pytest.mark.long), "before COMMIT"])
    def test_others_wait_then_are_refused_then_continue(
        self, scene: Any, nursery: Any, rows: Any, places: list[str], place: str
    ) -> None:
        row = rows["another process holds the store for too long"]
        (scene.folder / "go").touch()
        stopped = nursery.start("history", scene.folder, "singles", places.index(place) + 1, int(signal.SIGSTOP))
        stopped.hears("stopping")

        began = time.monotonic()
        hasty = nursery.start("writer", scene.folder, "hasty", 1, timeout_s := 0.2)
        assert hasty.wait() == 0, hasty.errors()
        (refusal,) = (word for word in hasty.said() if word != "open")
        assert row.fits(refusal["busy"]), refusal
        if place == "before COMMIT":  # before it wrote its pid, an earlier one's stands there
            assert refusal["pid"] == stopped.pid
        assert time.monotonic() - began > timeout_s

        patient = nursery.start("writer", scene.folder, "patient", 2)
        time.sleep(2 * timeout_s)
        assert patient.poll() is None
        stopped.send(signal.SIGCONT)
        assert patient.wait() == 0, patient.errors()
        assert stopped.wait() == 0, stopped.errors()
        all_well(scene, {word for word in patient.said() if word != "open"})

    def test_a_killed_process_releases_all_locks(self, scene: Any, nursery: Any, places: list[str]) -> None:
        (scene.folder / "go").touch()
        held = nursery.start("history", scene.folder, "singles", places.index("before COMMIT") + 1, int(signal.SIGSTOP))
        held.hears("stopping")
        patient = nursery.start("writer", scene.folder, "patient", 2)
        time.sleep(0.1)
        held.send(signal.SIGKILL)
        assert patient.wait() == 0, patient.errors()
        all_well(scene, {word for word in patient.said() if word != "open"})


def test_a_store_opened_before_a_fork_is_refused_in_the_child(scene: Any, nursery: Any, rows: Any) -> None:
    row = rows["a process is forked while it has a store open"]
    said = nursery.run("forker", scene.folder)
    assert said[-1] == "the fork is done"
    tried = {name: outcome for word in said[:-1] for name, outcome in word.items()}
    assert tried.keys() == {"read", "search", "write", "verify"}
    for name, outcome in tried.items():
        assert outcome[0] == "ClosedError", f"{name}: {outcome}"
        assert row.fits(outcome[1]), outcome
    with scene.open() as store:
        contents = Counter(memory.content for memory in store.every_memory())
        written = ("before the fork", "after the fork", "by the fork's own store", "in the fork")
        assert [contents[content] for content in written] == [1, 1, 1, 0]
    all_well(scene, set())


class TestInOneProcess:
    def test_two_directories_are_independent(self, scene: Any, stranger: Any, tmp_path: Path) -> None:
        other = stranger.copy(tmp_path / "other")
        with scene.open() as one, other.open() as two:
            mine = one.insert_memory({"type": "episodic", "content": "mine"})
            theirs = two.insert_memory({"type": "episodic", "content": "theirs"})
            assert one.get_memory(theirs.id) is None
            assert two.get_memory(mine.id) is None
        for place in (scene, other):
            all_well(place, set())

    def test_a_read_sees_one_state(self, scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also if another store commits between its look at the database and its look at the head file."""
        with scene.open() as one, scene.open() as other:
            assert one.get_all_memories()
            seen = other.insert_memory({"type": "episodic", "content": "before the look"}).id
            read = one._journal._heads.read

            def late() -> Any:
                monkeypatch.undo()
                other.insert_memory({"type": "episodic", "content": "during the look"})
                return read()

            monkeypatch.setattr(one._journal._heads, "read", late)
            assert seen in {memory.id for memory in one.get_all_memories()}
            assert one.digest() == other.digest()
            assert {memory.id for memory in one.every_memory()} == {memory.id for memory in other.every_memory()}
        all_well(scene, {seen})

    @pytest.mark.parametrize("stores", [1, 3])
    def test_threads_write_and_read_through_stores_on_one_directory(
        self, scene: Any, is_long: bool, stores: int
    ) -> None:
        each = 50 if is_long else 2
        opened = [scene.open(lock_timeout_s=60.0) for _ in range(stores)]
        made: list[str] = []
        failures: list[BaseException] = []

        def work(thread: int) -> None:
            store = opened[thread % stores]
            try:
                for number in range(each):
                    memory = store.insert_memory({"type": "episodic", "content": f"thread {thread}, memory {number}"})
                    made.append(memory.id)
                    assert store.get_memory(memory.id) is not None
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert failures == []
        for store in opened:
            assert set(made) <= {memory.id for memory in store.every_memory()}
            store.close()
        assert len(set(made)) == 4 * each
        all_well(scene, set(made))
