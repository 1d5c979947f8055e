"""Embedders: the packaged model that runs in this process, none at all, and the factory that says which is meant.

Importing this package loads no model and neither onnxruntime nor tokenizers.
"""

from __future__ import annotations

from memgraph.embedding.batch import embed_each, embed_query
from memgraph.embedding.default import default_embedder
from memgraph.embedding.none import NoEmbedder
from memgraph.embedding.onnx import MiniLMEmbedder

__all__ = ["MiniLMEmbedder", "NoEmbedder", "default_embedder", "embed_each", "embed_query"]
