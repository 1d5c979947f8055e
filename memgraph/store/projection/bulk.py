"""Creation of many rows at once."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

BULK_FROM = 1_000
"""Number of memories or events from which a write counts as bulk."""
_TURN_S = 0.0005
_lock = threading.Lock()
_before: list[float] = []
"""The interpreter's original switch interval, one entry for each block that has shortened it."""


@contextmanager
def in_bulk() -> Iterator[None]:
    """Create many rows in a block: quickly, and without blocking other threads."""
    with no_collections(), short_switch_interval():
        yield


@contextmanager
def no_collections() -> Iterator[None]:
    """Disable the cyclic garbage collector for a block: it would scan all the rows again and again.

    Rows contain no cycles, so nothing is missed. The switch is process-wide, and is not changed if collection is disabled already.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Shorten the interpreter's thread switch interval for a block that keeps it busy.

    A recall releases the interpreter at each array operation, some hundred times, and would wait 5 ms each time: its
    latency beside a bulk insert falls to a tenth, and the insert takes no longer. The interval is process-wide.
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
