"""Which embedder a store uses when it is given none."""

from __future__ import annotations

from memgraph.config import EmbeddingModel
from memgraph.embedding.none import NoEmbedder
from memgraph.embedding.onnx import MiniLMEmbedder
from memgraph.ports import Embedder


def default_embedder(model: EmbeddingModel = "minilm") -> Embedder:
    """Return the embedder that the setting names: ``minilm``, loaded at its first use, or ``none``."""
    return NoEmbedder() if model == "none" else MiniLMEmbedder()
