"""Outlets: one thread for each receiver of records, so that no work waits for a file or a server, and no receiver for another."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from memgraph.diagnostics.lines import append_line
from memgraph.diagnostics.records import DiagnosticRecord
from memgraph.diagnostics.repeats import Repeats
from memgraph.diagnostics.targets import DeliveryError, document_of, new_delivery
from memgraph.logs import logger_of

logger = logger_of(__name__)

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
