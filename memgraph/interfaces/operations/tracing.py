"""OpenTelemetry spans of operations on memories, named as its semantic conventions for generative AI name them.

The setting ``tracing`` turns them on. Without ``content`` a span has names, ids and counts; with it also the texts of queries and of public
memories. The text of a memory that is not public, or that was forgotten, is in no span; nor is that of a query that found a memory that is not
public, or nothing: it may be about what the agent may not have. Errors appear by their type alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from memgraph.errors import MemGraphError, MissingExtraError
from memgraph.interfaces.operations.operation import SpanName
from memgraph.logs import logger_of

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

logger = logger_of(__name__)

Describe = Callable[[Sequence[str]], None]
"""Called with the ids of the memories that were stored, changed or found, within the span."""


@contextmanager
def memory_span(memory: MemGraph, name: SpanName, *, query: str | None = None) -> Iterator[Describe]:
    """Trace a block that operates on memories; does nothing if the setting ``tracing`` is off.

    Parameters
    ----------
    query : str, optional
        What is searched for.

    Raises
    ------
    MissingExtraError
        Tracing is on, and OpenTelemetry is not installed.
    """
    mode = memory.store.config.tracing
    if mode == "off":
        yield _nothing
        return
    trace = _opentelemetry()
    tracer = trace.get_tracer("memgraph")
    attributes = {"gen_ai.operation.name": name, "gen_ai.memory.store.id": memory.store.store_id}
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as span:

        def describe(ids: Sequence[str]) -> None:
            if span.is_recording():
                span.set_attributes(_counts(ids))
                if mode == "content":
                    span.set_attributes(_texts(memory, ids, query))

        try:
            yield describe
        except BaseException as error:  # the message may quote memories: only its type is recorded
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(trace.StatusCode.ERROR)
            raise


def _nothing(_ids: Sequence[str]) -> None:
    pass


def _counts(ids: Sequence[str]) -> dict[str, Any]:
    one = {"gen_ai.memory.record.id": ids[0]} if len(ids) == 1 else {}
    return {"gen_ai.memory.record.count": len(ids), **one}


def _texts(memory: MemGraph, ids: Sequence[str], query: str | None) -> dict[str, str]:
    from memgraph.extraction.secrets import redact

    try:
        found = memory.store.read_memories(list(ids))
    except MemGraphError as error:  # what was asked for is done: it does not fail for its trace
        logger.warning("a span has no texts: %s", error.loggable)
        return {}
    public = [one for one in found if one.privacy_tier == "public"]
    shown = [one for one in public if not one.is_suppressed]
    texts = {}
    if shown:
        records = [{"id": one.id, "type": one.type, "content": redact(one.content).value} for one in shown]
        texts["gen_ai.memory.records"] = json.dumps(records, ensure_ascii=False)
    if query is not None and found and len(public) == len(found):
        texts["gen_ai.memory.query.text"] = redact(query).value
    return texts


def _opentelemetry() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        raise MissingExtraError("Traces", package="opentelemetry-api", extra="otel") from None
    return trace
