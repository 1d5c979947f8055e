"""Access to the files that are not code: ``docs/``, templates, ``schema/``, ``queries/`` and ``visualizations/``, in a wheel and in a checkout."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal

from memgraph.errors import MemGraphError

AssetFolder = Literal["agents", "docs", "schema", "queries", "visualizations"]
_INSIDE = {"agents": ("interfaces", "agents", "templates"), "docs": ("docs",)}
"""Folders in the package itself."""


def folder(name: AssetFolder) -> Traversable:
    """Return an asset folder, in the package, in a wheel's ``_assets`` or beside a checkout's package; else raise a `MemGraphError`."""
    package = files("memgraph")
    inside = _INSIDE.get(name)
    candidates = (package.joinpath(*inside),) if inside else (package / "_assets" / name, package / ".." / name)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise MemGraphError(f"the folder {name}/ is missing from this installation; reinstall memgraph-kuzu")


def texts(name: AssetFolder, suffix: str) -> dict[str, str]:
    """Return the files of a folder with this suffix as ``{stem: text}``, sorted by name."""
    found = (item for item in folder(name).iterdir() if item.name.endswith(suffix))
    return {item.name.removesuffix(suffix): item.read_text("utf-8") for item in sorted(found, key=lambda i: i.name)}


def tree(name: AssetFolder, below: str) -> dict[str, str]:
    """Return all files of a folder in an asset folder as ``{relative path: text}``, sorted by path; raise like `folder`."""
    top = folder(name) / below
    if not top.is_dir():
        raise MemGraphError(f"the folder {name}/{below}/ is missing from this installation; reinstall memgraph-kuzu")
    return dict(sorted(_files(top, "")))


def _files(top: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for item in top.iterdir():
        if item.is_dir():
            yield from _files(item, f"{prefix}{item.name}/")
        else:
            yield f"{prefix}{item.name}", item.read_text("utf-8")
