"""Records as OpenTelemetry log records, if the setting ``tracing`` is on and OpenTelemetry is installed.

A record is something that happened, not something that took time: OpenTelemetry calls that an event, which is a log record with a name. It
goes where the program's logger provider sends it, and belongs to the trace that is under way. Without such a provider nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memgraph.diagnostics.records import DiagnosticRecord, Severity
from memgraph.diagnostics.targets import document_of, summary_of

_NS_PER_S = 1_000_000_000
SEVERITY_NUMBERS: dict[Severity, int] = {"info": 9, "warning": 13, "error": 17, "critical": 21}
"""OpenTelemetry's numbers of INFO, WARN, ERROR and FATAL."""


def log_record(record: DiagnosticRecord) -> None:
    """Emit a record as the event ``memgraph.KIND``, with its fields as attributes. Without OpenTelemetry nothing is emitted."""
    try:
        from opentelemetry._logs import LogRecord, SeverityNumber, get_logger
    except ImportError:  # operations on memories report it
        return
    document = document_of(record)
    number = SeverityNumber(SEVERITY_NUMBERS[record.severity])
    emitted = LogRecord(
        timestamp=int(datetime.fromisoformat(record.at).timestamp() * 1_000) * (_NS_PER_S // 1_000),
        severity_number=number,
        severity_text=record.severity,
        event_name=f"memgraph.{document['kind']}",
        body=summary_of(record),
        attributes=dict(_flat("memgraph.", document)),
    )
    get_logger("memgraph").emit(emitted)


def _flat(prefix: str, document: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the fields as attributes, those of nested objects by dotted names."""
    found: list[tuple[str, Any]] = []
    for name, value in document.items():
        found += _flat(f"{prefix}{name}.", value) if isinstance(value, Mapping) else [(f"{prefix}{name}", value)]
    return found
