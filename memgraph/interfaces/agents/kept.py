"""The overview of a project, rendered when its sources were last read and kept in the store's directory.

It is valid as long as nothing was written since: neither an event nor a setting. This module imports the standard library
alone, so that it can be read before the rest is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from memgraph.disk.glance import stated_in

_FOLDER = ("agents", "overviews")


def state_of(home: Path) -> str:
    """Return what changes whenever something is written to the store's journal or settings; "" if its directory has no database."""
    head = stated_in(str(home), "SELECT seq, hex(signature) FROM head")
    if head is None:
        return ""
    settings = None
    with suppress(OSError):
        settings = (home / "config.toml").stat()
    return f"{head[0]}-{head[1]}" + (f",{settings.st_size}-{settings.st_mtime_ns}" if settings else "")


class Overview(NamedTuple):
    """An overview.

    Attributes
    ----------
    text : str
    memory_ids : tuple of str
        The memories in it.
    printed : str
        What the hook of a session's start prints without a worker; "" if it has to ask one.
    """

    text: str
    memory_ids: tuple[str, ...] = ()
    printed: str = ""


def kept_overview(home: Path, project: str, agent: str) -> Overview | None:
    """Return the kept overview; None if there is none, or something was written since."""
    try:
        found = json.loads(_path(home, project, agent).read_bytes())
        if not found["state"] or found["state"] != state_of(home):
            return None
        overview = Overview(found["text"], tuple(found["memory_ids"]), found["printed"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return (
        overview
        if all(isinstance(one, str) for one in (overview.text, overview.printed, *overview.memory_ids))
        else None
    )


def keep_overview(home: Path, project: str, agent: str, overview: Overview, *, state: str) -> None:
    """Keep an overview that was rendered in a state. If the system refuses, it is rendered again next time."""
    path = _path(home, project, agent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(temporary, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            json.dump({"state": state, **overview._asdict()}, file)
        temporary.replace(path)


def _path(home: Path, project: str, agent: str) -> Path:
    name = hashlib.sha256(f"{agent}\x1f{project}".encode("utf-8", "replace")).hexdigest()[:32]
    return home.joinpath(*_FOLDER, f"{name}.json")
