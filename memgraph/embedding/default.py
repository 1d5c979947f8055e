"""The embedder that a store uses if it is given none, which may be that of text-only mode: memories are then found by text alone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from memgraph.config import OLLAMA_PREFIX, AgentMemoryConfig
from memgraph.embedding.ollama import OLLAMA_NAME_PREFIX, OllamaEmbedder
from memgraph.embedding.onnx import MODEL_NAME, MiniLMEmbedder
from memgraph.errors import EmbeddingError
from memgraph.model.model_usage import UsageMeter
from memgraph.ports import Embedder


class NoEmbedder:
    """Embeds nothing and loads nothing: the `Embedder` of text-only mode (``embedding_model = "none"``).

    Its dimension is 0, which shows callers that vectors are not wanted rather than unavailable. A request for a vector fails as
    with a model that cannot be loaded, so text-only mode and a failing model follow the same code path.
    """

    @property
    def name(self) -> str:
        """``none``."""
        return "none"

    @property
    def dimension(self) -> int:
        """0: it makes no vectors."""
        return 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return shape (0, 0) for no texts.

        Raises
        ------
        EmbeddingError
            `texts` is not empty.
        """
        if len(texts):
            raise _refusal()
        return np.empty((0, 0), dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:  # noqa: ARG002 - the port's signature
        """Raise an error.

        Raises
        ------
        EmbeddingError
            Always.
        """
        raise _refusal()


def _refusal() -> EmbeddingError:
    return EmbeddingError(
        "no embedding model is in use (embedding_model is none); set embedding_model to minilm, or "
        "MEMGRAPH_EMBEDDING_MODEL=minilm, to use the packaged one"
    )


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
    return NoEmbedder() if model == "none" else _packaged(os.getpid())


@cache
def _packaged(_pid: int) -> MiniLMEmbedder:
    """Return the packaged model, which all stores of a process share: it takes 250 MB. A forked process has its own."""
    return MiniLMEmbedder()


def load_in_background(embedder: Embedder) -> None:
    """Begin to load the packaged model in a thread; do nothing for other embedders."""
    if isinstance(embedder, MiniLMEmbedder):
        embedder.load_in_background()


def setting_of(model: str) -> str | None:
    """Return the ``embedding_model`` value that selects a model; None if there is none."""
    if model.startswith(OLLAMA_NAME_PREFIX):
        return OLLAMA_PREFIX + model.removeprefix(OLLAMA_NAME_PREFIX)
    return "minilm" if model == MODEL_NAME else None
