"""The git work tree that a directory is in. Standard library only: agents' hooks import it."""

from __future__ import annotations

from pathlib import Path


def work_tree_name(path: str) -> str | None:
    """Return the name of the git work tree that an absolute path is in; None if it is in none, or cannot be read."""
    try:
        folder = Path(path).resolve()
        return next((one.name for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    except (OSError, ValueError):
        return None
