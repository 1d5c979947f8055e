"""Making a great many rows at once."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

BULK_FROM = 1_000
"""From so many memories or events on."""
_TURN_S = 0.0005
_lock = threading.Lock()
_before: list[float] = []
"""The interpreter's own interval, once for each block that has shortened it."""


@contextmanager
def in_bulk() -> Iterator[None]:
    """Make many rows in a block: quickly, and so that other threads go on."""
    with no_collections(), short_turns():
        yield


@contextmanager
def no_collections() -> Iterator[None]:
    """Leave the collector of reference cycles off for a block: it would walk over all the rows again and again.

    Rows hold no cycles, so nothing waits for it. It is of the whole process, and is left alone where somebody has
    switched it off already.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def short_turns() -> Iterator[None]:
    """Let other threads have the interpreter sooner while a block keeps it busy.

    A recall gives it away at each step over an array, some hundred times, and waits for it 5 ms each time: its latency beside a
    bulk insert falls to a tenth, and the insert takes no longer. The interval is of the whole process.
    """
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(_TURN_S, _before[0]))
    try:
        yield
    finally:
        with _lock:
            interval = _before.pop()
            if not _before:
                sys.setswitchinterval(interval)
