"""Projections of a store, as files: what tests lose, keep and put back."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

ROWS, INDEX = "memgraph.db", "index"
BOTH = (ROWS, INDEX)


def files_of(home: Path, name: str) -> list[Path]:
    """Return the files of a projection; the log of a database that is in use counts, too."""
    return sorted(path for path in (*home.glob(f"{name}*"), *home.glob(f"{name}/*")) if path.is_file())


def lose(home: Path, names: Iterable[str] = BOTH) -> None:
    """Remove projections of a store."""
    for name in names:
        for path in files_of(home, name):
            path.unlink()


def keep(home: Path, kept: Path, names: Iterable[str] = BOTH) -> None:
    """Copy projections of a store to another folder, in place of those that are there."""
    names = list(names)
    lose(kept, names)
    for name in names:
        for path in files_of(home, name):
            if not path.name.endswith("-shm"):
                place = kept / path.relative_to(home)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
