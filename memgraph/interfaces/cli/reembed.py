"""``reembed``: change the store to another embedding model, and the setting that names it."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import click

from memgraph.interfaces.cli.group import Refused
from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.output import count, emit, plain, progress

_NAME = "embedding_model"
_PROBE = "memory"
"""Embedded before anything else: an empty store would not show that there is no such model."""
_LINE = re.compile(rb"""^([ \t]*embedding_model[ \t]*=[ \t]*)("[^"\r\n]*"|'[^'\r\n]*')""", re.MULTILINE)
_TABLE = re.compile(rb"^[ \t]*\[", re.MULTILINE)


@click.command(cls=Command)
@click.argument("model")
@pass_settings
def reembed(settings: Settings, model: str) -> None:
    """Embed every memory with MODEL (minilm, or ollama: and a name), then change to it all at once.

    Until then memories are found as before; stopped, it goes on where it was.
    """
    from memgraph.config import load_config
    from memgraph.embedding import default_embedder, embed_each
    from memgraph.errors import EmbeddingError, StorageError

    config = load_config({"home": settings.home, _NAME: model})
    if config.embedding_model == "none":
        raise Refused("none is a setting, not a model: set embedding_model to none, and the store's vectors stay")
    home = Path(config.home)
    if not (home / "journal").exists():  # a name that was mistyped shall not become a store
        raise StorageError("there is no store yet; the first `memgraph remember` makes it", path=home)
    embedder = default_embedder(config)
    (probed,) = embed_each(embedder, [_PROBE])
    if isinstance(probed, EmbeddingError):
        raise probed
    with opened(settings, embedding_model="none") as memory:
        before = memory.store.vector_model.name
        with progress(settings, "embedding") as bar:
            result = memory.store.reembed(embedder, progress=bar)
    place = _settle(settings, config.embedding_model)
    emit(
        settings,
        {**result.model_dump(mode="json"), **place},
        [*_told(result, is_same=before == result.model), *_told_of(place)],
    )


def _told(result: Any, *, is_same: bool) -> list[str]:
    if is_same and not result.embedded:
        told = f"The store's vectors are {result.model}'s already: nothing to do"
    else:
        told = f"Embedded {count(result.embedded, 'memory', 'memories')} with {result.model}"
        if result.reused:
            told += f"; {result.reused:,} had been embedded before"
    if result.awaiting:
        told += f"; left without a vector: {result.awaiting:,} (run `memgraph embed`)"
    return [f"{plain(told)}."]


def _settle(settings: Settings, model: str) -> dict[str, Any]:
    """Let the settings name the model, where a file decides, and say what is to be set by hand."""
    from memgraph.config import config_path, settings_in_force

    (now,) = (one for one in settings_in_force({"home": settings.home}) if one.name == _NAME)
    place: dict[str, Any] = {_NAME: model, "written": None, "to_set": None}
    if now.value == model:
        return place
    if now.source == "environment":
        return place | {"to_set": f"MEMGRAPH_EMBEDDING_MODEL={model}"}
    path = config_path(settings.home)
    if _write(path, model):
        return place | {"written": str(path)}
    return place | {"to_set": f'{_NAME} = "{model}" in {path}'}


def _told_of(place: dict[str, Any]) -> list[str]:
    if place["written"]:
        return [f"Set {_NAME} to {plain(place[_NAME])} in {plain(place['written'])}."]
    if place["to_set"]:
        return [f"Now set {plain(place['to_set'])}: until then the store is refused."]
    return []


def _write(path: Path, model: str) -> bool:
    """Set the model in the settings file, and nothing else there; False: it could not be."""
    from memgraph.journal.files import write_private

    path = path.resolve()
    old = path.read_bytes() if path.exists() else b""
    new = with_model(old, model)
    if new is None:
        return False
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
    write_private(path, new)
    path.chmod(mode)
    return True


def with_model(text: bytes, model: str) -> bytes | None:
    """Return a settings file's text with this model, changed in one line; None if that cannot be done so."""
    table = _TABLE.search(text)
    top, rest = (text[: table.start()], text[table.start() :]) if table else (text, b"")
    value = f'"{model}"'.encode()
    if _LINE.search(top):
        new = _LINE.sub(lambda found: found[1] + value, top, count=1) + rest
    else:
        end = b"\r\n" if b"\r\n" in text else b"\n"
        gap = end if top and not top.endswith(b"\n") else b""
        new = top + gap + f"{_NAME} = ".encode() + value + end + rest
    try:
        is_so = tomllib.loads(new.decode()) == {**tomllib.loads(text.decode()), _NAME: model}
    except ValueError:  # not TOML, before or after
        return None
    return new if is_so else None
