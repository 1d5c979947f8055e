"""No embedding model, on purpose: memories are found by text alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import EmbeddingError


class NoEmbedder:
    """Embeds nothing and loads nothing: the `Embedder` of text-only mode (``embedding_model = "none"``).

    Its dimension is 0, by which callers know that vectors are not wanted rather than not to be had. Whatever asks it for
    one is refused as by a model that cannot be loaded, so text-only mode and a failing model take the same way.
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
            There is a text to embed.
        """
        if len(texts):
            raise _refusal()
        return np.empty((0, 0), dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:  # noqa: ARG002 - the port's signature
        """Refuse.

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
