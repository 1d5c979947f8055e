"""``reembed``: change the store to another embedding model, and the setting that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress
from memgraph.interfaces.cli.maintenance.settling import settle, settled

_NAME = "embedding_model"
_PROBE = "memory"
"""Embedded before anything else: an empty store would not show that there is no such model."""


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
    place = settle(settings, _NAME, config.embedding_model)
    emit(
        settings,
        {**result.model_dump(mode="json"), **place},
        [*_told(result, is_same=before == result.model), *settled(place, "until then the store is refused")],
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
