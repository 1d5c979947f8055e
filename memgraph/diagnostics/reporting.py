"""Reporting: makes records, logs them, and hands them to the outlets that the settings name. Nothing here waits or raises.

An outlet is one thread for one receiver of records, so that no work waits for a file or a server, and no receiver for another.
The outlets belong to the process: all stores with the same settings share them. At the exit of the process each gets the time of one attempt
(``alert_timeout_s``); an alert that is not accepted by then is kept in the file of undelivered ones.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from memgraph.config import PAGERDUTY_KEY_VARIABLE, WEBHOOK_SECRET_VARIABLE, AgentMemoryConfig
from memgraph.diagnostics.delivery import (
    Outlet,
    PagerDuty,
    Sender,
    Target,
    Webhook,
    append_line,
    document_of,
    summary_of,
)
from memgraph.diagnostics.records import SEVERITIES, DiagnosticRecord, Severity
from memgraph.errors import ConfigError, MemGraphError
from memgraph.logs import DIAGNOSTICS_LOGGER, logger_of

_NS_PER_S = 1_000_000_000
SEVERITY_NUMBERS: dict[Severity, int] = {"info": 9, "warning": 13, "error": 17, "critical": 21}
"""OpenTelemetry's numbers of INFO, WARN, ERROR and FATAL."""
logger = logger_of(DIAGNOSTICS_LOGGER)
_LEVELS: dict[Severity, int] = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
DEAD_LETTERS = "dead-letters.jsonl"
MIN_SECRET_BYTES = 16
"""Shortest secret of a webhook: who reads one signed alert can try secrets offline."""


class _Place(NamedTuple):
    """What outlets depend on."""

    pid: int
    file: str
    webhook: str
    secret: str
    pagerduty_url: str
    pagerduty_key: str
    timeout_s: float
    attempts: int
    dead_letters: Path


class _Outlets(NamedTuple):
    lines: Outlet | None
    alerts: tuple[Outlet, ...]

    def all(self) -> list[Outlet]:
        return [*([self.lines] if self.lines else []), *self.alerts]


_outlets: dict[_Place, _Outlets] = {}
_lock = threading.Lock()


def check_targets(config: AgentMemoryConfig) -> None:
    """Refuse settings of a webhook whose alerts could not be signed, or could be forged."""
    if not config.alert_webhook:
        return
    secret = os.environ.get(WEBHOOK_SECRET_VARIABLE, "")
    if not secret:
        raise ConfigError(
            f"alert_webhook is set, but {WEBHOOK_SECRET_VARIABLE} is not: its receiver could not tell who sent an alert; set it to a secret "
            "that both know"
        )
    if len(secret.encode(errors="surrogateescape")) < MIN_SECRET_BYTES:
        raise ConfigError(
            f"{WEBHOOK_SECRET_VARIABLE} is shorter than {MIN_SECRET_BYTES} bytes, so it could be guessed from an alert; set it to a longer random "
            "one, which the receiver must know too: `openssl rand -hex 32` makes one"
        )


def dead_letters_of(config: AgentMemoryConfig) -> Path:
    """Return the file of undelivered alerts."""
    return Path(config.alert_dead_letters or config.keys_home / DEAD_LETTERS).expanduser().absolute()


def is_wanted(config: AgentMemoryConfig, severity: Severity) -> bool:
    """Return whether anything would receive a record of a severity: making one of each recall costs a little."""
    return bool(
        config.diagnostics_file
        or config.tracing != "off"
        or SEVERITIES.index(severity) >= SEVERITIES.index(config.alert_severity)
        or logger.isEnabledFor(_LEVELS[severity])
    )


def report(config: AgentMemoryConfig, make: Callable[[], DiagnosticRecord], *, severity: Severity) -> None:
    """Make a record, if something receives it, log it, and hand it over. What was done does not fail for a record: an invalid one is refused and logged."""
    if not is_wanted(config, severity):
        return
    try:
        record = make()
    except MemGraphError as error:
        logger.error("a diagnostic record is invalid and was refused: %s", type(error).__name__)
        return
    if logger.isEnabledFor(_LEVELS[record.severity]):
        document = document_of(record)
        logger.log(
            _LEVELS[record.severity],
            "%s: %s",
            summary_of(record),
            orjson.dumps(document).decode(),
            extra={"record": document},
        )
    if config.tracing != "off":
        log_record(record)
    outlets = _outlets_of(config)
    if outlets.lines:
        outlets.lines.put(record)
    if SEVERITIES.index(record.severity) >= SEVERITIES.index(config.alert_severity):
        for outlet in outlets.alerts:
            outlet.put(record)


def flush(timeout_s: float) -> bool:
    """Wait until all records of this process were sent, written or kept; return whether they were."""
    return all(outlet.flush(timeout_s) for found in list(_outlets.values()) for outlet in found.all())


def _outlets_of(config: AgentMemoryConfig) -> _Outlets:
    place = _Place(
        os.getpid(),  # threads do not survive a fork
        config.diagnostics_file,
        config.alert_webhook,
        os.environ.get(WEBHOOK_SECRET_VARIABLE, ""),
        config.alert_pagerduty_url,
        os.environ.get(PAGERDUTY_KEY_VARIABLE, ""),
        config.alert_timeout_s,
        config.alert_attempts,
        dead_letters_of(config),
    )
    with _lock:
        if place not in _outlets:
            _outlets[place] = _made(place)
        return _outlets[place]


def _made(place: _Place) -> _Outlets:
    lines = None
    if place.file:
        lines = Outlet("lines", partial(_append, Path(place.file).expanduser().absolute()))
    targets: list[Target] = []
    if place.webhook and place.secret:
        targets.append(Webhook(place.webhook, place.secret, timeout_s=place.timeout_s))
    if place.pagerduty_url and place.pagerduty_key:
        targets.append(PagerDuty(place.pagerduty_url, place.pagerduty_key, timeout_s=place.timeout_s))
    alerts = []
    for target in targets:
        sender = Sender(target, attempts=place.attempts, dead_letters=place.dead_letters)
        alerts.append(Outlet(target.name, sender.send, on_left=sender.give_up))
    return _Outlets(lines, tuple(alerts))


def _append(path: Path, record: DiagnosticRecord) -> None:
    try:
        append_line(path, document_of(record))
    except OSError as error:
        logger.error("a diagnostic record cannot be written: %s: %s", path, error.strerror)


@atexit.register
def _close() -> None:
    for place, found in list(_outlets.items()):
        if place.pid == os.getpid():
            for outlet in found.all():
                outlet.close(place.timeout_s)


def log_record(record: DiagnosticRecord) -> None:
    """Emit a record as the OpenTelemetry event ``memgraph.KIND``, with its fields as attributes.

    An event is a log record with a name. It goes where the program's logger provider sends it, and belongs to the trace that is
    under way. Without OpenTelemetry, or such a provider, nothing is emitted.
    """
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
