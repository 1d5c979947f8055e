"""Embeds texts with a model of an Ollama server."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.embedding.batch import PLAIN_TEXT
from memgraph.errors import EmbeddingError, ProviderError
from memgraph.model.model_usage import UsageMeter
from memgraph.model_server import TIMEOUT_S
from memgraph.ollama import OllamaConnection

BATCH_TEXTS = 32
_NO_TEXT = "(nothing)"
"""Replaces a blank text, for which servers return anything from a vector to null."""
_TASK = "Instruct: Given a question or a task, retrieve the notes that help with it\nQuery:"


class _Prefixes(NamedTuple):
    """The prefixes that a model expects before a stored text and before a query."""

    document: str = ""
    query: str = ""


OLLAMA_NAME_PREFIX = "ollama/"
"""Prefix of these models' names in the store."""
_PREFIXES = {
    "nomic-embed-text": _Prefixes("search_document: ", "search_query: "),
    "embeddinggemma": _Prefixes("title: none | text: ", "task: search result | query: "),
    "mxbai-embed-large": _Prefixes(query="Represent this sentence for searching relevant passages: "),
    "qwen3-embedding": _Prefixes(query=_TASK),
}
_DIMENSIONS = {
    "nomic-embed-text": 768,
    "embeddinggemma": 768,
    "mxbai-embed-large": 1024,
    "qwen3-embedding:0.6b": 1024,
    "qwen3-embedding:4b": 2560,
    "qwen3-embedding:8b": 4096,
}
"""Keyed by name, or by name and size if a model comes in several sizes."""


class OllamaEmbedder:
    """Embeds texts with a model of an Ollama server, with the prefixes that the model was trained on. An `Embedder`.

    Parameters
    ----------
    model : str
        Name as in ``ollama pull``: ``nomic-embed-text``, ``qwen3-embedding:0.6b``.
    host : str
        Address as for `OllamaConnection`.
    timeout_s : float
        Time limit for a batch of `BATCH_TEXTS` texts.
    dimension : int
        Length of the vectors. If 0, the known dimension of the model or, failing that, the length of the server's first vector.
    meter : UsageMeter, optional
        Counts the calls.

    Notes
    -----
    The constructor makes no request. An unreachable server raises an `EmbeddingError` at the first text, as does an answer
    with too few vectors, or one that is not finite, zero, or of another length. The server truncates texts that are too long.
    """

    def __init__(
        self,
        model: str,
        *,
        host: str = "",
        timeout_s: float = TIMEOUT_S,
        dimension: int = 0,
        meter: UsageMeter | None = None,
    ) -> None:
        self._model = model.removesuffix(":latest")
        self._connection = OllamaConnection(host, timeout_s=timeout_s)
        self._prefixes = _PREFIXES.get(_family(self._model), _Prefixes())
        self._dimension = dimension or _known_dimension(self._model)
        self._lock = threading.Lock()
        self.meter = meter or UsageMeter()

    @property
    def name(self) -> str:
        """``ollama/`` and the model."""
        return f"{OLLAMA_NAME_PREFIX}{self._model}"

    @property
    def dimension(self) -> int:
        """Length of the vectors. For an unknown model, the server is asked once.

        Raises
        ------
        EmbeddingError
            The dimension is unknown, and the server cannot be reached.
        """
        if not self._dimension:
            with self._lock:
                self._dimension = self._dimension or self._learned_dimension()
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of stored texts, shape (n, dimension), float32, L2-normalised, in their order.

        Raises
        ------
        EmbeddingError
            The server cannot be reached, or its answer is unusable.
        """
        prefix = self._prefixes.document
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), BATCH_TEXTS):
            part = texts[start : start + BATCH_TEXTS]
            vectors[start : start + len(part)] = self._unit_rows(self._asked([prefix + _plain(text) for text in part]))
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, shape (dimension,), float32, L2-normalised.

        Raises
        ------
        EmbeddingError
            As `embed` does.
        """
        vector: NDArray[np.float32] = self._unit_rows(self._asked([self._prefixes.query + _plain(text)]))[0]
        return vector

    def _asked(self, texts: list[str]) -> Sequence[Sequence[float]]:
        try:
            with self.meter.call(self.name) as tokens:
                reply = self._connection.embed(self._model, texts)
                tokens.prompt = reply.prompt_tokens or 0
        except ProviderError as error:
            raise EmbeddingError(error.loggable) from error  # the server's own message may quote the text
        if len(reply.vectors) != len(texts):
            raise EmbeddingError(f"{self.name} returned {len(reply.vectors)} vectors for {len(texts)} texts")
        return reply.vectors

    def _unit_rows(self, rows: Sequence[Sequence[float]]) -> NDArray[np.float32]:
        """Check the rows and return them as unit vectors, shape (n, dimension), float32."""
        for row in rows:
            if len(row) != self.dimension:
                raise EmbeddingError(
                    f"{self.name} returned {len(row)} dimensions instead of its {self.dimension}; if the model is right, "
                    f"set ollama_embedding_dimension to {len(row)}"
                )
        values = np.array(rows, dtype=np.float64)
        largest = np.abs(values).max(axis=1, keepdims=True)
        if not np.isfinite(largest).all():
            raise EmbeddingError(f"{self.name} returned a vector with NaN or infinity")
        if not largest.all():
            raise EmbeddingError(f"{self.name} returned an all-zero vector, which has no direction")
        values /= largest  # so that no square overflows
        unit: NDArray[np.float32] = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _learned_dimension(self) -> int:
        try:
            found = len(self._asked([PLAIN_TEXT])[0])
        except EmbeddingError as error:
            remedy = "or set ollama_embedding_dimension to store memories now and embed them later"
            raise EmbeddingError(f"{error}; {remedy}") from error
        if not found:
            raise EmbeddingError(f"{self.name} returned an empty vector; is it an embedding model?")
        return found


def _family(model: str) -> str:
    """Return a model's name without its publisher and its tag."""
    return model.rpartition("/")[2].partition(":")[0].casefold()


def _known_dimension(model: str) -> int:
    family, _, tag = model.rpartition("/")[2].casefold().partition(":")
    size = f"{family}:{tag.partition('-')[0]}"
    return _DIMENSIONS.get(size) or _DIMENSIONS.get(family, 0)


def _plain(text: str) -> str:
    """Replace what a request cannot hold (lone surrogates) or servers handle badly (blank text)."""
    return text.encode("utf-8", "replace").decode() if text.strip() else _NO_TEXT
