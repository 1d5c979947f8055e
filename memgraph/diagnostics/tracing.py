"""Records as OpenTelemetry spans, if the setting ``tracing`` is on and OpenTelemetry is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memgraph.diagnostics.records import DiagnosticRecord
from memgraph.diagnostics.targets import document_of

_IS_ERROR = frozenset({"error", "critical"})


def trace_record(record: DiagnosticRecord) -> None:
    """Make a span of a record, ``memgraph.KIND``, as a child of the caller's span. Without OpenTelemetry nothing is made."""
    try:
        from opentelemetry import trace
    except ImportError:  # operations on memories report it
        return
    document = document_of(record)
    span = trace.get_tracer("memgraph").start_span(
        f"memgraph.{document['kind']}", attributes=dict(_flat("memgraph.", document))
    )
    if record.severity in _IS_ERROR:
        span.set_attribute("error.type", record.subject)
        span.set_status(trace.StatusCode.ERROR)
    span.end()


def _flat(prefix: str, document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields as attributes, those of nested objects by dotted names."""
    found: list[tuple[str, Any]] = []
    for name, value in document.items():
        found += _flat(f"{prefix}{name}.", value) if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return found
