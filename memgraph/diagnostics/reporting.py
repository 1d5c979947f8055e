"""Reporting: makes records, logs them, and hands them to the outlets that the settings name. Nothing here waits or raises.

An outlet is one thread for one receiver of records, so that no work waits for a file or a server, and no receiver for another.
The outlets belong to the process: all stores with the same settings share them. At the exit of the process each gets the time of one attempt
(``alert_timeout_s``); an alert that is not accepted by then is kept in the file of undelivered ones.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.lines import append_line
from memgraph.diagnostics.records import SEVERITIES, DiagnosticRecord, Severity
from memgraph.diagnostics.repeats import Repeats
from memgraph.diagnostics.targets import DeliveryError, PagerDuty, Webhook, document_of, new_delivery, summary_of
from memgraph.errors import ConfigError, MemGraphError
from memgraph.logs import DIAGNOSTICS_LOGGER, logger_of
from memgraph.settings.diagnostics import PAGERDUTY_KEY_VARIABLE, WEBHOOK_SECRET_VARIABLE

MAX_WAITING = 1_000
"""Records that may wait in one outlet; later ones are dropped and counted."""
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0


class Outlet:
    """A bounded queue and the thread that empties it. The thread starts with the first record.

    Parameters
    ----------
    send : callable
        Called in the thread with each record; must not raise an `Exception`.
    on_left : callable, optional
        Called with each record that was not sent when the time to close was up.
    """

    def __init__(
        self,
        name: str,
        send: Callable[[DiagnosticRecord], None],
        *,
        on_left: Callable[[DiagnosticRecord], None] = lambda _record: None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._name = name
        self._send, self._on_left = send, on_left
        self._waiting: queue.Queue[DiagnosticRecord] = queue.Queue(max_waiting)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._current: DiagnosticRecord | None = None
        self._is_closed = False
        self.dropped = 0

    def put(self, record: DiagnosticRecord) -> None:
        """Hand a record over; returns at once."""
        with self._lock:
            if self._is_closed:
                self.dropped += 1
                return
            try:
                self._waiting.put_nowait(record)
            except queue.Full:
                if self.dropped == 0:
                    logger.error("diagnostics: %s is too slow; records are dropped", self._name)
                self.dropped += 1
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"memgraph-{self._name}", daemon=True)
                self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything was sent; return whether it was."""
        until = time.monotonic() + timeout_s
        with self._waiting.all_tasks_done:
            while self._waiting.unfinished_tasks:
                if (left := until - time.monotonic()) <= 0:
                    return False
                self._waiting.all_tasks_done.wait(left)
        return True

    def close(self, timeout_s: float) -> None:
        """Wait for what is being sent, and give up what is left. Idempotent."""
        is_sent = self.flush(timeout_s)
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            current = self._current
        if is_sent:
            return
        if current is not None:
            self._on_left(current)
        while True:
            try:
                self._on_left(self._waiting.get_nowait())
            except queue.Empty:
                return

    def _run(self) -> None:
        while True:
            record = self._waiting.get()
            self._current = record
            try:
                self._send(record)
            finally:
                self._current = None
                self._waiting.task_done()


class Target(Protocol):
    """A receiver of alerts."""

    name: str

    def attempt(self, record: DiagnosticRecord, delivery: str) -> None:
        """Send once; raise `DeliveryError` if it was not accepted."""


class _UnderWay(NamedTuple):
    """The last attempt that was begun: which record, the attempt's number, and what is wrong so far."""

    record: DiagnosticRecord
    number: int
    problem: str


class Sender:
    """Sends alerts to a target, with repetitions, and writes to a file what was not accepted.

    An alert that was accepted is not sent again within an hour, however often the process reports it. The waits double from half a second to half a minute, of which a random part between half and all is used, so that many processes do not come back at once.

    Parameters
    ----------
    dead_letters : Path
        File of JSON lines: the target, the problem, the number of attempts, the record. No secret of the target is in it.
    wait : callable
        Waits some seconds.
    repeats : Repeats, optional
        What was accepted.
    """

    def __init__(
        self,
        target: Target,
        *,
        attempts: int,
        dead_letters: Path,
        wait: Callable[[float], None] = time.sleep,
        repeats: Repeats | None = None,
    ) -> None:
        self._target = target
        self._attempts = attempts
        self._dead_letters = dead_letters
        self._wait = wait
        self._accepted = repeats or Repeats()
        self._under_way: _UnderWay | None = None

    def send(self, record: DiagnosticRecord) -> None:
        """Send an alert, or keep it; do nothing if the same was accepted within the last hour."""
        if not self._accepted.is_due(record.identity):
            return
        delivery, pause_s = new_delivery(), FIRST_WAIT_S
        for number in range(1, self._attempts + 1):
            self._under_way = _UnderWay(record, number, "no answer")
            try:
                self._target.attempt(record, delivery)
                self._accepted.note(record.identity)
                return
            except DeliveryError as error:
                self._under_way = _UnderWay(record, number, str(error))
                if error.is_final or number == self._attempts:
                    self.keep(record, problem=str(error), attempts=number)
                    return
            self._wait(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, protects nothing
            pause_s = min(2 * pause_s, MAX_WAIT_S)

    def give_up(self, record: DiagnosticRecord) -> None:
        """Keep an alert for which there is no time left. Another thread may be sending it."""
        if not self._accepted.is_due(record.identity):
            return
        last = self._under_way
        if last is not None and last.record is record:
            self.keep(record, problem=f"{last.problem}; then the process ended", attempts=last.number)
        else:
            self.keep(record, problem="the process ended before the first attempt", attempts=0)

    def keep(self, record: DiagnosticRecord, *, problem: str, attempts: int) -> None:
        """Write an alert to the file of undelivered ones."""
        document: dict[str, Any] = {
            "target": self._target.name,
            "problem": problem,
            "attempts": attempts,
            "record": document_of(record),
        }
        try:
            append_line(self._dead_letters, document)
        except OSError as error:
            logger.error("diagnostics: an alert is lost: %s: %s", self._dead_letters, error.strerror)
        else:
            logger.error("diagnostics: an alert was not delivered to %s (%s); it is kept in %s", self._target.name, problem, self._dead_letters)  # fmt: skip


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
    """Refuse settings of a webhook whose alerts could not be signed, or could be forged.

    Raises
    ------
    ConfigError
        The secret is missing, or shorter than 16 bytes.
    """
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
    """Make a record, log it, and hand it over. What was done does not fail for its record: one that is invalid is refused, which is logged.

    Parameters
    ----------
    make : callable
        Returns the record; called only if something receives it.
    severity : {"info", "warning", "error", "critical"}
        Its severity.
    """
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
