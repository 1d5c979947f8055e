"""Embedders: the packaged model, which runs in this process, a model of an Ollama server, none, and the factory that selects one.

Importing this package loads no model, and neither onnxruntime nor tokenizers nor Ollama's client.
"""

from __future__ import annotations

from memgraph.embedding.batch import embed_each, embed_query
from memgraph.embedding.default import default_embedder, load_in_background, setting_of
from memgraph.embedding.none import NoEmbedder
from memgraph.embedding.ollama import OllamaEmbedder
from memgraph.embedding.onnx import MiniLMEmbedder

__all__ = [
    "MiniLMEmbedder",
    "NoEmbedder",
    "OllamaEmbedder",
    "default_embedder",
    "embed_each",
    "embed_query",
    "load_in_background",
    "setting_of",
]
