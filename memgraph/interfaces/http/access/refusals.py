"""Errors of the server's own, and the HTTP status of every error."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from memgraph import errors
from memgraph.disk.files import FULL
from memgraph.journal.journal import ReplacedJournalError
from memgraph.journal.sql import FullDatabaseError


class RefusedTokenError(errors.MemGraphError):
    """A token is unknown, was revoked, or has expired. The message is the same for the first two."""


class UnavailableError(errors.MemGraphError):
    """The server cannot answer now, for a reason of its own."""


class KeyReusedError(errors.MemGraphError):
    """An idempotency key was used for another request before."""


class KeyRunningError(errors.MemGraphError):
    """The request of an idempotency key still runs."""


class PartlyStoredError(errors.MemGraphError):
    """A write failed after it had stored something. Its key keeps this as its answer.

    Attributes
    ----------
    status : int
        Status of the error that ended the write.
    document : mapping
        What happened and what was stored: the members of a problem besides its status.
    is_replayed : bool
        The request was repeated, and not carried out again.
    """

    def __init__(self, status: int, document: Mapping[str, Any], *, is_replayed: bool) -> None:
        self.status = status
        self.document = document
        self.is_replayed = is_replayed
        super().__init__(str(document["detail"]))


STATUSES: tuple[tuple[type[errors.MemGraphError], HTTPStatus], ...] = (
    (RefusedTokenError, HTTPStatus.UNAUTHORIZED),
    (errors.PermissionDeniedError, HTTPStatus.FORBIDDEN),
    (errors.NotFoundError, HTTPStatus.NOT_FOUND),
    (errors.InvalidInputError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (errors.QueryError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (KeyReusedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (KeyRunningError, HTTPStatus.CONFLICT),
    (errors.DuplicateIdError, HTTPStatus.CONFLICT),
    (errors.UndoError, HTTPStatus.CONFLICT),
    (errors.ScopeError, HTTPStatus.CONFLICT),
    (errors.DiskFullError, HTTPStatus.INSUFFICIENT_STORAGE),
    (FullDatabaseError, HTTPStatus.INSUFFICIENT_STORAGE),
    (errors.ProviderError, HTTPStatus.BAD_GATEWAY),
    (errors.BusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (UnavailableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.ClosedError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ReplacedJournalError, HTTPStatus.SERVICE_UNAVAILABLE),
)
"""The first that fits; other errors are 507 if a full disk caused them, else the server's: 500."""


def status_of(error: BaseException) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, PartlyStoredError):
        return error.status
    if found := next((status for kind, status in STATUSES if isinstance(error, kind)), None):
        return found
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in FULL:
            return HTTPStatus.INSUFFICIENT_STORAGE
        cause = cause.__cause__ or cause.__context__
    return HTTPStatus.INTERNAL_SERVER_ERROR
