"""Errors as documents of RFC 9457 (``application/problem+json``): what happened, and what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response

from memgraph import errors
from memgraph.interfaces.http.access.answers import KeyReusedError
from memgraph.interfaces.http.access.tokens import RefusedTokenError
from memgraph.interfaces.refusals import message_of

MEDIA_TYPE = "application/problem+json"
RETRY_S = "1"
STATUSES: tuple[tuple[type[errors.MemGraphError], HTTPStatus], ...] = (
    (RefusedTokenError, HTTPStatus.UNAUTHORIZED),
    (errors.PermissionDeniedError, HTTPStatus.FORBIDDEN),
    (errors.NotFoundError, HTTPStatus.NOT_FOUND),
    (errors.InvalidInputError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.QueryError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (KeyReusedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.DuplicateIdError, HTTPStatus.CONFLICT),
    (errors.UndoError, HTTPStatus.CONFLICT),
    (errors.ScopeError, HTTPStatus.CONFLICT),
    (errors.DiskFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.StorageError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.ProviderError, HTTPStatus.BAD_GATEWAY),
    (errors.BusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.ClosedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.ReadOnlyError, HTTPStatus.SERVICE_UNAVAILABLE),
)
"""The first that fits; other errors of the library are the server's: 500."""


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


def problem_of(error: errors.MemGraphError) -> Response:
    """Return an error of the library as a response. The message names no value that looks like a secret."""
    status = next((found for kind, found in STATUSES if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)
    more: dict[str, Any] = {"field": error.field} if isinstance(error, errors.InvalidInputError) else {}
    return problem(status, message_of(error), error=type(error).__name__, **more)
