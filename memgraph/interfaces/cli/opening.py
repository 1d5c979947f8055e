"""Opens the store that the command line names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memgraph.interfaces.cli.options import Settings

if TYPE_CHECKING:
    from memgraph.facade import MemGraph


@contextmanager
def opened(settings: Settings, **config: Any) -> Iterator[MemGraph]:
    """Open the store for a block; what the library warns of goes to stderr, a line each."""
    with warnings_shown():
        from memgraph.facade import MemGraph

        with MemGraph.open(settings.home, **config) as memory:
            yield memory


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Print the library's warnings (a healed journal, a rebuilt graph) as notices."""
    logger, handler = logging.getLogger("memgraph"), _Notices(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _Notices(logging.Handler):
    """Prints each message once."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        from memgraph.interfaces.cli.output import notice

        message = record.getMessage()
        if message not in self._said:
            self._said.add(message)
            notice(message)
