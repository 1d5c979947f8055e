"""The embedder that a store uses if it is given none."""

from __future__ import annotations

from memgraph.config import OLLAMA_PREFIX, AgentMemoryConfig
from memgraph.embedding.none import NoEmbedder
from memgraph.embedding.ollama import OLLAMA_NAME_PREFIX, OllamaEmbedder
from memgraph.embedding.onnx import MODEL_NAME, MiniLMEmbedder
from memgraph.model.model_usage import UsageMeter
from memgraph.ports import Embedder


def default_embedder(config: AgentMemoryConfig | None = None) -> Embedder:
    """Return the embedder that ``embedding_model`` names (without settings ``minilm``). Loads no model and makes no request."""
    model = config.embedding_model if config else "minilm"
    if config and model.startswith(OLLAMA_PREFIX):
        return OllamaEmbedder(
            model.removeprefix(OLLAMA_PREFIX),
            host=config.ollama_host,
            timeout_s=config.ollama_timeout_s,
            dimension=config.ollama_embedding_dimension,
            meter=UsageMeter(config.model_budget),
        )
    return NoEmbedder() if model == "none" else MiniLMEmbedder()


def load_in_background(embedder: Embedder) -> None:
    """Begin to load the packaged model in a thread; do nothing for other embedders."""
    if isinstance(embedder, MiniLMEmbedder):
        embedder.load_in_background()


def setting_of(model: str) -> str | None:
    """Return the ``embedding_model`` value that selects a model; None if there is none."""
    if model.startswith(OLLAMA_NAME_PREFIX):
        return OLLAMA_PREFIX + model.removeprefix(OLLAMA_NAME_PREFIX)
    return "minilm" if model == MODEL_NAME else None
