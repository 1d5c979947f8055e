"""Errors as documents of RFC 9457 (``application/problem+json``): what happened, and what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response

from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.interfaces.http.access.refusals import KeyRunningError, PartlyStoredError, status_of
from memgraph.interfaces.refusals import remote_message_of

MEDIA_TYPE = "application/problem+json"
RETRY_S = "1"


def problem(status: int, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> Response:
    """Return a response that says what happened and what to do."""
    title = HTTPStatus(status).phrase
    body = orjson.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail, **more})
    given = dict(headers or {})
    if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        given.setdefault("Retry-After", RETRY_S)
    if status == HTTPStatus.UNAUTHORIZED:
        given["WWW-Authenticate"] = 'Bearer realm="memgraph"'
    return Response(body, status, given, MEDIA_TYPE)


def problem_of(error: Exception) -> Response:
    """Return an error as a response. The message names no value that looks like a secret, and no directory of the server."""
    if isinstance(error, PartlyStoredError):
        replayed = {"Idempotency-Replayed": "true"} if error.is_replayed else {}
        return problem(error.status, headers=replayed, **error.document)
    more: dict[str, Any] = {"field": error.field} if isinstance(error, InvalidInputError) else {}
    headers = {"Retry-After": RETRY_S} if isinstance(error, KeyRunningError) else {}
    said = remote_message_of(error)
    detail = said if isinstance(error, (MemGraphError, OSError)) else f"the request {said}"
    return problem(status_of(error), detail, headers=headers, error=type(error).__name__, **more)
