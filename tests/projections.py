"""What a store has made of its events: tests lose it, and put former states of it back."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from tests import tables

ROWS, INDEX = "rows", "index"
"""The tables of rows in the store's database, and the folder of the index."""
BOTH = (ROWS, INDEX)


def lose(home: Path, names: Collection[str] = BOTH) -> None:
    """Remove rows or index of a closed store."""
    if ROWS in names:
        with tables.database(home) as raw:
            for table in tables.ROWS:
                raw.execute(f"DELETE FROM {table}")
    if INDEX in names:
        shutil.rmtree(home / INDEX, ignore_errors=True)


def keep(home: Path, to: Path, names: Collection[str] = BOTH) -> None:
    """Put rows or index of a store in place of those of another one, which is closed."""
    lose(to, names)
    if ROWS in names:
        with tables.database(to) as raw:
            raw.commit()
            raw.execute("ATTACH ? AS other", (str(home / tables.FILE),))
            for table in reversed(tables.ROWS):
                raw.execute(f"INSERT INTO {table} SELECT * FROM other.{table}")
    if INDEX in names and (home / INDEX).exists():
        shutil.copytree(home / INDEX, to / INDEX)
