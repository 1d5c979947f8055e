"""Loggers: one per module, under ``memgraph``. Records say what was done, how much, and how long it took.

Records never contain memories, queries or keys: messages are fixed texts with counts, times, ids and paths, and of an
error only `MemGraphError.loggable`. To see them, add a handler; the command line does with ``--verbose``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

DIAGNOSTICS_LOGGER = "memgraph.diagnostics"
"""Logger of the diagnostic records."""
logging.getLogger("memgraph").addHandler(logging.NullHandler())


def logger_of(module: str) -> logging.Logger:
    """Return a module's logger, by its ``__name__``."""
    return logging.getLogger(module)


@contextmanager
def timed(logger: logging.Logger, level: int, what: str) -> Iterator[dict[str, int]]:
    """Log a block's action when it is done, with its duration and the counts that it put into the dictionary."""
    counts: dict[str, int] = {}
    if not logger.isEnabledFor(level):
        yield counts
        return
    start = time.perf_counter()
    yield counts
    taken_ms = 1_000 * (time.perf_counter() - start)
    logger.log(level, "%s in %.1f ms%s", what, taken_ms, "".join(f", {name} {count}" for name, count in counts.items()))
