"""``reembed``: switch the store to another embedding model, and change the setting that names it."""

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
"""A text that is embedded first, to check that the model exists: an empty store would not show it."""


@click.command(cls=Command)
@click.argument("model")
@pass_settings
def reembed(settings: Settings, model: str) -> None:
    """Embed every memory with MODEL (minilm or ollama:NAME), then switch to it in one step.

    Until then recall uses the former model. An interrupted run resumes where it stopped.
    """
    from memgraph.config import load_config
    from memgraph.embedding import default_embedder, embed_each
    from memgraph.errors import EmbeddingError, StorageError
    from memgraph.journal.opening import is_store

    config = load_config({"home": settings.home, _NAME: model})
    if config.embedding_model == "none":
        raise Refused(
            "none is not a model; to stop embedding, set embedding_model to none: the store keeps its vectors"
        )
    home = Path(config.home)
    if not is_store(home, config.server):  # do not create a store at a mistyped path
        raise StorageError(
            "there is no store yet; the first `memgraph remember` creates it", path=str(config.server or home)
        )
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
        [_summary(result, is_same=before == result.model), *settled(place, "until then the store cannot be opened")],
    )


def _summary(result: Any, *, is_same: bool) -> str:
    if is_same and not result.embedded:
        text = f"The store already uses {result.model}: nothing to do"
    else:
        text = f"Embedded {count(result.embedded, 'memory', 'memories')} with {result.model}"
        if result.reused:
            text += f"; {result.reused:,} had been embedded before"
    if result.awaiting:
        text += f"; still without a vector: {result.awaiting:,} (run `memgraph embed`)"
    return f"{plain(text)}."
