"""A glance at a store's database, or a work tree, by those who must not wait for the rest to be loaded. Standard library only."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

_DATABASE = "memgraph.db"
_WAIT_S = 1.0
_MAX_NOTE = 10_000
"""The most characters that are read of a file ``.git``."""


def stated_in(home: str, statement: str) -> tuple[Any, ...] | None:
    """Return the first row of a statement on the database in a store's directory; None if there is none, or it cannot be read."""
    path = os.path.join(home, _DATABASE)
    if not os.path.isfile(path):
        return None
    import sqlite3  # only where there is a store

    uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    for mode in ("rw", "ro&immutable=1"):  # a folder that may not be written holds no log that is still to be read
        try:
            with closing(sqlite3.connect(f"{uri}?mode={mode}", uri=True, timeout=_WAIT_S)) as connection:
                found: tuple[Any, ...] | None = connection.execute(statement).fetchone()
                return found
        except sqlite3.Error:
            continue
    return None


def work_tree_name(path: str) -> str | None:
    """Return the name of the git work tree that an absolute path is in; None if it is in none, or cannot be read.

    A linked work tree (``git worktree add``) has the name of the repository that it belongs to.
    """
    from pathlib import Path  # a hook's start does not wait for it

    try:
        folder = Path(path).resolve()
        top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
        return None if top is None else _repository_of(top) or top.name
    except (OSError, ValueError):
        return None


def _repository_of(top: Any) -> str:
    """Return the name of the repository that a linked work tree belongs to by its file ``.git``; "" for any other work tree."""
    if not (top / ".git").is_file():
        return ""
    with (top / ".git").open(encoding="utf-8") as file:
        folder = (top / file.readline(_MAX_NOTE).removeprefix("gitdir:").strip()).resolve()
    if not (folder / "commondir").is_file():
        return ""  # a submodule's
    common = folder.parent.parent
    return str(common.parent.name if common.name.startswith(".") else common.name.removesuffix(".git"))
