"""A fuse: counts calls to the disk and the database, and at a chosen call sends this process a signal.

What SQLite writes between two statements is one step here: that it is whole or not there is SQLite's promise. The code under test knows nothing of it: the functions of the system and of SQLite are wrapped from outside.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from typing import Any

from places import say

from memgraph.testing import FakeEmbedder

_WATCHED = ("COMMIT", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
_SYSTEM = ("pwrite", "fsync", "ftruncate", "replace", "rename", "link", "unlink", "mkdir", "rmdir")


class Fuse:
    """Wraps the system's and the database's calls.

    Parameters
    ----------
    at : int
        The place, counted from 1, at which the signal is sent; 0: nowhere.
    number : signal.Signals

    Attributes
    ----------
    places : list of str
        What it passed.
    """

    def __init__(self, at: int = 0, number: signal.Signals = signal.SIGKILL) -> None:
        self.places: list[str] = []
        self._at = at
        self._signal = number
        self._is_laid = self._is_watching = False

    def pass_(self, place: str) -> None:
        """Pass a place, at which the signal may be sent."""
        if not self._is_laid:
            return
        self.places.append(place)
        if len(self.places) == self._at:
            if self._signal is signal.SIGSTOP:
                say("stopping")  # who waits for it cannot see it otherwise
            os.kill(os.getpid(), self._signal)

    def lay(self) -> None:
        """Wrap the calls, which are counted from now on."""
        self._is_laid = True
        self.watch()
        for name in _SYSTEM:
            self._wrap(os, name, f"before {name}")
        self._wrap(FakeEmbedder, "embed", "before texts are embedded")
        self._wrap_open()
        self._wrap_write()

    def _wrap(self, owner: Any, name: str, place: str) -> None:
        real = getattr(owner, name)

        def wrapped(*args: Any, **options: Any) -> Any:
            self.pass_(place)
            return real(*args, **options)

        setattr(owner, name, wrapped)

    def watch(self) -> None:
        """Watch the ends of the database's transactions, and what rewrites its file; of connections made from now on."""
        if self._is_watching:
            return
        self._is_watching, passed, connect = True, self.pass_, sqlite3.connect

        class Watched(sqlite3.Connection):
            def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
                if statement not in _WATCHED:
                    return super().execute(statement, *values)
                passed(f"before {statement}")
                found = super().execute(statement, *values)
                passed(f"after {statement}")
                return found

        sqlite3.connect = lambda *args, **options: connect(*args, **options, factory=Watched)  # type: ignore[assignment]

    def _wrap_open(self) -> None:
        real = os.open

        def opening(path: Any, flags: int, *args: Any, **options: Any) -> int:
            if flags & os.O_CREAT:
                self.pass_("before a file is opened")
            return real(path, flags, *args, **options)

        os.open = opening  # type: ignore[assignment]

    def _wrap_write(self) -> None:
        real = os.write

        def writing(descriptor: int, data: Any) -> int:
            self.pass_("before write")
            if len(self.places) + 1 == self._at:
                real(descriptor, data[: len(data) // 2])
            self.pass_("half of write")
            if len(self.places) == self._at:  # a signal that does not kill: the system took a part of it
                return len(data) // 2
            return real(descriptor, data)

        os.write = writing
