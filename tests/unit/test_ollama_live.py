"""The same against a real server, where ``OLLAMA_HOST`` names one on this machine that has the models."""

from __future__ import annotations

import json
import os

import pytest

from memgraph.embedding import OllamaEmbedder
from memgraph.errors import EmbeddingError, ProviderError
from memgraph.extraction import OllamaLanguageModel
from memgraph.extraction.rewriting import merged_text

HOST = os.environ.get("OLLAMA_HOST", "")  # as it is before the tests put their own in its place
EMBEDDING_MODEL = os.environ.get("MEMGRAPH_LIVE_EMBEDDING_MODEL", "nomic-embed-text")
MODEL = os.environ.get("MEMGRAPH_LIVE_MODEL", "llama3.2")

pytestmark = pytest.mark.skipif(not HOST, reason="OLLAMA_HOST is not set: there is no live server to try")


def test_vectors_of_similar_texts_are_similar() -> None:
    embedder = OllamaEmbedder(EMBEDDING_MODEL, host=HOST)
    try:
        failed, bread = embedder.embed(["The build failed: the database was locked", "Rye bread needs a sourdough"])
    except EmbeddingError as error:
        pytest.skip(str(error))
    query = embedder.embed_query("why did the build fail?")
    assert query @ failed > query @ bread


def test_a_reply_fits_its_schema_and_comes_twice() -> None:
    model = OllamaLanguageModel(MODEL, host=HOST)
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    ask = [{"role": "user", "content": "Name a colour, as JSON."}]
    try:
        first = model.reply(ask, schema)
    except ProviderError as error:
        pytest.skip(str(error))
    assert json.loads(first.text).keys() == {"text"}
    assert first.prompt_tokens
    assert model.complete(ask, schema) == first.text
    assert merged_text(model, "The import failed on a byte order mark.", "Strip the mark before the import.").text
