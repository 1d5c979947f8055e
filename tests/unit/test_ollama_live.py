"""The same against a real server, where ``OLLAMA_HOST`` names one on this machine that has the models."""

from __future__ import annotations

import json
import os

import pytest

from memgraph.embedding import OllamaEmbedder
from memgraph.extraction.llm.servers import OllamaLanguageModel
from tests.ollama_server import skipped_where_absent

HOST = os.environ.get("OLLAMA_HOST", "")  # as it is before the tests put their own in its place
EMBEDDING_MODEL = os.environ.get("MEMGRAPH_LIVE_EMBEDDING_MODEL", "nomic-embed-text")
MODEL = os.environ.get("MEMGRAPH_LIVE_MODEL", "llama3.2")

pytestmark = pytest.mark.skipif(not HOST, reason="OLLAMA_HOST is not set: there is no live server to try")


def test_vectors_of_similar_texts_are_similar() -> None:
    embedder = OllamaEmbedder(EMBEDDING_MODEL, host=HOST)
    with skipped_where_absent():
        failed, bread = embedder.embed(["The build failed: the database was locked", "Rye bread needs a sourdough"])
    query = embedder.embed_query("why did the build fail?")
    assert query @ failed > query @ bread


def test_a_reply_fits_its_schema_and_comes_twice() -> None:
    model = OllamaLanguageModel(MODEL, host=HOST)
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    ask = [{"role": "user", "content": "Name a colour, as JSON."}]
    with skipped_where_absent():
        first = model.reply(ask, schema)
    assert json.loads(first.text).keys() == {"text"}
    assert first.prompt_tokens
    assert model.complete(ask, schema) == first.text
