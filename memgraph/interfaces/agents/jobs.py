"""Transcripts that wait to be read: files in the store's directory, and the detached process that works them off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from memgraph.disk.files import make_private_folder, write_private
from memgraph.facade import MemGraph
from memgraph.interfaces.agents.sessions import KEPT_DAYS, SessionLog, folder_of
from memgraph.logs import logger_of

logger = logger_of(__name__)

Learn = Callable[[MemGraph, str, float], None]
_DETACH_S = 10.0
_TAKEN = ".taken"
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Job:
    """A session whose transcript is to be read."""

    session_id: str
    transcript: str


def add_job(home: Path, client: str, job: Job) -> None:
    """Note that a transcript has grown. One that is noted already is noted once.

    Raises
    ------
    StorageError
        The file cannot be written.
    """
    folder = _folder(home, client)
    make_private_folder(folder)
    name = SessionLog(home, client, job.session_id).name
    write_private(folder / f"{name}.json", json.dumps(asdict(job)).encode())


def waiting_jobs(home: Path, client: str) -> set[Job]:
    """Return the jobs that wait."""
    return set(filter(None, map(_job, _folder(home, client).glob("*.json"))))


def recover_jobs(home: Path, client: str) -> None:
    """Put back the jobs that a process had taken when it was killed. Call it while no other process works on them."""
    for path in _folder(home, client).glob(f"*{_TAKEN}"):
        _put_back(path)


def take_jobs(home: Path, client: str, done: Callable[[Job], bool]) -> None:
    """Work off the waiting jobs, oldest first. One that is not `done` waits for the next run, up to `KEPT_DAYS`."""
    for path in sorted(_folder(home, client).glob("*.json"), key=_changed_at):
        taken = path.with_suffix(_TAKEN)
        try:
            path.rename(taken)  # if the transcript grows meanwhile, it is noted again
        except FileNotFoundError:
            continue
        job = _job(taken)
        if job is None or done(job) or _changed_at(taken) < time.time() - KEPT_DAYS * _DAY_S:
            taken.unlink(missing_ok=True)
        else:
            _put_back(taken)


def start_learning(memory: MemGraph, client: str, delay_s: float) -> None:
    """Start a process of its own that reads the waiting transcripts after a delay; return when it is detached.

    It outlives the agent and whoever answers its hooks: clients end the processes that their hooks started.
    """
    config = memory.store.config
    command = [sys.executable, "-P", "-m", "memgraph.interfaces.agents.detached"]
    try:
        subprocess.run(
            [*command, str(config.home), str(config.keys_home), client, f"{delay_s:.3f}"],
            env={**os.environ, "MEMGRAPH_HOME": config.database, "MEMGRAPH_TENANT": config.tenant}
            if config.server
            else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            timeout=_DETACH_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        logger.warning("transcripts wait: the process that reads them did not start: %s", type(error).__name__)


def _folder(home: Path, client: str) -> Path:
    return folder_of(home, client) / "waiting"


def _put_back(taken: Path) -> None:
    path = taken.with_suffix(".json")
    with suppress(OSError):
        if path.exists():
            taken.unlink()
        else:
            taken.rename(path)


def _job(path: Path) -> Job | None:
    try:
        found = json.loads(path.read_bytes())
        return Job(str(found["session_id"]), str(found["transcript"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
