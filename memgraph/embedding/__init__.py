"""Embedders: the packaged model that runs in this process, and the factory that says which one is the default.

Importing this package loads no model and neither onnxruntime nor tokenizers.
"""

from __future__ import annotations

from memgraph.embedding.onnx import MiniLMEmbedder
from memgraph.ports import Embedder

__all__ = ["MiniLMEmbedder", "default_embedder"]


def default_embedder() -> Embedder:
    """Return the embedder that a store uses when it is given none: the packaged model, loaded at its first use."""
    return MiniLMEmbedder()
