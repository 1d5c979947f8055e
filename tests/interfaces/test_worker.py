"""The worker: who serves, who is served, versions, limits, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.errors import MemGraphError
from memgraph.interfaces.worker import place as places
from memgraph.interfaces.worker.client import (
    WorkerAnsweredError,
    WorkerUnavailableError,
    ask,
    is_served,
    look_up,
)
from memgraph.interfaces.worker.place import PROTOCOL, RELEASE, Place, line_of, place_of, read_line, send_line
from memgraph.interfaces.worker.server import take_lock
from tests.interfaces.workers import impostor, recalled, searched, served, socket_folder
from tests.tables import make_newer
from tests.witness import copied

ROOT = Path(__file__).parents[2]
FACT = "The harbour opens at six"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path for sockets."""
    with socket_folder(monkeypatch) as found:
        yield found


@pytest.fixture
def memory(open_store: Callable[..., Any]) -> MemGraph:
    """A store with one memory, under ``store`` in this test's folder."""
    found = MemGraph(open_store())
    found.commands.remember(FACT)
    return found


@pytest.fixture
def place(memory: MemGraph, tmp_path: Path) -> Place:
    it = place_of(str(tmp_path / "store"))
    assert it is not None
    return it


def found(place: Place) -> str:
    return searched(place, "harbour")


# Who serves, and who is served


def test_the_version_is_that_of_the_package() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == RELEASE


def test_a_store_has_one_place_whatever_its_path_and_another_store_another(
    memory: MemGraph, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    assert place_of(str(tmp_path / "link")) == place
    monkeypatch.chdir(tmp_path)
    assert place_of("store") == place
    monkeypatch.setenv("MEMGRAPH_HOME", str(tmp_path / "store"))
    assert place_of() == place
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    copied = place_of(str(tmp_path / "copy"))
    assert copied is not None
    assert copied.store_id == place.store_id
    assert copied.socket != place.socket
    assert place_of(str(tmp_path / "nothing")) is None
    assert place_of("a\0b") is None


def test_a_long_path_gives_way_to_a_short_one(
    memory: MemGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMGRAPH_WORKER_DIR", f"/{'long' * 30}")
    it = place_of(str(tmp_path / "store"))
    assert it is not None
    assert len(it.socket) < 100


@pytest.mark.parametrize("release", ["0.1.0", "0.2.0"])
def test_a_store_of_an_earlier_release_has_its_place_before_and_after_it_is_moved(tmp_path: Path, release: str) -> None:
    folder = copied(ROOT / "tests" / "fixtures" / "stores" / release, tmp_path / "copy")
    before = place_of(str(folder / "store"))
    assert before is not None
    MemGraph.open(folder / "store", keys_home=folder / "keys", embedding_model="none").close()
    assert not (folder / "store" / "journal").exists()
    assert place_of(str(folder / "store")) == before


def test_the_folder_and_its_files_are_private(memory: MemGraph, place: Place, folder: Path) -> None:
    folder.chmod(0o755)
    with served(memory, Path(place.home)):
        found(place)
        modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes == {folder.name: 0o700, Path(place.lock).name: 0o600, Path(place.socket).name: 0o600}


def test_a_folder_that_others_prepared_is_refused(place: Place, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    folder.rmdir()
    folder.symlink_to(tmp_path / "theirs")
    try:
        with pytest.raises(PermissionError, match="not a directory of this user"):
            take_lock(place)
        with pytest.raises(WorkerUnavailableError, match="not a directory of this user"):
            found(place)
        if os.geteuid() == 0:
            folder.unlink()
            folder.mkdir()
            os.chown(folder, 12345, -1)
            with pytest.raises(PermissionError, match="not a directory of this user"):
                take_lock(place)
    finally:
        folder.unlink() if folder.is_symlink() else folder.rmdir()
        folder.mkdir()


def test_the_user_at_the_other_end_is_known_and_only_this_one_is_served() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert places.peer_uid(one) == os.geteuid()
    assert places.is_own(os.geteuid())
    assert not places.is_own(os.geteuid() + 1)
    assert not places.is_own(0) or os.geteuid() == 0


def test_the_credentials_of_macos_are_read() -> None:
    code = (
        "import socket; vars(socket).pop('SO_PEERCRED', None)\n"
        "from memgraph.interfaces.worker.place import peer_uid\n"
        "import struct\n"
        "class C:\n"
        "    def getsockopt(self, level, option, size):\n"
        "        return struct.pack('=IIh2x16I', 0, 501, 1, *range(16))[:size]\n"
        "print(peer_uid(C()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "501\n"


def test_a_socket_left_behind_is_replaced_and_the_lock_decides(memory: MemGraph, place: Place, folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(place.socket)
    with pytest.raises(WorkerUnavailableError, match="no worker runs") as caught:
        found(place)
    assert caught.value.is_absent
    with served(memory, Path(place.home)):
        assert FACT in found(place)
        assert is_served(place)
        assert take_lock(place) is None
        assert FACT in found(place)
    assert not is_served(place)
    assert not Path(place.socket).exists()


def test_who_waits_for_the_lock_gets_it_when_the_other_ends(memory: MemGraph, place: Place) -> None:
    first = take_lock(place)
    assert first is not None
    threading.Timer(0.1, os.close, [first]).start()
    second = take_lock(place)
    assert second is not None
    os.close(second)
    held = take_lock(place)
    assert held is not None
    assert take_lock(place, timeout_s=0.05) is None
    os.close(held)


# Versions


def test_a_newer_worker_is_left_alone(place: Place) -> None:
    with impostor(place, {"worker": PROTOCOL + 1, "version": "0.1.0"}) as heard:
        with pytest.raises(WorkerUnavailableError, match=r"release 0\.1\.0 runs, which is newer") as caught:
            ask(place, {"status": True}, timeout_s=10, starts=True)
        assert not caught.value.is_absent
    newer = {"worker": PROTOCOL, "version": "99.0.1"}
    with impostor(place, newer) as heard, pytest.raises(WorkerUnavailableError, match="newer"):
        found(place)
    assert heard == []


@pytest.mark.parametrize(
    "greeting", [{"worker": PROTOCOL, "version": "0.1.9"}, {"worker": 0, "version": "9.0.0"}, {}, []]
)
def test_an_older_worker_is_asked_to_stop_and_given_nothing_else(place: Place, greeting: Any) -> None:
    old = impostor(place, greeting, {"answer": True})
    with old as heard, pytest.raises(WorkerUnavailableError, match="asked to stop"):
        found(place)
    assert heard == [{"version": RELEASE, "stop": True}]


def test_a_worker_does_not_stop_for_an_older_client(memory: MemGraph, place: Place) -> None:
    with served(memory, Path(place.home)):
        with pytest.raises(WorkerAnsweredError, match="newer release"):
            ask(place, {"version": "0.1.0", "stop": True}, timeout_s=10)
        assert FACT in found(place)


# Requests


def raw(place: Place, data: bytes) -> Any:
    """Send bytes after the greeting; return the answer, or None if there is none."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place.socket)
        read_line(connection, 1000, time.monotonic() + 60)
        try:
            connection.sendall(data)
            return read_line(connection, 1 << 20, time.monotonic() + 60)
        except OSError:
            return None


def test_what_is_no_request_is_refused_or_dropped_and_the_worker_lives(memory: MemGraph, place: Place) -> None:
    with served(memory, Path(place.home)):
        for data in (b"{\n", b"\xff\n", b"[" * 100_000 + b"\n", b"{}{}\n", b"x" * (places.MAX_REQUEST_BYTES + 2)):
            assert raw(place, data) is None
        for request in ([], 7, {}, {"operation": "recall"}, {"lookup": "no"}, {"lookup": "no", "arguments": {}}):
            assert "error" in raw(place, json.dumps(request).encode() + b"\n"), request
        for request, field in (
            ({"lookup": "ask"}, "arguments"),
            ({"lookup": "ask", "arguments": {"query": "x"}}, "scope"),
        ):
            error = raw(place, json.dumps(request).encode() + b"\n")["error"]
            assert (error["type"], field in error["message"]) == ("InvalidInputError", True), error
        assert FACT in found(place)


def test_each_store_has_its_own_worker(
    memory: MemGraph, place: Place, open_store: Callable[..., Any], tmp_path: Path
) -> None:
    other = MemGraph(open_store("other"))
    other.commands.remember("The harbour closes at nine")
    with served(memory, Path(place.home)), served(other, tmp_path / "other") as (second, _):
        assert FACT in found(place)
        assert FACT not in found(second)
        assert "closes at nine" in found(second)


def test_one_that_says_nothing_does_not_keep_others_waiting(memory: MemGraph, place: Place) -> None:
    with served(memory, Path(place.home)), socket.socket(socket.AF_UNIX) as silent:
        silent.connect(place.socket)
        assert FACT in found(place)


def test_a_failure_of_ours_is_an_answer_and_the_log_has_no_texts(
    memory: MemGraph, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="memgraph"), served(memory, Path(place.home)):
        who = {
            "agent": None,
            "justification": None,
            "project": None,
            "tasks": {"all_tasks": False, "task_only": False, "asking_session": None},
        }
        with pytest.raises(WorkerAnsweredError, match="TypeError") as caught:
            look_up(
                place, "ask", {"query": FACT, "scope": 7, **who}, timeout_s=10
            )  # our command line sends no such scope
        assert not caught.value.is_refusal
        recalled(place, FACT)
        with pytest.raises(WorkerAnsweredError, match="floor"):
            recalled(place, FACT, floor=FACT)
    lines = [one.getMessage() for one in caplog.records if one.name.startswith("memgraph.interfaces")]
    assert len(lines) == 3
    assert "failed: " in lines[0]
    assert "harbour" not in "\n".join(one.getMessage() for one in caplog.records)


def test_a_refused_secret_is_not_sent_back(memory: MemGraph, place: Place) -> None:
    secret = "ghp_" + "a1B2" * 9
    with served(memory, Path(place.home)), pytest.raises(WorkerAnsweredError) as caught:
        searched(place, "x", limit=secret)
    assert secret not in str(caught.value)


def test_many_ask_at_once(memory: MemGraph, place: Place) -> None:
    answers: list[Any] = []

    with served(memory, Path(place.home)):
        threads = [threading.Thread(target=lambda: answers.append(found(place))) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 50
    assert all(FACT in text for text in answers)


# How it ends


def test_it_ends_when_idle(memory: MemGraph, place: Place) -> None:
    with served(memory, Path(place.home), idle_s=0.01) as (_, server):
        until = time.monotonic() + 60
        while server.ending is None and time.monotonic() < until:
            time.sleep(0.02)
        assert server.ending == "idle"


def test_who_comes_while_it_ends_is_told_so_and_may_ask_again(memory: MemGraph, place: Place) -> None:
    with served(memory, Path(place.home)) as (_, server):
        with socket.socket(socket.AF_UNIX) as early:
            early.connect(place.socket)
            server.stop("a test")
            read_line(early, 1000, time.monotonic() + 60)
            send_line(early, line_of({"hook": "claude-code", "event": {}}), time.monotonic() + 60)
            answer = read_line(early, 10_000, time.monotonic() + 60)
        assert answer["error"]["type"] == places.RETIRING
    with (
        impostor(place, {"worker": PROTOCOL, "version": RELEASE}, answer),
        pytest.raises(WorkerUnavailableError) as caught,
    ):
        found(place)
    assert caught.value.is_absent
    with impostor(place, ""), pytest.raises(WorkerUnavailableError, match="just ended") as caught:
        found(place)
    assert caught.value.is_absent


def test_a_request_that_runs_is_answered_before_it_ends(memory: MemGraph, place: Place) -> None:
    go, begun = threading.Event(), threading.Event()
    answers: list[Any] = []

    def slow() -> MemGraph:
        begun.set()
        go.wait(60)
        return memory

    with served(slow, Path(place.home)) as (_, server):
        thread = threading.Thread(target=lambda: answers.append(found(place)))
        thread.start()
        begun.wait(60)
        assert ask(place, {"stop": True}, timeout_s=10) is True
        assert is_served(place)
        go.set()
        thread.join()
    assert FACT in answers[0]
    assert server.ending == "asked to"


def test_changed_settings_and_a_removed_store_end_it(memory: MemGraph, place: Place, tmp_path: Path) -> None:
    with served(memory, Path(place.home)) as (_, server):
        found(place)
        (Path(place.home) / "config.toml").write_text('recall_when_nothing = "empty"\n', "utf-8")
        with pytest.raises(WorkerUnavailableError) as caught:
            found(place)
        assert caught.value.is_absent
        assert server.ending == "the settings file was changed"
    with served(memory, Path(place.home), closes=True) as (_, server):
        found(place)
        shutil.rmtree(place.home)
        with pytest.raises(WorkerUnavailableError, match="removed"):
            found(place)
    assert not Path(place.home).exists()
    with suppress(MemGraphError):  # with the database: there is nothing left to close
        memory.close()


def test_other_settings_in_the_environment_are_noticed(
    memory: MemGraph, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = places.settings_mark()
    monkeypatch.setenv("MEMGRAPH_LOG", "debug")
    assert places.settings_mark() == before
    monkeypatch.setenv("MEMGRAPH_RETRIEVAL_FLOOR", "off")
    assert places.settings_mark() != before
    with served(memory, Path(place.home)), pytest.raises(WorkerAnsweredError) as caught:
        ask(place, {"lookup": "recall", "arguments": {}, "settings": before}, timeout_s=10)
    assert caught.value.type == places.OTHER_SETTINGS


def test_a_store_that_cannot_be_opened_is_an_answer(memory: MemGraph, place: Place) -> None:
    make_newer(Path(place.home))
    opened: list[int] = []

    def opening() -> MemGraph:
        opened.append(1)
        return MemGraph.open(place.home)

    with served(opening, Path(place.home)):
        for _ in range(3):
            with pytest.raises(WorkerAnsweredError, match="install a newer memgraph") as caught:
                found(place)
        assert caught.value.type == "JournalError"
    assert len(opened) == 1
