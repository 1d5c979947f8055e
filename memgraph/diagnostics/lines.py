"""Files of JSON lines: private, appended to, of bounded size."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import write_all

MAX_BYTES = 16 << 20
"""A file that has reached this size is renamed to ``NAME.1``, which replaces an earlier one."""


def predecessor_of(path: Path) -> Path:
    """Return the name that a file gets when it is full."""
    return path.with_name(f"{path.name}.1")


def append_line(path: Path, document: Mapping[str, Any], *, max_bytes: int = MAX_BYTES) -> None:
    """Append one document as a line of JSON, in one write. A new file is readable by its owner alone.

    Raises
    ------
    OSError
        The system refuses it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        if path.stat().st_size >= max_bytes:
            path.replace(predecessor_of(path))
    except FileNotFoundError:
        pass
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        write_all(descriptor, orjson.dumps(document) + b"\n")
    finally:
        os.close(descriptor)
