"""The store of a worker: opened once, warmed up, and watched for what another opening would see differently."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from memgraph.errors import ClosedError, MemGraphError
from memgraph.interfaces.resident import Resident
from memgraph.interfaces.worker.place import Place, store_id_of
from memgraph.logs import logger_of

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

logger = logger_of(__name__)

_OWN = "memgraph.interfaces."
_MAX_WARNINGS = 20
_TRY_AGAIN_S = 10.0
"""How long a failed opening is remembered: opening costs a second of processor time, and hooks ask often."""


class Tenant:
    """Opens a store when it is first needed. Thread-safe.

    Parameters
    ----------
    place : Place
    open_memory : callable
        Opens the store.

    Attributes
    ----------
    is_ready : bool
        Whether the store is open and warmed up.
    warnings : logging.Handler
        Collects the library's warnings for `take_warnings`.
    """

    def __init__(self, place: Place, open_memory: Callable[[], MemGraph]) -> None:
        self._place = place
        self._open = open_memory
        self._resident = Resident(self._opened, retry_s=_TRY_AGAIN_S)
        self.is_ready = False
        self._settings = self._settings_file()
        self.warnings = _Warnings(logging.WARNING)

    def memory(self) -> MemGraph:
        """Return the open store.

        Raises
        ------
        MemGraphError
            It cannot be opened. The same error is raised for some seconds.
        """
        return self._resident.memory()

    def warm_up(self) -> None:
        """Open the store and load the index, the model and the doors, so that the next recall need not. Errors are logged."""
        try:
            import memgraph.interfaces.agents.hooks  # noqa: F401

            self.memory().search_memories("warm up", limit=1)  # a search is not recorded
            self.is_ready = True
        except MemGraphError as error:
            logger.warning("the store cannot be used: %s", error.loggable)

    def change(self) -> str | None:
        """Return why this worker must not answer any more: the store is gone or replaced, or its settings changed."""
        if not self._is_there():
            return "the store was removed or replaced"
        if self._settings_file() != self._settings:
            return "the settings file was changed"
        return None

    def flush(self) -> None:
        """Commit pending access records now: other processes may ask for them. Errors are logged."""
        memory = self._resident.opened
        if memory is not None and self._is_there():
            try:
                memory.store.flush()
            except MemGraphError as error:
                logger.warning("access records were not written yet: %s", error.loggable)

    def take_warnings(self) -> list[str]:
        """Return the library's warnings since this was last called: a command prints them."""
        return self.warnings.take()

    def close(self) -> None:
        """Close the store, unless it is gone: closing writes the index. Errors are logged."""
        try:
            self._resident.close(leaves=not self._is_there())
        except MemGraphError as error:
            logger.warning("the store was not closed cleanly: %s", error.loggable)

    def _opened(self) -> MemGraph:
        if reason := self.change():  # opening would create a store where one was removed
            raise ClosedError(f"the worker is ending: {reason}")
        return self._open()

    def _is_there(self) -> bool:
        return store_id_of(self._place.home) == self._place.store_id

    def _settings_file(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(os.path.join(self._place.home, "config.toml"))
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


class _Warnings(logging.Handler):
    """Keeps the latest messages, each once."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._kept: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(_OWN) and len(self._kept) < _MAX_WARNINGS:
            self._kept[record.getMessage()] = None

    def take(self) -> list[str]:
        """Return the messages and forget them."""
        with self.lock or nullcontext():
            kept, self._kept = list(self._kept), {}
        return kept
