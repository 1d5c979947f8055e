"""The REST routes: every operation as a POST of its arguments, and memories as resources. They only translate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memgraph.errors import MemGraphError
from memgraph.interfaces.http.access.gate import Gate
from memgraph.interfaces.http.access.refusals import status_of
from memgraph.interfaces.http.access.tokens import Token
from memgraph.interfaces.http.contract import KEY, PROJECT, SESSION
from memgraph.interfaces.http.metrics import ROUTE
from memgraph.interfaces.http.problems import problem, problem_of
from memgraph.interfaces.operations import OPERATIONS, Answer, Caller
from memgraph.interfaces.refusals import message_of
from memgraph.logs import logger_of

logger = logger_of(__name__)
Endpoint = Callable[[Request], Awaitable[Response]]


def routes_of(gate: Gate) -> list[Route]:
    """Return the routes under ``/v1``."""
    posted = [
        Route(f"/v1/{name}", safely(partial(_post, gate, name)), methods=["POST"], name=name) for name in OPERATIONS
    ]
    return [
        *posted,
        Route("/v1/memories", safely(partial(_list, gate)), methods=["GET"], name="list_memories"),
        Route("/v1/memories/{id}", safely(partial(_get, gate)), methods=["GET"], name="get_memory"),
        Route("/v1/{name}", safely(partial(_post, gate, None)), methods=["POST"], name="none"),  # says what there is
    ]


def safely(endpoint: Endpoint) -> Endpoint:
    """Answer errors as problems; log unexpected ones without texts of memories."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:
            if status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR:
                route = request.scope.get(ROUTE, "none")
                logger.error("%s failed: %s", route, loggable(error), exc_info=logger.isEnabledFor(10))
            return problem_of(error)

    return answer


async def _post(gate: Gate, name: str | None, request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the arguments as application/json")
    try:
        arguments = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        return problem(HTTPStatus.BAD_REQUEST, f"the body is not valid JSON: {error}")
    if not isinstance(arguments, dict):
        return problem(HTTPStatus.BAD_REQUEST, "the body must be a JSON object of arguments")
    token = token_of(request)
    named = name or request.path_params["name"]
    call = partial(gate.run, token, caller_of(token, request), named, arguments, key=request.headers.get(KEY))
    answer, is_kept = await gate.in_thread(token, named, call)
    return json_response(answer.model_dump(mode="json"), {"Idempotency-Replayed": "true"} if is_kept else {})


async def _list(gate: Gate, request: Request) -> Response:
    given = request.query_params
    arguments = {name: values[0] if len(values := given.getlist(name)) == 1 else values for name in given}
    token = token_of(request)
    call = partial(gate.run, token, caller_of(token, request), "list_memories", arguments)
    answer, _ = await gate.in_thread(token, "list_memories", call)
    following = answer.data["next_offset"]
    more = {"Link": f'</v1/memories?{urlencode({**arguments, "offset": following})}>; rel="next"'} if following else {}
    return tagged(request, answer, more)


async def _get(gate: Gate, request: Request) -> Response:
    token = token_of(request)
    arguments = {"id": request.path_params["id"], **request.query_params}
    call = partial(gate.run, token, caller_of(token, request), "get_memory", arguments)
    answer, _ = await gate.in_thread(token, "get_memory", call)
    return tagged(request, answer)


def loggable(error: Exception) -> str:
    """Return what the log says of an error: it may name files, but quotes no memory."""
    if isinstance(error, MemGraphError):
        return error.loggable
    return message_of(error) if isinstance(error, OSError) else type(error).__name__


def token_of(request: Request) -> Token:
    """Return the token with which a request was admitted."""
    token: Token = request.scope["memgraph.token"]
    return token


def caller_of(token: Token, request: Request) -> Caller:
    """Return who calls: the agent is the token's; project and session are the client's, unless the token fixes the project.

    Values of headers may be percent-encoded.

    Raises
    ------
    PermissionDeniedError
        The token fixes another project.
    """
    caller = token.caller()
    given = {
        field: unquote(request.headers[name])
        for field, name in (("project", PROJECT), ("session", SESSION))
        if name in request.headers
    }
    caller.chosen_project(given.get("project"))
    return Caller.parse({**caller.model_dump(), **given})


def tagged(request: Request, answer: Answer, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer with its ETag, or 304 if the client has it. The tag is weak: it leaves out what only the time changes."""
    stable = json.dumps(_without_time(answer.data), sort_keys=True).encode()
    tag = hashlib.sha256(stable).hexdigest()[:32]
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    kept = {"ETag": f'W/"{tag}"', "Cache-Control": "private, no-cache", "Vary": "Authorization", **(headers or {})}
    if f'"{tag}"' in known or "*" in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=kept)
    return json_response(answer.model_dump(mode="json"), kept)


def _without_time(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_time(one) for name, one in value.items() if name != "relevance_score"}
    return [_without_time(one) for one in value] if isinstance(value, list) else value


def json_response(document: Any, headers: Mapping[str, str]) -> Response:
    """Return JSON; integers beyond 64 bits and half characters, which a query may compute, are written as JSON can."""
    try:
        body = orjson.dumps(document)
    except TypeError:
        body = json.dumps(document, default=str).encode()
    return Response(body, headers=dict(headers), media_type="application/json")
