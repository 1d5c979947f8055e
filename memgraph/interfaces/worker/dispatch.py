"""What a worker answers to a request: what a command prints or a hook injects, or the error, as JSON."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.interfaces.lookups import LOOKUPS
from memgraph.interfaces.refusals import message_of
from memgraph.interfaces.worker.place import INTERNAL, OTHER_SETTINGS, settings_mark
from memgraph.interfaces.worker.tenant import Tenant
from memgraph.logs import logger_of

logger = logger_of(__name__)


def answer(tenant: Tenant, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request, or its error, as the document to send. The log says what was asked, never its text."""
    started = time.perf_counter()
    kind = next((name for name in _KINDS if name in request), "?")
    try:
        if kind == "?":
            raise InvalidInputError(f"has none of {', '.join(_KINDS)}", field="request", value=sorted(request))
        if request.get("settings") not in (None, settings_mark()):
            return failure(OTHER_SETTINGS, "the worker was started with other settings in its environment")
        result, said = {"answer": _KINDS[kind](tenant, request)}, "answered"
    except MemGraphError as error:
        result, said = failure(type(error).__name__, message_of(error)), f"refused: {error.loggable}"
    except Exception as error:  # noqa: BLE001 - one request must not end the worker
        result = failure(INTERNAL, f"the worker failed with {type(error).__name__}; its log says where")
        said = f"failed: {type(error).__name__}, {_where(error)}"
    logger.info("%s %s in %.1f ms", kind, said, 1_000 * (time.perf_counter() - started))
    return result


def failure(kind: str, message: str) -> dict[str, Any]:
    """Return the document of an error."""
    return {"error": {"type": kind, "message": message}}


def _lookup(tenant: Tenant, request: dict[str, Any]) -> Any:
    lookup = LOOKUPS.get(str(request["lookup"]))
    if lookup is None:
        raise InvalidInputError(f"must be one of {', '.join(LOOKUPS)}", field="lookup", value=request["lookup"])
    found = lookup(tenant.memory(), _Arguments(_object(request, "arguments")))
    return {"found": found, "warnings": tenant.take_warnings()}


def _hook(tenant: Tenant, request: dict[str, Any]) -> Any:
    """Return what an agent's hook prints."""
    from memgraph.interfaces.agents.hooks import answer_hook

    is_printed = request.get("is_printed") is not False
    return answer_hook(tenant.memory(), str(request["hook"]), _object(request, "event"), is_printed=is_printed)


class _Arguments(dict[str, Any]):
    """Arguments of which a missing one is refused by its name."""

    def __missing__(self, name: str) -> Any:
        raise InvalidInputError("is missing", field=name)


def _object(request: dict[str, Any], field: str) -> dict[str, Any]:
    found = request.get(field)
    if not isinstance(found, dict):
        raise InvalidInputError("must be an object", field=field, value=found)
    return found


def _where(error: BaseException) -> str:
    """Return the places of a traceback without the error's message, which may quote memories."""
    return " > ".join(f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__))


_KINDS: Mapping[str, Callable[[Tenant, dict[str, Any]], Any]] = {
    "hook": _hook,
    "lookup": _lookup,
}
"""What a request may ask for, by the key that names it."""
