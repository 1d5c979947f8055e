"""All operations by name, and the one function that doors call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memgraph.errors import NotFoundError
from memgraph.interfaces.operations import analysis, handoffs, learning, reading, sessions, turns, writing
from memgraph.interfaces.operations.operation import Answer, Call, Caller, Operation, Toolset
from memgraph.interfaces.operations.tracing import memory_span

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.ports import Progress

OPERATIONS: Mapping[str, Operation[Any]] = {
    one.name: one
    for one in (
        *reading.OPERATIONS,
        *writing.OPERATIONS,
        *turns.OPERATIONS,
        *analysis.OPERATIONS,
        *learning.OPERATIONS,
        *sessions.OPERATIONS,
        *handoffs.OPERATIONS,
    )
}


def offered(toolset: Toolset = "core") -> list[Operation[Any]]:
    """Return the operations of a toolset, in a fixed order; ``full`` includes ``core``."""
    return [one for one in OPERATIONS.values() if toolset == "full" or one.toolset == "core"]


def perform(
    memory: MemGraph,
    caller: Caller,
    name: str,
    arguments: Mapping[str, Any],
    *,
    toolset: Toolset = "full",
    progress: Progress | None = None,
) -> Answer:
    """Run an operation for a caller. The one place where operations of doors are traced.

    Raises
    ------
    NotFoundError
        No operation of the toolset has this name.
    MemGraphError
        What the operation raises: an invalid argument, a refusal, a busy or damaged store.
    """
    operation = OPERATIONS.get(name)
    if operation is None or (toolset == "core" and operation.toolset != "core"):
        raise NotFoundError("operation", name, known=[one.name for one in offered(toolset)])
    call, traced = Call(memory, caller, progress), operation.traced
    if traced is None:
        return operation.perform(call, arguments)
    query = arguments.get(traced.query) if traced.query else None
    with memory_span(memory, traced.name, query=query if isinstance(query, str) else None) as describe:
        answer = operation.perform(call, arguments)
        describe(traced.ids(answer.data))
    return answer
