"""Tunes the C library's memory: zeroes what this process gets while an engine is open, and gives back what a server has freed.

The engine writes whole pages from buffers of which it fills only a part (Kùzu 0.11.3: the ends of the header, the catalogue and the
metadata), so the rest holds what the process had there before: that may be a text that was purged, or one of another store.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

_M_PERTURB = -6
"""Option of ``mallopt`` of the GNU C library: new memory is filled with the complement of a byte, freed memory with the byte; 0 is off."""
_ZEROES = 255
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
_ARENAS = 1
_MAPPED_FROM_BYTES = 64 << 10


class ZeroedMemory:
    """Counts who wants memory to be zeroed. Thread-safe.

    Parameters
    ----------
    fill : callable
        Called with 255 to have new memory zeroed, with 0 to leave it as it is.
    """

    def __init__(self, fill: Callable[[int], object]) -> None:
        self._fill = fill
        self._wanted = 0
        self._guard = threading.Lock()

    def begin(self) -> None:
        """Zero new memory from now on."""
        with self._guard:
            self._wanted += 1
            if self._wanted == 1:
                self._fill(_ZEROES)

    def end(self) -> None:
        """Stop, unless somebody else wants it too."""
        with self._guard:
            self._wanted -= 1
            if self._wanted == 0:
                self._fill(0)


def _library() -> ctypes.CDLL | None:
    """Return the C library if it is GNU's: others have no such options."""
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None


def _fill(byte: int) -> None:
    if library := _library():
        library.mallopt(_M_PERTURB, byte)


def limit_heaps() -> None:
    """Keep what threads free together, not in a heap for each few of them. Before they are started."""
    if library := _library():
        library.mallopt(_M_ARENA_MAX, _ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)


def give_back() -> None:
    """Give the system the memory that was freed."""
    if library := _library():
        library.malloc_trim(0)


zeroed_memory = ZeroedMemory(_fill)
