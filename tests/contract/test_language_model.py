"""The contract of language models."""

from __future__ import annotations

import json

import pytest
from pytest_httpserver import HTTPServer

from memgraph.errors import ProviderError
from memgraph.extraction.llm.asking import Budgeted
from memgraph.extraction.llm.servers import ChatCompletionsModel, OllamaLanguageModel
from memgraph.ports import LanguageModel
from memgraph.testing import FakeLanguageModel
from tests.chat_server import ChatServer
from tests.ollama_server import OllamaServer, refused

MESSAGES = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "数据库 Café \U0001f600"}]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
REPLY = '{"text": "数据库 é"}'


@pytest.fixture(params=["fake", "ollama", "openai", "budgeted"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def made(kind: str, http: HTTPServer, *, fails: bool = False) -> LanguageModel:
    if kind == "ollama":
        server = OllamaServer(http)
        server.replies = [refused(500, {"error": "no"}) if fails else REPLY]
        return OllamaLanguageModel("llama3.2", host=server.host)
    if kind == "openai":
        chat = ChatServer(http)
        chat.replies = [refused(500, {"error": {"message": "no"}}) if fails else REPLY]
        return ChatCompletionsModel("m", base_url=chat.base_url)
    fake = FakeLanguageModel([ProviderError("no", model="fake")] if fails else REPLY)
    return fake if kind == "fake" else Budgeted(fake)


@pytest.fixture
def model(kind: str, httpserver: HTTPServer) -> LanguageModel:
    return made(kind, httpserver)


def test_it_is_one(model: LanguageModel) -> None:
    assert isinstance(model, LanguageModel)


def test_it_replies_with_text_that_is_json_where_a_schema_is_given(model: LanguageModel) -> None:
    assert json.loads(model.complete(MESSAGES, SCHEMA)) == {"text": "数据库 é"}
    assert isinstance(model.complete(MESSAGES), str)


def test_equal_questions_have_equal_replies(model: LanguageModel) -> None:
    assert model.complete(MESSAGES, SCHEMA) == model.complete(MESSAGES, SCHEMA)


def test_its_input_is_left_unchanged(model: LanguageModel) -> None:
    before = json.dumps([MESSAGES, SCHEMA])
    model.complete(tuple(MESSAGES), SCHEMA)
    assert json.dumps([MESSAGES, SCHEMA]) == before


def test_it_fails_with_the_ports_error(kind: str, httpserver: HTTPServer) -> None:
    with pytest.raises(ProviderError):
        made(kind, httpserver, fails=True).complete(MESSAGES, SCHEMA)
