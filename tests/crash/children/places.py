"""The location of a child's store, and the child's reports."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import memgraph
from memgraph.errors import EmbeddingError
from memgraph.testing import FakeClock, FakeEmbedder

DIMENSION = 16
_WRITE = os.write  # as it is before a fuse is laid


class MoodyEmbedder(FakeEmbedder):
    """An embedder that can be made to fail."""

    is_ill = False

    def embed(self, texts: Sequence[str]) -> Any:
        """Embed texts."""
        if self.is_ill:
            raise EmbeddingError("the model is ill")
        return super().embed(texts)


def opened(folder: Path, **settings: Any) -> memgraph.AgentMemoryStore:
    """Open the store of a folder."""
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys", **settings)
    return memgraph.AgentMemoryStore(config, embedder=MoodyEmbedder(DIMENSION), clock=FakeClock())


def say(word: Any) -> None:
    """Print one JSON line in one write, so that it is whole or absent."""
    _WRITE(1, json.dumps(word).encode() + b"\n")
