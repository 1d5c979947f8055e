"""Time limit of a run, and embedding in portions that fit into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError
from memgraph.model.memory import Vector
from memgraph.ports import Embedder

Timer = Callable[[], float]
"""Returns seconds of a monotonic clock."""


class TimeLimit:
    """The remaining time of a run, counted from its creation."""

    def __init__(self, limit_ms: float, timer: Timer) -> None:
        self._timer = timer
        self._until_s = timer() + limit_ms / 1000

    @property
    def left_s(self) -> float:
        """Remaining seconds; negative when the time is up."""
        return self._until_s - self._timer()

    @property
    def is_up(self) -> bool:
        """Whether no time is left."""
        return self.left_s <= 0


class PacedEmbedding:
    """Embeds texts in portions sized by how long the last portion took, since a model call cannot be interrupted.

    The first text is a portion by itself. A portion takes half of the remaining time, so texts that are slower than
    those before do not exceed it by much.
    """

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._model = ""
        self._text_s: float | None = None

    def embed(self, embedder: Embedder, texts: Sequence[str], limit: TimeLimit) -> list[Vector | None]:
        """Return the vectors of the first texts: as many as there is time for, at least one.

        None for a text that cannot be embedded: the store keeps it without a vector and reports it. If the model does
        not work at all, every text has None.
        """
        if embedder.name != self._model:
            self._model, self._text_s = embedder.name, None
        vectors: list[Vector | None] = []
        while len(vectors) < len(texts):
            size = self._fitting(limit) if vectors else max(1, self._fitting(limit))
            if not size:
                break
            portion = texts[len(vectors) : len(vectors) + size]
            began = self._timer()
            try:
                made = embed_each(embedder, portion)
            except EmbeddingError:
                return [*vectors, *[None] * (len(texts) - len(vectors))]
            vectors += [None if isinstance(vector, EmbeddingError) else vector for vector in made]
            self._text_s = (self._timer() - began) / len(portion)
        return vectors

    def _fitting(self, limit: TimeLimit) -> int:
        """Return how many texts the next portion may hold."""
        if self._text_s is None:
            return 1
        most = int(max(0.0, limit.left_s) / max(self._text_s, 1e-6))
        return max(most // 2, min(most, 1))
