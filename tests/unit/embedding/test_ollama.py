"""Embedding by an Ollama server: requests, accepted answers, and a store without the server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pytest_httpserver import HTTPServer

from memgraph.config import AgentMemoryConfig
from memgraph.embedding import MiniLMEmbedder, NoEmbedder, OllamaEmbedder, default_embedder, embed_each
from memgraph.errors import EmbeddingError, InvalidInputError
from tests.ollama_server import OllamaServer, refused, unused_address


@pytest.fixture
def server(httpserver: HTTPServer) -> OllamaServer:
    return OllamaServer(httpserver)


@pytest.mark.parametrize(
    ("model", "dimension", "document", "query"),
    [
        ("nomic-embed-text", 768, "search_document: ", "search_query: "),
        ("nomic-embed-text:v1.5", 768, "search_document: ", "search_query: "),
        ("embeddinggemma:300m", 768, "title: none | text: ", "task: search result | query: "),
        ("mxbai-embed-large", 1024, "", "Represent this sentence for searching relevant passages: "),
        ("dengcao/Qwen3-Embedding:0.6b-q8_0", 1024, "", "Instruct: "),
        ("qwen3-embedding:4b", 2560, "", "Instruct: "),
    ],
)
def test_the_prefixes_of_a_known_model_are_sent(
    server: OllamaServer, model: str, dimension: int, document: str, query: str
) -> None:
    server.embed = lambda body: {"embeddings": [[0.0] * (dimension - 1) + [3.0]] * len(body["input"])}
    embedder = OllamaEmbedder(model, host=server.host)
    assert (embedder.name, embedder.dimension, server.asked) == (f"ollama/{model}", dimension, [])
    assert embedder.embed(["a", "b"]).shape == (2, dimension)
    assert np.linalg.norm(embedder.embed_query("a")) == pytest.approx(1.0)
    (path, body), (_, asked) = server.asked
    assert (path, body["model"], body["input"]) == ("/api/embed", model, [f"{document}a", f"{document}b"])
    assert asked["input"][0].startswith(query)
    assert asked["input"][0].endswith("Query:a" if query == "Instruct: " else f"{query}a")


def test_the_dimension_of_an_unknown_model_is_requested_once_and_no_prefix_is_sent(server: OllamaServer) -> None:
    server.embed = lambda body: {"embeddings": [[1.0, 2.0, 2.0]] * len(body["input"])}
    embedder = OllamaEmbedder("acme/unheard-of:latest", host=server.host)
    assert (embedder.name, embedder.dimension, embedder.dimension) == ("ollama/acme/unheard-of", 3, 3)
    assert embedder.embed(["a"])[0].tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert [body["input"] for _, body in server.asked] == [["memory"], ["a"]]
    assert OllamaEmbedder("unheard-of", host=server.host, dimension=7).dimension == 7
    assert len(server.asked) == 2


def test_without_a_server_the_error_for_an_unknown_model_names_the_setting() -> None:
    with pytest.raises(EmbeddingError, match=r"ollama serve.*ollama_embedding_dimension"):
        OllamaEmbedder("unheard-of", host=unused_address()).dimension  # noqa: B018 - the access is the test


def test_many_texts_are_sent_in_batches_and_counted(server: OllamaServer) -> None:
    embedder = OllamaEmbedder("nomic-embed-text", host=server.host)
    assert embedder.embed([f"text {number}" for number in range(70)]).shape == (70, 768)
    assert [len(body["input"]) for _, body in server.asked] == [32, 32, 6]
    usage = embedder.meter.usage
    assert (usage.calls, usage.prompt_tokens, usage.failures) == (3, 70, 0)
    assert usage.seconds > 0


BAD = {
    "another length": ([[1.0, 2.0]], "2 dimensions instead of its 768"),
    "nothing": ([], "0 vectors for 1 texts"),
    "too many": ([[1.0] * 768] * 2, "2 vectors for 1 texts"),
    "an empty one": ([[]], "0 dimensions"),
    "zero": ([[0.0] * 768], "all-zero"),
    "NaN": ([[1.0] * 767 + [float("nan")]], "NaN or infinity"),
    "infinity": ([[1.0] * 767 + [float("inf")]], "NaN or infinity"),
}


@pytest.mark.parametrize("case", BAD)
def test_vectors_that_cannot_be_searched_are_refused(server: OllamaServer, case: str) -> None:
    vectors, message = BAD[case]
    server.embed = lambda _: {"embeddings": vectors}
    with pytest.raises(EmbeddingError, match=message):
        OllamaEmbedder("nomic-embed-text", host=server.host).embed(["a"])


def test_numbers_of_any_size_become_unit_vectors(server: OllamaServer) -> None:
    for size in (1e300, 1e-300):
        server.embed = lambda _, size=size: {"embeddings": [[size] * 768]}
        vector = OllamaEmbedder("nomic-embed-text", host=server.host).embed(["a"])[0]
        assert np.linalg.norm(vector) == pytest.approx(1.0)


def test_a_failing_text_does_not_affect_the_others(server: OllamaServer) -> None:
    def embed(body: dict[str, Any]) -> Any:
        if any("odd" in text for text in body["input"]):
            return refused(500, {"error": "failed to encode response: json: unsupported value: NaN"})
        return server.vectors(body)

    server.embed = embed
    made = embed_each(OllamaEmbedder("nomic-embed-text", host=server.host), ["one", "two", "odd", "four"])
    assert [isinstance(one, EmbeddingError) for one in made] == [False, False, True, False]


def test_the_setting_selects_it(tmp_path: Any) -> None:
    def made(**given: Any) -> Any:
        return default_embedder(AgentMemoryConfig(home=tmp_path, **given))

    assert isinstance(made(), MiniLMEmbedder)
    assert made() is made(), "all stores of a process share the packaged model"
    assert isinstance(made(embedding_model="none"), NoEmbedder)
    chosen = made(embedding_model="ollama:nomic-embed-text", ollama_host="http://gpu:1", ollama_embedding_dimension=5)
    assert (chosen.name, chosen.dimension) == ("ollama/nomic-embed-text", 5)
    for wrong in ("ollama:", "ollama", "ollama: "):
        with pytest.raises(InvalidInputError, match="ollama:nomic-embed-text"):
            made(embedding_model=wrong)


def test_without_the_server_memories_are_stored_and_embedded_later(open_store: Any, server: OllamaServer) -> None:
    away = OllamaEmbedder("nomic-embed-text", host=unused_address())
    store = open_store(embedder=away)
    store.insert_memory({"type": "episodic", "content": "The deploy failed because the disk was full"})
    assert store.awaiting_vectors() == 1
    store.close()
    store = open_store(embedder=OllamaEmbedder("nomic-embed-text", host=server.host))
    assert store.embed_awaiting() == 1
    assert store.awaiting_vectors() == 0
    assert store.vector_model == ("ollama/nomic-embed-text", 768)
