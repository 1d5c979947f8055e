"""The OpenAPI document: made from the schemas of the operations."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from memgraph.interfaces.http.access.answers import MAX_KEY_CHARS
from memgraph.interfaces.http.access.gate import NEEDS
from memgraph.interfaces.operations import OPERATIONS, Operation
from memgraph.model.base import MAX_NAME_CHARS

KEY, PROJECT, SESSION = "Idempotency-Key", "Memgraph-Project", "Memgraph-Session"
_PROBLEMS = {
    "400": "The request is not valid JSON.",
    "401": "There is no token, or it is unknown, revoked or expired.",
    "403": "The token, or the agent's permissions, do not allow this.",
    "404": "There is no such memory or other record that the caller may have.",
    "408": "The body did not arrive in time.",
    "409": "It contradicts what is stored; or the request of this key still runs: try again after the time in Retry-After.",
    "413": "The body is too large.",
    "415": "The body is not application/json.",
    "422": "An argument is invalid; the detail says which, and what is accepted.",
    "421": "The Host header names another server.",
    "429": "This client has its share of the requests; try again after the time in Retry-After.",
    "500": "An error of the server; its log says which.",
    "502": "A provider of models failed.",
    "503": "The store is busy, or the server is full or ending; try again after the time in Retry-After.",
    "507": "The disk is full.",
}


def document(*, asks: bool) -> dict[str, Any]:
    """Return the document; with `asks`, operations need a token."""
    paths: dict[str, Any] = {f"/v1/{one.name}": {"post": _posted(one)} for one in OPERATIONS.values()}
    paths["/v1/memories"] = {"get": _got(OPERATIONS["list_memories"])}
    paths["/v1/memories/{id}"] = {"get": _got(OPERATIONS["get_memory"], in_path=("id",))}
    paths["/healthz"] = {"get": _health()}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "memgraph",
            "version": version("memgraph-kuzu"),
            "description": "Long-term memory for agents. Every operation is a POST of its arguments; the answer has a text for a "
            "language model and the same as data.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Answer": _ANSWER, "Problem": _PROBLEM},
            "responses": {status: _problem(text) for status, text in _PROBLEMS.items()},
        },
    }
    if asks:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
        paths["/healthz"]["get"]["security"] = []
    return found


def _posted(one: Operation[Any]) -> dict[str, Any]:
    parameters = [
        _header(PROJECT, "Default project of the call."),
        _header(SESSION, "Session that the call belongs to."),
    ]
    if one.effect == "write":
        described = (
            "A new key for each write, such as a UUID: a request sent again with it is answered, not carried out again."
        )
        parameters.append(_header(KEY, described, most=MAX_KEY_CHARS))
    return {
        "operationId": one.name,
        "summary": one.description.partition(". ")[0].rstrip("."),
        "description": f"{one.description}\n\nNeeds a token of scope {NEEDS[one.effect]}.",
        "tags": [one.effect],
        "parameters": parameters,
        "requestBody": {"required": True, "content": {"application/json": {"schema": one.schema}}},
        "responses": _responses(),
    }


def _got(one: Operation[Any], *, in_path: tuple[str, ...] = ()) -> dict[str, Any]:
    schema = one.schema
    parameters = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path,
            "schema": {"minLength": 1, **found} if name in in_path else found,
        }
        for name, found in schema["properties"].items()
    ]
    parameters += [_header("If-None-Match", "ETag of an earlier answer.")]
    responses = _responses()
    responses["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
    responses["304"] = {"description": "Not modified."}
    return {
        "operationId": f"{one.name}_by_get",
        "summary": one.description.partition(". ")[0].rstrip("."),
        "tags": [one.effect],
        "parameters": parameters,
        "responses": responses,
    }


def _health() -> dict[str, Any]:
    schema = {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}}
    return {
        "operationId": "health",
        "summary": "Say that the server answers",
        "responses": {"200": {"description": "The server is up.", "content": {"application/json": {"schema": schema}}}},
    }


def _header(name: str, description: str, *, most: int = MAX_NAME_CHARS) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": most}
    return {"name": name, "in": "header", "required": False, "description": description, "schema": schema}


def _responses() -> dict[str, Any]:
    answer = {
        "description": "The answer.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}},
    }
    return {"200": answer, **{status: {"$ref": f"#/components/responses/{status}"} for status in _PROBLEMS}}


def _problem(text: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": text, "content": {"application/problem+json": {"schema": schema}}}


_ANSWER = {
    "type": "object",
    "required": ["text", "data"],
    "properties": {
        "text": {"type": "string", "description": "For a language model or a person."},
        "data": {"type": "object", "description": "The same for a program."},
    },
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What happened, and what to do."},
        "field": {"type": "string"},
        "error": {"type": "string"},
    },
}
