"""Making a great many rows at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

BULK_FROM = 1_000
"""From so many memories or events on."""


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
