"""Access to the files that are not code: ``docs/``, ``schema/``, ``queries/`` and ``visualizations/``, in a wheel and in a checkout."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

from memgraph.errors import MemGraphError

AssetFolder = Literal["docs", "schema", "queries", "visualizations"]


def folder(name: AssetFolder) -> Traversable:
    """Return one of the asset folders.

    The package itself holds ``docs``. A wheel carries the others under ``memgraph/_assets``; a checkout has them beside the package.

    Raises
    ------
    MemGraphError
        The installation is incomplete.
    """
    package = files("memgraph")
    candidates = (package / "docs",) if name == "docs" else (package / "_assets" / name, package / ".." / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise MemGraphError(f"the folder {name}/ is missing from this installation; reinstall memgraph-kuzu")


def texts(name: AssetFolder, suffix: str) -> dict[str, str]:
    """Return the files of a folder with this suffix as ``{stem: text}``, sorted by name."""
    found = (item for item in folder(name).iterdir() if item.name.endswith(suffix))
    return {item.name.removesuffix(suffix): item.read_text("utf-8") for item in sorted(found, key=lambda i: i.name)}
