"""Embedders: the packaged model, which runs in this process, a model of an Ollama server, none, and the factory that selects one.

Importing this package loads no model, and neither onnxruntime nor tokenizers nor Ollama's client.
"""

from memgraph.embedding.batch import embed_each as embed_each, embed_query as embed_query
from memgraph.embedding.default import (
    NoEmbedder as NoEmbedder,
    default_embedder as default_embedder,
    load_in_background as load_in_background,
    setting_of as setting_of,
)
from memgraph.embedding.ollama import OllamaEmbedder as OllamaEmbedder
from memgraph.embedding.onnx import MiniLMEmbedder as MiniLMEmbedder
