"""The contract of embedders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from memgraph.embedding import MiniLMEmbedder, NoEmbedder, OllamaEmbedder
from memgraph.errors import EmbeddingError
from memgraph.ports import Embedder
from memgraph.testing import FakeEmbedder
from tests.ollama_server import OllamaServer


class ServedEmbedder(OllamaEmbedder):
    """An Ollama embedder for the protocol fake at `served_at`."""

    served_at = ""

    def __init__(self) -> None:
        super().__init__("nomic-embed-text", host=self.served_at)


EMBEDDERS: list[Callable[[], Embedder]] = [FakeEmbedder, MiniLMEmbedder, ServedEmbedder]
TEXTS = [
    "The build failed because the database was locked",
    "the build failed because of a locked database",
    "Rye bread needs a sourdough starter",
    "x",
    "",
    "   \n\t ",
    "数据库 Café \U0001f600 \x00 \u200b",
    "word " * 2_000,
    "\ud800 a lone surrogate",
]


@pytest.fixture(scope="module", params=EMBEDDERS, ids=lambda make: make.__name__)
def any_embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param is ServedEmbedder:
        ServedEmbedder.served_at = OllamaServer(request.getfixturevalue("make_httpserver")).host
    made: Embedder = request.param()
    return made


class TestEmbedder:
    def test_it_is_one(self, any_embedder: Embedder) -> None:
        assert isinstance(any_embedder, Embedder)
        assert any_embedder.name
        assert any_embedder.dimension > 1

    def test_shape_and_type(self, any_embedder: Embedder) -> None:
        vectors = any_embedder.embed(TEXTS)
        assert vectors.shape == (len(TEXTS), any_embedder.dimension)
        assert vectors.dtype == np.float32
        query = any_embedder.embed_query(TEXTS[0])
        assert query.shape == (any_embedder.dimension,)
        assert query.dtype == np.float32

    def test_no_texts(self, any_embedder: Embedder) -> None:
        vectors = any_embedder.embed([])
        assert vectors.shape == (0, any_embedder.dimension)
        assert vectors.dtype == np.float32

    def test_every_vector_is_finite_and_of_unit_length(self, any_embedder: Embedder) -> None:
        vectors = any_embedder.embed(TEXTS)
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)

    def test_rows_are_in_the_order_of_the_texts(self, any_embedder: Embedder) -> None:
        forwards, backwards = any_embedder.embed(TEXTS), any_embedder.embed(TEXTS[::-1])
        assert forwards.tobytes() == backwards[::-1].tobytes()

    def test_a_texts_vector_has_the_same_bytes_alone_and_in_a_batch(self, any_embedder: Embedder) -> None:
        together = any_embedder.embed(TEXTS)
        for text, vector in zip(TEXTS, together, strict=True):
            assert any_embedder.embed([text])[0].tobytes() == vector.tobytes()

    def test_another_instance_agrees(self, any_embedder: Embedder) -> None:
        another: Embedder = type(any_embedder)()
        assert another.embed(TEXTS[:3]).tobytes() == any_embedder.embed(TEXTS[:3]).tobytes()

    def test_similar_texts_are_similar(self, any_embedder: Embedder) -> None:
        locked, paraphrase, bread = any_embedder.embed(TEXTS[:3])
        query = any_embedder.embed_query("why did the build fail: database locked")
        assert locked @ paraphrase > locked @ bread
        assert query @ locked > query @ bread

    def test_the_caller_may_change_results(self, any_embedder: Embedder) -> None:
        first = any_embedder.embed_query(TEXTS[0])
        kept = first.copy()
        first[:] = 0
        assert np.array_equal(any_embedder.embed_query(TEXTS[0]), kept)

    def test_any_sequence_of_texts_is_accepted(self, any_embedder: Embedder) -> None:
        assert np.array_equal(any_embedder.embed(tuple(TEXTS[:2])), any_embedder.embed(TEXTS[:2]))


class TestWithoutAModel:
    """The embedder of text-only mode fulfils the rest of the contract: it refuses every text with the port's error."""

    def test_it_is_one(self) -> None:
        embedder = NoEmbedder()
        assert isinstance(embedder, Embedder)
        assert embedder.name
        assert embedder.dimension == 0

    @pytest.mark.parametrize("text", TEXTS)
    def test_every_text_is_refused(self, text: str) -> None:
        with pytest.raises(EmbeddingError, match="embedding_model"):
            NoEmbedder().embed([text])
        with pytest.raises(EmbeddingError, match="embedding_model"):
            NoEmbedder().embed_query(text)

    def test_no_texts(self) -> None:
        vectors = NoEmbedder().embed([])
        assert vectors.shape == (0, 0)
        assert vectors.dtype == np.float32
