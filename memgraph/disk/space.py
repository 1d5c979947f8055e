"""Disk space, checked before the engine writes, because the engine ends the process when the disk is full."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memgraph.disk.files import free_bytes
from memgraph.errors import DiskFullError, GraphError

_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


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
    if error.errno in _FULL:
        return DiskFullError(reason, path=path)
    return GraphError(f"{path} cannot be written: {reason}")


@contextmanager
def as_graph_errors(folder: Path) -> Iterator[None]:
    """Raise errors of the operating system in the block as `GraphError`."""
    try:
        yield
    except OSError as error:
        raise graph_error(error, folder) from error
