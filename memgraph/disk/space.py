"""Disk space: what a store takes, and what is free before the engine writes, which ends the process when the disk is full."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memgraph.disk.files import free_bytes
from memgraph.errors import DiskFullError, GraphError

FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EDQUOT})
"""Errors of the operating system that mean there is no space."""


def require_free(path: Path, needed: int) -> None:
    """Check that a file at `path` can grow by `needed` bytes.

    Raises
    ------
    DiskFullError
        The disk, or the process's limit on file sizes, allows less.
    """
    if (free := free_bytes(path)) < needed:
        raise DiskFullError(
            f"{free / 1e6:,.1f} MB of disk space are free, but the graph may need {needed / 1e6:,.0f} MB", path=path
        )


def graph_error(error: OSError, path: Path) -> GraphError:
    """Return the `GraphError` for an error of the operating system."""
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return DiskFullError(reason, path=path)
    return GraphError(f"{path} cannot be written: {reason}")


@contextmanager
def as_graph_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the operating system in the block as `GraphError`."""
    try:
        yield
    except OSError as error:
        raise graph_error(error, folder) from error


def size_on_disk(folder: Path) -> int:
    """Return the number of bytes of all files under a folder."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # another process has just removed it
                total += (Path(parent) / name).stat().st_size
    return total


def beyond(size: int, max_memory_mb: int) -> str | None:
    """Return a sentence if a store's size is above the setting `max_memory_mb`; 0 is no limit."""
    if not max_memory_mb or size <= max_memory_mb * 1_000_000:
        return None
    return f"the store takes {size / 1e6:,.1f} MB, more than max_memory_mb = {max_memory_mb:,}"
