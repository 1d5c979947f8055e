"""Embedders: the packaged model that runs in this process, and the factory that says which one is the default.

Importing this package loads no model and neither onnxruntime nor tokenizers.
"""

from __future__ import annotations

from memgraph.embedding.default import default_embedder
from memgraph.embedding.onnx import MiniLMEmbedder

__all__ = ["MiniLMEmbedder", "default_embedder"]
