"""A note beside the graph's file that shows, before the engine opens it, whether it is the file that memgraph closed last.

The engine trusts its files: a flipped byte in its log changes a value silently or crashes the process, and an edited file is read
as it is. A small note beside the file therefore records which process has it open or, after a clean close, its content: a
keyed code over file, log and the note itself. A file's size and time prove nothing and are ignored. The journal is
authoritative: what the engine's own log holds beyond the file can always be restored from the journal.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import orjson

from memgraph.disk.files import clear, graph_error, open_own, read_own
from memgraph.disk.seal import ReplacedKeyError, Seal
from memgraph.errors import GraphError, OutdatedGraphError
from memgraph.logs import logger_of

logger = logger_of(__name__)

_NOTE_BYTES = 1024
"""Fixed size, written in place, so that the note can be written on a full disk."""
_MOST_UNCLEAN = 3
"""After this many processes in a row ended with the graph open, the graph itself is the suspected cause."""


@dataclass(frozen=True, slots=True)
class _Note:
    """The content of the note.

    Attributes
    ----------
    is_open : bool
        A process has the file open, or ended without closing it.
    is_suspect : bool
        A query crashed the engine, possibly because the file is damaged.
    unclean : int
        Number of processes in a row that ended with the file open.
    name : str
        Name of the file.
    file, log : str or None
        Codes of the file when it was last written, and of the engine's log when it was closed; None if there was none.
    """

    name: str
    is_open: bool = False
    is_suspect: bool = False
    pid: int = 0
    unclean: int = 0
    file: str | None = None
    log: str | None = None


class OpenNote:
    """The note beside a graph's file. Callers hold the graph's lock."""

    def __init__(self, path: Path, seal: Seal) -> None:
        self._path = path
        self._log = log_of(path)
        self._note = path.with_name("opened.json")
        self._seal = seal
        self._known = _Note(path.name)

    def admit(self, probe: Callable[[], None]) -> None:
        """Check that the file may be opened, or that there is none. Hashes file and log.

        Parameters
        ----------
        probe : callable
            Opens and reads the file in another process, and raises a `GraphError` if that fails.

        Raises
        ------
        GraphError
            The file changed since it was closed, or does not open: rebuild it.
        """
        note = self._read()
        self._known = _Note(self._path.name)
        if not _is_file(self._path):
            remove_beside(self._path)
            return
        if note is None or note.name != self._path.name:
            self._refuse_unvouched()
        unclean = note.unclean + note.is_open
        if unclean >= _MOST_UNCLEAN:
            raise GraphError(f"{_MOST_UNCLEAN} processes in a row ended without closing it")
        if self._code(self._path) != note.file:
            what = f"process {note.pid} ended while it was being rewritten" if note.is_open else "it was changed since"
            raise GraphError(f"{self._path} differs from its state when it was closed: {what}")
        if note.is_open:
            logger.info("process %d did not close the graph; its last writes are restored from the journal", note.pid)
            sweep(self._path)
        is_log_known = (
            not note.is_open and note.log is not None and _is_file(self._log) and self._code(self._log) == note.log
        )
        remove_beside(self._path, but=self._log if is_log_known else None)
        if note.is_suspect:
            logger.info("a query crashed the engine; testing first whether the graph can be opened")
            probe()
        self._known = replace(note, unclean=unclean)

    def _refuse_unvouched(self) -> NoReturn:
        try:
            found = read_own(self._note)
            if "is_open" in orjson.loads(found):
                raise OutdatedGraphError(f"{self._path} was created by an earlier release")
            self._seal.unsealed(found)
        except ReplacedKeyError as error:
            raise OutdatedGraphError(f"{self._path} {error}") from None
        except (OSError, ValueError, TypeError):
            pass
        raise GraphError(f"{self._path} has no valid seal")

    def check(self, path: Path | None = None) -> None:
        """Check that the file and its log, or the copies of both at `path`, are as they were when closed.

        Raises
        ------
        GraphError
            They differ.
        """
        note, path = self._known, path or self._path
        log_path = log_of(path)
        log = self._code(log_path) if _is_file(log_path) else None
        if note.is_open or self._code(path) != note.file or log != note.log:
            raise GraphError(f"{path} was changed while it was closed")

    def opened(self) -> None:
        """Record that this process is about to open the file."""
        self._put(is_open=True, is_suspect=False)

    def is_unwritten(self) -> bool:
        """Return whether the file is as last recorded. Only the engine may write to it, in a COPY or a CHECKPOINT."""
        return self._known.file is None or self._code(self._path) == self._known.file

    def written(self) -> None:
        """Record that the engine has rewritten the file and emptied its log."""
        self._put(is_open=True, file=self._code(self._path))

    def closed(self, *, is_rewritten: bool) -> None:
        """Record the present file, and its log if there is one, as the expected ones."""
        file = self._code(self._path) if is_rewritten else self._known.file
        log = self._code(self._log) if _is_file(self._log) else None
        self._put(is_open=False, unclean=0, file=file, log=log)

    def suspect(self) -> None:
        """Record that the file may be damaged, so that it is probed before it is opened again."""
        self._put(is_suspect=True)

    def _code(self, path: Path) -> str:
        try:
            return self._seal.code_of_file(path)
        except OSError as error:
            raise GraphError(f"{path} cannot be read: {error.strerror}") from None

    def _put(self, **changed: Any) -> None:
        self._known = replace(self._known, pid=os.getpid(), **changed)
        sealed = self._seal.sealed(asdict(self._known))
        try:
            descriptor = open_own(self._note)
            try:
                os.pwrite(descriptor, sealed.ljust(_NOTE_BYTES), 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise graph_error(error, self._note) from None

    def _read(self) -> _Note | None:
        """Return the note if there is one sealed with this store's key."""
        try:
            return _Note(**self._seal.unsealed(read_own(self._note)))
        except (OSError, ValueError, TypeError):
            return None


def _is_file(path: Path) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise GraphError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise GraphError(f"{path} is not a file")
    return True


def log_of(path: Path) -> Path:
    """Return the path of the engine's log of a file."""
    return path.with_name(f"{path.name}.wal")


def sweep(path: Path) -> None:
    """Remove the files that a killed write or rebuild of the graph at `path` left."""
    for victim in (*path.parent.glob("load-*"), *path.parent.glob(f"{path.stem}.new*")):
        remove(victim)


def remove_beside(path: Path, *, but: Path | None = None) -> None:
    """Remove everything that the engine might take for a part of its file, except a known log."""
    for other in path.parent.glob(f"{path.name}.*"):
        if other != but:
            remove(other)


def remove(path: Path) -> None:
    """Remove whatever has this path.

    Raises
    ------
    GraphError
        The system refuses the removal.
    """
    try:
        clear(path)
    except OSError as error:
        raise GraphError(f"{path} cannot be removed: {error.strerror}") from None
