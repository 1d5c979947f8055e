"""Requests that the OpenAPI document allows, and those that it does not: none is answered with an error of the server."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.generation import GenerationMode
from starlette.testclient import TestClient

from memgraph import MemGraph
from memgraph.interfaces.http.access.tokens import token_file
from memgraph.interfaces.http.contract import document
from memgraph.testing import FakeEmbedder, FakeKeys
from tests.interfaces.servers import client_of, gate_on

CASES = 20_000 if os.environ.get("TESTED_AT_LENGTH") else 60
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_dict(document(asks=True))
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
REQUESTS = st.one_of(
    [one.as_strategy(mode) for one in OPERATIONS for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)]
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    place: Path = tmp_path_factory.mktemp("fuzzed")
    tokens = token_file(place)
    _, secret = tokens.create("admin")
    with (
        MemGraph.open(place / "store", keys_home=place / "keys", embedder=FakeEmbedder(), keys=FakeKeys()) as memory,
        client_of(gate_on(memory, tokens), secret) as client,
    ):
        client.post("/v1/save_observation", json={"text": "The shop runs on port 8080."})
        yield client


def test_no_request_is_answered_with_an_error_of_the_server(client, capsys):
    statuses = Counter[int]()

    @settings(
        max_examples=CASES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        derandomize=CASES < 1_000,
    )
    @given(REQUESTS)
    def run(case: Any) -> None:
        made = case.as_transport_kwargs(base_url="http://localhost")
        body = {
            kind: made[name] for name, kind in (("json", "json"), ("data", "content")) if made.get(name) is not None
        }
        headers = {**dict(made.get("headers") or {}), "Authorization": client.headers["Authorization"]}
        response = client.request(made["method"], made["url"], params=made.get("params"), headers=headers, **body)
        statuses[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    run()
    if CASES > 1_000:
        with capsys.disabled():
            print(f"\n{sum(statuses.values()):,} requests: {dict(sorted(statuses.items()))}")
    assert {200, 422} <= statuses.keys()
    assert max(statuses) < 500
