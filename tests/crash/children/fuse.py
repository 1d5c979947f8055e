"""A fuse: counts calls to the disk or the engine, and at a chosen call sends this process a signal.

The code under test knows nothing of it: the functions of the system and of the engine are wrapped from outside.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from functools import partial
from typing import Any

import memgraph.journal.segments
import numpy as np
from places import say

import memgraph.journal.vectors
from memgraph.testing import FakeEmbedder

_SYSTEM = ("pwrite", "fsync", "ftruncate", "replace", "link", "unlink", "mkdir", "rmdir")


class Fuse:
    """Wraps the system's and the engine's calls.

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
        self._is_laid = False

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
        for name in _SYSTEM:
            self._wrap(os, name, f"before {name}")
        for module in (memgraph.journal.segments, memgraph.journal.vectors):
            what = module.__name__.rpartition(".")[2]
            self._wrap(module, "sync_data", f"before the sync of {what}")
        self._wrap(np, "savez", "before the index is saved")
        self._wrap(FakeEmbedder, "embed", "before texts are embedded")
        self._wrap_execute()
        self._wrap_open()
        self._wrap_write()

    def _wrap(self, owner: Any, name: str, place: str) -> None:
        real = getattr(owner, name)

        def wrapped(*args: Any, **options: Any) -> Any:
            self.pass_(place)
            return real(*args, **options)

        setattr(owner, name, wrapped)

    def _wrap_execute(self) -> None:
        pass_ = self.pass_

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, *args: Any) -> Any:
                if (verb := statement.split(maxsplit=1)[0]) in {"BEGIN", "COMMIT", "DELETE", "INSERT", "UPDATE"}:
                    pass_(f"before {verb}")
                return super().execute(statement, *args)

            def executemany(self, statement: str, values: Any) -> Any:
                pass_(f"before {statement.split(maxsplit=1)[0]}")
                return super().executemany(statement, values)

        sqlite3.connect = partial(sqlite3.connect, factory=Connection)  # type: ignore[assignment]

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
