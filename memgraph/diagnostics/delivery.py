"""Delivery of diagnostic records: to the log, to files of JSON lines, and as alerts to a webhook and PagerDuty. Nothing here waits or raises.

An outlet is one thread for one receiver of records, so that no work waits for a file or a server, and no receiver for another.
The outlets belong to the process: all stores with the same settings share them. At the exit of the process each gets the time of one attempt
(``alert_timeout_s``); an alert that is not accepted by then is kept in the file of undelivered ones.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import hmac
import logging
import os
import queue
import random
import stat
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import orjson

from memgraph.config import PAGERDUTY_KEY_VARIABLE, WEBHOOK_SECRET_VARIABLE, AgentMemoryConfig
from memgraph.diagnostics.records import SEVERITIES, DiagnosticRecord, Severity
from memgraph.disk.files import write_all
from memgraph.errors import ConfigError, MemGraphError
from memgraph.logs import DIAGNOSTICS_LOGGER, logger_of
from memgraph.model_server import Exchange, ResponseTooLongError, client_options

MAX_BYTES = 16 << 20
"""A file that has reached this size is renamed to ``NAME.1``, which replaces an earlier one."""
LOCK_TIMEOUT_S = 2.0
"""A process that was stopped while it had the lock must not stop the others."""
_POLL_S = 0.002
logger = logger_of(DIAGNOSTICS_LOGGER)


def predecessor_of(path: Path) -> Path:
    """Return the name that a file gets when it is full."""
    return path.with_name(f"{path.name}.1")


def append_line(
    path: Path, document: Mapping[str, Any], *, max_bytes: int = MAX_BYTES, timeout_s: float = LOCK_TIMEOUT_S
) -> None:
    """Append one document as a line of JSON, in one write, to a private file; after the timeout without the lock that others hold."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line, until = orjson.dumps(document) + b"\n", time.monotonic() + timeout_s
    while not _is_written(path, line, max_bytes, until):
        pass


def _is_written(path: Path, line: bytes, max_bytes: int, until: float) -> bool:
    """Write a line to the file that has a name now; False if it must be opened again, because it was renamed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        is_locked, status = _is_locked(descriptor, until), os.fstat(descriptor)
        is_file = stat.S_ISREG(status.st_mode)
        if is_locked and not _has_name(status, path):
            return False
        if is_locked and is_file and status.st_size >= max(max_bytes, 1) and _is_renamed(path):
            return False
        try:
            write_all(descriptor, line)
        except OSError:
            if is_locked and is_file:  # half a line would spoil the next one, too
                os.ftruncate(descriptor, status.st_size)
            raise
        return True
    finally:
        with suppress(OSError):  # where there are no locks; a child process that was forked meanwhile would keep one
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _is_renamed(path: Path) -> bool:
    """Rename a full file; False if the system refuses: then it grows further, which is better than losing lines."""
    try:
        path.replace(predecessor_of(path))
    except OSError:
        return False
    return True


def _is_locked(descriptor: int, until: float) -> bool:
    """Lock a file; False if others have it for too long. A file system without locks counts as locked."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_S)
        except OSError:
            return True
        else:
            return True


def _has_name(status: os.stat_result, path: Path) -> bool:
    try:
        return os.path.samestat(status, path.stat())
    except FileNotFoundError:
        return False


_MAX_RESPONSE_BYTES = 65_536
_TEMPORARY = frozenset({408, 425, 429})
"""Refusals that may pass; of the others below 500 a repetition changes nothing."""


class DeliveryError(MemGraphError):
    """A target did not accept an alert; another attempt would not help if it `is_final`. Not public: the attempt is repeated, or the alert kept."""

    _names_places_only = True

    def __init__(self, problem: str, *, is_final: bool) -> None:
        self.is_final = is_final
        super().__init__(problem)


@dataclass(frozen=True)
class Webhook:
    """Posts records as JSON, signed.

    The header ``X-Memgraph-Signature`` is ``v1=`` and the HMAC-SHA256, in hexadecimal, of the bytes ``TIMESTAMP.ID.BODY`` under the secret:
    the timestamp (Unix seconds) and the id are in ``X-Memgraph-Timestamp`` and ``X-Memgraph-Delivery``. The attempts of one alert share
    the id, so a receiver can drop repetitions.
    """

    name = "webhook"

    address: str = field(repr=False)
    secret: str = field(repr=False)
    _: KW_ONLY
    timeout_s: float
    now: Callable[[], float] = time.time

    def attempt(self, record: DiagnosticRecord, delivery: str) -> None:
        """Post a record."""
        body, timestamp = orjson.dumps(document_of(record)), str(int(self.now()))
        signed = b".".join((timestamp.encode(), delivery.encode(), body))
        headers = {
            "x-memgraph-timestamp": timestamp,
            "x-memgraph-delivery": delivery,
            "x-memgraph-signature": f"v1={hmac.new(self.secret.encode(), signed, hashlib.sha256).hexdigest()}",
        }
        _post(self.address, body, headers, timeout_s=self.timeout_s)


@dataclass(frozen=True)
class PagerDuty:
    """Triggers an event of PagerDuty's Events API v2. Records of one store and subject belong to one incident."""

    name = "pagerduty"

    address: str = field(repr=False)
    routing_key: str = field(repr=False)
    _: KW_ONLY
    timeout_s: float

    def attempt(self, record: DiagnosticRecord, delivery: str) -> None:  # noqa: ARG002 - it has a key of its own
        """Trigger an event."""
        source = record.store_id or "unknown"
        document = document_of(record)
        event = {
            "routing_key": self.routing_key,
            "event_action": "trigger",
            "dedup_key": f"memgraph:{source}:{document['kind']}:{record.subject}",
            "payload": {
                "summary": summary_of(record),
                "source": f"memgraph store {source}",
                "severity": record.severity,
                "timestamp": record.at,
                "component": "memgraph",
                "group": document["kind"],
                "class": record.subject,
                "custom_details": document,
            },
        }
        _post(self.address, orjson.dumps(event), {}, timeout_s=self.timeout_s)


def document_of(record: DiagnosticRecord) -> dict[str, Any]:
    """Return a record as it is sent and written: without what is not known."""
    return record.model_dump(mode="json", exclude_none=True)


def summary_of(record: DiagnosticRecord) -> str:
    """Return a line that says what a record is about."""
    kind = document_of(record)["kind"]
    return f"memgraph {kind}: {record.subject} ({record.severity}), store {record.store_id or 'unknown'}"


def _post(address: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float) -> None:
    """Post once. Redirects are not followed: who answers at an address must not choose another receiver."""
    import httpx

    try:
        with (
            Exchange(timeout_s=timeout_s, max_bytes=_MAX_RESPONSE_BYTES),
            httpx.Client(**client_options(address, timeout_s=timeout_s)) as client,
        ):
            response = client.post(address, content=body, headers={"content-type": "application/json", **headers})
    except ResponseTooLongError:
        raise DeliveryError("the answer is too long", is_final=True) from None
    except (httpx.HTTPError, TimeoutError, OSError, RuntimeError) as error:  # no thread can start while Python ends
        raise DeliveryError(f"no answer: {type(error).__name__}", is_final=False) from None
    except (httpx.InvalidURL, ValueError):
        raise DeliveryError("the address or a header is not valid", is_final=True) from None
    if not response.is_success:
        status = response.status_code
        is_final = status < 500 and status not in _TEMPORARY
        raise DeliveryError(f"answered with status {status}", is_final=is_final)


MAX_WAITING = 1_000
"""Records that may wait in one outlet; later ones are dropped and counted."""
FIRST_WAIT_S = 0.5
MAX_WAIT_S = 30.0


class Outlet:
    """A bounded queue and the thread that empties it with `send`, which must not raise; `on_left` gets what was not sent in time."""

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


HOUR_S = 3_600.0
_MANY = 1_000


class Repeats:
    """Remembers for a while what was done, which is not due again then, and counts how often it came meanwhile. Thread-safe."""

    def __init__(self, *, between_s: float = HOUR_S, timer: Callable[[], float] = time.monotonic) -> None:
        self._between_s, self._timer = between_s, timer
        self._lock = threading.Lock()
        self._noted: dict[Hashable, tuple[float, int]] = {}

    def is_due(self, key: Hashable) -> bool:
        """Return whether this was not noted within the time."""
        with self._lock:
            return self._is_due(key)

    def note(self, key: Hashable) -> int:
        """Note this; return how often it came since it was last due, or 0 if it is not due."""
        with self._lock:
            noted_at, waiting = self._noted.get(key, (0.0, 0))
            if not self._is_due(key):
                self._noted[key] = (noted_at, waiting + 1)
                return 0
            if len(self._noted) >= _MANY:
                self._noted.clear()  # so many differ that repeating some is the smaller harm
            self._noted[key] = (self._timer(), 0)
            return waiting + 1

    def _is_due(self, key: Hashable) -> bool:
        return key not in self._noted or self._timer() - self._noted[key][0] >= self._between_s


@dataclass(eq=False)
class Sender:
    """Sends alerts to a target, with repetitions after growing, random waits, and keeps what was not accepted; none twice within an hour."""

    target: Webhook | PagerDuty
    _: KW_ONLY
    attempts: int
    dead_letters: Path
    wait: Callable[[float], None] = time.sleep
    accepted: Repeats = field(default_factory=Repeats)
    _last_attempt: tuple[DiagnosticRecord, int, str] | None = None
    """Record and number of the last attempt that was begun, and what is wrong so far."""

    def send(self, record: DiagnosticRecord) -> None:
        """Send an alert, or keep it; do nothing if the same was accepted within the last hour."""
        if not self.accepted.is_due(record.identity):
            return
        delivery, pause_s = str(uuid4()), FIRST_WAIT_S
        for number in range(1, self.attempts + 1):
            self._last_attempt = (record, number, "no answer")
            try:
                self.target.attempt(record, delivery)
                self.accepted.note(record.identity)
                return
            except DeliveryError as error:
                self._last_attempt = (record, number, str(error))
                if error.is_final or number == self.attempts:
                    self.keep(record, problem=str(error), attempts=number)
                    return
            self.wait(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, protects nothing
            pause_s = min(2 * pause_s, MAX_WAIT_S)

    def give_up(self, record: DiagnosticRecord) -> None:
        """Keep an alert for which there is no time left. Another thread may be sending it."""
        if not self.accepted.is_due(record.identity):
            return
        tried, number, problem = self._last_attempt or (None, 0, "")
        if tried is record:
            self.keep(record, problem=f"{problem}; then the process ended", attempts=number)
        else:
            self.keep(record, problem="the process ended before the first attempt", attempts=0)

    def keep(self, record: DiagnosticRecord, *, problem: str, attempts: int) -> None:
        """Write an alert to the file of undelivered ones."""
        alert = {"target": self.target.name, "problem": problem, "attempts": attempts, "record": document_of(record)}
        try:
            append_line(self.dead_letters, alert)
        except OSError as error:
            logger.error("diagnostics: an alert is lost: %s: %s", self.dead_letters, error.strerror)
        else:
            logger.error("diagnostics: an alert was not delivered to %s (%s); it is kept in %s", self.target.name, problem, self.dead_letters)  # fmt: skip


_NS_PER_S = 1_000_000_000
SEVERITY_NUMBERS: dict[Severity, int] = {"info": 9, "warning": 13, "error": 17, "critical": 21}
"""OpenTelemetry's numbers of INFO, WARN, ERROR and FATAL."""
_LEVELS: dict[Severity, int] = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
DEAD_LETTERS = "dead-letters.jsonl"
MIN_SECRET_BYTES = 16
"""Shortest secret of a webhook: who reads one signed alert can try secrets offline."""


class _Outlets(NamedTuple):
    """The outlets of some settings, for the file of records and for alerts, and the process in which they were made."""

    pid: int
    timeout_s: float
    lines: list[Outlet]
    alerts: list[Outlet]

    def all(self) -> list[Outlet]:
        return [*self.lines, *self.alerts]


_outlets: dict[Hashable, _Outlets] = {}
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


def report(
    config: AgentMemoryConfig,
    kind: type[DiagnosticRecord],
    /,
    *,
    severity: Severity,
    now: Callable[[], str],
    **said: object,
) -> None:
    """Make a record, if something receives it, log it, and hand it over. An invalid one is refused and logged: what was done does not fail for it."""
    if not is_wanted(config, severity):
        return
    try:
        record = kind.parse({"at": now(), "severity": severity, **said})
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
    is_alert = SEVERITIES.index(record.severity) >= SEVERITIES.index(config.alert_severity)
    for outlet in outlets.all() if is_alert else outlets.lines:
        outlet.put(record)


def flush(timeout_s: float) -> bool:
    """Wait until all records of this process were sent, written or kept; return whether they were."""
    return all(outlet.flush(timeout_s) for found in list(_outlets.values()) for outlet in found.all())


def _outlets_of(config: AgentMemoryConfig) -> _Outlets:
    secret = os.environ.get(WEBHOOK_SECRET_VARIABLE, "")
    routing_key = os.environ.get(PAGERDUTY_KEY_VARIABLE, "")
    addresses = (config.diagnostics_file, config.alert_webhook, config.alert_pagerduty_url, dead_letters_of(config))
    limits = (config.alert_timeout_s, config.alert_attempts)
    key = (os.getpid(), addresses, secret, routing_key, limits)  # threads do not survive a fork
    with _lock:
        if key not in _outlets:
            _outlets[key] = _made(config, secret, routing_key)
        return _outlets[key]


def _made(config: AgentMemoryConfig, secret: str, routing_key: str) -> _Outlets:
    timeout_s = config.alert_timeout_s
    lines, targets, alerts = list[Outlet](), list[Webhook | PagerDuty](), list[Outlet]()
    if config.diagnostics_file:
        lines.append(Outlet("lines", partial(_append, Path(config.diagnostics_file).expanduser().absolute())))
    if config.alert_webhook and secret:
        targets.append(Webhook(config.alert_webhook, secret, timeout_s=timeout_s))
    if config.alert_pagerduty_url and routing_key:
        targets.append(PagerDuty(config.alert_pagerduty_url, routing_key, timeout_s=timeout_s))
    for target in targets:
        sender = Sender(target, attempts=config.alert_attempts, dead_letters=dead_letters_of(config))
        alerts.append(Outlet(target.name, sender.send, on_left=sender.give_up))
    return _Outlets(os.getpid(), timeout_s, lines, alerts)


def _append(path: Path, record: DiagnosticRecord) -> None:
    try:
        append_line(path, document_of(record))
    except OSError as error:
        logger.error("a diagnostic record cannot be written: %s: %s", path, error.strerror)


@atexit.register
def _close() -> None:
    for found in list(_outlets.values()):
        if found.pid == os.getpid():
            for outlet in found.all():
                outlet.close(found.timeout_s)


def log_record(record: DiagnosticRecord) -> None:
    """Emit a record as the OpenTelemetry event ``memgraph.KIND``, with its fields as attributes, if there is OpenTelemetry."""
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
