"""What a worker answers to a request: translates it to an operation, and the operation's answer or error to JSON."""

from __future__ import annotations

import time
import traceback
from typing import Any

from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.interfaces.worker.tenant import Tenant
from memgraph.logs import logger_of

logger = logger_of(__name__)


def answer(tenant: Tenant, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request, or its error, as the document to send. The log says what was asked, never its text."""
    started = time.perf_counter()
    kind = "?"
    try:
        kind, found = _dispatched(tenant, request)
        result, said = {"answer": found}, "answered"
    except MemGraphError as error:
        result, said = failure(type(error).__name__, str(error)), f"refused: {error.loggable}"
    except Exception as error:  # noqa: BLE001 - one request must not end the worker
        result = failure("InternalError", f"the worker failed with {type(error).__name__}; its log says where")
        said = f"failed: {type(error).__name__}, {_where(error)}"
    logger.info("%s %s in %.1f ms", kind, said, 1_000 * (time.perf_counter() - started))
    return result


def failure(kind: str, message: str) -> dict[str, Any]:
    """Return the document of an error."""
    return {"error": {"type": kind, "message": message}}


def _dispatched(tenant: Tenant, request: dict[str, Any]) -> tuple[str, Any]:
    if "operation" in request:
        return "operation", _operation(tenant, request)
    if "lookup" in request:
        return "lookup", _lookup(tenant, request)
    raise InvalidInputError("names neither an operation nor a lookup", field="request", value=sorted(request))


def _operation(tenant: Tenant, request: dict[str, Any]) -> Any:
    from memgraph.interfaces.operations import Caller, perform

    caller = Caller.parse(request.get("caller") or {})
    toolset = "core" if request.get("toolset") == "core" else "full"
    arguments = request.get("arguments")
    if not isinstance(arguments, dict):
        raise InvalidInputError("must be an object", field="arguments", value=arguments)
    found = perform(tenant.memory(), caller, str(request["operation"]), arguments, toolset=toolset)
    return found.model_dump(mode="json")


def _where(error: BaseException) -> str:
    """Return the places of a traceback without the error's message, which may quote memories."""
    return " > ".join(f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__))
