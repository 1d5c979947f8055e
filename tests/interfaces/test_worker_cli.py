"""The worker as processes see it: commands with and without it, the hook, `memgraph worker`, and what can happen to a process."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph import MemGraph
from memgraph.errors import DiskFullError, StorageError
from memgraph.interfaces.agents.hooks import answer_hook
from memgraph.interfaces.agents.overview import render_overview
from memgraph.interfaces.agents.sessions import SessionLog
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.worker.client import ask, is_served
from memgraph.interfaces.worker.place import PROTOCOL, RELEASE, Place, place_of
from tests.interfaces.workers import impostor, recalled, served, socket_folder

FACT = "The harbour opens at six"
HOOK = [sys.executable, "-m", "memgraph.interfaces.worker.hook"]
PROMPT = {"hook_event_name": "UserPromptSubmit", "prompt": "When does the harbour open?", "session_id": "s1"}
EVENT = json.dumps(PROMPT)
ANSWER = '{"hookSpecificOutput": {"additionalContext": "Öffnet um sechs"}}'


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short path for sockets, and no model."""
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    with socket_folder(monkeypatch) as found:
        yield found


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some memories, and its keys."""
    found = tmp_path_factory.mktemp("template")
    with MemGraph.open(found / "store", keys_home=found / "keys", embedding_model="none") as memory:
        memory.commands.remember(FACT, project_id="port")
        memory.commands.remember("The harbour closes at nine", project_id="port")
        memory.save_episode("Open the harbour", "the tide was low", "Opened it at five", "failure", project="port")
    return found


@pytest.fixture
def copied(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Copy the store, and let the environment name the copy."""

    def copy(name: str) -> Path:
        shutil.copytree(template, tmp_path / name)
        monkeypatch.setenv("MEMGRAPH_HOME", str(tmp_path / name / "store"))
        monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / name / "keys"))
        return tmp_path / name / "store"

    return copy


@pytest.fixture
def home(copied: Callable[[str], Path]) -> Path:
    return copied("one")


@pytest.fixture
def place(home: Path) -> Iterator[Place]:
    it = place_of(str(home))
    assert it is not None
    yield it
    if is_served(it):
        os.kill(int(Path(it.lock).read_text()), signal.SIGKILL)


def run(*given: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, [*map(str, given)], input=stdin, prog_name="memgraph", obj=Settings())


def hook(*given: str, stdin: str | None = EVENT, **options: Any) -> str:
    """Run the hook as an agent does; return what it printed. It always succeeds, says nothing else, and does not wait for ever."""
    done = subprocess.run(
        [*HOOK, *given], input=stdin, capture_output=True, text=True, check=True, timeout=60, **options
    )
    assert done.stderr == ""
    return done.stdout


# Commands


def test_what_commands_print_is_the_same_with_and_without_a_worker(copied: Callable[[str], Path]) -> None:
    question = "When does the harbour open?"
    sequence = [
        ["recall", question],
        ["recall", question, "--json", "--project", "port"],
        ["recall", question, "--explain", "--format", "prefix", "--project", "no such"],
        ["recall", "be there in time", "--also", "harbour opens", "--also", "hours of the harbour", "--explain"],
        ["recall", "be there in time", "--also", ""],
        ["recall", "bake bread", "--when-nothing", "empty", "--floor", "0.9"],
        ["recall", "the harbour", "--max-tokens", "0", "--episodic", "1", "--session", "s", "--all-tasks"],
        ["recall", "the harbour", "--agent", "coach", "--justification", "too short"],
        ["recall", "the harbour", "--tier", "public", "--min-trust", "agent", "--session", "sk-ant-api03-" + "x" * 500],
        ["search", "harbour"],
        ["search", "harbour", "--json", "--limit", "1", "--project", "port"],
        ["search", "nothing of the kind", "--project", "other"],
        ["ask", "harbour"],
        ["ask", "harbour", "--json"],
        ["ask", "harbour", "--session", ""],
    ]
    copied("one")
    alone = [run(*given, "--no-worker") for given in sequence]
    home = copied("other")
    with MemGraph.open(home) as memory, served(memory, home) as (place, _):
        together = [run(*given) for given in sequence]
        assert ask(place, {"status": True}, timeout_s=10)["requests"] == len(sequence)
    for given, one, other in zip(sequence, alone, together, strict=True):
        assert one.output, given
        assert other.exit_code == one.exit_code, given
        assert bytes_of(other.stdout_bytes) == bytes_of(one.stdout_bytes), given
        assert bytes_of(other.stderr_bytes) == bytes_of(one.stderr_bytes), given


def bytes_of(printed: bytes) -> bytes:
    """Return what was printed without the random id of the recall, its time, and what relevance loses in a second."""
    changing = rb'query_id": "[^"]*"|query [0-9a-f-]{36}|"(retrieved|last_accessed|relevance)_at": "[^"]*"'
    return re.sub(rb"\d+\.\d+", lambda number: b"%.3f" % float(number[0]), re.sub(changing, b"", printed))


def test_a_worker_is_asked_only_if_it_would_answer_the_same(
    home: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = ["recall", "When does the harbour open?"]

    def asked(*given: str) -> int:
        before = ask(place, {"status": True}, timeout_s=10)["requests"]
        assert FACT in run(*given).stdout
        return int(ask(place, {"status": True}, timeout_s=10)["requests"] - before - 1)  # the status itself

    with MemGraph.open(home) as memory, served(memory, home):
        assert asked(*task) == 1
        assert asked(*task, "--no-worker") == 0
        assert asked(*task, "-v") == 0
        assert asked(*task, "--as-of", "2100-01-01") == 0
        for name, value in {"MEMGRAPH_WORKER": "off", "MEMGRAPH_LOG": "error"}.items():
            monkeypatch.setenv(name, value)
            assert asked(*task) == 0
            monkeypatch.delenv(name)
        monkeypatch.setenv("MEMGRAPH_WORKER", "on")
        assert "must be one of use, start, off" in run(*task).stderr
        monkeypatch.delenv("MEMGRAPH_WORKER")
        assert run("recall", "x", "--justification", "y").exit_code == 2
    assert FACT in run(*task, "--no-worker").stdout


def test_a_worker_that_hangs_or_talks_nonsense_costs_a_second(home: Path, place: Place) -> None:
    for greeting, answer in ((None, None), ({"worker": PROTOCOL, "version": RELEASE}, ["?"]), ("?", None)):
        with impostor(place, greeting, answer):
            began = time.monotonic()
            assert FACT in run("recall", "When does the harbour open?").stdout
            assert time.monotonic() - began < 60


# The hook


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_a_session_begins_with_the_kept_overview_while_no_worker_runs(
    home: Path, place: Place, tmp_path: Path, client: str
) -> None:
    project = tmp_path / "port"
    (project / ".git").mkdir(parents=True)
    event = {"hook_event_name": "SessionStart", "session_id": "1", "cwd": str(project), "source": "startup"}
    with MemGraph.open(home) as memory:
        rendered = render_overview(memory, "port", agent=client).text
        expected = answer_hook(memory, client, event)
    assert FACT in rendered
    assert json.loads(expected)["hookSpecificOutput"]["additionalContext"] == rendered
    with impostor(place, None):  # one that hangs
        assert hook(client, "--budget", "0.5", stdin=json.dumps(event)) == expected
    assert hook(client, "--budget", "0.5", stdin=json.dumps(event)) == expected
    until = time.monotonic() + 60
    while not is_served(place) and time.monotonic() < until:
        time.sleep(0.02)
    assert is_served(place), "it was started for the first prompt"
    assert hook(client, "--budget", "30", stdin=json.dumps(event)) == expected


@pytest.mark.parametrize("client", ["gemini", "opencode", "nobody"])
def test_other_agents_get_no_kept_overview(home: Path, place: Place, tmp_path: Path, client: str) -> None:
    event = {"hook_event_name": "SessionStart", "session_id": "1", "cwd": str(tmp_path / "port"), "source": "startup"}
    with MemGraph.open(home) as memory:
        assert FACT in render_overview(memory, "port", agent=client).text
    with impostor(place, None):
        assert hook(client, "--budget", "0.3", stdin=json.dumps(event)) == ""


def test_the_worker_hears_of_a_start_that_was_answered_without_it(home: Path, place: Place, tmp_path: Path) -> None:
    event = {"hook_event_name": "SessionStart", "session_id": "1", "cwd": str(tmp_path / "port"), "source": "startup"}
    with MemGraph.open(home) as memory:
        render_overview(memory, "port", agent="claude-code")
    with impostor(place, None):  # one that hangs: what was kept could be printed
        for source in ("clear", "compact"):
            lost = event | {"source": source}
            assert hook("claude-code", "--budget", "0.3", stdin=json.dumps(lost)) == ""
    assert FACT in hook("claude-code", stdin=json.dumps(event))
    log = SessionLog(home, "claude-code", "1")
    until = time.monotonic() + 60
    while not log.shown() and time.monotonic() < until:
        time.sleep(0.02)
    assert log.shown(), "the worker knows what the overview gave"


def test_an_overview_that_something_was_written_since_is_not_printed(home: Path, place: Place, tmp_path: Path) -> None:
    event = {"hook_event_name": "SessionStart", "session_id": "1", "cwd": str(tmp_path / "port")}
    with MemGraph.open(home) as memory:
        assert FACT in render_overview(memory, "port", agent="claude-code").text
        memory.commands.forget(FACT)
    with impostor(place, None):
        assert hook("claude-code", "--budget", "0.5", stdin=json.dumps(event)) == ""


def test_the_hook_imports_the_standard_library_alone() -> None:
    code = "import sys, memgraph.interfaces.worker.hook; print(*sys.modules)"
    names = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    loaded = {name for name in names.split() if name.split(".")[0] not in sys.stdlib_module_names | {"__main__"}}
    ours = {"memgraph", "memgraph.disk", "memgraph.disk.glance", "memgraph.interfaces", "memgraph.interfaces.worker"}
    assert loaded == ours | {f"memgraph.interfaces.worker.{name}" for name in ("hook", "client", "place")}
    heavy = {"pathlib", "subprocess", "logging", "asyncio", "dataclasses", "inspect", "importlib.metadata", "argparse"}
    assert not heavy & set(names.split())


def test_the_hook_prints_what_the_worker_answers(home: Path, place: Place) -> None:
    with impostor(place, {"worker": PROTOCOL, "version": RELEASE}, {"answer": ANSWER}) as heard:
        assert hook("claude-code") == ANSWER
    assert heard == [{"version": RELEASE, "hook": "claude-code", "event": json.loads(EVENT)}]


def test_a_prompt_gets_what_is_known(home: Path, place: Place) -> None:
    with MemGraph.open(home) as memory:
        memory.commands.remember(FACT)
        with served(memory, home):
            answer = json.loads(hook("claude-code"))
            assert hook("claude-code") == ""  # each memory is given once in a session
            assert hook("nobody") == hook("claude-code", stdin="[]") == ""
    given = answer["hookSpecificOutput"]["additionalContext"]
    assert FACT in given
    assert "query_id: " in given


def test_the_hook_lets_the_prompt_through_whatever_happens(
    home: Path, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    greeting = {"worker": PROTOCOL, "version": RELEASE}
    for served_by in (
        impostor(place, None),
        impostor(place, greeting),
        impostor(place, greeting, {"error": {"type": "BusyError", "message": "busy"}}),
        impostor(place, greeting, {"answer": {"no": "text"}}),
        impostor(place, {"worker": PROTOCOL + 1, "version": RELEASE}),
    ):
        with served_by:
            assert hook("claude-code", "--budget", "0.3") == ""
    for stdin in ("", "{", "[" * 100_000, "\x00"):
        assert hook("claude-code", stdin=stdin) == ""
    for given in ((), ("a", "b"), ("--home",), ("a", "--budget", "soon"), ("a", "--home", str(tmp_path / "none"))):
        assert hook(*given) == ""
    monkeypatch.setenv("MEMGRAPH_WORKER_DIR", "/dev/null/none")
    assert hook("claude-code") == ""
    assert not (tmp_path / "none").exists()


def test_the_hook_does_not_wait_long_for_a_worker_that_hangs(home: Path, place: Place) -> None:
    with impostor(place, None):
        assert hook("claude-code", "--budget", "600") == ""


def test_the_hook_does_not_wait_for_an_input_that_never_ends(home: Path) -> None:
    with subprocess.Popen([*HOOK, "x", "--budget", "0.1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.wait(60) == 0
        assert child.stdout is not None
        assert child.stdout.read() == b""


def test_the_hook_says_why_if_asked(home: Path) -> None:
    environment = {**os.environ, "MEMGRAPH_LOG": "info"}
    done = subprocess.run(HOOK, input="{}", capture_output=True, text=True, check=True, env=environment)
    assert done.stderr.startswith("memgraph-hook: usage: ")


# Processes


def until_ready(place: Place) -> Any:
    """Return a worker's status once its store is open and warmed up."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if Path(place.socket).exists():
            status = ask(place, {"status": True}, timeout_s=10)
            if status["is_ready"]:
                return status
        time.sleep(0.02)
    raise AssertionError("no worker in a minute")


def start(place: Place) -> Any:
    return ask(place, {"status": True}, timeout_s=30, starts=True)


def test_twelve_starters_get_one_worker_and_a_killed_one_is_replaced(home: Path, place: Place) -> None:
    code = (
        "import os\nfrom memgraph.interfaces.worker.client import ask\nfrom memgraph.interfaces.worker.place import place_of\n"
        "print(ask(place_of(), {'status': True}, timeout_s=60, starts=True)['pid'])"
    )
    began = [sys.executable, "-c", code]
    with ThreadPoolExecutor(12) as pool:
        pids = {
            *pool.map(lambda _: subprocess.run(began, capture_output=True, text=True, check=True).stdout, range(12))
        }
    assert len(pids) == 1
    (first,) = map(int, pids)
    assert os.getsid(first) not in {first, os.getsid(0)}  # a session of its own, and no terminal can become its
    assert Path(place.log).stat().st_mode & 0o777 == 0o600
    until_ready(place)
    assert f"serves {place.home} as process {first}" in Path(place.log).read_text("utf-8")
    os.kill(first, signal.SIGKILL)
    while is_served(place):
        time.sleep(0.01)
    assert Path(place.socket).exists()
    assert FACT in run("recall", "When does the harbour open?").stdout
    second = start(place)["pid"]
    assert second != first
    shown = json.loads(run("worker", "status", "--json").stdout)
    assert (shown["running"], shown["pid"], shown["version"]) == (True, second, RELEASE)
    assert ["pid", str(second)] in map(str.split, run("worker").stdout.splitlines())  # alone it shows the status
    os.kill(second, signal.SIGSTOP)  # it hangs
    try:
        assert hook("claude-code", "--budget", "0.5") == ""
        shown = json.loads(run("worker", "status", "--json").stdout)
        assert (shown["running"], "hangs" in shown["problem"]) == (False, True)
    finally:
        os.kill(second, signal.SIGCONT)
    assert json.loads(run("worker", "stop", "--json").stdout) == {"stopped": True, "pid": second}
    assert json.loads(run("worker", "stop", "--json").stdout) == {"stopped": False}
    assert not Path(place.socket).exists()
    assert "harbour" not in Path(place.log).read_text("utf-8").lower()


@pytest.mark.long
def test_two_stores_have_two_workers_and_one_ends_when_its_store_is_removed(copied: Callable[[str], Path]) -> None:
    command = [sys.executable, "-m", "memgraph", "worker", "run", "--json"]
    workers = []
    with ExitStack() as children:
        for name in ("one", "other"):
            place = place_of(str(copied(name)))
            assert place is not None
            child = children.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            children.callback(child.kill)
            workers.append((place, child))
        for place, child in workers:
            assert until_ready(place)["pid"] == child.pid
        (kept, first), (gone, second) = workers
        assert "already serves" in run("--home", gone.home, "worker", "run").stderr
        shutil.rmtree(gone.home)  # underneath
        first.send_signal(signal.SIGINT)
        for child, reason in ((first, "terminated"), (second, "the store was removed or replaced")):
            stdout, stderr = child.communicate(timeout=60)
            assert json.loads(stdout) == {"ended": reason}, stderr
            assert child.returncode == 0
    assert Path(kept.home).exists()
    assert not Path(gone.home).exists()
    assert "there is no store" in run("--home", gone.home, "worker", "status").stderr


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a small disk, if that is possible here, at a path that is short enough for a socket."""
    with ExitStack() as mounted:

        def mount(options: str) -> Path:
            disk = folder / "disk"
            disk.mkdir()
            command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                pytest.skip("a small disk cannot be mounted here")
            mounted.callback(subprocess.run, ["umount", "-l", str(disk)], check=True)
            return disk

        yield mount


def test_a_disk_without_room_for_a_socket(
    home: Path, small_disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk("size=4k,nr_inodes=2,mode=700")
    (disk / "ballast").touch()
    monkeypatch.setenv("MEMGRAPH_WORKER_DIR", str(disk))
    place = place_of(str(home))
    assert place is not None
    assert place.folder == str(disk), "else the worker is elsewhere"
    assert hook("claude-code", "--budget", "2") == ""
    assert FACT in run("recall", "When does the harbour open?").stdout


@pytest.mark.long
def test_a_store_without_room_still_recalls(copied: Callable[[str], Path], small_disk: Callable[[str], Path]) -> None:
    disk = small_disk("size=64m")
    home = disk / "store"
    shutil.copytree(copied("one"), home)
    task = "When does the harbour open?"
    with MemGraph.open(home) as memory, served(memory, home) as (place, _):
        assert FACT in recalled(place, task)
        ballast = disk / "ballast"
        with suppress(OSError), ballast.open("wb") as file:
            while True:
                file.write(bytes(1 << 16))
                file.flush()
        for _ in range(3):
            assert FACT in recalled(place, task)
        with pytest.raises((StorageError, DiskFullError)):
            memory.save_observation("The harbour has two gates, one of them closed." * 10)
        ballast.unlink()
        assert FACT in recalled(place, task)


@pytest.mark.long
def test_nobody_is_turned_away_by_a_worker_that_ends_when_idle(
    home: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMGRAPH_WORKER_IDLE_S", "0.2")
    pids = set()
    for number in range(60):
        pids.add(start(place)["pid"])
        time.sleep(0.17 + number / 1_000)
    assert len(pids) > 2


ROOT = Path(__file__).parents[2]
