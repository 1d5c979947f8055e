"""The stores of a server, each opened when it is first needed: one, or one for each tenant under a root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from memgraph.disk.files import make_private_folder
from memgraph.disk.lock import ProcessLock
from memgraph.interfaces.http.access.answers import Answers
from memgraph.interfaces.http.access.tokens import FOLDER
from memgraph.interfaces.resident import Resident
from memgraph.store.purge.exports import ANSWERS

_LOCK_S = 1.0

if TYPE_CHECKING:
    from memgraph.facade import MemGraph


class Stores:
    """Opens stores and the answers kept for their clients. Thread-safe.

    Parameters
    ----------
    home_of : callable
        Returns the directory of a tenant's store; of the only store for None.
    open_store : callable
        Opens the store in a directory, or raises.
    locks : bool
        Keep other servers from each store that is opened. The lock of the only store is its server's.
    """

    def __init__(
        self,
        home_of: Callable[[str | None], Path],
        open_store: Callable[[Path], MemGraph],
        *,
        locks: bool = False,
    ) -> None:
        self._home_of = home_of
        self._open = open_store
        self._locks: dict[str | None, ProcessLock] | None = {} if locks else None
        self._guard = Lock()
        self._residents: dict[str | None, Resident] = {}
        self._answers: dict[str | None, Answers] = {}

    def memory(self, tenant: str | None) -> MemGraph:
        """Return a tenant's store.

        Raises
        ------
        MemGraphError, OSError
            It cannot be opened, or the server is ending.
        """
        with self._guard:
            resident = self._residents.setdefault(tenant, Resident(lambda: self._opened(tenant)))
        return resident.memory()

    def _opened(self, tenant: str | None) -> MemGraph:
        home = self._home_of(tenant)
        is_first = self._locks is not None and tenant not in self._locks
        lock = lock_of(home) if is_first else None
        try:
            memory = self._open(home)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        if self._locks is not None and lock is not None:
            self._locks[tenant] = lock
        return memory

    def answers(self, tenant: str | None) -> Answers:
        """Return the answers kept for a tenant's clients.

        Raises
        ------
        StorageError
        """
        with self._guard:
            if tenant not in self._answers:
                self._answers[tenant] = Answers(self._home_of(tenant) / ANSWERS)
            return self._answers[tenant]

    @property
    def open_count(self) -> int:
        """Number of stores that are open."""
        with self._guard:
            return sum(one.opened is not None for one in self._residents.values())

    def close(self) -> None:
        """Close all stores. Idempotent."""
        with self._guard:
            residents, answers = list(self._residents.values()), list(self._answers.values())
        for resident in residents:
            resident.close()
        for one in answers:
            one.close()
        while self._locks:
            self._locks.popitem()[1].release()


def lock_of(place: Path) -> ProcessLock:
    """Return the lock of a place's server, which is held then.

    Raises
    ------
    BusyError
        Another process serves it.
    """
    make_private_folder(place / FOLDER)
    lock = ProcessLock(place / FOLDER / "lock", f"the server of {place}")
    lock.acquire(_LOCK_S)
    return lock
