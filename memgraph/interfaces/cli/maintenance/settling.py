"""Changes one setting in the settings file, for commands that require a new value."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.base.output import plain

_TABLE = re.compile(rb"^[ \t]*\[", re.MULTILINE)


def settle(settings: Settings, name: str, value: str) -> dict[str, Any]:
    """Change a setting in the settings file, unless an environment variable overrides the file.

    Returns
    -------
    dict
        The setting; ``written`` is the file that was changed, ``to_set`` what the user must set by hand.
    """
    from memgraph.config import config_path, settings_in_force

    (now,) = (one for one in settings_in_force({"home": settings.home}) if one.name == name)
    place: dict[str, Any] = {name: value, "written": None, "to_set": None}
    if now.value == value:
        return place
    if now.source == "environment":
        return place | {"to_set": f"{now.variable}={value}"}
    path = config_path(settings.home)
    if _write(path, name, value):
        return place | {"written": str(path)}
    return place | {"to_set": f'{name} = "{value}" in {path}'}


def settled(place: dict[str, Any], otherwise: str) -> list[str]:
    """Describe what `settle` did; `otherwise` says what happens until the user has changed the setting."""
    name, value = next(iter(place.items()))
    if place["written"]:
        return [f"Set {name} to {plain(value)} in {plain(place['written'])}."]
    if place["to_set"]:
        return [f"Now set {plain(place['to_set'])}: {otherwise}."]
    return []


def _write(path: Path, name: str, value: str) -> bool:
    """Change only this setting in the file; return False if that is impossible."""
    from memgraph.disk.files import write_private

    path = path.resolve()
    old = path.read_bytes() if path.exists() else b""
    new = with_setting(old, name, value)
    if new is None:
        return False
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    write_private(path, new)
    path.chmod(mode)
    return True


def with_setting(text: bytes, name: str, value: str) -> bytes | None:
    """Return a settings file's text with this setting changed in one line, or None if that is impossible."""
    line = re.compile(rb"""^([ \t]*%b[ \t]*=[ \t]*)("[^"\r\n]*"|'[^'\r\n]*')""" % name.encode(), re.MULTILINE)
    table = _TABLE.search(text)
    top, rest = (text[: table.start()], text[table.start() :]) if table else (text, b"")
    quoted = f'"{value}"'.encode()
    if line.search(top):
        new = line.sub(lambda found: found[1] + quoted, top, count=1) + rest
    else:
        end = b"\r\n" if b"\r\n" in text else b"\n"
        gap = end if top and not top.endswith(b"\n") else b""
        new = top + gap + f"{name} = ".encode() + quoted + end + rest
    try:
        is_valid = tomllib.loads(new.decode()) == {**tomllib.loads(text.decode()), name: value}
    except ValueError:  # not TOML, before or after
        return None
    return new if is_valid else None
