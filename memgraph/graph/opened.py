"""What is known of the graph's file before the engine opens it: whether it is the very file that was closed last.

The engine trusts its files: a flipped byte in its log changes a value unnoticed, or takes the process down. So a small
note beside the file says who has it open or, after a clean close, what size and time of change it had then. The journal
is the log that counts: what the engine's own log holds beyond the file can always be had from the journal again.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson

from memgraph.errors import GraphError
from memgraph.graph.room import refusal
from memgraph.logs import logger_of

logger = logger_of(__name__)

_NOTE_BYTES = 512
"""Always as many, written in place: a full disk takes them still."""
_MOST_UNCLEAN = 3
"""After so many processes in a row that died with the graph open, it may be the graph that they died of."""
_BESIDE = (".wal", ".shadow", ".tmp")

Seen = tuple[int, int] | None
"""Of a file: its size and its time of change in nanoseconds; None where there is none."""


@dataclass(frozen=True, slots=True)
class _Note:
    is_open: bool
    pid: int
    unclean: int
    file: Seen
    log: Seen


class OpenNote:
    """The note beside a graph's file. The graph's lock is held when it is used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + ".wal")
        self._note = path.with_name("opened.json")
        self._unclean = 0

    def admit(self, probe: Callable[[], None]) -> None:
        """Return if the file may be opened, or if there is none.

        Parameters
        ----------
        probe : callable
            Opens and closes the file somewhere else, and raises a `GraphError` if that fails.

        Raises
        ------
        GraphError
            It is not the file that was closed last, or does not open: rebuild it.
        """
        file, log, note = _seen(self._path), _seen(self._log), self._read()
        self._unclean = 0
        if file is None:
            remove_log(self._path)
        elif note is None:
            raise GraphError(f"nothing tells where {self._path} comes from")
        elif note.is_open:
            self._admit_unclosed(file, note, probe)
        elif file != note.file:
            raise GraphError(f"{self._path} is not as it was when it was closed")
        elif log is None or log != note.log:  # whatever else lies there is not of this file
            remove_log(self._path)

    def _admit_unclosed(self, file: Seen, note: _Note, probe: Callable[[], None]) -> None:
        if note.unclean + 1 >= _MOST_UNCLEAN:
            raise GraphError(f"{_MOST_UNCLEAN} processes in a row ended without closing it")
        self._unclean = note.unclean + 1
        sweep(self._path)
        if file == note.file:
            logger.info("process %d did not close the graph; what it wrote last comes from the journal", note.pid)
            remove_log(self._path)
        elif note.file is None:
            logger.info("a query ended the engine; whether the graph opens is tried first")
            probe()
        else:
            raise GraphError(f"process {note.pid} ended while {self._path} was being rewritten")

    def opened(self) -> None:
        """Note that this process is about to have the file open."""
        self._write(is_open=True)

    def closed(self) -> None:
        """Note that the file, and its log if one was left, are as this process wants them to be found."""
        self._unclean = 0
        self._write(is_open=False)

    def suspect(self) -> None:
        """Note that the file may be damaged, so that it is tried before it is opened again."""
        self._put(_Note(is_open=True, pid=os.getpid(), unclean=self._unclean, file=None, log=None))

    def _write(self, *, is_open: bool) -> None:
        try:  # the system's own ticks are too coarse to tell two writes apart
            os.utime(self._path, ns=(time.time_ns(),) * 2)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise refusal(error, self._path) from None
        self._put(
            _Note(
                is_open=is_open,
                pid=os.getpid(),
                unclean=self._unclean,
                file=_seen(self._path),
                log=_seen(self._log),
            )
        )

    def _put(self, note: _Note) -> None:
        try:
            descriptor = os.open(self._note, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, orjson.dumps(note).ljust(_NOTE_BYTES), 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise refusal(error, self._note) from None

    def _read(self) -> _Note | None:
        try:
            is_open, pid, unclean, file, log = orjson.loads(self._note.read_bytes()).values()
            return _Note(
                is_open=bool(is_open),
                pid=int(pid),
                unclean=int(unclean),
                file=tuple(file) if file else None,
                log=tuple(log) if log else None,
            )
        except (OSError, ValueError, TypeError, AttributeError):
            return None


def _seen(path: Path) -> Seen:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GraphError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise GraphError(f"{path} is not a file")
    return status.st_size, status.st_mtime_ns


def sweep(path: Path) -> None:
    """Remove what a write or a rebuild of the graph at `path` left when it was killed."""
    for victim in (*path.parent.glob("load-*"), *path.parent.glob(f"{path.stem}.new*")):
        remove(victim)


def remove_log(path: Path) -> None:
    """Remove what the engine leaves beside its file."""
    for suffix in _BESIDE:
        remove(path.with_name(path.name + suffix))


def remove(path: Path) -> None:
    """Remove whatever is there.

    Raises
    ------
    GraphError
        The system refuses.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise GraphError(f"{path} cannot be removed: {error.strerror}") from None
