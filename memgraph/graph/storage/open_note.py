"""What is known of the graph's file before the engine opens it: whether it is the very file that memgraph closed last.

The engine trusts its files: a flipped byte in its log changes a value unnoticed, or takes the process down, and whoever edits the
file writes what is read. So a small note beside the file says who has it open or, after a clean close, which bytes it had then:
a keyed code over file, log and the note itself. Size and time of a file prove nothing and are not looked at. The journal is the
log that counts: what the engine's own log holds beyond the file can always be had from the journal again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import orjson

from memgraph.disk.files import clear, open_own, read_own
from memgraph.disk.seal import Seal
from memgraph.disk.space import refusal
from memgraph.errors import GraphError, OutdatedGraphError
from memgraph.logs import logger_of

logger = logger_of(__name__)

_NOTE_BYTES = 1024
"""Always as many, written in place: a full disk takes them still."""
_MOST_UNCLEAN = 3
"""After so many processes in a row that died with the graph open, it may be the graph that they died of."""


@dataclass(frozen=True, slots=True)
class _Note:
    """What is noted of the file.

    Attributes
    ----------
    is_open : bool
        A process has it open, or died so.
    is_suspect : bool
        A query ended the engine: it may have been the file.
    unclean : int
        So many processes in a row have died with it open.
    name : str
        Of the file.
    file, log : str or None
        Codes of the file when it was last written, and of the engine's log when it was closed; None where there was none.
    """

    name: str
    is_open: bool = False
    is_suspect: bool = False
    pid: int = 0
    unclean: int = 0
    file: str | None = None
    log: str | None = None


class OpenNote:
    """The note beside a graph's file. The graph's lock is held when it is used."""

    def __init__(self, path: Path, seal: Seal) -> None:
        self._path = path
        self._log = log_of(path)
        self._note = path.with_name("opened.json")
        self._seal = seal
        self._known = _Note(path.name)

    def admit(self, probe: Callable[[], None]) -> None:
        """Return if the file may be opened, or if there is none. Costs a hash of file and log.

        Parameters
        ----------
        probe : callable
            Opens and reads the file somewhere else, and raises a `GraphError` if that fails.

        Raises
        ------
        GraphError
            It is not the file that was closed last, or does not open: rebuild it.
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
            is_older = "is_open" in orjson.loads(read_own(self._note))
        except (OSError, ValueError, TypeError):
            is_older = False
        if is_older:
            raise OutdatedGraphError(f"{self._path} was created by an earlier release")
        raise GraphError(f"{self._path} has no valid seal")

    def check(self, path: Path | None = None) -> None:
        """Return if the file and its log, or the copies of both at `path`, are as they were closed.

        Raises
        ------
        GraphError
            They are not.
        """
        note, path = self._known, path or self._path
        log_path = log_of(path)
        log = self._code(log_path) if _is_file(log_path) else None
        if note.is_open or self._code(path) != note.file or log != note.log:
            raise GraphError(f"{path} was changed while it was closed")

    def opened(self) -> None:
        """Note that this process is about to have the file open."""
        self._put(is_open=True, is_suspect=False)

    def is_unwritten(self) -> bool:
        """Return whether the file is as it was last noted: the engine writes to it in a COPY and a CHECKPOINT, and nobody else may."""
        return self._known.file is None or self._code(self._path) == self._known.file

    def written(self) -> None:
        """Note that the engine has rewritten the file, and emptied its log."""
        self._put(is_open=True, file=self._code(self._path))

    def closed(self, *, is_rewritten: bool) -> None:
        """Note that the file, and its log if one was left, are as this process wants them to be found."""
        file = self._code(self._path) if is_rewritten else self._known.file
        log = self._code(self._log) if _is_file(self._log) else None
        self._put(is_open=False, unclean=0, file=file, log=log)

    def suspect(self) -> None:
        """Note that the file may be damaged, so that it is tried before it is opened again."""
        self._put(is_suspect=True)

    def _code(self, path: Path) -> str:
        try:
            return self._seal.code_of_file(path)
        except OSError as error:
            raise GraphError(f"{path} cannot be read: {error.strerror}") from None

    def _put(self, **changed: Any) -> None:
        self._known = replace(self._known, pid=os.getpid(), **changed)
        said = asdict(self._known)
        sealed = orjson.dumps({"note": said, "code": self._seal.code(orjson.dumps(said))})
        try:
            descriptor = open_own(self._note)
            try:
                os.pwrite(descriptor, sealed.ljust(_NOTE_BYTES), 0)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise refusal(error, self._note) from None

    def _read(self) -> _Note | None:
        """Return the note that this store's key has sealed, if there is one."""
        try:
            sealed = orjson.loads(read_own(self._note))
            said = sealed["note"]
            return _Note(**said) if self._seal.fits(sealed["code"], orjson.dumps(said)) else None
        except (OSError, ValueError, TypeError, KeyError):
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
    """Return where the engine keeps the log of its file."""
    return path.with_name(f"{path.name}.wal")


def sweep(path: Path) -> None:
    """Remove what a write or a rebuild of the graph at `path` left when it was killed."""
    for victim in (*path.parent.glob("load-*"), *path.parent.glob(f"{path.stem}.new*")):
        remove(victim)


def remove_beside(path: Path, *, but: Path | None = None) -> None:
    """Remove everything that the engine may take for a part of its file, but for a log that is known."""
    for other in path.parent.glob(f"{path.name}.*"):
        if other != but:
            remove(other)


def remove(path: Path) -> None:
    """Remove whatever is there.

    Raises
    ------
    GraphError
        The system refuses.
    """
    try:
        clear(path)
    except OSError as error:
        raise GraphError(f"{path} cannot be removed: {error.strerror}") from None
