"""Text-only mode: no embedding model is in use, and memories are found by text alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import EmbeddingError


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
