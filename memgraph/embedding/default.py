"""Which embedder a store uses when it is given none."""

from __future__ import annotations

from memgraph.embedding.onnx import MiniLMEmbedder
from memgraph.ports import Embedder


def default_embedder() -> Embedder:
    """Return the packaged model, loaded at its first use."""
    return MiniLMEmbedder()
