"""Serves a store on its socket: decides who serves, takes connections, and ends when idle, asked to, or no longer right.

An answer is what a command prints or a hook injects, or the error, as JSON.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.interfaces.lookups import LOOKUPS
from memgraph.interfaces.refusals import message_of
from memgraph.interfaces.worker.client import WorkerUnavailableError, connected
from memgraph.interfaces.worker.place import (
    INTERNAL,
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    OTHER_SETTINGS,
    PROTOCOL,
    RELEASE,
    RETIRING,
    Place,
    is_own,
    line_of,
    make_folder,
    peer_uid,
    read_line,
    release_key,
    send_line,
    settings_mark,
)
from memgraph.interfaces.worker.tenant import Tenant
from memgraph.logs import logger_of

logger = logger_of(__name__)
TRANSFER_S = 10.0
"""Time for a request to arrive, and for an answer to be taken."""
_WATCH_S = 2.0
"""How often an idle worker looks whether its socket and its store are still there."""
_LOCK_S = 5.0
"""How long a worker that was started waits for one that is ending."""
_CONNECTIONS = 256
_AT_ONCE = 8
"""Requests that run at the same time; more wait for their turn."""
_WAITING = 128
_ENDING_S = 30.0
"""How long an ending worker waits for the requests that it has taken."""


def take_lock(place: Place, *, timeout_s: float = _LOCK_S) -> int | None:
    """Return a descriptor that holds the lock of a store's worker; None if another worker serves.

    The lock belongs to the open file, so a forked child holds it, too. The system releases it when the last of them ends.

    Raises
    ------
    OSError
        The file cannot be opened.
    """
    make_folder(place.folder)
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    until = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if _is_served(place) or time.monotonic() > until:
                os.close(descriptor)
                return None
            time.sleep(0.02)
        else:
            return descriptor


def name_holder(lock: int) -> None:
    """Write this process's id into the lock's file: a worker that hangs cannot say it."""
    with suppress(OSError):  # a full disk
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)


def _is_served(place: Place) -> bool:
    try:
        connected(place).close()
    except WorkerUnavailableError:
        return False
    return True


class Server:
    """Listens on the socket of a store while its lock is held, and answers each connection's one request in a thread.

    Parameters
    ----------
    lock : int
        What `take_lock` returned: only its holder removes and binds the socket.
    tenant : Tenant
        The store.
    idle_s : float
        It ends after this time without a request.
    """

    def __init__(self, place: Place, lock: int, tenant: Tenant, *, idle_s: float) -> None:
        self._place = place
        self._tenant = tenant
        self._idle_s = idle_s
        self._guard = threading.Condition()
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._running = 0
        self._last_use = self._began = time.monotonic()
        self._counts = {"requests": 0, "errors": 0}
        self.ending: str | None = None
        self._wake, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        name_holder(lock)
        self._listener = self._bound()
        self._inode = os.stat(place.socket).st_ino

    def _bound(self) -> socket.socket:
        with suppress(FileNotFoundError):
            os.unlink(self._place.socket)  # of a worker that was killed: it does not hold the lock
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(self._place.socket)
        finally:
            os.umask(before)
        listener.listen(_WAITING)
        listener.setblocking(False)
        return listener

    def serve(self) -> str:
        """Serve until there is a reason to end; answer what was taken by then. Return the reason."""
        try:
            while self.ending is None:
                ready, _, _ = select.select(
                    [self._listener.fileno(), self._wake.fileno()], [], [], min(_WATCH_S, self._idle_s)
                )
                if self._listener.fileno() in ready:
                    self._take()
                elif reason := self._reason():
                    self.stop(reason)
        finally:
            self._end()
        return self.ending or "failed"

    def stop(self, reason: str) -> None:
        """End after the requests that were taken. Safe in a signal handler and in any thread."""
        self.ending = self.ending or reason
        with suppress(OSError):  # a stop is pending already, or the server has ended
            self._waker.send(b".")

    def _reason(self) -> str | None:
        """Return why an idle worker should end."""
        try:
            if os.stat(self._place.socket).st_ino != self._inode:
                return "the socket was replaced"
        except OSError:
            return "the socket was removed"
        if not self._running and time.monotonic() - self._last_use >= self._idle_s:
            return "idle"
        return self._tenant.change()

    def _take(self) -> None:
        """Take the connections that wait, as many as may run."""
        while True:
            with self._guard:
                if self._running >= _CONNECTIONS and not self._guard.wait(timeout=_WATCH_S):
                    return  # the others wait in the system's queue
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # too many open files, for example: those that are served close theirs
                time.sleep(0.05)
                return
            with self._guard:
                self._running += 1
            threading.Thread(target=self._serve_one, args=(connection,), name="memgraph-worker", daemon=True).start()

    def _serve_one(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError, ValueError):
                if is_own(peer_uid(connection)):
                    self._exchange(connection)
            self._tenant.flush()  # after the answer, which need not wait for it
        finally:
            with self._guard:
                self._running -= 1
                self._last_use = time.monotonic()
                self._guard.notify_all()

    def _exchange(self, connection: socket.socket) -> None:
        """Greet, read one request, answer it."""
        deadline = time.monotonic() + TRANSFER_S
        send_line(connection, line_of({"worker": PROTOCOL, "version": RELEASE}), deadline)
        request = read_line(connection, MAX_REQUEST_BYTES, deadline)
        document = self._answered(request)
        with self._guard:
            self._counts["requests"] += 1
            self._counts["errors"] += "error" in document
        line = line_of(document)
        if len(line) > MAX_ANSWER_BYTES:
            line = line_of(
                failure("InvalidInputError", f"the answer has more than {MAX_ANSWER_BYTES:,} bytes: ask for less")
            )
        send_line(connection, line, time.monotonic() + TRANSFER_S)

    def _answered(self, request: Any) -> dict[str, Any]:
        if not isinstance(request, dict):
            return failure("InvalidInputError", "a request is a JSON object")
        if request.get("stop"):
            if release_key(PROTOCOL, RELEASE) <= release_key(PROTOCOL, request.get("version")):
                self.stop("asked to")
                return {"answer": True}
            return failure("InvalidInputError", f"this worker is of the newer release {RELEASE}")
        if request.get("status"):
            return {"answer": self._status()}
        if reason := self.ending or self._tenant.change():
            self.stop(reason)
            return failure(RETIRING, f"the worker ends: {reason}")
        with self._turns:
            return answer(self._tenant, request)

    def _status(self) -> dict[str, Any]:
        now = time.monotonic()
        return {
            "pid": os.getpid(),
            "version": RELEASE,
            "uptime_s": round(now - self._began, 1),
            "idle_s": round(now - self._last_use, 1),
            "ends_after_idle_s": self._idle_s,
            "in_progress": self._running - 1,
            "is_ready": self._tenant.is_ready,
            **self._counts,
        }

    def _end(self) -> None:
        """Take what still waits, so that nobody is turned away, wait for what runs, and remove the socket."""
        with suppress(OSError):
            if os.stat(self._place.socket).st_ino == self._inode:
                os.unlink(self._place.socket)
        self._take()
        self._listener.close()
        until = time.monotonic() + _ENDING_S
        with self._guard:
            while self._running and (left := until - time.monotonic()) > 0:
                self._guard.wait(timeout=left)
        self._wake.close()
        self._waker.close()


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
