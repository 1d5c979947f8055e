"""Room on the disk: asked for before the engine writes, because without it the engine takes the process down."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memgraph.disk.files import room_left
from memgraph.errors import DiskFullError, GraphError

_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


def need(path: Path, needed: int) -> None:
    """Return if a file at `path` can grow by so many bytes.

    Raises
    ------
    DiskFullError
        The disk, or the largest file that this process may have, leaves less.
    """
    if (free := room_left(path)) < needed:
        raise DiskFullError(
            f"{free / 1e6:,.1f} MB of disk space are free, but the graph may need {needed / 1e6:,.0f} MB", path=path
        )


def refusal(error: OSError, path: Path) -> GraphError:
    """Return what an error of the operating system comes to."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return DiskFullError(reason, path=path)
    return GraphError(f"{path} cannot be written: {reason}")


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Turn what the operating system refuses in a block into a `GraphError`."""
    try:
        yield
    except OSError as error:
        raise refusal(error, folder) from error
